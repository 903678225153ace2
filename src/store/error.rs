//! The error type of the store.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{error, fmt, fs, io};

use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;

use super::owner::no_permission;
use super::sql::{PgFault, SqlError};
use model::text::harmless;

type Cause = Box<dyn error::Error + Send + Sync>;

/// An error of the store. Its message contains the reason and a remedy; the chain of sources contains the technical cause.
#[derive(Debug)]
pub struct StoreError {
    doing: &'static str,
    place: PathBuf,
    kind: ErrorKind,
    reason: Cow<'static, str>,
    source: Option<Cause>,
}

/// The kind of a [`StoreError`], for callers that handle some errors differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no database, and this access does not create one.
    Missing,
    /// Another process owns the file or holds the lease.
    InUse,
    /// The file or schema belongs to another application.
    Foreign,
    /// A newer version wrote the database.
    Newer,
    /// An older version wrote the database, and this access does not migrate it.
    Older,
    /// A restore was interrupted and must be run again.
    RestoreUnfinished,
    /// Stored data is damaged. Only a backup helps.
    Damaged,
    /// A row contains a value that this program never writes. All other rows can be used.
    Unreadable,
    /// The disk is full. Writes resume once there is space.
    Full,
    /// The database cannot be written: missing permissions, a replica, or a handle opened for reading.
    ReadOnly,
    /// A file cannot be read or written.
    Io,
    /// Another process holds a lock for too long.
    Busy,
    /// The server cannot be reached. Callers retry.
    ServerLost,
    /// Another instance is the active one.
    NotActive,
    /// The request is not possible, such as a backup onto the database itself.
    Rejected,
    /// The store is closed.
    Closed,
    /// A bug in this program. The transaction was rolled back.
    Panicked,
    Other,
}

const FULL: &str = "the disk is full, and nothing was written; free some space, and writes resume";
const BUSY: &str = "another process keeps the database locked; try again";
const IO: &str = "the file cannot be read or written; check its directory and the disk";

impl StoreError {
    pub(super) fn new(kind: ErrorKind, doing: &'static str, place: &Path, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { doing, place: place.to_owned(), kind, reason: reason.into(), source: None }
    }

    pub(super) fn with_source(self, source: impl Into<Cause>) -> Self {
        Self { source: Some(source.into()), ..self }
    }

    pub(super) fn closed(doing: &'static str) -> Self {
        Self::new(ErrorKind::Closed, doing, Path::new(""), "the store is closed")
    }

    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let reason = match source.kind() {
            io::ErrorKind::PermissionDenied => no_permission(path).into(),
            _ => Cow::from(IO),
        };
        Self::new(ErrorKind::Io, doing, path, reason).with_source(source)
    }

    pub(super) fn damaged(doing: &'static str, place: &Path, detail: &str) -> Self {
        let help = "stop the daemon, and restore a copy made by `cliffwatch backup` with `cliffwatch restore`";
        Self::new(ErrorKind::Damaged, doing, place, format!("the database is damaged ({detail}); {help}"))
    }

    fn unreadable(doing: &'static str, place: &Path, what: &str) -> Self {
        let help = "stop the daemon, and restore a copy made by `cliffwatch backup` with `cliffwatch restore`";
        Self::new(ErrorKind::Unreadable, doing, place, format!("a row of the database is damaged ({what}); {help}"))
    }

    pub(super) fn missing(place: &Path) -> Self {
        let reason = "there is no database; start the daemon (or `cliffwatch poll`) once, or correct [store] in the config";
        Self::new(ErrorKind::Missing, OPENING, place, reason)
    }

    pub(super) fn foreign(place: &Path, found: &str) -> Self {
        let reason = format!("this is not a Cliffwatch database: {found}; correct [store] in the config");
        Self::new(ErrorKind::Foreign, OPENING, place, reason)
    }

    pub(super) fn newer(place: &Path, found: i64, known: i64, written_by: Option<String>) -> Self {
        // Another version may store other text there.
        let version = written_by.map(|text| text.chars().filter(char::is_ascii_graphic).take(32).collect());
        let version: String = version.unwrap_or_else(|| "unknown".to_owned());
        let reason = format!(
            "a newer version ({version}) wrote it with schema {found}, but this is cliffwatch {}, which supports schemas up to {known}; \
            run that version or a newer one, or restore a backup",
            env!("CARGO_PKG_VERSION")
        );
        Self::new(ErrorKind::Newer, OPENING, place, reason)
    }

    pub(super) fn older(place: &Path, found: i64, known: i64) -> Self {
        let help = "start the daemon (or `cliffwatch poll`) of this version once to migrate it";
        Self::new(ErrorKind::Older, OPENING, place, format!("it has schema {found}, but this version needs {known}; {help}"))
    }

    pub(super) fn migration(place: &Path, to: i64, source: impl Into<Cause>) -> Self {
        let reason = format!("the migration to schema {to} failed and was rolled back");
        Self::new(ErrorKind::Other, "migrate the database", place, reason).with_source(source)
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the path of the file, or the database URL without its password. Empty if unknown.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

/// The operation of errors while opening a database.
pub(super) const OPENING: &str = "open the database";

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.doing)?;
        if !self.place.as_os_str().is_empty() {
            write!(f, " ({})", harmless(&self.place.display().to_string()))?;
        }
        if self.reason.is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

