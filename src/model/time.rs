//! Instants, the precision of dates and the intervals they stand for, and durations.

use std::{fmt, time::Duration};

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize, Serializer};

use crate::supply::Inclusion;

/// The longest interval that an imprecise date can cover, a month. An unlock that started this long ago may not have passed yet.
pub const LONGEST_INTERVAL: TimeDelta = TimeDelta::days(31);

/// An instant in UTC.
pub type Timestamp = DateTime<Utc>;

/// Parses an ISO 8601 instant, or a date as its midnight in UTC. Returns `None` for years before 1900 or after 2999.
pub fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    whole_seconds(text)
        .or_else(|| DateTime::parse_from_rfc3339(text).map(|at| at.with_timezone(&Utc)).ok())
        .or_else(|| {
            let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
            Some(date.and_time(NaiveTime::MIN).and_utc())
        })
        .filter(|at| (1900..3000).contains(&at.year()))
}

/// Parses `2026-03-09T00:00:00Z`, the usual form of the source. A schedule has hundreds of dates, so this path avoids the general
/// parser.
fn whole_seconds(text: &str) -> Option<Timestamp> {
    let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'Z'] = bytes else { return None };
    let number = |digits: &[&u8]| {
        digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(**digit - b'0')))
    };
    let date = NaiveDate::from_ymd_opt(number(&[y1, y2, y3, y4])?.try_into().ok()?, number(&[m1, m2])?, number(&[d1, d2])?)?;
    Some(date.and_hms_opt(number(&[h1, h2])?, number(&[n1, n2])?, number(&[s1, s2])?)?.and_utc())
}

/// The first year of real dates. Sources write dates of the early 1970s for events without a date.
const FIRST_YEAR: i32 = 1976;

/// Returns whether a date only stands for a missing one.
#[must_use]
pub fn is_placeholder(at: Timestamp) -> bool {
    at.year() < FIRST_YEAR
}

/// The precision of a date. Unknown words of the source count as `Day`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// An instant: `second`, `block`, or `minute`.
    Second,
    /// Any time in the hour.
    Hour,
    /// Any time on the day.
    Day,
    /// Any time in the week. Weeks start on Sunday, as they do for the source.
    Week,
    /// Any time in the month.
    Month,
    /// No date is announced; the source's date has no meaning.
    ToBeDetermined,
}

impl Precision {
    /// Parses the source's word. A missing word means an instant, as most are. An unknown word counts as a day, which claims
    /// less.
    pub fn of(word: Option<&str>) -> Self {
        const WORDS: [(&str, Precision); 8] = [
            ("second", Precision::Second),
            ("block", Precision::Second),
            ("minute", Precision::Second),
            ("hour", Precision::Hour),
            ("week", Precision::Week),
            ("month", Precision::Month),
            ("tobedetermined", Precision::ToBeDetermined),
            ("tbd", Precision::ToBeDetermined),
        ];
        let Some(word) = word else { return Precision::Second };
        // Called for each part of each record: the usual words are found without allocation.
        match word {
            "second" => return Precision::Second,
            "day" => return Precision::Day,
            "month" => return Precision::Month,
            _ => {}
        }
        let plain = || word.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
        WORDS.iter().find(|(known, _)| plain().eq(known.bytes())).map_or(Precision::Day, |(_, precision)| *precision)
    }
}

/// The interval that a date stands for. `end` is exclusive unless it equals `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// The first instant.
    pub start: Timestamp,
    /// The first instant after the interval; equal to `start` if the date is an instant.
    pub end: Timestamp,
    /// Never [`Precision::ToBeDetermined`].
    pub precision: Precision,
    /// The nominal date of a month or week: the source's own date. `None` for dates that are at least as exact as a day, and for
    /// intervals that an earlier version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nominal: Option<Timestamp>,
}

impl Interval {
    /// Returns the interval that `date` stands for: the hour, day, week (from Sunday), or month around it, in UTC. For
    /// [`Precision::Second`], start and end are both `date`. `None` if the date is to be determined.
    pub fn of(date: Timestamp, precision: Precision) -> Option<Self> {
        let day = date.date_naive();
        let midnight = |date: chrono::NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
        let (start, end) = match precision {
            Precision::ToBeDetermined => return None,
            Precision::Second => (date, date),
            Precision::Hour => {
                let start = date - TimeDelta::seconds(date.timestamp().rem_euclid(3600));
                (start, start.checked_add_signed(TimeDelta::hours(1))?)
            }
            Precision::Day => (midnight(day), midnight(day.checked_add_days(Days::new(1))?)),
            Precision::Week => {
                let sunday = day.checked_sub_days(Days::new(u64::from(day.weekday().num_days_from_sunday())))?;
                (midnight(sunday), midnight(sunday.checked_add_days(Days::new(7))?))
            }
            Precision::Month => {
                let first = day.with_day(1)?;
                (midnight(first), midnight(first.checked_add_months(Months::new(1))?))
            }
        };
        let nominal = matches!(precision, Precision::Week | Precision::Month).then_some(date);
        Some(Self { start, end, precision, nominal })
    }

