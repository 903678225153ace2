use std::fs;

use tempfile::TempDir;

use super::support::*;
use crate::{Access, ErrorKind, Store};
use model::{Resource, *};

#[tokio::test]
async fn damaged_file_error_recommends_restore() {
    if !applies_to_files("damage of a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let puts = (0..200).map(|i| put(&format!("k{i}"), unlock("2026-03-16T13:00:00Z", 1.0))).collect();
    store.commit(at(Commit { feeds: vec![schedule("arbitrum", puts)], ..Commit::default() })).await.expect("committed");
    store.close().await.expect("closed");
    let path = directory.path().join("cliffwatch.db");
    let mut bytes = fs::read(&path).expect("read");
    // Keep the first page, which has the header and the schema, and damage the start of all others.
    for page in bytes.chunks_mut(4096).skip(1) {
        page[..64].fill(0xa5);
    }
    fs::write(&path, bytes).expect("written");
    let error = match Store::open(opening(&path, Access::Own)).await {
        Err(error) => error,
        Ok(store) => {
            assert_eq!(store.integrity_check().await.expect_err("found").kind(), ErrorKind::Damaged);
            store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect_err("refused")
        }
    };
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error:?}");
    assert!(error.to_string().contains("cliffwatch backup") && error.to_string().contains("cliffwatch.db"), "{error}");
}

#[tokio::test]
async fn invalid_row_is_reported_as_damage() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    notify(&store, "a", &["ops"]).await;
    change(&store, "UPDATE notification SET kind = 'unknown'");
    let due = store.due("ops".into(), now(), 9).await.expect("read");
    assert!(due.len() == 1 && due[0].notifications.is_empty(), "the delivery can end as a dead letter: {due:?}");
    change(&store, "UPDATE alert SET updated_at = 9223372036854775807");
    let error = store.alerts(AlertFilter { limit: 9, ..AlertFilter::default() }).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unreadable, "{error:?}");
}

#[tokio::test]
async fn full_disk_loses_nothing_and_writes_resume_with_space() {
    if !applies_to_files("a full disk") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    notify(&store, "a", &["ops"]).await;
    let limit = |pages: Option<i64>| {
        store.handle.writer.as_ref().expect("a writer").run("limit the file", move |connection| {
            let connection = connection.sqlite();
            let present: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let pages = pages.unwrap_or(present + 4);
            connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(())
        })
    };
    limit(None).await.expect("limited");
    let before = dump(&store);
    let big = || {
        let puts = (0..300).map(|i| put(&format!("k{i}"), unlock("2026-03-16T13:00:00Z", f64::from(i)))).collect();
        let alert = firing("b", Some("aptos"));
        let notifications = vec![notification(&alert, "firing", &["ops"])];
        at(Commit { feeds: vec![schedule("aptos", puts)], alerts: vec![alert], notifications, ..Commit::default() })
    };
    let error = store.commit(big()).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(dump(&store), before, "nothing is partially written");
    limit(Some(1_000_000)).await.expect("space returned");
    assert_eq!(store.commit(big()).await.expect("committed").deliveries, 1);
    assert!(store.integrity_check().await.is_ok());
}

#[tokio::test]
async fn panic_in_operation_rolls_back_and_store_continues() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let error = store
        .write::<()>("try something", |to| {
            to.execute("INSERT INTO meta (key, value) VALUES ('half', 'done')", [])?;
            panic!("unexpected record");
        })
        .await
        .expect_err("answered");
    assert!(error.kind() == ErrorKind::Panicked && error.to_string().contains("unexpected record"), "{error:?}");
    for _ in 0..5 {
        let error = store.read::<()>("read something", |_| panic!("again")).await.expect_err("answered");
        assert_eq!(error.kind(), ErrorKind::Panicked, "{error:?}");
    }
    assert!(!dump(&store)["meta"].iter().any(|row| row.contains("half")));
    notify(&store, "a", &["ops"]).await;
}

#[tokio::test]
async fn write_completes_after_caller_is_dropped() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = firing("a", Some("arbitrum"));
    let notifications = vec![notification(&alert, "firing", &["ops"])];
    let commit = at(Commit { alerts: vec![alert], notifications, ..Commit::default() });
    {
        let mut queried = std::pin::pin!(store.commit(commit));
        // One poll hands the commit to the writer. Then the future is dropped.
        std::future::poll_fn(|context| {
            let _ = queried.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    store.close().await.expect("closed after queued writes");
    let store = owned(&directory).await;
    assert_eq!(store.due("ops".into(), now(), 9).await.expect("read").len(), 1);
}
