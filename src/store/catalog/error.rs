use std::{
    io,
    path::{Path, PathBuf},
};

use crate::sql::SqlError;
use crate::{ErrorKind, StoreError};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// An error of the data service's database.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("cannot open the data service's database {}", path.display())]
    Open { path: PathBuf, source: Failed },
    #[error("{} is not a database of the data service: use another file, or `cliffwatch import` into a new one", path.display())]
    Foreign { path: PathBuf },
    #[error("{} has schema {found}, this version supports up to {known}: use a newer version of the service", path.display())]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("cannot sync {} to disk", path.display())]
    Sync { path: PathBuf, source: io::Error },
    #[error("cannot count credits in {}", path.display())]
    Usage { path: PathBuf, source: io::Error },
    #[error("cannot {doing} in the data service's database")]
    Sql { doing: &'static str, source: Failed },
    #[error("cannot {doing}: another process keeps the data service's database locked; try again")]
    Busy { doing: &'static str, source: Failed },
    #[error("cannot {doing}: the server of the data service's database cannot be reached; will retry")]
    ServerLost { doing: &'static str, source: Failed },
    /// An error of a database on a server.
    #[error(transparent)]
    Server(#[from] StoreError),
    #[error("the stored {what} is damaged")]
    Damaged { what: String, source: serde_json::Error },
    #[error("there is already a key named \"{0}\": choose another name, or revoke that one first")]
    NameTaken(String),
}

impl CatalogError {
    /// Returns whether the server cannot be reached. Callers retry.
    pub fn is_lost(&self) -> bool {
        match self {
            CatalogError::ServerLost { .. } => true,
            CatalogError::Server(error) => error.kind() == ErrorKind::ServerLost,
            _ => false,
        }
    }
}

/// Returns a function that adds the path of the usage file to an error.
pub(super) fn counting(path: &Path) -> impl FnOnce(io::Error) -> CatalogError {
    move |source| match source.kind() {
        io::ErrorKind::ResourceBusy => CatalogError::Busy { doing: "count a credit", source: Box::new(source) },
        _ => CatalogError::Usage { path: path.to_owned(), source },
    }
}

/// Returns a function that adds the attempted operation to an SQL error.
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