impl error::Error for StoreError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// An error inside an operation, before the operation and the database are added.
#[derive(Debug)]
pub(super) enum StoreFault {
    Sqlite(rusqlite::Error),
    Postgres(PgFault),
    /// A value cannot be serialized.
    Unwritable {
        what: &'static str,
        source: serde_json::Error,
    },
    /// A row contains a value that this program never writes.
    BadRow {
        what: String,
        source: Option<serde_json::Error>,
    },
    /// An error that needs no more context.
    Final(Box<StoreError>),
}

impl From<rusqlite::Error> for StoreFault {
    fn from(source: rusqlite::Error) -> Self {
        StoreFault::Sqlite(source)
    }
}

impl From<SqlError> for StoreFault {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Sqlite(error) => StoreFault::Sqlite(error),
            SqlError::Postgres(fault) => StoreFault::Postgres(fault),
        }
    }
}

impl From<StoreError> for StoreFault {
    fn from(error: StoreError) -> Self {
        StoreFault::Final(Box::new(error))
    }
}

impl StoreFault {
    /// Returns a description of the damage if only this row is damaged, so that other rows can be read.
    pub(super) fn unreadable(&self) -> Option<String> {
        match self {
            StoreFault::BadRow { what, source: Some(source) } => Some(format!("{what}: {source}")),
            StoreFault::BadRow { what, source: None } => Some(what.clone()),
            StoreFault::Sqlite(error) if is_wrong_type(error) => Some(error.to_string()),
            _ => None,
        }
    }

    /// Adds the attempted operation and the database.
    pub(super) fn during(self, doing: &'static str, place: &Path) -> StoreError {
        match self {
            StoreFault::Final(error) => *error,
            StoreFault::Unwritable { what, source } => {
                StoreError::new(ErrorKind::Other, doing, place, format!("{what} cannot be written as JSON")).with_source(source)
            }
            StoreFault::BadRow { what, source } => {
                StoreError { source: source.map(Into::into), ..StoreError::unreadable(doing, place, &what) }
            }
            StoreFault::Postgres(fault) => postgres_error(fault, doing, place),
            StoreFault::Sqlite(source) => sqlite_error(source, doing, place),
        }
    }
}

fn sqlite_error(source: rusqlite::Error, doing: &'static str, place: &Path) -> StoreError {
    let error = |kind, reason: &'static str| StoreError::new(kind, doing, place, reason);
    let error = match (source.sqlite_error_code(), &source) {
        (Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase), _) => {
            StoreError::damaged(doing, place, "SQLite found a damaged page")
        }
        (Some(ErrorCode::DiskFull), _) => error(ErrorKind::Full, FULL),
        (Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied), _) => error(
            ErrorKind::ReadOnly,
            "no permission to write; check the owner and the permissions of the file and its directory",
        ),
        (Some(ErrorCode::CannotOpen), _) if is_forbidden(place) => {
            StoreError::new(ErrorKind::Io, doing, place, no_permission(place))
        }
        (Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen), _) => error(ErrorKind::Io, IO),
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => error(ErrorKind::Busy, BUSY),
        _ if is_wrong_type(&source) => StoreError::unreadable(doing, place, "it contains a value of the wrong type"),
        _ => error(ErrorKind::Other, ""),
    };
    error.with_source(source)
}

/// Returns whether a column contains a value of another type than this program writes.
fn is_wrong_type(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    matches!(error, FromSqlConversionFailure(..) | InvalidColumnType(..) | IntegralValueOutOfRange(..))
}

/// Returns whether the user of this process has no permission to read the file.
fn is_forbidden(path: &Path) -> bool {
    fs::File::open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn postgres_error(fault: PgFault, doing: &'static str, place: &Path) -> StoreError {
    if let PgFault::NewerSchema { found, known, written_by } = fault {
        return StoreError::newer(place, found, known, Some(written_by));
    }
    let error = |kind, reason: &'static str| StoreError::new(kind, doing, place, reason);
    let error = match fault.state() {
        _ if matches!(fault, PgFault::NotActive) => return error(ErrorKind::NotActive, "this instance is not the active one"),
        _ if fault.is_lost() => error(ErrorKind::ServerLost, "the server cannot be reached; will retry"),
        _ if matches!(fault, PgFault::Tls(_)) => error(ErrorKind::Other, "cannot set up an encrypted connection"),
        Some(&SqlState::DISK_FULL) => error(ErrorKind::Full, FULL),
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => error(
            ErrorKind::ReadOnly,
            "the role lacks privileges; make it the owner of our tables, or grant it all privileges on them and USAGE and CREATE on the schema",
        ),
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => error(
            ErrorKind::ReadOnly,
            "the server accepts no writes: it is a replica, or default_transaction_read_only is on; set `url` in [store] to the primary, or turn that setting off for our role",
        ),
        Some(&(SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED | SqlState::T_R_DEADLOCK_DETECTED)) => {
            error(ErrorKind::Busy, BUSY)
        }
        Some(&(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED)) => {
            StoreError::damaged(doing, place, "the server found a damaged page")
        }
        _ => error(ErrorKind::Other, ""),
    };
    error.with_source(fault)
}
