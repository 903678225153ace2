//! The facts and shares of an alert's record.

use serde_json::Value;

use super::{MAX_ROWS, headline::nearness, is_resolved};
use crate::text;
use model::{AlertBody, ChangeKind, MemberBody, Notification, Resource, Timestamp, parse_timestamp, phrase};

/// Returns label and value of the facts, most important first.
pub(super) fn facts(notice: &Notification, record: &Value, now: Timestamp) -> Vec<(&'static str, String)> {
    let body = &notice.body;
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    if let Some(when) = &body.when {
        let near = if is_resolved(body) { None } else { nearness(notice, now) };
        let when = text::line(when, 80);
        let when = when.strip_prefix("on ").map_or(when.clone(), str::to_owned);
        let when = phrase::capitalized(&when);
        facts.push(("Date", near.map_or(when.clone(), |near| format!("{when} ({near})"))));
    }
    let symbol = body.token.as_ref().map(|token| token.symbol.as_str());
    for (label, pointers, unit) in FACTS {
        let found = pointers.iter().find_map(|pointer| unit.show(record.pointer(pointer)?, symbol));
        if let Some(value) = found {
            facts.push((label, value));
        }
    }
    facts
}

/// Returns what the facts of a changed unlock are about, because the change is often only a part of it.
pub(super) fn facts_of(body: &AlertBody, now: Timestamp) -> Option<(&'static str, String)> {
    let change = body.change.as_ref().filter(|change| change.resource.or(body.resource) == Some(Resource::Unlock))?;
    let record = body.record.as_ref()?;
    let when = text::line(body.when.as_deref().unwrap_or("without a date"), 80);
    let is_past = body.days_until.is_some_and(|days| days < 0.0);
    let label = match change.kind {
        ChangeKind::Removed => "Before the removal: whole unlock",
        // One event that moved can have several recipients.
        ChangeKind::Rescheduled | ChangeKind::Resized | ChangeKind::Split | ChangeKind::Merged => "Whole unlock",
        _ if change.count > 1 => "First unlock concerned",
        _ => "Whole unlock",
    };
    // A linear unlock that began in the past is not over.
    let end = linear_end(record);
    let past = if is_past && end.is_none_or(|end| end <= now) { ", past" } else { "" };
    let until = end.map(|end| format!("linear until {}, ", phrase::day(end))).unwrap_or_default();
    Some(match (label, end) {
        ("Whole unlock", Some(end)) if !has_cliffs(record) => {
            let starts = if is_past { "started" } else { "starts" };
            ("Linear unlock", format!("{starts} {when}, until {}, all recipients{past}", phrase::day(end)))
        }
        _ => (label, format!("{when}, {until}all recipients{past}")),
    })
}

/// Returns the last end of the linear unlocks of an event. `None` if it has none.
fn linear_end(record: &Value) -> Option<Timestamp> {
    let linears = record.pointer("/linearUnlocks/allocationBreakdown")?.as_array()?;
    linears.iter().filter_map(|item| parse_timestamp(item.get("endDate")?.as_str()?)).max()
}

fn has_cliffs(record: &Value) -> bool {
    record.pointer("/cliffUnlocks/allocationBreakdown").and_then(Value::as_array).is_some_and(|cliffs| !cliffs.is_empty())
}

#[derive(Clone, Copy)]
enum FieldUnit {
    Usd,
    Tokens,
    Percent,
    Text,
    /// A constant of an enumeration.
    Word,
    Words,
}

impl FieldUnit {
    fn show(self, value: &Value, symbol: Option<&str>) -> Option<String> {
        let shown = match self {
            FieldUnit::Usd => phrase::usd(finite(value)?),
            FieldUnit::Tokens => phrase::tokens(finite(value)?, symbol),
            FieldUnit::Percent => phrase::percent(finite(value)?),
            FieldUnit::Text => text::line(value.as_str()?, model::phrase::MAX_LINE_CHARS),
            FieldUnit::Word => text::line(&phrase::constant(value.as_str()?), model::phrase::MAX_LINE_CHARS),
            FieldUnit::Words => {
                let words = value.as_array()?.iter().filter_map(Value::as_str).take(5);
                words.map(|each| text::line(&phrase::constant(each), 80)).collect::<Vec<_>>().join(", ")
            }
        };
        (!shown.is_empty()).then_some(shown)
    }
}

fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// Label, JSON pointers of which the first present one is shown, and unit. Each resource has some of these fields.
const FACTS: &[(&str, &[&str], FieldUnit)] = &[
    (
        "Amount",
        &[
            "/cliffUnlocks/cliffAmount",
            "/cliffUnlocks/totalCliffAmount",
            "/tokenAmount",
            "/unlockAmount",
            "/allocationAmount",
            "/amount",
        ],
        FieldUnit::Tokens,
    ),
    ("Value", &["/cliffUnlocks/cliffValue", "/cliffUnlocks/totalCliffValue", "/unlockValue", "/value"], FieldUnit::Usd),
    ("Share of market cap", &["/cliffUnlocks/valueToMarketCap"], FieldUnit::Percent),
    ("Linear unlock", &["/linearUnlocks/linearAmount"], FieldUnit::Tokens),
    ("Linear unlock value", &["/linearUnlocks/linearValue"], FieldUnit::Usd),
    ("Per day", &["/linearUnlocks/dailyAmount"], FieldUnit::Tokens),
    ("Raised", &["/totalAmountRaisedinThatRound", "/amountRaised"], FieldUnit::Usd),
    ("Valuation", &["/valuation"], FieldUnit::Usd),
    (
        "Token price",
        &[
            "/cliffUnlocks/allocationBreakdown/0/referencePrice",
            "/cliffUnlocks/referencePrice",
            "/linearUnlocks/allocationBreakdown/0/referencePrice",
            "/referencePrice",
            "/pricePerToken",
        ],
        FieldUnit::Usd,
    ),
    ("Round", &["/roundName"], FieldUnit::Text),
    ("Investor", &["/investorName"], FieldUnit::Text),
    ("Event", &["/burnEventLabel", "/buybackEventLabel"], FieldUnit::Text),
    ("Type", &["/burnType", "/buybackType", "/allocationType"], FieldUnit::Word),
    ("Burned by", &["/metadata/burners"], FieldUnit::Words),
    ("Reason", &["/metadata/burnReasons"], FieldUnit::Words),
    ("Paid in", &["/spentUnit"], FieldUnit::Text),
    ("Buyer", &["/buyerAddress"], FieldUnit::Text),
    ("Target", &["/targetAddress"], FieldUnit::Text),
    ("Allocation", &["/allocationName"], FieldUnit::Text),
    ("Category", &["/standardAllocationName"], FieldUnit::Text),
    ("Unlocked", &["/allocationUnlockedAmount"], FieldUnit::Tokens),
    ("Locked", &["/allocationLockedAmount"], FieldUnit::Tokens),
    ("Share of supply", &["/trackedAllocationPercentage"], FieldUnit::Percent),
];

/// Returns name, amount, and value of the first tokens of a group, and the number of all its tokens.
pub(super) fn members(body: &AlertBody) -> (Vec<(String, String, String)>, usize) {
    let row = |member: &MemberBody| {
        let symbol = if member.token.symbol.is_empty() { &member.token.id } else { &member.token.symbol };
        let share = member.share.map(|share| format!(" ({})", phrase::share(share, "the group"))).unwrap_or_default();
        let amount = member.amount.map(phrase::amount).unwrap_or_default();
        (format!("{}{share}", text::line(symbol, 40)), amount, member.value.map(phrase::usd).unwrap_or_default())
    };
    (body.members.iter().take(MAX_ROWS).map(row).collect(), body.members.len())
}

/// The tokens of one allocation in an event.
struct Share<'a> {
    name: &'a str,
    /// ` (linear)` for linear unlocks.
    suffix: &'static str,
    /// Tokens. `None` if unknown.
    amount: Option<f64>,
    /// USD. `None` if unknown.
    value: Option<f64>,
}

