//! The chart of a schedule with its values by date. The script of the pages draws the interactive chart from the table of these values.

use serde::Serialize;

use chart::Chart;
use chart::curve::{Curve, Sample};
use chart::schedule::{ScheduleDrawing, draw};
use chart::series::{ScheduleSeries, schedule_series};
use model::{Timestamp, phrase};

/// A chart of a schedule, and the table below it.
#[derive(Clone, Debug, Serialize)]
pub struct ScheduleChart {
    /// For mail, print, and browsers without scripts.
    pub(super) chart: Chart,
    allocations: Vec<AllocationColumn>,
    rows: Vec<DateRow>,
    /// The symbol of the token.
    symbol: String,
    max_supply: Option<f64>,
    has_former: bool,
    /// The time of the current day in seconds since 1970.
    now: i64,
    /// The time of the labeled cliff in seconds since 1970.
    mark: Option<i64>,
    mark_label: String,
}

/// An allocation in the legend and the table.
#[derive(Clone, Debug, Serialize)]
struct AllocationColumn {
    class: String,
    name: String,
    recipient: &'static str,
}

/// The unlocked tokens at a date.
#[derive(Clone, Debug, Serialize)]
struct DateRow {
    /// Seconds since 1970.
    at: i64,
    day: String,
    is_today: bool,
    cells: Vec<ValueCell>,
    total: ValueCell,
    /// The total in percent of the max supply.
    percent: Option<f64>,
    /// The total of the former schedule.
    former: Option<ValueCell>,
}

/// A number as text, and exactly for the script.
#[derive(Clone, Debug, Serialize)]
struct ValueCell {
    text: String,
    value: String,
    /// The value just before, if there is a step.
    before: Option<String>,
}

impl ValueCell {
    fn of(before: f64, after: f64) -> Self {
        let (exact, before) = (exact(after), exact(before));
        Self { text: phrase::amount(after), before: (before != exact).then_some(before), value: exact }
    }
}

/// Formats a number with six significant digits, because a chart is at most a few thousand pixels high.
fn exact(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return "0".to_owned();
    }
    let unit = 10_f64.powf(value.abs().log10().floor() - 5.0);
    let rounded = (value / unit).round() * unit;
    if unit >= 1.0 { format!("{rounded:.0}") } else { format!("{rounded}") }
}

impl ScheduleChart {
    /// `None` if no unlock has a date and an amount.
    pub fn of(drawing: &ScheduleDrawing<'_>, symbol: &str) -> Option<Self> {
        let (chart, series) = (draw(drawing)?, schedule_series(drawing)?);
        let column = |(index, curve): (usize, &Curve)| AllocationColumn {
            class: format!("c{}", curve.color(drawing.by, index)),
            name: if curve.name.is_empty() { "unnamed".to_owned() } else { phrase::name(&curve.name) },
            recipient: curve.recipient.name(),
        };
        Some(Self {
            chart,
            allocations: drawing.curves.iter().enumerate().map(column).collect(),
            rows: rows(&series, drawing.max_supply, drawing.now),
            symbol: phrase::name(symbol),
            max_supply: drawing.max_supply.filter(|supply| supply.is_finite() && *supply > 0.0),
            has_former: drawing.former.is_some(),
            now: drawing.now.timestamp(),
            mark: drawing.next.as_ref().map(|next| next.interval.start.timestamp()),
            mark_label: drawing.next.as_ref().map(|next| next.short.clone()).unwrap_or_default(),
        })
    }
}

fn rows(series: &ScheduleSeries, max_supply: Option<f64>, now: Timestamp) -> Vec<DateRow> {
    let row = |(index, sample): (usize, &Sample)| {
        let (before, after) = (sample.before.iter().sum(), sample.after.iter().sum::<f64>());
        DateRow {
            at: sample.at.timestamp(),
            day: phrase::day(sample.at),
            is_today: sample.at == now,
            cells: sample.before.iter().zip(&sample.after).map(|(before, after)| ValueCell::of(*before, *after)).collect(),
            total: ValueCell::of(before, after),
            percent: super::token::supply::percent(Some(after), max_supply),
            former: series.former.get(index).map(|(before, after)| ValueCell::of(*before, *after)),
        }
    };
    series.samples.iter().enumerate().map(row).collect()
}
