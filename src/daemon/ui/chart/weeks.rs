//! What unlocks of a token in each of the coming weeks, as a row of small bars: the tallest is the largest of its own. Their numbers
//! stand in what the drawing says to those who do not see it, and to who points at it.

use chrono::TimeDelta;

use super::svg::Svg;
use model::{AheadSum, Timestamp, WEEKS, WeeksAhead, format};

/// Of a bar, with the gap after it.
const STEP: f64 = 7.0;
const WIDTH: f64 = 5.0;
const HEIGHT: f64 = 18.0;
/// The least that is seen of a week in which something unlocks.
const LEAST: f64 = 2.0;

/// The bars of these weeks, the first of which begins at `now`.
pub fn draw(weeks: &WeeksAhead, now: Timestamp) -> String {
    let words = words(weeks, now);
    #[expect(clippy::cast_precision_loss, reason = "twelve bars")]
    let x = |place: usize| place as f64 * STEP;
    let mut svg = Svg::stretched(x(WEEKS) - (STEP - WIDTH), HEIGHT, "spark", &words);
    let largest = weeks.iter().map(|week| week.value).fold(0.0, f64::max);
    svg.mark(None, &words, |svg| {
        svg.rect("aim", 0.0, 0.0, x(WEEKS), HEIGHT, 0.0);
        for (place, week) in weeks.iter().enumerate() {
            match height(week, largest) {
                Some(height) => svg.rect("some", x(place), HEIGHT - height, WIDTH, height, 1.0),
                None => svg.rect("none", x(place), HEIGHT - 1.0, WIDTH, 1.0, 0.0),
            }
        }
    });
    svg.finish()
}

/// How tall the bar of a week is; none where nothing unlocks.
fn height(week: &AheadSum, largest: f64) -> Option<f64> {
    let part = if largest > 0.0 { (week.value / largest).clamp(0.0, 1.0) } else { 0.0 };
    (week.count > 0).then(|| (part * HEIGHT).max(LEAST))
}

/// The same in words: `12 weeks: 9 Mar $1.20M, 6 Apr $3.10M in 2 unlocks`.
pub fn words(weeks: &WeeksAhead, now: Timestamp) -> String {
    let week = |(place, week): (usize, &AheadSum)| {
        if week.count == 0 {
            return None;
        }
        let begin = now.checked_add_signed(TimeDelta::weeks(i64::try_from(place).ok()?))?;
        let value = if week.value > 0.0 { format::usd(week.value) } else { "of unknown value".to_owned() };
        let several = if week.count > 1 { format!(" in {} unlocks", week.count) } else { String::new() };
        Some(format!("{} {value}{several}", begin.format("%-d %b")))
    };
    let told: Vec<String> = weeks.iter().enumerate().filter_map(week).collect();
    match told.is_empty() {
        true => format!("Nothing unlocks in the coming {WEEKS} weeks"),
        false => format!("By week, from: {}", told.join(", ")),
    }
}

#[cfg(test)]
mod tests;
