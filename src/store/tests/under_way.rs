//! Statements that nobody waits for: what fails is told, and nothing is committed after it.

use std::time::Duration;

use tempfile::TempDir;

use super::round_trips::waits;
use super::support::*;
use crate::codec::{all, all_of};
use crate::error::StoreFault;
use crate::sql::Transaction;
use crate::{Store, StoreError};

const INSERT: &str = "INSERT INTO meta (key, value) VALUES (?1, ?2)";

fn insert(to: &Transaction<'_>, key: &str) -> Result<(), StoreFault> {
    Ok(to.prepare_cached(INSERT)?.execute([key, "x"])?)
}

fn keys(from: &Transaction<'_>) -> Result<Vec<String>, StoreFault> {
    all(&mut *from.prepare_cached("SELECT key FROM meta WHERE value = 'x' ORDER BY key")?, [], |row| Ok(row.get(0)?))
}

async fn kept(store: &Store) -> Vec<String> {
    store.read("look", |from| keys(from)).await.expect("read")
}

/// What the chain of an error says.
fn chain(error: &StoreError) -> String {
    model::text::error_chain(error)
}

#[tokio::test]
async fn what_fails_is_told_with_its_own_error_and_undoes_all() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    // Told by the next answer: not by what the server says to that.
    let error = store.write("write", |to| insert(to, "a").and(insert(to, "a")).and(insert(to, "b")).and(keys(to))).await;
    let error = error.expect_err("the same key twice");
    assert!(matches!(error, StoreError::Sqlite { .. }), "{error:?}");
    assert!(chain(&error).to_lowercase().contains("unique"), "{}", chain(&error));
    // Told by the end of the transaction, also where nothing is asked after it.
    let error = store.write("write", |to| insert(to, "a").and(insert(to, "a"))).await.expect_err("the same key twice");
    assert!(chain(&error).to_lowercase().contains("unique"), "{}", chain(&error));
    // Whoever looks away commits nothing.
    if server().is_some() {
        let looked_away = store.write("write", |to| {
            insert(to, "a")?;
            let _ = insert(to, "a").and(keys(to));
            insert(to, "c")
        });
        looked_away.await.expect_err("one of its statements failed");
    }
    assert_eq!(kept(&store).await, Vec::<String>::new());
    store.write("write", |to| insert(to, "a")).await.expect("the store goes on");
    assert_eq!(kept(&store).await, ["a"]);
}

