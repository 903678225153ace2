//! The description of the service at `/openapi.json`: OpenAPI 3.1, made from the table of paths, the table of versions and the wire
//! types themselves, so that it says what the service does and cannot say otherwise.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::http::KEY_HEADER;
use crate::query::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, MAX_SLUG, StandardAllocation};
use crate::route::{ApiRoute, DataSubject, LEGACY_ROUTES, ParameterKind, ROUTES};
use crate::version::{covers_ai_since, shows};
use model::wire::{
    AllocationsData, BurnData, BuybackData, Described, Emission, ErrorBody, InvestorDetail, InvestorItem, JsonShape, ObjectShape,
    TokenFunding, TokenItem, UnlockEvent, UpcomingItem,
};

/// The text, and a tag that changes with it.
static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let text = describe().to_string();
    let tag = format!("{:032x}", xxh3_128(text.as_bytes()));
    (text, tag)
});

/// The description, with its tag.
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
            "description": "Token supply data: unlock schedules, emission, allocations, burns, buybacks, fundraising. Amounts are tokens, \
                values USD, ratios percent, times UTC. Only answers with status 200 cost a credit, one each. Any field may be null where \
                its value is unknown; fields beyond those described may be there.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {
                "type": "apiKey", "in": "header", "name": KEY_HEADER,
                "description": "Made by `cliffwatch keys add`. A service without keys asks for none.",
            }},
            "schemas": schemas,
            "responses": {
                "NotModified": {"description": "The tag in `If-None-Match` still holds. Costs no credit."},
                "BadRequest": refusal("The question makes no sense; the message says why.", &error, false),
                "Unauthorized": refusal("The key is missing or opens nothing. Costs no credit.", &error, false),
                "NotFound": refusal("There is no such token or investor, or this version does not cover it.", &error, false),
                "TooLarge": refusal("The request has a body, and it is beyond bounds.", &error, false),
                "TooMany": refusal("Credits or the rate per minute are spent.", &error, true),
                "Unavailable": refusal("No answer came in time, or a mirror was not told this yet.", &error, true),
                "Failed": refusal("The service failed on this request.", &error, false),
            },
        },
    })
}

/// What is refused to a good key tells how its credits stand, and nothing else of an answer's metadata.
fn describe_error(schemas: &mut Map<String, Value>) {
    let Some(error) = schemas.get_mut(error_shape().name) else { return };
    error["properties"]["metadata"] = json!({
        "type": "object", "description": "There where the key is good.", "required": ["credit"], "properties": {"credit": credit()},
    });
    if let Some(required) = error["required"].as_array_mut() {
        required.retain(|name| name != "metadata");
    }
    // What describes the metadata of answers here is written by hand, for each path.
    schemas.retain(|name, _| name != "Metadata" && name != "Credit");
}

fn credit() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object", "description": "Quota of the key. Not there where no key is asked for.",
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
        let header = json!({"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}});
        object.insert("headers".into(), json!({ "Retry-After": header }));
    }
    response
}

/// What an endpoint is about, and what it answers.
fn subject_of(subject: DataSubject) -> (&'static str, &'static str, bool, JsonShape) {
    match subject {
        DataSubject::TokenList => ("tokenList", "Tokens", true, TokenItem::SHAPE),
        DataSubject::Upcoming => ("upcoming", "The next unlock event of each token", true, UpcomingItem::SHAPE),
        DataSubject::UnlockEvents => ("unlockEvents", "Unlock schedule of a token", true, UnlockEvent::SHAPE),
        DataSubject::DailyEmission => ("dailyEmission", "Emission of a token, day by day", true, Emission::SHAPE),
        DataSubject::WeeklyEmission => ("weeklyEmission", "Emission of a token, from Sunday to Sunday", true, Emission::SHAPE),
        DataSubject::Allocations => ("allocations", "Allocation table of a token", false, AllocationsData::SHAPE),
        DataSubject::Burn => ("burn", "Burns of a token; totals are of the window", false, BurnData::SHAPE),
        DataSubject::Buyback => ("buyback", "Buybacks of a token; totals are of the window", false, BuybackData::SHAPE),
        DataSubject::Investors => ("investors", "Investors, the latest round first", true, InvestorItem::SHAPE),
        DataSubject::Investor => ("investor", "An investor with its funding rounds", false, InvestorDetail::SHAPE),
        DataSubject::TokenFunding => ("tokenFunding", "Funding rounds of a token", false, TokenFunding::SHAPE),
    }
}

