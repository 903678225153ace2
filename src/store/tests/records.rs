use std::sync::Arc;

use chrono::TimeDelta;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::support::*;
use crate::sql::Engine;
use crate::{cycle, outbox};
use model::*;

#[tokio::test]
async fn version_is_stored_for_new_facts_not_for_new_price() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let history = || store.versions("arbitrum".into());
    let step = |days: i64, record: Option<Record>, is_new_version: bool| {
        let mut update = schedule("arbitrum", Vec::new());
        match record {
            Some(record) => update.put.push(Put { is_new_version, ..put("a", record) }),
            None => update.removed.push("a".into()),
        }
        let at = now() + TimeDelta::days(days);
        let poll = PollEntry { at, ..poll(Endpoint::UnlockEvents, Some("arbitrum")) };
        store.commit(Commit { at, polls: vec![poll], feeds: vec![update], ..Commit::default() })
    };
    step(0, Some(unlock("2026-03-16T13:00:00Z", 10.0)), true).await.expect("committed");
    step(1, Some(unlock("2026-03-16T13:00:00Z", 10.5)), false).await.expect("committed");
    let versions = history().await.expect("read");
    assert_eq!(versions.len(), 1, "price drift adds no version");
    assert_eq!(versions[0].record, Some(unlock("2026-03-16T13:00:00Z", 10.5)), "the snapshot has the new price");
    step(2, Some(unlock("2026-03-20T13:00:00Z", 10.5)), true).await.expect("committed");
    step(3, None, true).await.expect("committed");
    step(4, None, true).await.expect("removing a removed record does nothing");
    let versions = history().await.expect("read");
    let seen: Vec<_> = versions
        .iter()
        .map(|version| ((version.at - now()).num_days(), version.record.as_ref().and_then(Record::interval)))
        .map(|(day, interval)| (day, interval.map(|interval| interval.start)))
        .collect();
    let (march_16, march_20) = (time("2026-03-16T13:00:00Z"), time("2026-03-20T13:00:00Z"));
    assert_eq!(seen, [(0, Some(march_16)), (2, Some(march_20)), (3, None)]);
    let token = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read").remove(0);
    assert!(token.records.is_empty());
}

#[tokio::test]
async fn token_missing_from_complete_list_is_unlisted_and_relisted() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let list = |tokens: &[&str], listed: &[&str], complete| {
        store.commit(at(Commit {
            tokens: tokens.iter().map(|id| token_item(id, "TKN")).collect(),
            listed: listed.iter().map(|id| TokenId::from(*id)).collect(),
            token_list_complete: complete,
            ..Commit::default()
        }))
    };
    let listed = async || {
        let ids = store.token_ids(true).await.expect("read");
        ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    list(&["apt", "arb"], &[], false).await.expect("committed");
    assert!(listed().await.is_empty(), "an incomplete list proves nothing");
    list(&["apt"], &["arb"], true).await.expect("committed");
    assert_eq!(listed().await, ["apt", "arb"]);
    list(&["arb"], &[], false).await.expect("committed");
    list(&[], &[], true).await.expect("committed");
    assert_eq!(listed().await, ["apt", "arb"], "neither an incomplete nor an empty list proves anything");
    list(&[], &["arb"], true).await.expect("committed");
    assert_eq!(listed().await, ["arb"]);
    assert_eq!(store.token_ids(false).await.expect("read").len(), 2, "never deleted");
    let found = store.tokens(vec!["apt".into()], Vec::new()).await.expect("read");
    assert_eq!(found[0].token.item, token_item("apt", "TKN"), "the known facts are kept");
    list(&["apt"], &["arb", "new"], true).await.expect("committed");
    assert_eq!(listed().await, ["apt", "arb", "new"]);
    assert!(store.tokens_named("' OR 1=1 --").await.expect("read").is_empty());
}

#[tokio::test]
async fn removed_and_reused_key_keeps_new_record() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let first = schedule("arbitrum", vec![put("a", unlock("2026-03-16", 1.0))]);
    store.commit(at(Commit { feeds: vec![first], ..Commit::default() })).await.expect("committed");
    let mut second = schedule("arbitrum", vec![put("a", unlock("2026-04-16", 2.0))]);
    second.removed = vec!["a".into()];
    store.commit(at(Commit { feeds: vec![second], ..Commit::default() })).await.expect("committed");
    let token = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read").remove(0);
    assert_eq!(token.records[0].record, unlock("2026-04-16", 2.0));
}

