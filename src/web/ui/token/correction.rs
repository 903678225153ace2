//! Corrections of a token's schedule: their sum, and a picture of each before and after.

use std::collections::HashMap;

use chrono::TimeDelta;
use serde::Serialize;

use crate::ui::change::{ChangeItem, items};
use chart::before_after;
use chart::curve::{Curve, curves};
use model::corrections::{Corrections, is_correction};
use model::wire::UnlockEvent;
use model::{ChangeRow, Record, RecordKey, Resource, Timestamp, VersionRow, phrase};

/// The period of the sum.
pub const PERIOD: TimeDelta = TimeDelta::days(365);

/// A correction with its picture.
#[derive(Debug, Serialize)]
pub(super) struct CorrectionItem {
    #[serde(flatten)]
    change: ChangeItem,
    /// `None` if the earlier version is deleted, or if the picture would show no difference.
    picture: Option<String>,
}

/// The versions of each record, oldest first.
type History<'a> = HashMap<&'a RecordKey, Vec<(Timestamp, Option<&'a UnlockEvent>)>>;

pub(super) fn corrections(changes: &[ChangeRow], versions: &[VersionRow]) -> Vec<CorrectionItem> {
    let mut history: History<'_> = HashMap::new();
    for row in versions.iter().filter(|row| row.resource == Resource::Unlock) {
        history.entry(&row.key).or_default().push((row.at, row.record.as_ref().and_then(Record::unlock)));
    }
    let item = |(row, change): (&ChangeRow, ChangeItem)| CorrectionItem { picture: picture(row, &history), change };
    changes.iter().zip(items(changes)).map(item).collect()
}

/// Draws the records that were stored with a correction, before and after it. If it names allocations, only these.
fn picture(row: &ChangeRow, history: &History<'_>) -> Option<String> {
    if !is_correction(row) {
        return None;
    }
    let (mut was, mut is) = (Vec::new(), Vec::new());
    for versions in history.values() {
        let Some(index) = versions.iter().position(|(at, _)| *at == row.at) else { continue };
        is.extend(versions.get(index).and_then(|(_, event)| *event));
        was.extend(index.checked_sub(1).and_then(|index| versions.get(index)).and_then(|(_, event)| *event));
    }
    // Without an earlier version, a picture would show additions that did not happen.
    if was.is_empty() && row.change.kind != model::ChangeKind::Added {
        return None;
    }
    let of = |events: Vec<&UnlockEvent>| {
        let all = curves(events);
        let named: Vec<Curve> =
            all.iter().filter(|curve| row.change.allocations.iter().any(|of| of.name == curve.name)).cloned().collect();
        if named.is_empty() { all } else { named }
    };
    before_after::draw(&of(was), &of(is), row.change.shift_days)
}

/// Returns the sum of the corrections of the last [`PERIOD`] as text: `Corrected 4 times in the last 365 days; moved 3 times, 19 days later in
/// all`. `None` without a correction.
pub(super) fn summary(sum: &Corrections) -> Option<String> {
    let times = |count: u32| match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let period = format!("in the last {} days", PERIOD.num_days());
    match (sum.count, sum.moved) {
        (0, _) => None,
        (count, 0) => Some(format!("Corrected {} {period}, without a move", times(count))),
        (count, moved) => {
            let days = sum.shift_days.abs();
            let by = match sum.shift_days {
                shift if shift.abs() < 0.05 => "with no shift in all".to_owned(),
                shift => format!(
                    "{} {} in all",
                    phrase::shift(days).trim_start_matches('+'),
                    if shift > 0.0 { "later" } else { "earlier" }
                ),
            };
            Some(format!("Corrected {} {period}; moved {}, {by}", times(count), times(moved)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_names_the_moves_and_their_sum() {
        let text = |count, moved, shift_days| summary(&Corrections { count, moved, shift_days });
        assert_eq!(text(0, 0, 0.0), None);
        assert_eq!(
            text(4, 3, 19.0).as_deref(),
            Some("Corrected 4 times in the last 365 days; moved 3 times, 19 days later in all")
        );
        assert_eq!(text(1, 1, -5.0).as_deref(), Some("Corrected once in the last 365 days; moved once, 5 days earlier in all"));
        assert_eq!(
            text(2, 2, 0.0).as_deref(),
            Some("Corrected 2 times in the last 365 days; moved 2 times, with no shift in all")
        );
        assert_eq!(text(1, 0, 0.0).as_deref(), Some("Corrected once in the last 365 days, without a move"));
    }
}
