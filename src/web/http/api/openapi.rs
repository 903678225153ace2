//! The OpenAPI 3.0 document at `/api/openapi.json`. Tests compare it with the routes and with real responses.

mod links;
mod schemas;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::operations::{DocumentedBody, LIVE_EVENTS, OPERATIONS, Operation};
use crate::http::error::PROBLEM;
use crate::http::parameters::{MAX_CURSOR, MAX_TEXT, Parameter, ParameterKind};
use links::links_of;
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
    let mut schemas = schemas::generated();
    schemas.extend(SCHEMAS.iter().map(|(name, fields)| ((*name).to_owned(), object_schema(&parse_fields(fields)))));
    let responses: Map<String, Value> =
        PROBLEMS.iter().map(|problem| (problem.name.to_owned(), problem_response(problem))).collect();
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Cliffwatch",
            "version": CONTRACT_VERSION,
            "description": "The data of the web pages. On loopback, reads need no token. On other addresses, and for all changes, send the \
                token of `[http]` or an access key as a bearer token; \
                `x-required-role` is the role that an access key needs. A POST request with the header `Idempotency-Key` has its \
                effect once, however often it is sent. A list is a bare array; headers contain the total and \
                the link to the next page. With `paged=true`, a list is an object with `total`, `next`, `previous`, and `items`. Each response of the API has an `ETag`. An \
                error is a problem (RFC 9457); its `code` is for programs. Later versions of this document may add paths, optional \
                parameters, fields, words of enumerations, and codes. Clients must ignore fields and accept words that they do not \
                know. Nothing is removed or redefined below `/api/v1/`.",
            "license": {"name": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
            "responses": responses,
        },
    })
}

/// The version of the API's contract: the major number is that of the paths, the minor number rises with each addition.
const CONTRACT_VERSION: &str = "1.6.0";

/// A documented failure of operations.
struct DocumentedProblem {
    status: &'static str,
    /// The name of the response in the document.
    name: &'static str,
    description: &'static str,
    applies: fn(&Operation) -> bool,
}

/// The failures, by status.
const PROBLEMS: &[DocumentedProblem] = &[
    DocumentedProblem {
        status: "304",
        name: "NotModified",
        description: "The client has the current version, as named in `If-None-Match`.",
        applies: |operation| operation.method == "get" && operation.path != "/events",
    },
    DocumentedProblem {
        status: "400",
        name: "BadRequest",
        description: "A parameter or the body is not valid. `detail` contains the reason.",
        applies: |operation| operation.is_checked() || takes_key(operation),
    },
    DocumentedProblem { status: "401", name: "Unauthorized", description: "The token is missing or wrong.", applies: |_| true },
    DocumentedProblem {
        status: "403",
        name: "Forbidden",
        description: "The role of the access key does not allow the request; `requiredRole` has the one that does. Or, on loopback: the `Host` \
             header does not name this server.",
        applies: |_| true,
    },
    DocumentedProblem {
        status: "404",
        name: "NotFound",
        description: "The id or the name is unknown, or its data was deleted.",
        applies: |operation| {
            operation.body.is_some() || operation.path.contains("{id}") || has_names(operation) || operation.has_events()
        },
    },
    DocumentedProblem {
        status: "409",
        name: "Conflict",
        description: "Several tokens or alerts have this name: `suggestions` contains their ids. Or the state does not allow the action.",
        applies: |operation| {
            let is_action = operation.method == "post" && operation.path.contains("{id}");
            operation.body.is_some() || operation.id == "getToken" || has_names(operation) || is_action
        },
    },
    DocumentedProblem {
        status: "410",
        name: "Gone",
        description: "Events after the cursor were deleted. `suggestions` contains the number of the newest event.",
        applies: Operation::has_events,
    },
    DocumentedProblem {
        status: "413",
        name: "TooLarge",
        description: "The request body is larger than 128 KiB.",
        applies: |operation| operation.method != "get",
    },
    DocumentedProblem {
        status: "415",
        name: "UnsupportedMediaType",
        description: "The body is not declared as JSON.",
        applies: |operation| operation.body.is_some(),
    },
    DocumentedProblem {
        status: "422",
        name: "Unprocessable",
        description: "Another request had this `Idempotency-Key`. For a reload also: the config or a rule file has errors, and the last \
             valid ones stay active.",
        applies: takes_key,
    },
    DocumentedProblem {
        status: "429",
        name: "TooMany",
        description: "Too many failed logins from this address. Wait for the seconds in `Retry-After`.",
        applies: |_| true,
    },
    DocumentedProblem {
        status: "431",
        name: "HeadTooLarge",
        description: "The URL or the headers are too long. The response has no body.",
        applies: |_| true,
    },
    DocumentedProblem {
        status: "500",
        name: "Failed",
        description: "The daemon failed to process the request. Its log has the reason.",
        applies: |_| true,
    },
    DocumentedProblem {
        status: "503",
        name: "Busy",
        description: "The server is busy or not ready, or the response took too long. Try again after the seconds in `Retry-After`.",
        applies: |_| true,
    },
];

