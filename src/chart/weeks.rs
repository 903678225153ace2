//! A row of bars with the supply of a token in each coming week, cliff unlocks above linear ones. The label and the tooltip contain the
//! values.

use crate::{bars::bars, svg::Svg};
use model::{KnownSupply, SupplyAhead, Timestamp, UnlockSum, phrase};

const WIDTH: f64 = 84.0;
const HEIGHT: f64 = 18.0;
const GAP: f64 = 2.0;
/// The minimum height of the bar of a week with unlocks.
const MIN_HEIGHT: f64 = 2.0;

/// Draws the weeks, of which `known` is known. The first one begins at `now`. The sizes are USD, or tokens if no value is known.
pub fn draw(weeks: &[SupplyAhead], known: KnownSupply, now: Timestamp) -> String {
    let label = phrase::weeks_ahead(weeks, known, now);
    let in_tokens = phrase::is_in_tokens(weeks);
    let size =
        |sum: &UnlockSum| Some(if in_tokens { sum.amount } else { sum.value }).filter(|size| size.is_finite()).unwrap_or(0.0);
    let totals: Vec<f64> = weeks.iter().map(|week| size(&week.cliff) + size(&week.linear)).collect();
    let mut svg = Svg::stretched(WIDTH - GAP, HEIGHT, "spark", &label);
    svg.marked_group(None, &label, |svg| {
        svg.rect("aim", 0.0, 0.0, WIDTH, HEIGHT, 0.0);
        for ((bar, week), total) in bars(&totals, WIDTH, HEIGHT, GAP).into_iter().zip(weeks).zip(&totals) {
            if known == KnownSupply::None || week.total().count == 0 {
                svg.rect("none", bar.x, HEIGHT - 1.0, bar.width, 1.0, 0.0);
                continue;
            }
            let height = bar.height.max(MIN_HEIGHT);
            let linear = if *total > 0.0 { size(&week.linear) / total } else { 0.0 };
            // The only part, or parts of unknown sizes, take the whole bar.
            let linear = if week.cliff.count == 0 { height } else { height * linear.clamp(0.0, 1.0) };
            if linear < height {
                svg.rect("some", bar.x, HEIGHT - height, bar.width, height - linear, 1.0);
            }
            if linear > 0.0 {
                svg.rect("flow", bar.x, HEIGHT - linear, bar.width, linear, 1.0);
            }
        }
    });
    svg.finish()
}

#[cfg(test)]
mod tests;
