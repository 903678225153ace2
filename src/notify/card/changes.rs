//! The rows of a table of changes.

use serde_json::Value;

use crate::text;
use model::{AllocationChange, Change, Fact, FieldChange, ScheduleBrief, Timestamp, phrase};

/// Returns the changed property, its value before, and its value after, each in one line.
pub fn change_rows(change: &Change) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    if change.from.is_some() || change.to.is_some() {
        let what = match (&change.from, &change.to) {
            (Some(Fact::Time(_)), _) | (_, Some(Fact::Time(_))) => "Date",
            (Some(Fact::Amount(_)), _) | (_, Some(Fact::Amount(_))) => "Amount",
            _ => "Name",
        };
        let by = match (change.shift_days_min.zip(change.shift_days_max), change.shift_days, change.ratio) {
            (Some((least, most)), ..) => format!(" ({})", phrase::shifts(least, most)),
            (None, Some(days), _) => format!(" ({})", phrase::shift(days)),
            (None, None, Some(ratio)) if ratio.is_finite() => format!(" ({})", phrase::ratio(ratio)),
            _ => String::new(),
        };
        rows.push((what.to_owned(), fact(change.from.as_ref()), format!("{}{by}", fact(change.to.as_ref()))));
    }
    for AllocationChange { name, from, to, shift_days, .. } in &change.allocations {
        let by = shift_days.map(|days| format!(" ({})", phrase::shift(days))).unwrap_or_default();
        rows.push((text::line(name, 80), fact(from.as_ref()), format!("{}{by}", fact(to.as_ref()))));
    }
    for FieldChange { field, from, to } in &change.fields {
        rows.push((text::line(field, 80), json(from), json(to)));
    }
    if let (Some(before), Some(after)) = (&change.before, &change.after) {
        let mut row = |what: &str, show: fn(&ScheduleBrief) -> String| rows.push((what.to_owned(), show(before), show(after)));
        row("Total", |brief| phrase::amount(brief.total));
        row("Events", |brief| brief.events.to_string());
        row("Next", |brief| {
            brief.next.first().map_or("none".into(), |(at, amount)| format!("{}, {}", phrase::day(*at), phrase::amount(*amount)))
        });
        row("End", |brief| brief.end.map_or("none".into(), phrase::day));
    }
    rows
}

fn fact(fact: Option<&Fact>) -> String {
    match fact {
        None => "–".into(),
        Some(Fact::Amount(amount)) => phrase::amount(*amount),
        Some(Fact::Time(at)) => moment(*at),
        Some(Fact::Text(name)) => text::line(name, 80),
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Null => "–".into(),
        Value::String(value) => text::line(value, 120),
        other => text::line(&other.to_string(), 120),
    }
}

/// Formats an instant, without the time if it is midnight.
fn moment(at: Timestamp) -> String {
    if at.timestamp().rem_euclid(86_400) == 0 { phrase::day(at) } else { phrase::instant(at) }
}
