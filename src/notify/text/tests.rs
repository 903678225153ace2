use super::*;

#[test]
fn line_contains_no_breaks_and_no_hidden_characters() {
    assert_eq!(line("AR\r\nB\u{202E}evil\u{200B}\u{0000} \t x\u{0085}y", 100), "AR Bevil x y");
}

#[test]
fn long_line_is_cut_with_an_ellipsis() {
    for max in 1..20 {
        let cut = line("one two three four five", max);
        assert!(cut.chars().count() <= max, "{cut:?} is longer than {max}");
        assert!(cut.ends_with('…'));
    }
    assert_eq!(line("one two", 7), "one two");
    assert_eq!(line(&"x".repeat(10_000), 200).chars().count(), 200);
}

#[test]
fn paragraph_keeps_line_breaks_and_indent() {
    assert_eq!(paragraph("\n\n  a\u{200B} b\r\n    - c \n\n\n\nd\n\n", 100), "a b\n    - c\n\nd");
    assert_eq!(paragraph(&format!("x\n{}y", " ".repeat(50)), 100), format!("x\n{}y", " ".repeat(MAX_INDENT)));
    assert_eq!(paragraph("abcdef", 3), "ab…");
}

#[test]
fn response_keeps_line_breaks_and_is_cut() {
    assert_eq!(response("a\r\n\tb\u{1b}[31m\n", 100), "a\n\tb[31m");
    assert_eq!(response("ééé", 5), "éé");
}

#[test]
fn cut_paragraph_ends_with_an_ellipsis() {
    assert_eq!(paragraph("one\ntwo\nthree", 8), "one\ntwo…");
    assert_eq!(paragraph("one\ntwo", 7), "one\ntwo", "it fits");
    assert_eq!(paragraph("one\ntwo", 0), "…");
}
