//! Bars of the tokens that a schedule releases per month, with burns and buybacks below the axis, and a mark at the net of each past month.
//! The values of a month appear above the bars for the pointer, for a touch, and for keyboard focus, without a script.

use crate::bars::{LINE, bars, write_values};
use crate::scale::{self, round_steps};
use crate::svg::{Anchor, Svg};
use crate::{Canvas, Chart};
use model::{Timestamp, phrase};

/// The tokens of a calendar month.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowMonth {
    pub at: Timestamp,
    /// Tokens that the schedule releases.
    pub emission: f64,
    /// `None` if unknown, such as for a coming month.
    pub burned: Option<f64>,
    pub bought_back: Option<f64>,
    /// Emission without what was burned and bought back. `None` for a coming month, or if a part is unknown.
    pub net: Option<f64>,
}

const WIDE: Canvas = Canvas { width: 1180.0, height: 320.0, left: 62.0, max_marks: 36, max_labels: 12 };
const NARROW: Canvas = Canvas { width: 360.0, height: 290.0, left: 48.0, max_marks: 36, max_labels: 5 };
const TOP: f64 = 48.0;
const BOTTOM: f64 = 40.0;
const RIGHT: f64 = 10.0;
/// The number of steps on each side of the axis.
const STEPS: usize = 3;

/// Draws the months, oldest first. `None` if all amounts are zero.
pub fn draw(months: &[FlowMonth], now: Timestamp) -> Option<Chart> {
    let months = months.get(..months.len().min(WIDE.max_marks)).unwrap_or_default();
    let up = months.iter().map(|month| month.emission.max(month.net.unwrap_or_default())).fold(0.0, f64::max);
    let down = months.iter().map(|month| below(month).max(-month.net.unwrap_or_default())).fold(0.0, f64::max);
    (up > 0.0 || down > 0.0).then(|| Chart::new(WIDE, NARROW, |canvas| draw_on(canvas, months, (up, down), now)))
}

fn below(month: &FlowMonth) -> f64 {
    month.burned.unwrap_or_default() + month.bought_back.unwrap_or_default()
}

/// The values of a month as two lines.
fn lines(month: &FlowMonth, now: Timestamp) -> [String; 2] {
    let name = month.at.format("%b %Y");
    let first = match month.net {
        Some(net) => format!("{name}: net {}", phrase::amount(net)),
        None if month.at > now => format!("{name}, coming"),
        None => format!("{name}: net unknown"),
    };
    let part = |word: &str, amount: Option<f64>| amount.map(|amount| format!("{word} {}", phrase::amount(amount)));
    let parts = [part("emission", Some(month.emission)), part("burned", month.burned), part("bought back", month.bought_back)];
    [first, parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")]
}

fn draw_on(canvas: Canvas, months: &[FlowMonth], (up, down): (f64, f64), now: Timestamp) -> String {
    let Canvas { width, height, left, .. } = canvas;
    let is_wide = width > 500.0;
    let label = "Emission, burns, and buybacks in each month, in tokens";
    let mut svg = Svg::new(width, height, if is_wide { "on-wide" } else { "on-phone" }, label);
    let steps = round_steps(up.max(down), STEPS);
    let step = steps.get(1).copied().unwrap_or(1.0);
    let (above, below_axis) = ((up / step).ceil() * step, (down / step).ceil() * step);
    let bottom = height - BOTTOM;
    let unit = (bottom - TOP) / (above + below_axis);
    let y = |value: f64| TOP + (above - value) * unit;
    for value in
        steps.iter().flat_map(|step| [*step, -step]).filter(|value| *value <= above * 1.001 && -value <= below_axis * 1.001)
    {
        svg.line("grid-line", (left, y(value)), (width - RIGHT, y(value)));
        svg.text("", left - 7.0, y(value) + 4.0, Anchor::End, &scale::tick(&phrase::amount(value)));
    }
    let room = width - left - RIGHT;
    svg.text("hint", left, LINE, Anchor::Start, "tokens per month");
    svg.text("", left + room / 2.0, height - 4.0, Anchor::Middle, "month (UTC)");
    let gap = if is_wide { 10.0 } else { 3.0 };
    let every = months.len().div_ceil(canvas.max_labels).max(1);
    for (index, (bar, month)) in bars(&vec![1.0; months.len()], room, bottom, gap).into_iter().zip(months).enumerate() {
        let x = left + gap / 2.0 + bar.x;
        let lines = lines(month, now);
        svg.focusable_group("bar", &lines.join("; "), |svg| {
            svg.rect("aim", x - gap / 2.0, TOP, bar.width + gap, bottom - TOP, 0.0);
            let class = if month.at > now { "s-cliff coming" } else { "s-cliff" };
            svg.rect(class, x, y(month.emission), bar.width, month.emission * unit, 0.0);
            let burned = month.burned.unwrap_or_default();
            svg.rect("burn", x, y(0.0), bar.width, burned * unit, 0.0);
            svg.rect("buyback", x, y(-burned), bar.width, month.bought_back.unwrap_or_default() * unit, 0.0);
            if let Some(net) = month.net {
                svg.rect("net", x - 2.0, y(net) - 1.25, bar.width + 4.0, 2.5, 0.0);
            }
            write_values(svg, x, (left, width - RIGHT), &lines);
        });
        if month.at <= now && months.get(index + 1).is_none_or(|next| next.at > now) {
            let edge = x + bar.width + gap / 2.0;
            svg.line("today", (edge, TOP - 6.0), (edge, bottom));
            svg.text("halo", edge - 4.0, TOP - 8.0, Anchor::End, "until today");
        }
        if index % every == 0 {
            svg.text("name", x, bottom + 17.0, Anchor::Start, &month.at.format("%b %y").to_string());
        }
    }
    svg.line("axis strong", (left, y(0.0)), (width - RIGHT, y(0.0)));
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::time;

    #[test]
    fn burns_are_below_the_axis_and_a_coming_month_has_no_net() {
        let month = |at: &str, burned: Option<f64>, net: Option<f64>| FlowMonth {
            at: time(at),
            emission: 100.0,
            burned,
            bought_back: burned.map(|_| 10.0),
            net,
        };
        let months = [month("2026-02-01", Some(30.0), Some(60.0)), month("2026-04-01", None, None)];
        let svg = draw(&months, time("2026-03-10")).expect("a chart").wide;
        assert!(svg.contains("Feb 2026: net 60; emission 100 · burned 30 · bought back 10"), "{svg}");
        assert!(svg.contains("Apr 2026, coming; emission 100"), "{svg}");
        assert_eq!(svg.matches("class=\"net\"").count(), 1);
        let y = |class: &str| -> f64 {
            let mark = svg.split(&format!("class=\"{class}\"")).nth(1).expect("the mark");
            mark.split("y=\"").nth(1).and_then(|rest| rest.split('"').next()).and_then(|y| y.parse().ok()).expect("a number")
        };
        assert!(y("s-cliff") < y("net") && y("net") < y("burn") && y("burn") < y("buyback"), "{svg}");
    }

    #[test]
    fn without_amounts_there_is_no_chart() {
        let month = FlowMonth { at: time("2026-02-01"), emission: 0.0, burned: Some(0.0), bought_back: None, net: Some(0.0) };
        assert_eq!(draw(&[month], time("2026-03-10")).map(|chart| chart.wide), None);
    }
}
