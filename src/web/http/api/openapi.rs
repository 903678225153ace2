//! The OpenAPI 3.0 document at `/api/openapi.json`. Tests compare it with the routes and with real responses.

mod schemas;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::operations::{DocumentedBody, OPERATIONS, Operation};
use crate::http::parameters::{Parameter, ParameterKind};
use schemas::SCHEMAS;

/// `GET /api/openapi.json`.
pub(super) async fn document() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi_json().to_string());
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

fn openapi_json() -> Value {
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation_json(operation);
    }
    let schemas: Map<String, Value> =
        SCHEMAS.iter().map(|(name, fields)| ((*name).to_owned(), object_schema(&parse_fields(fields)))).collect();
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Cliffwatch",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The data of the web pages. On loopback, reads need no token. On other addresses, and for all changes, send the \
                token of `[http]` as a bearer token. A list is a bare array; headers contain the total and the link to the next page. \
                With `paged=true`, a list is an object with `total`, `next`, and `items`. Each response has an `ETag`. Future versions \
                may add fields, but do not remove or redefine existing ones.",
            "license": {"name": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
            "responses": {
                "NotModified": {"description": "The client has the current version, as named in `If-None-Match`."},
                "BadRequest": error_response("The request is not valid. `error` contains the reason."),
                "Unauthorized": error_response("The token is missing or wrong."),
                "NotFound": error_response("The id is unknown, or its data was deleted."),
                "Busy": error_response("The server is busy, or the response took too long. Try again after the seconds in `Retry-After`."),
                "TooMany": error_response("Too many failed logins from this address. Wait for the seconds in `Retry-After`."),
            },
        },
    })
}

fn error_response(description: &str) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": reference("Problem")}}})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn operation_json(operation: &Operation) -> Value {
    let declared = operation.query_parameters();
    let mut parameters: Vec<Value> = declared.iter().map(parameter_json).collect();
    if operation.path.contains("{id}") {
        let kind = if operation.path.starts_with("/api/outbox") { "integer" } else { "string" };
        parameters.insert(0, json!({"name": "id", "in": "path", "required": true, "schema": {"type": kind}}));
    }
    let mut responses = Map::new();
    responses.insert(operation.status.to_owned(), success_response(operation.response));
    for (status, name, applies) in [
        ("304", "NotModified", operation.method == "get"),
        ("400", "BadRequest", !declared.is_empty() || operation.body.is_some()),
        ("401", "Unauthorized", true),
        ("404", "NotFound", operation.path.contains("{id}") || operation.id == "acknowledge"),
        ("429", "TooMany", true),
        ("503", "Busy", true),
    ] {
        if applies {
            responses.insert(status.to_owned(), json!({"$ref": format!("#/components/responses/{name}")}));
        }
    }
    let mut json = json!({
        "operationId": operation.id, "summary": operation.summary, "parameters": parameters, "responses": responses,
    });
    if operation.id == "makeSilence" {
        // A dry run creates nothing.
        json["responses"]["200"] = success_response(operation.response);
    }
    if let Some(body) = operation.body {
        json["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": reference(body)}}});
    }
    json
}

fn parameter_json(parameter: &Parameter) -> Value {
    let kind = match parameter.kind {
        ParameterKind::Text | ParameterKind::Texts => "string",
        ParameterKind::Number => "number",
        ParameterKind::Integer => "integer",
        ParameterKind::Boolean => "boolean",
    };
    let is_repeated = parameter.kind == ParameterKind::Texts;
    let schema = if is_repeated { json!({"type": "array", "items": {"type": kind}}) } else { json!({"type": kind}) };
    let mut json = json!({
        "name": parameter.name, "in": "query", "required": is_repeated, "description": parameter.description, "schema": schema,
    });
    if is_repeated {
        (json["style"], json["explode"]) = ("form".into(), true.into());
    }
    json
}

fn success_response(response: DocumentedBody) -> Value {
    let schema = match response {
        DocumentedBody::Empty => return json!({"description": "No content."}),
        DocumentedBody::One(name) => reference(name),
        DocumentedBody::All(name) => json!({"type": "array", "items": reference(name)}),
        DocumentedBody::List(name) => {
            let items = json!({"type": "array", "items": reference(name)});
            let page = json!({
                "type": "object", "required": ["total", "next", "items"],
                "properties": {"total": {"type": "integer"}, "next": {"type": "string", "nullable": true}, "items": items},
            });
            let mut response =
                json!({"description": "Success.", "content": {"application/json": {"schema": {"oneOf": [items, page]}}}});
            response["headers"] = json!({
                "cliffwatch-total": {"description": "The number of matching rows on all pages.", "schema": {"type": "integer"}},
                "cliffwatch-has-more": {"description": "Whether another page follows.", "schema": {"type": "boolean"}},
                "link": {"description": "The URL of the next page, with `rel=\"next\"`.", "schema": {"type": "string"}},
            });
            return response;
        }
    };
    json!({"description": "Success.", "content": {"application/json": {"schema": schema}}})
}

/// Parses the fields of a schema, see [`SCHEMAS`]. Names of optional fields end with `*`.
fn parse_fields(text: &str) -> Vec<(String, &str)> {
    let mut fields = Vec::new();
    for item in text.split(", ") {
        if let Some((name, kind)) = item.split_once(": ") {
            fields.push((name.to_owned(), kind));
        } else if let Some(included) = item.strip_prefix("...") {
            let name = included.trim_end_matches('*');
            let optional = &included[name.len()..];
            let text = SCHEMAS.iter().find(|(schema, _)| *schema == name).map_or("", |(_, text)| text);
            fields.extend(parse_fields(text).into_iter().map(|(field, kind)| (format!("{field}{optional}"), kind)));
        }
    }
    fields
}

fn object_schema(fields: &[(String, &str)]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).filter(|name| !name.ends_with('*')).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, kind)| (name.trim_end_matches('*').to_owned(), type_schema(kind))).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn type_schema(kind: &str) -> Value {
    if let Some(kind) = kind.strip_suffix('?') {
        let schema = type_schema(kind);
        // OpenAPI 3.0 ignores all siblings of `$ref`.
        let mut schema = if schema.get("$ref").is_some() { json!({"allOf": [schema]}) } else { schema };
        schema["nullable"] = true.into();
        return schema;
    }
    if let Some(inner) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        return json!({"type": "array", "items": type_schema(inner)});
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
