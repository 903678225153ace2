//! Template filters: format numbers, times, and lists for sentences.

use minijinja::{Environment, Error, ErrorKind, Value, value::ValueKind};

use model::{Timestamp, phrase, wire};

/// The formatter of one of our filters.
#[derive(Clone, Copy)]
enum FilterFormatter {
    Number(fn(f64) -> String),
    Time(fn(Timestamp) -> String),
}

const OWN: [(&str, FilterFormatter); 7] = [
    ("usd", FilterFormatter::Number(phrase::usd)),
    ("amount", FilterFormatter::Number(phrase::amount)),
    ("percent", FilterFormatter::Number(phrase::percent)),
    ("number", FilterFormatter::Number(number)),
    ("date", FilterFormatter::Time(phrase::day)),
    ("datetime", FilterFormatter::Time(phrase::instant)),
    ("days", FilterFormatter::Number(phrase::duration_of_days)),
];

/// The filter that formats enumeration values, and lists of them, as words.
const WORDS: &str = "words";

/// The documented filters, each with an example and its result: our filters first, then frequently used filters of minijinja.
pub const EXAMPLES: [(&str, &str, &str); 21] = [
    ("usd", "33150000 | usd", "USD, abbreviated"),
    ("amount", "92650000 | amount", "tokens, abbreviated"),
    ("percent", "2.768 | percent", "a percentage"),
    ("number", "5250000.5 | number", "a number in full"),
    ("date", "'2026-03-16T13:00:00Z' | date", "the day of a time, UTC"),
    ("datetime", "'2026-03-16T13:00:00Z' | datetime", "a time to the minute, UTC"),
    ("days", "6.9 | days", "a duration from a number of days"),
    (WORDS, "'TREASURY_BUYBACK' | words", "the word of an enumeration, as text"),
    ("json", "['Team', 'Reserve'] | json", "JSON"),
    ("default", "none | default('not known')", "a fallback for a missing field"),
    ("upper", "'arb' | upper", "uppercase"),
    ("lower", "'ARB' | lower", "lowercase"),
    ("join", "['Team', 'Reserve'] | join(' and ')", "the items of a list, joined"),
    ("length", "['Team', 'Reserve'] | length", "the number of items or characters"),
    ("round", "2.768 | round(1)", "a number rounded to some decimal places"),
    ("replace", "'Founder / Team' | replace(' / ', ', ')", "text with a part replaced"),
    ("first", "['Team', 'Reserve'] | first", "the first item"),
    ("last", "['Team', 'Reserve'] | last", "the last item"),
    ("sort", "['Team', 'Reserve'] | sort", "the items in order"),
    ("title", "'core team' | title", "each word capitalized"),
    ("trim", "'  ARB ' | trim", "text without leading and trailing spaces"),
];

/// The filters to suggest.
pub(super) fn known() -> Vec<&'static str> {
    EXAMPLES.map(|(name, ..)| name).to_vec()
}

pub(super) fn add(environment: &mut Environment<'static>) {
    for (name, formatter) in OWN {
        match formatter {
            FilterFormatter::Number(show) => environment.add_filter(name, move |value: Value| number_filter(&value, show)),
            FilterFormatter::Time(show) => environment.add_filter(name, move |value: Value| time_filter(&value, show)),
        }
    }
    environment.add_filter("json", |value: Value| {
        serde_json::to_string(&value)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("cannot be written as JSON: {error}")))
    });
    environment.add_filter(WORDS, |value: Value| refuse_undefined(&value).map(|()| words(&value)));
    environment.add_filter("default", default_filter);
    environment.add_filter("d", default_filter);
}

/// Formats a constant of the source, or a list of them, for a sentence: `treasury buyback` for `TREASURY_BUYBACK`.
fn words(value: &Value) -> String {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => match value.try_iter() {
            Ok(items) => items.map(|item| words(&item)).collect::<Vec<_>>().join(", "),
            Err(_) => plain(value),
        },
        _ => phrase::constant(&plain(value)),
    }
}

/// Formats a value for a sentence. A missing value is `unknown`.
pub(super) fn plain(value: &Value) -> String {
    match value.kind() {
        ValueKind::None => "unknown".into(),
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) if number.is_finite() => format!("{number}"),
            Ok(_) => "unknown".into(),
            Err(_) => value.to_string(),
        },
        ValueKind::Seq | ValueKind::Iterable => match value.try_iter() {
            Ok(items) => items.map(|item| plain(&item)).collect::<Vec<_>>().join(", "),
            Err(_) => value.to_string(),
        },
        _ => value.to_string(),
    }
}

fn refuse_undefined(value: &Value) -> Result<(), Error> {
    if value.is_undefined() { Err(Error::from(ErrorKind::UndefinedError)) } else { Ok(()) }
}

fn number_filter(value: &Value, show: fn(f64) -> String) -> Result<String, Error> {
    refuse_undefined(value)?;
    if value.is_none() {
        return Ok("unknown".into());
    }
    match f64::try_from(value.clone()) {
        Ok(number) if number.is_finite() => Ok(show(number)),
        Ok(_) => Ok("unknown".into()),
        Err(_) => Err(Error::new(ErrorKind::InvalidOperation, format!("a number is needed, this is {}", value.kind()))),
    }
}

fn time_filter(value: &Value, show: fn(Timestamp) -> String) -> Result<String, Error> {
    refuse_undefined(value)?;
    if value.is_none() {
        return Ok("unknown".into());
    }
    value
        .as_str()
        .and_then(wire::parse_timestamp)
        .map(show)
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, format!("a time is needed, this is {}", value.kind())))
}

fn default_filter(value: Value, other: Option<Value>) -> Value {
    if value.is_undefined() || value.is_none() { other.unwrap_or_else(|| Value::from("")) } else { value }
}

/// Formats a number in full with digit grouping, rounded to two decimals: `5,250,000`.
fn number(value: f64) -> String {
    phrase::grouped((value * 100.0).round() / 100.0)
}
