//! The age of prices. Every value in USD depends on a price, so a text names the day of an old one.

use super::day;
use crate::Timestamp;

/// The day of the prices behind values in USD: `at prices of 3 Nov 2025`.
pub fn at_prices_of(at: Timestamp) -> String {
    format!("at prices of {}", day(at))
}
