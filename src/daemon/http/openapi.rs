//! The description of `/api/…` at `/api/openapi.json`: OpenAPI 3.0, which every generator of clients reads. A test holds it against the
//! routes that there are, and against answers of each.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// `GET /api/openapi.json`.
pub(super) async fn document() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| describe().to_string());
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// What an operation answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// One of these.
    One(&'static str),
    /// A list of these, in parts.
    List(&'static str),
    /// A list of these, whole.
    Whole(&'static str),
    Nothing,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub id: &'static str,
    pub summary: &'static str,
    /// Parameters of the query, by their names in `PARAMETERS`.
    pub query: &'static [&'static str],
    pub body: Option<&'static str>,
    pub status: &'static str,
    pub answer: Answer,
}

const fn read(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: &'static [&'static str],
    answer: Answer,
) -> Operation {
    Operation { method: "get", path, id, summary, query, body: None, status: "200", answer }
}

const fn write(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    body: Option<&'static str>,
    status: &'static str,
    answer: Answer,
) -> Operation {
    Operation { method, path, id, summary, query: &[], body, status, answer }
}

/// Every operation that there is.
pub(super) const OPERATIONS: &[Operation] = &[
    read("/api/status", "getStatus", "How everything stands", &[], Answer::One("Status")),
    read(
        "/api/upcoming",
        "listUpcoming",
        "Unlocks ahead, the nearest first",
        &["tokens", "group", "within", "min_value", "rules"],
        Answer::List("Unlock"),
    ),
    read("/api/tokens", "listTokens", "Tokens", &["q", "sort"], Answer::List("Token")),
    read("/api/tokens/{id}", "getToken", "A token with every record that is known", &[], Answer::One("TokenDetail")),
    read(
        "/api/changes",
        "listChanges",
        "Changes, the latest first",
        &["token", "kind", "resource", "since"],
        Answer::List("ChangeRow"),
    ),
    read(
        "/api/alerts",
        "listAlerts",
        "Alerts, those that moved last first",
        &["state", "rule", "token", "severity", "acknowledged", "receiver"],
        Answer::List("Alert"),
    ),
    read(
        "/api/alerts/{id}",
        "getAlert",
        "An alert with its story: what was told to whom, and why",
        &[],
        Answer::One("AlertStory"),
    ),
    read("/api/rules", "listRules", "The rules at work", &["rule"], Answer::List("Rule")),
    read(
        "/api/outbox",
        "listDeliveries",
        "Deliveries, the newest first",
        &["receiver", "delivery_state"],
        Answer::List("Delivery"),
    ),
    read(
        "/api/outbox/{id}",
        "getDelivery",
        "A delivery with its attempts and everything that it stands for",
        &[],
        Answer::One("DeliveryDetail"),
    ),
    read("/api/silences", "listSilences", "Silences that are not over", &[], Answer::Whole("Silence")),
    write(
        "post",
        "/api/silences",
        "makeSilence",
        "Makes a silence; with `dryRun` says what it would hide",
        Some("NewSilence"),
        "201",
        Answer::One("SilenceMade"),
    ),
    read(
        "/api/silences/preview",
        "previewSilence",
        "What a silence with these matchers would hide",
        &["matcher"],
        Answer::One("SilencePreview"),
    ),
    write("delete", "/api/silences/{id}", "expireSilence", "Ends a silence", None, "204", Answer::Nothing),
    read("/api/acks", "listAcknowledgements", "What is acknowledged", &[], Answer::Whole("Acknowledgement")),
    write(
        "post",
        "/api/acks",
        "acknowledge",
        "Acknowledges an alert",
        Some("NewAcknowledgement"),
        "201",
        Answer::One("AcknowledgementMade"),
    ),
    read("/api/openapi.json", "getDescription", "This description", &[], Answer::One("Description")),
];

