//! The database of the data service: supply records as API JSON, and API keys with their usage.
//!
//! [`Catalog`] has one writer and a few readers. `view` reads one snapshot, `change` is a write transaction, and `keys`
//! manages API keys and credits.
//!
//! The catalog is a separate file, or a set of tables on a PostgreSQL server that several service instances share.
//! Files use WAL with `synchronous=NORMAL`: a process crash loses nothing; a power failure can lose commits since the
//! last [`Catalog::sync`] but never corrupts the file. On a server, commits are durable. Beside a database file, a usage
//! file counts the credits.

mod api_keys;
mod change;
mod error;
mod usage_file;
mod view;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection as SqliteConnection;

pub use self::api_keys::{KeyRow, KeyUsage};
pub use self::change::{CatalogChange, CatalogRecord};
pub use self::error::CatalogError;
pub use self::usage_file::ChargeOutcome;
pub use self::view::CatalogView;
use super::StoreError;
use super::connection::{self, open_catalog_reader, open_writer};
use super::error::StoreFault;
use super::open::{DatabaseLocation, reader_of};
use super::readers::ReaderPool;
use super::schema::{self, FileState, MigrationFailed};
use super::sql::postgres::url::PostgresUrl;
use super::sql::postgres::{self, PgSession};
use super::sql::{Connection, SqlError, Transaction};
use error::doing;
use usage_file::UsageFile;

/// The maximum number of idle readers kept open. Load can open more.
const MAX_IDLE_READERS: usize = 4;

/// The WAL size, in pages, at which a commit checkpoints. [`Catalog::sync`] normally checkpoints earlier, outside of
/// requests.
const LOG_PAGES: i64 = 8192;

/// The database. Share it in an `Arc`. All calls block on the disk or the server.
#[derive(Debug)]
pub struct Catalog {
    /// `None` for an in-memory database, which has one connection. Declared first so that it closes before the writer,
    /// which then removes the WAL.
    readers: Option<ReaderPool>,
    writer: Mutex<Connection>,
    /// `None` in memory and on a server, where the rows of the keys have the usage.
    usage: Option<UsageFile>,
}

