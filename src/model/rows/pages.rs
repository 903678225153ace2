//! What pages ask, and what they are answered.

use serde::Serialize;

use crate::{Alert, SumWindow, Token, Tracked, UpcomingRow};

/// Which of the unlocks ahead are asked for: the largest of those that may come within a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AheadFilter {
    pub window: SumWindow,
    /// By their part of the market cap rather than by their value.
    pub by_share: bool,
    /// At most so many.
    pub limit: u32,
}

/// The largest unlocks ahead, with what all of them come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ahead {
    /// The largest first.
    pub rows: Vec<UpcomingRow>,
    /// What they come to.
    pub sums: AheadSums,
}

/// What unlocks within a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AheadSums {
    /// Those that sums count ([`SumWindow`]).
    pub counted: AheadSum,
    /// Those that may come within it too, since their month or week reaches into it.
    pub possible: AheadSum,
}

impl AheadSums {
    /// Counts one more.
    pub fn add(&mut self, is_counted: bool, value: Option<f64>) {
        if is_counted { &mut self.counted } else { &mut self.possible }.add(value);
    }
}

/// Unlocks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AheadSum {
    pub count: u64,
    /// USD, of those whose value is known.
    pub value: f64,
}

impl AheadSum {
    /// Counts one more.
    pub fn add(&mut self, value: Option<f64>) {
        self.count += 1;
        self.value += value.unwrap_or_default();
    }
}

/// Weeks ahead that are summed one by one.
pub const WEEKS: usize = 12;

/// What unlocks in each of the coming weeks, the first of which begins now.
pub type WeeksAhead = [AheadSum; WEEKS];

/// Alerts that fire, the gravest first and of those the latest, with how many there are of each gravity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FiringAlerts {
    pub alerts: Vec<Alert>,
    pub critical: u64,
    pub warning: u64,
    /// Of any other severity, or of none.
    pub other: u64,
}

words! {
    /// In which order tokens are listed.
    #[derive(Default)]
    TokenSort {
        /// By what unlocks in the coming 90 days, the most first.
        #[default]
        Value = "value",
        /// By their largest unlock of that time as a part of the market cap.
        Share = "share",
        /// By their next unlock.
        Next = "next",
        /// By market cap, the largest first.
        MarketCap = "market_cap",
        Name = "name",
    }
}

/// Which tokens are asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenFilter {
    /// Part of a slug, name or ticker, in any case; empty: all.
    pub text: String,
    pub sort: TokenSort,
    /// The time whose unlocks are summed.
    pub window: SumWindow,
    /// Rows before the first that is asked for.
    pub offset: u32,
    pub limit: u32,
}

/// Some of the tokens, with how many there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenList {
    pub rows: Vec<TokenSummary>,
    pub total: u64,
}

/// A token in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSummary {
    pub token: Token,
    /// Whether the last complete token list names it.
    pub listed: bool,
    /// Its next unlock.
    pub next: Option<Tracked>,
    /// What unlocks within the time that was asked for.
    pub ahead: AheadSums,
    /// What unlocks in each of the coming weeks.
    pub weeks: WeeksAhead,
}

/// How far everything has come: two that differ say that a page may have something new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    pub polls: i64,
    pub changes: i64,
    /// When an alert last took a step.
    pub alerts: i64,
    /// Deliveries and attempts.
    pub deliveries: i64,
    /// Silences, their ends, and acknowledgements.
    pub silences: i64,
}
