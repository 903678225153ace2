//! Scales map values to coordinates and choose round values for the axis.

use chrono::{Datelike, Days, Months, NaiveDate, NaiveTime};

use model::{Timestamp, time::days};

/// A linear scale of time on the horizontal axis.
#[derive(Clone, Copy, Debug)]
pub struct TimeScale {
    pub from: Timestamp,
    pub until: Timestamp,
    /// The coordinate of `from`.
    pub left: f64,
    pub width: f64,
}

impl TimeScale {
    /// Returns the coordinate of an instant, clamped to the scale.
    pub fn x(&self, at: Timestamp) -> f64 {
        let whole = days(self.until - self.from);
        let fraction = if whole > 0.0 { (days(at - self.from) / whole).clamp(0.0, 1.0) } else { 0.0 };
        fraction.mul_add(self.width, self.left)
    }

    /// Returns first days of months, at most about `max`, at an even interval.
    pub fn months(&self, max: usize) -> Vec<NaiveDate> {
        let count = (self.until.year() - self.from.year()) * 12 + self.until.month0() as i32 - self.from.month0() as i32 + 1;
        let max = i32::try_from(max.max(1)).unwrap_or(12);
        let every = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].into_iter().find(|every| count / every < max).unwrap_or(12_000);
        let mut month = self.from.date_naive().with_day(1).unwrap_or_default();
        let mut found = Vec::new();
        while midnight(month) <= self.until && found.len() < 200 {
            if midnight(month) >= self.from && (month.year() * 12 + month.month0() as i32) % every == 0 {
                found.push(month);
            }
            let Some(next) = month.checked_add_months(Months::new(1)) else { break };
            month = next;
        }
        found
    }

    pub fn mondays(&self) -> Vec<NaiveDate> {
        let first = self.from.date_naive();
        let back = u64::from(first.weekday().num_days_from_monday());
        let mut day = first.checked_sub_days(Days::new(back)).unwrap_or(first);
        let mut found = Vec::new();
        while midnight(day) <= self.until && found.len() < 60 {
            if midnight(day) >= self.from {
                found.push(day);
            }
            let Some(next) = day.checked_add_days(Days::new(7)) else { break };
            day = next;
        }
        found
    }
}

pub fn midnight(day: NaiveDate) -> Timestamp {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// A logarithmic scale of sizes on the vertical axis.
#[derive(Clone, Copy, Debug)]
pub struct LogScale {
    low: f64,
    high: f64,
    bottom: f64,
    height: f64,
}

impl LogScale {
    /// The maximum range in orders of magnitude. Smaller sizes are at the bottom.
    const MAX_ORDERS: f64 = 4.0;

    /// Returns the scale for these sizes. Ignores sizes that are not positive and finite. `None` if no size is left.
    pub fn new(sizes: impl IntoIterator<Item = f64>, bottom: f64, height: f64) -> Option<Self> {
        let sizes = sizes.into_iter().filter(|size| size.is_finite() && *size > 0.0);
        let (min, max) = sizes.fold((f64::INFINITY, 0.0_f64), |(min, max), size| (min.min(size), max.max(size)));
        if max <= 0.0 {
            return None;
        }
        let high = (max * 1.25).log10();
        let low = min.log10().max(high - Self::MAX_ORDERS).min(high - 1.0) - 0.12;
        Some(Self { low, high, bottom, height })
    }

    pub fn y(&self, size: f64) -> f64 {
        let fraction = ((size.log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        fraction.mul_add(-self.height, self.bottom)
    }

    /// Returns round sizes: powers of ten, and also two and five times a power of ten if the range is small.
    pub fn ticks(&self) -> Vec<f64> {
        let factors: &[f64] = if self.high - self.low > 2.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (self.low.floor().clamp(-30.0, 300.0), self.high.ceil().clamp(-30.0, 300.0));
        let mut ticks = Vec::new();
        let mut order = first;
        while order <= last && ticks.len() < 30 {
            ticks.extend(factors.iter().map(|factor| factor * 10_f64.powf(order)));
            order += 1.0;
        }
        ticks.retain(|tick| (self.low..=self.high).contains(&tick.log10()));
        ticks
    }
}

/// Removes trailing zeros from the label of an axis: `$1.5B` for `$1.50B`.
pub fn tick(label: &str) -> String {
    let Some(point) = label.find('.') else { return label.to_owned() };
    let (whole, rest) = label.split_at(point);
    let unit = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, unit) = rest.split_at(unit);
    format!("{whole}{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns round values from zero to at least `max`, in about `count` steps of 1, 2, or 5 times a power of ten. Only zero if `max` is not
/// positive and finite.
pub fn round_steps(max: f64, count: usize) -> Vec<f64> {
    if !max.is_finite() || max <= 0.0 {
        return vec![0.0];
    }
    let rough = max / f64::from(u32::try_from(count.max(1)).unwrap_or(5));
    let order = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * order).find(|step| *step >= rough).unwrap_or(10.0 * order);
    let mut steps = vec![0.0];
    let mut value = step;
    while value < max + step * 0.999 && steps.len() <= count + 1 {
        steps.push(value);
        value += step;
    }
    steps
}

#[cfg(test)]
mod tests;
