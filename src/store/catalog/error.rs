//! What the catalog could not do.

use std::{io, path::PathBuf};

/// What the catalog could not do.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("cannot open the data service's database {}", path.display())]
    Open { path: PathBuf, source: rusqlite::Error },
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
    Sql { doing: &'static str, source: rusqlite::Error },
    #[error("the stored {what} is damaged")]
    Damaged { what: String, source: serde_json::Error },
    #[error("there is already a key named \"{0}\": choose another name, or revoke that one first")]
    NameTaken(String),
}

/// Turns an SQL error into ours, saying what was attempted.
pub(super) fn doing(doing: &'static str) -> impl FnOnce(rusqlite::Error) -> CatalogError {
    move |source| CatalogError::Sql { doing, source }
}
