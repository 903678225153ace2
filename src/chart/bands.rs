//! Linear unlocks of several tokens in a month: a band for each token over the days in which it unlocks, with marks where its rate changes.

use crate::scale::TimeScale;
use crate::svg::{Anchor, Svg, number, shortened};
use crate::{Canvas, Chart};
use model::{SumWindow, Timestamp};

/// The band of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct BandRow {
    pub symbol: String,
    /// The URL of the token's page.
    pub href: String,
    /// The tooltip and accessible name.
    pub title: String,
    /// The days in which it unlocks.
    pub window: SumWindow,
    /// The text at the end of the row.
    pub size: String,
    /// The instants at which the rate changes, and whether it rises.
    pub changes: Vec<(Timestamp, bool)>,
}

const WIDE: Canvas = Canvas { width: 1180.0, height: 0.0, left: 96.0, max_marks: 24, max_labels: 31 };
const NARROW: Canvas = Canvas { width: 360.0, height: 0.0, left: 66.0, max_marks: 24, max_labels: 5 };
/// The height of a row, and of the axis above the rows.
const ROW: f64 = 24.0;
const AXIS: f64 = 24.0;
const BAND: f64 = 12.0;
/// The space for the sizes.
const RIGHT: f64 = 84.0;
/// The maximum length of a symbol.
const MAX_SYMBOL: usize = 12;
const MAX_SYMBOL_NARROW: usize = 6;

/// Draws the bands. `days` are the periods of the days. `None` without a band.
pub fn draw(rows: &[BandRow], days: &[SumWindow], now: Timestamp) -> Option<Chart> {
    let rows = rows.get(..rows.len().min(WIDE.max_marks)).unwrap_or_default();
    let (first, last) = (days.first()?, days.last()?);
    let month = SumWindow { at: first.at, until: last.until };
    (!rows.is_empty()).then(|| Chart::new(WIDE, NARROW, |canvas| draw_on(canvas, rows, days, month, now)))
}

fn draw_on(canvas: Canvas, rows: &[BandRow], days: &[SumWindow], month: SumWindow, now: Timestamp) -> String {
    let is_wide = canvas.width > 500.0;
    #[expect(clippy::cast_precision_loss, reason = "a few rows")]
    let height = AXIS + ROW * rows.len() as f64;
    let label = format!("Linear unlocks of {} by day", model::phrase::count(rows.len(), "token"));
    let mut svg = Svg::new(canvas.width, height, if is_wide { "on-wide" } else { "on-phone" }, &label);
    let time = TimeScale { from: month.at, until: month.until, left: canvas.left, width: canvas.width - canvas.left - RIGHT };
    let every = days.len().div_ceil(canvas.max_labels).max(1);
    for (index, day) in days.iter().enumerate().filter(|(index, _)| index % every == 0) {
        let x = time.x(day.at);
        if index > 0 {
            svg.line("grid-line", (x, AXIS - 4.0), (x, height));
        }
        svg.text("", time.x(day.at + (day.until - day.at) / 2), AXIS - 9.0, Anchor::Middle, &day.until.format("%-d").to_string());
    }
    let mut top = AXIS;
    for row in rows {
        let middle = top + ROW / 2.0;
        svg.marked_group(Some(&row.href), &row.title, |svg| {
            svg.rect("aim", 0.0, top, canvas.width, ROW, 0.0);
            let symbol = shortened(&row.symbol, if is_wide { MAX_SYMBOL } else { MAX_SYMBOL_NARROW });
            svg.text("strong", 0.0, middle + 4.0, Anchor::Start, &symbol);
            let (left, right) = (time.x(row.window.at), time.x(row.window.until));
            svg.rect("s-linear", left, middle - BAND / 2.0, (right - left).max(2.0), BAND, 3.0);
            for (at, is_rise) in &row.changes {
                change(svg, time.x(*at), middle, *is_rise);
            }
            svg.text("name", canvas.width, middle + 4.0, Anchor::End, &row.size);
        });
        top += ROW;
    }
    if month.at <= now && now <= month.until {
        svg.line("today", (time.x(now), AXIS - 4.0), (time.x(now), height));
    }
    svg.finish()
}

/// Draws a triangle: upward where the rate rises, downward where it falls.
fn change(svg: &mut Svg, x: f64, middle: f64, is_rise: bool) {
    let (tip, base) = if is_rise { (middle - 6.0, middle + 5.0) } else { (middle + 6.0, middle - 5.0) };
    let [left, at, right] = [x - 5.5, x, x + 5.5].map(number);
    let (tip, base) = (number(tip), number(base));
    svg.path("step", &format!("M{at} {tip}L{right} {base}L{left} {base}Z"));
}

#[cfg(test)]
mod tests;
