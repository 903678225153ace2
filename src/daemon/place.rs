//! Where the config says that the database is.

use std::sync::Arc;

use model::config::{SecretError, StoreSettings};
use store::{Place, PlaceError, PostgresPlace};

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum PlaceProblem {
    #[error("the address of the database cannot be read")]
    Unreadable(#[from] SecretError),
    #[error("the `url` of [store] cannot be used")]
    Unfit(#[from] PlaceError),
}

/// The file of the config; or the database on a server, where an address is given inline, in a file, or as a systemd credential.
/// Fails where the address cannot be read or is none. Reads files.
pub fn place_of(store: &StoreSettings) -> Result<Place, PlaceProblem> {
    match store.url().resolve()? {
        Some(url) => Ok(Place::Server(Arc::new(PostgresPlace::from_url(url.expose(), store.tls_ca_file.as_deref())?))),
        None => Ok(Place::File(store.path.clone())),
    }
}

/// Whether there may be a database to look at: a file that is there, or any server.
pub fn is_there(store: &StoreSettings) -> bool {
    match place_of(store) {
        Ok(Place::File(path)) => path.exists(),
        Ok(Place::Server(_)) | Err(_) => true,
    }
}
