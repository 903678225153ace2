//! Where the config, or a command line, says that the database is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::config::{Config, Secret, SecretError, StoreSettings};
use store::{Place, PlaceError, PostgresPlace};

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum PlaceProblem {
    #[error("the address of the database cannot be read")]
    Unreadable(#[from] SecretError),
    #[error("the `url` of [store] cannot be used")]
    Unfit(#[from] PlaceError),
    #[error("the `keys_url` of [mirror] cannot be used")]
    UnfitKeys(#[source] PlaceError),
    #[error("the address in {} cannot be used", path.display())]
    UnfitFile { path: PathBuf, source: PlaceError },
    #[error("the address of the database cannot be used")]
    UnfitText(#[source] PlaceError),
}

/// The file of the config; or the database on a server, where an address is given inline, in a file, or as a systemd credential.
/// Fails where the address cannot be read or is none. Reads files.
pub fn place_of(store: &StoreSettings) -> Result<Place, PlaceProblem> {
    match store.url().resolve()? {
        Some(url) => Ok(Place::Server(Arc::new(PostgresPlace::from_url(url.expose(), store.tls_ca_file.as_deref())?))),
        None => Ok(Place::File(store.path.clone())),
    }
}

/// The database of keys for the mirror of the config, if it has one: on a server, else a file. Fails and reads as [`place_of`] does.
pub fn keys_of(config: &Config) -> Result<Option<Place>, PlaceProblem> {
    let Some(url) = config.mirror.keys_url().resolve()? else { return Ok(config.mirror.keys.clone().map(Place::File)) };
    let place = PostgresPlace::from_url(url.expose(), config.store.tls_ca_file.as_deref()).map_err(PlaceProblem::UnfitKeys)?;
    Ok(Some(Place::Server(Arc::new(place))))
}

/// The place that a text names on a command line: `postgres://…` an address, `@FILE` a file with an address, all else a file.
/// `tls_ca_file` has the certificates to trust in the place of the system's. Fails where an address cannot be read or is none. Reads
/// files.
pub fn place_named(text: &str, tls_ca_file: Option<&Path>) -> Result<Place, PlaceProblem> {
    if let Some(path) = text.strip_prefix('@').map(PathBuf::from) {
        let secret = Secret { key: "database".into(), inline: None, file: Some(path.clone()), credentials: Vec::new() };
        let address = secret.resolve()?;
        let address = address.as_ref().map_or("", |address| address.expose());
        let place = PostgresPlace::from_url(address, tls_ca_file).map_err(|source| PlaceProblem::UnfitFile { path, source })?;
        return Ok(Place::Server(Arc::new(place)));
    }
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let place = PostgresPlace::from_url(text, tls_ca_file).map_err(PlaceProblem::UnfitText)?;
        return Ok(Place::Server(Arc::new(place)));
    }
    Ok(Place::File(text.into()))
}

/// How this process calls itself to others on the same database.
pub fn instance_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}

/// Whether there may be a database to look at: a file that is there, or any server.
pub fn is_there(store: &StoreSettings) -> bool {
    match place_of(store) {
        Ok(Place::File(path)) => path.exists(),
        Ok(Place::Server(_)) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_a_file_or_a_server_and_no_password_is_repeated() {
        assert!(matches!(place_named("some/where.db", None), Ok(Place::File(path)) if path == Path::new("some/where.db")));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("url");
        let named = format!("@{}", file.display());
        assert!(matches!(place_named(&named, None), Err(PlaceProblem::Unreadable(_))));
        for (address, is_good) in [("postgres://me:hunter2@db/watch\n", true), ("mysql://me:hunter2@db/watch", false)] {
            std::fs::write(&file, address).expect("written");
            for text in [&named, address.trim()] {
                match place_named(text, None) {
                    Ok(place) => assert_eq!(matches!(place, Place::Server(_)), is_good, "{}", place.name().display()),
                    Err(problem) => {
                        let text = model::text::error_chain(&problem);
                        assert!(!is_good && !text.contains("hunter2") && text.contains("write it like"), "{text}");
                    }
                }
            }
        }
    }
}
