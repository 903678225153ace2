//! The layout of a row of bars, and the values above it.

use crate::svg::{Anchor, Svg};

/// The height of a line of values.
pub(crate) const LINE: f64 = 16.0;
/// The maximum number of lines of values.
const MAX_LINES: u8 = 3;

/// A bar that stands on the bottom of its area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    pub x: f64,
    pub width: f64,
    /// Zero for a value that is not positive.
    pub height: f64,
}

/// Returns one bar for each value, in order. Each bar and the gap after it take an equal part of `width`, and the largest value has the
/// full `height`. A value that is not positive has the height zero. A bar is at least 0.5 wide, even if `gap` leaves less.
pub fn bars(values: &[f64], width: f64, height: f64, gap: f64) -> Vec<Bar> {
    #[expect(clippy::cast_precision_loss, reason = "a drawing has at most a few hundred bars")]
    let step = width / values.len().max(1) as f64;
    let largest = values.iter().copied().fold(0.0, f64::max);
    let mut x = 0.0;
    let bar = |value: &f64| {
        let fraction = if *value > 0.0 { (value / largest).min(1.0) } else { 0.0 };
        let bar = Bar { x, width: (step - gap).max(0.5), height: fraction * height };
        x += step;
        bar
    };
    values.iter().map(bar).collect()
}

/// Writes the values of the bar at `x` above all bars, where they cover none of them, on the side of the chart on which the bar is.
pub(crate) fn write_values(svg: &mut Svg, x: f64, (left, right): (f64, f64), lines: &[String]) {
    svg.group("g", &[("class", "values"), ("aria-hidden", "true")], |svg| {
        let (at, anchor) = if x > f64::midpoint(left, right) { (right, Anchor::End) } else { (left, Anchor::Start) };
        for (number, line) in (1..=MAX_LINES).zip(lines) {
            svg.text(if number == 1 { "strong" } else { "" }, at, f64::from(number) * LINE, anchor, line);
        }
    });
}

#[cfg(test)]
mod tests;
