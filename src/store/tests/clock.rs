use std::collections::BTreeSet;

use rusqlite::Connection;
use tempfile::TempDir;

use super::support::*;
use crate::clock::HAPPENED;
use model::*;

/// Whole numbers that are no time of ours: numbers, counts, flags, what the API told, and what may well lie ahead.
const OTHERS: [(&str, &[&str]); 17] = [
    ("token", &["no", "last_updated", "has_burn", "has_buyback", "listed"]),
    ("feed", &["no", "token_no", "mark", "stale", "cost"]),
    ("record", &["no", "scope_no", "token_no", "nominal_at", "starts_at", "ends_at", "version_poll"]),
    ("record_version", &["no", "scope_no", "token_no", "poll"]),
    ("change", &["no", "token_no"]),
    ("poll", &["no", "token_no", "took_ms", "status", "requests", "credits", "bytes", "version", "records", "oddities_total"]),
    ("alert", &["episode", "token_no", "level", "starts_at", "ends_at", "recheck_at"]),
    ("delivery", &["no", "attempts", "tries", "next_attempt_at"]),
    ("delivery_notice", &["delivery_no", "ordinal"]),
    ("attempt", &["no", "delivery_no", "took_ms", "status"]),
    ("telling", &["no", "is_end", "settled", "tone", "due_at"]),
    ("told_group", &["repeat_at"]),
    ("silence", &["starts_at", "ends_at"]),
    ("tally", &["records"]),
    ("schedule", &["scope_no"]),
    ("schedule_version", &["no", "scope_no", "versions"]),
    ("drift", &["token_no"]),
];

#[tokio::test]
async fn every_time_of_the_schema_has_been_thought_of() {
    if !is_about_files("the columns of a file's schema") {
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
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).expect("asked");
    let found: BTreeSet<(String, String)> = rows.map(|row| row.expect("a row")).collect();
    let known: BTreeSet<(String, String)> = HAPPENED
        .iter()
        .chain(&OTHERS)
        .flat_map(|(table, columns)| columns.iter().map(|column| ((*table).to_owned(), (*column).to_owned())))
        .collect();
    let unknown: Vec<_> =
        found.difference(&known).filter(|(table, _)| !["credit", "investor"].contains(&table.as_str())).collect();
    assert!(unknown.is_empty(), "is it a time of something that has happened? {unknown:?}");
    assert_eq!(known.difference(&found).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
}

#[tokio::test]
async fn what_was_written_in_2036_waits_no_longer_once_the_clock_is_right() {
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
    store.put_silence(silence.grant(wrong).expect("granted")).await.expect("added");

    assert!(store.pull_back(now()).await.expect("pulled") > 5);
    assert_eq!(store.pull_back(now()).await.expect("pulled"), 0, "once is enough");
    let tokens = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read");
    let feed = tokens[0].feeds.first().expect("a feed");
    assert_eq!((feed.1.read_at, feed.1.tried_at), (Some(now()), Some(now())));
    let starts = tokens[0].records[0].record.interval().map(|interval| interval.start);
    assert_eq!(starts, Some(time("2036-03-16T13:00:00Z")), "what the source says stays");
    assert_eq!(store.job_slots().await.expect("read"), [("unlock_events".to_owned(), now())]);
    assert_eq!(store.evaluated_until().await.expect("read"), Some(now()));
    let silences = store.silences(None).await.expect("read");
    assert_eq!((silences[0].created_at, silences[0].ends_at), (now(), now() + minutes(120)));
}
