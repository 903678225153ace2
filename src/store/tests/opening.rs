//! Opening: what is taken, brought up to date or refused.

use std::{fs, path::Path, time::Duration};

use rusqlite::Connection;
use tempfile::TempDir;

use super::support::*;
use crate::{Access, Store, StoreError, open, schema};
use model::{Resource, *};

#[tokio::test]
async fn what_was_committed_is_there_after_reopening() {
    if !is_about_files("the WAL of a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store
        .commit(at(Commit {
            feeds: vec![schedule("arbitrum", vec![put("a", unlock("2026-03-16T13:00:00Z", 10.0))])],
            ..Commit::default()
        }))
        .await
        .expect("committed");
    store.close().await.expect("closed");
    let path = directory.path().join("cliffwatch.db");
    assert!(!path.with_extension("db-wal").exists(), "closing moves the WAL into the database");
    let version: i64 =
        Connection::open(&path).expect("opens").pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    assert_eq!(version, schema::DAEMON.version());

    let store = owned(&directory).await;
    let tokens = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read");
    assert_eq!(tokens[0].records.len(), 1);
    assert_eq!(tokens[0].token.symbol(), "ARB", "a record tells the name of a token that no list named");
    assert!(store.integrity_check().await.is_ok());
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_untouched_with_both_versions_named() {
    if !is_about_files("a file of a newer program") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    owned(&directory).await.close().await.expect("closed");
    let path = directory.path().join("cliffwatch.db");
    let connection = Connection::open(&path).expect("opens");
    connection.execute("UPDATE meta SET value = '9.8.7' WHERE key = 'program'", []).expect("updated");
    connection.pragma_update(None, "user_version", 99).expect("updated");
    connection.close().expect("closed");
    let bytes = fs::read(&path).expect("read");
    for access in [Access::Own, Access::Beside, Access::Read] {
        let error = Store::open(opening(&path, access)).await.expect_err("refused");
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("9.8.7") && text.contains(env!("CARGO_PKG_VERSION")) && text.contains("backup"), "{text}");
    }
    assert_eq!(fs::read(&path).expect("read"), bytes);
}

#[tokio::test]
async fn a_database_of_an_older_program_is_brought_up_to_date_by_its_owner_alone() {
    if !is_about_files("a file of an older program") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("cliffwatch.db");
    // A database at the schema before the first: ours by its mark, and empty.
    let connection = Connection::open(&path).expect("opens");
    connection.pragma_update(None, "application_id", 0x636c_6677).expect("updated");
    connection.close().expect("closed");
    for access in [Access::Beside, Access::Read] {
        let error = Store::open(opening(&path, access)).await.expect_err("refused");
        assert!(matches!(error, StoreError::Older { found: 0, .. }), "{error:?}");
    }
    let store = owned(&directory).await;
    assert!(store.token_ids(false).await.expect("read").is_empty());
}

#[tokio::test]
async fn a_second_owner_is_refused_until_the_first_is_gone() {
    if !is_about_files("the lock beside a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let path = directory.path().join("cliffwatch.db");
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    for name in [&path, &link] {
        let error = Store::open(opening(name, Access::Own)).await.expect_err("refused");
        assert!(matches!(error, StoreError::InUse { pid: Some(pid), .. } if pid == std::process::id()), "{error:?}");
    }
    store.close().await.expect("closed");
    assert!(matches!(store.gauges().await, Err(StoreError::Closed { .. })));
    assert!(matches!(store.commit(at(Commit::default())).await, Err(StoreError::Closed { .. })));
    store.close().await.expect("closing twice is no error");
    owned(&directory).await.close().await.expect("the lock was released");
}

#[tokio::test]
async fn dropping_the_last_handle_releases_the_database() {
    if !is_about_files("the lock beside a file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    drop(owned(&directory).await);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    loop {
        match Store::open(opening(&directory.path().join("cliffwatch.db"), Access::Own)).await {
            Ok(_) => break,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_reads_beside_a_running_daemon_and_at_a_closed_database() {
    if !is_about_files("reading a closed file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("cliffwatch.db");
    for access in [Access::Read, Access::Beside] {
        assert!(matches!(Store::open(opening(&path, access)).await, Err(StoreError::Missing { .. })));
    }
    assert!(!path.exists(), "reading makes no file");
    let store = owned(&directory).await;
    tell(&store, "a", &["ops"]).await;
    let beside = Store::open(opening(&path, Access::Read)).await.expect("opens beside the owner");
    assert_eq!(beside.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 1);
    tell(&store, "b", &["ops"]).await;
    assert_eq!(beside.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 2);
    assert!(matches!(beside.commit(at(Commit::default())).await, Err(StoreError::OpenedForReading { .. })));
    beside.close().await.expect("closed");
    store.close().await.expect("closed");
    let closed = Store::open(opening(&path, Access::Read)).await.expect("opens alone");
    assert_eq!(closed.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 2);
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_refused_and_left_as_it_is() {
    let directory = TempDir::new().expect("a directory");
    let text = directory.path().join("notes.db");
    fs::write(&text, "these are my notes, and they are longer than a header").expect("written");
    let short = directory.path().join("short.db");
    fs::write(&short, "hi").expect("written");
    let foreign = directory.path().join("foreign.db");
    let connection = Connection::open(&foreign).expect("opens");
    connection.execute_batch("CREATE TABLE mine (x); PRAGMA user_version = 1").expect("made");
    connection.close().expect("closed");
    for path in [&text, &short, &foreign] {
        let bytes = fs::read(path).expect("read");
        for access in [Access::Own, Access::Beside, Access::Read] {
            let error = Store::open(opening(path, access)).await.expect_err("refused");
            assert!(matches!(error, StoreError::NotOurs { .. }), "{error:?}");
        }
        assert_eq!(fs::read(path).expect("read"), bytes);
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_a_clear_error() {
    let error = Store::open(opening(Path::new("/nowhere/at/all/x.db"), Access::Own)).await.expect_err("refused");
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("/nowhere/at/all/x.db"), "{error}");
}

#[test]
fn the_writer_syncs_each_commit_and_checks_keys() {
    let directory = TempDir::new().expect("a directory");
    let opened = open::open(&opening(&directory.path().join("cliffwatch.db"), Access::Own), &|_, _| {}).expect("opens");
    let writer = opened.writer.expect("a writer");
    let writer = writer.sqlite();
    for (pragma, wanted) in [("synchronous", 2_i64), ("foreign_keys", 1), ("trusted_schema", 0), ("busy_timeout", 5000)] {
        let got: i64 = writer.pragma_query_value(None, pragma, |row| row.get(0)).expect("a number");
        assert_eq!(got, wanted, "{pragma}");
    }
    let journal: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a word");
    assert_eq!(journal, "wal");
    let written = opened.readers.with(|reader| reader.sqlite().execute("DELETE FROM token", [])).expect("a reader");
    assert!(written.is_err(), "a reader cannot write");
    assert!(writer.execute("INSERT INTO meta (key, value) VALUES ('x', x'00')", []).is_err(), "tables are strict");
}
