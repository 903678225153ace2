//! The age of prices. Every value in USD depends on a price, so a text names the day of an old one.

use super::day;
use crate::{AlertBody, Timestamp};

/// The day of the prices behind values in USD: `at prices of 3 Nov 2025`.
pub fn at_prices_of(at: Timestamp) -> String {
    format!("at prices of {}", day(at))
}

/// The day of the prices of an alert, if they are stale: `at prices of 3 Nov 2025`. For a group, `at prices of 3 Nov 2025 or later`.
pub fn stale_prices_of(body: &AlertBody) -> Option<String> {
    let prices = at_prices_of(body.stale_price_as_of?);
    Some(if body.members.is_empty() { prices } else { format!("{prices} or later") })
}
