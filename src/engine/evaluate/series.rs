//! The schedule around one unlock, for those who draw it.

use model::{MAX_SERIES, Record, SeriesPoint, Tracked};

/// Most points before the unlock itself: what comes matters more.
const MAX_BEFORE: usize = MAX_SERIES / 3;

/// The dated cliffs around `own`, by date: its own among them, before it a third of the room unless little comes after it. Empty where
/// `own` is no dated unlock.
pub(super) fn around(own: &Tracked, records: &[Tracked]) -> Vec<SeriesPoint> {
    let Some(mine) = point(own) else { return Vec::new() };
    let others = records.iter().filter(|tracked| tracked.key != own.key).filter_map(point).filter(|point| point.amount > 0.0);
    let mut all: Vec<SeriesPoint> = others.chain([mine]).collect();
    all.sort_by(|a, b| a.at.cmp(&b.at).then(a.amount.total_cmp(&b.amount)));
    let at = all.iter().position(|point| *point == mine).unwrap_or_default();
    // Where few come after it, more of what was may stay.
    let after = all.len() - at;
    let before = at.min(MAX_BEFORE.max(MAX_SERIES.saturating_sub(after)));
    all.into_iter().skip(at - before).take(MAX_SERIES).collect()
}

fn point(tracked: &Tracked) -> Option<SeriesPoint> {
    let Record::Unlock(event) = &tracked.record else { return None };
    let amount = event.cliff_amount().filter(|amount| amount.is_finite()).unwrap_or_default();
    // A date that is to be determined has no place on a line.
    let precision = event.interval()?.precision;
    Some(SeriesPoint { at: event.unlock_date.copied()?, precision, amount })
}

#[cfg(test)]
mod tests;