/// Parameters: the name under which operations ask for it, its name in the query, its type, what it means.
const PARAMETERS: &[(&str, &str, &str, &str)] = &[
    ("token", "token", "string", "Slug of a token."),
    ("tokens", "token", "string", "Slugs of tokens, with commas between."),
    ("group", "group", "string", "Names of `[watch.groups]`, with commas between."),
    ("within", "within", "string", "How far ahead: `30d`."),
    ("min_value", "min_value", "number", "Least value, USD."),
    ("rules", "rule", "string", "Only what these rules would tell, with commas between."),
    ("rule", "rule", "string", "Name or id of a rule."),
    ("q", "q", "string", "Part of a slug, name or ticker."),
    ("sort", "sort", "string", "`value`, `share`, `next`, `market_cap` or `name`."),
    ("kind", "kind", "string", "Kind of change, such as `rescheduled`."),
    ("resource", "resource", "string", "`unlock`, `burn`, `buyback`, `emission`, `allocation` or `funding`."),
    ("since", "since", "string", "How far back: `7d`."),
    ("state", "state", "string", "`pending`, `firing`, `resolved`, `event`; several with commas between."),
    ("severity", "severity", "string", "The label `severity`."),
    ("acknowledged", "acknowledged", "boolean", "Only what is acknowledged, or only what is not."),
    ("receiver", "receiver", "string", "Name of a receiver."),
    ("delivery_state", "state", "string", "`due`, `retrying`, `delivered`, `dead`, `dropped`; several with commas between."),
    ("matcher", "matcher", "string", "A matcher such as `token=\"arbitrum\"`; may be given several times, all must hold."),
    ("limit", "limit", "integer", "Most rows, 100 where it is not given, at most 10,000."),
    ("after", "after", "string", "Where the list goes on: from `next` of the part before."),
    (
        "paged",
        "paged",
        "boolean",
        "Whether the answer is an object with `total`, `next` and `items`; else the bare items, as ever.",
    ),
];

