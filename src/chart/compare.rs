//! Bars of the coming supply of several tokens side by side, in percent of the same base, for each period. The values of a period appear
//! above the bars for the pointer, for a touch, and for keyboard focus, without a script.

use crate::bars::{LINE, bars, write_values};
use crate::scale::{self, round_steps};
use crate::svg::{Anchor, Svg};
use crate::{Canvas, Chart};
use model::phrase;

/// A period with the value of each token.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedPeriod {
    /// The name on the axis: `9 Mar`.
    pub short: String,
    /// The name with the values: `9 Mar to 16 Mar`.
    pub long: String,
    /// Percent of the base, in the order of the tokens. `None` if unknown.
    pub shares: Vec<Option<f64>>,
}

const WIDE: Canvas = Canvas { width: 1180.0, height: 330.0, left: 62.0, max_marks: 26, max_labels: 26 };
const NARROW: Canvas = Canvas { width: 360.0, height: 300.0, left: 46.0, max_marks: 26, max_labels: 5 };
/// The space above the bars, for the values of a period: its name, and a line for each two tokens.
const TOP: f64 = 62.0;
const BOTTOM: f64 = 42.0;
const RIGHT: f64 = 10.0;
const STEPS: usize = 4;

/// Draws the periods. `tokens` has the symbols, `base` completes "% of", and `unit` names the periods. `None` if no value is known, or all
/// are zero.
pub fn draw(tokens: &[String], periods: &[ComparedPeriod], base: &str, unit: &str) -> Option<Chart> {
    let largest = periods.iter().flat_map(|period| &period.shares).flatten().copied().filter(|share| share.is_finite());
    let largest = largest.fold(0.0, f64::max);
    (largest > 0.0 && !tokens.is_empty())
        .then(|| Chart::new(WIDE, NARROW, |canvas| draw_on(canvas, tokens, periods, largest, (base, unit))))
}

/// The values of a period as lines: `9 Mar to 16 Mar`, then two tokens in each line.
fn lines(tokens: &[String], period: &ComparedPeriod) -> Vec<String> {
    let value = |share: &Option<f64>| share.map_or_else(|| "unknown".to_owned(), phrase::percent);
    let values: Vec<String> =
        tokens.iter().zip(&period.shares).map(|(token, share)| format!("{} {}", phrase::name(token), value(share))).collect();
    std::iter::once(period.long.clone()).chain(values.chunks(2).map(|two| two.join(" · "))).collect()
}

fn draw_on(canvas: Canvas, tokens: &[String], periods: &[ComparedPeriod], largest: f64, (base, unit): (&str, &str)) -> String {
    let Canvas { width, height, left, .. } = canvas;
    let is_wide = width > 500.0;
    let label = format!("Coming supply of {} by {unit}, in percent of {base}", phrase::names(tokens.iter().map(String::as_str)));
    let mut svg = Svg::new(width, height, if is_wide { "on-wide" } else { "on-phone" }, &label);
    let (floor, room) = (height - BOTTOM, width - left - RIGHT);
    let steps = round_steps(largest, STEPS);
    let top = steps.last().copied().unwrap_or(largest).max(largest);
    let scaled = |value: f64| value / top * (floor - TOP);
    for step in &steps {
        let y = floor - scaled(*step);
        svg.line("grid-line", (left, y), (width - RIGHT, y));
        svg.text("", left - 7.0, y + 4.0, Anchor::End, &scale::tick(&phrase::percent(*step)));
    }
    svg.text("hint", left, LINE, Anchor::Start, &format!("% of {base}"));
    svg.text("", left + room / 2.0, height - 4.0, Anchor::Middle, &format!("first day of the {unit}"));
    let gap = if is_wide { 16.0 } else { 5.0 };
    let every = periods.len().div_ceil(canvas.max_labels).max(1);
    for (index, (slot, period)) in bars(&vec![1.0; periods.len()], room, floor, gap).into_iter().zip(periods).enumerate() {
        let x = left + gap / 2.0 + slot.x;
        let lines = lines(tokens, period);
        svg.focusable_group("bar", &lines.join("; "), |svg| {
            svg.rect("aim", x - gap / 2.0, TOP, slot.width + gap, floor - TOP, 0.0);
            for (of, (bar, share)) in
                bars(&vec![1.0; period.shares.len()], slot.width, floor, 0.6).into_iter().zip(&period.shares).enumerate()
            {
                let share = share.filter(|share| share.is_finite() && *share > 0.0).unwrap_or_default();
                svg.rect(&format!("c{}", of.min(11)), x + bar.x, floor - scaled(share), bar.width, scaled(share), 0.0);
            }
            write_values(svg, x, (left, width - RIGHT), &lines);
        });
        if index % every == 0 {
            svg.line("axis", (x, floor), (x, floor + 4.0));
            svg.text("name", x, floor + 17.0, Anchor::Start, &period.short);
        }
    }
    svg.line("axis", (left, floor), (width - RIGHT, floor));
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_period_has_a_bar_for_each_token_and_its_values_as_text() {
        let tokens = ["ARB".to_owned(), "<b>".to_owned()];
        let period = |short: &str, shares: [Option<f64>; 2]| ComparedPeriod {
            short: short.to_owned(),
            long: format!("{short} to later"),
            shares: shares.to_vec(),
        };
        let periods = [period("9 Mar", [Some(1.5), Some(3.0)]), period("16 Mar", [Some(0.0), None])];
        let svg = draw(&tokens, &periods, "market cap", "week").expect("a chart").wide;
        assert!(svg.contains("9 Mar to later; ARB 1.50% · &lt;b&gt; 3.00%"), "{svg}");
        assert!(svg.contains("16 Mar to later; ARB 0.00% · &lt;b&gt; unknown"), "{svg}");
        assert_eq!((svg.matches("class=\"c0\"").count(), svg.matches("class=\"c1\"").count()), (2, 2));
        assert!(!svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn without_a_value_there_is_no_chart() {
        let period = ComparedPeriod { short: String::new(), long: String::new(), shares: vec![None, Some(0.0)] };
        assert_eq!(draw(&["A".to_owned(), "B".to_owned()], &[period], "market cap", "week").map(|chart| chart.wide), None);
    }
}
