use super::*;

#[test]
fn every_section_is_listed_and_unknown_keys_are_rejected() {
    let schema = config();
    for name in super::super::key_lookup::section_names() {
        assert!(schema["properties"].get(name).is_some(), "{name}");
    }
    assert_eq!(schema["properties"]["source"]["additionalProperties"], closed());
    assert_eq!(schema["properties"]["source"]["properties"]["concurrency"]["maximum"], json!(256));
    assert_eq!(schema["$defs"]["route"]["properties"]["routes"]["items"]["$ref"], json!("#/$defs/route"));
}
