//! Queries of coming supply, and their results.

use chrono::TimeDelta;
use serde::Serialize;

use crate::{KnownSupply, LinearRate, ReferencePrice, SumWindow, SupplyAhead, Timestamp};

/// The windows of coming supply on pages and in the API: their names and lengths in days.
pub const SUPPLY_WINDOWS: [(&str, i64); 3] = [("7d", 7), ("30d", 30), ("90d", 90)];

/// Returns the windows of [`SUPPLY_WINDOWS`] from `at`.
#[must_use]
pub fn supply_windows(at: Timestamp) -> Vec<SumWindow> {
    SUPPLY_WINDOWS.iter().map(|(_, days)| SumWindow::of(at, TimeDelta::days(*days))).collect()
}

/// Returns windows of one week each, one after the other from `at`.
#[must_use]
pub fn supply_weeks(at: Timestamp, weeks: usize) -> Vec<SumWindow> {
    let mut at = at;
    let next = |_| {
        let window = SumWindow::of(at, TimeDelta::weeks(1));
        at = window.until;
        window
    };
    (0..weeks).map(next).collect()
}

/// The coming supply of one token.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSupply {
    pub known: KnownSupply,
    /// The end of the known linear supply. `None` if no end is known.
    pub linear_until: Option<Timestamp>,
    pub price: Option<ReferencePrice>,
    /// One sum for each requested window, in the same order.
    pub windows: Vec<SupplyAhead>,
    /// The linear release at the time of the request.
    pub rate: LinearRate,
}

impl TokenSupply {
    /// Returns the supply of a token whose schedule was never read.
    #[must_use]
    pub fn unread(windows: usize) -> Self {
        let windows = vec![SupplyAhead::default(); windows];
        Self { known: KnownSupply::None, linear_until: None, price: None, windows, rate: LinearRate::default() }
    }

    /// Returns the tokens that unlock linearly per day now. `None` if linear unlocks were not read, or their amounts are unknown.
    #[must_use]
    pub fn linear_per_day(&self) -> Option<f64> {
        let is_known = self.known == KnownSupply::All && (self.rate.running == 0 || self.rate.per_day > 0.0);
        is_known.then_some(self.rate.per_day)
    }

    /// Returns the time of the price if it is older than `limit` at `now`.
    #[must_use]
    pub fn stale_price(&self, now: Timestamp, limit: TimeDelta) -> Option<Timestamp> {
        self.price?.at.filter(|at| ReferencePrice::is_stale(*at, limit, now))
    }
}

/// The coming supply of several tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SupplyTotals {
    /// One sum for each requested window, in the same order. Amounts of different tokens are not comparable, so only values and counts
    /// have a meaning.
    pub windows: Vec<SupplyAhead>,
    /// USD per day that unlock linearly at the time of the request, of the tokens with a price.
    pub linear_per_day_value: f64,
    pub coverage: TotalsCoverage,
}

/// The completeness of the known coming supply of several tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TotalsCoverage {
    pub tokens: u64,
    /// Tokens whose schedule was never read.
    pub unread: u64,
    /// Tokens whose linear unlocks were not read.
    pub cliffs_only: u64,
    /// Tokens with a price that is older than the limit.
    pub stale_prices: u64,
    /// Tokens with unlocks and without a price.
    pub without_price: u64,
    /// The earliest end of known linear supply. `None` if no end is known.
    pub linear_until: Option<Timestamp>,
    /// The time of the oldest price. `None` if no price has a time.
    pub oldest_price: Option<Timestamp>,
}

impl TotalsCoverage {
    /// Returns what is known of the tokens together: nothing if none was read, and only cliffs if the linear unlocks of none were read.
    #[must_use]
    pub fn known(&self) -> KnownSupply {
        match self.tokens.saturating_sub(self.unread) {
            0 => KnownSupply::None,
            read if read == self.cliffs_only => KnownSupply::Cliffs,
            _ => KnownSupply::All,
        }
    }
}

impl SupplyTotals {
    /// Returns totals of no tokens, with a sum of zero for each window.
    #[must_use]
    pub fn empty(windows: usize) -> Self {
        Self { windows: vec![SupplyAhead::default(); windows], ..Self::default() }
    }
}
