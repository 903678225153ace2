//! From a path to connections that keep the promises: lock, what the file is, settings, migrations.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::connection::{DAEMON_WRITER, open_daemon_reader, open_read_only, open_writer};
use super::error::{StoreError, StoreFault};
use super::lock::{resolve, take_lock};
use super::readers::{OpenReader, ReaderPool};
use super::rebuild::{self, Progress};
use super::restore::refuse_unfinished;
use super::schema::{self, FileState, MigrationFailed};
use super::sql::postgres::PgSession;
use super::sql::postgres::lease::Fence;
use super::sql::postgres::place::PostgresPlace;
use super::sql::{self, SqlError};
use super::{Access, Opening};

/// The first bytes of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Pages in the WAL after which they move into the database: 4 MiB.
const WAL_CHECKPOINT_PAGES: i64 = 1000;

/// What a WAL may keep on disk after a large commit: 64 MiB.
const WAL_KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// Read connections beside a writer, and so reads at once.
const READERS_BESIDE_WRITER: usize = 2;

/// Where a database is.
#[derive(Clone, Debug)]
pub enum Place {
    /// A file of this machine.
    File(PathBuf),
    /// A database on a PostgreSQL server.
    Server(Arc<PostgresPlace>),
}

impl Place {
    /// How messages call it: the file, or the server and its database.
    pub fn name(&self) -> &Path {
        match self {
            Place::File(path) => path,
            Place::Server(place) => place.name(),
        }
    }

    /// Fails where there is no database of the present schema.
    pub(super) fn refuse_unless_current(&self) -> Result<(), StoreError> {
        match self {
            Place::File(path) => refuse_unless_current(path),
            Place::Server(place) => {
                let session = PgSession::open(place, &Arc::default()).map_err(|error| opening_failed(error, place.name()))?;
                session.prepare_schema(sql::postgres::schema::DAEMON, false, env!("CARGO_PKG_VERSION"))
            }
        }
    }
}

/// How connections that read are opened; `fence` says under which lease those read that read as the active instance.
pub(super) fn reader_of(place: &Place, fence: &Arc<Fence>) -> OpenReader<sql::Connection, SqlError> {
    match place {
        Place::File(_) => Box::new(|path| Ok(sql::Connection::Sqlite(open_daemon_reader(path)?))),
        Place::Server(place) => {
            let (place, fence) = (place.clone(), fence.clone());
            Box::new(move |_| Ok(sql::Connection::Postgres(Box::new(PgSession::open(&place, &fence)?))))
        }
    }
}

pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) writer: Option<sql::Connection>,
    pub(super) lock: Option<File>,
    pub(super) readers: ReaderPool,
}

/// Opens a database on a server; `fence` says under which lease it is used.
pub(super) fn open_server(place: &Arc<PostgresPlace>, access: Access, fence: &Arc<Fence>) -> Result<Opened, StoreError> {
    let path = place.name();
    let failed = |error: SqlError| opening_failed(error, path);
    let writer = PgSession::open(place, fence).map_err(failed)?;
    writer.prepare_schema(sql::postgres::schema::DAEMON, access == Access::Own, env!("CARGO_PKG_VERSION"))?;
    let writer = (access != Access::Read).then(|| sql::Connection::Postgres(Box::new(writer)));
    let readers = if writer.is_some() { READERS_BESIDE_WRITER } else { 1 };
    let readers = ReaderPool::filled(path, reader_of(&Place::Server(place.clone()), fence), readers).map_err(failed)?;
    Ok(Opened { path: path.to_owned(), writer, lock: None, readers })
}

/// Opens the database, and brings it up to date where it is ours alone, which is told to `progress`.
pub(super) fn open(opening: &Opening, progress: Progress<'_>) -> Result<Opened, StoreError> {
    let path = resolve(&opening.path)?;
    let is_owner = opening.access == Access::Own;
    refuse_unfinished(&path)?;
    if !is_owner && !path.exists() {
        return Err(StoreError::Missing { path });
    }
    let lock = if is_owner { Some(take_lock(&path)?) } else { None };
    let version = version_of(&path)?;
    if !is_owner {
        refuse_older(&path, version)?;
    }
    let writer = match opening.access {
        Access::Read => None,
        Access::Own | Access::Beside => {
            if is_owner && (1..rebuild::PACKED_SINCE).contains(&version) {
                pack_schedules(&path, version, opening, progress)?;
            }
            let mut connection = set_up_writer(&path, is_owner)?;
            if is_owner {
                let version = version_of(&path)?;
                migrate(&mut connection, &path, version)?;
                sign(&mut connection, opening).map_err(|fault| fault.during(OPENING, &path))?;
            }
            Some(sql::Connection::Sqlite(connection))
        }
    };
    // A command asks one thing at a time.
    let readers = if writer.is_some() { READERS_BESIDE_WRITER } else { 1 };
    let readers = ReaderPool::filled(&path, reader_of(&Place::File(path.clone()), &Arc::default()), readers)
        .map_err(|error| opening_failed(error, &path))?;
    Ok(Opened { path, writer, lock, readers })
}

/// Opens the file of a database as it is, for whoever holds its lock. Brings nothing up to date.
pub(super) fn open_as_it_is(path: &Path) -> Result<sql::Connection, StoreError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = open_writer(path, false)?;
        DAEMON_WRITER.apply(&connection)?;
        Ok(connection)
    };
    open().map(sql::Connection::Sqlite).map_err(|error| opening_failed(error, path))
}

