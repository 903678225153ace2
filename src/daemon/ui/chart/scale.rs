//! Scales: from values to places, with round numbers along the axis.

use chrono::{Datelike, Days, Months, NaiveDate, NaiveTime};

use model::{Timestamp, time::days};

/// Time along the horizontal axis.
#[derive(Clone, Copy, Debug)]
pub struct TimeScale {
    pub from: Timestamp,
    pub until: Timestamp,
    /// Where `from` lies, and how far `until` is from it.
    pub left: f64,
    pub width: f64,
}

impl TimeScale {
    /// The place of an instant; what lies outside stands at the edge.
    pub fn x(&self, at: Timestamp) -> f64 {
        let whole = days(self.until - self.from);
        let part = if whole > 0.0 { (days(at - self.from) / whole).clamp(0.0, 1.0) } else { 0.0 };
        part.mul_add(self.width, self.left)
    }

    /// The first days of months within, of every so many months that about `most` of them are left.
    pub fn months(&self, most: usize) -> Vec<NaiveDate> {
        let count = (self.until.year() - self.from.year()) * 12 + self.until.month0() as i32 - self.from.month0() as i32 + 1;
        let most = i32::try_from(most.max(1)).unwrap_or(12);
        let every =
            [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].into_iter().find(|every| count / every < most).unwrap_or(12_000);
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

    /// Mondays within.
    pub fn weeks(&self) -> Vec<NaiveDate> {
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

/// The first instant of a day.
pub fn midnight(day: NaiveDate) -> Timestamp {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// Sizes of many orders: each step of ten is as high as the next.
#[derive(Clone, Copy, Debug)]
pub struct LogScale {
    low: f64,
    high: f64,
    bottom: f64,
    height: f64,
}

impl LogScale {
    /// Orders of magnitude that are drawn at most; what is smaller stands at the bottom.
    const MOST_ORDERS: f64 = 4.0;

    /// The scale on which these sizes lie between `bottom` and `height` above it. Sizes are positive; none where there is none.
    pub fn of(sizes: impl IntoIterator<Item = f64>, bottom: f64, height: f64) -> Option<Self> {
        let sizes = sizes.into_iter().filter(|size| size.is_finite() && *size > 0.0);
        let (least, most) = sizes.fold((f64::INFINITY, 0.0_f64), |(least, most), size| (least.min(size), most.max(size)));
        if most <= 0.0 {
            return None;
        }
        let high = (most * 1.25).log10();
        let low = least.log10().max(high - Self::MOST_ORDERS).min(high - 1.0) - 0.12;
        Some(Self { low, high, bottom, height })
    }

    pub fn y(&self, size: f64) -> f64 {
        let part = ((size.log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        part.mul_add(-self.height, self.bottom)
    }

    /// Round sizes within: powers of ten, and their doubles and fivefolds where there are few of those.
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

/// A round number beside an axis, without zeros that say nothing: `$1.50B` as `$1.5B`.
pub fn tick(words: &str) -> String {
    let Some(point) = words.find('.') else { return words.to_owned() };
    let (whole, rest) = words.split_at(point);
    let unit = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, unit) = rest.split_at(unit);
    format!("{whole}{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Round values from zero up to at least `most`, at most `count` steps of 1, 2 or 5 times a power of ten.
pub fn round_steps(most: f64, count: usize) -> Vec<f64> {
    if !most.is_finite() || most <= 0.0 {
        return vec![0.0];
    }
    let rough = most / f64::from(u32::try_from(count.max(1)).unwrap_or(5));
    let order = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * order).find(|step| *step >= rough).unwrap_or(10.0 * order);
    let mut steps = vec![0.0];
    let mut value = step;
    while value < most + step * 0.999 && steps.len() <= count + 1 {
        steps.push(value);
        value += step;
    }
    steps
}

#[cfg(test)]
mod tests;
