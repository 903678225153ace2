//! The time range of a list in a query string: a duration before now (`since=7d`), or days or instants (`from`, `to`).

use chrono::{Days, NaiveDate, NaiveTime, TimeDelta};

use super::error::WebError;
use super::query::parse_duration;
use crate::ui::range::RangeQuery;
use model::{Timestamp, parse_timestamp};

/// A time range. `None` is unbounded on that side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PeriodFilter {
    /// The start, inclusive.
    pub(super) since: Option<Timestamp>,
    /// The end, exclusive.
    pub(super) until: Option<Timestamp>,
}

impl PeriodFilter {
    /// Parses the time range of a query string, relative to `now`.
    ///
    /// # Errors
    ///
    /// Fails if a time is not valid, if both `since` and `from` are set, or if the range is empty.
    pub(super) fn parse(words: &RangeQuery, now: Timestamp) -> Result<Self, WebError> {
        let given = |text: &'_ str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let (back, from, to) = (given(&words.since), given(&words.from), given(&words.to));
        if back.is_some() && from.is_some() {
            return Err(WebError::invalid_parameter("`since` and `from` both set the start: use one of them"));
        }
        let since = match (back, from) {
            (Some(back), _) => Some(before(now, parse_duration("since", &back)?)?),
            (None, Some(from)) => Some(instant("from", &from, 0)?),
            (None, None) => None,
        };
        let until = to.map(|to| instant("to", &to, 1)).transpose()?;
        if since.zip(until).is_some_and(|(since, until)| since >= until) {
            return Err(WebError::invalid_parameter("the range is empty: the start must be before `to`"));
        }
        Ok(Self { since, until })
    }
}

/// Returns the instant at a duration before now.
pub(super) fn before(now: Timestamp, span: TimeDelta) -> Result<Timestamp, WebError> {
    now.checked_sub_signed(span).ok_or_else(|| WebError::invalid_parameter("since: this duration is too long"))
}

/// Returns the instant at a duration after now.
pub(super) fn after(now: Timestamp, span: TimeDelta) -> Result<Timestamp, WebError> {
    now.checked_add_signed(span).ok_or_else(|| WebError::invalid_parameter("within: this duration is too long"))
}

/// Parses an instant, or a day as its start plus `extra_days`.
fn instant(name: &str, text: &str, extra_days: u64) -> Result<Timestamp, WebError> {
    let invalid = || {
        WebError::invalid_parameter(format!(
            "{name}: {text:?} is not a valid time: expected a value such as 2026-03-09 or 2026-03-09T07:00:00Z"
        ))
    };
    let at = parse_timestamp(text).ok_or_else(invalid)?;
    match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        Ok(day) => {
            let day = day.checked_add_days(Days::new(extra_days)).ok_or_else(invalid)?;
            Ok(day.and_time(NaiveTime::MIN).and_utc())
        }
        Err(_) => Ok(at),
    }
}

#[cfg(test)]
mod tests;
