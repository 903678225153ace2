//! Time: instants, how exact a date is, the interval that it stands for, and lengths of time.

use std::{fmt, time::Duration};

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize, Serializer};

/// An instant, UTC.
pub type Timestamp = DateTime<Utc>;

/// Reads an ISO 8601 instant, or a bare date as its midnight UTC. Years before 1900 and after 2999 are taken for nonsense.
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

/// A time as the source mostly writes it, `2026-03-09T00:00:00Z`: some hundreds of them stand in one schedule.
fn whole_seconds(text: &str) -> Option<Timestamp> {
    let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'Z'] = bytes else { return None };
    let number = |digits: &[&u8]| {
        digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(**digit - b'0')))
    };
    let date = NaiveDate::from_ymd_opt(number(&[y1, y2, y3, y4])?.try_into().ok()?, number(&[m1, m2])?, number(&[d1, d2])?)?;
    Some(date.and_hms_opt(number(&[h1, h2])?, number(&[n1, n2])?, number(&[s1, s2])?)?.and_utc())
}

/// How exact a date is. The source may send words that nobody has seen: those stand for a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// An instant (`second`, `block`, `minute`).
    Second,
    /// Any time in that hour.
    Hour,
    /// Any time on that day.
    Day,
    /// Any time in that week, which begins on Sunday as the weeks of the source do.
    Week,
    /// Any time in that month.
    Month,
    /// Not decided: the date means nothing.
    ToBeDetermined,
}

impl Precision {
    /// Reads the source's word. Absent means what most of the source's dates mean: an instant. An unknown word never claims an hour.
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
        // Asked of every part of every record that is judged: as the source mostly writes it, it is found by one look, and nothing is
        // allocated.
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

/// The time that a date of limited precision stands for: from `start` to `end`, which is exclusive unless both are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// First instant.
    pub start: Timestamp,
    /// First instant after it; equal to `start` for a date exact to the second.
    pub end: Timestamp,
    /// How exact it is; never [`Precision::ToBeDetermined`].
    pub precision: Precision,
}

impl Interval {
    /// The interval of `date`; none where it is to be determined.
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
        Some(Self { start, end, precision })
    }

    /// The part of it by which sums count it, given the date that the source names: of a month or a week that day, else all of it.
    pub fn nominal(&self, date: Option<Timestamp>) -> Self {
        let of_day = date.filter(|_| matches!(self.precision, Precision::Month | Precision::Week));
        of_day.and_then(|date| Self::of(date, Precision::Day)).unwrap_or(*self)
    }

    /// Whether it lies wholly in the past.
    pub fn has_passed(&self, now: Timestamp) -> bool {
        now >= self.end
    }

    /// Days until it begins; zero from its first to its last instant, negative (days since its end) afterwards.
    pub fn days_until(&self, now: Timestamp) -> f64 {
        if now < self.start {
            days(self.start - now)
        } else if now < self.end {
            0.0
        } else {
            -days(now - self.end)
        }
    }

    /// Whether it begins within `lead` from now and has not passed: "within 7 days".
    pub fn is_within(&self, now: Timestamp, lead: TimeDelta) -> bool {
        !self.has_passed(now) && now.checked_add_signed(lead).is_none_or(|horizon| self.start <= horizon)
    }
}

/// A time ahead whose unlocks are summed. Each is counted once, by the part of its interval that [`Interval::nominal`] says: what may come
/// within that time too, since its month or week is not over, stands apart and is never added in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumWindow {
    /// Where it begins.
    pub at: Timestamp,
    /// Its last instant.
    pub until: Timestamp,
}

impl SumWindow {
    /// So long from `at` on.
    pub fn of(at: Timestamp, ahead: TimeDelta) -> Self {
        Self { at, until: at.checked_add_signed(ahead).unwrap_or(at) }
    }

    /// Whether it holds what is counted from `start` to `end`, milliseconds since the epoch. A date without an extent lies ahead up to
    /// itself.
    pub fn counts(&self, start: i64, end: i64) -> bool {
        let (at, until) = (self.at.timestamp_millis(), self.until.timestamp_millis());
        let is_over = if start == end { end < at } else { end <= at };
        !is_over && start <= until
    }

    /// Whether sums count what has not passed and may come within it; none where it begins only later.
    pub fn place(&self, interval: &Interval, date: Option<Timestamp>) -> Option<bool> {
        let counted = interval.nominal(date);
        let is_counted = || self.counts(counted.start.timestamp_millis(), counted.end.timestamp_millis());
        (interval.start <= self.until).then(is_counted)
    }
}

/// A span as days with fractions.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
pub fn days(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 86_400_000.0
}

/// So many days, where that is a length of time.
pub fn span_of_days(days: f64) -> Option<TimeDelta> {
    let millis = days * 86_400_000.0;
    // Within a hundred thousand years every whole millisecond is a double.
    (millis.abs() < 3.2e15).then(|| TimeDelta::milliseconds(millis.round() as i64))
}

/// A length of time as people write it: `30s`, `90m`, `7d`, `2w`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Span {
    /// For arithmetic on instants; ten thousand years where it is longer.
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
        humantime::parse_duration(text)
            .map(Span)
            .map_err(|_| format!("{text:?} is no length of time: write it like \"30s\", \"90m\", \"6h\", \"7d\" or \"2w\""))
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
