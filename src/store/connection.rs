//! Opens SQLite connections with the settings that the durability guarantees depend on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::backup::private_file;
use super::owner::give_to_owner_of_directory;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

/// The daemon's writer. Its page cache holds one batch of a cycle.
pub(super) const DAEMON_WRITER: ConnectionTuning =
    ConnectionTuning { busy_timeout: Duration::from_secs(5), cached_statements: 128, page_cache_kib: 2 * 1024 };

/// The daemon's readers. Their cache is small, because the operating system caches the file.
const DAEMON_READER: ConnectionTuning = ConnectionTuning { page_cache_kib: 1024, ..DAEMON_WRITER };

/// Connections to the catalog. An import takes a while, and requests should wait for it rather than fail.
pub(super) const CATALOG: ConnectionTuning =
    ConnectionTuning { busy_timeout: Duration::from_secs(20), cached_statements: 64, page_cache_kib: 2000 };

/// The settings that differ between connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTuning {
    /// The wait of a statement for another writer.
    pub(super) busy_timeout: Duration,
    /// The number of cached prepared statements.
    cached_statements: usize,
    page_cache_kib: i64,
}

impl ConnectionTuning {
    pub(super) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.busy_timeout(self.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(self.cached_statements);
        stabilize_plans(connection)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cache_size", -self.page_cache_kib)?;
        connection.pragma_update(None, "mmap_size", 0)
    }
}

/// Opens a connection that writes. Creates the file if `create` is set.
pub(super) fn open_writer(path: &Path, create: bool) -> rusqlite::Result<Connection> {
    if create {
        // Create the file as private, independent of the umask. SQLite gives `-wal` and `-shm` the same permissions. If this
        // fails, opening reports the cause.
        if private_file(path).is_ok() {
            let _ = give_to_owner_of_directory(path);
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, if create { flags | OpenFlags::SQLITE_OPEN_CREATE } else { flags })
}

/// Opens a read-only connection to the daemon's database.
pub(super) fn open_daemon_reader(path: &Path) -> rusqlite::Result<Connection> {
    for_reading(open_read_only(path)?, &DAEMON_READER)
}

/// Opens a read-only connection to the catalog.
pub(super) fn open_catalog_reader(path: &Path) -> rusqlite::Result<Connection> {
    for_reading(Connection::open_with_flags(path, READ_ONLY)?, &CATALOG)
}

const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

fn for_reading(connection: Connection, tuning: &ConnectionTuning) -> rusqlite::Result<Connection> {
    tuning.apply(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Opens a connection that cannot write. In a directory without write permission, SQLite cannot create the shared
/// memory of the WAL. If no WAL exists, no process is writing, so the file is opened as immutable instead.
pub(super) fn open_read_only(path: &Path) -> rusqlite::Result<Connection> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, READ_ONLY)?;
        connection.busy_timeout(DAEMON_READER.busy_timeout)?;
        stabilize_plans(&connection)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    match open() {
        Err(error) if cannot_create_shm(&error) && !sibling_path(path, "-wal").exists() => open_immutable(path),
        result => result,
    }
}

/// Plans each statement once, independent of its parameters. By default, SQLite plans again if a parameter decides
/// whether a partial index applies. Our statements spell such values out.
fn stabilize_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Opens the file without locks, assuming that no process writes it.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?immutable=1", percent_encoded(path));
    Connection::open_with_flags(uri, READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

fn cannot_create_shm(error: &rusqlite::Error) -> bool {
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

/// Returns the path of a file next to the database, such as `<db>.lock` or `<db>-wal`.
pub(super) fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
