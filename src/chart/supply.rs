//! Stacked bars of the coming supply per week: linear unlocks, and cliff unlocks above them. Each bar has its total as text, and its parts
//! in a tooltip.

use crate::bars::bars;
use crate::scale::{self, round_steps};
use crate::svg::{Anchor, Svg};
use crate::{Canvas, Chart};
use model::{SumWindow, SupplyAhead, UnlockSum, phrase};

/// The supply of one week.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SupplyWeek {
    pub window: SumWindow,
    pub ahead: SupplyAhead,
}

const WIDE: Canvas = Canvas { width: 880.0, height: 300.0, left: 52.0, max_marks: 26, max_labels: 26 };
const NARROW: Canvas = Canvas { width: 360.0, height: 210.0, left: 46.0, max_marks: 26, max_labels: 5 };
/// Margins around the bars.
const TOP: f64 = 22.0;
const BOTTOM: f64 = 24.0;
const RIGHT: f64 = 10.0;
/// The number of steps of the axis.
const STEPS: usize = 4;

/// Draws the weeks in USD. `None` if no value is known, or all are zero.
pub fn draw(weeks: &[SupplyWeek]) -> Option<Chart> {
    let weeks = weeks.get(..weeks.len().min(WIDE.max_marks)).unwrap_or_default();
    let largest = weeks.iter().map(|week| usd(&week.ahead.cliff) + usd(&week.ahead.linear)).fold(0.0, f64::max);
    (largest > 0.0).then(|| Chart::new(WIDE, NARROW, |canvas| draw_on(canvas, weeks, largest)))
}

fn usd(sum: &UnlockSum) -> f64 {
    sum.known_value().filter(|value| value.is_finite() && *value > 0.0).unwrap_or_default()
}

/// A value with three digits, so that neighbors do not overlap: `$340M`.
fn short(value: f64) -> String {
    let unit = 10_f64.powf(value.abs().max(1.0).log10().floor() - 2.0);
    scale::tick(&phrase::usd((value / unit).round() * unit))
}

/// A week as text, with its exclusive end: `9 Mar to 16 Mar: $4.00M ($1.00M cliffs + $3.00M linear)`.
fn title(week: &SupplyWeek) -> String {
    let days = format!("{} to {}", week.window.at.format("%-d %b"), week.window.until.format("%-d %b"));
    match phrase::supply_parts(&week.ahead) {
        parts if parts.is_empty() => format!("{days}: {}", phrase::NOTHING_SCHEDULED),
        parts => format!("{days}: {} ({parts})", phrase::sum_value(&week.ahead.total())),
    }
}

fn draw_on(canvas: Canvas, weeks: &[SupplyWeek], largest: f64) -> String {
    let Canvas { width, height, left, .. } = canvas;
    let is_wide = width > 500.0;
    let label = format!("Coming supply in each of the next {} weeks, in USD", weeks.len());
    let mut svg = Svg::new(width, height, if is_wide { "on-wide" } else { "on-phone" }, &label);
    let (floor, room) = (height - BOTTOM, width - left - RIGHT);
    let steps = round_steps(largest, STEPS);
    let top = steps.last().copied().unwrap_or(largest).max(largest);
    let scaled = |value: f64| value / top * (floor - TOP);
    for step in &steps {
        let y = floor - scaled(*step);
        svg.line("grid-line", (left, y), (width - RIGHT, y));
        svg.text("", left - 7.0, y + 4.0, Anchor::End, &scale::tick(&phrase::usd(*step)));
    }
    let gap = if is_wide { 14.0 } else { 5.0 };
    let every = weeks.len().div_ceil(canvas.max_labels).max(1);
    for (index, (bar, week)) in bars(&vec![1.0; weeks.len()], room, floor, gap).into_iter().zip(weeks).enumerate() {
        let (cliff, linear) = (scaled(usd(&week.ahead.cliff)), scaled(usd(&week.ahead.linear)));
        let (x, middle) = (left + gap / 2.0 + bar.x, left + gap / 2.0 + bar.x + bar.width / 2.0);
        svg.marked_group(None, &title(week), |svg| {
            // Small bars have a large area for the pointer.
            svg.rect("aim", x, TOP, bar.width, floor - TOP, 0.0);
            svg.rect("s-linear", x, floor - linear, bar.width, linear, 0.0);
            svg.rect("s-cliff", x, floor - linear - cliff, bar.width, cliff, 0.0);
        });
        let total = week.ahead.total();
        if is_wide && total.count > 0 {
            let text = total.known_value().map_or_else(|| "?".to_owned(), short);
            svg.text("strong", middle, floor - linear - cliff - 5.0, Anchor::Middle, &text);
        }
        if index % every == 0 {
            svg.line("axis", (x, floor), (x, floor + 4.0));
            svg.text("name", x, height - 7.0, Anchor::Start, &week.window.at.format("%-d %b").to_string());
        }
    }
    svg.line("axis", (left, floor), (width - RIGHT, floor));
    svg.finish()
}

#[cfg(test)]
mod tests;