/// Makes an empty database of the present schema in a file that nobody else knows of.
pub(super) fn open_new(opening: &Opening) -> Result<sql::Connection, StoreError> {
    let path = &opening.path;
    let mut connection = set_up_writer(path, true)?;
    migrate(&mut connection, path, 0)?;
    sign(&mut connection, opening).map_err(|fault| fault.during(OPENING, path))?;
    Ok(sql::Connection::Sqlite(connection))
}

const OPENING: &str = "open the store";

fn opening_failed(error: impl Into<StoreFault>, path: &Path) -> StoreError {
    error.into().during(OPENING, path)
}

/// Whether the database at `path` could be opened by this program, as far as can be told without touching it.
pub(super) fn look_at(path: &Path) -> Result<(), StoreError> {
    let path = resolve(path)?;
    refuse_unfinished(&path)?;
    version_of(&path).map(drop)
}

/// The version of the schema of a file, found without writing to it: zero for a file that is not there or empty.
pub(super) fn version_of(path: &Path) -> Result<i64, StoreError> {
    let not_ours = |found: String| StoreError::NotOurs { path: path.to_owned(), found };
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
        Ok(_) => return Err(not_ours("its first bytes are not those of SQLite".into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Err(not_ours("it is too short for SQLite".into()));
        }
        Err(source) => {
            return Err(StoreError::Unreachable { doing: OPENING, path: path.to_owned(), source: Box::new(source) });
        }
    }
    let state = open_read_only(path).and_then(|connection| schema::DAEMON.inspect(&connection));
    match state.map_err(|error| opening_failed(error, path))? {
        FileState::Ours(version) => Ok(version),
        FileState::Newer(found) => {
            let written_by = written_by(path).unwrap_or_else(|| "of a newer version".into());
            Err(StoreError::Newer { path: path.to_owned(), found, known: schema::DAEMON.version(), written_by })
        }
        FileState::Foreign { application_id: 0, tables } => {
            Err(not_ours(format!("an SQLite database of another program, with {tables} tables and indexes")))
        }
        FileState::Foreign { application_id, .. } => {
            Err(not_ours(format!("an SQLite database of another program, application id {application_id:#x}")))
        }
    }
}

/// Which program wrote the file, where it can be told: a newer schema may keep that elsewhere.
fn written_by(path: &Path) -> Option<String> {
    let connection = open_read_only(path).ok()?;
    let text: String = connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).ok()?;
    Some(text.chars().filter(|c| c.is_ascii_graphic()).take(32).collect())
}

/// Refuses what is not a database of the daemon of the present schema.
pub(super) fn refuse_unless_current(path: &Path) -> Result<(), StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    refuse_older(path, version_of(path)?)
}

fn refuse_older(path: &Path, found: i64) -> Result<(), StoreError> {
    let known = schema::DAEMON.version();
    if found < known { Err(StoreError::Older { path: path.to_owned(), found, known }) } else { Ok(()) }
}

/// The connection that writes: every setting, with those read back on which a promise rests.
fn set_up_writer(path: &Path, create: bool) -> Result<Connection, StoreError> {
    let set_up = || -> Result<Connection, StoreFault> {
        let connection = open_writer(path, create)?;
        DAEMON_WRITER.apply(&connection)?;
        let journal: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        check_pragma(path, "journal_mode", "wal", &journal)?;
        // FULL: what was committed is there after a power cut, above all the mark that something was delivered.
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
    Err(StoreError::Pragma { path: path.to_owned(), pragma, wanted: wanted.to_owned(), got: got.to_owned() })
}

/// Has the schedules of an older database packed, in a file of their own that takes its place.
fn pack_schedules(path: &Path, from: i64, opening: &Opening, progress: Progress<'_>) -> Result<(), StoreError> {
    let mut connection = set_up_writer(path, false)?;
    let before = rebuild::PACKED_SINCE - 1;
    schema::DAEMON.migrate_until(&mut connection, from, before).map_err(|failed| migration_failed(failed, path))?;
    if !rebuild::is_needed(&connection).map_err(|error| opening_failed(error, path))? {
        return Ok(());
    }
    // The last connection that closes moves the WAL into the file: from here on it is all there is.
    connection.close().map_err(|(_, error)| opening_failed(error, path))?;
    tracing::info!(database = %path.display(), "packing the schedules of the database into a new file, once; this takes a while");
    let kept = rebuild::rebuild(path, opening.now, progress)?;
    tracing::info!(kept = %kept.display(), "the schedules are packed; the file as it was is kept, remove it when you like");
    Ok(())
}

fn migrate(connection: &mut Connection, path: &Path, from: i64) -> Result<(), StoreError> {
    schema::DAEMON.migrate(connection, from).map_err(|failed| migration_failed(failed, path))
}

fn migration_failed(MigrationFailed { to, source }: MigrationFailed, path: &Path) -> StoreError {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => StoreFault::from(source).during("bring the schema up to date", path),
        _ => StoreError::Migration { path: path.to_owned(), to, source: Box::new(source) },
    }
}

/// Leaves word of which program wrote last, for the message of an older one; only where that differs.
fn sign(connection: &mut Connection, opening: &Opening) -> Result<(), StoreFault> {
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
