//! The JSON Schema of rule test files. Records are not described; they are checked when the tests run.

use serde_json::{Value, json};

use super::file::{KINDS, short};
use model::{BatchKind, Resource};
use rules::schema::closed;

/// Returns the schema of rule test files. `config` is the schema of the config, whose routes a test can use.
pub fn tests(config: &Value) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let of = |definition: &str, description: &str| json!({ "$ref": format!("#/$defs/{definition}"), "description": description });
    let list = |items: Value, description: &str| json!({ "type": "array", "items": items, "description": description });
    let table = |required: &[&str], properties: Value| json!({ "type": "object", "additionalProperties": closed(), "required": required, "properties": properties });
    let tokens =
        list(of("facts", "A token with its `id`, the slug."), "Rows of the token list: `id`, `symbol`, `circulatingSupply`, …");
    let mut input = json!({
        "at": of("time", "The time from which the source returns these records. Default: the time of the previous input."),
        "token": text("The slug of the token."),
        "facts": of("facts", "New values in the token list."),
        "add": list(of("correction", ""), "New records: `{ burn = \"2026-03-02\", amount = 5e6 }`."),
        "change": list(of("correction", ""), "New values of a record: `{ unlock = \"2026-03-16\", unlockDate = \"2026-03-20\" }`."),
        "remove": list(of("correction", ""), "Records that are removed: `{ unlock = \"2026-03-16\" }`."),
    });
    for resource in Resource::ALL {
        input[resource.as_str()] = of("records", &format!("All {resource} records from this time on."));
    }
    let expect = json!({
        "at": of("time", "The end of the period that is checked. It starts at the previous expectation."),
        "rule": text("Check only alerts of this rule."),
        "silence": json!({ "type": "boolean", "description": "Expect no notifications." }),
        "alert": list(of("alert", ""), "All notifications in the period."),
        "message": list(of("message", ""), "All messages in the period."),
    });
    let message = json!({
        "receiver": text("The receiver of the message."),
        "at": of("time", "The time of the message."),
        "shape": json!({ "enum": BatchKind::ALL.map(BatchKind::as_str), "description": "The shape of the message." }),
        "alerts": list(json!({ "type": "string" }), "The rules of the listed alerts, in order."),
        "count": json!({ "type": "integer", "minimum": 0, "description": "The number of listed and counted alerts." }),
    });
    let quiet = json!({
        "matchers": list(json!({ "type": "string" }), "Matchers, such as `token=arbitrum`."),
        "from": of("time", "The start of the silence. Default: the start of the test."),
        "until": of("time", "The end of the silence."),
    });
    let alert = json!({
        "rule": text("The `alert` name of the rule."),
        "token": text("The slug of the token."),
        "type": json!({ "enum": KINDS.map(short), "description": "The type of notification." }),
        "reason": text("`lead 7d`, `cleared`, `passed`, `rule gone`, …"),
        "at": of("time", "The time of the notification."),
        "labels": of("texts", "Expected labels. Other labels are ignored."),
        "annotations": of("texts", "Expected annotations. Other annotations are ignored."),
        "summary": text("The rendered `summary`."),
        "description": text("The rendered `description`."),
        "receivers": list(json!({ "type": "string" }), "All receivers."),
    });
    let test = json!({
        "name": text("A description of the tested behavior."),
        "start": json!({ "description": "The start of the simulated clock, such as 2026-03-01T00:00:00Z." }),
        "token": tokens,
        "silence": list(table(&["matchers", "until"], quiet), "Silences."),
        "input": list(table(&["token"], input), "Data of the source. The first input about a token is its baseline."),
        "expect": list(table(&["at"], expect), "Expected notifications and messages."),
    });
    let beside = |key: &str| config.pointer(&format!("/properties/{key}")).cloned().unwrap_or_default();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cliffwatch rule tests",
        "description": "Tests of Cliffwatch rules: data of the source over time, and the expected notifications.",
        "type": "object",
        "additionalProperties": closed(),
        "properties": {
            "rules": list(json!({ "type": "string" }), "Rule files, relative to this file. Default: the rule files of the config."),
            "groups": json!({
                "type": "object", "additionalProperties": { "type": "array", "items": { "type": "string" } },
                "description": "Groups, instead of `[watch.groups]` in the config.",
            }),
            "route": of("route", "Routes, instead of the routes in the config. All receivers that they name exist."),
            "inhibit_rules": beside("inhibit_rules"),
            "time_intervals": beside("time_intervals"),
            "token": tokens,
            "test": list(table(&["name", "start"], test), "The tests."),
        },
        "$defs": {
            "route": config.pointer("/$defs/route"),
            "time": json!({ "description": "A date, or a duration after `start`: `36h`, `7d`." }),
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
