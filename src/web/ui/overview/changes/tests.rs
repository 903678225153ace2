use super::*;
use model::{Change, Resource, TokenId};

fn row(token: &str, at: &str, summary: &str) -> ChangeRow {
    let mut change = Change::of(ChangeKind::SeriesShifted, Resource::Unlock, &TokenId::from(token));
    change.summary = summary.to_owned();
    ChangeRow {
        id: 1,
        at: model::time::parse_timestamp(at).expect("a timestamp"),
        token: TokenId::from(token),
        symbol: Some(token.to_uppercase()),
        resource: Resource::Unlock,
        key: None,
        change,
    }
}

#[test]
fn equal_changes_share_a_line() {
    let mut rows: Vec<ChangeRow> =
        (0..32).map(|i| row(&format!("t{i}"), "2026-11-20T06:00:00Z", "12 tranches moved by +3 days")).collect();
    rows.push(row("jup", "2026-11-20T05:59:00Z", "moved from 1 Dec 2026 to 6 Dec 2026 (+5 days)"));
    rows.push(row("old", "2026-11-01T06:00:00Z", "12 tranches moved by +3 days"));
    let lines = change_lines(&rows, 10);
    let brief: Vec<(usize, usize, &str)> = lines.iter().map(|line| (line.tokens.len(), line.more, line.text.as_str())).collect();
    assert_eq!(
        brief,
        [
            (3, 29, "12 tranches moved by +3 days"),
            (1, 0, "moved from 1 Dec 2026 to 6 Dec 2026 (+5 days)"),
            (1, 0, "12 tranches moved by +3 days")
        ]
    );
    assert_eq!(change_lines(&rows, 1).len(), 1);
}
