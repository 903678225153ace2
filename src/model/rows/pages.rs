//! Queries of pages, and their results.

use serde::Serialize;

use crate::{Alert, SumWindow, Token, Tracked, UpcomingRow};

/// Selects upcoming unlocks: the largest that may happen in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AheadFilter {
    pub window: SumWindow,
    /// Whether to order by share of market cap instead of value.
    pub by_share: bool,
    /// The maximum number of rows.
    pub limit: u32,
}

/// The largest upcoming unlocks, and sums over all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ahead {
    /// Largest first.
    pub rows: Vec<UpcomingRow>,
    pub sums: AheadSums,
}

/// Sums of the unlocks in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AheadSums {
    /// Unlocks that sums include; see [`SumWindow`].
    pub counted: AheadSum,
    /// Unlocks that may happen in the period because their month or week overlaps it.
    pub possible: AheadSum,
}

impl AheadSums {
    pub fn add(&mut self, is_counted: bool, value: Option<f64>) {
        if is_counted { &mut self.counted } else { &mut self.possible }.add(value);
    }
}

/// The number and value of some unlocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AheadSum {
    pub count: u64,
    /// USD of the unlocks whose value is known.
    pub value: f64,
}

impl AheadSum {
    pub fn add(&mut self, value: Option<f64>) {
        self.count += 1;
        self.value += value.unwrap_or_default();
    }
}

/// The number of upcoming weeks with a sum each.
pub const WEEKS: usize = 12;

/// Sums of the coming weeks. The first week begins now.
pub type WeeksAhead = [AheadSum; WEEKS];

/// Firing alerts, most severe first and latest first within a severity, with counts by severity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiringAlerts {
    pub alerts: Vec<Alert>,
    pub critical: u64,
    pub warning: u64,
    /// Alerts with any other severity or none.
    pub other: u64,
}

words! {
    /// The order of a token list.
    #[derive(Default)]
    TokenSort {
        /// Unlock value of the coming 90 days, largest first.
        #[default]
        Value = "value",
        /// The largest unlock of the coming 90 days, as a share of market cap.
        Share = "share",
        /// The date of the next unlock.
        Next = "next",
        /// Market cap, largest first.
        MarketCap = "market_cap",
        Name = "name",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TokenFilter {
    /// A part of the slug, name, or symbol, ignoring case. Empty matches all tokens.
    pub text: String,
    pub sort: TokenSort,
    /// The period whose unlocks are summed.
    pub window: SumWindow,
    /// The number of rows to skip.
    pub offset: u32,
    pub limit: u32,
}

/// One page of tokens, and the number of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenList {
    pub rows: Vec<TokenSummary>,
    pub total: u64,
}

/// A token in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSummary {
    pub token: Token,
    /// Whether the last complete token list includes it.
    pub listed: bool,
    pub next: Option<Tracked>,
    /// Sums of unlocks in the requested period.
    pub ahead: AheadSums,
    /// Sums of unlocks by week.
    pub weeks: WeeksAhead,
}

/// Counters that change when a page may have new content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    pub polls: i64,
    pub changes: i64,
    /// The time of the last alert transition.
    pub alerts: i64,
    /// The number of deliveries and attempts.
    pub deliveries: i64,
    /// The number of silences, their ends, and acknowledgements.
    pub silences: i64,
}
