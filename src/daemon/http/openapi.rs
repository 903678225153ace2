//! The description of `/api/…` at `/api/openapi.json`: OpenAPI 3.0, which every generator of clients reads. A test holds it against the
//! routes that there are, and against answers of each.

mod operations;
mod schemas;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use operations::{OPERATIONS, PARAMETERS};
use schemas::SCHEMAS;

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
