//! The JSON Schema of rule files, for completion and validation in editors. It is built from the tables of the loader, so both
//! know the same keys.

use model::Recipient;
use serde_json::{Value, json};

use super::load::{LEVEL_KEYS, RULE_KEYS};
use super::on::On;
use super::reference::{KnownBy, ReferenceKind, describe_on, reference};

/// Returns a schema that rejects every value, for unknown keys. With a plain `false`, editors mark every line of the table
/// instead of the unknown key.
pub fn closed() -> Value {
    json!({ "allOf": [false] })
}

/// Returns a schema for one item or a list of items. `oneOf` is not used, because editors then mark the whole list instead of the
/// invalid item. Constraints of `items` such as `pattern` also apply to a single item.
fn item_or_list(items: &Value) -> Value {
    let mut either = items.clone();
    either["type"] = json!(["array", items["type"]]);
    either["items"] = items.clone();
    either
}

/// Returns the schema of a duration, as parsed by [`humantime`](model::config::Span).
pub fn span() -> Value {
    const UNIT: &str = "(ns|nsec|nanos|us|usec|µs|ms|msec|millis|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|M|months?|y|yrs?|years?)";
    json!({
        "type": "string",
        "description": "A duration: `90m`, `36h`, `7d`, `2w`.",
        "pattern": format!("^\\s*(0|([0-9]+(\\.[0-9]+)?\\s*{UNIT}\\s*)+)\\s*$"),
    })
}

pub fn rules() -> Value {
    let on: Vec<String> = On::all().map(|on| on.to_string()).collect();
    let keys = |names: &[&str]| -> serde_json::Map<String, Value> {
        names.iter().map(|name| ((*name).to_owned(), key(name, &on))).collect()
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cliffwatch rules",
        "description": "Rules of Cliffwatch: subscriptions, conditions, and message texts.",
        "type": "object",
        "additionalProperties": closed(),
        "properties": {
            "rule": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": closed(),
                    "required": ["alert", "on"],
                    "properties": keys(&RULE_KEYS),
                },
            },
        },
        "$defs": {
            "level": {
                "type": "object",
                "additionalProperties": closed(),
                "required": ["when"],
                "properties": keys(&LEVEL_KEYS),
            },
            "span": span(),
            "texts": {
                "type": "object",
                "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
                "additionalProperties": { "type": "string" },
                "maxProperties": 64,
            },
        },
    })
}

/// Returns the text that an editor shows for each value of `on`: a description, and its fields with their units.
fn on_descriptions() -> Vec<String> {
    let entries = reference(None);
    let about = |on: On| {
        let is_own = |known_by: KnownBy| {
            known_by.applies_to(on) && !matches!(known_by, KnownBy::Any | KnownBy::OfOneToken | KnownBy::Records)
        };
        let fields = entries.iter().filter(|entry| entry.kind == ReferenceKind::Field && is_own(entry.known_by));
        // Nested names of the API are duplicates.
        let fields = fields.filter(|entry| !entry.about.starts_with("same as `"));
        let fields: Vec<String> = fields.map(|entry| format!("`{}` ({})", entry.name, entry.unit)).collect();
        format!("{}. Fields: {}, …", describe_on(on), fields.join(", "))
    };
    On::all().map(about).collect()
}

/// The schema of one key of a rule or of a level.
fn key(name: &str, on: &[String]) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let span = |description: &str| json!({ "$ref": "#/$defs/span", "description": description });
    let texts = |description: &str| json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "minItems": 1, "description": description });
    match name {
        "alert" => {
            json!({ "type": "string", "minLength": 1, "maxLength": 200, "description": "The name of the alert, used as the label `alertname`." })
        }
        "id" => json!({
            "type": "string", "minLength": 1, "maxLength": 200,
            "description": "The stable id of the rule. With an id, a renamed rule keeps its alerts. Default: the value of `alert`.",
        }),
        "on" => {
            json!({
                "enum": on, "x-taplo": { "docs": { "enumValues": on_descriptions() } },
                "description": "What the rule subscribes to: records, changes of records (`unlock.rescheduled`, `unlock.*`), totals of a token or group, or incidents. `cliffwatch fields` lists the fields of each.",
            })
        }
        "when" => text(
            "The condition, a CEL expression over the record's fields, such as `cliffValue >= 5000000 || valueToMarketCap >= 2`.",
        ),
        "clear_when" => text("The condition that ends a firing alert. Default: `when` is no longer true."),
        "within" => {
            let mut within = item_or_list(&self::span());
            within["description"] = json!("Lead times. Each future record has one alert, with a notification at each lead time.");
            within["uniqueItems"] = json!(true);
            within["maxItems"] = json!(64);
            within
        }
        "since" => span("The maximum age of a new burn, buyback, or funding round. Default `7d`."),
        "for" => span("The time that the condition must be true before the alert fires."),
        "keep_firing_for" => span("The time that a firing alert continues after its condition is no longer true."),
        "missing" => {
            json!({ "enum": ["ignore", "fire"], "description": "Whether the rule fires if a field in the condition is missing. Default `ignore`: it does not fire." })
        }
        "tokens" => texts("Tokens by slug, glob (`apt*`), or group (`@portfolio`). Default: all watched tokens."),
        "listed_methods" => texts("The source's listing methods: `INTERNAL`, `AI`, `EXTERNAL`, or globs."),
        "allocations" => {
            let categories: Vec<String> = Recipient::all_categories().map(|(category, _)| format!("`{category}`")).collect();
            let mut texts = texts(&format!("Allocations by name or category, or globs. Categories: {}.", categories.join(", ")));
            texts["items"]["examples"] = Recipient::all_categories().map(|(category, _)| category).collect();
            texts
        }
        "limit" => {
            json!({ "type": "integer", "minimum": 1, "maximum": 100_000, "description": "The maximum number of alerts from one cycle. A summary counts the others." })
        }
        "labels" => json!({ "$ref": "#/$defs/texts", "description": "Labels, used to route the alert. Values are templates." }),
        "annotations" => {
            json!({ "$ref": "#/$defs/texts", "description": "Texts of the message. Values are templates. `summary` is the first line of every message." })
        }
        "receivers" => texts("Receivers by name, instead of the routes."),
        "enabled" => json!({ "type": "boolean", "description": "`false` disables the rule. Default `true`." }),
        "owner" => text("The person or team that owns the rule."),
        "expires" => {
            json!({ "description": "The date from which the rule is inactive: a TOML date, or a string such as \"2026-12-31\"." })
        }
        "level" => {
            json!({ "type": "array", "items": { "$ref": "#/$defs/level" }, "maxItems": 64, "description": "Levels. The last one whose condition is true sets labels and texts." })
        }
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests;
