//! The JSON Schema of the `cliffwatch` webhook body. It is a promise to receivers, so it is written by hand and tested against real
//! bodies.

use serde_json::{Value, json};

use model::NotificationKind;

const SCHEMA: &str = include_str!("schema.json");

/// Returns the schema of bodies of one type, or of all types.
pub fn webhook_schema(kind: Option<NotificationKind>) -> Value {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    if let (Some(kind), Some(fields)) = (kind, schema.as_object_mut()) {
        fields.remove("oneOf");
        fields.insert("title".into(), format!("Cliffwatch webhook: {kind}").into());
        fields.insert("allOf".into(), json!([{ "$ref": format!("#/$defs/{kind}") }]));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_definition() {
        let all = webhook_schema(None);
        for kind in NotificationKind::ALL {
            assert_eq!(all["$defs"][kind.as_str()]["properties"]["type"]["const"], kind.as_str());
            let one = webhook_schema(Some(kind));
            assert_eq!(one["allOf"][0]["$ref"], format!("#/$defs/{kind}"));
            assert!(one.get("oneOf").is_none());
        }
        assert_eq!(all["oneOf"].as_array().map(Vec::len), Some(NotificationKind::ALL.len()));
    }
}
