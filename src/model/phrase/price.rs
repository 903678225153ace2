//! The age of prices. Every value in USD depends on a price, so a text names the day of an old one.

use chrono::TimeDelta;

use super::day;
use crate::{ReferencePrice, Timestamp};

/// The day of the prices behind values in USD: `at prices of 3 Nov 2025`.
pub fn at_prices_of(at: Timestamp) -> String {
    format!("at prices of {}", day(at))
}

/// [`at_prices_of`] if a price from `at` is older than `stale_price`, the limit of `[source]`. `None` if it is current, or if its time is
/// unknown.
pub fn stale_price(at: Option<Timestamp>, stale_price: TimeDelta, now: Timestamp) -> Option<String> {
    at.filter(|at| ReferencePrice::is_stale(*at, stale_price, now)).map(at_prices_of)
}
