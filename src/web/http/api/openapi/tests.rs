use super::*;
use crate::http::pages::tests::run_with_data;
use crate::http::parameters::MATCHER;
use crate::http::tests::LOCAL;

/// Parses paths and methods of the routes from the source.
fn routes() -> Vec<(String, Vec<&'static str>)> {
    let source = include_str!("../../api.rs");
    let calls = source.split(".route(\"").skip(1).filter(|call| call.starts_with("/api/") && !call.contains("{*path}"));
    calls
        .map(|call| {
            let (path, rest) = call.split_once('"').expect("a path");
            let line = rest.lines().next().unwrap_or_default();
            let methods = ["get", "post", "delete", "put"].into_iter().filter(|method| line.contains(&format!("{method}(")));
            (path.to_owned(), methods.collect())
        })
        .collect()
}

#[test]
fn operations_match_the_routes() {
    let mut real: Vec<(String, &str)> =
        routes().into_iter().flat_map(|(path, methods)| methods.into_iter().map(move |method| (path.clone(), method))).collect();
    let mut described: Vec<(String, &str)> =
        OPERATIONS.iter().filter(|of| of.path.starts_with("/api/")).map(|of| (of.path.to_owned(), of.method)).collect();
    real.sort();
    described.sort();
    assert!(real.len() > 10);
    assert_eq!(real, described);
}

#[test]
fn document_is_valid() {
    let document = openapi_json();
    let text = document.to_string();
    // All references resolve, no schema is a boolean, each object has described fields, and operation ids are unique.
    for part in text.split("\"$ref\":\"#").skip(1) {
        let path = part.split('"').next().expect("a reference");
        assert!(document.pointer(path).is_some(), "{path}");
    }
    fn walk(value: &Value, place: &str) {
        match value {
            Value::Object(object) => {
                for (name, inner) in object {
                    let is_schema =
                        name == "items" || name == "additionalProperties" || name == "schema" || place.ends_with("/properties");
                    assert!(!is_schema || !inner.is_boolean(), "{place}/{name} is a boolean schema");
                    walk(inner, &format!("{place}/{name}"));
                }
                // A client for such an object could not read any field of it.
                let is_described = object.contains_key("properties") || object.contains_key("additionalProperties");
                assert!(object.get("type") != Some(&json!("object")) || is_described, "{place} is an object without fields");
            }
            Value::Array(list) => list.iter().for_each(|inner| walk(inner, place)),
            _ => {}
        }
    }
    walk(&document, "");
    let mut ids: Vec<&str> = OPERATIONS.iter().map(|operation| operation.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), OPERATIONS.len());
}

/// Checks types, required fields, and that the schema describes all fields.
fn check(value: &Value, schema: &Value, document: &Value, place: &str) {
    if let Some(path) = schema["$ref"].as_str() {
        return check(value, document.pointer(path.trim_start_matches('#')).expect("a valid reference"), document, place);
    }
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(mapping) = schema["discriminator"]["mapping"].as_object() {
        let kind = value["type"].as_str().expect("a type");
        return check(value, &json!({"$ref": mapping[kind]}), document, &format!("{place}({kind})"));
    }
    if let Some(any) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        // The record of the sample is an unlock, the first one.
        let of = if value.is_string() {
            any.iter().find(|of| of["type"] == "string")
        } else {
            any.iter().find(|of| of["type"] != "string")
        };
        return check(value, of.expect("a schema"), document, place);
    }
    if let Some(words) = schema["enum"].as_array() {
        return assert!(words.contains(value), "{place}: {value} is not one of {words:?}");
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().for_each(|part| check(value, part, document, place));
    }
    match schema["type"].as_str() {
        None => {}
        Some("object") => {
            let object = value.as_object().unwrap_or_else(|| panic!("{place} is not an object: {value}"));
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                assert!(object.contains_key(name), "{place} has no {name}: {value}");
            }
            let more = &schema["additionalProperties"];
            let Some(properties) = schema["properties"].as_object() else {
                return object.iter().for_each(|(name, inner)| check(inner, more, document, &format!("{place}.{name}")));
            };
            for (name, inner) in object {
                let of = properties.get(name).or_else(|| more.is_object().then_some(more));
                let of = of.unwrap_or_else(|| panic!("{place}.{name} is not in the schema"));
                check(inner, of, document, &format!("{place}.{name}"));
            }
        }
        Some("array") => {
            let list = value.as_array().unwrap_or_else(|| panic!("{place} is not an array: {value}"));
            list.iter().for_each(|inner| check(inner, &schema["items"], document, &format!("{place}[]")));
        }
        Some("string") => assert!(value.is_string(), "{place}: {value}"),
        Some("number") => assert!(value.is_number(), "{place}: {value}"),
        Some("integer") => assert!(value.is_i64() || value.is_u64(), "{place}: {value}"),
        Some("boolean") => assert!(value.is_boolean(), "{place}: {value}"),
        Some(other) => panic!("{place}: unknown type {other}"),
    }
}

