//! From a path to connections that keep the promises: lock, look at what the file is, settings, migrations.

use std::{
    fs::{self, File, TryLockError},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, config::DbConfig};

use super::{
    Access, Opening,
    error::{Fault, StoreError},
    threads::{beside, transact},
};

/// Marks our files, in the header of each: `clfw` in ASCII.
const APPLICATION_ID: i64 = 0x636c_6677;

/// Steps from an empty file to the present schema, in order. Append only: what was released never changes.
const MIGRATIONS: [&str; 4] = [
    include_str!("../../migrations/0001_start.sql"),
    include_str!("../../migrations/0002_delivery.sql"),
    include_str!("../../migrations/0003_looks.sql"),
    include_str!("../../migrations/0004_opt_out.sql"),
];

/// The schema that this program reads and writes.
pub(super) const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// The first bytes of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// How long a write waits for one of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Page cache of the writer, KiB: one batch of a cycle stays in it, and all of it counts as our memory.
const WRITER_CACHE_KIB: i64 = 4 * 1024;

/// Page cache of each reader, KiB: the system caches the file anyway.
pub(super) const READER_CACHE_KIB: i64 = 1024;

/// Pages in the WAL after which they move into the database: 4 MiB.
const WAL_CHECKPOINT_PAGES: i64 = 1000;

/// What a WAL may keep on disk after a large commit: 64 MiB.
const WAL_KEPT_BYTES: i64 = 64 * 1024 * 1024;

/// Statements kept ready on each connection.
const CACHED_STATEMENTS: usize = 128;

/// Read connections beside a writer, and so reads at once. A store that only reads has one: `PRAGMA data_version` counts for each
/// connection on its own.
const READERS_BESIDE_WRITER: usize = 2;

/// What opening gives.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) writer: Option<Connection>,
    pub(super) lock: Option<File>,
    pub(super) readers: Vec<Connection>,
}

/// Opens the database, and brings it up to date where it is ours alone.
pub(super) fn open(opening: &Opening) -> Result<Opened, StoreError> {
    let path = resolve(&opening.path)?;
    let is_owner = opening.access == Access::Own;
    if !is_owner && !path.exists() {
        return Err(StoreError::Missing { path });
    }
    let lock = if is_owner { Some(take_lock(&path)?) } else { None };
    let before = probe(&path)?;
    let mut writer = None;
    if opening.access == Access::Read {
        refuse_older(&path, before)?;
    } else {
        if !is_owner {
            refuse_older(&path, before)?;
        }
        let mut connection = told(&path, || {
            let connection = Connection::open_with_flags(&path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE, is_owner))?;
            keep_plans(&connection)?;
            Ok(connection)
        })?;
        set_up_writer(&connection, &path)?;
        if is_owner {
            migrate(&mut connection, &path, opening)?;
        }
        writer = Some(connection);
    }
    let readers = if writer.is_some() { READERS_BESIDE_WRITER } else { 1 };
    let readers = (0..readers).map(|_| open_reader(&path)).collect::<Result<_, _>>()?;
    Ok(Opened { path, writer, lock, readers })
}

fn told<T>(path: &Path, run: impl FnOnce() -> Result<T, Fault>) -> Result<T, StoreError> {
    run().map_err(|fault| fault.during("open the store", path))
}

/// One name for one file, however it was written: two owners through two links would not see each other's lock.
fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    let unreachable = |path: &Path, source: std::io::Error| StoreError::Unreachable {
        doing: "open the store",
        path: path.to_owned(),
        source: Box::new(source),
    };
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let (Some(name), parent) = (path.file_name(), path.parent()) else {
                return Err(unreachable(path, error));
            };
            let parent = parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Ok(fs::canonicalize(parent).map_err(|source| unreachable(path, source))?.join(name))
        }
        Err(error) => Err(unreachable(path, error)),
    }
}

/// How often the lock is tried, and the pause between tries: together well below a second.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(30);

