//! Linear unlocks: the time over which they vest, their rates, and changes of the rate.

use super::{UNKNOWN_AMOUNT, amount, day, month, name, names, tokens};
use crate::{Precision, RateChange, Timestamp};

/// The time over which a linear unlock runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VestingSpan {
    pub starts_at: Timestamp,
    pub ends_at: Timestamp,
    /// Whether it ends at its end. `false` if nothing is known about the time from then on.
    pub is_end_known: bool,
    pub precision: Precision,
}

impl VestingSpan {
    fn date(&self, at: Timestamp) -> String {
        match self.precision {
            Precision::Month => month(at),
            Precision::Week => format!("the week of {}", day(at)),
            _ => day(at),
        }
    }

    /// The end: `until 3 Mar 2027`, `until March 2027`, `until at least 3 Mar 2027`.
    #[must_use]
    pub fn until(&self) -> String {
        format!("until {}{}", if self.is_end_known { "" } else { "at least " }, self.date(self.ends_at))
    }

    /// The span at `now`: `until 3 Mar 2027`, or `from 1 Jan 2027 until 3 Mar 2027` if it has not begun.
    #[must_use]
    pub fn text(&self, now: Timestamp) -> String {
        if self.starts_at <= now { self.until() } else { format!("from {} {}", self.date(self.starts_at), self.until()) }
    }
}

/// A rate: `1.20M ARB per day`.
#[must_use]
pub fn per_day(rate: Option<f64>, symbol: &str) -> String {
    let rate = rate.map_or_else(|| UNKNOWN_AMOUNT.to_owned(), |rate| tokens(rate, Some(symbol)));
    format!("{rate} per day")
}

/// A linear unlock in a list: `vests until 3 Mar 2027, 1.20M ARB per day`.
#[must_use]
pub fn vests(span: &VestingSpan, rate: Option<f64>, symbol: &str, now: Timestamp) -> String {
    format!("vests {}, {}", span.text(now), per_day(rate, symbol))
}

/// The start of a linear unlock: `ARB: vesting of Team begins, 1.20M ARB per day until 3 Mar 2027`.
#[must_use]
pub fn vesting_begins(span: &VestingSpan, allocation: &str, rate: Option<f64>, symbol: &str) -> String {
    format!("{} begins, {} {}", vesting_of(allocation, symbol), per_day(rate, symbol), span.until())
}

/// The end of a linear unlock: `ARB: vesting of Team ends`.
#[must_use]
pub fn vesting_ends(allocation: &str, symbol: &str) -> String {
    format!("{} ends", vesting_of(allocation, symbol))
}

/// `ARB: vesting of Team`; `ARB: vesting` if the allocation has no name.
fn vesting_of(allocation: &str, symbol: &str) -> String {
    let of = if allocation.trim().is_empty() { String::new() } else { format!(" of {}", name(allocation)) };
    format!("{}: vesting{of}", name(symbol))
}

/// A change of a token's rate: `ARB vesting rises from 1.20M to 2.40M per day`.
#[must_use]
pub fn rate_change(change: &RateChange, symbol: &str) -> String {
    format!("{} vesting {}", name(symbol), rates(change))
}

/// The rates of a change: `rises from 1.20M to 2.40M per day`.
#[must_use]
pub fn rates(change: &RateChange) -> String {
    let (before, after) = (amount(change.before), amount(change.after));
    match (change.before > 0.0, change.after > 0.0) {
        (false, _) => format!("begins, {after} per day"),
        (true, false) => format!("ends, {before} per day until then"),
        (true, true) if change.after > change.before => format!("rises from {before} to {after} per day"),
        (true, true) => format!("falls from {before} to {after} per day"),
    }
}

/// The allocations that cause a rate change, largest difference first: `Team and Treasury`. `None` if none is named.
#[must_use]
pub fn rate_change_causes(change: &RateChange) -> Option<String> {
    let named: Vec<&str> =
        change.causes.iter().map(|step| step.allocation.as_str()).filter(|name| !name.trim().is_empty()).collect();
    (!named.is_empty()).then(|| names(named))
}
