use super::*;
use crate::http::desk::tests::world;
use crate::http::tests::LOCAL;

/// The routes as they stand in the source of the router: path and methods.
fn routes() -> Vec<(String, Vec<&'static str>)> {
    let source = include_str!("../../http.rs");
    let calls = source.split(".route(\"").skip(1).filter(|call| call.starts_with("/api/"));
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
fn every_route_is_described_and_every_description_has_a_route() {
    let mut real: Vec<(String, &str)> =
        routes().into_iter().flat_map(|(path, methods)| methods.into_iter().map(move |method| (path.clone(), method))).collect();
    let mut described: Vec<(String, &str)> =
        OPERATIONS.iter().map(|operation| (operation.path.to_owned(), operation.method)).collect();
    real.sort();
    described.sort();
    assert!(real.len() > 10);
    assert_eq!(real, described);
}

#[test]
fn generators_take_it() {
    let document = describe();
    let text = document.to_string();
    // Each reference leads somewhere, no schema is a bare boolean, each operation has an id of its own.
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
    for operation in OPERATIONS {
        assert!(operation.query.iter().all(|name| parameter(name).is_some()), "{}", operation.id);
    }
}

/// Holds a value against a schema, as far as ours go: types, required fields, and that no field is missing in the description.
fn check(value: &Value, schema: &Value, document: &Value, place: &str) {
    if let Some(path) = schema["$ref"].as_str() {
        return check(value, document.pointer(path.trim_start_matches('#')).expect("it is there"), document, place);
    }
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().for_each(|part| check(value, part, document, place));
    }
    match schema["type"].as_str() {
        None => {}
        Some("object") => {
            let object = value.as_object().unwrap_or_else(|| panic!("{place} is no object: {value}"));
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                assert!(object.contains_key(name), "{place} has no {name}: {value}");
            }
            let Some(properties) = schema["properties"].as_object() else { return };
            for (name, inner) in object {
                let of = properties.get(name).unwrap_or_else(|| panic!("{place}.{name} is not described"));
                check(inner, of, document, &format!("{place}.{name}"));
            }
        }
        Some("array") => {
            let list = value.as_array().unwrap_or_else(|| panic!("{place} is no list: {value}"));
            list.iter().for_each(|inner| check(inner, &schema["items"], document, &format!("{place}[]")));
        }
        Some("string") => assert!(value.is_string(), "{place}: {value}"),
        Some("number") => assert!(value.is_number(), "{place}: {value}"),
        Some("integer") => assert!(value.is_i64() || value.is_u64(), "{place}: {value}"),
        Some("boolean") => assert!(value.is_boolean(), "{place}: {value}"),
        Some(other) => panic!("{place}: no such type {other}"),
    }
}

#[tokio::test]
async fn answers_are_as_described() {
    let (app, alert, delivery) = world().await;
    let document = describe();
    for operation in OPERATIONS.iter().filter(|operation| operation.method == "get") {
        let id = match operation.path {
            "/api/tokens/{id}" => "arbitrum".to_owned(),
            "/api/alerts/{id}" => alert.clone(),
            _ => delivery.to_string(),
        };
        let mut path = operation.path.replace("{id}", &id);
        if operation.query.contains(&"matcher") {
            path.push_str("?matcher=token%3D%22arbitrum%22&matcher=severity!%3D%22x%22");
        }
        let bodies = match operation.answer {
            Answer::List(_) => vec![path.clone(), format!("{path}?paged=true")],
            _ => vec![path],
        };
        for path in bodies {
            let (status, answer) = app.ask(&format!("GET {path}"), LOCAL).await;
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            let value: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"));
            assert_eq!(status, 200, "{path}: {answer}");
            let mut schema =
                document["paths"][operation.path]["get"]["responses"]["200"]["content"]["application/json"]["schema"].clone();
            if let Some(of) = schema["oneOf"].as_array() {
                schema = of[usize::from(value.is_object())].clone();
                let rows = value.get("items").unwrap_or(&value).as_array().map(Vec::len);
                assert!(rows > Some(0), "{path} shows nothing to check");
            }
            check(&value, &schema, &document, &path);
        }
    }
}
