use super::*;

#[test]
fn every_key_of_a_rule_is_described() {
    let schema = rules();
    let properties = &schema["properties"]["rule"]["items"]["properties"];
    for name in RULE_KEYS {
        assert!(properties[name].get("description").is_some(), "{name}");
    }
    assert_eq!(schema["$defs"]["level"]["properties"].as_object().map(serde_json::Map::len), Some(LEVEL_KEYS.len()));
    let on = properties["on"]["enum"].as_array().expect("a list");
    for word in ["unlock", "unlock.*", "unlock.rescheduled", "allocation.supply_changed", "token", "portfolio", "source"] {
        assert!(on.contains(&json!(word)), "{word}");
    }
    assert!(!on.contains(&json!("burn.rescheduled")));
}
