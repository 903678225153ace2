//! Sentences about single fields of records.

use serde_json::Value;

use crate::{
    FieldChange,
    phrase::{amount, name},
};

/// The number of equal characters before the first different one that a sentence about two long values shows.
const CONTEXT_CHARS: usize = 16;

/// `cliffAmount is now 30`, `source of the schedule changed from a to b`.
pub(super) fn field_change(FieldChange { field, from, to }: &FieldChange) -> String {
    let field = field_label(field);
    match from {
        Value::Null => format!("{field} is now {}", field_value(to)),
        from => {
            let (from, to) = two_values(from, to);
            format!("{field} changed from {from} to {to}")
        }
    }
}

/// Two values as texts that differ if they do. If only the ends of long texts differ, as those of links do, their common begin is left out.
fn two_values(from: &Value, to: &Value) -> (String, String) {
    let texts = (field_value(from), field_value(to));
    let (Value::String(a), Value::String(b)) = (from, to) else { return texts };
    if texts.0 != texts.1 || a == b {
        return texts;
    }
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let end = |text: &str| name(&format!("…{}", text.chars().skip(common.saturating_sub(CONTEXT_CHARS)).collect::<String>()));
    (end(a), end(b))
}

/// The name of a field in a sentence. Unknown fields keep their name in the API.
pub(super) fn field_label(field: &str) -> &str {
    match field {
        "dataSource" => "source of the schedule",
        "listedMethod" => "listing method",
        "unlockPrecision" => "precision of the date",
        "tokenName" => "token name",
        "tokenSymbol" => "ticker",
        "standardAllocationName" => "category",
        "allocationName" => "name",
        "unlockDate" => "date",
        other => other,
    }
}

/// The name of a field in words, for a table. Unknown fields keep their name in the API, with spaces: `cliff amount`.
#[must_use]
pub fn field_words(field: &str) -> String {
    let label = field_label(field);
    if label != field || label.contains(|c: char| !c.is_ascii_alphanumeric()) {
        return label.to_owned();
    }
    let mut words = String::new();
    for c in label.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Returns whether a field says nothing about dates and amounts.
pub(super) fn is_label(field: &str) -> bool {
    matches!(field, "dataSource" | "listedMethod" | "tokenName" | "tokenSymbol")
}

/// The value of a field, short and on one line.
pub(super) fn field_value(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => name(text),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), amount),
        other => name(&other.to_string()),
    }
}
