//! The database and the rule files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Span;

/// `[store]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSettings {
    /// The SQLite file.
    pub path: PathBuf,
    /// Complete answers without a record before it counts as removed.
    pub removal_confirmations: u32,
    /// Relative difference below which two amounts are equal.
    pub tolerance: f64,
    /// How long changes, old versions, resolved alerts and delivered messages are kept.
    pub retention: Span,
    /// How long each poll stays in the log.
    pub poll_log_retention: Span,
}

/// `[rules]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RulesSettings {
    /// Globs, relative to the config file.
    pub paths: Vec<String>,
}
