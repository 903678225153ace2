//! The rows of a table of changes.

use serde_json::Value;

use crate::text;
use model::phrase::{
    self,
    changes::{field_words, schedule_change, two_amounts},
};
use model::{AllocationChange, Change, ChangeKind, Fact, FieldChange, Precision, Record, Resource, ScheduleBrief, Timestamp};

/// The smallest number that is shortened to an amount. Smaller ones may be percentages, which keep their digits.
const MIN_SHORTENED: f64 = 1_000.0;

/// The changed property, its value before, and its value after.
type Row = (String, String, String);

/// Returns the changed property, its value before, and its value after, each in one line.
pub fn change_rows(change: &Change) -> Vec<Row> {
    rows_of(change, None)
}

/// Like [`change_rows`], with the record of the change, which states how exact dates are. Properties that are the same before and after
/// are left out, and so is what another row says.
pub(super) fn rows_of(change: &Change, record: Option<&Value>) -> Vec<Row> {
    let record = record.cloned().or_else(|| serde_json::to_value(change.new.as_ref().or(change.old.as_ref())?).ok());
    let record = record.unwrap_or_default();
    let dates = DateStyle::of(change, &record);
    let mut rows: Vec<Row> = Vec::new();
    let scheduled = schedule_rows(change);
    let has_schedules = !scheduled.is_empty();
    if has_schedules {
        rows.extend(totals(change).filter(|_| change.kind == ChangeKind::Rewritten));
        rows.extend(scheduled);
    } else {
        rows.extend(totals(change).or_else(|| main_row(change, &record, dates)));
        for row in allocation_rows(change, dates) {
            add(&mut rows, row);
        }
    }
    for FieldChange { field, from, to } in named_fields(change) {
        // Amounts of allocations were already added, under the names of the allocations.
        let (was, is) = values(from, to);
        let is_known = from.is_number() && to.is_number() && rows.iter().any(|row| (&row.1, &row.2) == (&was, &is));
        let row = (text::line(&phrase::capitalized(&field_words(field)), 80), was, is);
        // The name of an allocation is also what the whole change is about.
        if !is_known && !rows.contains(&row) {
            rows.push(row);
        }
    }
    if let (Some(before), Some(after), false) = (&change.before, &change.after, has_schedules) {
        let mut row = |what: &str, show: &dyn Fn(&ScheduleBrief, Precision) -> String| {
            rows.push((what.to_owned(), show(before, dates.from), show(after, dates.to)));
        };
        row("Events", &|brief, _| brief.events.to_string());
        row("Next", &|brief, precision| {
            let next = brief.next.first();
            next.map_or("none".into(), |(at, amount)| format!("{}, {}", date(*at, precision), phrase::amount(*amount)))
        });
        row("End", &|brief, precision| brief.end.map_or("none".into(), |end| date(end, precision)));
    }
    rows.retain(|(_, was, is)| was != is);
    rows
}

/// The affected schedule of each allocation. Empty if the change has none: it is not about an unlock schedule, or an earlier version stored it.
fn schedule_rows(change: &Change) -> Vec<Row> {
    let all = change.allocations.iter().filter(|allocation| allocation.before.is_some() || allocation.after.is_some());
    all.map(|allocation| {
        let (was, is) = schedule_change(allocation.before.as_ref(), allocation.after.as_ref());
        (text::line(&allocation.name, 80), was, is)
    })
    .collect()
}

/// Adds a row unless its only row before says the same.
fn add(rows: &mut Vec<Row>, row: Row) {
    let is_known =
        rows.first().is_some_and(|(_, was, is)| *was == row.1 && (*is == row.2 || is.starts_with(&format!("{} (", row.2))));
    if !is_known {
        rows.push(row);
    }
}

/// The total of the changed tranches. `None` for a change that keeps their number.
fn totals(change: &Change) -> Option<Row> {
    let (before, after) = change.before.as_ref().zip(change.after.as_ref())?;
    let (was, is) = two_amounts(before.total, after.total);
    let by = change.ratio.filter(|ratio| ratio.is_finite() && was != is).map(|ratio| format!(" ({})", phrase::ratio(ratio)));
    Some(("Total".to_owned(), was, format!("{is}{}", by.unwrap_or_default())))
}

