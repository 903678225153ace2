//! What the service could not do for whoever runs it.

use std::{io, net::SocketAddr};

use crate::{EditError, ImportError};
use store::{StoreError, catalog::CatalogError, facts::FactsError};

/// What the service could not do for whoever runs it.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The daemon's database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Data that cannot be imported.
    #[error(transparent)]
    ImportRun(#[from] ImportError),
    /// A change that makes no sense for the data.
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("cannot write {}", path.display())]
    Write {
        /// Which one.
        path: std::path::PathBuf,
        source: io::Error,
    },
    #[error("{} is not empty: name a folder that is not there yet", path.display())]
    NotEmpty {
        /// Which one.
        path: std::path::PathBuf,
    },
    /// A mirror has no data of its own.
    #[error("a mirror shows what its daemon reads: its data cannot be changed here")]
    Mirror,
    /// A mirror that was given no database of keys.
    #[error("this mirror has no database of keys")]
    Keyless,
    #[error("cannot make a key: the system gave no random bytes")]
    Randomness,
    #[error("\"{0}\" is no name for a key: use 1 to 64 letters, digits, dots, dashes, underscores")]
    KeyName(String),
    #[error("cannot serve by TLS")]
    Tls(#[from] crate::TlsError),
    #[error("cannot listen on {address}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        source: io::Error,
    },
    #[error("the data service stopped serving")]
    Serve(#[source] io::Error),
}

impl From<FactsError> for ServiceError {
    fn from(error: FactsError) -> Self {
        match error {
            FactsError::Catalog(error) => error.into(),
            FactsError::Store(error) => error.into(),
        }
    }
}
