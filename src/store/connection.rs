//! From a path to a connection: every setting that a promise rests on, and a way to read where nothing may be written.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::backup::private_file;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

/// The connection by which the daemon writes. One batch of a cycle stays in its page cache, all of which counts as our memory.
pub(super) const DAEMON_WRITER: ConnectionTuning =
    ConnectionTuning { busy_timeout: Duration::from_secs(5), cached_statements: 128, page_cache_kib: 2 * 1024 };

/// Connections that read the daemon's database: the system caches the file anyway.
const DAEMON_READER: ConnectionTuning = ConnectionTuning { page_cache_kib: 1024, ..DAEMON_WRITER };

/// Connections to the catalog. An import of ten thousand tokens takes its time, and requests that are to be counted meanwhile
/// wait rather than fail.
pub(super) const CATALOG: ConnectionTuning =
    ConnectionTuning { busy_timeout: Duration::from_secs(20), cached_statements: 64, page_cache_kib: 2000 };

/// What differs between connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTuning {
    /// How long a statement waits for a writer of another process.
    pub(super) busy_timeout: Duration,
    /// Statements kept ready.
    cached_statements: usize,
    page_cache_kib: i64,
}

impl ConnectionTuning {
    /// Sets a connection up.
    pub(super) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.busy_timeout(self.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(self.cached_statements);
        keep_plans(connection)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cache_size", -self.page_cache_kib)?;
        connection.pragma_update(None, "mmap_size", 0)
    }
}

/// A connection that writes; it makes the file where `create` says so.
pub(super) fn open_writer(path: &Path, create: bool) -> rusqlite::Result<Connection> {
    if create {
        // Whatever the umask: SQLite gives what it makes beside the file the rights of the file. Where this fails, opening says why.
        let _ = private_file(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, if create { flags | OpenFlags::SQLITE_OPEN_CREATE } else { flags })
}

/// A connection for the questions of the daemon, of commands, and of the mirror.
pub(super) fn open_daemon_reader(path: &Path) -> rusqlite::Result<Connection> {
    for_reading(open_read_only(path)?, &DAEMON_READER)
}

/// A connection for the questions of the data service.
pub(super) fn open_catalog_reader(path: &Path) -> rusqlite::Result<Connection> {
    for_reading(Connection::open_with_flags(path, READ_ONLY)?, &CATALOG)
}

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

fn for_reading(connection: Connection, tuning: &ConnectionTuning) -> rusqlite::Result<Connection> {
    tuning.apply(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection that cannot write to the daemon's database. A closed database in a directory that we may not write has no place for
/// the shared memory of its WAL: as long as no WAL is there, nobody writes, and the file is read as it lies.
pub(super) fn open_read_only(path: &Path) -> rusqlite::Result<Connection> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, READ_ONLY)?;
        connection.busy_timeout(DAEMON_READER.busy_timeout)?;
        keep_plans(&connection)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    match open() {
        Err(error) if has_no_place(&error) && !beside(path, "-wal").exists() => open_as_it_lies(path),
        result => result,
    }
}

/// Plans each statement once, whatever values it is given: left alone, SQLite parses and plans anew where a value might decide
/// whether a partial index serves. Ours name the values that do.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// A connection that takes the file for one that nobody writes.
fn open_as_it_lies(path: &Path) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?immutable=1", percent_encoded(path));
    Connection::open_with_flags(uri, READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

fn has_no_place(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly))
}

fn percent_encoded(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    path.as_os_str()
        .as_bytes()
        .iter()
        .map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The path of a file beside the database: `<db>.lock`, `<db>-wal`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
