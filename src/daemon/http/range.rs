//! The time of a list, as an address names it: how far back (`since=7d`), or from one day to another.

use chrono::{Days, NaiveDate, NaiveTime};

use super::HttpError;
use super::query::span;
use crate::ui::range::RangeWords;
use model::{Timestamp, parse_timestamp};

/// From when to when; none has no end on that side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListTime {
    /// This time or later.
    pub(super) since: Option<Timestamp>,
    /// Before this time.
    pub(super) until: Option<Timestamp>,
}

impl ListTime {
    /// Reads it. Fails where a word is no time, where the begin is said twice, or lies behind the end.
    pub(super) fn read(words: &RangeWords, now: Timestamp) -> Result<Self, HttpError> {
        let given = |text: &'_ str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let (back, from, to) = (given(&words.since), given(&words.from), given(&words.to));
        if back.is_some() && from.is_some() {
            return Err(HttpError::Bad("`since` and `from` both say where the time begins: give one of them".to_owned()));
        }
        let since = match (back, from) {
            (Some(back), _) => span("since", Some(&back))?.and_then(|span| now.checked_sub_signed(span)),
            (None, Some(from)) => Some(instant("from", &from, 0)?),
            (None, None) => None,
        };
        let until = to.map(|to| instant("to", &to, 1)).transpose()?;
        if since.zip(until).is_some_and(|(since, until)| since >= until) {
            return Err(HttpError::Bad("the time ends before it begins: `from` is to be earlier than `to`".to_owned()));
        }
        Ok(Self { since, until })
    }
}

/// The instant that is named; of a day alone its begin, so many days later.
fn instant(name: &str, text: &str, days: u64) -> Result<Timestamp, HttpError> {
    let no_time = || HttpError::Bad(format!("{name}: {text:?} is no time: write it like 2026-03-09 or 2026-03-09T07:00:00Z"));
    let at = parse_timestamp(text).ok_or_else(no_time)?;
    match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        Ok(day) => {
            let day = day.checked_add_days(Days::new(days)).ok_or_else(no_time)?;
            Ok(day.and_time(NaiveTime::MIN).and_utc())
        }
        Err(_) => Ok(at),
    }
}

#[cfg(test)]
mod tests;