#[tokio::test]
async fn cycle_and_digest_reads_use_an_index() {
    if !applies_to_files("the plans of SQLite") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let connection = Connection::open(store.path()).expect("opens");
    let to_recheck = cycle::to_recheck_sql(Engine::Sqlite);
    let due = [
        outbox::due_sql(true, false),
        outbox::due_sql(false, false),
        outbox::due_sql(true, true),
        outbox::due_sql(false, true),
        outbox::next_due_sql(),
    ];
    for sql in [cycle::IN_WINDOW, &to_recheck, &due[0], &due[1], &due[2], &due[3], crate::digest::FIRING, crate::digest::UNLOCK] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect(sql);
        let values = vec![1_i64; statement.parameter_count()];
        let steps: Vec<String> = statement
            .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
            .expect("classify")
            .map(|step| step.expect("a step"))
            .collect();
        let is_scan = |step: &String| step.starts_with("SCAN") && !step.starts_with("SCAN t") || step.contains("AUTOMATIC");
        assert!(!steps.iter().any(is_scan), "{sql}: {steps:#?}");
    }
}

#[tokio::test]
async fn finds_tokens_by_slug_ticker_and_name() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let tokens = vec![token_item("sky", "SKY"), token_item("skycoin", "SKY"), token_item("other", "OTH")];
    store.commit(at(Commit { tokens, ..Commit::default() })).await.expect("committed");
    let named = async |text: &str| {
        let found = store.tokens_named(text).await.expect("read");
        found.into_iter().map(|token| token.id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named("sky").await, ["sky"], "an exact slug decides");
    assert_eq!(named(" The SKYcoin ").await, ["skycoin"]);
    assert_eq!(named("oth").await, ["other"]);
    assert_eq!(named("SKY").await, ["sky", "skycoin"], "the caller decides");
    assert_eq!(named("nothing").await, [""; 0]);
    // For each text, the few rows have the same meaning as all rows.
    let all = store.token_names().await.expect("read");
    assert_eq!(all.len(), 3);
    for text in ["sky", "SKY", "Sky", "skycoin", "SKYCOIN", "oth", "the other", "sk", ""] {
        let few = store.tokens_named(text).await.expect("read");
        let (by_few, by_all) = (model::resolve_token(text, &few), model::resolve_token(text, &all));
        assert_eq!(by_few.as_ref().ok(), by_all.as_ref().ok(), "{text}");
        let ids = |error: Option<model::TokenNameError>| match error {
            Some(model::TokenNameError::Ambiguous { candidates, .. }) => candidates,
            _ => Vec::new(),
        };
        assert_eq!(ids(by_few.err()), ids(by_all.err()), "{text}");
    }
}

