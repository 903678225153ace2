//! Pipelined statements: a failure is reported, and nothing is committed after it.

use std::time::Duration;

use rusqlite::params;
use tempfile::TempDir;

use super::round_trips::count_round_trips;
use super::support::*;
use crate::codec::{all, all_of};
use crate::error::StoreFault;
use crate::sql::{Transaction, row_of};
use crate::{ErrorKind, Store, StoreError};

const INSERT: &str = "INSERT INTO meta (key, value) VALUES (?1, ?2)";

fn insert(to: &Transaction<'_>, key: &str) -> Result<(), StoreFault> {
    Ok(to.prepare_cached(INSERT)?.execute([key, "x"])?)
}

fn keys(from: &Transaction<'_>) -> Result<Vec<String>, StoreFault> {
    all(&mut *from.prepare_cached("SELECT key FROM meta WHERE value = 'x' ORDER BY key")?, [], |row| Ok(row.get(0)?))
}

async fn stored_keys(store: &Store) -> Vec<String> {
    store.read("look", keys).await.expect("read")
}

fn chain(error: &StoreError) -> String {
    model::text::error_chain(error)
}

#[tokio::test]
async fn failed_statement_is_reported_and_rolls_back() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    // The next response reports the original error, not its consequence.
    let error = store.write("write", |to| insert(to, "a").and(insert(to, "a")).and(insert(to, "b")).and(keys(to))).await;
    let error = error.expect_err("the same key twice");
    assert_eq!(error.kind(), ErrorKind::Other, "{error:?}");
    assert!(chain(&error).to_lowercase().contains("unique"), "{}", chain(&error));
    // The end of the transaction reports it if no query follows.
    let error = store.write("write", |to| insert(to, "a").and(insert(to, "a"))).await.expect_err("the same key twice");
    assert!(chain(&error).to_lowercase().contains("unique"), "{}", chain(&error));
    // A transaction that ignores the error is not committed.
    if server().is_some() {
        let ignored_error = store.write("write", |to| {
            insert(to, "a")?;
            let _ = insert(to, "a").and(keys(to));
            insert(to, "c")
        });
        ignored_error.await.expect_err("one of its statements failed");
    }
    assert_eq!(stored_keys(&store).await, Vec::<String>::new());
    store.write("write", |to| insert(to, "a")).await.expect("the store still works");
    assert_eq!(stored_keys(&store).await, ["a"]);
}

