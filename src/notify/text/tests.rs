use super::*;

#[test]
fn a_line_holds_no_break_and_no_hidden_mark() {
    assert_eq!(line("AR\r\nB\u{202E}evil\u{200B}\u{0000} \t x\u{0085}y", 100), "AR Bevil x y");
}

#[test]
fn a_long_line_ends_in_an_ellipsis_within_its_bound() {
    for max in 1..20 {
        let cut = line("one two three four five", max);
        assert!(cut.chars().count() <= max, "{cut:?} is longer than {max}");
        assert!(cut.ends_with('…'));
    }
    assert_eq!(line("one two", 7), "one two");
    assert_eq!(line(&"x".repeat(10_000), 200).chars().count(), 200);
}

#[test]
fn a_paragraph_keeps_its_shape_and_nothing_else() {
    assert_eq!(paragraph("\n\n  a\u{200B} b\r\n    - c \n\n\n\nd\n\n", 100), "a b\n    - c\n\nd");
    assert_eq!(paragraph(&format!("x\n{}y", " ".repeat(50)), 100), format!("x\n{}y", " ".repeat(MAX_INDENT)));
    assert_eq!(paragraph("abcdef", 3), "abc");
}

#[test]
fn an_answer_keeps_its_lines_and_its_bound() {
    assert_eq!(answer("a\r\n\tb\u{1b}[31m\n", 100), "a\n\tb[31m");
    assert_eq!(answer("ééé", 5), "éé");
}
