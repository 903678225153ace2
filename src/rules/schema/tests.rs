use super::*;

#[test]
fn every_rule_key_has_a_description() {
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

#[test]
fn duration_pattern_agrees_with_the_parser() {
    let schema = span();
    let pattern = regex::Regex::new(schema["pattern"].as_str().expect("a text")).expect("a pattern");
    let units = "ns nsec nanos us usec µs ms msec millis s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days \
                 w wk wks week weeks M month months y yr yrs year years";
    let right =
        units.split_whitespace().map(|unit| format!("7{unit}")).chain(["0", " 1.5 h 30m ", "2h 37min"].map(str::to_owned));
    let wrong = ["", "7", "x", "7 parsecs", "d7", "7d,", "-7d", "seven days", "1h x"].map(str::to_owned);
    for text in right.chain(wrong) {
        assert_eq!(pattern.is_match(&text), text.parse::<model::config::Span>().is_ok(), "{text:?}");
    }
}

#[test]
fn single_item_has_the_same_constraints_as_list_items() {
    let within = &rules()["properties"]["rule"]["items"]["properties"]["within"];
    assert_eq!((&within["type"], &within["pattern"]), (&json!(["array", "string"]), &within["items"]["pattern"]));
    // With `oneOf`, editors mark the whole list instead of the invalid item.
    assert!(!rules().to_string().contains("oneOf"));
}