#[tokio::test]
async fn window_start_is_exclusive_and_end_inclusive() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let month = Record::Unlock(Arc::new(read(json!({"unlockDate": "2026-03-20", "cliffUnlocks": {"allocationBreakdown": [
        {"unlockPrecision": "month"}]}}))));
    let undecided = Record::Unlock(Arc::new(read(json!({"unlockDate": "2026-03-20", "cliffUnlocks": {"allocationBreakdown": [
        {"unlockPrecision": "to be determined"}]}}))));
    let feeds = vec![
        schedule("exact", vec![put("a", unlock("2026-03-16T13:00:00Z", 1.0)), put("b", unlock("2026-06-16T13:00:00Z", 1.0))]),
        schedule("month", vec![put("a", month)]),
        schedule("undecided", vec![put("a", undecided)]),
        schedule("passed", vec![put("a", unlock("2026-03-01", 1.0))]),
    ];
    let mut waiting = firing("w", Some("waiting"));
    waiting.recheck_at = Some(now() + minutes(10));
    store.commit(at(Commit { feeds, alerts: vec![waiting], ..Commit::default() })).await.expect("committed");

    let due = async |from: &str, to: &str, now: Timestamp| {
        let ids =
            store.tokens_due(vec![(time(from), time(to)), (time("2026-06-01"), time("2026-06-02"))], now).await.expect("read");
        ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(due("2026-03-16T12:59:59Z", "2026-03-16T13:00:00Z", now()).await, ["exact"]);
    assert!(due("2026-03-16T13:00:00Z", "2026-03-17", now()).await.is_empty());
    assert_eq!(due("2026-02-28", "2026-03-01", now()).await, ["month", "passed"]);
    assert!(due("2026-03-19", "2026-03-21", now()).await.is_empty(), "a TBD date is in no window");
    assert_eq!(due("2027-01-01", "2027-01-02", now() + minutes(10)).await, ["waiting"]);

    let filter = UpcomingFilter { tokens: None, from: now(), until: Some(time("2026-06-30")), limit: 2 };
    let list = async |unlocks: UpcomingFilter| {
        let filter = UnlockListFilter { unlocks, kind: None, min_value: None, after: None };
        store.upcoming(filter).await.expect("read")
    };
    let found = list(filter.clone()).await;
    let shown = found.rows.iter().filter_map(|row| Some((row.token().id.as_str(), row.event()?.key.as_str())));
    assert_eq!(shown.collect::<Vec<_>>(), [("month", "a"), ("exact", "a")]);
    assert_eq!(found.total, 3);
    let of_one = UpcomingFilter { tokens: Some(vec!["exact".into()]), limit: 9, ..filter };
    assert_eq!(list(of_one.clone()).await.rows.len(), 2);
    let of_none = UpcomingFilter { tokens: Some(vec![]), ..of_one };
    assert_eq!(list(of_none).await.total, 0);
    let plan = store.plan_tokens(Endpoint::UnlockEvents, now()).await.expect("read").tokens;
    let next = |id: &str| plan.iter().find(|token| token.id.as_str() == id).expect("planned").next_event;
    assert_eq!((next("exact"), next("passed")), (Some(time("2026-03-16T13:00:00Z")), None));
}

#[tokio::test]
async fn planning_data_has_the_reads_that_completed_linear_unlocks() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let at_time = |text: &str| Some(time(text));
    let notes = LinearNotes {
        segments_read: Some(SegmentsRead { at: time("2026-02-20"), mark: at_time("2026-02-19"), version: Some(3) }),
        rate_changes_absent: Some(VersionAbsence { at: time("2026-02-18"), method: Some(ListedMethod::External) }),
        needs_ahead: Some(true),
        ahead_absent: at_time("2026-02-10"),
        linear_ahead: Some(LinearAhead {
            read_at: time("2026-02-20T10:30:00Z"),
            until: time("2026-05-30"),
            runs: Vec::new(),
            is_averaged: false,
            differs: None,
        }),
        ..LinearNotes::default()
    };
    let header = |notes: &LinearNotes| Some(serde_json::to_value(notes).expect("JSON"));
    let unneeded = LinearNotes { needs_ahead: Some(false), ..LinearNotes::default() };
    let feeds = vec![
        FeedUpdate { header: header(&notes), ..schedule("needed", Vec::new()) },
        FeedUpdate { header: header(&unneeded), ..schedule("unneeded", Vec::new()) },
        schedule("none", Vec::new()),
    ];
    let mut item = token_item("needed", "NEED");
    item.listed_method = "AI".into();
    store.commit(at(Commit { feeds, tokens: vec![item], ..Commit::default() })).await.expect("committed");
    let plan = store.plan_tokens(Endpoint::UnlockEvents, now()).await.expect("read").tokens;
    let token = |id: &str| plan.iter().find(|token| token.id.as_str() == id).expect("planned").clone();
    let reads = LinearReads {
        rate_changes_absent: notes.rate_changes_absent,
        needs_ahead: Some(true),
        ahead_at: at_time("2026-02-20T10:30:00Z"),
        ahead_absent: notes.ahead_absent,
    };
    assert_eq!((token("needed").segments, token("needed").linear), (notes.segments_read, Some(Box::new(reads))));
    assert_eq!(token("needed").listed_method, Some(ListedMethod::Ai));
    let linear = |id: &str| token(id).linear.map(|reads| *reads);
    assert_eq!(linear("unneeded"), Some(LinearReads { needs_ahead: Some(false), ..LinearReads::default() }));
    assert_eq!((linear("none"), token("none").listed_method), (None, None));
}
