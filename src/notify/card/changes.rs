//! The rows of a table of changes.

use serde_json::Value;

use crate::text;
use model::{AllocationChange, Change, Fact, FieldChange, ScheduleBrief, Timestamp, phrase};

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
        rows.push((what.to_owned(), fact(change.from.as_ref()), format!("{}{by}", fact(change.to.as_ref()))));
    }
    for AllocationChange { name, from, to, shift_days, .. } in &change.allocations {
        let by = shift_days.map(|days| format!(" ({})", phrase::shift(days))).unwrap_or_default();
        rows.push((text::line(name, 80), fact(from.as_ref()), format!("{}{by}", fact(to.as_ref()))));
    }
    for FieldChange { field, from, to } in &change.fields {
        // Amounts of allocations were already added, under the names of the allocations.
        let (was, is) = (json(from), json(to));
        let is_known = from.is_number() && to.is_number() && rows.iter().any(|row| (&row.1, &row.2) == (&was, &is));
        if !is_known {
            rows.push((text::line(field, 80), was, is));
        }
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
        Value::Number(number) if number.as_f64().is_some_and(|number| number.abs() >= MIN_SHORTENED) => {
            number.as_f64().map(phrase::amount).unwrap_or_default()
        }
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
}