/// Schemas: name, and fields with their types. A `?` after a type: it may be null. A `*` after a name: it may be left out. `[x]` is a
/// list of x; `any` is any JSON; a type with a capital is another schema.
const SCHEMAS: &[(&str, &[(&str, &str)])] = &[
    (
        "Status",
        &[
            ("at", "time"),
            ("version", "string"),
            ("sourceUp", "boolean?"),
            ("source", "string"),
            ("troubles", "[string]"),
            ("endpoints", "[object]"),
            ("credits", "object"),
            ("removalsHeld", "integer"),
            ("removalsAwaitingProof", "integer"),
            ("feedsFailing", "integer"),
            ("tokens", "integer"),
            ("tokensListed", "integer"),
            ("records", "object"),
            ("alerts", "object"),
            ("outbox", "[object]"),
            ("silences", "[Silence]"),
            ("acknowledged", "integer"),
            ("digests", "[object]"),
            ("database", "object"),
            ("rules", "object"),
            ("daemon", "object?"),
        ],
    ),
    (
        "Unlock",
        &[
            ("tokenId", "string"),
            ("symbol", "string"),
            ("name", "string"),
            ("unlockDate", "time?"),
            ("precision", "string"),
            ("when", "string"),
            ("cliffAmount", "number?"),
            ("cliffValue", "number?"),
            ("valueToMarketCap", "number?"),
            ("daysUntil", "number?"),
            ("allocations", "[string]"),
            ("listedMethod", "string?"),
            ("polledAt", "time?"),
            ("record", "any"),
        ],
    ),
    (
        "Token",
        &[
            ("id", "string"),
            ("name", "string"),
            ("symbol", "string"),
            ("marketCap", "number?"),
            ("groups", "[string]"),
            ("watched", "boolean"),
            ("listed", "boolean"),
            ("nextUnlockDate", "time?"),
            ("nextUnlockValue", "number?"),
            ("aheadCount", "integer"),
            ("aheadValue", "number"),
        ],
    ),
    (
        "TokenDetail",
        &[
            ("id", "string"),
            ("name", "string"),
            ("symbol", "string"),
            ("groups", "[string]"),
            ("watched", "boolean"),
            ("item", "object"),
            ("feeds", "[Feed]"),
            ("records", "object"),
        ],
    ),
    (
        "Feed",
        &[("endpoint", "string"), ("readAt", "time?"), ("triedAt", "time?"), ("failingSince", "time?"), ("heldSince", "time?")],
    ),
    (
        "ChangeRow",
        &[
            ("id", "integer"),
            ("at", "time"),
            ("token", "string"),
            ("symbol", "string?"),
            ("resource", "string"),
            ("key", "string?"),
            ("change", "Change"),
        ],
    ),
    (
        "Change",
        &[
            ("kind", "string"),
            ("resource*", "string?"),
            ("token*", "string?"),
            ("key*", "string?"),
            ("from*", "any"),
            ("to*", "any"),
            ("shiftDays*", "number?"),
            ("shiftDaysMin*", "number?"),
            ("shiftDaysMax*", "number?"),
            ("ratio*", "number?"),
            ("amount*", "number?"),
            ("count*", "integer"),
            ("allocations*", "[object]"),
            ("fields*", "[object]"),
            ("before*", "object?"),
            ("after*", "object?"),
            ("summary", "string"),
            ("old*", "any"),
            ("new*", "any"),
        ],
    ),
    ("Alert", ALERT),
    (
        "AlertStory",
        &[
            ("id*", "string"),
            ("rule*", "string"),
            ("state*", "string"),
            ("reason*", "string?"),
            ("tokenId*", "string?"),
            ("resource*", "string?"),
            ("subject*", "string"),
            ("summary*", "string"),
            ("labels*", "strings"),
            ("annotations*", "strings"),
            ("leads*", "[string]"),
            ("told*", "[string]"),
            ("notTold*", "strings"),
            ("when*", "string?"),
            ("activeAt*", "time"),
            ("startsAt*", "time?"),
            ("endsAt*", "time?"),
            ("updatedAt*", "time"),
            ("acknowledgement", "Acknowledgement?"),
            ("record", "any"),
            ("change", "ChangeRow?"),
            ("messages", "[Message]"),
            ("deliveries", "[DeliveryDetail]"),
            ("explanation", "Explanation?"),
            ("unexplained", "string?"),
        ],
    ),
    (
        "Message",
        &[
            ("notice", "string"),
            ("alert", "string"),
            ("type", "string"),
            ("at", "time"),
            ("rule", "string"),
            ("summary", "string"),
            ("receiver", "string?"),
            ("state", "string"),
            ("role", "string?"),
            ("delivery", "integer?"),
            ("holder", "string?"),
            ("text", "string"),
        ],
    ),
    ("Explanation", &[("about", "string"), ("steps", "[Step]"), ("fired", "boolean"), ("so", "string")]),
    ("Step", &[("mark", "string"), ("text", "string"), ("parts*", "[Step]")]),
    (
        "Rule",
        &[
            ("id", "string"),
            ("name", "string"),
            ("on", "string"),
            ("file", "string"),
            ("line", "integer?"),
            ("within", "[string]"),
            ("receivers", "[string]"),
            ("owner", "string?"),
            ("expires", "time?"),
            ("isExpired", "boolean"),
            ("lastMatch", "time?"),
            ("pending", "integer"),
            ("firing", "integer"),
        ],
    ),
    ("Delivery", DELIVERY),
    (
        "DeliveryDetail",
        &[
            ("id", "integer"),
            ("webhookId", "string"),
            ("receiver", "string"),
            ("state", "string"),
            ("attempts", "integer"),
            ("nextAttemptAt", "time?"),
            ("lastAnswer", "string?"),
            ("createdAt", "time"),
            ("deliveredAt", "time?"),
            ("shape", "string"),
            ("truncatedAlerts", "integer"),
            ("alerts", "[DeliveryAlert]"),
            ("attemptLog", "[Attempt]"),
            ("messages", "[object]"),
            ("counted", "[DeliveryAlert]"),
        ],
    ),
    (
        "DeliveryAlert",
        &[
            ("id", "string"),
            ("notice", "string"),
            ("type", "string"),
            ("rule", "string"),
            ("token", "string?"),
            ("summary", "string"),
        ],
    ),
    ("Attempt", &[("at", "time"), ("tookMs", "integer"), ("outcome", "string"), ("status", "integer?"), ("answer", "string")]),
    (
        "Silence",
        &[
            ("state", "string"),
            ("id", "string"),
            ("matchers", "[string]"),
            ("author", "string"),
            ("comment", "string"),
            ("startsAt", "time"),
            ("endsAt", "time"),
            ("createdAt", "time"),
        ],
    ),
    (
        "NewSilence",
        &[
            ("matchers", "[any]"),
            ("author", "string"),
            ("comment", "string"),
            ("startsAt*", "time"),
            ("endsAt*", "time"),
            ("duration*", "string"),
            ("dryRun*", "boolean"),
        ],
    ),
    ("SilenceMade", &[("id*", "string"), ("silenceID*", "string"), ("silence", "Silence"), ("hides", "SilencePreview")]),
    (
        "SilencePreview",
        &[("alerts", "[SilencedAlert]"), ("open", "integer"), ("lastWeek", "integer"), ("lastWeekAll", "integer")],
    ),
    ("SilencedAlert", &[("id", "string"), ("rule", "string"), ("state", "string"), ("summary", "string")]),
    ("Acknowledgement", &[("alert", "string"), ("author", "string"), ("comment", "string"), ("at", "time"), ("fact", "any")]),
    ("NewAcknowledgement", &[("alert", "string"), ("author", "string"), ("comment*", "string")]),
    ("AcknowledgementMade", &[("alert", "string")]),
    (
        "Description",
        &[("openapi", "string"), ("info", "object"), ("paths", "object"), ("components", "object"), ("security", "[object]")],
    ),
    ("Problem", &[("error", "string")]),
];

