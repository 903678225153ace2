//! Past polls of an endpoint as a strip: a mark for each of the last cycles, the latest at the right. What failed is told by its
//! height and its place as much as by its colour.

use model::{PastPoll, PastPollState, Timestamp, format};

use super::svg::Svg;

/// Marks of a strip.
pub const MARKS: u32 = 40;
/// Of a mark, with the gap after it.
const STEP: f64 = 8.0;
const WIDTH: f64 = 5.5;
const HEIGHT: f64 = 22.0;
/// Longest account of a failure.
const MAX_REASON: usize = 160;

/// The strip of these cycles, the latest first.
pub fn draw(cycles: &[PastPoll]) -> String {
    let marks = usize::try_from(MARKS).unwrap_or(usize::MAX);
    let shown = cycles.get(..marks).unwrap_or(cycles);
    #[expect(clippy::cast_precision_loss, reason = "forty marks")]
    let x = |place: usize| place as f64 * STEP;
    let mut svg = Svg::stretched(x(marks) - (STEP - WIDTH), HEIGHT, "polls", &summary(shown));
    for place in 0..marks - shown.len() {
        svg.rect("none", x(place), 8.0, WIDTH, 6.0, 1.5);
    }
    for (back, cycle) in shown.iter().enumerate() {
        svg.mark(None, &title(cycle), |svg| mark(svg, cycle, x(marks - 1 - back)));
    }
    svg.finish()
}

fn mark(svg: &mut Svg, cycle: &PastPoll, x: f64) {
    // All of the column can be pointed at.
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

/// All of them in a sentence: what the drawing says to those who do not see it.
pub fn summary(cycles: &[PastPoll]) -> String {
    let of = |states: &[PastPollState]| cycles.iter().filter(|cycle| states.contains(&cycle.state())).count();
    let mut text = format!("The last {}", format::count(cycles.len(), "cycle"));
    let parts = [
        (of(&[PastPollState::Good]), "answered"),
        (of(&[PastPollState::Empty]), "empty"),
        (of(&[PastPollState::Deferred]), "put off"),
        (of(&[PastPollState::Partly]), "failed in part"),
        (of(&[PastPollState::Failed]), "failed"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    text.push_str(&format!(": {}", parts.join(", ")));
    if let Some(last) = cycles.iter().find(|cycle| cycle.failed > 0) {
        text.push_str(&format!("; something failed last on {}", instant(last.at)));
    }
    text
}

/// What a mark says: `9 Mar 2026 12:00: 60 polls, 2 failed: ARB: 503 Service Unavailable`.
fn title(cycle: &PastPoll) -> String {
    format!("{}: {}", instant(cycle.at), told(cycle))
}

/// How a cycle went, in words.
pub fn told(cycle: &PastPoll) -> String {
    let reason = cycle.failure.as_ref().map(|failure| {
        let token = failure.token.as_ref().map(|token| format!("{}: ", format::name(token))).unwrap_or_default();
        format!("{token}{}", cut(&format::sentence(&failure.message)))
    });
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let how = match (cycle.state(), cycle.polls) {
        (PastPollState::Good, _) => "answered".to_owned(),
        (PastPollState::Empty, _) => "answered, and nothing was there".to_owned(),
        (PastPollState::Deferred, _) => "put off: it costs more than was planned".to_owned(),
        (PastPollState::Failed, _) => format!("failed{reason}"),
        (PastPollState::Partly, _) => format!("{} failed{reason}", cycle.failed),
    };
    match cycle.polls {
        0 | 1 => how,
        PastPoll::MOST_COUNTED.. => format!("{} polls or more, {how}", PastPoll::MOST_COUNTED),
        polls => format!("{polls} polls, {how}"),
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_REASON {
        return text.to_owned();
    }
    text.chars().take(MAX_REASON).chain(['…']).collect()
}

fn instant(at: Timestamp) -> String {
    at.format("%-d %b %Y %H:%M").to_string()
}

#[cfg(test)]
mod tests;
