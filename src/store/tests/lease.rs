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
async fn released_lease_is_not_renewed() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    first.close().await.expect("closed");
    // For example, by a delayed task.
    assert!(!is_active(&first, "a:1").await);
    assert!(is_active(&second, "b:2").await, "the lease is free");
}
