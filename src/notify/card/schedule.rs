//! The unlocks before and after the unlock of an alert.

use model::{AlertBody, Interval, Precision, SeriesPoint, Timestamp, phrase};

const SCHEDULE_BEFORE: usize = 2;
const SCHEDULE_AFTER: usize = 5;

/// Returns the date of the alert's record, or `None` if its schedule has no such date.
pub(crate) fn own_date(body: &AlertBody) -> Option<Timestamp> {
    let date = body.record.as_ref()?.get("unlockDate")?.as_str()?;
    model::wire::parse_timestamp(date).filter(|date| body.series.iter().any(|point| point.at == *date))
}

/// Formats a date with its own precision: `16 Mar 2026`, `~16 Mar 2026`.
pub(crate) fn date_of(point: &SeriesPoint) -> String {
    Interval::of(point.at, point.precision.max(Precision::Day)).as_ref().map(phrase::short_date).unwrap_or_default()
}

/// Returns date, amount, and whether it is the alert's own unlock, for the unlocks around it.
pub(super) fn schedule(body: &AlertBody) -> Vec<(String, String, bool)> {
    let Some(own) = own_date(body) else { return Vec::new() };
    let at = body.series.iter().position(|point| point.at == own).unwrap_or_default();
    let row = |point: &SeriesPoint| (date_of(point), phrase::amount(point.amount), point.at == own);
    let shown = SCHEDULE_BEFORE.min(at) + 1 + SCHEDULE_AFTER;
    let rows: Vec<_> = body.series.iter().skip(at.saturating_sub(SCHEDULE_BEFORE)).take(shown).map(row).collect();
    // A single row would only repeat the facts.
    if rows.len() > 1 { rows } else { Vec::new() }
}
