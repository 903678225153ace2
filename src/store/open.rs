//! Opens a database: takes the lock, identifies the file, configures connections, and migrates the schema.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::connection::{DAEMON_WRITER, open_daemon_reader, open_read_only, open_writer};
use super::error::{ErrorKind, OPENING, StoreError, StoreFault};
use super::lock::{resolve, take_lock};
use super::readers::{OpenReader, ReaderPool, ReadersByKind};
use super::restore::check_restore_finished;
use super::schema::{self, FileState, MigrationFailed};
use super::sql::postgres::PgSession;
use super::sql::postgres::fence::Fence;
use super::sql::postgres::url::PostgresUrl;
use super::sql::{self, SqlError};
use super::{Access, Opening};

/// The first bytes of an SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The WAL size, in pages, at which SQLite checkpoints: 4 MiB.
const WAL_CHECKPOINT_PAGES: i64 = 1000;

/// The size to which a checkpoint truncates the WAL file: 64 MiB.
const WAL_KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// The number of read connections in a process that also writes, without those of the web pages.
const WRITING_PROCESS_READERS: usize = 2;

/// The location of a database.
#[derive(Clone, Debug)]
pub enum DatabaseLocation {
    File(PathBuf),
    Server(Arc<PostgresUrl>),
}

impl DatabaseLocation {
    /// Returns the name for messages: the file, or the server and database.
    pub fn name(&self) -> &Path {
        match self {
            DatabaseLocation::File(path) => path,
            DatabaseLocation::Server(place) => place.name(),
        }
    }

    /// Fails unless there is a database of the current schema.
    pub(super) fn check_current(&self) -> Result<(), StoreError> {
        match self {
            DatabaseLocation::File(path) => check_current(path),
            DatabaseLocation::Server(place) => {
                let session = PgSession::open(place, &Arc::default()).map_err(|error| opening_failed(error, place.name()))?;
                session.prepare_schema(sql::postgres::schema::DAEMON, false, env!("CARGO_PKG_VERSION"))
            }
        }
    }
}

/// Returns a function that opens read connections. `fence` is the lease for reads as the active instance.
pub(super) fn reader_of(place: &DatabaseLocation, fence: &Arc<Fence>) -> OpenReader {
    match place {
        DatabaseLocation::File(_) => Box::new(|path| Ok(sql::Connection::Sqlite(open_daemon_reader(path)?))),
        DatabaseLocation::Server(place) => {
            let (place, fence) = (place.clone(), fence.clone());
            Box::new(move |_| Ok(sql::Connection::Postgres(Box::new(PgSession::open(&place, &fence)?))))
        }
    }
}

/// Like [`reader_of`], for the web pages: a server also limits the time of their statements.
fn page_reader_of(place: &DatabaseLocation, fence: &Arc<Fence>) -> OpenReader {
    match place {
        DatabaseLocation::File(_) => reader_of(place, fence),
        DatabaseLocation::Server(place) => {
            let (place, fence) = (place.clone(), fence.clone());
            Box::new(move |_| Ok(sql::Connection::Postgres(Box::new(PgSession::open_for_pages(&place, &fence)?))))
        }
    }
}

/// Opens `count` read connections for the daemon or a command. Those of the web pages are opened on demand.
fn readers(path: &Path, place: &DatabaseLocation, fence: &Arc<Fence>, count: usize) -> Result<ReadersByKind, SqlError> {
    let daemon = ReaderPool::filled(path, reader_of(place, fence), count)?;
    Ok(ReadersByKind::new(daemon, || page_reader_of(place, fence)))
}

pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) writer: Option<sql::Connection>,
    pub(super) lock: Option<File>,
    pub(super) readers: ReadersByKind,
}

/// Opens a database on a server. `fence` is the lease of this instance.
pub(super) fn open_server(place: &Arc<PostgresUrl>, access: Access, fence: &Arc<Fence>) -> Result<Opened, StoreError> {
    let path = place.name();
    let failed = |error: SqlError| opening_failed(error, path);
    let writer = PgSession::open(place, fence).map_err(failed)?;
    writer.prepare_schema(sql::postgres::schema::DAEMON, access == Access::Own, env!("CARGO_PKG_VERSION"))?;
    let writer = (access != Access::Read).then(|| sql::Connection::Postgres(Box::new(writer)));
    let count = if writer.is_some() { WRITING_PROCESS_READERS } else { 1 };
    let readers = readers(path, &DatabaseLocation::Server(place.clone()), fence, count).map_err(failed)?;
    Ok(Opened { path: path.to_owned(), writer, lock: None, readers })
}

/// Opens a database file. An owner also migrates it.
pub(super) fn open(opening: &Opening) -> Result<Opened, StoreError> {
    let path = resolve(&opening.path)?;
    let is_owner = opening.access == Access::Own;
    check_restore_finished(&path)?;
    if !is_owner && !path.exists() {
        return Err(StoreError::missing(&path));
    }
    let lock = if is_owner { Some(take_lock(&path)?) } else { None };
    let version = version_of(&path)?;
    if !is_owner {
        check_not_older(&path, version)?;
    }
    let writer = match opening.access {
        Access::Read => None,
        Access::Own | Access::Write => {
            let mut connection = set_up_writer(&path, is_owner)?;
            if is_owner {
                migrate(&mut connection, &path, version)?;
                store_program(&mut connection, opening).map_err(|fault| fault.during(OPENING, &path))?;
            }
            Some(sql::Connection::Sqlite(connection))
        }
    };
    // A read-only command runs one query at a time.
    let count = if writer.is_some() { WRITING_PROCESS_READERS } else { 1 };
    let readers = readers(&path, &DatabaseLocation::File(path.clone()), &Arc::default(), count)
        .map_err(|error| opening_failed(error, &path))?;
    Ok(Opened { path, writer, lock, readers })
}

