//! The header of a feed: the fields of a payload other than its records.

use serde_json::Value;

use model::{
    poll::Payload,
    wire::{self, Maybe, Text},
};

/// Returns the fields other than the records, or `None` if the payload is a plain list.
pub(super) fn header_of(payload: &Payload) -> Option<Value> {
    let without_rows = |mut value: Value, rows: &str| {
        value.as_object_mut().map(|object| object.remove(rows));
        value
    };
    match payload {
        Payload::Burns(data) => serde_json::to_value(wire::BurnData { burns: Maybe::Absent, ..data.clone() }).ok(),
        Payload::Buybacks(data) => serde_json::to_value(wire::BuybackData { buybacks: Maybe::Absent, ..data.clone() }).ok(),
        Payload::Allocations(data) => serde_json::to_value(data).ok().map(|value| without_rows(value, "allocations")),
        _ => None,
    }
}

/// Fills the gaps of a header with known fields: the max supply, totals, and names.
pub(super) fn with_known_fields(mut header: Value, known: Option<&Value>) -> Value {
    let known = known.and_then(Value::as_object);
    if let (Some(fields), Some(known)) = (header.as_object_mut(), known) {
        for (field, value) in known.iter().filter(|(field, _)| wire_fields().any(|wire| wire == field.as_str())) {
            let given = fields.entry(field.clone()).or_insert(Value::Null);
            if given.is_null() {
                given.clone_from(value);
            }
        }
    }
    header
}

fn wire_fields() -> impl Iterator<Item = &'static str> {
    [wire::BurnData::FIELDS, wire::BuybackData::FIELDS, wire::AllocationsData::FIELDS].into_iter().flatten().copied()
}

/// Returns the name and the ticker of the token, if the payload has both.
pub(super) fn names_of(payload: &Payload) -> Option<(String, String)> {
    let pair = |name: &Maybe<Text>, symbol: &Maybe<Text>| {
        Some((name.as_str().filter(|name| !name.is_empty())?.to_owned(), symbol.as_str().filter(|s| !s.is_empty())?.to_owned()))
    };
    match payload {
        Payload::UnlockEvents(events) => events.iter().find_map(|event| pair(&event.token_name, &event.token_symbol)),
        Payload::Burns(data) => pair(&data.token_name, &data.token_symbol),
        Payload::Buybacks(data) => pair(&data.token_name, &data.token_symbol),
        Payload::Allocations(data) => pair(&data.name, &data.symbol),
        Payload::Emissions(days) => days.iter().find_map(|day| pair(&day.token_name, &day.token_symbol)),
        Payload::Tokens(_) | Payload::Upcoming(_) | Payload::Investors(_) | Payload::Investor(_) => None,
    }
}
