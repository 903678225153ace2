//! A small picture of a correction: bars of the affected unlocks before it, and below them, on the same scale, the bars after it. Both
//! rows have a name, so that no color is needed to distinguish them.

use chrono::TimeDelta;

use crate::curve::Curve;
use crate::svg::{Anchor, Svg};
use model::{Timestamp, phrase, time::days};

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 76.0;
/// The space for the names of the rows.
const LEFT: f64 = 44.0;
/// The height of the bars of a row.
const ROW: f64 = 24.0;
/// The y coordinates of the axes.
const AXES: [f64; 2] = [27.0, 58.0];
/// The number of bars in a row.
const SLOTS: i32 = 44;
/// The shortest range of dates, in days.
const MIN_DAYS: f64 = 90.0;
/// The longest range of dates, as a multiple of the shift, so that the shift stays visible.
const MAX_SHIFTS: f64 = 10.0;
/// The minimum height of a bar.
const MIN_BAR: f64 = 1.5;

/// Draws the affected unlocks before and after a correction that moved them by `shift_days`. `None` if the bars do not differ, or if
/// nothing has a date and an amount.
pub fn draw(was: &[Curve], is: &[Curve], shift_days: Option<f64>) -> Option<String> {
    let (from, until) = range(was, is, shift_days)?;
    let sums = [slots(was, from, until), slots(is, from, until)];
    let largest = sums.iter().flatten().copied().fold(0.0, f64::max);
    let [before, after] = &sums;
    let differs = before.iter().zip(after).any(|(was, is)| (was - is).abs() > largest / 200.0);
    if !differs || largest <= 0.0 {
        return None;
    }
    let label = format!("Affected unlocks from {} to {}: before and after", phrase::day(from), phrase::day(until));
    let mut svg = Svg::picture(WIDTH, HEIGHT, "before-after", &label);
    let step = (WIDTH - LEFT) / f64::from(SLOTS);
    for ((name, class, axis), sums) in [("before", "was", AXES[0]), ("after", "is", AXES[1])].into_iter().zip(&sums) {
        svg.text("", LEFT - 6.0, axis - 3.0, Anchor::End, name);
        svg.line("axis", (LEFT, axis), (WIDTH, axis));
        for (slot, sum) in (0_u32..).zip(sums).filter(|(_, sum)| **sum > largest / 1000.0) {
            let height = (sum / largest * ROW).max(MIN_BAR);
            svg.rect(class, f64::from(slot).mul_add(step, LEFT + 0.7), axis - height, step - 1.4, height, 0.0);
        }
    }
    svg.text("", LEFT, HEIGHT - 4.0, Anchor::Start, &phrase::day(from));
    svg.text("", WIDTH, HEIGHT - 4.0, Anchor::End, &phrase::day(until));
    Some(svg.finish())
}

/// Returns the dates between which the schedules differ, with some space around them.
fn range(was: &[Curve], is: &[Curve], shift_days: Option<f64>) -> Option<(Timestamp, Timestamp)> {
    let mut corners: Vec<Timestamp> = was.iter().chain(is).flat_map(Curve::corners).collect();
    corners.sort_unstable();
    corners.dedup();
    let total = |curves: &[Curve], at: Timestamp| curves.iter().map(|curve| curve.at(at)).sum::<f64>();
    let whole = was.iter().chain(is).map(Curve::total).sum::<f64>();
    let differs = |at: &&Timestamp| (total(was, **at) - total(is, **at)).abs() > whole / 5000.0;
    let first = *corners.iter().find(differs)?;
    let last = *corners.iter().rev().find(differs)?;
    // The schedules are equal again after the next corner.
    let last = corners.iter().find(|at| **at > last).copied().unwrap_or(last);
    let max_days = shift_days.map_or(f64::INFINITY, |shift| (shift.abs() * MAX_SHIFTS).max(MIN_DAYS));
    let length = days(last - first).max(1.0).min(max_days);
    let space = ((MIN_DAYS - length) / 2.0).max(length / 12.0);
    let delta = |days: f64| TimeDelta::try_seconds(seconds(days)).unwrap_or_default();
    Some((first.checked_sub_signed(delta(space))?, first.checked_add_signed(delta(length + space))?))
}

#[expect(clippy::cast_possible_truncation, reason = "dates are within a few thousand years")]
fn seconds(days: f64) -> i64 {
    (days * 86_400.0) as i64
}

/// Returns the tokens that unlock in each of [`SLOTS`] equal parts of the range.
fn slots(curves: &[Curve], from: Timestamp, until: Timestamp) -> Vec<f64> {
    let step = (until - from) / SLOTS;
    let before = |slot: i32| from + step * slot - TimeDelta::milliseconds(1);
    let total = |at: Timestamp| curves.iter().map(|curve| curve.at(at)).sum::<f64>();
    (0..SLOTS).map(|slot| (total(before(slot + 1)) - total(before(slot))).max(0.0)).collect()
}

#[cfg(test)]
mod tests;