/// Opens a database file without migrating it. The caller holds its lock.
pub(super) fn open_unmigrated(path: &Path) -> Result<sql::Connection, StoreError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = open_writer(path, false)?;
        DAEMON_WRITER.apply(&connection)?;
        Ok(connection)
    };
    open().map(sql::Connection::Sqlite).map_err(|error| opening_failed(error, path))
}

/// Creates an empty database of the current schema in a temporary file.
pub(super) fn open_new(opening: &Opening) -> Result<sql::Connection, StoreError> {
    let path = &opening.path;
    let mut connection = set_up_writer(path, true)?;
    migrate(&mut connection, path, 0)?;
    store_program(&mut connection, opening).map_err(|fault| fault.during(OPENING, path))?;
    Ok(sql::Connection::Sqlite(connection))
}

fn opening_failed(error: impl Into<StoreFault>, path: &Path) -> StoreError {
    error.into().during(OPENING, path)
}

/// Checks, without changing the file, whether this version can open the database at `path`.
pub(super) fn check_file(path: &Path) -> Result<(), StoreError> {
    let path = resolve(path)?;
    check_restore_finished(&path)?;
    version_of(&path).map(drop)
}

/// Returns the schema version of a file without writing to it: 0 for a missing or empty file.
pub(super) fn version_of(path: &Path) -> Result<i64, StoreError> {
    let foreign = |found: &str| Err(StoreError::foreign(path, found));
    let mut head = [0; 16];
    match File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        if length > 0 {
            file.read_exact(&mut head)?;
        }
        Ok(length)
    }) {
        Ok(0) => return Ok(0),
        Ok(_) if head == *MAGIC => {}
        Ok(_) => return foreign("it does not start with the SQLite header"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return foreign("it is too short to be an SQLite file");
        }
        Err(source) => return Err(StoreError::io(OPENING, path, source)),
    }
    let state = open_read_only(path).and_then(|connection| schema::DAEMON.inspect(&connection));
    match state.map_err(|error| opening_failed(error, path))? {
        FileState::Ours(version) => Ok(version),
        FileState::Newer(found) => Err(StoreError::newer(path, found, schema::DAEMON.version(), written_by(path))),
        FileState::Foreign { application_id: 0, tables } => {
            foreign(&format!("it is an SQLite database of another program, with {tables} tables and indexes"))
        }
        FileState::Foreign { application_id, .. } => {
            foreign(&format!("it is an SQLite database of another program, with application id {application_id:#x}"))
        }
    }
}

/// Returns the program version that last wrote the file. A newer schema may store it elsewhere.
fn written_by(path: &Path) -> Option<String> {
    let connection = open_read_only(path).ok()?;
    connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).ok()
}

/// Fails unless the file is a daemon database of the current schema.
pub(super) fn check_current(path: &Path) -> Result<(), StoreError> {
    if !path.exists() {
        return Err(StoreError::missing(path));
    }
    check_not_older(path, version_of(path)?)
}

fn check_not_older(path: &Path, found: i64) -> Result<(), StoreError> {
    let known = schema::DAEMON.version();
    if found < known { Err(StoreError::older(path, found, known)) } else { Ok(()) }
}

/// Opens and configures the writer. Reads back the settings that the durability guarantees depend on.
fn set_up_writer(path: &Path, create: bool) -> Result<Connection, StoreError> {
    let set_up = || -> Result<Connection, StoreFault> {
        let connection = open_writer(path, create)?;
        DAEMON_WRITER.apply(&connection)?;
        let journal: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        check_pragma(path, "journal_mode", "wal", &journal)?;
        // FULL: commits survive a power failure. Otherwise delivered messages could be sent again.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", WAL_CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
        for (pragma, wanted) in [("synchronous", 2), ("foreign_keys", 1), ("trusted_schema", 0)] {
            let got: i64 = connection.pragma_query_value(None, pragma, |row| row.get(0))?;
            check_pragma(path, pragma, &wanted.to_string(), &got.to_string())?;
        }
        Ok(connection)
    };
    set_up().map_err(|fault| fault.during(OPENING, path))
}

fn check_pragma(path: &Path, pragma: &'static str, wanted: &str, got: &str) -> Result<(), StoreError> {
    if wanted.eq_ignore_ascii_case(got) {
        return Ok(());
    }
    let help = "the file may be on a network share, which is not supported";
    let reason = format!("SQLite returned {got:?} for `PRAGMA {pragma}`, but {wanted:?} is required; {help}");
    Err(StoreError::new(ErrorKind::Other, OPENING, path, reason))
}

fn migrate(connection: &mut Connection, path: &Path, from: i64) -> Result<(), StoreError> {
    schema::DAEMON.migrate(connection, from).map_err(|failed| migration_failed(failed, path))
}

fn migration_failed(MigrationFailed { to, source }: MigrationFailed, path: &Path) -> StoreError {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => StoreFault::from(source).during("migrate the database", path),
        _ => StoreError::migration(path, to, source),
    }
}

/// Stores the program version that wrote last, for the error message of an older version.
fn store_program(connection: &mut Connection, opening: &Opening) -> Result<(), StoreFault> {
    let program = env!("CARGO_PKG_VERSION");
    let known: Option<String> =
        connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).optional()?;
    if known.as_deref() == Some(program) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (key, value) in [("program", program), ("program_since", &opening.now.to_rfc3339())] {
        transaction.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", (key, value))?;
    }
    Ok(transaction.commit()?)
}
