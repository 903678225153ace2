//! What the catalog could not do.

use std::{io, path::PathBuf};

use crate::StoreError;
use crate::sql::SqlError;

/// What an engine said.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What the catalog could not do.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("cannot open the data service's database {}", path.display())]
    Open { path: PathBuf, source: Failed },
    #[error("{} is not a database of the data service: use another file, or `cliffwatch import` into a new one", path.display())]
    Foreign { path: PathBuf },
    #[error("{} has schema {found}, this program knows {known}: use the newer program", path.display())]
    Newer {
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    #[error("cannot bring {} to disk", path.display())]
    Sync { path: PathBuf, source: io::Error },
    #[error("cannot {doing} in the data service's database")]
    Sql { doing: &'static str, source: Failed },
    #[error("cannot {doing}: another process is writing to the data service's database and does not end")]
    Busy { doing: &'static str, source: Failed },
    #[error("cannot {doing}: the server of the data service's database cannot be reached; it is tried again")]
    ServerLost { doing: &'static str, source: Failed },
    /// The database is on a server, which cannot be used so.
    #[error(transparent)]
    Server(#[from] StoreError),
    #[error("the stored {what} is damaged")]
    Damaged { what: String, source: serde_json::Error },
    #[error("there is already a key named \"{0}\": choose another name, or revoke that one first")]
    NameTaken(String),
}

impl CatalogError {
    /// The server cannot be reached: it goes on by itself when it can.
    pub fn is_lost(&self) -> bool {
        match self {
            CatalogError::ServerLost { .. } => true,
            CatalogError::Server(error) => error.is_lost(),
            _ => false,
        }
    }

    /// Somebody else writes: another attempt may well succeed.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, CatalogError::Busy { .. })
    }
}

/// Turns an SQL error into ours, saying what was attempted.
pub(super) fn doing<E: Into<SqlError>>(doing: &'static str) -> impl FnOnce(E) -> CatalogError {
    move |source| match source.into() {
        SqlError::Postgres(fault) if fault.is_lost() => CatalogError::ServerLost { doing, source: Box::new(fault) },
        SqlError::Postgres(fault) => CatalogError::Sql { doing, source: Box::new(fault) },
        SqlError::Sqlite(source) if source.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            CatalogError::Busy { doing, source: Box::new(source) }
        }
        SqlError::Sqlite(source) => CatalogError::Sql { doing, source: Box::new(source) },
    }
}
