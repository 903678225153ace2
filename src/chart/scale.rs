//! Scales map values to coordinates and choose round values for the axis.

use chrono::{Datelike, Days, Months, NaiveDate, NaiveTime};

use model::{Timestamp, phrase, time::days};

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

/// Removes trailing zeros from the label of an axis: `$1.5B` for `$1.50B`.
pub fn tick(label: &str) -> String {
    let Some(point) = label.find('.') else { return label.to_owned() };
    let (whole, rest) = label.split_at(point);
    let unit = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, unit) = rest.split_at(unit);
    format!("{whole}{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// A value in USD with three digits, so that neighbors do not overlap: `$340M`.
pub fn short_usd(value: f64) -> String {
    let unit = 10_f64.powf(value.abs().max(1.0).log10().floor() - 2.0);
    tick(&phrase::usd((value / unit).round() * unit))
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
