use std::{fs, time::Duration};

use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use crate::{Access, ErrorKind, Store};
use model::{AlertState, Change, ChangeKind, *};

#[tokio::test]
async fn prune_deletes_old_rows_and_keeps_unfinished_ones() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let deliver = async |subject: &str, alert: AlertState, state: DeliveryState| {
        let id = notify(&store, subject, &["ops"]).await.remove(0).id;
        if state != DeliveryState::Due {
            let next = (state == DeliveryState::Retrying).then(|| now() + minutes(1));
            store.record_attempts(vec![tried(id, now(), state, next)]).await.expect("recorded");
        }
        let mut moved = firing(subject, Some("arbitrum"));
        (moved.state, moved.updated_at) = (alert, now());
        store.commit(at(Commit { alerts: vec![moved], ..Commit::default() })).await.expect("committed");
    };
    deliver("over", AlertState::Resolved, DeliveryState::Delivered).await;
    deliver("happened", AlertState::Event, DeliveryState::Delivered).await;
    deliver("still firing", AlertState::Firing, DeliveryState::Delivered).await;
    deliver("not sent", AlertState::Event, DeliveryState::Due).await;
    deliver("retrying", AlertState::Resolved, DeliveryState::Retrying).await;
    deliver("dead", AlertState::Resolved, DeliveryState::Dead).await;
    let mut test = notification(&firing("no such alert", None), "test", &["ops"]);
    test.alert = AlertId::from("al_test");
    let change = Change::of(ChangeKind::Added, Resource::Unlock, &"arbitrum".into());
    let polls = vec![poll(Endpoint::UnlockEvents, Some("arbitrum"))];
    let feeds = vec![schedule("arbitrum", vec![put("a", unlock("2026-03-16T13:00:00Z", 1.0))])];
    store
        .commit(at(Commit { notifications: vec![test], changes: vec![change], polls, feeds, ..Commit::default() }))
        .await
        .expect("committed");
    let lone = store.due("ops".into(), now(), 9).await.expect("read").pop().expect("the test").id;
    store.record_attempts(vec![tried(lone, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    let feeds = vec![schedule("arbitrum", vec![put("a", unlock("2026-03-18T13:00:00Z", 1.0))])];
    store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");

    let events = count(&store, "event_log").unsigned_abs();
    let day = Duration::from_secs(86_400);
    let early = store.prune(now() + TimeDelta::days(9), 10 * day, 10 * day).await.expect("pruned");
    assert_eq!(early, PruneResult::default(), "nothing is old enough");
    let pruned = store.prune(now() + TimeDelta::days(11), 20 * day, 10 * day).await.expect("pruned");
    assert_eq!(pruned, PruneResult { polls: 1, ..PruneResult::default() }, "the poll log has a separate retention");
    let pruned = store.prune(now() + TimeDelta::days(11), 10 * day, 10 * day).await.expect("pruned");
    // The newest event stays.
    let events = events - 1;
    assert_eq!(pruned, PruneResult { polls: 0, changes: 1, events, versions: 1, logs: 0, alerts: 2, notifications: 1 });

    let left = store.alerts(AlertFilter { limit: 99, ..AlertFilter::default() }).await.expect("read");
    let mut left: Vec<_> = left.iter().map(|alert| alert.subject.as_str()).collect();
    left.sort_unstable();
    assert_eq!(left, ["dead", "not sent", "retrying", "still firing"]);
    assert_eq!(store.outbox(OutboxFilter { limit: 99, ..OutboxFilter::default() }).await.expect("read").len(), 4);
    assert_eq!(store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read")[0].records.len(), 1);
    assert_eq!(store.versions("arbitrum".into()).await.expect("read").len(), 1);
    assert_eq!(count(&store, "attempt"), 3, "attempts are deleted with their delivery");
}

#[tokio::test]
async fn unlimited_retention_deletes_nothing() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(at(Commit { polls: vec![poll(Endpoint::Burn, None)], ..Commit::default() })).await.expect("committed");
    let pruned = store.prune(now(), Duration::MAX, Duration::MAX).await.expect("pruned");
    assert_eq!(pruned, PruneResult::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_during_writes_is_consistent_and_opens() {
    if !applies_to_files("backups of a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            for i in 0..60 {
                notify(&store, &format!("subject {i}"), &["ops", "desk"]).await;
            }
        }
    });
    let copy = directory.path().join("copy.db");
    for _ in 0..5 {
        store.backup(copy.clone(), true).await.expect("copied");
    }
    writing.await.expect("written");
    let error = store.backup(copy.clone(), false).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Rejected, "{error}");
    let error = store.backup(store.path().to_owned(), true).await.expect_err("refused");
    assert!(error.to_string().contains("the database itself"), "{error}");
    let fresh = directory.path().join("fresh.db");
    store.backup(fresh.clone(), false).await.expect("copied");
    for (path, wanted) in [(copy, None), (fresh, Some(120))] {
        let opened = Store::open(opening(&path, Access::Own)).await.expect("the copy opens");
        let rows = opened.outbox(OutboxFilter { limit: 999, ..OutboxFilter::default() }).await.expect("read");
        assert!(rows.len() % 2 == 0, "consistent: both deliveries of a notification, or none");
        assert!(wanted.is_none_or(|wanted| wanted == rows.len()), "{}", rows.len());
        assert!(opened.integrity_check().await.is_ok());
        opened.close().await.expect("closed");
    }
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn failed_backup_leaves_no_file() {
    if !applies_to_files("backups of a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let error = store.backup(directory.path().join("no/such/place.db"), false).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
}
