//! A validator for the subset of JSON Schema that the OpenAPI description uses.

use serde_json::Value;

/// Validates a value with the subset of JSON Schema that the description uses.
pub fn validate(document: &Value, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
    if problems.len() > 20 {
        return;
    }
    // Client generators do not support boolean schemas.
    if schema.is_boolean() {
        problems.push(format!("{at} has a boolean schema"));
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference} does not exist"));
        return validate(document, target, value, at, problems);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|schema| {
            let mut inner = Vec::new();
            validate(document, schema, value, at, &mut inner);
            inner.is_empty()
        });
        if !fits {
            // Report the errors of the first alternative, which is the intended one.
            validate(document, &any[0], value, at, problems);
        }
        return;
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &&str| match *kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    };
    if !kinds.is_empty() && !kinds.iter().any(is) {
        problems.push(format!("{at} is {value}, not {kinds:?}"));
        return;
    }
    if schema["format"] == "date-time"
        && value.is_string()
        && cliffwatch::model::wire::parse_timestamp(value.as_str().unwrap()).is_none()
    {
        problems.push(format!("{at} is {value}, not a time"));
    }
    if let Some(items) = value.as_array() {
        for (index, item) in items.iter().enumerate() {
            validate(document, &schema["items"], item, &format!("{at}/{index}"), problems);
        }
    }
    let Some(fields) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            problems.push(format!("{at}/{name} is missing"));
        }
    }
    for (name, field) in fields {
        match schema["properties"].get(name) {
            Some(schema) => validate(document, schema, field, &format!("{at}/{name}"), problems),
            // A response must not contain undocumented fields.
            None => problems.push(format!("{at}/{name} is not described")),
        }
    }
}

/// The properties with a boolean schema.
pub fn boolean_schemas(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = value["properties"].as_object().into_iter().flatten();
                found.extend(inner.filter(|(_, schema)| schema.is_boolean()).map(|(field, _)| format!("{name}.{field}")));
                found.extend(boolean_schemas(value));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| found.extend(boolean_schemas(item))),
        _ => {}
    }
    found
}
