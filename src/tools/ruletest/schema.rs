//! JSON Schema of files of rule tests. What a record may hold is the API's own, and checked when the tests run.

use serde_json::{Value, json};

use super::file::{KINDS, short};
use model::{BatchKind, Resource};
use rules::schema::closed;

/// The schema of files of rule tests; `config` is that of the config, whose routes and receivers a test may name.
pub fn tests(config: &Value) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let of = |definition: &str, description: &str| json!({ "$ref": format!("#/$defs/{definition}"), "description": description });
    let list = |items: Value, description: &str| json!({ "type": "array", "items": items, "description": description });
    let table = |required: &[&str], properties: Value| json!({ "type": "object", "additionalProperties": closed(), "required": required, "properties": properties });
    let tokens = list(of("facts", "With its `id`, the slug."), "Facts of the token list: `id`, `symbol`, `circulatingSupply`, …");
    let mut input = json!({
        "at": of("time", "From when on the source says so. Left out: with the input before."),
        "token": text("The token's slug."),
        "facts": of("facts", "Facts of the token list that are other from then on."),
        "add": list(of("correction", ""), "Further records: `{ burn = \"2026-03-02\", amount = 5e6 }`."),
        "change": list(of("correction", ""), "Other facts of a record: `{ unlock = \"2026-03-16\", unlockDate = \"2026-03-20\" }`."),
        "remove": list(of("correction", ""), "Records that are left out from then on: `{ unlock = \"2026-03-16\" }`."),
    });
    for resource in Resource::ALL {
        input[resource.as_str()] = of("records", &format!("All {resource} records from then on."));
    }
    let expect = json!({
        "at": of("time", "Up to when: all that was told since the expectation before."),
        "rule": text("Look at alerts of this rule alone."),
        "silence": json!({ "type": "boolean", "description": "Nothing was told." }),
        "alert": list(of("alert", ""), "What was told, and nothing else."),
        "message": list(of("message", ""), "All messages that were sent since the expectation before."),
    });
    let message = json!({
        "receiver": text("Who gets it."),
        "at": of("time", "When it was sent."),
        "shape": json!({ "enum": BatchKind::ALL.map(BatchKind::as_str), "description": "What it is." }),
        "alerts": list(json!({ "type": "string" }), "The rules of the alerts that it tells, in order."),
        "count": json!({ "type": "integer", "minimum": 0, "description": "Alerts that it tells and counts." }),
    });
    let quiet = json!({
        "matchers": list(json!({ "type": "string" }), "Labels of what is not to be told: `token=arbitrum`."),
        "from": of("time", "Left out: from the start on."),
        "until": of("time", "When it ends."),
    });
    let alert = json!({
        "rule": text("The `alert` name of the rule."),
        "token": text("The token's slug."),
        "type": json!({ "enum": KINDS.map(short), "description": "The kind of message." }),
        "reason": text("`lead 7d`, `cleared`, `passed`, `rule gone`, …"),
        "at": of("time", "When it was told."),
        "labels": of("texts", "Labels, these at least."),
        "annotations": of("texts", "Final texts, these at least."),
        "summary": text("The final text of the first line."),
        "description": text("The final text of `description`."),
        "receivers": list(json!({ "type": "string" }), "Who is told, all of them."),
    });
    let test = json!({
        "name": text("What it shows, in words."),
        "start": json!({ "description": "Where the clock begins: a date, such as 2026-03-01T00:00:00Z." }),
        "token": tokens,
        "silence": list(table(&["matchers", "until"], quiet), "What somebody does not want to hear for a while."),
        "input": list(table(&["token"], input), "What the source says; the first answer about a token is its baseline."),
        "expect": list(table(&["at"], expect), "What is told."),
    });
    let beside = |key: &str| config.pointer(&format!("/properties/{key}")).cloned().unwrap_or_default();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cliffwatch rule tests",
        "description": "Tests of rules of Cliffwatch: what the source says, when, and what is to be told of it.",
        "type": "object",
        "additionalProperties": closed(),
        "properties": {
            "rules": list(json!({ "type": "string" }), "Rule files, relative to this one. Left out: those of the config."),
            "groups": json!({
                "type": "object", "additionalProperties": { "type": "array", "items": { "type": "string" } },
                "description": "In place of `[watch.groups]`.",
            }),
            "route": of("route", "In place of the config's routes; every receiver that it names exists."),
            "inhibit_rules": beside("inhibit_rules"),
            "time_intervals": beside("time_intervals"),
            "token": tokens,
            "test": list(table(&["name", "start"], test), "The tests."),
        },
        "$defs": {
            "route": config.pointer("/$defs/route"),
            "time": json!({ "description": "A date, or a length of time after `start`: `36h`, `7d`." }),
            "facts": json!({ "type": "object" }),
            "records": json!({ "type": ["array", "string"], "items": { "type": "object" } }),
            "correction": json!({ "type": "object", "minProperties": 1 }),
            "texts": json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            "alert": table(&["rule"], alert),
            "message": table(&["receiver"], message),
        },
    })
}

#[cfg(test)]
mod tests;
