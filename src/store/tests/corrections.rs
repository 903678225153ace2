use chrono::TimeDelta;
use rusqlite::Connection;
use tempfile::TempDir;

use super::support::*;
use crate::corrections::{IN_RANGE, OF_TOKEN};
use model::corrections::PastCorrection;
use model::*;

fn change(token: &str, kind: ChangeKind, shift_days: Option<f64>) -> Change {
    Change { shift_days, ..Change::of(kind, Resource::Unlock, &token.into()) }
}

#[tokio::test]
async fn corrections_of_a_time_have_their_shifts() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let day = |days: i64| now() + TimeDelta::days(days);
    for (at, changes) in [
        (day(0), vec![change("arbitrum", ChangeKind::Rescheduled, Some(4.5)), change("aptos", ChangeKind::Removed, None)]),
        (day(10), vec![change("arbitrum", ChangeKind::Resized, None), change("arbitrum", ChangeKind::Renamed, None)]),
        (day(20), vec![change("arbitrum", ChangeKind::SeriesShifted, Some(-7.0))]),
        (day(20), vec![Change::of(ChangeKind::Added, Resource::Burn, &"sui".into())]),
    ] {
        store.commit(Commit { at, changes, ..Commit::default() }).await.expect("committed");
    }
    let ids: Vec<TokenId> = ["arbitrum", "aptos", "sui", "unknown"].map(TokenId::from).to_vec();
    let all = store.corrections(ids.clone(), day(-1)).await.expect("read");
    let of = |at, shift_days| PastCorrection { at, shift_days };
    assert_eq!(all.keys().map(TokenId::as_str).collect::<Vec<_>>(), ["aptos", "arbitrum"]);
    assert_eq!(all[&TokenId::from("aptos")], [of(day(0), None)]);
    assert_eq!(all[&TokenId::from("arbitrum")], [of(day(0), Some(4.5)), of(day(10), None), of(day(20), Some(-7.0))]);
    let late = store.corrections(ids, day(10)).await.expect("read");
    assert_eq!(late.into_values().collect::<Vec<_>>(), [[of(day(20), Some(-7.0))]], "the start is exclusive");

    let within = |from: i64, to: i64| store.tokens_with_corrections(vec![(day(from), day(to))]);
    let names = |ids: Vec<TokenId>| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(within(-1, 0).await.expect("read")), ["aptos", "arbitrum"]);
    assert_eq!(names(within(0, 10).await.expect("read")), ["arbitrum"]);
    assert!(within(20, 30).await.expect("read").is_empty(), "the start is exclusive, and a burn is not a correction");
}

#[tokio::test]
async fn corrections_are_read_by_an_index() {
    if !applies_to_files("the plans of SQLite") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let connection = Connection::open(store.path()).expect("opens");
    for sql in [OF_TOKEN, IN_RANGE] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect(sql);
        let steps = statement.query_map(("a", 1, "[]"), |row| row.get::<_, String>(3)).expect("a plan");
        let steps: Vec<String> = steps.map(|step| step.expect("a step")).collect();
        assert!(steps.iter().any(|step| step.starts_with("SEARCH c USING INDEX change_")), "{sql}: {steps:#?}");
        assert!(!steps.iter().any(|step| step.starts_with("SCAN c") || step.starts_with("SCAN t")), "{sql}: {steps:#?}");
    }
}
