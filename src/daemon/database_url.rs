//! Finds the database that the config or a command line names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::config::{Config, Secret, SecretError, StoreSettings};
use store::{DatabaseLocation, PostgresUrl, PostgresUrlError};

/// An error in the location of a database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUrlError {
    #[error("cannot read the database URL")]
    Unreadable(#[from] SecretError),
    #[error("the `url` of [store] is not valid")]
    Unfit(#[from] PostgresUrlError),
    #[error("the `keys_url` of [mirror] is not valid")]
    UnfitKeys(#[source] PostgresUrlError),
    #[error("the database URL in {} is not valid", path.display())]
    UnfitFile { path: PathBuf, source: PostgresUrlError },
    #[error("the database URL is not valid")]
    UnfitText(#[source] PostgresUrlError),
}

/// Returns the database of the config: a server if a URL is set, in a file, or as a systemd credential; else the database file.
pub fn database_of(store: &StoreSettings) -> Result<DatabaseLocation, DatabaseUrlError> {
    match store.url().resolve()? {
        Some(url) => Ok(DatabaseLocation::Server(Arc::new(PostgresUrl::from_url(url.expose(), store.tls_ca_file.as_deref())?))),
        None => Ok(DatabaseLocation::File(store.path.clone())),
    }
}

/// Returns the database with the API keys of the mirror. `None` if the config has none.
pub fn key_database_of(config: &Config) -> Result<Option<DatabaseLocation>, DatabaseUrlError> {
    let Some(url) = config.mirror.keys_url().resolve()? else {
        return Ok(config.mirror.keys.clone().map(DatabaseLocation::File));
    };
    let location =
        PostgresUrl::from_url(url.expose(), config.store.tls_ca_file.as_deref()).map_err(DatabaseUrlError::UnfitKeys)?;
    Ok(Some(DatabaseLocation::Server(Arc::new(location))))
}

/// Parses a database on a command line: `postgres://…` is a URL, `@FILE` is a file that contains a URL, anything else is a database
/// file. `tls_ca_file` replaces the system's trusted certificates.
pub fn parse_database(text: &str, tls_ca_file: Option<&Path>) -> Result<DatabaseLocation, DatabaseUrlError> {
    if let Some(path) = text.strip_prefix('@').map(PathBuf::from) {
        let secret = Secret { key: "database".into(), inline: None, file: Some(path.clone()), credentials: Vec::new() };
        let url = secret.resolve()?;
        let url = url.as_ref().map_or("", |url| url.expose());
        let location = PostgresUrl::from_url(url, tls_ca_file).map_err(|source| DatabaseUrlError::UnfitFile { path, source })?;
        return Ok(DatabaseLocation::Server(Arc::new(location)));
    }
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        let location = PostgresUrl::from_url(text, tls_ca_file).map_err(DatabaseUrlError::UnfitText)?;
        return Ok(DatabaseLocation::Server(Arc::new(location)));
    }
    Ok(DatabaseLocation::File(text.into()))
}

/// The name of this process for other instances on the same database: host name and process id.
pub fn instance_name() -> String {
    // Not from /proc, where the systemd unit hides it.
    let system = rustix::system::uname();
    format!("{}:{}", system.nodename().to_string_lossy(), std::process::id())
}

/// Returns whether the database may exist: its file exists, or it is on a server.
pub fn may_exist(store: &StoreSettings) -> bool {
    match database_of(store) {
        Ok(DatabaseLocation::File(path)) => path.exists(),
        Ok(DatabaseLocation::Server(_)) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_file_or_url_and_never_shows_password() {
        assert!(
            matches!(parse_database("some/where.db", None), Ok(DatabaseLocation::File(path)) if path == Path::new("some/where.db"))
        );
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("url");
        let named = format!("@{}", file.display());
        assert!(matches!(parse_database(&named, None), Err(DatabaseUrlError::Unreadable(_))));
        for (url, is_valid) in [("postgres://me:hunter2@db/watch\n", true), ("mysql://me:hunter2@db/watch", false)] {
            std::fs::write(&file, url).expect("written");
            for text in [&named, url.trim()] {
                match parse_database(text, None) {
                    Ok(location) => {
                        assert_eq!(matches!(location, DatabaseLocation::Server(_)), is_valid, "{}", location.name().display())
                    }
                    Err(problem) => {
                        let text = model::text::error_chain(&problem);
                        assert!(!is_valid && !text.contains("hunter2") && text.contains("example: postgres://"), "{text}");
                    }
                }
            }
        }
    }
}