/// Returns name, amount, and value of the largest allocations, largest first, and the number of all allocations.
pub(super) fn shares(record: &Value) -> (Vec<(String, String, String)>, usize) {
    let lists = [
        ("/cliffUnlocks/allocationBreakdown", "cliffAmount", "cliffValue", ""),
        ("/linearUnlocks/allocationBreakdown", "linearAmount", "linearValue", " (linear)"),
        ("/allocations", "unlockAmount", "unlockValue", ""),
    ];
    let mut all: Vec<Share<'_>> = Vec::new();
    for (list, amount, value, suffix) in lists {
        for item in record.pointer(list).and_then(Value::as_array).into_iter().flatten() {
            let number = |field: &str| item.get(field).and_then(finite);
            let name = item.get("allocationName").or_else(|| item.get("standardAllocationName")).and_then(Value::as_str);
            let share = Share { name: name.unwrap_or("unnamed"), suffix, amount: number(amount), value: number(value) };
            // Several linear unlocks of one allocation are one row, because their rows would look alike.
            match all.iter_mut().find(|known| (known.name, known.suffix) == (share.name, share.suffix)) {
                Some(known) => {
                    known.amount = known.amount.zip(share.amount).map(|(one, other)| one + other);
                    known.value = known.value.zip(share.value).map(|(one, other)| one + other);
                }
                None => all.push(share),
            }
        }
    }
    let total = all.len();
    all.sort_by(|a, b| b.amount.unwrap_or_default().total_cmp(&a.amount.unwrap_or_default()));
    let row = |Share { name, suffix, amount, value }: Share<'_>| {
        let name = format!("{}{suffix}", text::line(name, 80));
        (name, amount.map(phrase::amount).unwrap_or_default(), value.map(phrase::usd).unwrap_or_default())
    };
    (all.into_iter().take(MAX_ROWS).map(row).collect(), total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use model::Change;
    use testkit::time;

    #[test]
    fn linear_unlocks_of_one_allocation_are_one_share() {
        let part = |name: &str, amount: f64| json!({"allocationName": name, "linearAmount": amount, "linearValue": amount / 2.0});
        let record = json!({
            "cliffUnlocks": {"allocationBreakdown": [{"allocationName": "Team", "cliffAmount": 9.0}]},
            "linearUnlocks": {"allocationBreakdown": [part("Team", 147.0), part("Team", 588.0), part("Reserve", 170.0)]},
        });
        let (shown, total) = shares(&record);
        let shown: Vec<String> = shown.into_iter().map(|(name, amount, value)| format!("{name}: {amount} {value}")).collect();
        assert_eq!(shown, ["Team (linear): 735 $367.50", "Reserve (linear): 170 $85", "Team: 9 "]);
        assert_eq!(total, 3);
    }

    #[test]
    fn running_linear_unlock_is_not_past() {
        let heading = |record: Value, days_until: f64, now: &str| {
            let body = AlertBody {
                when: Some("on 17 Apr 2023".into()),
                days_until: Some(days_until),
                record: Some(record),
                change: Some(Change::of(ChangeKind::Resized, Resource::Unlock, &"arbitrum".into())),
                ..AlertBody::firing("al_1".into(), "ScheduleChanged", "resized", time("2026-04-06"))
            };
            facts_of(&body, time(now)).map(|(label, value)| format!("{label} {value}")).unwrap_or_default()
        };
        let linears = json!({"allocationBreakdown": [{"allocationName": "Foundation", "endDate": "2027-04-17T00:00:00Z"}]});
        let linear = json!({"linearUnlocks": linears});
        assert_eq!(
            heading(linear.clone(), -1_000.0, "2026-04-06"),
            "Linear unlock started on 17 Apr 2023, until 17 Apr 2027, all recipients"
        );
        assert_eq!(
            heading(linear.clone(), -2_000.0, "2027-05-06"),
            "Linear unlock started on 17 Apr 2023, until 17 Apr 2027, all recipients, past"
        );
        assert_eq!(heading(linear, 10.0, "2023-04-07"), "Linear unlock starts on 17 Apr 2023, until 17 Apr 2027, all recipients");
        let both = json!({"cliffUnlocks": {"allocationBreakdown": [{"allocationName": "Team"}]}, "linearUnlocks": linears});
        assert_eq!(
            heading(both, -1_000.0, "2026-04-06"),
            "Whole unlock on 17 Apr 2023, linear until 17 Apr 2027, all recipients"
        );
        assert_eq!(heading(json!({}), -1_000.0, "2026-04-06"), "Whole unlock on 17 Apr 2023, all recipients, past");
    }
}
