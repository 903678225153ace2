use super::*;

type Row = (&'static str, Option<f64>);

const ROWS: [Row; 2] = [("ARB", Some(-1.5)), ("=HYPERLINK(\"x\")\u{1b}[31m\n\u{202e}", None)];

fn listing() -> Listing<'static, Row> {
    Listing::of(&ROWS)
        .left_column("Token", "symbol", |row| Cell::text(row.0))
        .right_column("Value", "cliffValue", |row| Cell::number(row.1, |value| format!("${value}")))
}

#[test]
fn csv_contains_no_formulas() {
    assert_eq!(listing().csv(), "symbol,cliffValue\r\nARB,-1.5\r\n\"'=HYPERLINK(\"\"x\"\")\\u{1b}[31m \\u{202e}\",\r\n");
    for cell in ["=1+1", "+1+1", "-1+1", "@SUM(A1)", " =1", "＝1"] {
        assert!(csv_cell(cell).trim_start_matches('"').starts_with('\''), "{cell}");
    }
    assert_eq!(csv_cell("-4.25"), "-4.25");
}

#[test]
fn output_contains_no_control_characters() {
    for page in
        [listing().table(None), listing().table(Some(80)), listing().table(Some(40)), json(&["\u{202e}\u{9b}\u{e0001}"]).unwrap()]
    {
        assert!(page.chars().all(|c| c == '\n' || !model::text::is_hostile(c)), "{page:?}");
    }
}

#[test]
fn escaped_json_has_the_same_value() {
    let text = "a\u{202e}\u{9b}\u{e0001}é\n";
    let read: Vec<String> = serde_json::from_str(&json(&[text]).unwrap()).unwrap();
    assert_eq!(read, [text]);
}

#[test]
fn narrow_terminal_gets_blocks() {
    let page = listing().table(Some(40));
    assert_eq!(page, "Token: ARB\nValue: $-1.5\n\nToken: =HYPERLINK(\"x\")\\u{1b}[31m \\u{202e}\n\n");
}
