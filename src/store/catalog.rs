//! The database of the data service: records as the API's JSON, keys with their usage.
//!
//! Cast: [`Catalog`] is the database, with one writer and a few readers. `view` answers questions as of one moment, `change` is one
//! transaction that writes, `keys` has the keys and their credits.
//!
//! It is a file of its own, apart from the daemon's, or tables on a PostgreSQL server, where several services share them. A write is one
//! transaction, a read one moment of the data. In a file, `synchronous=NORMAL` under WAL: a crash of the process loses nothing that was
//! committed; a loss of power may lose what was committed since the last [`Catalog::sync`], and never tears the file. On a server
//! everything is on its disk once it was committed.

mod change;
mod error;
mod keys;
mod view;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection as SqliteConnection;

pub use self::change::{CatalogChange, CatalogRecord};
pub use self::error::CatalogError;
pub use self::keys::{KeyRow, KeyUsage};
pub use self::view::CatalogView;
use super::StoreError;
use super::connection::{self, open_catalog_reader, open_writer};
use super::error::StoreFault;
use super::open::{Place, reader_of};
use super::readers::ReaderPool;
use super::schema::{self, FileState, MigrationFailed};
use super::sql::postgres::place::PostgresPlace;
use super::sql::postgres::{self, PgSession};
use super::sql::{Connection, SqlError, Transaction};
use error::doing;

/// Reading connections kept open; more are opened under load and closed again.
const MAX_IDLE_READERS: usize = 4;

/// Pages of the log at which a commit carries it over into the database; see [`Catalog::sync`], which does so earlier and beside.
const LOG_PAGES: i64 = 8192;

/// The database. Share it behind an `Arc`; every call blocks, a write for as long as the disk or the server takes.
#[derive(Debug)]
pub struct Catalog {
    /// None for a database in memory, which has one connection only. Closed before the one that writes, which takes the log of a file
    /// away.
    readers: Option<ReaderPool>,
    writer: Mutex<Connection>,
}

impl Catalog {
    /// Opens the file, making it where it is not there, and brings its schema up to date.
    /// Fails where the file cannot be opened, is not ours, or is newer than this program.
    pub fn open(path: &Path) -> Result<Self, CatalogError> {
        let failed = |source: rusqlite::Error| CatalogError::Open { path: path.to_owned(), source: Box::new(source) };
        let mut writer = open_writer(path, true).map_err(failed)?;
        connection::CATALOG.apply(&writer).map_err(failed)?;
        let version = version_of(&writer, path)?;
        let mode: String = writer.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
        if mode != "wal" {
            tracing::warn!(mode, "the data service's database cannot use a write-ahead log here; readers will wait for writers");
        }
        writer.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        writer.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).map_err(failed)?;
        migrate(&mut writer, version)?;
        let reader = |path: &Path| Ok(Connection::Sqlite(open_catalog_reader(path)?));
        Ok(Self::over(Connection::Sqlite(writer), Some(ReaderPool::new(path, reader, MAX_IDLE_READERS))))
    }

    /// As [`Self::open`], wherever the database is.
    pub fn open_in(place: &Place) -> Result<Self, CatalogError> {
        match place {
            Place::File(path) => Self::open(path),
            Place::Server(server) => Self::open_on(server, place),
        }
    }

    fn open_on(server: &Arc<PostgresPlace>, place: &Place) -> Result<Self, CatalogError> {
        let session = PgSession::open(server, &Arc::default());
        let session =
            session.map_err(|error| StoreFault::from(error).during("open the data service's database", server.name()))?;
        session.prepare_schema(postgres::schema::CATALOG, true, env!("CARGO_PKG_VERSION"))?;
        let readers = ReaderPool::new(server.name(), reader_of(place, &Arc::default()), MAX_IDLE_READERS).bounded();
        Ok(Self::over(Connection::Postgres(Box::new(session)), Some(readers)))
    }

    /// A database that lives as long as this value. Fails where SQLite cannot make it.
    pub fn in_memory() -> Result<Self, CatalogError> {
        let failed = |source| CatalogError::Open { path: ":memory:".into(), source: Box::new(source) };
        let mut writer = SqliteConnection::open_in_memory().map_err(failed)?;
        connection::CATALOG.apply(&writer).map_err(failed)?;
        migrate(&mut writer, 0)?;
        Ok(Self::over(Connection::Sqlite(writer), None))
    }

    fn over(writer: Connection, readers: Option<ReaderPool>) -> Self {
        Self { readers, writer: Mutex::new(writer) }
    }

    /// Runs `read` on one consistent view of the data. Fails with what `read` answers, or where the view cannot be taken.
    pub fn read<T, E: From<CatalogError>>(&self, read: impl FnOnce(&CatalogView<'_>) -> Result<T, E>) -> Result<T, E> {
        let snapshot = |connection: &mut Connection| {
            let view = connection.read(false, |transaction| Ok(read(&CatalogView(*transaction))));
            view.unwrap_or_else(|fault| Err(failed(fault, "begin to read").into()))
        };
        match &self.readers {
            None => snapshot(&mut self.writer()),
            Some(pool) => pool.with(snapshot).map_err(|source| doing("open the database")(source))?,
        }
    }

    /// Runs `change` in one transaction: all of it happens, or nothing where it answers an error. The generation grows by one.
    /// Fails with what `change` answers, or where the transaction cannot be written.
    pub fn write<T, E: From<CatalogError>>(&self, change: impl FnOnce(&CatalogChange<'_>) -> Result<T, E>) -> Result<T, E> {
        let run = |at: Transaction<'_>| {
            // First, so that of two changes on a server one waits for the other.
            at.execute("UPDATE served_state SET generation = generation + 1", []).map_err(doing("count a change"))?;
            change(&CatalogChange(CatalogView(at)))
        };
        in_transaction(&mut self.writer(), "write a change", run)
    }

    /// The connection that writes. A poisoned lock means that a thread panicked between two statements; its transaction was rolled
    /// back, so the connection is good.
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the database is on a server.
    fn is_on_server(&self) -> bool {
        matches!(*self.writer(), Connection::Postgres(_))
    }
}

/// Runs `run` in one transaction that writes, which is undone where it answers an error.
fn in_transaction<T, E: From<CatalogError>>(
    connection: &mut Connection,
    doing: &'static str,
    run: impl FnOnce(Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let mut refused = None;
    let written = connection.write_rows(|transaction| {
        run(*transaction).map_err(|error| {
            refused = Some(error);
            StoreFault::from(StoreError::Closed { doing })
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

/// The version of the schema of a file that is ours.
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