#[tokio::test]
async fn responses_match_the_schemas() {
    let (app, alert, delivery) = run_with_data().await;
    let silence = app.store.silences(None).await.expect("read").first().expect("a silence").id.clone();
    let document = openapi_json();
    for operation in OPERATIONS.iter().filter(|of| of.method == "get" && !matches!(of.response, DocumentedBody::Text(_))) {
        let id = match operation.path {
            "/api/v1/tokens/{id}" => "arbitrum".to_owned(),
            "/api/v1/alerts/{id}" => alert.clone(),
            "/api/v1/silences/{id}" => silence.clone(),
            _ => delivery.to_string(),
        };
        let mut path = operation.path.replace("{id}", &id);
        if operation.parameters.contains(&MATCHER) {
            path.push_str("?matcher=token%3D%22arbitrum%22&matcher=severity!%3D%22x%22");
        }
        let bodies = match operation.response {
            DocumentedBody::List(_) => vec![path.clone(), format!("{path}?paged=true")],
            _ => vec![path],
        };
        for path in bodies {
            let (status, response) = app.request(&format!("GET {path}"), LOCAL).await;
            let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            let value: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {response}"));
            assert_eq!(status, 200, "{path}: {response}");
            let mut schema =
                document["paths"][operation.path]["get"]["responses"]["200"]["content"]["application/json"]["schema"].clone();
            if let Some(of) = schema["oneOf"].as_array() {
                schema = of[usize::from(value.is_object())].clone();
                let rows = value.get("items").unwrap_or(&value).as_array().map(Vec::len);
                assert!(rows > Some(0), "{path} has no rows to check");
            }
            check(&value, &schema, &document, &path);
        }
    }
}

/// Returns the schema at a JSON pointer into values of another schema.
fn schema_at<'a>(schema: &'a Value, pointer: &str, document: &'a Value) -> &'a Value {
    if let Some(path) = schema["$ref"].as_str() {
        return schema_at(document.pointer(path.trim_start_matches('#')).expect("a valid reference"), pointer, document);
    }
    let Some(path) = pointer.strip_prefix('/') else { return schema };
    let (name, rest) = path.find('/').map_or((path, ""), |end| path.split_at(end));
    let list = schema["oneOf"].get(0).unwrap_or(schema);
    let inner = if name == "0" { &list["items"] } else { &schema["properties"][name] };
    schema_at(inner, rest, document)
}

#[test]
fn links_take_values_of_the_right_type() {
    let document = openapi_json();
    let of = |id: &str| OPERATIONS.iter().find(|operation| operation.id == id).unwrap_or_else(|| panic!("no operation {id}"));
    let kind = |schema: &Value| schema["type"].as_str().unwrap_or("none").to_owned();
    for link in links::LINKS {
        let (from, to, name) = (of(link.from), of(link.to), format!("{} to {}", link.from, link.to));
        let response = &document["paths"][from.path][from.method]["responses"][from.status];
        assert_eq!(response["links"][link.to]["operationId"], link.to, "{name}");
        let given = kind(schema_at(&response["content"]["application/json"]["schema"], link.pointer, &document));
        let target = &document["paths"][to.path][to.method];
        let taken = match link.target {
            links::LinkTarget::Parameter(parameter) => {
                let all = target["parameters"].as_array().expect("parameters");
                let found = all.iter().find(|one| one["name"] == parameter).unwrap_or_else(|| panic!("{name}: no {parameter}"));
                let schema = &found["schema"];
                kind(if schema["type"] == "array" { &schema["items"] } else { schema })
            }
            links::LinkTarget::BodyWithAuthor(field) => {
                kind(schema_at(&target["requestBody"]["content"]["application/json"]["schema"], &format!("/{field}"), &document))
            }
        };
        assert_eq!(given, taken, "{name}");
    }
}

/// The words of the enumerations that are not declared with `words!`.
#[test]
fn written_enumerations_match_their_types() {
    let words = |name: &str| schemas::ENUMERATIONS.iter().find(|(own, _)| *own == name).expect("declared").1.to_vec();
    let of_mark =
        [engine::explain::Mark::Yes, engine::explain::Mark::No, engine::explain::Mark::Unknown, engine::explain::Mark::Note];
    assert_eq!(json!(words("Mark")), json!(of_mark));
    let of_precision = [
        model::Precision::Second,
        model::Precision::Hour,
        model::Precision::Day,
        model::Precision::Week,
        model::Precision::Month,
        model::Precision::ToBeDetermined,
    ];
    assert_eq!(json!(words("Precision")), json!(of_precision));
    assert_eq!(json!(words("SourceState")), json!(engine::self_monitor::SourceState::ALL));
}

#[test]
fn document_has_a_version_of_its_own() {
    let document = openapi_json();
    assert_eq!(document["info"]["version"], CONTRACT_VERSION);
    let major = CONTRACT_VERSION.split('.').next().expect("a number");
    for operation in OPERATIONS.iter().filter(|of| of.path.starts_with("/api/") && of.path != "/api/openapi.json") {
        assert!(operation.path.starts_with(&format!("/api/v{major}/")), "{}", operation.path);
    }
}
