//! The database and the rule files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Secret, SecretText, Span};

/// `[store]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSettings {
    /// The SQLite file; means nothing where there is a `url`.
    pub path: PathBuf,
    /// A database on a PostgreSQL server in its place: `postgres://user:password@host:5432/database`.
    pub url: Option<SecretText>,
    /// File with that address.
    pub url_file: Option<PathBuf>,
    /// Certificates by which the server is known, in the place of the system's (PEM).
    pub tls_ca_file: Option<PathBuf>,
    /// Complete answers without a record before it counts as removed.
    pub removal_confirmations: u32,
    /// Relative difference below which two amounts are equal.
    pub tolerance: f64,
    /// How long changes, old versions, resolved alerts and delivered messages are kept.
    pub retention: Span,
    /// How long each poll stays in the log.
    pub poll_log_retention: Span,
}

impl StoreSettings {
    /// The address of the server; a systemd credential `store-url` serves as well.
    pub fn url(&self) -> Secret {
        Secret {
            key: "store.url".into(),
            inline: self.url.clone(),
            file: self.url_file.clone(),
            credentials: vec!["store-url".into(), "store_url".into()],
        }
    }
}

/// `[rules]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RulesSettings {
    /// Globs, relative to the config file.
    pub paths: Vec<String>,
}