impl Catalog {
    /// Opens a database file. Creates it if needed and migrates its schema.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, belongs to another application, or has a newer schema.
    pub fn open(path: &Path) -> Result<Self, CatalogError> {
        let failed = |source: rusqlite::Error| CatalogError::Open { path: path.to_owned(), source: Box::new(source) };
        let mut writer = open_writer(path, true).map_err(failed)?;
        connection::CATALOG.apply(&writer).map_err(failed)?;
        let version = version_of(&writer, path)?;
        let mode: String = writer.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
        if mode != "wal" {
            tracing::warn!(mode, "the data service's database does not support a write-ahead log; readers will wait for writers");
        }
        writer.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        writer.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).map_err(failed)?;
        migrate(&mut writer, version)?;
        let reader = Box::new(|path: &Path| Ok(Connection::Sqlite(open_catalog_reader(path)?)));
        let catalog = Self::new(Connection::Sqlite(writer), Some(ReaderPool::new(path, reader, MAX_IDLE_READERS)));
        Ok(Self { usage: Some(UsageFile::beside(path)), ..catalog })
    }

    /// Opens a database file or the tables on a server.
    pub fn open_in(place: &DatabaseLocation) -> Result<Self, CatalogError> {
        match place {
            DatabaseLocation::File(path) => Self::open(path),
            DatabaseLocation::Server(server) => Self::open_on(server, place),
        }
    }

    fn open_on(server: &Arc<PostgresUrl>, place: &DatabaseLocation) -> Result<Self, CatalogError> {
        let session = PgSession::open(server, &Arc::default());
        let session =
            session.map_err(|error| StoreFault::from(error).during("open the data service's database", server.name()))?;
        session.prepare_schema(postgres::schema::CATALOG, true, env!("CARGO_PKG_VERSION"))?;
        let readers = ReaderPool::new(server.name(), reader_of(place, &Arc::default()), MAX_IDLE_READERS).bounded();
        Ok(Self::new(Connection::Postgres(Box::new(session)), Some(readers)))
    }

    /// Creates an in-memory database.
    pub fn in_memory() -> Result<Self, CatalogError> {
        let failed = |source| CatalogError::Open { path: ":memory:".into(), source: Box::new(source) };
        let mut writer = SqliteConnection::open_in_memory().map_err(failed)?;
        connection::CATALOG.apply(&writer).map_err(failed)?;
        migrate(&mut writer, 0)?;
        Ok(Self::new(Connection::Sqlite(writer), None))
    }

    fn new(writer: Connection, readers: Option<ReaderPool>) -> Self {
        Self { readers, writer: Mutex::new(writer), usage: None }
    }

    /// Runs `read` on one snapshot of the data.
    pub fn read<T, E: From<CatalogError>>(&self, read: impl FnOnce(&CatalogView<'_>) -> Result<T, E>) -> Result<T, E> {
        let snapshot = |connection: &mut Connection| {
            let view = connection.read(false, |transaction| Ok(read(&CatalogView(*transaction))));
            view.unwrap_or_else(|fault| Err(failed(fault, "start a read transaction").into()))
        };
        match &self.readers {
            None => snapshot(&mut self.writer()),
            Some(pool) => pool.with(snapshot).map_err(|source| doing("open the database")(source))?,
        }
    }

    /// Runs `change` in one transaction, which is rolled back if `change` fails. Increments the generation.
    pub fn write<T, E: From<CatalogError>>(&self, change: impl FnOnce(&CatalogChange<'_>) -> Result<T, E>) -> Result<T, E> {
        let run = |at: Transaction<'_>| {
            // First, so that concurrent changes on a server wait for each other.
            at.execute("UPDATE served_state SET generation = generation + 1", []).map_err(doing("count a change"))?;
            change(&CatalogChange(CatalogView(at)))
        };
        in_transaction(&mut self.writer(), "write a change", run)
    }

    /// Locks the writer. A poisoned lock is safe: the transaction of the thread that panicked was rolled back.
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_on_server(&self) -> bool {
        matches!(*self.writer(), Connection::Postgres(_))
    }
}

/// Runs `run` in one write transaction, which is rolled back if `run` fails.
fn in_transaction<T, E: From<CatalogError>>(
    connection: &mut Connection,
    doing: &'static str,
    run: impl FnOnce(Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let mut refused = None;
    let written = connection.write_rows(|transaction| {
        run(*transaction).map_err(|error| {
            refused = Some(error);
            StoreFault::from(StoreError::closed(doing))
        })
    });
    match (written, refused) {
        (_, Some(error)) => Err(error),
        (written, None) => written.map_err(|fault| failed(fault, doing).into()),
    }
}

fn failed(fault: StoreFault, during: &'static str) -> CatalogError {
    match fault {
        StoreFault::Sqlite(error) => doing(during)(SqlError::from(error)),
        StoreFault::Postgres(fault) => doing(during)(SqlError::from(fault)),
        fault => CatalogError::Server(fault.during(during, Path::new("the data service's database"))),
    }
}

/// Returns the schema version of a catalog file.
fn version_of(connection: &SqliteConnection, path: &Path) -> Result<i64, CatalogError> {
    let path = path.to_owned();
    match schema::CATALOG.inspect(connection) {
        Ok(FileState::Ours(version)) => Ok(version),
        Ok(FileState::Newer(found)) => Err(CatalogError::Newer { path, found, known: schema::CATALOG.version() }),
        Ok(FileState::Foreign { .. }) => Err(CatalogError::Foreign { path }),
        Err(source) => Err(CatalogError::Open { path, source: Box::new(source) }),
    }
}

fn migrate(connection: &mut SqliteConnection, from: i64) -> Result<(), CatalogError> {
    let migrated = schema::CATALOG.migrate(connection, from);
    migrated.map_err(|MigrationFailed { source, .. }| doing("bring the schema up to date")(source))
}
