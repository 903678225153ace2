//! Changes of the rate at which a token unlocks linearly: the instants, the rates before and after, and the allocations that cause them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ahead::RATE_TOLERANCE;
use super::linear::LinearUnlock;
use crate::time::{SumWindow, Timestamp};

/// The relative change from which lists, calendars, and digests show a rate change.
const MIN_NOTABLE: f64 = 0.01;

/// A change of the rate at which a token unlocks linearly. Rates are in tokens per day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateChange {
    pub at: Timestamp,
    /// The rate of all allocations before.
    pub before: f64,
    /// The rate of all allocations from then on.
    pub after: f64,
    /// The allocations whose rate changes, largest difference first.
    pub causes: Vec<RateCause>,
}

/// A change of the rate of one allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RateCause {
    /// The name of the allocation; empty if the source does not name it.
    pub allocation: String,
    /// Tokens per day before; zero if the allocation begins to unlock.
    pub before: f64,
    /// Tokens per day from then on; zero if the allocation ends.
    pub after: f64,
}

impl RateChange {
    /// Returns the rate after as a multiple of the rate before. `None` if nothing unlocked before.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        (self.before > 0.0).then(|| self.after / self.before)
    }

    /// Returns whether the change is large enough to be shown.
    #[must_use]
    pub fn is_notable(&self) -> bool {
        is_notable(self.before, self.after)
    }

    /// Returns whether an allocation goes on at another rate, so that the change is not only a beginning or an end.
    #[must_use]
    pub fn has_step(&self) -> bool {
        self.causes.iter().any(RateCause::goes_on)
    }
}

impl RateCause {
    /// Returns whether the allocation unlocks before and after.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.before > 0.0 && self.after > 0.0
    }
}

/// Returns the rate changes of a token after the start of `window`, up to and including its end, in order. A boundary at which the
/// rate of the token stays the same is not a change. A linear unlock with an unknown amount is ignored. One with an unknown end does not change the rate at its end.
#[must_use]
pub fn rate_changes(unlocks: &[LinearUnlock<'_>], window: SumWindow) -> Vec<RateChange> {
    let (from, until) = (window.at.timestamp_millis(), window.until.timestamp_millis());
    let mut edges: Vec<(i64, &str, f64)> = Vec::new();
    let mut rates: BTreeMap<&str, f64> = BTreeMap::new();
    for unlock in unlocks {
        let Some(rate) = unlock.piece.per_day().filter(|rate| *rate != 0.0) else { continue };
        let (start, end) = (unlock.piece.starts_at, if unlock.is_end_known { unlock.piece.ends_at } else { i64::MAX });
        if start <= from && end > from {
            *rates.entry(unlock.allocation).or_default() += rate;
        }
        let edges_of = [(start, unlock.allocation, rate), (end, unlock.allocation, -rate)];
        edges.extend(edges_of.into_iter().filter(|(edge, ..)| from < *edge && *edge <= until));
    }
    edges.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    edges.chunk_by(|a, b| a.0 == b.0).filter_map(|of_instant| change(of_instant, &mut rates)).collect()
}

/// Applies the steps of one instant to the rates. Returns the change, if the sum of the rates changes.
fn change<'e>(steps: &[(i64, &'e str, f64)], rates: &mut BTreeMap<&'e str, f64>) -> Option<RateChange> {
    let at = Timestamp::from_timestamp_millis(steps.first()?.0)?;
    let before: f64 = rates.values().fold(0.0, |sum, rate| sum + rate);
    let mut causes = Vec::new();
    for of_allocation in steps.chunk_by(|a, b| a.1 == b.1) {
        let (allocation, size) =
            (of_allocation.first()?.1, of_allocation.iter().map(|(.., step)| step.abs()).fold(0.0, f64::max));
        let rate = rates.entry(allocation).or_default();
        let earlier = *rate;
        *rate += of_allocation.iter().map(|(.., step)| step).sum::<f64>();
        // A rounding error is not a rate.
        if rate.abs() <= RATE_TOLERANCE * earlier.abs().max(size) {
            *rate = 0.0;
        }
        if differs(earlier, *rate, RATE_TOLERANCE) {
            causes.push(RateCause { allocation: allocation.to_owned(), before: earlier, after: *rate });
        }
    }
    rates.retain(|_, rate| *rate != 0.0);
    let after: f64 = rates.values().fold(0.0, |sum, rate| sum + rate);
    let difference = |step: &RateCause| (step.after - step.before).abs();
    causes.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    differs(before, after, RATE_TOLERANCE).then_some(RateChange { at, before, after, causes })
}

/// Returns whether a change is large enough to be shown.
pub(super) fn is_notable(before: f64, after: f64) -> bool {
    differs(before, after, MIN_NOTABLE)
}

fn differs(before: f64, after: f64, tolerance: f64) -> bool {
    (after - before).abs() > tolerance * before.abs().max(after.abs())
}

#[cfg(test)]
mod tests;
