//! Linear unlocks: the time over which they vest, their rates, and changes of the rate.

use super::{UNKNOWN_AMOUNT, amount, day, month, name, names, tokens, usd};
use crate::{Precision, RateCause, RateChange, RateStep, Timestamp};

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
    rates_as(RateStep { before: change.before, after: change.after }, amount)
}

/// The rates of a step in tokens: `rises from 1.20M to 2.40M ARB per day`.
#[must_use]
pub fn rates_in_tokens(step: RateStep, symbol: &str) -> String {
    rates_as(step, |rate| tokens(rate, Some(symbol)))
}

/// The rates of a step in USD: `rises from $3.40M to $6.80M per day`. `price` is in USD per token.
#[must_use]
pub fn rates_in_usd(step: RateStep, price: f64) -> String {
    rates_as(step, |rate| usd(rate * price))
}

fn rates_as(step: RateStep, format: impl Fn(f64) -> String) -> String {
    let (before, after) = (format(step.before), format(step.after));
    match (step.before > 0.0, step.after > 0.0) {
        (false, _) => format!("begins, {after} per day"),
        (true, false) => format!("ends, {before} per day until then"),
        (true, true) if step.after > step.before => format!("rises from {before} to {after} per day"),
        (true, true) => format!("falls from {before} to {after} per day"),
    }
}

/// The allocations that begin, end, or change at a rate change: `Team and Seed begin; Treasury ends`. `None` if none is named.
#[must_use]
pub fn rate_change_parts(change: &RateChange) -> Option<String> {
    let part = |of: &dyn Fn(&RateCause) -> bool, one: &str, many: &str| {
        let named = change.causes.iter().filter(|cause| of(cause) && !cause.allocation.trim().is_empty());
        let named: Vec<&str> = named.map(|cause| cause.allocation.as_str()).collect();
        let verb = if named.len() == 1 { one } else { many };
        (!named.is_empty()).then(|| format!("{} {verb}", names(named)))
    };
    let begins = part(&|cause| cause.before <= 0.0, "begins", "begin");
    let ends = part(&|cause| cause.after <= 0.0 && cause.before > 0.0, "ends", "end");
    let changes = part(&RateCause::goes_on, "changes", "change");
    let parts: Vec<String> = [begins, ends, changes].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A step of a token's rate, with the value of its difference: `vesting falls from 1.20M to 0 per day (−$3.40M per day)`. `vesting ends`
/// if the rates are unknown. `price` is in USD per token.
#[must_use]
pub fn rate_step(step: Option<RateStep>, price: Option<f64>, is_past: bool) -> String {
    let Some(step) = step else { return format!("vesting {}", if is_past { "ended" } else { "ends" }) };
    let verb = match (step.after >= step.before, is_past) {
        (true, false) => "rises",
        (true, true) => "rose",
        (false, false) => "falls",
        (false, true) => "fell",
    };
    let value = price.map(|price| format!(" ({} per day)", step_value(step, price))).unwrap_or_default();
    format!("vesting {verb} from {} to {} per day{value}", amount(step.before), amount(step.after))
}

/// The value of a difference with its sign: `−$3.40M`, `+$1.20M`.
#[must_use]
pub fn step_value(step: RateStep, price: f64) -> String {
    let value = (step.after - step.before) * price;
    format!("{}{}", if value < 0.0 { '−' } else { '+' }, usd(value.abs()))
}

/// The allocations that cause a rate change, largest difference first: `Team and Treasury`. `None` if none is named.
#[must_use]
pub fn rate_change_causes(change: &RateChange) -> Option<String> {
    let named: Vec<&str> =
        change.causes.iter().map(|step| step.allocation.as_str()).filter(|name| !name.trim().is_empty()).collect();
    (!named.is_empty()).then(|| names(named))
}
