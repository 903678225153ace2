//! The OpenAPI 3.1 description at `/openapi.json`, generated from the table of routes, the table of versions, and the wire types.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::http::KEY_HEADER;
use crate::query::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, MAX_SLUG, StandardAllocation};
use crate::route::{ApiRoute, DataSubject, LEGACY_ROUTES, ROUTES, RouteParameterKind};
use crate::version::{covers_ai_since, shows};
use model::wire::{
    AllocationsData, BurnData, BuybackData, Described, Emission, ErrorBody, InvestorDetail, InvestorItem, JsonShape, ObjectShape,
    TokenFunding, TokenItem, UnlockEvent, UpcomingItem,
};

/// The text and its hash.
static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let text = describe().to_string();
    let tag = format!("{:032x}", xxh3_128(text.as_bytes()));
    (text, tag)
});

/// Returns the description and its tag.
pub fn document() -> (&'static str, &'static str) {
    let (text, tag) = &*DOCUMENT;
    (text, tag)
}

fn describe() -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for (route, is_legacy) in ROUTES.iter().map(|route| (route, false)).chain(LEGACY_ROUTES.iter().map(|route| (route, true))) {
        paths.insert(route.path.to_owned(), json!({ "get": operation(route, is_legacy, &mut schemas) }));
    }
    let error = schema(DataSubject::TokenList, 5, error_shape(), &mut schemas);
    describe_error(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cliffwatch data service",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Token supply data: vesting schedules, emission, allocations, burns, buybacks, and funding rounds. Amounts are in \
                tokens, values in USD, ratios in percent, and times in UTC. Only a response with status 200 costs a credit. Any field is \
                null if its value is unknown. Responses may have additional fields.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {
                "type": "apiKey", "in": "header", "name": KEY_HEADER,
                "description": "Created by `cliffwatch keys add`. A service without keys requires none.",
            }},
            "schemas": schemas,
            "responses": {
                "NotModified": {"description": "The tag in `If-None-Match` still matches. Costs no credit."},
                "BadRequest": refusal("The request is not valid; see the message.", &error, false),
                "Unauthorized": refusal("The key is missing or not valid. Costs no credit.", &error, false),
                "NotFound": refusal("The token or investor does not exist, or this version does not cover it.", &error, false),
                "TooLarge": refusal("The request body is too large.", &error, false),
                "TooMany": refusal("The credits or the rate limit are exhausted.", &error, true),
                "Unavailable": refusal("The request timed out, or a mirror has not polled the data yet.", &error, true),
                "Failed": refusal("The service failed to process the request.", &error, false),
            },
        },
    })
}

/// Describes the metadata of an error, which contains only the credits of a valid key.
fn describe_error(schemas: &mut Map<String, Value>) {
    let Some(error) = schemas.get_mut(error_shape().name) else { return };
    error["properties"]["metadata"] = json!({
        "type": "object", "description": "Present if the key is valid.", "required": ["credit"], "properties": {"credit": credit()},
    });
    if let Some(required) = error["required"].as_array_mut() {
        required.retain(|name| name != "metadata");
    }
    // The metadata of responses is described for each path by `metadata_schema`.
    schemas.retain(|name, _| name != "Metadata" && name != "Credit");
}

fn credit() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object", "description": "Quota of the key. Absent if no key is required.",
        "required": ["used", "limit", "resetAt"],
        "properties": {"used": count, "limit": count, "resetAt": {"type": "string", "format": "date-time"}},
    })
}

fn error_shape() -> &'static ObjectShape {
    match ErrorBody::SHAPE {
        JsonShape::Object(object) => object,
        _ => unreachable!("a wire type is an object"),
    }
}

fn refusal(description: &str, error: &Value, waits: bool) -> Value {
    let mut response = json!({"description": description, "content": {"application/json": {"schema": error}}});
    if waits && let Some(object) = response.as_object_mut() {
        let header =
            json!({"description": "Seconds to wait before the next request.", "schema": {"type": "integer", "minimum": 1}});
        object.insert("headers".into(), json!({ "Retry-After": header }));
    }
    response
}

