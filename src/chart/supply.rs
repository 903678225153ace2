//! Stacked bars of the coming supply per week: linear unlocks, and cliff unlocks above them. Each bar has its total as text. Its values
//! appear above the bars for the pointer, for a touch, and for keyboard focus, without a script.

use crate::bars::{LINE, bars, write_values};
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

const WIDE: Canvas = Canvas { width: 1180.0, height: 320.0, left: 58.0, max_marks: 26, max_labels: 26 };
const NARROW: Canvas = Canvas { width: 360.0, height: 280.0, left: 46.0, max_marks: 26, max_labels: 5 };
/// The space above the bars, for the name of the axis and the values of one week.
const TOP: f64 = 72.0;
/// The space below the bars, for the dates and the name of the axis.
const BOTTOM: f64 = 40.0;
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

/// The values of a week as lines, with its exclusive end: `9 Mar to 16 Mar: $4.00M`, `$1.00M cliffs + $3.00M linear`.
fn lines(week: &SupplyWeek) -> Vec<String> {
    let days = format!("{} to {}", week.window.at.format("%-d %b"), week.window.until.format("%-d %b"));
    let mut lines = match phrase::supply_parts(&week.ahead) {
        parts if parts.is_empty() => vec![format!("{days}: {}", phrase::NOTHING_SCHEDULED)],
        parts => vec![format!("{days}: {}", phrase::sum_value(&week.ahead.total())), parts],
    };
    lines.extend(phrase::inexact_unlocks(&week.ahead.inexact));
    lines
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
    svg.text("hint", left, LINE, Anchor::Start, "USD per week");
    svg.text("", left + room / 2.0, height - 4.0, Anchor::Middle, "first day of the week");
    let gap = if is_wide { 14.0 } else { 5.0 };
    let every = weeks.len().div_ceil(canvas.max_labels).max(1);
    for (index, (bar, week)) in bars(&vec![1.0; weeks.len()], room, floor, gap).into_iter().zip(weeks).enumerate() {
        let (cliff, linear) = (scaled(usd(&week.ahead.cliff)), scaled(usd(&week.ahead.linear)));
        let (x, middle) = (left + gap / 2.0 + bar.x, left + gap / 2.0 + bar.x + bar.width / 2.0);
        let lines = lines(week);
        svg.focusable_group("bar", &lines.join("; "), |svg| {
            // Small bars have a large area for the pointer.
            svg.rect("aim", x - gap / 2.0, TOP, bar.width + gap, floor - TOP, 0.0);
            svg.rect("s-linear", x, floor - linear, bar.width, linear, 0.0);
            svg.rect("s-cliff", x, floor - linear - cliff, bar.width, cliff, 0.0);
            write_values(svg, middle, (left, width - RIGHT), &lines);
        });
        let total = week.ahead.total();
        if is_wide && total.count > 0 {
            let text = total.known_value().map_or_else(|| "?".to_owned(), scale::short_usd);
            svg.text("strong", middle, floor - linear - cliff - 5.0, Anchor::Middle, &text);
        }
        if index % every == 0 {
            svg.line("axis", (x, floor), (x, floor + 4.0));
            svg.text("name", x, floor + 17.0, Anchor::Start, &week.window.at.format("%-d %b").to_string());
        }
    }
    svg.line("axis", (left, floor), (width - RIGHT, floor));
    svg.finish()
}

#[cfg(test)]
mod tests;
