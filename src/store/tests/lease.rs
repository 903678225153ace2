use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::support::*;
use crate::{Access, DatabaseLocation, ErrorKind, LeaseStatus, Store};
use model::*;

/// Opens two instances on one database, or returns `None` without a server.
async fn two(directory: &TempDir) -> Option<(Store, Store)> {
    let Some(place) = server_place(directory.path()) else {
        println!("skipped without PostgreSQL: the lease of a database");
        return None;
    };
    let open = || Store::open_in(DatabaseLocation::Server(place.clone()), Access::Own, now());
    Some((open().await.expect("opens"), open().await.expect("opens")))
}

async fn is_active(store: &Store, name: &str) -> bool {
    store.maintain_lease(name).await.expect("maintained") == LeaseStatus::Active
}

/// Simulates a change of the server's clock: moves the stored renewal time the other way.
fn clock_moves_by(store: &Store, hours: i64) {
    change(store, &format!("UPDATE lease SET renewed_at = renewed_at - interval '{hours} hours'"));
}

#[tokio::test]
async fn standby_takes_over_after_server_clock_was_set_back() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    assert!(!is_active(&second, "b:2").await);
    // The first instance does not renew anymore.
    clock_moves_by(&second, -1);
    let begun = Instant::now();
    while !is_active(&second, "b:2").await {
        assert!(begun.elapsed() < Duration::from_secs(15), "no instance takes over");
        tokio::time::sleep(lease::CHECK_INTERVAL).await;
    }
    assert!(begun.elapsed() >= lease::TERM, "the first instance may still be active: {:?}", begun.elapsed());
    let late = first.commit(at(Commit::default())).await.expect_err("the lease is lost");
    assert_eq!(late.kind(), ErrorKind::NotActive, "{late}");
    second.commit(at(Commit::default())).await.expect("the second instance is active");
}

#[tokio::test]
async fn renewed_lease_survives_jumps_of_server_clock() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    assert!(!is_active(&second, "b:2").await);
    for hours in [0, 1, -2, 3] {
        assert!(is_active(&first, "a:1").await, "{hours}");
        assert!(!is_active(&second, "b:2").await, "{hours}");
        clock_moves_by(&second, hours);
        assert!(!is_active(&second, "b:2").await, "{hours}: it was just renewed");
        first.commit(at(Commit::default())).await.expect("the first instance is active");
    }
    first.close().await.expect("closed");
    assert!(is_active(&second, "b:2").await, "it was released");
}

#[tokio::test]
async fn instance_without_lease_gets_no_due_deliveries() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    assert_eq!(notify(&first, "a", &["ops"]).await.len(), 1);
    // Another instance takes the lease, and the first does not know yet.
    change(&second, "UPDATE lease SET number = number + 1, holder = 'c:3', renewed_at = clock_timestamp()");
    assert!(first.is_active());
    let late = first.due("ops".into(), now(), 9).await.expect_err("another instance sends it");
    assert_eq!(late.kind(), ErrorKind::NotActive, "{late}");
    assert!(!first.is_active(), "the failed read reports the loss");
    assert_eq!(second.due("ops".into(), now(), 9).await.expect_err("it is a standby").kind(), ErrorKind::NotActive);
}

#[tokio::test]
async fn instance_of_an_older_version_is_not_active_once_a_newer_one_migrated() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    // As a newer program would leave it.
    change(&second, "UPDATE meta SET value = value::int + 90 WHERE key = 'schema'");
    for (store, name) in [(&first, "a:1"), (&second, "b:2")] {
        let rejected = store.maintain_lease(name).await.expect_err("the schema is newer");
        assert_eq!(rejected.kind(), ErrorKind::Newer, "{rejected}");
        assert!(rejected.to_string().contains("run that version or a newer one"), "{rejected}");
        assert!(!store.is_active());
        assert_eq!(store.commit(at(Commit::default())).await.expect_err("not active").kind(), ErrorKind::NotActive);
    }
    change(&second, "UPDATE meta SET value = value::int - 90 WHERE key = 'schema'");
    // The old lease of the first instance must expire.
    let begun = Instant::now();
    while !is_active(&second, "b:2").await {
        assert!(begun.elapsed() < Duration::from_secs(15), "no instance takes over");
        tokio::time::sleep(lease::CHECK_INTERVAL).await;
    }
}

#[tokio::test]
async fn migration_fences_out_the_active_instance() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, _)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    // The database as it was before the last migration. Then a newer program starts.
    for sql in ["ALTER TABLE alert DROP COLUMN labels", "ALTER TABLE notification DROP COLUMN labels"] {
        change(&first, sql);
    }
    change(&first, "UPDATE meta SET value = '8' WHERE key = 'schema'");
    let place = server_place(directory.path()).expect("a server");
    let newer = Store::open_in(DatabaseLocation::Server(place), Access::Own, now()).await.expect("migrates");
    assert!(first.is_active(), "it does not know yet");
    assert_eq!(first.commit(at(Commit::default())).await.expect_err("fenced out").kind(), ErrorKind::NotActive);
    assert!(is_active(&newer, "c:3").await, "the lease is free");
}

#[tokio::test]
async fn released_lease_is_not_renewed() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    first.close().await.expect("closed");
    // For example, by a delayed task.
    assert!(!is_active(&first, "a:1").await);
    assert!(is_active(&second, "b:2").await, "the lease is free");
}
