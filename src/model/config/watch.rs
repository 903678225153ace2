//! What is watched, when it is asked for, and what that may cost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Percent, Span};

/// `[watch]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WatchSettings {
    /// Slugs or globs; `*` needs the token list.
    pub tokens: Vec<String>,
    /// Named sets of slugs or globs.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<String>>,
}

/// `[schedule]`: six-field cron patterns in `timezone`, or `off`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSettings {
    /// IANA zone.
    pub timezone: String,
    pub token_list: String,
    pub upcoming: String,
    pub unlock_events: String,
    pub burn: String,
    pub buyback: String,
    pub allocations: String,
    pub daily_emission: String,
    pub weekly_emission: String,
    pub investors: String,
    /// When time-relative rules are evaluated.
    pub evaluate: String,
}

/// `[budget]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSettings {
    /// Credits that this program may spend in the API's period; none: what the API reports.
    #[serde(default)]
    pub monthly_credits: Option<u64>,
    /// Share kept for near events and proof.
    pub reserve: Percent,
    /// An event this near is read first, from the reserve too.
    pub near: Span,
}