const ALERT: &[(&str, &str)] = &[
    ("id", "string"),
    ("rule", "string"),
    ("state", "string"),
    ("reason", "string?"),
    ("tokenId", "string?"),
    ("resource", "string?"),
    ("subject", "string"),
    ("summary", "string"),
    ("labels", "strings"),
    ("annotations", "strings"),
    ("leads", "[string]"),
    ("told", "[string]"),
    ("notTold", "strings"),
    ("when", "string?"),
    ("activeAt", "time"),
    ("startsAt", "time?"),
    ("endsAt", "time?"),
    ("updatedAt", "time"),
];

const DELIVERY: &[(&str, &str)] = &[
    ("id", "integer"),
    ("webhookId", "string"),
    ("receiver", "string"),
    ("state", "string"),
    ("attempts", "integer"),
    ("nextAttemptAt", "time?"),
    ("lastAnswer", "string?"),
    ("createdAt", "time"),
    ("deliveredAt", "time?"),
    ("shape", "string"),
    ("truncatedAlerts", "integer"),
    ("alerts", "[DeliveryAlert]"),
];

fn describe() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation);
    }
    let schemas: Map<String, Value> = SCHEMAS.iter().map(|(name, fields)| ((*name).to_owned(), object(fields))).collect();
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Cliffwatch",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What the pages show, for programs. Reading is free on loopback; elsewhere, and to change anything, a request carries \
                the token of `[http]`. Lists are bare arrays, and headers say how many rows there are and where the next part is; with \
                `paged=true` an object says it. Each answer has a tag. Fields may be added; none that is here goes or changes its meaning.",
            "license": {"name": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
            "responses": {
                "NotModified": {"description": "The tag in `If-None-Match` still holds."},
                "BadRequest": problem("The question makes no sense; the message says why."),
                "Unauthorized": {"description": "The token is missing or wrong."},
                "NotFound": problem("There is nothing of this id, or it was forgotten."),
                "TooMany": {"description": "Too many wrong tokens came from this address: wait for `Retry-After` seconds."},
            },
        },
    })
}

