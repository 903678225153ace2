//! Damage, a full disk, a panic, a caller that goes away.

use std::fs;

use tempfile::TempDir;

use super::support::*;
use crate::{Access, Store, StoreError};
use model::{Resource, *};

#[tokio::test]
async fn a_damaged_file_is_named_as_such_with_what_to_do() {
    if !is_about_files("damage of a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let puts = (0..200).map(|i| put(&format!("k{i}"), unlock("2026-03-16T13:00:00Z", 1.0))).collect();
    store.commit(at(Commit { feeds: vec![schedule("arbitrum", puts)], ..Commit::default() })).await.expect("committed");
    store.close().await.expect("closed");
    let path = directory.path().join("cliffwatch.db");
    let mut bytes = fs::read(&path).expect("read");
    // The first page, with the header and the schema, stays; every later one loses what it begins with.
    for page in bytes.chunks_mut(4096).skip(1) {
        page[..64].fill(0xa5);
    }
    fs::write(&path, bytes).expect("written");
    let error = match Store::open(opening(&path, Access::Own)).await {
        Err(error) => error,
        Ok(store) => {
            assert!(store.integrity_check().await.expect_err("found").is_damaged());
            store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect_err("refused")
        }
    };
    assert!(error.is_damaged() && !error.is_full(), "{error:?}");
    assert!(error.to_string().contains("cliffwatch backup") && error.to_string().contains("cliffwatch.db"), "{error}");
}

#[tokio::test]
async fn a_row_that_this_program_never_writes_is_damage_and_no_panic() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    tell(&store, "a", &["ops"]).await;
    change(&store, "UPDATE notice SET kind = 'gossip'");
    let error = store.due("ops".into(), now(), 9).await.expect_err("refused");
    assert!(error.is_damaged() && error.to_string().contains("gossip"), "{error}");
    change(&store, "UPDATE alert SET updated_at = 9223372036854775807");
    let error = store.alerts(AlertFilter { limit: 9, ..AlertFilter::default() }).await.expect_err("refused");
    assert!(error.is_damaged(), "{error:?}");
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_space() {
    if !is_about_files("a full disk, which is the server's") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    tell(&store, "a", &["ops"]).await;
    let limit = |pages: Option<i64>| {
        store.0.writer.as_ref().expect("a writer").run("limit the file", move |connection| {
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
    assert!(error.is_full() && !error.is_damaged(), "{error:?}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(dump(&store), before, "nothing is half written");
    limit(Some(1_000_000)).await.expect("space returned");
    assert_eq!(store.commit(big()).await.expect("committed").deliveries, 1);
    assert!(store.integrity_check().await.is_ok());
}

#[tokio::test]
async fn a_panic_inside_an_operation_undoes_it_and_the_store_goes_on() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let error = store
        .write::<()>("try something", |to| {
            to.execute("INSERT INTO meta (key, value) VALUES ('half', 'done')", [])?;
            panic!("a record like no other");
        })
        .await
        .expect_err("answered");
    assert!(matches!(&error, StoreError::Panicked { message, .. } if message == "a record like no other"), "{error:?}");
    for _ in 0..5 {
        let error = store.read::<()>("read something", |_| panic!("again")).await.expect_err("answered");
        assert!(matches!(error, StoreError::Panicked { .. }), "{error:?}");
    }
    assert!(!dump(&store)["meta"].iter().any(|row| row.contains("half")));
    tell(&store, "a", &["ops"]).await;
}

#[tokio::test]
async fn a_write_goes_through_though_whoever_asked_went_away() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = firing("a", Some("arbitrum"));
    let notifications = vec![notification(&alert, "firing", &["ops"])];
    let commit = at(Commit { alerts: vec![alert], notifications, ..Commit::default() });
    {
        let mut asked = std::pin::pin!(store.commit(commit));
        // One poll hands the commit to the writer; then nobody waits for the answer.
        std::future::poll_fn(|context| {
            let _ = asked.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    store.close().await.expect("closed after what is queued");
    let store = owned(&directory).await;
    assert_eq!(store.due("ops".into(), now(), 9).await.expect("read").len(), 1);
}