/// Returns name, summary, whether the payload is a list, and the shape of the payload or of its items.
fn subject_of(subject: DataSubject) -> (&'static str, &'static str, bool, JsonShape) {
    match subject {
        DataSubject::TokenList => ("tokenList", "Tokens", true, TokenItem::SHAPE),
        DataSubject::Upcoming => ("upcoming", "The next unlock event of each token", true, UpcomingItem::SHAPE),
        DataSubject::UnlockEvents => ("unlockEvents", "Vesting schedule of a token", true, UnlockEvent::SHAPE),
        DataSubject::DailyEmission => ("dailyEmission", "Daily emission of a token", true, Emission::SHAPE),
        DataSubject::WeeklyEmission => ("weeklyEmission", "Weekly emission of a token, from Sunday", true, Emission::SHAPE),
        DataSubject::Allocations => ("allocations", "Allocation table of a token", false, AllocationsData::SHAPE),
        DataSubject::Burn => ("burn", "Burns of a token, with totals of the window", false, BurnData::SHAPE),
        DataSubject::Buyback => ("buyback", "Buybacks of a token, with totals of the window", false, BuybackData::SHAPE),
        DataSubject::Investors => ("investors", "Investors, latest funding round first", true, InvestorItem::SHAPE),
        DataSubject::Investor => ("investor", "An investor with its funding rounds", false, InvestorDetail::SHAPE),
        DataSubject::TokenFunding => ("tokenFunding", "Funding rounds of a token", false, TokenFunding::SHAPE),
    }
}

fn operation(route: &ApiRoute, is_legacy: bool, schemas: &mut Map<String, Value>) -> Value {
    let (name, summary, is_list, shape) = subject_of(route.subject);
    let item = property_schema(route.subject, route.version, shape, schemas, false);
    let data = if is_list { json!({"type": "array", "items": item}) } else { item };
    let mut parameters: Vec<Value> = Vec::new();
    if route.path.ends_with("{id}") {
        let whose = if route.subject == DataSubject::Investor { "Investor" } else { "Token" };
        parameters.push(json!({
            "name": "id", "in": "path", "required": true, "schema": slug(),
            "description": format!("{whose} id from the list."),
        }));
    }
    parameters.extend(route.parameters().map(parameter));
    let since = covers_ai_since(route.subject);
    let mut description = if route.version < since {
        format!("Returns 404 for tokens with the listed method AI, which version {since} and newer cover.")
    } else {
        String::new()
    };
    if is_legacy {
        description.push_str("Only on the legacy base URL, where `metadata` has only `queryDate`.");
    }
    json!({
        "operationId": format!("{name}V{}", route.version),
        "tags": [name],
        "summary": summary,
        "description": description,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The requested data.",
                "headers": {
                    "ETag": {"description": "Changes when the data changes.", "schema": {"type": "string"}},
                    "Age": {
                        "description": "Seconds since the data was polled. Only from a mirror.",
                        "schema": {"type": "integer", "minimum": 0},
                    },
                },
                "content": {"application/json": {"schema": {
                    "type": "object",
                    "required": ["metadata", "status", "data"],
                    "properties": {"metadata": metadata_schema(route, is_legacy), "status": {"const": true}, "data": data},
                }}},
            },
            "304": reference("responses", "NotModified"),
            "400": reference("responses", "BadRequest"),
            "401": reference("responses", "Unauthorized"),
            "404": reference("responses", "NotFound"),
            "413": reference("responses", "TooLarge"),
            "429": reference("responses", "TooMany"),
            "500": reference("responses", "Failed"),
            "503": reference("responses", "Unavailable"),
        },
    })
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Returns the JSON schema of the metadata in a response. Without `is_legacy`, it includes the credits and, for a paged route, the
/// page numbers and totals.
fn metadata_schema(route: &ApiRoute, is_legacy: bool) -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let mut properties = Map::from_iter([("queryDate".to_owned(), time)]);
    let mut required = vec!["queryDate"];
    if !is_legacy {
        properties.insert("credit".into(), credit());
        let pages = [("page", 1), ("pageSize", 1), ("totalPages", 0), ("total", 0)];
        for (name, least) in pages {
            if route.is_paged() {
                properties.insert(name.into(), json!({"type": "integer", "minimum": least}));
                required.push(name);
            }
        }
    }
    json!({"type": "object", "required": required, "properties": properties})
}

fn slug() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": MAX_SLUG, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"})
}

