//! Named time intervals, in which routes are active or muted.

use chrono::TimeDelta;
use jiff::{civil::Weekday, tz::TimeZone};

use crate::slot;
use model::{Timestamp, closest, config};

/// The maximum number of ranges in one key.
const MAX_RANGES: usize = 100;

const DAY_MINUTES: u16 = 24 * 60;

/// A named interval. It contains an instant if any of its parts does.
#[derive(Clone, Debug)]
pub struct NamedInterval {
    pub name: String,
    parts: Vec<IntervalPart>,
}

/// A part of an interval. It contains an instant if each nonempty list has a range that does.
#[derive(Clone, Debug)]
struct IntervalPart {
    /// Minutes of the day, end exclusive.
    times: Vec<(u16, u16)>,
    /// 1 (Monday) to 7 (Sunday).
    weekdays: Vec<(i16, i16)>,
    /// 1 to 31, or -31 to -1, counted from the end of the month.
    days_of_month: Vec<(i16, i16)>,
    months: Vec<(i16, i16)>,
    years: Vec<(i16, i16)>,
    zone: TimeZone,
}

/// A problem of an interval: the path of the key within it, the message, and the help text.
pub(super) type IntervalProblem = (String, String, String);

impl NamedInterval {
    /// Parses an interval, or returns all its problems.
    pub(super) fn build(config: &config::TimeIntervals) -> Result<Self, Vec<IntervalProblem>> {
        let mut wrong = Vec::new();
        if config.time_intervals.is_empty() {
            wrong.push((
                String::new(),
                "the interval is empty, so it would never apply".to_owned(),
                "add time_intervals = [{ weekdays = [\"mon:fri\"] }]".to_owned(),
            ));
        }
        let parts = config
            .time_intervals
            .iter()
            .enumerate()
            .filter_map(|(index, part)| IntervalPart::build(part, &format!(".time_intervals[{index}]"), &mut wrong))
            .collect();
        if wrong.is_empty() { Ok(Self { name: config.name.clone(), parts }) } else { Err(wrong) }
    }

    pub fn contains(&self, now: Timestamp) -> bool {
        self.parts.iter().any(|part| part.contains(now))
    }
}

/// Returns the next full minute. Intervals start and end on full minutes, because today's time zones differ by whole minutes.
pub fn next_minute(now: Timestamp) -> Timestamp {
    let elapsed = now.timestamp_millis().rem_euclid(60_000);
    now + TimeDelta::milliseconds(60_000 - elapsed)
}

impl IntervalPart {
    fn build(config: &config::TimeInterval, path: &str, wrong: &mut Vec<IntervalProblem>) -> Option<Self> {
        let before = wrong.len();
        let mut times = Vec::new();
        for (index, range) in config.times.iter().enumerate().take(MAX_RANGES) {
            let path = format!("{path}.times[{index}]");
            match (time_of_day(&range.start_time), time_of_day(&range.end_time)) {
                (Some(start), Some(end)) if start < end => times.push((start, end)),
                (Some(_), Some(_)) => wrong.push((
                    path,
                    format!("{} is not before {}", range.start_time, range.end_time),
                    "a range cannot span midnight: use two, like 22:00 to 24:00 and 00:00 to 07:00".to_owned(),
                )),
                (start, _) => {
                    let (key, text) =
                        if start.is_none() { ("start_time", &range.start_time) } else { ("end_time", &range.end_time) };
                    let advice = "expected a time from \"00:00\" to \"24:00\", like \"09:30\"".to_owned();
                    wrong.push((format!("{path}.{key}"), format!("{text:?} is not a time of day"), advice));
                }
            }
        }
        let mut ranges = |key: &str, texts: &[String], read: fn(&str) -> Option<i16>, example: &str, words: &[&str]| {
            let mut found = Vec::new();
            for (index, text) in texts.iter().enumerate().take(MAX_RANGES) {
                let (from, to) = text.split_once(':').unwrap_or((text, text));
                match (read(from.trim()), read(to.trim())) {
                    (Some(from), Some(to)) if from <= to => found.push((from, to)),
                    (Some(from), Some(to)) if key == "days_of_month" && from > 0 && to < 0 => found.push((from, to)),
                    (from, to) => {
                        let message = match (from, to) {
                            (Some(_), Some(_)) => format!("{text:?} ends before it begins"),
                            _ => format!("{text:?} is not valid in `{key}`"),
                        };
                        let help = match closest(&text.to_lowercase(), words.iter().copied()) {
                            Some(near) => format!("did you mean {near:?}?"),
                            None => format!("examples: {example}"),
                        };
                        wrong.push((format!("{path}.{key}[{index}]"), message, help));
                    }
                }
            }
            found
        };
        let weekdays = ranges("weekdays", &config.weekdays, weekday, "\"mon\", \"mon:fri\"", &WEEKDAYS);
        let days_of_month = ranges("days_of_month", &config.days_of_month, day_of_month, "\"1\", \"1:5\", \"-3:-1\"", &[]);
        let months = ranges("months", &config.months, month, "\"january\", \"3\", \"6:8\"", &MONTHS);
        let years = ranges("years", &config.years, year, "\"2026\", \"2026:2028\"", &[]);
        let name = config.location.as_deref().unwrap_or("UTC");
        let zone = match slot::zone(name) {
            Ok(zone) => zone,
            Err(_) => {
                let advice = "expected an IANA name, like \"UTC\" or \"Europe/Paris\"".to_owned();
                wrong.push((format!("{path}.location"), format!("{name:?} is not a time zone"), advice));
                return None;
            }
        };
        (wrong.len() == before).then_some(Self { times, weekdays, days_of_month, months, years, zone })
    }

