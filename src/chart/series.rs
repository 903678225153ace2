//! The values of a vesting schedule at each date, for the table below its chart, from which a script draws the interactive chart.

use crate::curve::{Curve, Sample, sampled_at};
use crate::scale::{TimeScale, midnight};
use crate::schedule::{ScheduleDrawing, range};
use model::Timestamp;

/// The maximum number of dates.
const MAX_DATES: usize = 160;

/// The unlocked tokens of each allocation at each date.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleSeries {
    /// In the order of time. Each sample has one value for each curve of the drawing.
    pub samples: Vec<Sample>,
    /// The sums of the former schedule just before and at each date. Empty if the drawing has no former schedule.
    pub former: Vec<(f64, f64)>,
}

/// Returns the values of a drawing: at each step and bend of the schedule, at the first day of each month, and now. Omits months, then
/// steps, if there are too many. `None` if no unlock has a date and an amount.
pub fn schedule_series(drawing: &ScheduleDrawing<'_>) -> Option<ScheduleSeries> {
    let (from, until) = range(drawing)?;
    let former = drawing.former.unwrap_or_default();
    let times = times(drawing.curves.iter().chain(former), from, until, drawing.now);
    let sums = |sample: Sample| (sample.before.iter().sum(), sample.after.iter().sum());
    Some(ScheduleSeries {
        former: drawing.former.map(|former| sampled_at(former, &times).into_iter().map(sums).collect()).unwrap_or_default(),
        samples: sampled_at(drawing.curves, &times),
    })
}

fn times<'a>(curves: impl Iterator<Item = &'a Curve>, from: Timestamp, until: Timestamp, now: Timestamp) -> Vec<Timestamp> {
    let ends = [from, until, now.clamp(from, until)];
    let mut corners: Vec<Timestamp> = curves.flat_map(Curve::corners).filter(|at| (from..=until).contains(at)).collect();
    corners.sort_unstable();
    corners.dedup();
    if corners.len() + ends.len() > MAX_DATES {
        corners.clear();
    }
    let scale = TimeScale { from, until, left: 0.0, width: 1.0 };
    let room = MAX_DATES.saturating_sub(corners.len() + ends.len());
    let months = if room > 0 { scale.months(room) } else { Vec::new() };
    let mut times: Vec<Timestamp> = corners.into_iter().chain(months.into_iter().take(room).map(midnight)).chain(ends).collect();
    times.sort_unstable();
    times.dedup();
    times
}

#[cfg(test)]
mod tests;