/// The value before and after of the whole change. `None` if other rows state it.
fn main_row(change: &Change, record: &Value, dates: DateStyle) -> Option<Row> {
    let (from, to) = (change.from.as_ref(), change.to.as_ref());
    let what = match from.or(to)? {
        Fact::Time(_) => date_label(change, record),
        Fact::Amount(_) if change.kind == ChangeKind::SeriesRescaled => "First tranche",
        Fact::Amount(_) if change.kind == ChangeKind::Committed => "Announced claim",
        Fact::Amount(_) if change.kind == ChangeKind::Revised && !change.fields.is_empty() => return None,
        Fact::Amount(_) => "Amount",
        Fact::Text(_) if change.allocations.is_empty() && change.fields.is_empty() => "Name",
        Fact::Text(_) => return None,
    };
    let by = match (change.shift_days_min.zip(change.shift_days_max), change.shift_days, change.ratio) {
        (Some(_), ..) | (_, Some(_), _) if dates.has_months() => String::new(),
        (Some((least, most)), ..) => format!(" ({})", phrase::shifts(least, most)),
        (None, Some(days), _) => format!(" ({})", phrase::shift(days)),
        (None, None, Some(ratio)) if ratio.is_finite() && from != to => format!(" ({})", phrase::ratio(ratio)),
        _ => String::new(),
    };
    let (was, is) = facts(from, to, dates);
    Some((what.to_owned(), was, format!("{is}{by}")))
}

/// `End` for the end of a linear unlock, `First` for the first date of a series, else `Date`.
fn date_label(change: &Change, record: &Value) -> &'static str {
    let is_end = |item: &Value| {
        let end = item.get("endDate").and_then(Value::as_str).and_then(model::parse_timestamp);
        end.is_some() && end == change.to.as_ref().and_then(Fact::time)
    };
    let linears = record.pointer("/linearUnlocks/allocationBreakdown").and_then(Value::as_array);
    match change.kind {
        _ if linears.is_some_and(|all| all.iter().any(is_end)) => "End",
        ChangeKind::SeriesShifted => "First",
        _ if change.count > 1 && change.shift_days_min != change.shift_days_max => "First",
        _ => "Date",
    }
}

/// The rows of allocations. Names that one allocation was split into are one row.
fn allocation_rows(change: &Change, dates: DateStyle) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for AllocationChange { name, from, to, shift_days, .. } in &change.allocations {
        let by = shift_days.filter(|_| !dates.has_months()).map(|days| format!(" ({})", phrase::shift(days))).unwrap_or_default();
        let (was, is) = facts(from.as_ref(), to.as_ref(), dates);
        let is_name = to.as_ref().and_then(Fact::text) == Some(name);
        match rows.iter_mut().find(|row| is_name && row.0 == "Name" && row.1 == was) {
            Some(row) => row.2 = format!("{}, {is}", row.2),
            None if is_name => rows.push(("Name".to_owned(), was, is)),
            None => rows.push((text::line(name, 80), was, format!("{is}{by}"))),
        }
    }
    rows
}

/// The fields that no other row states.
fn named_fields(change: &Change) -> impl Iterator<Item = &FieldChange> {
    let is_redated = change.kind == ChangeKind::Revised && matches!(change.to, Some(Fact::Time(_)));
    // The categories of swapped names are swapped, too.
    let is_swapped = |field: &FieldChange| {
        change.fields.iter().any(|other| other.field == field.field && (&other.from, &other.to) == (&field.to, &field.from))
    };
    change.fields.iter().filter(move |field| {
        let is_date = matches!(field.field.as_str(), "unlockDate" | "unlockPrecision");
        !(is_swapped(field) || is_redated && is_date)
    })
}

/// The precisions of the dates of a change, before and after.
#[derive(Clone, Copy)]
struct DateStyle {
    from: Precision,
    to: Precision,
}

impl DateStyle {
    fn of(change: &Change, record: &Value) -> Self {
        let resource = change.resource.unwrap_or(Resource::Unlock);
        let record = Record::from_json(resource, &record.to_string()).ok();
        let to = record.as_ref().and_then(Record::interval).map_or(Precision::Second, |interval| interval.precision);
        let revised = change.fields.iter().find(|field| field.field == "unlockPrecision");
        let from = revised.and_then(|field| serde_json::from_value(field.from.clone()).ok()).unwrap_or(to);
        Self { from, to }
    }

    fn has_months(self) -> bool {
        [self.from, self.to].contains(&Precision::Month)
    }
}

/// Formats a date as exact as the source gives it.
fn date(at: Timestamp, precision: Precision) -> String {
    if precision == Precision::Month { phrase::month(at) } else { moment(at) }
}

/// A fact before and after the change. Different amounts and dates have different texts.
fn facts(from: Option<&Fact>, to: Option<&Fact>, dates: DateStyle) -> (String, String) {
    match (from, to) {
        (Some(Fact::Amount(from)), Some(Fact::Amount(to))) => two_amounts(*from, *to),
        (Some(Fact::Time(was)), Some(Fact::Time(is))) => match (date(*was, dates.from), date(*is, dates.to)) {
            (a, b) if a == b => (moment(*was), moment(*is)),
            texts => texts,
        },
        _ => (fact(from, dates.from), fact(to, dates.to)),
    }
}