#[tokio::test]
async fn parameter_of_wrong_type_is_reported_and_rolls_back() {
    if server().is_none() {
        println!("skipped without PostgreSQL: column types");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let error = store.write("write", |to| {
        insert(to, "a")?;
        Ok(to.prepare_cached("UPDATE meta SET value = 'y' WHERE length(key) = CAST(?1 AS BIGINT)")?.execute(["one"])?)
    });
    let error = error.await.expect_err("text is not a number");
    assert!(chain(&error).contains("does not fit"), "{}", chain(&error));
    assert_eq!(stored_keys(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn pending_queries_see_the_state_when_they_were_sent() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let seen = store.write("write", |to| {
        let mut query = to.prepare_cached("SELECT key FROM meta WHERE value = 'x' ORDER BY key")?;
        let mut queried = Vec::new();
        for key in ["a", "b", "c"] {
            queried.push(query.send_query([])?);
            insert(to, key)?;
        }
        // Read in reverse order.
        let responses = queried
            .into_iter()
            .rev()
            .map(|queried| all_of(queried.rows()?, |row| Ok(row.get::<String>(0)?)).map(|keys| keys.len()));
        responses.collect::<Result<Vec<_>, StoreFault>>()
    });
    assert_eq!(seen.await.expect("written"), [2, 1, 0]);
}

#[tokio::test]
async fn outstanding_statements_are_bounded_by_number_and_size() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let one_by_one = |to: &Transaction<'_>, key: i32| -> Result<(), StoreFault> {
        let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        Ok(to.prepare_cached(sql)?.execute([&key.to_string(), "x"])?)
    };
    store.write("write", move |to| one_by_one(to, -1)).await.expect("written");
    let (written, trips) =
        count_round_trips(&store, store.write("write", move |to| (0..5000).try_for_each(|key| one_by_one(to, key)))).await;
    written.expect("written");
    assert_eq!(stored_keys(&store).await.len(), 5001);
    let large = "x".repeat(1 << 20);
    let (written, large_trips) = count_round_trips(
        &store,
        store.write("write", move |to| {
            (0..20).try_for_each(|key| Ok(to.prepare_cached(INSERT)?.execute([&format!("large {key}"), &large])?))
        }),
    )
    .await;
    written.expect("written");
    if server().is_some() {
        assert!((6..20).contains(&trips), "{trips} round trips for 5,000 rows");
        assert!((3..20).contains(&large_trips), "{large_trips} round trips for 20 MB");
    }
}

#[tokio::test]
async fn batch_insert_preserves_values_and_order() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let texts = [Some("plain"), None, Some("with \0 and \u{fdd0}, {braces}, \"quotes\", NULL"), Some(""), Some("NULL")];
    let write = move |to: &Transaction<'_>| -> Result<(), StoreFault> {
        let mut tokens = Vec::new();
        for at in 0..600_i64 {
            let text = texts[usize::try_from(at).expect("small") % texts.len()];
            let (number, flag) = ((at % 3 > 0).then_some(at), (at % 2 > 0).then_some(at % 4 > 1));
            tokens.push(row_of(params![format!("t{at}"), text, number, flag, 1, at])?);
        }
        to.insert_many("token", &["id", "name", "last_updated", "has_burn", "listed", "first_seen"], tokens)?;
        let body = |at: i64| vec![u8::try_from(at).expect("small"); if at > 0 { 3 } else { 0 }];
        let schedules = (0..3_i64).map(|at| row_of(params![at, body(at)])).collect::<Result<_, _>>()?;
        to.insert_many("schedule", &["scope_no", "body"], schedules)?;
        Ok(to.insert_many("schedule", &["scope_no", "body"], Vec::new())?)
    };
    // The first run prepares the statements.
    store
        .write("write", move |to| {
            write(to).and(Ok(to.execute("DELETE FROM token", [])?)).and(Ok(to.execute("DELETE FROM schedule", [])?))
        })
        .await
        .expect("written");
    let (written, trips) = count_round_trips(&store, store.write("write", write)).await;
    written.expect("written");
    let found = store.read("look", |from| {
        all(&mut *from.prepare_cached("SELECT id, name, last_updated, has_burn, first_seen FROM token ORDER BY no")?, [], |row| {
            Ok((
                row.get::<String>(0)?,
                row.get::<Option<String>>(1)?,
                row.get::<Option<i64>>(2)?,
                row.get::<Option<bool>>(3)?,
                row.get::<i64>(4)?,
            ))
        })
    });
    let found = found.await.expect("read");
    let wanted = (0..600_i64).map(|at| {
        let text = texts[usize::try_from(at).expect("small") % texts.len()].map(str::to_owned);
        (format!("t{at}"), text, (at % 3 > 0).then_some(at), (at % 2 > 0).then_some(at % 4 > 1), at)
    });
    assert_eq!(found, wanted.collect::<Vec<_>>());
    let bodies: Vec<Vec<u8>> = rows(&store, "SELECT body FROM schedule ORDER BY scope_no", |row| row.get(0).expect("bytes"));
    assert_eq!(bodies, [vec![], vec![1; 3], vec![2; 3]]);
    assert!(trips <= 3, "{trips} round trips: begin, writes, commit");
}

#[tokio::test]
async fn lost_connection_discards_pipelined_statements() {
    if server().is_none() {
        println!("skipped without PostgreSQL: connections");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    for is_requested in [false, true] {
        let lost = store.write("write", move |to| {
            insert(to, "a")?;
            to.prepare_cached("SELECT pg_terminate_backend(pg_backend_pid())")?.execute([])?;
            insert(to, "b")?;
            if is_requested { keys(to).map(drop) } else { Ok(()) }
        });
        let error = lost.await.expect_err("the connection was closed");
        assert_eq!(error.kind(), ErrorKind::ServerLost, "{error:?}");
        assert_eq!(stored_keys(&store).await, Vec::<String>::new());
    }
    store.write("write", |to| insert(to, "a")).await.expect("a new connection");
    assert_eq!(stored_keys(&store).await, ["a"]);
}

#[tokio::test]
async fn cancelled_lock_wait_does_not_break_the_writer() {
    if server().is_none() {
        println!("skipped without PostgreSQL: the write lock");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (held, is_held) = tokio::sync::oneshot::channel();
    // A second process holds the write lock.
    let place = server_place(directory.path()).expect("a server");
    let other = Store::open_in(crate::DatabaseLocation::Server(place), crate::Access::Write, now()).await.expect("opened");
    let slow = tokio::spawn(async move {
        let hold = other.act("hold the lock", move |_| {
            let _ = held.send(());
            let _ = wait.recv_timeout(Duration::from_secs(6));
            Ok(())
        });
        hold.await
    });
    is_held.await.expect("it writes");
    let waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'advisory'
         AND query LIKE '%' || 'hashtext(current_schema())' || '%' AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory'
         AND NOT granted AND objid::bigint = hashtext(current_schema())::bigint & 4294967295)";
    let (written, ()) = tokio::join!(store.act("write", |to| insert(to, "a")), async {
        while rows(&store, waiting, |_| ()).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let error = written.expect_err("the wait was cancelled");
    assert_eq!(error.kind(), ErrorKind::Busy, "{error:?}");
    drop(go_on);
    slow.await.expect("ended").expect("committed");
    store.act("write", |to| insert(to, "b")).await.expect("written");
    assert_eq!(stored_keys(&store).await, ["b"]);
}