/// Takes `<db>.lock` for as long as the file handle lives, and leaves our process id in it for the message to others.
fn take_lock(path: &Path) -> Result<File, StoreError> {
    let lock_path = beside(path, ".lock");
    let failed = |source: std::io::Error| StoreError::Unreachable {
        doing: "take the lock of the database",
        path: lock_path.clone(),
        source: Box::new(source),
    };
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(&lock_path).map_err(failed)?;
    let mut tries_left = LOCK_TRIES;
    loop {
        tries_left -= 1;
        match file.try_lock() {
            Ok(()) => break,
            // One that is just ending lets go in a moment.
            Err(TryLockError::WouldBlock) if tries_left > 0 => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // A process id is short; whatever else is in that file is of no interest.
                let pid = file.take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(StoreError::InUse { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

/// What a file is, found without writing to it: its schema, zero for a file that is not there or empty.
fn probe(path: &Path) -> Result<i64, StoreError> {
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
        Ok(_) => {
            return Err(StoreError::NotOurs { path: path.to_owned(), found: "its first bytes are not those of SQLite".into() });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            return Err(StoreError::NotOurs { path: path.to_owned(), found: "it is too short for SQLite".into() });
        }
        Err(source) => {
            return Err(StoreError::Unreachable { doing: "open the store", path: path.to_owned(), source: Box::new(source) });
        }
    }
    let (application, schema, tables) = told(path, || {
        let connection = open_read_only(path)?;
        let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let schema: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((application, schema, tables))
    })?;
    if application != APPLICATION_ID && (application != 0 || schema != 0 || tables != 0) {
        let found = match application {
            0 => format!("an SQLite database of another program, with {tables} tables and indexes"),
            other => format!("an SQLite database of another program, application id {other:#x}"),
        };
        return Err(StoreError::NotOurs { path: path.to_owned(), found });
    }
    if schema > SCHEMA {
        let written_by = written_by(path).unwrap_or_else(|| "of a newer version".into());
        return Err(StoreError::Newer { path: path.to_owned(), found: schema, known: SCHEMA, written_by });
    }
    Ok(schema)
}

/// Which program wrote the file, where it can be told: a newer schema may keep that elsewhere.
fn written_by(path: &Path) -> Option<String> {
    let connection = open_read_only(path).ok()?;
    let text: String = connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).ok()?;
    Some(text.chars().filter(|c| c.is_ascii_graphic()).take(32).collect())
}

/// Refuses what is not a database of the daemon of the present schema.
pub(super) fn is_ours(path: &Path) -> Result<(), StoreError> {
    if !path.exists() {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    refuse_older(path, probe(path)?)
}

fn refuse_older(path: &Path, found: i64) -> Result<(), StoreError> {
    if found < SCHEMA { Err(StoreError::Older { path: path.to_owned(), found, known: SCHEMA }) } else { Ok(()) }
}

fn flags(access: OpenFlags, create: bool) -> OpenFlags {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create { flags | OpenFlags::SQLITE_OPEN_CREATE } else { flags }
}

/// A connection that cannot write. A closed database in a directory that we may not write has no place for the shared memory of
/// its WAL: as long as no WAL is there, nobody writes, and the file is read as it lies.
pub(super) fn open_read_only(path: &Path) -> Result<Connection, Fault> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY, false))?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        keep_plans(&connection)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    match open() {
        Err(error) if is_place_missing(&error) && !beside(path, "-wal").exists() => Ok(open_as_it_lies(path)?),
        result => Ok(result?),
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
    Connection::open_with_flags(uri, flags(OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI, false))
}

fn is_place_missing(error: &rusqlite::Error) -> bool {
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

fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    told(path, || {
        let connection = open_read_only(path)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        Ok(connection)
    })
}

/// Every setting, with those read back on which a promise rests.
fn set_up_writer(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    told(path, || {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        let journal: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        check_pragma(path, "journal_mode", "wal", &journal)?;
        // FULL: what was committed is there after a power cut, above all the mark that something was delivered.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
        connection.pragma_update(None, "mmap_size", 0)?;
        connection.pragma_update(None, "wal_autocheckpoint", WAL_CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
        for (pragma, wanted) in [("synchronous", 2), ("foreign_keys", 1), ("trusted_schema", 0)] {
            let got: i64 = connection.pragma_query_value(None, pragma, |row| row.get(0))?;
            check_pragma(path, pragma, &wanted.to_string(), &got.to_string())?;
        }
        Ok(())
    })
}

fn check_pragma(path: &Path, pragma: &'static str, wanted: &str, got: &str) -> Result<(), StoreError> {
    if wanted.eq_ignore_ascii_case(got) {
        return Ok(());
    }
    Err(StoreError::Pragma { path: path.to_owned(), pragma, wanted: wanted.to_owned(), got: got.to_owned() })
}

/// Brings the schema up to date: each step is one transaction, its number included.
fn migrate(connection: &mut Connection, path: &Path, opening: &Opening) -> Result<(), StoreError> {
    let failed = |to: i64, fault: Fault| match fault {
        Fault::Sqlite(source) if !matches!(source.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull)) => {
            StoreError::Migration { path: path.to_owned(), to, source }
        }
        other => other.during("bring the schema up to date", path),
    };
    let from: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| Fault::from(error).during("open the store", path))?;
    for (to, step) in (1..).zip(MIGRATIONS).filter(|(to, _)| *to > from) {
        transact(connection, |transaction| {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", to)?;
            Ok(())
        })
        .map_err(|fault| failed(to, fault))?;
    }
    sign(connection, opening).map_err(|fault| fault.during("open the store", path))
}

/// Leaves word of which program wrote last, for the message of an older one; only where that differs.
fn sign(connection: &mut Connection, opening: &Opening) -> Result<(), Fault> {
    let program = env!("CARGO_PKG_VERSION");
    let known: Option<String> =
        connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).optional()?;
    if known.as_deref() == Some(program) {
        return Ok(());
    }
    transact(connection, |transaction| {
        let mut put = transaction.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
        put.execute(("program", program))?;
        put.execute(("program_since", opening.now.to_rfc3339()))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_database_can_be_read_as_it_lies_whatever_its_name() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let path = directory.path().join("a b?c#d%20é.db");
        let opening = Opening { path: path.clone(), access: Access::Own, now: chrono::DateTime::UNIX_EPOCH };
        let opened = open(&opening).expect("opens");
        // The writer goes last, as when the store is closed: only it can move the WAL into the database.
        drop(opened.readers);
        drop(opened.writer);
        let connection = open_as_it_lies(&path).expect("opens");
        let program: String =
            connection.query_row("SELECT value FROM meta WHERE key = 'program'", [], |row| row.get(0)).expect("signed");
        assert_eq!(program, env!("CARGO_PKG_VERSION"));
        assert!(!beside(&path, "-shm").exists(), "nothing is made beside it");
    }

    #[test]
    fn a_statement_is_planned_once_whatever_values_it_is_given() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let opening = Opening { path: directory.path().join("plans.db"), access: Access::Own, now: chrono::DateTime::UNIX_EPOCH };
        let opened = open(&opening).expect("opens");
        for connection in opened.readers.iter().chain(&opened.writer) {
            // There is a partial index for unlocks, so that the value of the resource might decide.
            let sql = "SELECT count(*) FROM record WHERE resource = ?1 AND starts_at > ?2";
            let mut statement = connection.prepare(sql).expect("prepared");
            for (resource, after) in [("unlock", 1), ("burn", 2), ("unlock", 3)] {
                let count: i64 = statement.query_row((resource, after), |row| row.get(0)).expect("read");
                assert_eq!(count, 0);
            }
            assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
        }
    }
}
