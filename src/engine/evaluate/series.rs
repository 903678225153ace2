//! The schedule around one unlock, for charts.

use model::{MAX_SERIES, Record, SeriesPoint, Tracked};

/// The maximum number of points before the unlock, unless few points follow it. Later points matter more.
const MAX_BEFORE: usize = MAX_SERIES / 3;

/// Returns the dated cliff unlocks around `own`, including `own`, sorted by date. Empty if `own` is not a dated cliff unlock of known size:
/// the start of a linear unlock would look like an unlock of zero tokens.
pub(super) fn around(own: &Tracked, records: &[Tracked]) -> Vec<SeriesPoint> {
    let Some(own_point) = point(own) else { return Vec::new() };
    let mut all: Vec<SeriesPoint> = records.iter().filter(|tracked| tracked.key != own.key).filter_map(point).collect();
    // The record of a change of several events has no key of its own: it is one of the records.
    let is_known = records.iter().any(|tracked| tracked.key == own.key);
    if is_known || !all.contains(&own_point) {
        all.push(own_point);
    }
    all.sort_by(|a, b| a.at.cmp(&b.at).then(a.amount.total_cmp(&b.amount)));
    let at = all.iter().position(|point| *point == own_point).unwrap_or_default();
    // Unused room after the unlock goes to earlier points.
    let after = all.len() - at;
    let before = at.min(MAX_BEFORE.max(MAX_SERIES.saturating_sub(after)));
    all.into_iter().skip(at - before).take(MAX_SERIES).collect()
}

/// Returns the point of a cliff unlock in a chart. `None` for other records, unknown amounts, and dates to be determined.
fn point(tracked: &Tracked) -> Option<SeriesPoint> {
    let Record::Unlock(event) = &tracked.record else { return None };
    let amount = event.cliff_amount().filter(|amount| amount.is_finite() && *amount > 0.0)?;
    // A TBD date cannot be drawn.
    let precision = event.interval()?.precision;
    Some(SeriesPoint { at: event.unlock_date.copied()?, precision, amount })
}

#[cfg(test)]
mod tests;
