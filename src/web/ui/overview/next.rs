//! The list of the next cliff unlocks, by date.

use serde::Serialize;

use super::AheadRow;
use model::{Ahead, Precision, Timestamp, phrase};

#[derive(Debug, Serialize)]
pub(super) struct NextCard {
    today: String,
    rows: Vec<NextRow>,
    /// The number of all cliff unlocks in the period.
    total: u64,
}

#[derive(Debug, Serialize)]
struct NextRow {
    /// The nominal date, with a mark if it is inexact.
    date: String,
    /// Whether the nominal date is the current day.
    is_today: bool,
    /// The period that the source confirms. `None` if it confirms the day.
    confirmed: Option<&'static str>,
    /// The same period as a short text.
    period: Option<&'static str>,
    row: AheadRow,
}

impl NextCard {
    pub(super) fn of(ahead: &Ahead, now: Timestamp) -> Self {
        let row = |row: &model::UpcomingRow| {
            let date = phrase::short_date(&row.tracked.record.interval()?);
            let row = AheadRow::of(row, now)?;
            let (nominal, precision) = (row.unlock.unlock_date?, row.unlock.precision);
            Some(NextRow {
                date,
                is_today: precision <= Precision::Day && nominal.date_naive() == now.date_naive(),
                confirmed: phrase::confirmed_period(precision),
                period: phrase::confirmed_period_brief(precision),
                row,
            })
        };
        Self { today: phrase::day(now), rows: ahead.next.iter().filter_map(row).collect(), total: ahead.next_total }
    }
}
