//! Instants, dates, and durations. All times are UTC.

use chrono::{SecondsFormat, TimeDelta};

use crate::{Interval, Precision, Timestamp, span_of_days};

/// An instant in a message or on a page: `12 Mar 2026, 09:00 UTC`.
pub fn instant(at: Timestamp) -> String {
    at.format("%-d %b %Y, %H:%M UTC").to_string()
}

/// An instant in a table, a log, or a command: `2026-03-12 09:00 UTC`.
pub fn instant_iso(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// [`instant_iso`] with seconds, for events that are seconds apart: `2026-03-12 09:00:05 UTC`.
pub fn instant_iso_seconds(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// An instant as JSON and logs have it: `2026-03-12T09:00:00.250Z`.
pub fn rfc3339(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// A day: `12 Mar 2026`.
pub fn day(at: Timestamp) -> String {
    at.format("%-d %b %Y").to_string()
}

/// A month: `March 2026`.
pub fn month(at: Timestamp) -> String {
    at.format("%B %Y").to_string()
}

/// When something is due, as exactly as the source knows: `on 12 Mar 2026`, `on 12 Mar 2026, 09:00 UTC`, or `in March 2026 (~12 Mar; the
/// source confirms only the month)`. [`when_at`] is for texts that state what is true now.
pub fn when(interval: &Interval) -> String {
    let imprecise = |span: &str, text: String| match interval.nominal {
        Some(nominal) => format!("{text} (~{}{CONFIRMS_ONLY}{span})", nominal.format("%-d %b")),
        None => text,
    };
    match interval.precision {
        Precision::Month => imprecise("month", format!("in {}", month(interval.start))),
        Precision::Week => imprecise("week", format!("in the week of {}", day(interval.start))),
        Precision::Second | Precision::Hour if interval.start.time() != chrono::NaiveTime::MIN => {
            format!("on {}", instant(interval.start))
        }
        Precision::Second | Precision::Hour | Precision::Day => format!("on {}", day(interval.start)),
        Precision::ToBeDetermined => TO_BE_DETERMINED.to_owned(),
    }
}

/// [`when`], as it is true at `now`: `in March 2026 (expected 12 Mar, not confirmed)` after the nominal day of a month or week that is not
/// over.
pub fn when_at(interval: &Interval, now: Timestamp) -> String {
    match interval.nominal.filter(|_| interval.is_unconfirmed(now)) {
        Some(nominal) => {
            let period = when(&Interval { nominal: None, ..*interval });
            format!("{period}{EXPECTED}{}, not confirmed)", nominal.format("%-d %b"))
        }
        None => when(interval),
    }
}

/// [`when`] without the time of day, and without a remark: `on 12 Mar 2026`, `~12 Mar 2026`.
pub fn when_day(interval: &Interval) -> String {
    match (interval.precision, interval.nominal) {
        (Precision::Second | Precision::Hour, _) => format!("on {}", day(interval.start)),
        (Precision::Month | Precision::Week, Some(_)) => short_date(interval),
        _ => when(interval),
    }
}

/// A date for a table column: `12 Mar 2026`, or `~12 Mar 2026` if the source confirms only the month or week.
pub fn short_date(interval: &Interval) -> String {
    match (interval.precision, interval.nominal) {
        (Precision::Month | Precision::Week, Some(nominal)) => format!("~{}", day(nominal)),
        (Precision::Month, None) => month(interval.start),
        (Precision::Week, None) => format!("week of {}", day(interval.start)),
        _ => day(interval.start),
    }
}

/// The text of [`when`] or [`when_at`] for a title: without the remark that the source confirms only the month.
pub fn brief_when(when: &str) -> String {
    match when.split_once(CONFIRMS_ONLY) {
        Some((brief, _)) => format!("{brief})"),
        None => when.to_owned(),
    }
}

/// Stands for a date that is not announced.
pub const TO_BE_DETERMINED: &str = "on a date to be determined";

/// Follows the nominal day of a month or week.
const CONFIRMS_ONLY: &str = "; the source confirms only the ";

/// Precedes a nominal day that is over.
const EXPECTED: &str = " (expected ";

/// The precision that the text of [`when`] states. `None` for the text of [`when_at`] after the nominal day.
pub fn stated_precision(when: &str) -> Option<Precision> {
    Some(if when.contains(EXPECTED) {
        return None;
    } else if when.starts_with("in the week of ") {
        Precision::Week
    } else if when.starts_with("in ") {
        Precision::Month
    } else if when.contains(':') {
        Precision::Second
    } else {
        Precision::Day
    })
}

/// The time until an event that starts in `days`, no more exact than its date: `in 7 days`, `in 3 h`, `now`, `the month begins in 9
/// days`, `some time this month`. At zero the event has started and is not over. `None` if it is over.
pub fn time_until(days: f64, precision: Precision) -> Option<String> {
    let days = Some(days).filter(|days| days.is_finite() && *days >= 0.0)?;
    let in_whole_days = match days {
        days if days < 1.0 => "in less than a day".to_owned(),
        days => format!("in {}", super::count(days.round(), "day")),
    };
    let span = match precision {
        Precision::Month => "month",
        Precision::Week => "week",
        _ if days == 0.0 => return Some("now".to_owned()),
        Precision::Second | Precision::Hour => return Some(format!("in {}", duration_of_days(days))),
        Precision::Day | Precision::ToBeDetermined => return Some(in_whole_days),
    };
    Some(if days == 0.0 { format!("some time this {span}") } else { format!("the {span} begins {in_whole_days}") })
}

/// A length of time without its sign: `5 s`, `90 min`, `3 h`, `7 days`. Uses the largest unit of which the time has at least two, or
/// exactly one.
pub fn duration(span: TimeDelta) -> String {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
    let seconds = span.num_milliseconds().unsigned_abs() as f64 / 1_000.0;
    for (unit, length, next) in [("s", 1.0, 60.0), ("min", 60.0, 60.0), ("h", 3_600.0, 24.0)] {
        let count = (seconds / length).round();
        if count < 2.0 * next && count != next {
            return format!("{count} {unit}");
        }
    }
    super::count((seconds / 86_400.0).round(), "day")
}

/// [`duration`] of a standard duration.
pub fn duration_std(span: std::time::Duration) -> String {
    duration(TimeDelta::from_std(span).unwrap_or(TimeDelta::MAX))
}

/// [`duration`] of a number of seconds.
pub fn duration_secs(seconds: i64) -> String {
    duration(TimeDelta::try_seconds(seconds).unwrap_or(TimeDelta::MAX))
}

/// [`duration`] of a number of days.
pub fn duration_of_days(days: f64) -> String {
    span_of_days(days).map_or_else(|| "unknown".to_owned(), duration)
}

/// The age of something: `3 h ago`, or `in 3 h` for an instant after `now`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    if at <= now { format!("{} ago", duration(now - at)) } else { format!("in {}", duration(at - now)) }
}

/// A shift in days, signed: `+4 days`, `-1 day`, `+2.5 days`, `-3 h`, `+30 min`.
pub fn shift(by_days: f64) -> String {
    let sign = if by_days < 0.0 { '-' } else { '+' };
    let size = by_days.abs();
    let tenths = format!("{size:.1}");
    // From two weeks on, an hour of daylight saving or a corrected time of day is noise.
    if (1.5..14.0).contains(&size) && !tenths.ends_with(".0") {
        return format!("{sign}{tenths} days");
    }
    format!("{sign}{}", duration_of_days(if size > 0.9 { (size * 10.0).round() / 10.0 } else { size }))
}

/// A range of shifts in days, signed: `+30 to +33 days`; one shift if both have the same text.
pub fn shifts(least: f64, most: f64) -> String {
    let (from, to) = (shift(least), shift(most));
    if from == to {
        return to;
    }
    // A shared unit is written once.
    let from = from.strip_suffix(" days").filter(|_| to.ends_with(" days")).unwrap_or(&from);
    format!("{from} to {to}")
}
