//! A row of bars with the value of a token's unlocks in each upcoming week. The label and the tooltip contain the values.

use crate::{bars::bars, svg::Svg};
use model::{Timestamp, WeeksAhead, phrase};

const WIDTH: f64 = 84.0;
const HEIGHT: f64 = 18.0;
const GAP: f64 = 2.0;
/// The minimum height of the bar of a week with unlocks.
const MIN_HEIGHT: f64 = 2.0;

/// Draws the weeks. The first one begins at `now`.
pub fn draw(weeks: &WeeksAhead, now: Timestamp) -> String {
    let label = phrase::weeks_ahead(weeks, now);
    let mut svg = Svg::stretched(WIDTH - GAP, HEIGHT, "spark", &label);
    svg.marked_group(None, &label, |svg| {
        svg.rect("aim", 0.0, 0.0, WIDTH, HEIGHT, 0.0);
        for (bar, week) in bars(&weeks.map(|week| week.value), WIDTH, HEIGHT, GAP).into_iter().zip(weeks) {
            let height = bar.height.max(MIN_HEIGHT);
            match week.count {
                0 => svg.rect("none", bar.x, HEIGHT - 1.0, bar.width, 1.0, 0.0),
                _ => svg.rect("some", bar.x, HEIGHT - height, bar.width, height, 1.0),
            }
        }
    });
    svg.finish()
}

#[cfg(test)]
mod tests;
