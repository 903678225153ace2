//! The coming supply of all watched tokens: totals, weekly bars, and what is not known.

use chrono::TimeDelta;
use serde::Serialize;

use chart::Chart;
use chart::supply::{SupplyWeek, draw};
use model::phrase::{self, SupplyFigure};
use model::{
    KnownSupply, SUPPLY_WINDOWS, SumWindow, SupplyAhead, SupplyTotals, Timestamp, UnlockSum, supply_weeks, supply_windows,
};

/// The number of weeks with a bar. They cover the longest window.
const CHART_WEEKS: usize = 13;

/// Returns the windows of the totals that the supply card needs.
pub fn windows(now: Timestamp) -> Vec<SumWindow> {
    [supply_windows(now), supply_weeks(now, CHART_WEEKS)].concat()
}

#[derive(Debug, Serialize)]
pub(super) struct SupplyCard {
    tiles: Vec<SupplyTile>,
    /// USD that unlock linearly per day. `None` if it is zero or unknown.
    per_day: Option<String>,
    /// `None` if no value is known.
    chart: Option<Chart>,
    weeks: Vec<WeekRow>,
    /// The gaps of the totals, as texts.
    gaps: Vec<String>,
    /// The time of the oldest price.
    oldest_price: Option<Timestamp>,
    is_unread: bool,
}

/// The total of a window.
#[derive(Debug, Serialize)]
struct SupplyTile {
    name: String,
    figure: SupplyFigure,
    /// The unlocks that may fall into the window, not included in the total. `None` if no unlock qualifies.
    inexact: Option<String>,
}

#[derive(Debug, Serialize)]
struct WeekRow {
    begin: String,
    cliff: String,
    linear: String,
    total: String,
    /// The unlocks that may fall into the week, not included in the total.
    inexact: String,
}

impl SupplyCard {
    /// `totals` has the windows of [`windows`].
    pub(super) fn of(totals: &SupplyTotals, now: Timestamp, stale_price: TimeDelta) -> Self {
        let SupplyTotals { windows: sums, linear_per_day_value, coverage } = totals;
        let tile = |((_, days), sum): (&(_, i64), &SupplyAhead)| SupplyTile {
            name: format!("Next {days} days"),
            figure: phrase::supply_total_figure(sum, coverage),
            inexact: phrase::inexact_unlocks(&sum.inexact),
        };
        let weeks = sums.iter().skip(SUPPLY_WINDOWS.len()).zip(supply_weeks(now, CHART_WEEKS));
        let weeks: Vec<SupplyWeek> = weeks.map(|(ahead, window)| SupplyWeek { window, ahead: *ahead }).collect();
        let is_unread = coverage.known() == KnownSupply::None;
        let until = supply_windows(now).last().map_or(now, |window| window.until);
        Self {
            tiles: SUPPLY_WINDOWS.iter().zip(sums).map(tile).collect(),
            per_day: (*linear_per_day_value > 0.0).then(|| phrase::usd(*linear_per_day_value)),
            chart: draw(&weeks).filter(|_| !is_unread),
            weeks: weeks.iter().filter(|_| !is_unread).map(WeekRow::of).collect(),
            gaps: phrase::supply_gaps(coverage, until, stale_price),
            oldest_price: coverage.oldest_price,
            is_unread,
        }
    }
}

impl WeekRow {
    fn of(week: &SupplyWeek) -> Self {
        Self {
            begin: phrase::day(week.window.at),
            cliff: part(&week.ahead.cliff),
            linear: part(&week.ahead.linear),
            total: cell(&week.ahead.total()),
            inexact: cell(&week.ahead.inexact),
        }
    }
}

/// Returns the known value of a part, of which the total says whether it is complete. A dash for no unlocks.
fn part(sum: &UnlockSum) -> String {
    if sum.count > 0 && sum.known_value().is_some() { phrase::usd(sum.value) } else { cell(sum) }
}

/// Returns the value of a sum, and a dash for no unlocks.
pub(in crate::ui) fn cell(sum: &UnlockSum) -> String {
    if sum.count == 0 { "–".to_owned() } else { phrase::sum_value(sum) }
}
