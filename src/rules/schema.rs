//! JSON Schema of rule files: what editors complete and validate. Built from the tables that the loader reads, so that neither can
//! know a key that the other does not.

use serde_json::{Value, json};

use super::load::{LEVEL_KEYS, RULE_KEYS};
use super::on::On;
use super::reference::{KnownBy, ReferenceKind, about_on, reference};

/// What stands for keys that are not known: nothing is right for them. The plain `false` says the same of the table as a whole, and an
/// editor then marks every line of it instead of the one key.
pub fn closed() -> Value {
    json!({ "allOf": [false] })
}

/// A list of `items`, or one of them by itself. `oneOf` would say the same, and an editor then marks all of it instead of the one
/// item. What `items` says of its own kind (such as `pattern`) holds for one that stands alone as well.
fn one_or_several(items: &Value) -> Value {
    let mut either = items.clone();
    either["type"] = json!(["array", items["type"]]);
    either["items"] = items.clone();
    either
}

/// A length of time, as [`humantime`](model::config::Span) reads it.
pub fn span() -> Value {
    const UNIT: &str = "(ns|nsec|nanos|us|usec|µs|ms|msec|millis|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|M|months?|y|yrs?|years?)";
    json!({
        "type": "string",
        "description": "A length of time: `90m`, `36h`, `7d`, `2w`.",
        "pattern": format!("^\\s*(0|([0-9]+(\\.[0-9]+)?\\s*{UNIT}\\s*)+)\\s*$"),
    })
}

/// The schema of rule files.
pub fn rules() -> Value {
    let on: Vec<String> = On::all().map(|on| on.to_string()).collect();
    let keys = |names: &[&str]| -> serde_json::Map<String, Value> {
        names.iter().map(|name| ((*name).to_owned(), key(name, &on))).collect()
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cliffwatch rules",
        "description": "Rules of Cliffwatch: what to listen to, when to fire, and what to say.",
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

/// What an editor shows beside each `on`: what it is, and the fields that a rule on it knows, with their units.
fn about_each_on() -> Vec<String> {
    let entries = reference(None);
    let about = |on: On| {
        let is_own =
            |known_by: KnownBy| known_by.meets(on) && !matches!(known_by, KnownBy::Any | KnownBy::OfOneToken | KnownBy::Records);
        let fields = entries.iter().filter(|entry| entry.kind == ReferenceKind::Field && is_own(entry.known_by));
        // The nested spelling of the wire says nothing more.
        let fields = fields.filter(|entry| !entry.about.starts_with("as `"));
        let fields: Vec<String> = fields.map(|entry| format!("`{}` ({})", entry.name, entry.unit)).collect();
        format!("{}. Fields: {}, …", about_on(on), fields.join(", "))
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
            json!({ "type": "string", "minLength": 1, "maxLength": 200, "description": "The alert's name: label `alertname`." })
        }
        "id" => json!({
            "type": "string", "minLength": 1, "maxLength": 200,
            "description": "What the rule is known by. With it, a renamed rule keeps its alerts; without it, `alert` is the id.",
        }),
        "on" => {
            json!({
                "enum": on, "x-taplo": { "docs": { "enumValues": about_each_on() } },
                "description": "What the rule listens to: records, changes of them (`unlock.rescheduled`, `unlock.*`), a token or a group as a whole, or trouble with the source. `cliffwatch fields` lists what each knows.",
            })
        }
        "when" => text("When it fires: CEL over the record's fields, such as `cliffValue >= 5000000 || valueToMarketCap >= 2`."),
        "clear_when" => text("When a firing alert ends; where it is missing, when `when` no longer holds."),
        "within" => {
            let mut within = one_or_several(&self::span());
            within["description"] = json!("Lead times: one alert for each coming record, told again at each of them.");
            within["uniqueItems"] = json!(true);
            within["maxItems"] = json!(64);
            within
        }
        "since" => span("How old a newly seen burn, buyback or round may be. Default `7d`."),
        "for" => span("How long the condition must hold before the alert fires."),
        "keep_firing_for" => span("How long a firing alert goes on after its condition no longer holds."),
        "missing" => {
            json!({ "enum": ["ignore", "fire"], "description": "What a comparison with a missing field makes of the rule. Default `ignore`: it does not fire." })
        }
        "tokens" => texts("Tokens by slug, glob (`apt*`) or group (`@portfolio`). Default: every watched token."),
        "listed_methods" => texts("How the source lists the token: `INTERNAL`, `AI`, `EXTERNAL`; globs."),
        "allocations" => texts("Recipients by name or category; globs."),
        "limit" => {
            json!({ "type": "integer", "minimum": 1, "maximum": 100_000, "description": "At most so many alerts from one cycle; what is left out is counted in one summary." })
        }
        "labels" => json!({ "$ref": "#/$defs/texts", "description": "Labels: templates over the record; they route the alert." }),
        "annotations" => {
            json!({ "$ref": "#/$defs/texts", "description": "Texts: templates over the record. `summary` is the first line of every message." })
        }
        "receivers" => texts("Receivers by name, past the routes."),
        "enabled" => json!({ "type": "boolean", "description": "`false` rests the rule. Default `true`." }),
        "owner" => text("Who answers for the rule."),
        "expires" => json!({ "description": "The rule rests from then on: a date, or a text such as \"2026-12-31\"." }),
        "level" => {
            json!({ "type": "array", "items": { "$ref": "#/$defs/level" }, "maxItems": 64, "description": "Levels: the last one that holds sets labels and texts." })
        }
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests;
