use super::*;

/// Run with `INSTA_UPDATE=always` to write the page again.
#[test]
fn documentation_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fields.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always") {
        std::fs::write(path, page()).expect("written");
    }
    let written = std::fs::read_to_string(path).expect("docs/fields.md");
    assert_eq!(written, page(), "`INSTA_UPDATE=always cargo test -p cliffwatch-cli --lib fields` writes it again");
}

#[test]
fn unknown_target_gets_a_suggestion() {
    assert_eq!(parse_on("unlock.rescheduled").ok(), On::parse("unlock.rescheduled"));
    let error = |word: &str| parse_on(word).expect_err(word).0;
    assert!(error("unlok").ends_with("did you mean unlock?"), "{}", error("unlok"));
    assert!(error("price").contains("expected unlock, burn"), "{}", error("price"));
    assert_eq!(error("unlock.moved"), "unknown change kind moved: did you mean unlock.rescheduled?");
    assert_eq!(error("vesting.delayed"), "unknown record type vesting: did you mean unlock.rescheduled?");
    assert!(error("burn.rescheduled").contains("cannot happen to burn records"), "{}", error("burn.rescheduled"));
}

#[test]
fn each_kind_has_a_table() {
    let on = On::parse("unlock.rescheduled");
    let text = tables(on, reference(on));
    for word in ["unlock.rescheduled: ", "change.shiftDays", "upcoming, unlock_events", "{{ 33150000 | usd }} → $33.15M"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("burnType"), "{text}");
}
