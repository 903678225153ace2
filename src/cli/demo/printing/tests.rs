use super::*;

#[test]
fn control_characters_are_not_printed() {
    assert_eq!(printable("\u{1b}[2JARB\u{202e}\r\n"), "[2JARB");
}

#[test]
fn row_fits_the_terminal_and_is_one_line_in_a_pipe() {
    let row =
        |width| row(Instant::now(), "warning", AnsiColor::Yellow, "TON: $83.16M to unlock", "BigCliffAhead, lead 1d", width);
    let plain = |width| anstream::adapter::strip_str(&row(width)).to_string();
    assert_eq!(plain(None), "  0.0s  warning   TON: $83.16M to unlock   BigCliffAhead, lead 1d");
    assert_eq!(plain(Some(80)), plain(None));
    assert_eq!(plain(Some(60)), "  0.0s  warning   TON: $83.16M to unlock\n                  BigCliffAhead, lead 1d");
}
