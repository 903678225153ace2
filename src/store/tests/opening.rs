use std::{fs, path::Path, time::Duration};

use rusqlite::Connection;
use tempfile::TempDir;

use super::support::*;
use crate::{Access, ErrorKind, Store, open, schema};
use model::{Resource, *};

#[tokio::test]
async fn committed_data_survives_reopening() {
    if !applies_to_files("the WAL of a file") {
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
    assert!(!path.with_extension("db-wal").exists(), "closing checkpoints the WAL");
    let version: i64 =
        Connection::open(&path).expect("opens").pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    assert_eq!(version, schema::DAEMON.version());

    let store = owned(&directory).await;
    let tokens = store.tokens(vec!["arbitrum".into()], vec![Resource::Unlock]).await.expect("read");
    assert_eq!(tokens[0].records.len(), 1);
    assert_eq!(tokens[0].token.symbol(), "ARB", "a record supplies the name of an unlisted token");
    assert!(store.integrity_check().await.is_ok());
}

#[tokio::test]
async fn newer_database_is_rejected_with_both_versions() {
    if !applies_to_files("a file of a newer version") {
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
    for access in [Access::Own, Access::Write, Access::Read] {
        let error = Store::open(opening(&path, access)).await.expect_err("refused");
        assert!(error.kind() == ErrorKind::Newer, "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("schema 99")
                && text.contains("9.8.7")
                && text.contains(env!("CARGO_PKG_VERSION"))
                && text.contains("backup"),
            "{text}"
        );
    }
    assert_eq!(fs::read(&path).expect("read"), bytes);
}

#[tokio::test]
async fn only_owner_migrates_older_database() {
    if !applies_to_files("a file of an older version") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("cliffwatch.db");
    // An empty database of schema 0: only the application id is set.
    let connection = Connection::open(&path).expect("opens");
    connection.pragma_update(None, "application_id", 0x636c_6677).expect("updated");
    connection.close().expect("closed");
    for access in [Access::Write, Access::Read] {
        let error = Store::open(opening(&path, access)).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Older, "{error:?}");
    }
    let store = owned(&directory).await;
    assert!(store.token_ids(false).await.expect("read").is_empty());
}

#[tokio::test]
async fn second_owner_is_rejected_while_first_is_open() {
    if !applies_to_files("the lock file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let path = directory.path().join("cliffwatch.db");
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    for name in [&path, &link] {
        let error = Store::open(opening(name, Access::Own)).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InUse, "{error:?}");
        assert!(error.to_string().contains(&format!("(pid {})", std::process::id())), "{error}");
    }
    store.close().await.expect("closed");
    assert_eq!(store.gauges().await.expect_err("closed").kind(), ErrorKind::Closed);
    assert_eq!(store.commit(at(Commit::default())).await.expect_err("closed").kind(), ErrorKind::Closed);
    store.close().await.expect("closing twice is not an error");
    owned(&directory).await.close().await.expect("the lock was released");
}

#[tokio::test]
async fn dropping_the_last_handle_releases_the_database() {
    if !applies_to_files("the lock file") {
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
async fn command_reads_open_and_closed_databases() {
    if !applies_to_files("reading a closed file") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("cliffwatch.db");
    for access in [Access::Read, Access::Write] {
        assert_eq!(Store::open(opening(&path, access)).await.expect_err("missing").kind(), ErrorKind::Missing);
    }
    assert!(!path.exists(), "reading does not create the file");
    let store = owned(&directory).await;
    notify(&store, "a", &["ops"]).await;
    let reader = Store::open(opening(&path, Access::Read)).await.expect("opens next to the owner");
    assert_eq!(reader.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 1);
    notify(&store, "b", &["ops"]).await;
    assert_eq!(reader.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 2);
    assert_eq!(reader.commit(at(Commit::default())).await.expect_err("read-only").kind(), ErrorKind::ReadOnly);
    reader.close().await.expect("closed");
    store.close().await.expect("closed");
    let closed = Store::open(opening(&path, Access::Read)).await.expect("opens alone");
    assert_eq!(closed.outbox(OutboxFilter { limit: 10, ..OutboxFilter::default() }).await.expect("read").len(), 2);
}

#[tokio::test]
async fn foreign_file_is_rejected_and_unchanged() {
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
        for access in [Access::Own, Access::Write, Access::Read] {
            let error = Store::open(opening(path, access)).await.expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Foreign, "{error:?}");
        }
        assert_eq!(fs::read(path).expect("read"), bytes);
    }
}

#[tokio::test]
async fn missing_directory_is_reported_with_its_path() {
    let error = Store::open(opening(Path::new("/nowhere/at/all/x.db"), Access::Own)).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Io, "{error:?}");
    assert!(error.to_string().contains("/nowhere/at/all/x.db"), "{error}");
}

#[test]
fn writer_syncs_commits_and_enforces_foreign_keys() {
    let directory = TempDir::new().expect("a directory");
    let opened = open::open(&opening(&directory.path().join("cliffwatch.db"), Access::Own)).expect("opens");
    let writer = opened.writer.expect("a writer");
    let writer = writer.sqlite();
    for (pragma, wanted) in [("synchronous", 2_i64), ("foreign_keys", 1), ("trusted_schema", 0), ("busy_timeout", 5000)] {
        let got: i64 = writer.pragma_query_value(None, pragma, |row| row.get(0)).expect("a number");
        assert_eq!(got, wanted, "{pragma}");
    }
    let journal: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a word");
    assert_eq!(journal, "wal");
    for pool in opened.readers.each_pool() {
        let written = pool.with(|reader| reader.sqlite().execute("DELETE FROM token", [])).expect("a reader");
        assert!(written.is_err(), "a reader cannot write");
    }
    assert!(writer.execute("INSERT INTO meta (key, value) VALUES ('x', x'00')", []).is_err(), "tables are STRICT");
}
