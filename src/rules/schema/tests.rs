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
    let about = properties["on"]["x-taplo"]["docs"]["enumValues"].as_array().expect("a list");
    assert_eq!(about.len(), on.len());
    let of = |word: &str| on.iter().position(|known| known == word).and_then(|at| about[at].as_str()).expect("a text");
    assert!(of("burn").contains("`amount` (tokens)") && !of("burn").contains("cliffAmount"), "{}", of("burn"));
    assert!(of("unlock.rescheduled").contains("`change.shiftDays` (days)"), "{}", of("unlock.rescheduled"));
}
