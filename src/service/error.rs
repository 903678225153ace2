//! Errors for the operator of the service.

use std::{io, net::SocketAddr};

use crate::{EditError, ImportError};
use store::{StoreError, catalog::CatalogError, facts::FactsError};

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An error of the daemon's database.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    ImportRun(#[from] ImportError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("cannot write {}", path.display())]
    Write { path: std::path::PathBuf, source: io::Error },
    #[error("{} is not empty: choose a folder that does not exist yet", path.display())]
    NotEmpty { path: std::path::PathBuf },
    #[error("the data of a mirror cannot be changed: it comes from its daemon")]
    Mirror,
    #[error("this mirror has no key database")]
    Keyless,
    #[error("cannot create a key: the system provided no random bytes")]
    Randomness,
    #[error("\"{0}\" is not a valid key name: use 1 to 64 letters, digits, dots, dashes, or underscores")]
    KeyName(String),
    #[error("cannot set up TLS")]
    Tls(#[from] crate::TlsError),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
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
