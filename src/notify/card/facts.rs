//! The facts of a record: what it says of itself, and who gets how much.

use serde_json::Value;

use super::{MAX_ROWS, capitalized, headline::nearness, is_resolved};
use crate::text;
use model::{AlertBody, MemberBody, Notification, Timestamp, format};

/// The facts of the record, most telling first.
pub(super) fn facts(notice: &Notification, record: &Value, now: Timestamp) -> Vec<(&'static str, String)> {
    let body = &notice.body;
    let mut facts: Vec<(&'static str, String)> = Vec::new();
    if let Some(when) = &body.when {
        let near = if is_resolved(body) { None } else { nearness(notice, now) };
        let when = text::line(when, 80);
        let when = when.strip_prefix("on ").map_or(when.clone(), str::to_owned);
        let when = capitalized(&when);
        facts.push(("Date", near.map_or(when.clone(), |near| format!("{when} ({near})"))));
    }
    for (label, pointers, unit) in FACTS {
        let found = pointers.iter().find_map(|pointer| unit.show(record.pointer(pointer)?));
        if let Some(value) = found {
            facts.push((label, value));
        }
    }
    facts
}

/// How a field of a record is shown.
#[derive(Clone, Copy)]
enum FieldUnit {
    Usd,
    Tokens,
    Percent,
    Text,
    /// A word of an enumeration.
    Word,
    Words,
}

impl FieldUnit {
    fn show(self, value: &Value) -> Option<String> {
        let shown = match self {
            FieldUnit::Usd => format::usd(finite(value)?),
            FieldUnit::Tokens => format::tokens(finite(value)?),
            FieldUnit::Percent => format::percent(finite(value)?),
            FieldUnit::Text => text::line(value.as_str()?, text::MAX_LINE_CHARS),
            FieldUnit::Word => text::line(&format::constant(value.as_str()?), text::MAX_LINE_CHARS),
            FieldUnit::Words => {
                let words = value.as_array()?.iter().filter_map(Value::as_str).take(5);
                words.map(|each| text::line(&format::constant(each), 80)).collect::<Vec<_>>().join(", ")
            }
        };
        (!shown.is_empty()).then_some(shown)
    }
}

fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// What is shown of a record: label, where it is (the first that is there), unit. Each resource has some of them.
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
    ("Of market cap", &["/cliffUnlocks/valueToMarketCap"], FieldUnit::Percent),
    ("Begins to unlock", &["/linearUnlocks/linearAmount"], FieldUnit::Tokens),
    ("Worth", &["/linearUnlocks/linearValue"], FieldUnit::Usd),
    ("A day", &["/linearUnlocks/dailyAmount"], FieldUnit::Tokens),
    ("Raised", &["/totalAmountRaisedinThatRound", "/amountRaised"], FieldUnit::Usd),
    ("Valuation", &["/valuation"], FieldUnit::Usd),
    (
        "Price of a token",
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
    ("Spent in", &["/spentUnit"], FieldUnit::Text),
    ("Buyer", &["/buyerAddress"], FieldUnit::Text),
    ("Target", &["/targetAddress"], FieldUnit::Text),
    ("Allocation", &["/allocationName"], FieldUnit::Text),
    ("Category", &["/standardAllocationName"], FieldUnit::Text),
    ("Unlocked", &["/allocationUnlockedAmount"], FieldUnit::Tokens),
    ("Locked", &["/allocationLockedAmount"], FieldUnit::Tokens),
    ("Share of supply", &["/trackedAllocationPercentage"], FieldUnit::Percent),
];

/// The tokens of a group with what each does, and how many there are.
pub(super) fn members(body: &AlertBody) -> (Vec<(String, String, String)>, usize) {
    let row = |member: &MemberBody| {
        let symbol = if member.token.symbol.is_empty() { &member.token.id } else { &member.token.symbol };
        let share = member.share.map(|share| format!(" ({} of the group)", format::percent(share))).unwrap_or_default();
        let amount = member.amount.map(format::amount).unwrap_or_default();
        (format!("{}{share}", text::line(symbol, 40)), amount, member.value.map(format::usd).unwrap_or_default())
    };
    (body.members.iter().take(MAX_ROWS).map(row).collect(), body.members.len())
}

/// Who gets how much, the largest first, and how many there are.
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
        (name, amount.map(format::amount).unwrap_or_default(), value.map(format::usd).unwrap_or_default())
    };
    (all.into_iter().take(MAX_ROWS).map(row).collect(), total)
}
