use super::*;

/// Made anew with `INSTA_UPDATE=always`, as goldens are.
#[test]
fn the_page_of_the_docs_is_what_the_code_knows() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fields.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always") {
        std::fs::write(path, page()).expect("written");
    }
    let written = std::fs::read_to_string(path).expect("docs/fields.md");
    assert_eq!(written, page(), "`INSTA_UPDATE=always cargo test -p cliffwatch-cli --lib fields` writes it anew");
}

#[test]
fn what_is_asked_about_is_named_as_rules_write_it() {
    assert_eq!(listened_to("unlock.rescheduled").ok(), On::parse("unlock.rescheduled"));
    let said = |word: &str| listened_to(word).expect_err(word).0;
    assert!(said("unlok").ends_with("did you mean unlock?"), "{}", said("unlok"));
    assert!(said("price").contains("there are unlock, burn"), "{}", said("price"));
}

#[test]
fn a_table_has_a_heading_for_each_kind() {
    let on = On::parse("unlock.rescheduled");
    let text = tables(on, reference(on));
    for word in ["unlock.rescheduled: ", "change.shiftDays", "upcoming, unlock_events", "{{ 33150000 | usd }} → $33.15M"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("burnType"), "{text}");
}