/// Returns whether the header `Idempotency-Key` makes a repeated request safe.
fn takes_key(operation: &Operation) -> bool {
    operation.method == "post"
}

/// Returns whether a parameter names a token, a group, a rule, or a receiver.
fn has_names(operation: &Operation) -> bool {
    let is_name = |parameter: &Parameter| matches!(parameter.name, "token" | "group" | "rule" | "receiver" | "matcher");
    operation.parameters.iter().any(is_name)
}

fn problem_response(problem: &DocumentedProblem) -> Value {
    if matches!(problem.status, "304" | "431") {
        return json!({"description": problem.description});
    }
    let mut response = json!({"description": problem.description, "content": {PROBLEM: {"schema": reference("Problem")}}});
    let header = |description: &str| json!({"description": description, "schema": {"type": "integer"}});
    let mut headers = Map::new();
    if matches!(problem.status, "429" | "503") {
        headers.insert("Retry-After".to_owned(), header("Seconds to wait before the next request."));
    }
    if matches!(problem.status, "401" | "429") {
        headers.insert("RateLimit-Limit".to_owned(), header("Number of failed logins that an address may have."));
        headers.insert("RateLimit-Remaining".to_owned(), header("Number of failed logins that are left."));
        headers.insert("RateLimit-Reset".to_owned(), header("Seconds until the next attempt is allowed, or until all are left."));
    }
    if !headers.is_empty() {
        response["headers"] = headers.into();
    }
    response
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn operation_json(operation: &Operation) -> Value {
    let declared = operation.query_parameters();
    let mut parameters: Vec<Value> = declared.iter().map(parameter_json).collect();
    if operation.path.contains("{id}") {
        let (kind, description) = match operation.id {
            "getDelivery" | "retryDelivery" | "dropDelivery" => ("integer", "Number of the delivery."),
            "getToken" | "acceptHeld" => ("string", "Slug or ticker of the token."),
            "getAlert" | "removeAcknowledgement" => ("string", "Id of the alert."),
            _ => ("string", "Id of the silence."),
        };
        let schema = json!({"type": kind});
        parameters.insert(0, json!({"name": "id", "in": "path", "required": true, "description": description, "schema": schema}));
    }
    if operation.path == LIVE_EVENTS.path {
        let description = "The `id` of the last event that the client got. It takes precedence over `after`.";
        let schema = json!({"type": "integer", "minimum": 0});
        parameters.push(json!({"name": "Last-Event-ID", "in": "header", "description": description, "schema": schema}));
    }
    if takes_key(operation) {
        let description = "A text such as a UUID, new for each request. A repeated request gets the response of the first one.";
        let schema = json!({"type": "string", "minLength": 1, "maxLength": 255});
        parameters.push(json!({"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema}));
    }
    let mut responses = Map::new();
    responses.insert(operation.status.to_owned(), success_response(operation.response));
    for problem in PROBLEMS.iter().filter(|problem| (problem.applies)(operation)) {
        let reference = format!("#/components/responses/{}", problem.name);
        let mut response = json!({ "$ref": reference });
        if operation.path.starts_with("/-/") {
            // Clients that do not accept JSON get a line of text.
            response = problem_response(problem);
            response["content"]["text/plain"] = json!({"schema": {"type": "string"}});
        }
        responses.insert(problem.status.to_owned(), response);
    }
    let mut json = json!({
        "operationId": operation.id, "summary": operation.summary, "parameters": parameters, "responses": responses,
        "x-required-role": operation.role(),
    });
    if operation.method == "get" {
        // On loopback, reads need no token.
        json["security"] = json!([{}, {"token": []}]);
    }
    if operation.path == LIVE_EVENTS.path {
        json["responses"]["200"]["description"] =
            "Server-sent events. Each has the number of the event as `id`, its type as `event`, and \
            an `Event` as JSON in `data`. A message with only an `id` passes events of other types."
                .into();
    }
    if matches!(operation.id, "makeSilence" | "replay") {
        // A dry run creates nothing.
        json["responses"]["200"] = success_response(operation.response);
    }
    if let Some(links) = links_of(operation.id) {
        json["responses"][operation.status]["links"] = links;
    }
    if let Some(body) = operation.body {
        json["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": reference(body)}}});
    }
    json
}

fn parameter_json(parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        ParameterKind::Text => json!({"type": "string", "minLength": 1, "maxLength": MAX_TEXT}),
        ParameterKind::Cursor => json!({"type": "string", "minLength": 1, "maxLength": MAX_CURSOR}),
        ParameterKind::Texts | ParameterKind::Names => json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
        ParameterKind::Word(words) => json!({"type": "string", "enum": words}),
        ParameterKind::Words(words) => json!({"type": "array", "minItems": 1, "items": {"type": "string", "enum": words}}),
        ParameterKind::Number => json!({"type": "number", "minimum": 0}),
        ParameterKind::Integer(min, u32::MAX) => json!({"type": "integer", "minimum": min}),
        ParameterKind::Integer(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        ParameterKind::Boolean => json!({"type": "boolean"}),
        ParameterKind::Duration => json!({"type": "string", "example": "7d"}),
    };
    let is_required = parameter.kind == ParameterKind::Texts;
    let mut json = json!({
        "name": parameter.name, "in": "query", "required": is_required, "description": parameter.description, "schema": schema,
    });
    if parameter.kind.is_repeatable() {
        (json["style"], json["explode"]) = ("form".into(), true.into());
    }
    json
}

fn success_response(response: DocumentedBody) -> Value {
    let schema = match response {
        DocumentedBody::Empty => return json!({"description": "No content."}),
        DocumentedBody::Text(kind) => {
            return json!({"description": "Success.", "content": {kind: {"schema": {"type": "string"}}}});
        }
        DocumentedBody::One(name) => reference(name),
        DocumentedBody::All(name) => json!({"type": "array", "items": reference(name)}),
        DocumentedBody::List(name) => {
            let items = json!({"type": "array", "items": reference(name)});
            let page = json!({
                "type": "object", "required": ["total", "next", "previous", "items"],
                "properties": {
                    "total": {"type": "integer"}, "next": {"type": "string", "nullable": true},
                    "previous": {"type": "string", "nullable": true}, "items": items,
                },
            });
            let mut response =
                json!({"description": "Success.", "content": {"application/json": {"schema": {"oneOf": [items, page]}}}});
            response["headers"] = json!({
                "cliffwatch-total": {"description": "The number of matching rows on all pages.", "schema": {"type": "integer"}},
                "cliffwatch-has-more": {"description": "Whether another page follows.", "schema": {"type": "boolean"}},
                "link": {
                    "description": "The URL of the next page, with `rel=\"next\"`, and of the rows before this page, with `rel=\"prev\"`.",
                    "schema": {"type": "string"},
                },
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
    if let Some(inner) = kind.strip_prefix('{').and_then(|kind| kind.strip_suffix('}')) {
        return json!({"type": "object", "additionalProperties": type_schema(inner)});
    }
    if let Some(inner) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        return json!({"type": "array", "items": type_schema(inner)});
    }
    match kind {
        "any" => json!({}),
        "time" => json!({"type": "string", "format": "date-time"}),
        "strings" => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        "string" | "number" | "integer" | "boolean" => json!({"type": kind}),
        name => reference(name),
    }
}

#[cfg(test)]
mod tests;
