//! How deliveries are tried, and how the log looks.

use serde::{Deserialize, Serialize};

use super::{Percent, Span};

/// `[delivery]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverySettings {
    /// Waits before each attempt; after the last one a delivery is dead.
    pub retry: Vec<Span>,
    /// How far each wait is spread, up and down.
    pub jitter: Percent,
    /// Longest `Retry-After` that is honoured.
    pub max_retry_after: Span,
    /// For one whole attempt.
    pub timeout: Span,
    /// Deliveries under way at once for one receiver.
    pub concurrency: u32,
    /// Messages to one receiver in an hour; above it they become one summary.
    pub max_per_hour: u32,
}

/// `[log]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// `auto` (JSON unless a terminal reads), `human` or `json`.
    pub format: LogFormat,
    /// As `RUST_LOG` has it.
    pub level: String,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human on a terminal and under systemd, else JSON.
    Auto,
    /// For people.
    Human,
    /// One object a line.
    Json,
}
