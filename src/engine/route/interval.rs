//! Times of day and week in a zone, which open and close routes.

use chrono::TimeDelta;
use jiff::{civil::Weekday, tz::TimeZone};

use crate::slot;
use model::{Timestamp, closest, config};

/// Ranges in one key.
const MAX_RANGES: usize = 100;

/// Minutes of a day.
const DAY_MINUTES: u16 = 24 * 60;

/// A named time: it lasts while one of its parts does.
#[derive(Clone, Debug)]
pub struct NamedInterval {
    pub name: String,
    parts: Vec<IntervalPart>,
}

/// Everything that is given must fit; nothing given fits always.
#[derive(Clone, Debug)]
struct IntervalPart {
    /// Minutes of the day, the end not included.
    times: Vec<(u16, u16)>,
    /// 1 (Monday) to 7.
    weekdays: Vec<(i16, i16)>,
    /// 1 to 31, or -31 to -1 from the end of the month.
    days_of_month: Vec<(i16, i16)>,
    months: Vec<(i16, i16)>,
    years: Vec<(i16, i16)>,
    zone: TimeZone,
}

/// What is wrong with an interval: the key within it, the message, the advice.
pub(super) type IntervalProblem = (String, String, String);

impl NamedInterval {
    /// Reads an interval. Fails with all that is wrong in it, with the path of each from the interval on.
    pub(super) fn build(config: &config::TimeIntervals) -> Result<Self, Vec<IntervalProblem>> {
        let mut wrong = Vec::new();
        if config.time_intervals.is_empty() {
            wrong.push((
                String::new(),
                "this interval has no times: it would never last".to_owned(),
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

    /// Whether it lasts at `now`.
    pub fn lasts(&self, now: Timestamp) -> bool {
        self.parts.iter().any(|part| part.lasts(now))
    }
}

/// The next full minute, at which an interval may begin or end: the ends of all intervals are on minutes of their zone, and the
/// zones of today are whole minutes apart.
pub fn next_turn(now: Timestamp) -> Timestamp {
    let into = now.timestamp_millis().rem_euclid(60_000);
    now + TimeDelta::milliseconds(60_000 - into)
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
                    format!("{} does not lie before {}", range.start_time, range.end_time),
                    "a range ends on its day: write two, such as 22:00 to 24:00 and 00:00 to 07:00".to_owned(),
                )),
                (start, _) => {
                    let (key, text) =
                        if start.is_none() { ("start_time", &range.start_time) } else { ("end_time", &range.end_time) };
                    let advice = "write it like \"09:30\", from \"00:00\" to \"24:00\"".to_owned();
                    wrong.push((format!("{path}.{key}"), format!("{text:?} is no time of day"), advice));
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
                            _ => format!("{text:?} cannot be read"),
                        };
                        let help = match closest(&text.to_lowercase(), words.iter().copied()) {
                            Some(near) => format!("did you mean {near:?}?"),
                            None => format!("write it like {example}"),
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
                let advice = "write an IANA name such as \"UTC\" or \"Europe/Paris\"".to_owned();
                wrong.push((format!("{path}.location"), format!("{name:?} is no time zone"), advice));
                return None;
            }
        };
        (wrong.len() == before).then_some(Self { times, weekdays, days_of_month, months, years, zone })
    }

    fn lasts(&self, now: Timestamp) -> bool {
        let Ok(instant) = jiff::Timestamp::from_millisecond(now.timestamp_millis()) else { return false };
        let there = instant.to_zoned(self.zone.clone());
        let minute = u16::try_from(i32::from(there.hour()) * 60 + i32::from(there.minute())).unwrap_or_default();
        let fits =
            |ranges: &[(i16, i16)], value: i16| ranges.is_empty() || ranges.iter().any(|(a, b)| (*a..=*b).contains(&value));
        let length = i16::from(there.days_in_month());
        let day = i16::from(there.day());
        let from_begin = |bound: i16| if bound < 0 { (length + 1 + bound).max(1) } else { bound };
        let days: Vec<(i16, i16)> = self.days_of_month.iter().map(|(a, b)| (from_begin(*a), from_begin(*b))).collect();
        (self.times.is_empty() || self.times.iter().any(|(start, end)| (*start..*end).contains(&minute)))
            && fits(&self.weekdays, i16::from(there.weekday().to_monday_one_offset()))
            && fits(&days, day)
            && fits(&self.months, i16::from(there.month()))
            && fits(&self.years, there.year())
    }
}

/// Minutes since midnight of `HH:MM`, up to `24:00`.
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

/// 1 for Monday: the whole name or its first three letters.
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

/// The days of the week of texts such as `mon` and `mon:fri`; every day where there are none.
/// Fails with the index of the first text that names no days.
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
