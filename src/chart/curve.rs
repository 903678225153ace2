//! A vesting schedule as curves: the tokens of each allocation unlocked at any time.

use std::collections::BTreeMap;

use crate::recipient::Recipient;
use model::{Interval, Precision, Timestamp, time::days, wire::UnlockEvent};

/// The maximum number of allocations with a separate curve. All smaller ones share one.
pub const MAX_CURVES: usize = 11;
/// The maximum number of intervals between samples.
const MAX_SAMPLES: usize = 160;

/// The unlocked tokens of one allocation over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name of the allocation; empty if the source gives none.
    pub name: String,
    pub recipient: Recipient,
    /// Sorted by start.
    ramps: Vec<Ramp>,
}

/// Tokens that unlock linearly between two instants, or at once if both are equal. A cliff with week or month precision is spread over its
/// week or month.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ramp {
    start: Timestamp,
    end: Timestamp,
    amount: f64,
}

impl Ramp {
    fn at(&self, at: Timestamp) -> f64 {
        if at >= self.end {
            return self.amount;
        }
        if at <= self.start {
            return 0.0;
        }
        self.amount * (days(at - self.start) / days(self.end - self.start))
    }
}

impl Curve {
    /// Returns the number of its color in the palette of charts: by its position, or the color of the recipient in lists.
    pub fn color(&self, by: CurveBy, position: usize) -> usize {
        match (by, self.recipient) {
            (CurveBy::Allocation, _) => position.min(MAX_CURVES),
            (_, Recipient::Team) => 0,
            (_, Recipient::Private) => 1,
            (_, Recipient::Community) => 2,
            (_, Recipient::Public) => 3,
            (_, Recipient::Reserve) => 4,
            (_, Recipient::Liquidity) => 5,
            (_, Recipient::Other) => MAX_CURVES,
        }
    }

    /// Returns the tokens unlocked at an instant.
    pub fn at(&self, at: Timestamp) -> f64 {
        self.ramps.iter().map(|ramp| ramp.at(at)).sum()
    }

    pub fn total(&self) -> f64 {
        self.ramps.iter().map(|ramp| ramp.amount).sum()
    }

    pub fn begin(&self) -> Option<Timestamp> {
        self.ramps.iter().map(|ramp| ramp.start).min()
    }

    pub fn end(&self) -> Option<Timestamp> {
        self.ramps.iter().map(|ramp| ramp.end).max()
    }

    /// Returns the instants at which the curve has a step or a bend, in no particular order and possibly repeated.
    pub fn corners(&self) -> impl Iterator<Item = Timestamp> {
        self.ramps.iter().flat_map(|ramp| [ramp.start, ramp.end])
    }
}

/// The parts of a schedule that get a curve of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CurveBy {
    #[default]
    Allocation,
    /// The category of the recipients.
    Recipient,
}

impl CurveBy {
    /// Returns the name of a part.
    pub fn noun(self) -> &'static str {
        match self {
            CurveBy::Allocation => "allocation",
            CurveBy::Recipient => "recipient",
        }
    }
}

/// Returns one curve for each allocation name, largest total first. Omits unlocks without a date or a positive amount. Unlocks without an
/// allocation name share a curve with an empty name. The smallest curves beyond [`MAX_CURVES`] are added up in one last curve, such as `5
/// others`.
pub fn curves<'a>(events: impl IntoIterator<Item = &'a UnlockEvent>) -> Vec<Curve> {
    curves_by(CurveBy::Allocation, events)
}

/// Like [`curves`], with one curve for each part.
pub fn curves_by<'a>(by: CurveBy, events: impl IntoIterator<Item = &'a UnlockEvent>) -> Vec<Curve> {
    let mut by_name: BTreeMap<&'a str, Curve> = BTreeMap::new();
    let mut add = |name: &'a str, standard: Option<&str>, ramp: Option<Ramp>| {
        let Some(ramp) = ramp.filter(|ramp| ramp.amount.is_finite() && ramp.amount > 0.0) else { return };
        let recipient = Recipient::parse(standard);
        let name = if by == CurveBy::Recipient { recipient.name() } else { name };
        by_name.entry(name).or_insert_with(|| Curve { name: name.to_owned(), recipient, ramps: Vec::new() }).ramps.push(ramp);
    };
    for event in events {
        let date = event.unlock_date.copied();
        if let Some(cliffs) = event.cliff_unlocks.get() {
            let parts = cliffs.allocation_breakdown.items();
            for part in parts {
                let at = part.unlock_date.copied().or(date);
                let ramp = cliff(at, Precision::of(part.unlock_precision.as_str()), part.cliff_amount.copied());
                add(part.allocation_name.as_str().unwrap_or_default(), part.standard_allocation_name.as_str(), ramp);
            }
            if parts.is_empty() {
                add("", None, cliff(date, event.precision(), event.cliff_amount()));
            }
        }
        if let Some(linears) = event.linear_unlocks.get() {
            for part in linears.allocation_breakdown.items() {
                let start = part.begin_date.copied().or(date);
                let ramp = start.zip(part.linear_amount.copied()).map(|(start, amount)| {
                    let end = part.end_date.copied().filter(|end| *end > start).unwrap_or(start);
                    Ramp { start, end, amount }
                });
                add(part.allocation_name.as_str().unwrap_or_default(), part.standard_allocation_name.as_str(), ramp);
            }
        }
    }
    let mut curves: Vec<Curve> = by_name.into_values().collect();
    for curve in &mut curves {
        curve.ramps.sort_by_key(|ramp| ramp.start);
    }
    curves.sort_by(|a, b| b.total().total_cmp(&a.total()).then_with(|| a.name.cmp(&b.name)));
    bounded(curves)
}

