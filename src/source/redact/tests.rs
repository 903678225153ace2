use super::*;

#[test]
fn hostile_characters_are_escaped() {
    assert_eq!(printable("a\u{1b}[31mred\u{202e}x\r\n  b\u{0}"), r"a\u{1b}[31mred\u{202e}x b\u{0}");
    assert_eq!(printable("Zürich 東京 🚀"), "Zürich 東京 🚀");
}

#[test]
fn excerpt_is_cut() {
    let text = excerpt(&"x".repeat(100_000));
    assert_eq!(text.chars().count(), MAX_EXCERPT);
    assert!(text.ends_with('…'));
}

#[test]
fn echoed_key_is_redacted() {
    let key = SecretText::from("sk_live_123".to_owned());
    assert_eq!(without_key("bad key sk_live_123!", Some(&key)), "bad key •••!");
    assert_eq!(without_key("bad key", None), "bad key");
    assert_eq!(without_key("bad key sk_live…", Some(&key)), "bad key •••…");
}
