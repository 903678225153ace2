//! The JSON Schema of the config, from the declared keys.

use rules::schema::{closed, span};
use serde_json::{Map, Value, json};

use super::key_lookup;
use model::config::{Config, ConfigKey, InhibitRule, Route, SECTIONS, TimeIntervals, ValueKind, one_line};
use notify::format::FORMAT_NAMES;

pub fn config() -> Value {
    let list_of = |items: Value| json!({ "type": "array", "items": items });
    let sections = SECTIONS.iter().map(|section| {
        let default_of = |key: &ConfigKey| Config::default_of(section.name, key.name);
        (section.name.to_owned(), table(section.keys, &default_of))
    });
    let mut properties: Map<String, Value> = sections.collect();
    properties.insert("receiver".to_owned(), list_of(table(key_lookup::receiver(), &no_default)));
    properties.insert("route".to_owned(), json!({ "$ref": "#/$defs/route" }));
    properties.insert("inhibit_rules".to_owned(), list_of(table(InhibitRule::KEYS, &no_default)));
    properties.insert("time_intervals".to_owned(), list_of(table(TimeIntervals::KEYS, &no_default)));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cliffwatch config",
        "description": "Config of Cliffwatch. A key that is left out has its default. A secret can also be given as `x_file`.",
        "type": "object",
        "additionalProperties": closed(),
        "properties": properties,
        "$defs": { "route": table(Route::KEYS, &no_default) },
    })
}

fn no_default(_: &ConfigKey) -> Option<Value> {
    None
}

fn table(keys: &[ConfigKey], default_of: &dyn Fn(&ConfigKey) -> Option<Value>) -> Value {
    let property = |key: &ConfigKey| {
        let mut property = of_kind(key.kind);
        if !key.description.is_empty() {
            property["description"] = one_line(key.description).into();
        }
        if let Some(default) = default_of(key) {
            property["default"] = default;
        }
        (key.name.to_owned(), property)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    let mut table = json!({ "type": "object", "additionalProperties": closed(), "properties": properties });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

/// The values of a kind, as far as a schema can express them.
fn of_kind(kind: ValueKind) -> Value {
    match kind {
        ValueKind::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        ValueKind::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Choice(words) => json!({ "enum": words }),
        ValueKind::Choices(words) => json!({ "type": "array", "minItems": 1, "items": { "enum": words } }),
        ValueKind::Format => json!({ "enum": FORMAT_NAMES }),
        ValueKind::Version(versions) => {
            let known = versions.iter().rev().map(|version| format!("v{version}"));
            json!({ "enum": std::iter::once("auto".to_owned()).chain(known).collect::<Vec<_>>() })
        }
        ValueKind::Percent => json!({ "type": "string", "pattern": "^\\s*[0-9]+(\\.[0-9]+)?\\s*%\\s*$" }),
        ValueKind::Span(..) => span(),
        ValueKind::Spans(..) => json!({ "type": "array", "items": span() }),
        ValueKind::Groups => {
            json!({ "type": "object", "additionalProperties": { "type": "array", "items": { "type": "string" } } })
        }
        ValueKind::Positions => json!({ "type": "object", "additionalProperties": { "type": "number", "minimum": 0 } }),
        ValueKind::Table(keys) => table(keys, &no_default),
        ValueKind::Tables(keys) => json!({ "type": "array", "items": table(keys, &no_default) }),
        ValueKind::Routes => json!({ "type": "array", "items": { "$ref": "#/$defs/route" } }),
        list if list.is_list() => json!({ "type": "array", "items": { "type": "string" } }),
        ValueKind::TextOrNumber => json!({}),
        _ => json!({ "type": "string" }),
    }
}

#[cfg(test)]
mod tests;