fn cliff(at: Option<Timestamp>, precision: Precision, amount: Option<f64>) -> Option<Ramp> {
    let Interval { start, end, precision, .. } = Interval::of(at?, precision)?;
    // On a chart of several years, a day is an instant.
    let end = if precision <= Precision::Day { start } else { end };
    Some(Ramp { start, end, amount: amount? })
}

fn bounded(mut curves: Vec<Curve>) -> Vec<Curve> {
    if curves.len() > MAX_CURVES {
        let rest = curves.split_off(MAX_CURVES);
        let name = format!("{} others", rest.len());
        let mut ramps: Vec<Ramp> = rest.into_iter().flat_map(|curve| curve.ramps).collect();
        ramps.sort_by_key(|ramp| ramp.start);
        curves.push(Curve { name, recipient: Recipient::Other, ramps });
    }
    curves
}

/// The unlocked tokens of each curve just before and at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub at: Timestamp,
    pub before: Vec<f64>,
    pub after: Vec<f64>,
}

/// Samples the curves at each of their corners, or at even intervals if there are too many corners.
pub fn sampled(curves: &[Curve], from: Timestamp, until: Timestamp) -> Vec<Sample> {
    let mut corners: Vec<Timestamp> =
        curves.iter().flat_map(Curve::corners).filter(|at| (from..=until).contains(at)).chain([from, until]).collect();
    corners.sort_unstable();
    corners.dedup();
    if corners.len() > MAX_SAMPLES {
        let step = (until - from) / i32::try_from(MAX_SAMPLES).unwrap_or(160);
        corners = (0..=MAX_SAMPLES).map(|index| from + step * i32::try_from(index).unwrap_or(0)).collect();
    }
    sampled_at(curves, &corners)
}

/// Samples the curves at sorted times.
pub fn sampled_at(curves: &[Curve], times: &[Timestamp]) -> Vec<Sample> {
    let by_curve: Vec<Vec<(f64, f64)>> = curves.iter().map(|curve| values_at(curve, times)).collect();
    let value = |index: usize, side: fn(&(f64, f64)) -> f64| {
        by_curve.iter().map(|values| values.get(index).map_or(0.0, side)).collect::<Vec<f64>>()
    };
    let sample =
        |(index, at): (usize, &Timestamp)| Sample { at: *at, before: value(index, |v| v.0), after: value(index, |v| v.1) };
    times.iter().enumerate().map(sample).collect()
}

/// Returns `true` if two schedules differ visibly: by more than 1/500 of the total at some instant. An empty former schedule does not
/// count as a difference.
pub fn differs(is: &[Curve], was: &[Curve]) -> bool {
    if was.is_empty() {
        return false;
    }
    let whole: f64 = is.iter().map(Curve::total).sum::<f64>().max(was.iter().map(Curve::total).sum());
    let mut corners: Vec<Timestamp> = is.iter().chain(was).flat_map(Curve::corners).collect();
    corners.sort_unstable();
    corners.dedup();
    let sums = |curves: &[Curve]| {
        let mut sums = vec![0.0; corners.len()];
        for curve in curves {
            for (sum, (_, after)) in sums.iter_mut().zip(values_at(curve, &corners)) {
                *sum += after;
            }
        }
        sums
    };
    let (is, was) = (sums(is), sums(was));
    is.iter().zip(&was).any(|(is, was)| (is - was).abs() > whole / 500.0)
}

/// Returns the value of a curve just before and at each of the sorted times, in one pass.
fn values_at(curve: &Curve, times: &[Timestamp]) -> Vec<(f64, f64)> {
    let mut upcoming = curve.ramps.iter().peekable();
    let mut active: Vec<Ramp> = Vec::new();
    let mut ended = 0.0;
    let mut values = Vec::with_capacity(times.len());
    for at in times {
        // Ramps that start at this instant are added between the two values, so that cliffs form a step.
        while let Some(ramp) = upcoming.next_if(|ramp| ramp.start < *at) {
            active.push(*ramp);
        }
        let total_at = |active: &mut Vec<Ramp>, ended: &mut f64| {
            active.retain(|ramp| {
                let has_ended = ramp.end <= *at;
                if has_ended {
                    *ended += ramp.amount;
                }
                !has_ended
            });
            *ended + active.iter().map(|ramp| ramp.at(*at)).sum::<f64>()
        };
        let before = total_at(&mut active, &mut ended);
        while let Some(ramp) = upcoming.next_if(|ramp| ramp.start <= *at) {
            active.push(*ramp);
        }
        values.push((before, total_at(&mut active, &mut ended)));
    }
    values
}

#[cfg(test)]
mod tests;
