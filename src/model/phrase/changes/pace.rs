//! Phrases about the pace of unlocks: amounts per interval.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::tranches::{TrancheFacts, total};
use crate::Timestamp;
use crate::phrase::{amount, count};

/// An average calendar month in days, for monthly rates.
const MONTH_DAYS: f64 = 30.436_875;

pub(super) const LINEAR: &str = "linearly at ";

/// The pace of unlocks: `in one cliff`, `25.00M per month`, `linearly at 25.00M per month`, `2.50M in one cliff and the rest linearly`, `in 12
/// cliffs`.
pub(super) fn pace(tranches: &[TrancheFacts]) -> String {
    let is_unknown = total(tranches).is_none();
    let linears: Vec<&TrancheFacts> = tranches.iter().filter(|tranche| tranche.is_linear).collect();
    let mut cliffs: BTreeMap<Option<Timestamp>, f64> = BTreeMap::new();
    for cliff in tranches.iter().filter(|tranche| !tranche.is_linear) {
        *cliffs.entry(cliff.at).or_default() += cliff.amount.unwrap_or(0.0);
    }
    let segments: BTreeSet<(Option<Timestamp>, Option<Timestamp>)> =
        linears.iter().map(|linear| (linear.at, linear.end)).collect();
    match (cliffs.len(), segments.len()) {
        (1, 0) => "in one cliff".to_owned(),
        (n, 0) if is_unknown => format!("in {n} cliffs"),
        (0, n) if is_unknown => format!("in {}", count(n, "linear unlock")),
        (n, segments) if is_unknown => format!("in {} and {}", count(n, "cliff"), count(segments, "linear unlock")),
        (0, 1) => match segments.first() {
            Some((Some(from), Some(to))) => linear_pace(linears.iter().filter_map(|linear| linear.amount).sum(), *to - *from),
            _ => format!("in {}", count(1, "linear unlock")),
        },
        (0, n) => format!("in {}", count(n, "linear unlock")),
        (n, 0) => cliff_pace(n, &cliffs),
        (1, _) => format!("{} in one cliff and the rest linearly", amount(cliffs.values().sum())),
        (n, segments) => format!("in {n} cliffs and {}", count(segments, "linear unlock")),
    }
}

fn cliff_pace(n: usize, cliffs: &BTreeMap<Option<Timestamp>, f64>) -> String {
    let interval = cliffs.keys().copied().collect::<Option<Vec<_>>>().and_then(|dates| regular_interval(&dates));
    let first = cliffs.values().next().copied().unwrap_or(0.0);
    let are_equal = cliffs.values().all(|amount| is_close(*amount, first, 0.02));
    match interval {
        Some(interval) if are_equal => format!("{} per {}", amount(first), interval.noun),
        Some(interval) => format!("in {n} unequal {} cliffs", interval.adjective),
        None if are_equal => format!("in {n} cliffs of {}", amount(first)),
        None => format!("in {n} unequal cliffs"),
    }
}

/// Tokens over a time: `linearly at 10.00M per month`; per day below two months.
fn linear_pace(tokens: f64, over: TimeDelta) -> String {
    let days = crate::days(over);
    if days <= 0.0 {
        "in one cliff".to_owned()
    } else if days <= 1.0 {
        "within a day".to_owned()
    } else if days < 2.0 * MONTH_DAYS {
        format!("{LINEAR}{} per day", amount(tokens / days))
    } else {
        format!("{LINEAR}{} per month", amount(tokens / days * MONTH_DAYS))
    }
}

/// A regular interval between dates.
pub(super) struct DateInterval {
    /// `month`, as in `per month`.
    pub noun: &'static str,
    /// `monthly`.
    pub adjective: &'static str,
    days: i64,
    /// The days by which an interval may differ.
    slack: i64,
}

const fn interval(noun: &'static str, adjective: &'static str, days: i64, slack: i64) -> DateInterval {
    DateInterval { noun, adjective, days, slack }
}

pub(super) static INTERVALS: [DateInterval; 6] = [
    interval("day", "daily", 1, 0),
    interval("week", "weekly", 7, 1),
    interval("month", "monthly", 30, 3),
    interval("quarter", "quarterly", 91, 4),
    interval("half-year", "half-yearly", 182, 5),
    interval("year", "yearly", 365, 3),
];

/// The regular interval of dates. `None` if the dates are irregular.
pub(super) fn regular_interval(dates: &[Timestamp]) -> Option<&'static DateInterval> {
    let gaps: Vec<TimeDelta> = dates.windows(2).map(|two| two[1] - two[0]).collect();
    let is_about = |DateInterval { days, slack, .. }: &DateInterval| {
        gaps.iter().all(|gap| (*gap - TimeDelta::days(*days)).abs() <= TimeDelta::days(*slack))
    };
    INTERVALS.iter().find(|interval| !gaps.is_empty() && is_about(interval))
}

pub(super) fn is_close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}
