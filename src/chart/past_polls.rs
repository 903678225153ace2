//! A strip of recent polls of an endpoint, one mark for each cycle, latest on the right. Outcomes differ in height and position, not
//! only in color.

use model::{PastPoll, PastPollState, phrase};

use crate::svg::Svg;

/// The number of marks.
pub const MARKS: u32 = 40;
/// The width of a mark with the gap after it.
const STEP: f64 = 8.0;
const WIDTH: f64 = 5.5;
const HEIGHT: f64 = 22.0;

/// Draws the cycles, which are latest first.
pub fn draw(cycles: &[PastPoll]) -> String {
    let marks = usize::try_from(MARKS).unwrap_or(usize::MAX);
    let shown = cycles.get(..marks).unwrap_or(cycles);
    #[expect(clippy::cast_precision_loss, reason = "forty marks")]
    let x = |index: usize| index as f64 * STEP;
    let mut svg = Svg::stretched(x(marks) - (STEP - WIDTH), HEIGHT, "polls", &phrase::past_polls(shown));
    for index in 0..marks - shown.len() {
        svg.rect("none", x(index), 8.0, WIDTH, 6.0, 1.5);
    }
    for (back, cycle) in shown.iter().enumerate() {
        svg.marked_group(None, &format!("{}: {}", phrase::instant_iso(cycle.at), phrase::past_poll(cycle)), |svg| {
            mark(svg, cycle, x(marks - 1 - back))
        });
    }
    svg.finish()
}

/// Draws the mark of a cycle at the horizontal position `x`: an area of full height for the tooltip, and one or two bars whose color,
/// height, and position show the outcome.
fn mark(svg: &mut Svg, cycle: &PastPoll, x: f64) {
    // The tooltip appears for the whole column.
    svg.rect("aim", x, 0.0, WIDTH, HEIGHT, 0.0);
    match cycle.state() {
        PastPollState::Good => svg.rect("good", x, 4.0, WIDTH, 14.0, 1.5),
        PastPollState::Empty => svg.rect("empty", x + 0.8, 4.8, WIDTH - 1.6, 12.4, 1.2),
        PastPollState::Deferred => svg.rect("deferred", x, 8.0, WIDTH, 6.0, 1.5),
        PastPollState::Failed => svg.rect("failed", x, 0.0, WIDTH, HEIGHT, 1.5),
        PastPollState::Partly => {
            svg.rect("good", x, 4.0, WIDTH, 8.0, 1.5);
            svg.rect("failed", x, 13.0, WIDTH, 9.0, 1.5);
        }
    }
}

#[cfg(test)]
mod tests;
