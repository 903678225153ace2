use std::collections::BTreeSet;

use rusqlite::Connection;
use tempfile::TempDir;

use super::support::*;
use crate::clock::HAPPENED;
use crate::{Access, Opening, Store};
use model::*;

/// Integer columns that are not times of past events: numbers, counts, flags, data of the API, and times that may be in
/// the future.
const OTHERS: [(&str, &[&str]); 23] = [
    ("token", &["no", "last_updated", "has_burn", "has_buyback", "listed"]),
    ("feed", &["no", "token_no", "mark", "stale", "cost", "hold_accepted"]),
    ("record", &["no", "scope_no", "token_no", "nominal_at", "starts_at", "ends_at", "version_poll"]),
    ("record_version", &["no", "scope_no", "token_no", "poll"]),
    ("change", &["no", "token_no"]),
    (
        "poll",
        &["no", "token_no", "took_ms", "status", "requests", "credits", "bytes", "version", "records", "parse_warnings_total"],
    ),
    ("alert", &["episode", "token_no", "level", "starts_at", "ends_at", "recheck_at", "number"]),
    ("delivery", &["no", "attempts", "tries", "next_attempt_at"]),
    ("delivery_notification", &["delivery_no", "ordinal"]),
    ("attempt", &["no", "delivery_no", "took_ms", "status"]),
    ("pending_notification", &["no", "is_end", "settled", "severity", "due_at"]),
    ("notification_group", &["repeat_at"]),
    ("silence", &["starts_at", "ends_at"]),
    ("tally", &["records"]),
    ("schedule", &["scope_no"]),
    ("schedule_version", &["no", "scope_no", "versions"]),
    ("drift", &["token_no"]),
    ("token_supply", &["token_no", "price_at", "linear_until"]),
    ("event_log", &["seq", "token_no"]),
    ("deleted_deliveries", &["hour", "deliveries"]),
    ("keyed_request", &["no", "status"]),
    ("audit", &["no", "token_no"]),
    ("note", &["no"]),
];

#[tokio::test]
async fn every_time_column_is_classified() {
    if !applies_to_files("the columns of a file's schema") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    owned(&directory).await.close().await.expect("closed");
    let connection = Connection::open(directory.path().join("cliffwatch.db")).expect("opens");
    let mut statement = connection
        .prepare(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND c.type = 'INTEGER' AND t.name NOT LIKE 'sqlite_%'",
        )
        .expect("prepared");
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).expect("queried");
    let found: BTreeSet<(String, String)> = rows.map(|row| row.expect("a row")).collect();
    let known: BTreeSet<(String, String)> = HAPPENED
        .iter()
        .chain(&OTHERS)
        .flat_map(|(table, columns)| columns.iter().map(|column| ((*table).to_owned(), (*column).to_owned())))
        .collect();
    let unknown: Vec<_> =
        found.difference(&known).filter(|(table, _)| !["credit", "investor"].contains(&table.as_str())).collect();
    assert!(unknown.is_empty(), "is this a time of a past event? {unknown:?}");
    assert_eq!(known.difference(&found).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
}

#[tokio::test]
async fn future_times_are_repaired_after_clock_correction() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let wrong = time("2036-03-09T00:00:00Z");
    store
        .commit(Commit {
            at: wrong,
            feeds: vec![FeedUpdate {
                state: FeedState { read_at: Some(wrong), tried_at: Some(wrong), ..FeedState::default() },
                ..schedule("arbitrum", vec![put("a", unlock("2036-03-16T13:00:00Z", 10.0))])
            }],
            jobs: vec![("unlock_events".to_owned(), wrong)],
            evaluated_until: Some(wrong),
            ..Commit::default()
        })
        .await
        .expect("committed");
    let silence = SilenceRequest {
        matchers: vec![Matcher::parse("token=\"arbitrum\"").expect("a matcher")],
        starts_at: None,
        ends_at: wrong + minutes(120),
        author: "ana".to_owned(),
        comment: "a long night".to_owned(),
    };
    store.put_silence(silence.into_silence(wrong).expect("granted")).await.expect("added");

    assert!(store.repair_future_times(now()).await.expect("pulled") > 5);
    assert_eq!(store.repair_future_times(now()).await.expect("pulled"), 0, "the second repair changes nothing");
    let tokens = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read");
    let feed = tokens[0].feeds.first().expect("a feed");
    assert_eq!((feed.1.read_at, feed.1.tried_at), (Some(now()), Some(now())));
    let starts = tokens[0].records[0].record.interval().map(|interval| interval.start);
    assert_eq!(starts, Some(time("2036-03-16T13:00:00Z")), "data of the source is unchanged");
    assert_eq!(store.job_slots().await.expect("read"), [("unlock_events".to_owned(), now())]);
    assert_eq!(store.evaluated_until().await.expect("read"), Some(now()));
    let silences = store.silences(None).await.expect("read");
    assert_eq!((silences[0].created_at, silences[0].ends_at), (now(), now() + minutes(120)));
}

#[tokio::test]
async fn times_of_a_right_clock_that_is_ahead_are_not_repaired() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let ahead = now() + minutes(4);
    let commit = |at| Commit { at, evaluated_at: Some(at), jobs: vec![("digest/desk".to_owned(), at)], ..Commit::default() };
    store.commit(commit(ahead)).await.expect("committed");
    assert_eq!(store.repair_future_times(now()).await.expect("repaired"), 0, "the digest would be sent again");
    store.commit(Commit { jobs: Vec::new(), ..commit(now()) }).await.expect("committed");
    assert_eq!(store.evaluated_at().await.expect("read"), Some(ahead), "the latest time stays");
    assert_eq!(store.job_slots().await.expect("read"), [("digest/desk".to_owned(), ahead)]);
    assert!(store.repair_future_times(now() - minutes(60)).await.expect("repaired") > 0);
    assert_eq!(store.evaluated_at().await.expect("read"), Some(now() - minutes(60)));
}

#[tokio::test]
async fn restored_database_has_no_confirmed_time() {
    if !applies_to_files("the restore of a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let anchor =
        ClockAnchor { machine: Some("a".into()), boot: Some("1".into()), system: 1_800_000_000_000, uptime: 7, is_agreed: true };
    store.save_clock(&anchor).await.expect("stored");
    assert_eq!(store.saved_clock().await.expect("read"), Some(anchor));
    let backup = directory.path().join("backup.db");
    store.backup(backup.clone(), false).await.expect("copied");
    store.close().await.expect("closed");
    let opening = Opening { path: directory.path().join("cliffwatch.db"), access: Access::Own, now: now() };
    Store::restore(&backup, &opening).expect("restored");
    assert_eq!(owned(&directory).await.saved_clock().await.expect("read"), None);
}
