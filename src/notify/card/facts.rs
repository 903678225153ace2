//! The facts and shares of an alert's record.

use serde_json::Value;

use super::{MAX_ROWS, headline::nearness, is_resolved};
use crate::text;
use model::{AlertBody, ChangeKind, MemberBody, Notification, Resource, Timestamp, phrase};

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
pub(super) fn facts_of(body: &AlertBody) -> Option<(&'static str, String)> {
    let change = body.change.as_ref().filter(|change| change.resource.or(body.resource) == Some(Resource::Unlock))?;
    body.record.as_ref()?;
    let when = text::line(body.when.as_deref().unwrap_or("without a date"), 80);
    let past = if body.days_until.is_some_and(|days| days < 0.0) { ", past" } else { "" };
    let label = match change.kind {
        ChangeKind::Removed => "Before the removal: whole unlock",
        // One event that moved can have several recipients.
        ChangeKind::Rescheduled | ChangeKind::Resized | ChangeKind::Split | ChangeKind::Merged => "Whole unlock",
        _ if change.count > 1 => "First unlock concerned",
        _ => "Whole unlock",
    };
    Some((label, format!("{when}, all recipients{past}")))
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

/// Returns name, amount, and value of the largest allocations, largest first, and the number of all allocations.
pub(super) fn shares(record: &Value) -> (Vec<(String, String, String)>, usize) {
    let lists = [
        ("/cliffUnlocks/allocationBreakdown", "cliffAmount", "cliffValue", ""),
        ("/linearUnlocks/allocationBreakdown", "linearAmount", "linearValue", " (linear)"),
        ("/allocations", "unlockAmount", "unlockValue", ""),
    ];
    let mut all = Vec::new();
    for (list, amount, value, suffix) in lists {
        for item in record.pointer(list).and_then(Value::as_array).into_iter().flatten() {
            let number = |field: &str| item.get(field).and_then(finite);
            let name = item.get("allocationName").or_else(|| item.get("standardAllocationName")).and_then(Value::as_str);
            all.push((number(amount).unwrap_or_default(), name.unwrap_or("unnamed"), number(amount), number(value), suffix));
        }
    }
    let total = all.len();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let row = |(_, name, amount, value, suffix): (f64, &str, Option<f64>, Option<f64>, &str)| {
        let name = format!("{}{suffix}", text::line(name, 80));
        (name, amount.map(phrase::amount).unwrap_or_default(), value.map(phrase::usd).unwrap_or_default())
    };
    (all.into_iter().take(MAX_ROWS).map(row).collect(), total)
}
