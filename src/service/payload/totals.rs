//! Sums of values, some of which may be unknown.

use model::wire::{CliffUnlocks, LinearAllocation, LinearUnlocks, Maybe};

/// Returns the sum, in which an unknown value counts as zero. The sum of two unknown values is unknown.
pub(crate) fn add(one: &Maybe<f64>, other: &Maybe<f64>) -> Maybe<f64> {
    match (one.copied(), other.copied()) {
        (None, None) => Maybe::Null,
        (one, other) => Maybe::Value(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    }
}

/// Returns the total of a column: zero without rows, and unknown if all values are unknown.
pub(crate) fn total<T>(rows: &[T], pick: fn(&T) -> &Maybe<f64>) -> Maybe<f64> {
    let none = if rows.is_empty() { Maybe::Value(0.0) } else { Maybe::Null };
    rows.iter().fold(none, |sum, row| add(&sum, pick(row)))
}

/// Computes the totals from the remaining allocation shares, and scales the share of market cap with the amount.
pub(crate) fn total_cliffs(cliffs: &mut CliffUnlocks) {
    let items = cliffs.allocation_breakdown.items();
    let amount = items.iter().fold(Maybe::Null, |sum, item| add(&sum, &item.cliff_amount));
    let value = items.iter().fold(Maybe::Null, |sum, item| add(&sum, &item.cliff_value));
    if let (Maybe::Value(ratio), Some(before), Some(after)) =
        (&mut cliffs.value_to_market_cap, cliffs.cliff_amount.copied(), amount.copied())
        && before > 0.0
    {
        *ratio *= after / before;
    }
    cliffs.cliff_amount = amount;
    cliffs.cliff_value = value;
}

pub(crate) fn total_linears(linears: &mut LinearUnlocks) {
    let items = linears.allocation_breakdown.items();
    let sum = |pick: fn(&LinearAllocation) -> &Maybe<f64>| items.iter().fold(Maybe::Null, |sum, item| add(&sum, pick(item)));
    let (amount, value) = (sum(|item| &item.linear_amount), sum(|item| &item.linear_value));
    let (daily_amount, daily_value) = (sum(|item| &item.daily_amount), sum(|item| &item.daily_value));
    linears.linear_amount = amount;
    linears.linear_value = value;
    linears.daily_amount = daily_amount;
    linears.daily_value = daily_value;
}
