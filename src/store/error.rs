//! What the store could not do, on what, and what helps.

use std::path::PathBuf;

use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;

use super::sql::{PgFault, SqlError};

/// What an engine said.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What the store could not do. The cause is in the chain of sources.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file is not there, and this way of opening makes none.
    #[error("there is no database {}: start the daemon (or `cliffwatch poll`) once, or correct `path` in [store]", path.display())]
    Missing { path: PathBuf },
    #[error(
        "another cliffwatch{} already uses {}: stop it, or give this one another `path` in [store]",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(),
        path.display()
    )]
    InUse {
        path: PathBuf,
        /// Its process, where the lock file says so.
        pid: Option<u32>,
    },
    #[error("{} is not a Cliffwatch database ({found}); it was left as it is: correct `path` in [store]", path.display())]
    NotOurs {
        path: PathBuf,
        /// What it seems to be.
        found: String,
    },
    #[error(
        "{} has schema {found}, written by cliffwatch {written_by}; this is cliffwatch {}, which knows schemas up to {known}: \
         run that version or a newer one, or restore a backup",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
        /// The program that wrote it, as far as it says.
        written_by: String,
    },
    /// An older program wrote it, and this way of opening changes no schema.
    #[error(
        "{} has schema {found}, this cliffwatch needs {known}: start the daemon (or `cliffwatch poll`) of this version once, it brings the database up to date",
        path.display()
    )]
    Older {
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The schema that this program needs.
        known: i64,
    },
    /// A step of a migration failed; the database is as it was before that step.
    #[error("cannot bring {} to schema {to}; it stays at the schema before", path.display())]
    Migration {
        path: PathBuf,
        /// The schema that was to be reached.
        to: i64,
        source: Failed,
    },
    /// SQLite did not take a setting that a promise rests on.
    #[error(
        "cannot bring {} up to date: its schedules are packed into a new file, for which as much room is needed as it takes itself \
         ({} MB; {} MB are free on that disk); it was left as it is: free some space and start again", path.display(),
        needed.div_ceil(1_000_000), free / 1_000_000
    )]
    NoRoom {
        path: PathBuf,
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
    },
    #[error("cannot pack the schedules of {} into a new file; it was left as it is", path.display())]
    RebuildFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot open {}: SQLite answers {got:?} to `PRAGMA {pragma}`, {wanted:?} is needed (is the file on a network share?)", path.display())]
    Pragma {
        path: PathBuf,
        pragma: &'static str,
        wanted: String,
        /// What it is.
        got: String,
    },
    #[error(
        "cannot {doing}: the database {} is damaged ({detail}): stop the daemon, and put a copy made by `cliffwatch backup` in its place with `cliffwatch restore`; the damaged file is kept",
        path.display()
    )]
    Damaged {
        doing: &'static str,
        path: PathBuf,
        detail: String,
        /// Why, where SQLite or a reader said so.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    #[error("cannot {doing}: the disk of {} is full; nothing of it was written: free some space, it goes on by itself", path.display())]
    Full { doing: &'static str, path: PathBuf, source: Failed },
    #[error("cannot {doing}: {} may not be written: check the owner and the rights of the file and of its directory", path.display())]
    ReadOnly { doing: &'static str, path: PathBuf, source: Failed },
    #[error("cannot {doing}: the file {} cannot be reached: check that its directory is there and the disk is sound", path.display())]
    Unreachable { doing: &'static str, path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot {doing}: another process is writing to {} and does not end: try again", path.display())]
    Busy { doing: &'static str, path: PathBuf, source: Failed },
    #[error("cannot {doing}: the server of {} cannot be reached; it is tried again", path.display())]
    ServerLost { doing: &'static str, path: PathBuf, source: Failed },
    /// No encrypted connection comes about; the source says what helps.
    #[error("cannot {doing}: no encrypted connection to {} comes about", path.display())]
    Untrusted { doing: &'static str, path: PathBuf, source: Failed },
    #[error("the server of {} is PostgreSQL {found}; {needed} or newer is needed", path.display())]
    ServerTooOld {
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The oldest that will do.
        needed: u32,
    },
    #[error(
        "cannot {doing}: the role may not do that in {}: it must own our tables, or `GRANT USAGE, CREATE ON SCHEMA` and all rights on them to it",
        path.display()
    )]
    NoRight { doing: &'static str, path: PathBuf, source: Failed },
    #[error("cannot {doing}: {} is a replica, which cannot be written to: name the primary in `url` of [store]", path.display())]
    Replica { doing: &'static str, path: PathBuf, source: Failed },
    /// Only the active instance may do that.
    #[error("cannot {doing}: this instance is not the active one of {}", path.display())]
    NotActive { doing: &'static str, path: PathBuf },
    #[error("cannot {doing} in the database {}", path.display())]
    Sqlite { doing: &'static str, path: PathBuf, source: Failed },
    #[error("cannot {doing}: {what} cannot be written as JSON")]
    Unwritable { doing: &'static str, what: &'static str, source: serde_json::Error },
    #[error("cannot write a backup to {}: {why}", path.display())]
    BackupRefused {
        /// Where the copy was to go.
        path: PathBuf,
        why: &'static str,
    },
    #[error("cannot put the backup in place at {}", path.display())]
    BackupFile {
        /// Where the copy was to go.
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} cannot be restored: {why}", path.display())]
    RestoreRefused {
        /// The backup.
        path: PathBuf,
        why: &'static str,
    },
    #[error("cannot put a backup in the place of {}", path.display())]
    RestoreFile {
        /// What could not be read or written.
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "a restore of {} was cut off: run `cliffwatch restore` again with the backup, or with {}, which is a whole copy of it",
        path.display(), marker.display()
    )]
    RestoreUnfinished {
        /// The database.
        path: PathBuf,
        /// What the restore left.
        marker: PathBuf,
    },
    /// Another instance has the lease of a database on a server.
    #[error(
        "{} is in use by another cliffwatch ({holder}): stop all that work on it; one that died holds it for {} seconds",
        path.display(), model::lease::TERM.as_secs()
    )]
    Held {
        path: PathBuf,
        /// As it calls itself.
        holder: String,
    },
    #[error("{} is not empty, {table} has {rows} rows: name a new file, or an empty database or schema", path.display())]
    NotEmpty {
        path: PathBuf,
        /// A table with rows.
        table: String,
        /// How many.
        rows: u64,
    },
    #[error("cannot copy the table {table}; the target is as it was")]
    CopyFailed { table: String, source: Box<StoreError> },
    /// What was copied is not what was there.
    #[error("the table {table} did not come out as it went in ({from} in the source, {to} in the copy); the target is as it was")]
    CopyDiffers { table: String, from: String, to: String },
    /// A fault of this program; the transaction was undone and the store goes on.
    #[error("cannot {doing}: a fault in this program ({message}); nothing of it was written")]
    Panicked {
        doing: &'static str,
        /// Its last words.
        message: String,
    },
    #[error("cannot {doing}: the database was opened for reading only")]
    OpenedForReading { doing: &'static str },
    #[error("cannot {doing}: the store is closed")]
    Closed { doing: &'static str },
}

impl StoreError {
    /// What is stored is damaged: only a backup helps.
    pub fn is_damaged(&self) -> bool {
        matches!(self, StoreError::Damaged { .. })
    }

    /// No space is left: it goes on by itself when there is.
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Full { .. })
    }

    /// Another instance is the active one.
    pub fn is_not_active(&self) -> bool {
        matches!(self, StoreError::NotActive { .. })
    }

    /// The server cannot be reached: it goes on by itself when it can.
    pub fn is_lost(&self) -> bool {
        matches!(self, StoreError::ServerLost { .. })
    }
}

/// What went wrong inside an operation, before it is known which one and in which file.
#[derive(Debug)]
pub(super) enum StoreFault {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// The server refused, or could not be reached.
    Postgres(PgFault),
    /// A value of ours cannot be written.
    Unwritable { what: &'static str, source: serde_json::Error },
    /// A row holds what this program never writes.
    BadRow { what: String, source: Option<serde_json::Error> },
    /// An error that says everything already.
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
    /// The error, once it is known what was attempted on which file.
    pub(super) fn during(self, doing: &'static str, path: &std::path::Path) -> StoreError {
        let path = path.to_owned();
        match self {
            StoreFault::Final(error) => *error,
            StoreFault::Unwritable { what, source } => StoreError::Unwritable { doing, what, source },
            StoreFault::BadRow { what, source } => {
                let source = source.map(|source| Box::new(source) as Box<dyn std::error::Error + Send + Sync>);
                StoreError::Damaged { doing, path, detail: what, source }
            }
            StoreFault::Postgres(fault) => of_server(fault, doing, path),
            StoreFault::Sqlite(source) => match source.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    let detail = "SQLite finds its pages in disorder".to_owned();
                    StoreError::Damaged { doing, path, detail, source: Some(Box::new(source)) }
                }
                Some(ErrorCode::DiskFull) => StoreError::Full { doing, path, source: Box::new(source) },
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                    StoreError::ReadOnly { doing, path, source: Box::new(source) }
                }
                Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
                    StoreError::Unreachable { doing, path, source: Box::new(source) }
                }
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                    StoreError::Busy { doing, path, source: Box::new(source) }
                }
                _ => match source {
                    // A column of another type than this program writes.
                    rusqlite::Error::FromSqlConversionFailure(..)
                    | rusqlite::Error::InvalidColumnType(..)
                    | rusqlite::Error::IntegralValueOutOfRange(..) => {
                        let detail = "a row holds a value of the wrong kind".to_owned();
                        StoreError::Damaged { doing, path, detail, source: Some(Box::new(source)) }
                    }
                    source => StoreError::Sqlite { doing, path, source: Box::new(source) },
                },
            },
        }
    }
}

/// What a server said, as an error with what helps.
fn of_server(fault: PgFault, doing: &'static str, path: PathBuf) -> StoreError {
    if matches!(fault, PgFault::NotActive) {
        return StoreError::NotActive { doing, path };
    }
    let state = fault.state().cloned();
    let (is_lost, is_untrusted) = (fault.is_lost(), matches!(fault, PgFault::Tls(_)));
    let source: Failed = Box::new(fault);
    match state {
        _ if is_lost => StoreError::ServerLost { doing, path, source },
        _ if is_untrusted => StoreError::Untrusted { doing, path, source },
        Some(SqlState::DISK_FULL) => StoreError::Full { doing, path, source },
        Some(SqlState::INSUFFICIENT_PRIVILEGE) => StoreError::NoRight { doing, path, source },
        Some(SqlState::READ_ONLY_SQL_TRANSACTION) => StoreError::Replica { doing, path, source },
        Some(SqlState::LOCK_NOT_AVAILABLE | SqlState::QUERY_CANCELED | SqlState::T_R_DEADLOCK_DETECTED) => {
            StoreError::Busy { doing, path, source }
        }
        Some(SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED) => {
            let detail = "the server finds its pages in disorder".to_owned();
            StoreError::Damaged { doing, path, detail, source: Some(source) }
        }
        _ => StoreError::Sqlite { doing, path, source },
    }
}
