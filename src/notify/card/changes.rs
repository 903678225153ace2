//! The rows of a table of changes.

use serde_json::Value;

use crate::text;
use model::phrase::{self, changes::two_amounts};
use model::{AllocationChange, Change, Fact, FieldChange, ScheduleBrief, Timestamp};

/// The smallest number that is shortened to an amount. Smaller ones may be percentages, which keep their digits.
const MIN_SHORTENED: f64 = 1_000.0;

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
        let (was, is) = facts(change.from.as_ref(), change.to.as_ref());
        rows.push((what.to_owned(), was, format!("{is}{by}")));
    }
    for AllocationChange { name, from, to, shift_days, .. } in &change.allocations {
        let by = shift_days.map(|days| format!(" ({})", phrase::shift(days))).unwrap_or_default();
        let (was, is) = facts(from.as_ref(), to.as_ref());
        rows.push((text::line(name, 80), was, format!("{is}{by}")));
    }
    for FieldChange { field, from, to } in &change.fields {
        // Amounts of allocations were already added, under the names of the allocations.
        let (was, is) = values(from, to);
        let is_known = from.is_number() && to.is_number() && rows.iter().any(|row| (&row.1, &row.2) == (&was, &is));
        if !is_known {
            rows.push((text::line(field, 80), was, is));
        }
    }
    if let (Some(before), Some(after)) = (&change.before, &change.after) {
        let (was, is) = two_amounts(before.total, after.total);
        rows.push(("Total".to_owned(), was, is));
        let mut row = |what: &str, show: fn(&ScheduleBrief) -> String| rows.push((what.to_owned(), show(before), show(after)));
        row("Events", |brief| brief.events.to_string());
        row("Next", |brief| {
            brief.next.first().map_or("none".into(), |(at, amount)| format!("{}, {}", phrase::day(*at), phrase::amount(*amount)))
        });
        row("End", |brief| brief.end.map_or("none".into(), phrase::day));
    }
    rows
}

/// A fact before and after the change. Different amounts have different texts.
fn facts(from: Option<&Fact>, to: Option<&Fact>) -> (String, String) {
    match (from, to) {
        (Some(Fact::Amount(from)), Some(Fact::Amount(to))) => two_amounts(*from, *to),
        _ => (fact(from), fact(to)),
    }
}

fn fact(fact: Option<&Fact>) -> String {
    match fact {
        None => "–".into(),
        Some(Fact::Amount(amount)) => phrase::amount(*amount),
        Some(Fact::Time(at)) => moment(*at),
        Some(Fact::Text(name)) => text::line(name, 80),
    }
}

/// The value of a field before and after the change. Large numbers are shortened.
fn values(from: &Value, to: &Value) -> (String, String) {
    let large = |value: &Value| value.as_f64().filter(|number| number.abs() >= MIN_SHORTENED);
    match (large(from), large(to)) {
        (Some(from), Some(to)) => two_amounts(from, to),
        _ => (json(from), json(to)),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amount_of_an_allocation_is_shown_once() {
        let change: Change = serde_json::from_value(json!({
            "kind": "resized", "from": null, "to": null, "count": 1, "summary": "",
            "allocations": [{"name": "Team", "from": 1_400_000_000.06, "to": 1_419_444_444.5}],
            "fields": [
                {"field": "allocationAmount", "from": 1_400_000_000.06, "to": 1_419_444_444.5},
                {"field": "allocationPercent", "from": 14.0, "to": 14.194},
            ],
        }))
        .expect("a change");
        let rows = change_rows(&change);
        let rows: Vec<[&str; 3]> = rows.iter().map(|(name, was, is)| [name.as_str(), was, is]).collect();
        assert_eq!(rows, [["Team", "1.40B", "1.42B"], ["allocationPercent", "14.0", "14.194"]]);
    }
    #[test]
    fn different_amounts_have_different_texts() {
        let change: Change = serde_json::from_value(json!({
            "kind": "resized", "from": 3_016_566_000.0, "to": 3_017_000_000.0, "count": 1, "summary": "",
            "fields": [{"field": "maxSupply", "from": 10_001_000.0, "to": 10_002_000.0}],
        }))
        .expect("a change");
        let rows = change_rows(&change);
        assert!(rows.len() == 2 && rows.iter().all(|(_, was, is)| was != is), "{rows:?}");
    }
}