    /// Returns the nominal day of a month or week. `None` if the interval has no nominal date.
    pub fn nominal_day(&self) -> Option<Self> {
        Self::of(self.nominal?, Precision::Day)
    }

    /// Returns whether the nominal day is over and the interval is not: the event was expected and may still occur.
    pub fn is_unconfirmed(&self, now: Timestamp) -> bool {
        !self.has_passed(now) && self.nominal_day().is_some_and(|day| day.has_passed(now))
    }

    /// Returns whether the whole of `other` lies in this interval.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns whether the whole interval is in the past.
    pub fn has_passed(&self, now: Timestamp) -> bool {
        now >= self.end
    }

    /// Returns the days until the interval starts, zero during the interval, and minus the days since its end after it.
    pub fn days_until(&self, now: Timestamp) -> f64 {
        if now < self.start {
            days(self.start - now)
        } else if now < self.end {
            0.0
        } else {
            -days(now - self.end)
        }
    }

    /// Returns whether the interval starts within `lead` from `now` and has not passed.
    pub fn is_within(&self, now: Timestamp, lead: TimeDelta) -> bool {
        !self.has_passed(now) && now.checked_add_signed(lead).is_none_or(|horizon| self.start <= horizon)
    }
}

/// A period whose unlocks are summed. See [`crate::supply::SupplyAhead`] for what it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumWindow {
    /// The start, exclusive: an unlock at this instant has happened.
    pub at: Timestamp,
    /// The end, inclusive.
    pub until: Timestamp,
}

impl SumWindow {
    /// Returns the period of length `ahead` from `at`.
    pub fn of(at: Timestamp, ahead: TimeDelta) -> Self {
        Self { at, until: at.checked_add_signed(ahead).unwrap_or(at) }
    }

    /// Returns how the period includes an unlock that can happen from `starts_at` to `ends_at` (exclusive, unless both are equal), and
    /// whose nominal date is `nominal_at`. All are in milliseconds since the epoch. `None` if it cannot happen in the period.
    pub fn inclusion(&self, starts_at: i64, ends_at: i64, nominal_at: i64) -> Option<Inclusion> {
        let (at, until) = (self.at.timestamp_millis(), self.until.timestamp_millis());
        if at < nominal_at && nominal_at <= until {
            return Some(Inclusion::Counted);
        }
        (ends_at > at && starts_at <= until && starts_at < ends_at).then_some(Inclusion::Inexact)
    }

    /// Returns the length in days, with fractions. `None` if it is not positive.
    pub fn days(&self) -> Option<f64> {
        Some(days(self.until - self.at)).filter(|days| *days > 0.0)
    }
}

/// Converts a duration to days, with fractions.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
pub fn days(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 86_400_000.0
}

/// Converts days to a duration; `None` if out of range.
pub fn span_of_days(days: f64) -> Option<TimeDelta> {
    let millis = days * 86_400_000.0;
    // Within 100,000 years, a double represents every whole millisecond.
    (millis.abs() < 3.2e15).then(|| TimeDelta::milliseconds(millis.round() as i64))
}

/// A duration as config and rules write it: `30s`, `90m`, `7d`, `2w`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Span {
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// Converts for arithmetic on instants. Capped at ten thousand years.
    pub fn delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::from_std(self.0).unwrap_or(chrono::TimeDelta::days(3_650_000)).min(chrono::TimeDelta::days(3_650_000))
    }
}

impl std::str::FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text == "0" {
            return Ok(Span(Duration::ZERO));
        }
        humantime::parse_duration(text).map(Span).map_err(|_| {
            format!("{text:?} is not a valid duration: expected a form like \"30s\", \"90m\", \"6h\", \"7d\", or \"2w\"")
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let days = seconds / 86_400;
        if days > 0 && seconds.is_multiple_of(86_400) {
            return write!(f, "{days}d");
        }
        humantime::format_duration(self.0).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