fn fact(fact: Option<&Fact>, precision: Precision) -> String {
    match fact {
        None => "–".into(),
        Some(Fact::Amount(amount)) => phrase::amount(*amount),
        Some(Fact::Time(at)) => date(*at, precision),
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
        assert_eq!(rows, [["Team", "1.40B", "1.42B"], ["Allocation percent", "14.0", "14.194"]]);
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

    fn rows(change: Value, record: Value) -> Vec<String> {
        let change: Change = serde_json::from_value(change).expect("a change");
        rows_of(&change, Some(&record)).into_iter().map(|(name, was, is)| format!("{name}: {was} -> {is}")).collect()
    }

    fn event(date: &str, precision: &str) -> Value {
        json!({"unlockDate": date, "cliffUnlocks": {"allocationBreakdown": [{"unlockDate": date, "unlockPrecision": precision}]}})
    }

    #[test]
    fn dates_are_no_more_exact_than_the_source() {
        let moved = json!({
            "kind": "rescheduled", "from": "2026-05-20T00:00:00Z", "to": "2026-11-20T00:00:00Z", "shiftDays": 184.0, "count": 1,
            "summary": "", "allocations": [
                {"name": "Seed", "from": "2026-05-20T00:00:00Z", "to": "2026-11-20T00:00:00Z", "shiftDays": 184.0, "count": 1},
            ],
        });
        let shown = |precision| rows(moved.clone(), event("2026-11-20T00:00:00Z", precision));
        assert_eq!(shown("month"), ["Date: May 2026 -> November 2026"]);
        assert_eq!(shown("day"), ["Date: 20 May 2026 -> 20 Nov 2026 (+184 days)"]);
        let redated = json!({
            "kind": "revised", "from": "2026-09-22T00:00:00Z", "to": "2026-09-27T00:00:00Z", "count": 1, "summary": "", "fields": [
                {"field": "unlockDate", "from": "2026-09-22T00:00:00Z", "to": "2026-09-27T00:00:00Z"},
                {"field": "unlockPrecision", "from": "month", "to": "day"},
            ],
        });
        assert_eq!(rows(redated, event("2026-09-27T00:00:00Z", "day")), ["Date: September 2026 -> 27 Sep 2026"]);
    }

    #[test]
    fn dates_of_a_series_and_of_a_linear_end_are_named() {
        let change = |kind: &str| json!({"kind": kind, "from": "2027-04-09T00:00:00Z", "to": "2028-04-09T00:00:00Z", "shiftDays": 366.0, "count": 1, "summary": ""});
        let linear = json!({"unlockDate": "2025-04-09T00:00:00Z", "linearUnlocks": {"allocationBreakdown": [{"endDate": "2028-04-09T00:00:00Z"}]}});
        assert_eq!(rows(change("rescheduled"), linear), ["End: 9 Apr 2027 -> 9 Apr 2028 (+366 days)"]);
        assert_eq!(rows(change("series_shifted"), Value::Null), ["First: 9 Apr 2027 -> 9 Apr 2028 (+366 days)"]);
    }

    #[test]
    fn unchanged_and_repeated_facts_are_left_out() {
        let brief = |total, events, next: f64, end| json!({"total": total, "events": events, "tranches": events, "next": [["2026-05-03T00:00:00Z", next]], "end": end});
        let split = json!({
            "kind": "split", "from": 10e6, "to": 10e6, "ratio": 1.0, "count": 1, "summary": "",
            "allocations": [{"name": "Airdrop", "from": 10e6, "to": 10e6, "count": 1}],
            "before": brief(10e6, 1, 10e6, "2026-05-03T00:00:00Z"), "after": brief(10e6, 2, 5e6, "2026-08-03T00:00:00Z"),
        });
        let expected = ["Events: 1 -> 2", "Next: 3 May 2026, 10.00M -> 3 May 2026, 5.00M", "End: 3 May 2026 -> 3 Aug 2026"];
        assert_eq!(rows(split, Value::Null), expected);
        let resized = json!({
            "kind": "resized", "from": 400e6, "to": 420e6, "ratio": 1.05, "count": 1, "summary": "",
            "allocations": [{"name": "Team", "from": 400e6, "to": 420e6, "count": 1}],
            "before": brief(400e6, 36, 10e6, "2029-05-15T00:00:00Z"), "after": brief(420e6, 36, 10e6, "2029-05-15T00:00:00Z"),
        });
        assert_eq!(rows(resized, Value::Null), ["Total: 400.00M -> 420.00M (×1.05)"]);
    }

    #[test]
    fn schedules_of_allocations_replace_other_rows() {
        let cliffs = |count, each: f64, end: &str| json!({"total": each * f64::from(count), "begin": "2026-05-11T00:00:00Z", "end": end, "count": count, "each": each, "period": "quarter", "precision": "month"});
        let brief = |total| json!({"total": total, "events": 6, "tranches": 6, "next": [], "end": "2027-08-11T00:00:00Z"});
        let change = json!({
            "kind": "restructured", "from": "2027-08-11T00:00:00Z", "to": "2027-02-11T00:00:00Z", "shiftDays": -181.0, "count": 6, "summary": "",
            "allocations": [{"name": "Sale", "from": 60e3, "to": 60e3, "count": 6, "before": cliffs(6, 10e3, "2027-08-11T00:00:00Z"),
                "after": cliffs(4, 15e3, "2027-02-11T00:00:00Z")}],
            "before": brief(60e3), "after": brief(60e3),
        });
        let expected = "Sale: 60.00K, 6 quarterly tranches of 10.00K, May 2026 to August 2027 -> \
                        60.00K, 4 quarterly tranches of 15.00K, May 2026 to February 2027";
        assert_eq!(rows(change, event("2026-05-11T00:00:00Z", "month")), [expected]);
    }

    #[test]
    fn running_linear_unlock_is_not_nothing() {
        let before = json!({"total": 750.0, "begin": "2023-04-17T00:00:00Z", "end": "2027-04-17T00:00:00Z", "count": 0,
            "linear": {"count": 1, "total": 750.0, "perDay": 0.5}});
        let after =
            json!({"total": 600.0, "begin": "2027-04-17T00:00:00Z", "end": "2027-04-17T00:00:00Z", "count": 1, "each": 600.0});
        let change = json!({
            "kind": "resized", "from": 750.0, "to": 600.0, "ratio": 0.8, "count": 1, "summary": "",
            "allocations": [{"name": "Foundation", "from": 750.0, "to": 600.0, "count": 1, "before": before, "after": after}],
            "before": {"total": 750.0, "events": 1, "tranches": 1, "next": [], "end": "2027-04-17T00:00:00Z"},
            "after": {"total": 600.0, "events": 1, "tranches": 1, "next": [["2027-04-17T00:00:00Z", 600.0]], "end": "2027-04-17T00:00:00Z"},
        });
        assert_eq!(
            rows(change, Value::Null),
            ["Foundation: 750, linear at 0.5 per day, 17 Apr 2023 to 17 Apr 2027 -> 17 Apr 2027, 600"]
        );
    }

    #[test]
    fn announced_claim_is_not_an_amount_of_the_schedule() {
        let claim = json!({"kind": "committed", "from": null, "to": 975_320.0, "count": 1, "summary": "",
            "allocations": [{"name": "Lender", "to": 975_320.0, "count": 1}]});
        assert_eq!(rows(claim, Value::Null), ["Announced claim: – -> 975.32K"]);
    }

    #[test]
    fn new_names_and_fields_are_in_words() {
        let text = |name: &str, from: &str, to: &str| json!({"name": name, "from": from, "to": to, "count": 1});
        let split = json!({
            "kind": "renamed", "from": "Core", "to": "Advisors", "count": 2, "summary": "",
            "allocations": [text("Advisors", "Core", "Advisors"), text("Founders", "Core", "Founders")],
        });
        assert_eq!(rows(split, Value::Null), ["Name: Core -> Advisors, Founders"]);
        let field = |from: &str, to: &str| json!({"field": "standardAllocationName", "from": from, "to": to});
        let swapped = json!({
            "kind": "renamed", "from": "Eco", "to": "Team", "count": 2, "summary": "",
            "allocations": [text("Team", "Eco", "Team"), text("Eco", "Team", "Eco")],
            "fields": [field("Community", "Founder"), field("Founder", "Community")],
        });
        assert_eq!(rows(swapped, Value::Null), ["Name: Eco -> Team", "Name: Team -> Eco"]);
        let allocation = json!({
            "kind": "renamed", "from": "Team", "to": "Founders", "count": 1, "summary": "",
            "fields": [{"field": "allocationName", "from": "Team", "to": "Founders"}],
        });
        assert_eq!(rows(allocation, Value::Null), ["Name: Team -> Founders"]);
        let source = json!({
            "kind": "revised", "from": "https://a.test", "to": "https://b.test", "count": 13, "summary": "",
            "fields": [{"field": "dataSource", "from": "https://a.test", "to": "https://b.test"}],
        });
        assert_eq!(rows(source, Value::Null), ["Source of the schedule: https://a.test -> https://b.test"]);
    }
}
