//! Upcoming unlocks: sums, weekly values, and allocation shares.

use chrono::TimeDelta;

use super::{amount, count, day, list_some, name, usd, when, when_day};
use crate::{AheadSum, Interval, Timestamp, WEEKS, WeeksAhead, wire::UnlockEvent};

/// Allocation shares that a line lists before it counts the others.
const MAX_SHARES: usize = 4;

/// The number and value of unlocks: `12 unlocks ($200.00M)`.
pub fn unlock_sum(sum: AheadSum) -> String {
    let value = if sum.value > 0.0 { format!(" ({})", usd(sum.value)) } else { String::new() };
    format!("{}{value}", count(sum.count, "unlock"))
}

/// Unlocks that may fall into a period: `plus up to 2 unlocks ($5.00M) with an inexact date`. `None` for an empty sum.
pub fn possible_unlocks(sum: AheadSum) -> Option<String> {
    (sum.count > 0).then(|| format!("plus up to {} with an inexact date", unlock_sum(sum)))
}

/// The value of each upcoming week with unlocks, by the first day of the week: `By week: 9 Mar $1.20M, 6 Apr $3.10M in 2 unlocks`.
pub fn weeks_ahead(weeks: &WeeksAhead, now: Timestamp) -> String {
    let week = |(index, week): (usize, &AheadSum)| {
        if week.count == 0 {
            return None;
        }
        let first_day = now.checked_add_signed(TimeDelta::weeks(i64::try_from(index).ok()?))?;
        let value = if week.value > 0.0 { usd(week.value) } else { "unknown value".to_owned() };
        let several = if week.count > 1 { format!(" in {} unlocks", week.count) } else { String::new() };
        Some(format!("{} {value}{several}", first_day.format("%-d %b")))
    };
    let weeks: Vec<String> = weeks.iter().enumerate().filter_map(week).collect();
    if weeks.is_empty() { format!("No unlocks in the next {WEEKS} weeks") } else { format!("By week: {}", weeks.join(", ")) }
}

/// The allocation shares of an event, largest first: `Team 92.65M and Investors 30.00M until 1 Jan 2027`. A linear unlock states its
/// end.
pub fn allocation_shares(event: &UnlockEvent) -> String {
    let cliffs = event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let linears = event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items());
    let share = |allocation: Option<&str>, tokens: Option<f64>, end: Option<Timestamp>| {
        let tokens = tokens.unwrap_or_default();
        let end = end.map(|end| format!(" until {}", day(end))).unwrap_or_default();
        (tokens, format!("{} {}{end}", name(allocation.unwrap_or_default()), amount(tokens)))
    };
    let cliffs = cliffs.iter().map(|row| share(row.allocation_name.as_str(), row.cliff_amount.copied(), None));
    let linears =
        linears.iter().map(|row| share(row.allocation_name.as_str(), row.linear_amount.copied(), row.end_date.copied()));
    let mut shares: Vec<(f64, String)> = cliffs.chain(linears).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shares: Vec<String> = shares.into_iter().map(|(_, text)| text).collect();
    list_some(&shares, MAX_SHARES, 0)
}

/// The next cliff unlock: `next: 3.00M, $5.00M, on 9 Mar 2026, 12:00 UTC`.
pub fn next_cliff(tokens: f64, value_usd: Option<f64>, interval: &Interval) -> String {
    let value = value_usd.map(|value| format!(", {}", usd(value))).unwrap_or_default();
    format!("next: {}{value}, {}", amount(tokens), when(interval))
}

/// [`next_cliff`] without value and time of day: `next: 3.00M, on 9 Mar 2026`.
pub fn next_cliff_short(tokens: f64, interval: &Interval) -> String {
    format!("next: {}, {}", amount(tokens), when_day(interval))
}
