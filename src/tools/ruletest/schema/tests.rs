use std::collections::BTreeSet;

use super::*;
use crate::ruletest::file::{Expectation, ExpectedAlert, ExpectedMessage, TestCase, TestFile, TestInput, TestSilence};

/// Returns the keys of a table, from the error message about an unknown key.
fn read<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
    let error = toml::from_str::<T>("no_such_key = 1").err().map(|error| error.message().to_owned()).unwrap_or_default();
    let (_, known) = error.split_once("expected one of").unwrap_or_else(|| panic!("{error}"));
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_schema_has_the_keys_that_are_read_and_no_others() {
    // Placeholders for the parts of the config's schema that the test schema includes.
    let list = || json!({ "type": "array" });
    let route = json!({ "properties": { "receivers": {} } });
    let schema = super::tests(
        &json!({ "properties": { "inhibit_rules": list(), "time_intervals": list() }, "$defs": { "route": route } }),
    );
    let keys = |path: &str| -> BTreeSet<String> {
        schema.pointer(path).and_then(Value::as_object).map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
    };
    let test = "/properties/test/items/properties";
    assert_eq!(keys("/properties"), read::<TestFile>());
    assert_eq!(keys(test), read::<TestCase>());
    assert_eq!(keys(&format!("{test}/input/items/properties")), read::<TestInput>());
    assert_eq!(keys(&format!("{test}/expect/items/properties")), read::<Expectation>());
    assert_eq!(keys(&format!("{test}/silence/items/properties")), read::<TestSilence>());
    assert_eq!(keys("/$defs/alert/properties"), read::<ExpectedAlert>());
    assert_eq!(keys("/$defs/message/properties"), read::<ExpectedMessage>());
    for beside in ["inhibit_rules", "time_intervals"] {
        assert_eq!(schema.pointer(&format!("/properties/{beside}/type")), Some(&"array".into()));
    }
    assert!(schema.pointer("/$defs/route/properties/receivers").is_some());
}