fn operation(route: &ApiRoute, is_legacy: bool, schemas: &mut Map<String, Value>) -> Value {
    let (name, summary, is_list, shape) = subject_of(route.subject);
    let item = property(route.subject, route.version, shape, schemas, false);
    let data = if is_list { json!({"type": "array", "items": item}) } else { item };
    let mut parameters: Vec<Value> = Vec::new();
    if route.path.ends_with("{id}") {
        let whose = if route.subject == DataSubject::Investor { "Investor" } else { "Token" };
        parameters.push(json!({
            "name": "id", "in": "path", "required": true, "schema": slug(),
            "description": format!("{whose}, as the list names it."),
        }));
    }
    parameters.extend(route.parameters().map(parameter));
    let since = covers_ai_since(route.subject);
    let mut description = if route.version < since {
        format!("From before tokens were listed by a model: 404 for those, which version {since} and newer cover.")
    } else {
        String::new()
    };
    if is_legacy {
        description.push_str("On the older base address only, where `metadata` is `queryDate` alone.");
    }
    json!({
        "operationId": format!("{name}V{}", route.version),
        "tags": [name],
        "summary": summary,
        "description": description,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": {
                    "ETag": {"description": "Stands for the facts of the answer.", "schema": {"type": "string"}},
                    "Age": {
                        "description": "Of a mirror only: seconds since the source told it.",
                        "schema": {"type": "integer", "minimum": 0},
                    },
                },
                "content": {"application/json": {"schema": {
                    "type": "object",
                    "required": ["metadata", "status", "data"],
                    "properties": {"metadata": metadata(route, is_legacy), "status": {"const": true}, "data": data},
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

fn metadata(route: &ApiRoute, is_legacy: bool) -> Value {
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

fn parameter((name, kind, is_required): (&'static str, ParameterKind, bool)) -> Value {
    let list = |items: Value| json!({"type": "array", "minItems": 1, "items": items});
    let (schema, description) = match kind {
        ParameterKind::Slug => (slug(), "Token, as the list names it.".to_owned()),
        ParameterKind::Slugs => {
            let mut slug = slug();
            slug["pattern"] = json!("^[^\\u0000-\\u001f\\u007f-\\u009f,\\s]+$");
            (list(slug), "Tokens that are wanted, by their ids; all without it.".to_owned())
        }
        ParameterKind::FirstDay => (json!({"type": "string", "format": "date"}), "First day, UTC.".to_owned()),
        ParameterKind::LastDay => {
            (json!({"type": "string", "format": "date"}), "Last day, UTC, inclusive; not before the first.".to_owned())
        }
        ParameterKind::Page => {
            (json!({"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": 1}), "Page, from 1.".to_owned())
        }
        ParameterKind::PageSize => (
            json!({"type": "integer", "minimum": 1, "maximum": 999_999_999, "default": DEFAULT_PAGE_SIZE}),
            format!("Items on a page. More than {MAX_PAGE_SIZE} are cut to that, as the answer's `pageSize` says."),
        ),
        ParameterKind::Standards => {
            let words: Vec<&str> = StandardAllocation::WORDS.iter().map(|(word, _)| *word).collect();
            (list(json!({"type": "string", "enum": words})), "Categories of recipients; all without it.".to_owned())
        }
        ParameterKind::Number => (json!({"type": "number"}), String::new()),
        ParameterKind::Truth => {
            (json!({"type": "boolean"}), "Only rounds that it led, or only those that it did not.".to_owned())
        }
    };
    let mut parameter =
        json!({"name": name, "in": "query", "required": is_required, "schema": schema, "description": description});
    if matches!(kind, ParameterKind::Slugs | ParameterKind::Standards) {
        parameter["style"] = json!("form");
        parameter["explode"] = json!(false);
    }
    parameter
}

/// A value in a version. One that is not an item of a list may be null.
fn property(subject: DataSubject, version: u8, shape: JsonShape, schemas: &mut Map<String, Value>, nullable: bool) -> Value {
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
            list["items"] = property(subject, version, *item, schemas, false);
            list
        }
        JsonShape::NameOr(item) => match (subject, version) {
            (DataSubject::WeeklyEmission, 1) => json!({"type": "string"}),
            _ => property(subject, version, *item, schemas, false),
        },
        JsonShape::Object(object) => {
            let reference = schema(subject, version, object, schemas);
            if nullable { json!({"anyOf": [reference, {"type": "null"}]}) } else { reference }
        }
    }
}

/// The schema of an object in a version, kept under a name of its own wherever versions differ.
fn schema(subject: DataSubject, version: u8, object: &'static ObjectShape, schemas: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in object.fields {
        if !shows(subject, version, object.name, field.name) {
            continue;
        }
        let mut property = property(subject, version, field.shape, schemas, true);
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
    // Of one object in several versions, equal ones share a name.
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
