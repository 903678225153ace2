use super::*;
use crate::{Change, ChangeKind, Resource, TokenId, wire};

fn row(token: &str, kind: ChangeKind, shift_days: Option<f64>, value: f64) -> ChangeRow {
    let id = TokenId::from(token);
    let mut change = Change::of(kind, Resource::Unlock, &id);
    change.shift_days = shift_days;
    change.summary = format!("what happened to {token}");
    let event = serde_json::json!({"unlockDate": "2026-03-16", "cliffUnlocks": {"cliffValue": value}});
    change.new = Some(Record::Unlock(serde_json::from_value(event).expect("an event")));
    let at = wire::parse_timestamp("2026-03-09T06:00:00Z").expect("a time");
    ChangeRow { id: 0, at, symbol: Some(token.to_uppercase()), token: id, resource: Resource::Unlock, key: None, change }
}

fn check(rows: &[ChangeRow], expected: &[&str]) {
    let lines: Vec<String> = changed_lines(rows).into_iter().map(|line| format!("{}: {}", line.symbol, line.text)).collect();
    assert_eq!(lines, expected);
}

#[test]
fn same_change_of_many_tokens_is_one_line() {
    let mut rows: Vec<ChangeRow> =
        (0..32_u8).map(|n| row(&format!("t{n:02}"), ChangeKind::Rescheduled, Some(3.0), f64::from(n))).collect();
    rows.push(row("arb", ChangeKind::Rescheduled, Some(4.0), 10.0));
    rows.push(row("sui", ChangeKind::Added, None, 9e9));
    let alike = "32 tokens: moved by +3 days: T31, T30, T29, T28, T27, T26, T25, T24, and 24 more";
    check(&rows, &["SUI: what happened to sui", alike, "ARB: what happened to arb"]);
}

#[test]
fn fewer_than_three_tokens_have_separate_lines() {
    let moved = |token| row(token, ChangeKind::SeriesShifted, Some(1.0), 1.0);
    check(&[moved("arb"), moved("op")], &["ARB: what happened to arb", "OP: what happened to op"]);
    check(&[moved("arb"), moved("arb"), moved("arb")], &["ARB: what happened to arb"; 3]);
    check(&[], &[]);
}
