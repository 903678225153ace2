//! The unlocks that a digest lists, and their order. Its sums include all others.

use std::cmp::Ordering;

use super::{AheadLine, LargestFirst, LinearLine, MAX_LINES};
use crate::config::DigestSettings;
use serde::{Deserialize, Serialize};

crate::words! {
    /// The order of the unlocks in a digest.
    #[derive(Default)]
    DigestOrder {
        /// By value in USD, largest first.
        #[default]
        Value = "value",
        /// By share of market cap, largest first.
        Share = "share",
        /// By date. If not all can be listed, those with the largest values are.
        Date = "date",
    }
}

/// The unlocks that a digest lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DigestSelection {
    pub order: DigestOrder,
    /// The maximum number of lines in a section of unlocks.
    pub limit: usize,
    /// The minimum value in USD.
    pub min_value: f64,
}

impl Default for DigestSelection {
    fn default() -> Self {
        Self { order: DigestOrder::Value, limit: MAX_LINES, min_value: 0.0 }
    }
}

impl DigestSelection {
    /// Returns the selection of a receiver's digest.
    #[must_use]
    pub fn of(config: &DigestSettings) -> Self {
        let limit = config.top.and_then(|top| usize::try_from(top).ok()).unwrap_or(MAX_LINES).min(MAX_LINES);
        Self { order: config.sort, limit, min_value: config.min_value.map_or(0.0, |usd| usd as f64) }
    }

    /// Returns what is listed as text: `10 largest by share of market cap, from $1.00M`.
    #[must_use]
    pub fn label(self) -> String {
        let base = match self.order {
            DigestOrder::Value => "largest by value",
            DigestOrder::Share => "largest by share of market cap",
            DigestOrder::Date => "largest by value, in the order of their dates",
        };
        let from = if self.min_value > 0.0 { format!(", from {}", crate::phrase::usd(self.min_value)) } else { String::new() };
        format!("{} {base}{from}", self.limit)
    }

    /// Returns whether an unlock of this value in USD may be listed. One of unknown value may be large.
    #[must_use]
    pub fn lists(self, value: Option<f64>) -> bool {
        value.is_none_or(|value| value >= self.min_value)
    }

    /// Returns the size by which unlocks are chosen: the value in USD or the share of market cap.
    #[must_use]
    pub fn size(self, value: Option<f64>, share: Option<f64>) -> LargestFirst {
        LargestFirst(if self.order == DigestOrder::Share { share } else { value })
    }

    /// Compares the sizes of two lines, largest first, then their dates.
    pub(super) fn by_size(self, a: &AheadLine, b: &AheadLine) -> Ordering {
        let size = |line: &AheadLine| self.size(line.value, line.share);
        size(a).cmp(&size(b)).then_with(|| (a.at, &a.token).cmp(&(b.at, &b.token)))
    }

    /// Compares two lines in the order of the digest.
    pub(super) fn order(self, a: &AheadLine, b: &AheadLine) -> Ordering {
        let by_date = if self.order == DigestOrder::Date { a.at.cmp(&b.at) } else { Ordering::Equal };
        by_date.then_with(|| self.by_size(a, b))
    }

    /// Compares two lines of linear unlocks, which have no date, in the order of the digest.
    pub(super) fn linear_order(self, a: &LinearLine, b: &LinearLine) -> Ordering {
        let size = |line: &LinearLine| self.size(line.value, line.share);
        size(a).cmp(&size(b)).then_with(|| a.token.cmp(&b.token))
    }
}
