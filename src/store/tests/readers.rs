//! Readers of the daemon and of the web pages: none waits for another, and a read ends when its caller is gone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use super::support::*;
use crate::sql::{Engine, Transaction};
use crate::{Store, StoreError};
use model::*;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A gate that blocks reads until it is opened, or until a timeout.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>, Entered);

/// The number of reads that have begun.
#[derive(Clone, Default)]
struct Entered(Arc<AtomicUsize>);

impl Entered {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    async fn until(&self, reads: usize) {
        let reached = async {
            while self.0.load(Ordering::SeqCst) < reads {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, reached).await.expect("the reads begin");
    }
}

impl Gate {
    fn open(&self) {
        *self.0.0.lock().expect("not poisoned") = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        self.1.count();
        let is_open = self.0.0.lock().expect("not poisoned");
        drop(self.0.1.wait_timeout_while(is_open, WAIT_TIMEOUT, |is_open| !*is_open).expect("not poisoned"));
    }
}

/// Runs a query that takes hours.
async fn endless_read(store: &Store, entered: Entered) -> Result<i64, StoreError> {
    let read = move |from: &Transaction<'_>| {
        entered.count();
        let sql = match from.engine() {
            Engine::Sqlite => {
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000000) SELECT count(*) FROM n"
            }
            Engine::Postgres => "SELECT CAST(1 AS BIGINT) FROM (SELECT pg_sleep(3600)) AS slept",
        };
        Ok(from.prepare(sql)?.query_row([], |row| row.get(0))?)
    };
    store.read("read for hours", read).await
}

#[tokio::test]
async fn reads_of_pages_never_delay_those_of_the_daemon() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let gate = Gate::default();
    let blocked: Vec<_> = [store.for_pages(), store.for_heavy_pages()]
        .into_iter()
        .flat_map(|pages| std::iter::repeat_n(pages, 20))
        .map(|pages| {
            let gate = gate.clone();
            tokio::spawn(async move {
                let wait = move |_: &Transaction<'_>| {
                    gate.wait();
                    Ok(())
                };
                pages.read("wait", wait).await
            })
        })
        .collect();
    // At least one of each kind reads, and the others wait for it.
    gate.1.until(2).await;
    for _ in 0..10 {
        let read = tokio::time::timeout(WAIT_TIMEOUT / 2, store.pending_receivers());
        read.await.expect("the daemon does not wait for pages").expect("read");
    }
    assert!(blocked.iter().all(|read| !read.is_finished()));
    gate.open();
    for read in blocked {
        read.await.expect("ended").expect("read");
    }
    store.close().await.expect("closed");
}

#[tokio::test]
async fn light_page_does_not_wait_for_a_heavy_one() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (gate, heavy) = (Gate::default(), store.for_heavy_pages());
    let (opener, waiting) = (gate.clone(), gate);
    let blocked = tokio::spawn(async move {
        let wait = move |_: &Transaction<'_>| {
            waiting.wait();
            Ok(())
        };
        heavy.read("wait", wait).await
    });
    opener.1.until(1).await;
    let pages = store.for_pages();
    let light = tokio::time::timeout(WAIT_TIMEOUT / 2, pages.pulse());
    light.await.expect("in time").expect("read");
    assert!(!blocked.is_finished());
    opener.open();
    blocked.await.expect("ended").expect("read");
}

#[tokio::test]
async fn read_ends_when_its_caller_is_gone() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    for reader in [store.for_heavy_pages(), store.for_pages(), store.clone()] {
        // More than there are connections, so that some are dropped while they wait for one.
        let entered = Entered::default();
        let reads: Vec<_> = (0..5)
            .map(|_| {
                let (reader, entered) = (reader.clone(), entered.clone());
                tokio::spawn(async move { endless_read(&reader, entered).await })
            })
            .collect();
        entered.until(1).await;
        assert!(reads.iter().all(|read| !read.is_finished()));
        for read in reads {
            read.abort();
        }
        let next = tokio::time::timeout(WAIT_TIMEOUT, reader.pulse()).await;
        next.expect("the abandoned reads have ended").expect("the connection still works");
    }
    store.close().await.expect("closed");
}

#[tokio::test]
async fn lists_of_pages_are_cut_at_their_size_limit_and_continue() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let large = "x".repeat(40_000);
    let change = |number: usize| {
        let mut change = Change::of(ChangeKind::Resized, Resource::Unlock, &TokenId::from("arbitrum"));
        change.summary = format!("{number} {large}");
        change
    };
    let changes = (0..300).map(change).collect();
    store.commit(Commit { at: now(), changes, ..Commit::default() }).await.expect("committed");
    let filter = ChangeFilter { limit: 1000, ..ChangeFilter::default() };
    let all = store.changes_listed(filter.clone()).await.expect("read");
    assert!(all.rows.len() == 300 && !all.is_cut, "a command has no size limit");
    let pages = store.for_pages();
    let (mut rows, mut after, mut lists) = (Vec::new(), None, 0);
    loop {
        let listed = pages
            .changes_listed(ChangeFilter { position: ListPosition { after, before: None }, ..filter.clone() })
            .await
            .expect("read");
        assert!(listed.total == 300 && (!listed.is_cut || (90..150).contains(&listed.rows.len())), "{}", listed.rows.len());
        after = listed.rows.last().map(|row| row.id);
        rows.extend(listed.rows);
        lists += 1;
        if !listed.is_cut {
            break;
        }
    }
    assert_eq!((rows, lists), (all.rows, 3));
    let seen = pages.select_changes(filter, 7, |row, _| row.change.summary.starts_with('3').then_some(row.id)).await;
    assert_eq!(seen.expect("read").len(), 7);
}
