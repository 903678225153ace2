//! The dates of a schedule around the one in question.

use super::capitalized;
use model::{AlertBody, Interval, Precision, SeriesPoint, Timestamp, format};

/// Dates of the schedule that are told in words: before the one in question, and after it.
const SCHEDULE_BEFORE: usize = 2;
const SCHEDULE_AFTER: usize = 5;

/// The date of the record itself, which its schedule holds.
pub(crate) fn own_date(body: &AlertBody) -> Option<Timestamp> {
    let date = body.record.as_ref()?.get("unlockDate")?.as_str()?;
    model::wire::parse_timestamp(date).filter(|date| body.series.iter().any(|point| point.at == *date))
}

/// A date of the schedule in words, no more exact than it is: `16 Mar 2026`, `March 2026`.
pub(crate) fn date_of(point: &SeriesPoint) -> String {
    match Interval::of(point.at, point.precision.max(Precision::Day)) {
        Some(interval) => capitalized(format::when(&interval).trim_start_matches("on ").trim_start_matches("in ")),
        None => String::new(),
    }
}

/// The dates around the one in question, in words.
pub(super) fn schedule(body: &AlertBody) -> Vec<(String, String, bool)> {
    let Some(own) = own_date(body) else { return Vec::new() };
    let at = body.series.iter().position(|point| point.at == own).unwrap_or_default();
    let row = |point: &SeriesPoint| (date_of(point), format::amount(point.amount), point.at == own);
    let shown = SCHEDULE_BEFORE.min(at) + 1 + SCHEDULE_AFTER;
    let rows: Vec<_> = body.series.iter().skip(at.saturating_sub(SCHEDULE_BEFORE)).take(shown).map(row).collect();
    // Alone, it says nothing that the facts do not.
    if rows.len() > 1 { rows } else { Vec::new() }
}
