//! Earlier corrections of a token's schedule: how often it was corrected, and by how much its dates moved.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::{Change, ChangeKind, ChangeRow, Resource, Timestamp, TokenId};

/// A correction of a token's unlock schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PastCorrection {
    /// The time at which it was detected.
    pub at: Timestamp,
    /// The days by which it moved dates, positive for later. For a series, its most common shift. `None` if it moved none, or by an
    /// unknown time.
    pub shift_days: Option<f64>,
}

impl PastCorrection {
    /// Returns the correction that a change is, detected at `at`. `None` if the change is not a correction of the unlock schedule.
    #[must_use]
    pub fn of(change: &Change, at: Timestamp) -> Option<Self> {
        is_kind_of_correction(change.resource?, change.kind).then_some(Self { at, shift_days: change.shift_days })
    }
}

/// The corrections of tokens, by token and in the order of their times. Tokens without corrections are left out.
pub type CorrectionsByToken = BTreeMap<TokenId, Vec<PastCorrection>>;

/// The corrections of a token's unlock schedule in a time window that ends now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Corrections {
    pub count: u32,
    /// The number of corrections that moved dates by a known time.
    pub moved: u32,
    /// The sum of their shifts in days, positive for later. For a series, its most common shift counts.
    pub shift_days: f64,
}

impl Corrections {
    /// Adds up the corrections that were detected less than `span` before `now`.
    #[must_use]
    pub fn within(corrections: impl IntoIterator<Item = PastCorrection>, span: TimeDelta, now: Timestamp) -> Self {
        let mut sum = Self::default();
        for PastCorrection { shift_days, .. } in corrections.into_iter().filter(|of| of.at <= now && now - of.at < span) {
            sum.count += 1;
            if let Some(days) = shift_days.filter(|days| days.is_finite()) {
                sum.moved += 1;
                sum.shift_days += days;
            }
        }
        sum
    }
}

/// Returns `true` if a change affects dates or amounts of the unlock schedule. A new name or recipient does not.
#[must_use]
pub fn is_correction(row: &ChangeRow) -> bool {
    is_kind_of_correction(row.resource, row.change.kind)
}

fn is_kind_of_correction(resource: Resource, kind: ChangeKind) -> bool {
    resource == Resource::Unlock && CORRECTIONS.contains(&kind)
}

/// The kinds of changes that affect dates or amounts of the unlock schedule.
pub const CORRECTIONS: [ChangeKind; 10] = [
    ChangeKind::Added,
    ChangeKind::Removed,
    ChangeKind::Rescheduled,
    ChangeKind::Resized,
    ChangeKind::Split,
    ChangeKind::Merged,
    ChangeKind::SeriesShifted,
    ChangeKind::SeriesRescaled,
    ChangeKind::Restructured,
    ChangeKind::Rewritten,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn correction(kind: ChangeKind, at: &str, shift_days: Option<f64>) -> Option<PastCorrection> {
        let change = Change { shift_days, ..Change::of(kind, Resource::Unlock, &TokenId::from("arbitrum")) };
        PastCorrection::of(&change, at.parse().unwrap())
    }

    #[test]
    fn adds_up_the_shifts_of_the_window() {
        let changes = [
            correction(ChangeKind::Rescheduled, "2026-03-01T00:00:00Z", Some(14.0)),
            correction(ChangeKind::SeriesShifted, "2026-04-01T00:00:00Z", Some(10.0)),
            correction(ChangeKind::Rescheduled, "2026-05-01T00:00:00Z", Some(-5.0)),
            correction(ChangeKind::Resized, "2026-05-02T00:00:00Z", None),
            correction(ChangeKind::Renamed, "2026-05-03T00:00:00Z", None),
            correction(ChangeKind::Rescheduled, "2025-06-01T00:00:00Z", Some(90.0)),
            correction(ChangeKind::Rescheduled, "2026-06-02T00:00:00Z", Some(7.0)),
        ];
        let sum =
            Corrections::within(changes.into_iter().flatten(), TimeDelta::days(365), "2026-06-01T00:00:00Z".parse().unwrap());
        assert_eq!(
            sum,
            Corrections { count: 4, moved: 3, shift_days: 19.0 },
            "the one of exactly a year ago has left the window"
        );
    }
}
