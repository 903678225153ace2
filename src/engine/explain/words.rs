//! Times and texts as explanations write them.

use chrono::TimeDelta;

use model::{Interval, Precision, Timestamp, config::Span, days, format};

/// A length of time as rules and configs write it.
pub(super) fn span(span: TimeDelta) -> Span {
    Span(span.to_std().unwrap_or_default())
}

/// A length of time in its greatest unit.
pub(super) fn ago(span: TimeDelta) -> String {
    let all = days(span.abs());
    match all {
        days if days >= 2.0 => format!("{days:.0} days"),
        days if days * 24.0 >= 2.0 => format!("{:.0} h", days * 24.0),
        days => format!("{:.0} min", (days * 1440.0).ceil()),
    }
}

/// How far away something is, no more exact than its date.
pub(super) fn ahead(interval: &Interval, now: Timestamp) -> String {
    match interval.precision {
        Precision::Month | Precision::Week => {
            format::nearness(interval.days_until(now), interval.precision).unwrap_or_else(|| "over".to_owned())
        }
        _ if now < interval.start => format!("in {}", ago(interval.start - now)),
        _ => "now".to_owned(),
    }
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
