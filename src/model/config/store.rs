//! The database and the rule files.

use std::path::PathBuf;

use super::keys::{DAY, HOUR, YEAR, settings};
use super::{Secret, SecretText, Span};

settings! {
    /// The database, which holds all state.
    pub struct StoreSettings {
        /// The SQLite file. It is not used if `url` is set.
        path: PathBuf = "cliffwatch.db".into() => Path, restart;
        /// A database on a PostgreSQL server instead: `postgres://user:password@host:5432/database`.
        url: Option<SecretText> => Secret, restart;
        /// A file with `url`.
        url_file: Option<PathBuf> => SecretFile, restart;
        /// A PEM file with the certificates to verify the server with, instead of the system certificates.
        tls_ca_file: Option<PathBuf> => CertificateFile, restart;
        /// The number of complete responses without a record after which the record counts as removed.
        removal_confirmations: u32 = 2 => Count(1, 1000);
        /// The relative difference up to which two amounts are equal. Sources round amounts, some to six digits.
        tolerance: f64 = 1e-5 => Number(0.0, 0.5);
        /// The retention of changes, old versions, events, resolved alerts, and delivered messages.
        retention: Span = Span::from_secs(730 * DAY) => Span(DAY, 100 * YEAR);
        /// The retention of the poll log.
        poll_log_retention: Span = Span::from_secs(90 * DAY) => Span(HOUR, 100 * YEAR);
    }
}

impl StoreSettings {
    /// The URL of the PostgreSQL server.
    pub fn url(&self) -> Secret {
        Secret {
            key: "store.url".into(),
            inline: self.url.clone(),
            file: self.url_file.clone(),
            credentials: vec!["store-url".into(), "store_url".into()],
        }
    }
}

settings! {
    /// The files that rules are read from.
    pub struct RulesSettings {
        /// Globs of the rule files, relative to the config file. An empty list means that there are no rules.
        paths: Vec<String> = vec!["rules/*.toml".into()] => FileGlobs;
    }
}
