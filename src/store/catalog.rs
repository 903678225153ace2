//! The database of the data service: records as the API's JSON, keys with their usage.
//!
//! Cast: [`Catalog`] is the file, with one writer and a few readers. `view` answers questions as of one moment, `change` is one
//! transaction that writes, `keys` has the keys and their credits.
//!
//! It is a file of its own, apart from the daemon's. A write is one `IMMEDIATE` transaction, a read one snapshot.
//! `synchronous=NORMAL` under WAL: a crash of the process loses nothing that was committed; a loss of power may lose what was
//! committed since the last [`Catalog::sync`], and never tears the file.

mod change;
mod error;
mod keys;
mod view;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, TransactionBehavior};

pub use self::change::{CatalogChange, CatalogRecord};
pub use self::error::CatalogError;
pub use self::keys::{KeyRow, KeyUsage};
pub use self::view::CatalogView;
use super::connection::{self, open_catalog_reader, open_writer};
use super::readers::ReaderPool;
use super::schema::{self, FileState, MigrationFailed};
use error::doing;

/// Reading connections kept open; more are opened under load and closed again.
const MAX_IDLE_READERS: usize = 4;

/// Pages of the log at which a commit carries it over into the database; see [`Catalog::sync`], which does so earlier and beside.
const LOG_PAGES: i64 = 8192;

/// The database. Share it behind an `Arc`; every call blocks, a write for as long as the disk takes.
#[derive(Debug)]
pub struct Catalog {
    writer: Mutex<Connection>,
    /// None for a database in memory, which has one connection only.
    readers: Option<ReaderPool<Connection, rusqlite::Error>>,
}

impl Catalog {
    /// Opens the file, making it where it is not there, and brings its schema up to date.
    /// Fails where the file cannot be opened, is not ours, or is newer than this program.
    pub fn open(path: &Path) -> Result<Self, CatalogError> {
        let failed = |source| CatalogError::Open { path: path.to_owned(), source };
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
        let readers = ReaderPool::new(path, open_catalog_reader, MAX_IDLE_READERS);
        Ok(Self { writer: Mutex::new(writer), readers: Some(readers) })
    }

    /// A database that lives as long as this value. Fails where SQLite cannot make it.
    pub fn in_memory() -> Result<Self, CatalogError> {
        let path = Path::new(":memory:");
        let failed = |source| CatalogError::Open { path: path.to_owned(), source };
        let mut writer = Connection::open_in_memory().map_err(failed)?;
        connection::CATALOG.apply(&writer).map_err(failed)?;
        migrate(&mut writer, 0)?;
        Ok(Self { writer: Mutex::new(writer), readers: None })
    }

    /// Runs `read` on one consistent view of the data. Fails with what `read` answers, or where the view cannot be taken.
    pub fn read<T, E: From<CatalogError>>(&self, read: impl FnOnce(&CatalogView<'_>) -> Result<T, E>) -> Result<T, E> {
        let snapshot = |connection: &mut Connection| {
            let transaction = connection.transaction().map_err(doing("begin to read"))?;
            read(&CatalogView(&transaction))
        };
        match &self.readers {
            None => snapshot(&mut self.writer()),
            Some(pool) => pool.with(snapshot).map_err(|source| CatalogError::Open { path: pool.path().to_owned(), source })?,
        }
    }

    /// Runs `change` in one transaction: all of it happens, or nothing where it answers an error. The generation grows by one.
    /// Fails with what `change` answers, or where the transaction cannot be written.
    pub fn write<T, E: From<CatalogError>>(&self, change: impl FnOnce(&CatalogChange<'_>) -> Result<T, E>) -> Result<T, E> {
        let mut connection = self.writer();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(doing("begin to write"))?;
        let result = change(&CatalogChange(CatalogView(&transaction)))?;
        transaction.execute("UPDATE state SET generation = generation + 1", []).map_err(doing("count a change"))?;
        transaction.commit().map_err(doing("commit a change"))?;
        Ok(result)
    }

    /// The connection that writes. A poisoned lock means that a thread panicked between two statements; SQLite rolled its
    /// transaction back, so the connection is good.
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The version of the schema of a file that is ours.
fn version_of(connection: &Connection, path: &Path) -> Result<i64, CatalogError> {
    let path = path.to_owned();
    match schema::CATALOG.inspect(connection) {
        Ok(FileState::Ours(version)) => Ok(version),
        Ok(FileState::Newer(found)) => Err(CatalogError::Newer { path, found, known: schema::CATALOG.version() }),
        Ok(FileState::Foreign { .. }) => Err(CatalogError::Foreign { path }),
        Err(source) => Err(CatalogError::Open { path, source }),
    }
}

fn migrate(connection: &mut Connection, from: i64) -> Result<(), CatalogError> {
    let migrated = schema::CATALOG.migrate(connection, from);
    migrated.map_err(|MigrationFailed { source, .. }| doing("bring the schema up to date")(source))
}