fn parameter((name, kind, is_required): (&'static str, RouteParameterKind, bool)) -> Value {
    let list = |items: Value| json!({"type": "array", "minItems": 1, "items": items});
    let (schema, description) = match kind {
        RouteParameterKind::Slug => (slug(), "Token id from the list.".to_owned()),
        RouteParameterKind::Slugs => {
            let mut slug = slug();
            slug["pattern"] = json!("^[^\\u0000-\\u001f\\u007f-\\u009f,\\s]+$");
            (list(slug), "Token ids. All tokens by default.".to_owned())
        }
        RouteParameterKind::FirstDay => (json!({"type": "string", "format": "date"}), "First day in UTC.".to_owned()),
        RouteParameterKind::LastDay => {
            (json!({"type": "string", "format": "date"}), "Last day in UTC, inclusive. Not before the first day.".to_owned())
        }
        RouteParameterKind::Page => {
            (json!({"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": 1}), "Page number, from 1.".to_owned())
        }
        RouteParameterKind::PageSize => (
            json!({"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": DEFAULT_PAGE_SIZE}),
            format!("Items per page. A larger value is reduced to {MAX_PAGE_SIZE}, as `pageSize` in the response shows."),
        ),
        RouteParameterKind::Standards => {
            let words: Vec<&str> = StandardAllocation::WORDS.iter().map(|(word, _)| *word).collect();
            (list(json!({"type": "string", "enum": words})), "Allocation categories. All categories by default.".to_owned())
        }
        RouteParameterKind::Number => (json!({"type": "number"}), String::new()),
        RouteParameterKind::Truth => {
            (json!({"type": "boolean"}), "Only funding rounds that the investor led, or only the others.".to_owned())
        }
    };
    let mut parameter =
        json!({"name": name, "in": "query", "required": is_required, "schema": schema, "description": description});
    if matches!(kind, RouteParameterKind::Slugs | RouteParameterKind::Standards) {
        parameter["style"] = json!("form");
        parameter["explode"] = json!(false);
    }
    parameter
}

/// Returns the JSON schema of a value in an API version. Adds the schemas of objects to `schemas` and refers to them. A nullable
/// value also allows null; a list item never does.
fn property_schema(
    subject: DataSubject,
    version: u8,
    shape: JsonShape,
    schemas: &mut Map<String, Value>,
    nullable: bool,
) -> Value {
    let plain = |kind: &str| if nullable { json!({"type": [kind, "null"]}) } else { json!({"type": kind}) };
    match shape {
        JsonShape::Number => plain("number"),
        JsonShape::Whole => plain("integer"),
        JsonShape::Truth => plain("boolean"),
        JsonShape::Text => plain("string"),
        JsonShape::Time => {
            let mut time = plain("string");
            time["format"] = json!("date-time");
            time
        }
        JsonShape::List(item) => {
            let mut list = plain("array");
            list["items"] = property_schema(subject, version, *item, schemas, false);
            list
        }
        JsonShape::NameOr(item) => match (subject, version) {
            (DataSubject::WeeklyEmission, 1) => json!({"type": "string"}),
            _ => property_schema(subject, version, *item, schemas, false),
        },
        JsonShape::Object(object) => {
            let reference = schema(subject, version, object, schemas);
            if nullable { json!({"anyOf": [reference, {"type": "null"}]}) } else { reference }
        }
    }
}

/// Returns a reference to the schema of an object in a version. Schemas that differ between versions have different names.
fn schema(subject: DataSubject, version: u8, object: &'static ObjectShape, schemas: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in object.fields {
        if !shows(subject, version, object.name, field.name) {
            continue;
        }
        let mut property = property_schema(subject, version, field.shape, schemas, true);
        let doc = field.doc.trim();
        if !doc.is_empty()
            && let Some(property) = property.as_object_mut()
        {
            property.insert("description".into(), doc.into());
        }
        properties.insert(field.name.to_owned(), property);
        required.push(field.name);
    }
    let schema = json!({
        "type": "object", "description": object.doc.trim(), "required": required, "properties": properties,
    });
    // Equal schemas of several versions share a name.
    let known = schemas.iter().find(|(name, known)| name.starts_with(object.name) && **known == schema);
    if let Some((name, _)) = known {
        return reference("schemas", name);
    }
    let mut name = object.name.to_owned();
    if schemas.contains_key(&name) {
        name = format!("{name}_{}_v{version}", subject_of(subject).0);
    }
    schemas.insert(name.clone(), schema);
    reference("schemas", &name)
}
