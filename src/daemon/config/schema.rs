//! JSON Schema of the config, from the table of keys.

use rules::schema::{closed, span};
use serde_json::{Map, Value, json};

use super::keys::{self, ConfigKey, INHIBIT_RULE, ROUTE, SECTIONS, TIME_INTERVALS, ValueKind};

pub fn config() -> Value {
    let mut properties: Map<String, Value> = SECTIONS.iter().map(|(name, keys)| ((*name).to_owned(), table(keys, &[]))).collect();
    properties.insert("receiver".to_owned(), json!({ "type": "array", "items": table(keys::receiver(), &["name", "type"]) }));
    properties.insert("route".to_owned(), json!({ "$ref": "#/$defs/route" }));
    let inhibit_rule = table(INHIBIT_RULE, &["source_matchers", "target_matchers"]);
    properties.insert("inhibit_rules".to_owned(), json!({ "type": "array", "items": inhibit_rule }));
    let time_intervals = table(TIME_INTERVALS, &["name", "time_intervals"]);
    properties.insert("time_intervals".to_owned(), json!({ "type": "array", "items": time_intervals }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cliffwatch config",
        "description": "Config of Cliffwatch. What is left out has its default; a secret may be given as `x_file` as well.",
        "type": "object",
        "additionalProperties": closed(),
        "properties": properties,
        "$defs": { "route": table(ROUTE, &[]) },
    })
}

fn table(keys: &[ConfigKey], required: &[&str]) -> Value {
    let properties: Map<String, Value> = keys.iter().map(|key| (key.name.to_owned(), of_kind(key.kind))).collect();
    let mut table = json!({ "type": "object", "additionalProperties": closed(), "properties": properties });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

/// What a key of this kind may hold, as far as a schema can say it.
fn of_kind(kind: ValueKind) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    match kind {
        ValueKind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        ValueKind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Choice(words) => json!({ "enum": words }),
        ValueKind::Version(versions) => {
            let known = versions.iter().rev().map(|version| format!("v{version}"));
            json!({ "enum": std::iter::once("auto".to_owned()).chain(known).collect::<Vec<_>>() })
        }
        ValueKind::Percent => json!({ "type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]+)?\\s*%\\s*$" }),
        ValueKind::Span(..) => span(),
        ValueKind::Spans(..) => json!({ "type": "array", "items": span() }),
        ValueKind::Reach(..) => text("A length of time, `365d`, or `all`."),
        ValueKind::Cron => text("Six-field cron (seconds first) in `timezone`, or `off`."),
        ValueKind::Groups => {
            json!({ "type": "object", "additionalProperties": { "type": "array", "items": { "type": "string" } } })
        }
        ValueKind::Table(keys) => table(keys, &[]),
        ValueKind::Tables(keys) => json!({ "type": "array", "items": table(keys, &[]) }),
        ValueKind::TimeOfDay => text("A time of the day: `09:30`."),
        ValueKind::Routes => json!({ "type": "array", "items": { "$ref": "#/$defs/route" } }),
        list if list.is_list() => json!({ "type": "array", "items": { "type": "string" } }),
        secret if secret.is_secret() => text("Never shown. Better kept in a file: the same key with `_file`."),
        ValueKind::Text
        | ValueKind::File
        | ValueKind::Url(_)
        | ValueKind::Smtp
        | ValueKind::Size
        | ValueKind::Zone
        | ValueKind::Level
        | ValueKind::Listen
        | ValueKind::Mailbox => json!({ "type": "string" }),
        // What a schema cannot say is left to `cliffwatch check`.
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests;
