//! Earlier corrections of a token's schedule: how often it was corrected, and by how much its dates moved.

use chrono::TimeDelta;

use crate::{ChangeKind, ChangeRow, Resource, Timestamp};

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
    pub fn within<'a>(changes: impl IntoIterator<Item = &'a ChangeRow>, span: TimeDelta, now: Timestamp) -> Self {
        let mut sum = Self::default();
        for row in changes.into_iter().filter(|row| is_correction(row) && row.at <= now && now - row.at < span) {
            sum.count += 1;
            if let Some(days) = row.change.shift_days.filter(|days| days.is_finite()) {
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
    row.resource == Resource::Unlock && CORRECTIONS.contains(&row.change.kind)
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
    use crate::{Change, TokenId};

    fn row(kind: ChangeKind, at: &str, shift_days: Option<f64>) -> ChangeRow {
        let token = TokenId::from("arbitrum");
        let change = Change { shift_days, ..Change::of(kind, Resource::Unlock, &token) };
        ChangeRow { id: 1, at: at.parse().unwrap(), token, symbol: None, resource: Resource::Unlock, key: None, change }
    }

    #[test]
    fn adds_up_the_shifts_of_the_window() {
        let changes = [
            row(ChangeKind::Rescheduled, "2026-03-01T00:00:00Z", Some(14.0)),
            row(ChangeKind::SeriesShifted, "2026-04-01T00:00:00Z", Some(10.0)),
            row(ChangeKind::Rescheduled, "2026-05-01T00:00:00Z", Some(-5.0)),
            row(ChangeKind::Resized, "2026-05-02T00:00:00Z", None),
            row(ChangeKind::Renamed, "2026-05-03T00:00:00Z", None),
            row(ChangeKind::Rescheduled, "2024-05-01T00:00:00Z", Some(90.0)),
            row(ChangeKind::Rescheduled, "2026-06-02T00:00:00Z", Some(7.0)),
        ];
        let sum = Corrections::within(&changes, TimeDelta::days(365), "2026-06-01T00:00:00Z".parse().unwrap());
        assert_eq!(sum, Corrections { count: 4, moved: 3, shift_days: 19.0 });
    }
}
