use super::*;

#[test]
fn table_is_sorted_without_overlap() {
    assert!(HIDDEN.iter().all(|(first, last)| first <= last));
    assert!(HIDDEN.windows(2).all(|two| two[0].1 < two[1].0));
}

#[test]
fn control_bidi_and_hidden_characters_are_hostile() {
    for c in [
        '\0',
        '\n',
        '\u{7}',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{9b}',
        '\u{ad}',
        '\u{61c}',
        '\u{115f}',
        '\u{1160}',
        '\u{17b4}',
        '\u{180e}',
        '\u{200b}',
        '\u{200d}',
        '\u{200e}',
        '\u{200f}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2069}',
        '\u{206f}',
        '\u{3164}',
        '\u{e000}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fff9}',
        '\u{ffff}',
        '\u{e0001}',
        '\u{e007f}',
        '\u{e0fff}',
        '\u{10ffff}',
    ] {
        assert!(is_hostile(c), "{c:?}");
    }
    for c in "Az09 äé–…→×•€漢ก\u{301}\u{fffd}😀𝒜".chars() {
        assert!(!is_hostile(c), "{c:?}");
    }
}

#[test]
fn hostile_text_becomes_one_visible_line() {
    let text = "a\u{1b}[31m\r\nb\u{202e}\u{e0001}é";
    assert_eq!(harmless(text), r"a\u{1b}[31m  b\u{202e}\u{e0001}é");
    assert_eq!(replaced(text, '?', 100), "a?[31m??b??é");
    assert_eq!(plain_chars(text).collect::<String>(), "a [31m  bé");
}

#[test]
fn page_text_keeps_lines_without_hostile_characters() {
    let page = "a\tb\r\nc\rd\u{9b}31m\u{202e}\ne\u{1f}";
    assert_eq!(harmless_lines(page), "a\tb\r\nc\\u{d}d\\u{9b}31m\\u{202e}\ne\\u{1f}");
    assert_eq!(plain_lines(page), "a\tb\r\nc d 31m\ne ");
    for same in ["", "\n", "a line\nanother: é€😀\n"] {
        assert!(matches!(harmless_lines(same), Cow::Borrowed(text) if text == same));
    }
}

#[test]
fn sanitized_json_is_equivalent() {
    let value = serde_json::json!({"a\u{7f}": "\u{1b}[31m\u{202e}\u{e0001}é\n", "b": [1, "\u{9b}"]});
    let text = serde_json::to_string_pretty(&value).unwrap();
    let safe = harmless_json(&text);
    assert!(safe.chars().all(|c| c == '\n' || !is_hostile(c)), "{safe}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
}

#[test]
fn error_chain_skips_repeated_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot read it: {0}")]
    struct Outer(#[source] std::io::Error);
    #[derive(Debug, thiserror::Error)]
    #[error("cannot start")]
    struct Outermost(#[source] Outer);
    let error = Outermost(Outer(std::io::Error::other("no such file")));
    assert_eq!(error_chain(&error), "cannot start: cannot read it: no such file");
}

#[test]
fn hex_has_two_digits_per_byte() {
    assert_eq!(hex(&[0, 10, 255]), "000aff");
}

#[test]
fn invalid_utf8_error_has_line_and_byte() {
    let problem = |bytes: &[u8]| utf8(bytes.to_vec()).unwrap_err();
    assert_eq!(utf8("é\n".as_bytes().to_vec()).unwrap(), "é\n");
    assert_eq!(problem(b"\xff"), "not UTF-8 text: line 1, byte 1 of it is 0xff");
    assert_eq!(problem(b"a\nb\n\xc3\xa9x\xe9t\xe9\n"), "not UTF-8 text: line 3, byte 4 of it is 0xe9");
    assert_eq!(problem(b"\n\xe2\x82"), "not UTF-8 text: line 2, byte 1 of it is 0xe2", "cut short");
}