    fn contains(&self, now: Timestamp) -> bool {
        let Ok(instant) = jiff::Timestamp::from_millisecond(now.timestamp_millis()) else { return false };
        let local = instant.to_zoned(self.zone.clone());
        let minute = u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).unwrap_or_default();
        let in_any =
            |ranges: &[(i16, i16)], value: i16| ranges.is_empty() || ranges.iter().any(|(a, b)| (*a..=*b).contains(&value));
        let length = i16::from(local.days_in_month());
        let day = i16::from(local.day());
        let from_start = |bound: i16| if bound < 0 { (length + 1 + bound).max(1) } else { bound };
        let days: Vec<(i16, i16)> = self.days_of_month.iter().map(|(a, b)| (from_start(*a), from_start(*b))).collect();
        (self.times.is_empty() || self.times.iter().any(|(start, end)| (*start..*end).contains(&minute)))
            && in_any(&self.weekdays, i16::from(local.weekday().to_monday_one_offset()))
            && in_any(&days, day)
            && in_any(&self.months, i16::from(local.month()))
            && in_any(&self.years, local.year())
    }
}

/// Parses `HH:MM`, up to `24:00`, and returns the minutes since midnight.
pub fn time_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let digits = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || minutes.len() != 2 || !digits(minutes) {
        return None;
    }
    let (hours, minutes) = (hours.parse::<u16>().ok()?, minutes.parse::<u16>().ok()?);
    let total = hours.checked_mul(60)?.checked_add(minutes)?;
    (minutes < 60 && total <= DAY_MINUTES).then_some(total)
}

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MONTHS: [&str; 12] =
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];

/// Parses a weekday, in full or its first three letters. Monday is 1.
fn weekday(text: &str) -> Option<i16> {
    word(text, &WEEKDAYS)
}

fn word(text: &str, words: &[&str]) -> Option<i16> {
    let text = text.to_ascii_lowercase();
    let at = words.iter().position(|word| *word == text || word.get(..3) == Some(text.as_str()))?;
    i16::try_from(at + 1).ok()
}

fn month(text: &str) -> Option<i16> {
    word(text, &MONTHS).or_else(|| text.parse().ok().filter(|number| (1..=12).contains(number)))
}

fn day_of_month(text: &str) -> Option<i16> {
    text.parse().ok().filter(|day: &i16| (1..=31).contains(&day.abs()))
}

fn year(text: &str) -> Option<i16> {
    text.parse().ok().filter(|year| (1970..=9999).contains(year))
}

/// Parses weekdays and ranges of weekdays, like `mon` and `mon:fri`. Returns every day for an empty list.
///
/// # Errors
///
/// Fails with the index of the first invalid text.
pub fn days_of_week(texts: &[String]) -> Result<Vec<Weekday>, usize> {
    let mut days = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let (from, to) = text.split_once([':', '-']).unwrap_or((text, text));
        let (Some(from), Some(to)) = (weekday(from.trim()), weekday(to.trim())) else { return Err(index) };
        if from > to {
            return Err(index);
        }
        days.extend((from..=to).filter_map(|day| Weekday::from_monday_one_offset(i8::try_from(day).ok()?).ok()));
    }
    if texts.is_empty() {
        days.extend((1..=7).filter_map(|day| Weekday::from_monday_one_offset(day).ok()));
    }
    days.sort_by_key(|day| day.to_monday_one_offset());
    days.dedup();
    Ok(days)
}

#[cfg(test)]
mod tests;