fn problem(description: &str) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": reference("Problem")}}})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn described(operation: &Operation) -> Value {
    let is_list = matches!(operation.answer, Answer::List(_));
    let mut names: Vec<&str> = operation.query.to_vec();
    if is_list {
        names.extend(["limit", "after", "paged"]);
    }
    let mut parameters: Vec<Value> = names.iter().filter_map(|name| parameter(name)).collect();
    if operation.path.contains("{id}") {
        let kind = if operation.path.starts_with("/api/outbox") { "integer" } else { "string" };
        parameters.insert(0, json!({"name": "id", "in": "path", "required": true, "schema": {"type": kind}}));
    }
    let mut responses = Map::new();
    responses.insert(operation.status.to_owned(), success(operation.answer));
    for (status, name, applies) in [
        ("304", "NotModified", operation.method == "get"),
        ("400", "BadRequest", !names.is_empty() || operation.body.is_some()),
        ("401", "Unauthorized", true),
        ("404", "NotFound", operation.path.contains("{id}") || operation.id == "acknowledge"),
        ("429", "TooMany", true),
    ] {
        if applies {
            responses.insert(status.to_owned(), json!({"$ref": format!("#/components/responses/{name}")}));
        }
    }
    let mut described = json!({
        "operationId": operation.id, "summary": operation.summary, "parameters": parameters, "responses": responses,
    });
    if operation.id == "makeSilence" {
        described["responses"]["200"] = success(operation.answer);
    }
    if let Some(body) = operation.body {
        described["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": reference(body)}}});
    }
    described
}

fn parameter(name: &str) -> Option<Value> {
    let (_, name, kind, description) = PARAMETERS.iter().find(|(key, ..)| *key == name)?;
    let (schema, style) = match *name {
        "matcher" => (json!({"type": "array", "items": {"type": "string"}}), true),
        _ => (json!({"type": kind}), false),
    };
    let mut parameter = json!({"name": name, "in": "query", "required": style, "description": description, "schema": schema});
    if style {
        (parameter["style"], parameter["explode"]) = ("form".into(), true.into());
    }
    Some(parameter)
}

fn success(answer: Answer) -> Value {
    let schema = match answer {
        Answer::Nothing => return json!({"description": "Done."}),
        Answer::One(name) => reference(name),
        Answer::Whole(name) => json!({"type": "array", "items": reference(name)}),
        Answer::List(name) => {
            let items = json!({"type": "array", "items": reference(name)});
            let page = json!({
                "type": "object", "required": ["total", "next", "items"],
                "properties": {"total": {"type": "integer"}, "next": {"type": "string", "nullable": true}, "items": items},
            });
            let mut response =
                json!({"description": "Good.", "content": {"application/json": {"schema": {"oneOf": [items, page]}}}});
            response["headers"] = json!({
                "cliffwatch-total": {"description": "How many rows there are in all.", "schema": {"type": "integer"}},
                "cliffwatch-has-more": {"description": "Whether there is another part.", "schema": {"type": "boolean"}},
                "link": {"description": "The address of the next part, `rel=\"next\"`.", "schema": {"type": "string"}},
            });
            return response;
        }
    };
    json!({"description": "Good.", "content": {"application/json": {"schema": schema}}})
}

fn object(fields: &[(&str, &str)]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('*')).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, kind)| (name.trim_end_matches('*').to_owned(), typed(kind))).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn typed(kind: &str) -> Value {
    if let Some(kind) = kind.strip_suffix('?') {
        let schema = typed(kind);
        // Beside a reference nothing else counts.
        let mut schema = if schema.get("$ref").is_some() { json!({"allOf": [schema]}) } else { schema };
        schema["nullable"] = true.into();
        return schema;
    }
    if let Some(inner) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        return json!({"type": "array", "items": typed(inner)});
    }
    match kind {
        "any" => json!({}),
        "time" => json!({"type": "string", "format": "date-time"}),
        "strings" => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        "string" | "number" | "integer" | "boolean" | "object" => json!({"type": kind}),
        name => reference(name),
    }
}

#[cfg(test)]
mod tests;
