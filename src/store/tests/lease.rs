//! The lease, and the clock of the server by which it is not to be believed alone.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::support::*;
use crate::{Access, Place, Standing, Store};
use model::*;

/// Two instances on one database; none without a server.
async fn two(directory: &TempDir) -> Option<(Store, Store)> {
    let Some(place) = server_place(directory.path()) else {
        println!("left out: the lease of a database on PostgreSQL");
        return None;
    };
    let open = || Store::open_in(Place::Server(place.clone()), Access::Own, now());
    Some((open().await.expect("opens"), open().await.expect("opens")))
}

async fn is_active(store: &Store, name: &str) -> bool {
    store.keep_lease(name).await.expect("kept") == Standing::Active
}

/// Moves the clock of the server, as the lease sees it: what was written then lies as far away.
fn clock_moves_by(store: &Store, hours: i64) {
    change(store, &format!("UPDATE lease SET renewed_at = renewed_at - interval '{hours} hours'"));
}

#[tokio::test]
async fn another_takes_over_though_the_clock_of_the_server_was_set_back() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    assert!(!is_active(&second, "b:2").await);
    // It is the last that anybody hears of the first.
    clock_moves_by(&second, -1);
    let begun = Instant::now();
    while !is_active(&second, "b:2").await {
        assert!(begun.elapsed() < Duration::from_secs(15), "nobody takes over");
        tokio::time::sleep(lease::LOOK).await;
    }
    assert!(begun.elapsed() >= lease::TERM, "the first may still be at work: {:?}", begun.elapsed());
    let late = first.commit(at(Commit::default())).await.expect_err("it has lost the lease");
    assert!(late.is_not_active(), "{late}");
    second.commit(at(Commit::default())).await.expect("it is the active one");
}

#[tokio::test]
async fn nobody_takes_over_from_one_that_renews_though_the_clock_of_the_server_jumps() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    assert!(!is_active(&second, "b:2").await);
    for hours in [0, 1, -2, 3] {
        assert!(is_active(&first, "a:1").await, "{hours}");
        assert!(!is_active(&second, "b:2").await, "{hours}");
        clock_moves_by(&second, hours);
        assert!(!is_active(&second, "b:2").await, "{hours}: it was renewed just now");
        first.commit(at(Commit::default())).await.expect("it is the active one");
    }
    first.close().await.expect("closed");
    assert!(is_active(&second, "b:2").await, "it was given back");
}

#[tokio::test]
async fn an_instance_that_lost_the_lease_is_given_nothing_to_send() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    assert_eq!(tell(&first, "a", &["ops"]).await.len(), 1);
    // Another has it, which the first has not heard yet.
    change(&second, "UPDATE lease SET number = number + 1, holder = 'c:3', renewed_at = clock_timestamp()");
    assert!(first.is_active());
    let late = first.due("ops".into(), now(), 9).await.expect_err("another sends it");
    assert!(late.is_not_active(), "{late}");
    assert!(!first.is_active(), "now it knows");
    assert!(second.due("ops".into(), now(), 9).await.expect_err("it stands by").is_not_active());
}

#[tokio::test]
async fn whoever_gave_the_lease_back_takes_it_no_more_though_it_is_asked_to_keep_it_once_again() {
    let directory = TempDir::new().expect("a directory");
    let Some((first, second)) = two(&directory).await else { return };
    assert!(is_active(&first, "a:1").await);
    first.close().await.expect("closed");
    // Such as by a task that slept meanwhile.
    assert!(!is_active(&first, "a:1").await);
    assert!(is_active(&second, "b:2").await, "it is there to be taken");
}