#[tokio::test]
async fn a_value_that_does_not_fit_its_column_is_told_and_undoes_all() {
    if server().is_none() {
        println!("left out on a file, whose columns take everything");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let error = store.write("write", |to| {
        insert(to, "a")?;
        Ok(to.prepare_cached("UPDATE meta SET value = 'y' WHERE length(key) = CAST(?1 AS BIGINT)")?.execute(["one"])?)
    });
    let error = error.await.expect_err("a text is no number");
    assert!(chain(&error).contains("does not fit"), "{}", chain(&error));
    assert_eq!(kept(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn questions_are_answered_in_their_order_among_what_is_written() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let seen = store.write("write", |to| {
        let mut question = to.prepare_cached("SELECT key FROM meta WHERE value = 'x' ORDER BY key")?;
        let mut asked = Vec::new();
        for key in ["a", "b", "c"] {
            asked.push(question.ask([])?);
            insert(to, key)?;
        }
        // In another order than they were put.
        let answers =
            asked.into_iter().rev().map(|asked| all_of(asked.rows()?, |row| Ok(row.get::<_, String>(0)?)).map(|keys| keys.len()));
        answers.collect::<Result<Vec<_>, StoreFault>>()
    });
    assert_eq!(seen.await.expect("written"), [2, 1, 0]);
}

#[tokio::test]
async fn how_much_is_under_way_is_bounded_by_number_and_by_size() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let one_by_one = |to: &Transaction<'_>, key: i32| -> Result<(), StoreFault> {
        let sql = "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        Ok(to.prepare_cached(sql)?.execute([&key.to_string(), "x"])?)
    };
    store.write("write", move |to| one_by_one(to, -1)).await.expect("written");
    let (written, trips) = waits(&store, store.write("write", move |to| (0..5000).try_for_each(|key| one_by_one(to, key)))).await;
    written.expect("written");
    assert_eq!(kept(&store).await.len(), 5001);
    let large = "x".repeat(1 << 20);
    let (written, large_trips) = waits(
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
async fn rows_that_are_inserted_together_are_what_they_were_and_in_their_order() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let texts = [Some("plain"), None, Some("with \0 and \u{fdd0}, {braces}, \"quotes\", NULL"), Some(""), Some("NULL")];
    let write = move |to: &Transaction<'_>| -> Result<(), StoreFault> {
        for at in 0..600_i64 {
            let text = texts[usize::try_from(at).expect("small") % texts.len()];
            let (number, flag) = ((at % 3 > 0).then_some(at), (at % 2 > 0).then_some(at % 4 > 1));
            to.prepare_cached(
                "INSERT INTO token (id, name, last_updated, has_burn, listed, first_seen) VALUES (?1, ?2, ?3, ?4, 1, ?5)",
            )?
            .execute(rusqlite::params![format!("t{at}"), text, number, flag, at])?;
        }
        for at in 0..3_i64 {
            let body = (at > 0).then(|| vec![u8::try_from(at).expect("small"); 3]).unwrap_or_default();
            to.prepare_cached("INSERT INTO schedule (scope_no, body) VALUES (?1, ?2)")?.execute(rusqlite::params![at, body])?;
        }
        Ok(())
    };
    // The first makes the statements ready.
    store
        .write("write", move |to| {
            write(to).and(Ok(to.execute("DELETE FROM token", [])?)).and(Ok(to.execute("DELETE FROM schedule", [])?))
        })
        .await
        .expect("written");
    let (written, trips) = waits(&store, store.write("write", write)).await;
    written.expect("written");
    let found = store.read("look", |from| {
        all(&mut *from.prepare_cached("SELECT id, name, last_updated, has_burn, first_seen FROM token ORDER BY no")?, [], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, Option<String>>(1)?,
                row.get::<_, Option<i64>>(2)?,
                row.get::<_, Option<bool>>(3)?,
                row.get::<_, i64>(4)?,
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
    assert!(trips <= 3, "{trips} round trips: a begin, what was written, the commit");
}

#[tokio::test]
async fn a_connection_that_is_lost_with_statements_under_way_loses_all_of_them_and_says_so() {
    if server().is_none() {
        println!("left out on a file: there is no connection to lose");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    for is_asked in [false, true] {
        let lost = store.write("write", move |to| {
            insert(to, "a")?;
            to.prepare_cached("SELECT pg_terminate_backend(pg_backend_pid())")?.execute([])?;
            insert(to, "b")?;
            if is_asked { keys(to).map(drop) } else { Ok(()) }
        });
        let error = lost.await.expect_err("the connection is gone");
        assert!(error.is_lost(), "{error:?}");
        assert_eq!(kept(&store).await, Vec::<String>::new());
    }
    store.write("write", |to| insert(to, "a")).await.expect("a new connection");
    assert_eq!(kept(&store).await, ["a"]);
}

#[tokio::test]
async fn whoever_was_not_let_in_to_write_gets_in_later() {
    if server().is_none() {
        println!("left out on a file, whose one writer waits for nobody");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (held, is_held) = tokio::sync::oneshot::channel();
    // A second process that writes, and takes its time.
    let place = server_place(directory.path()).expect("a server");
    let other = Store::open_in(crate::Place::Server(place), crate::Access::Beside, now()).await.expect("opened");
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
    let error = written.expect_err("it was told to wait no longer");
    assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
    drop(go_on);
    slow.await.expect("ended").expect("committed");
    store.act("write", |to| insert(to, "b")).await.expect("written");
    assert_eq!(kept(&store).await, ["b"]);
}
