//! How often a transaction waits for the server: by its steps, not by its rows.

use tempfile::TempDir;

use super::support::*;
use crate::Store;
use model::*;

/// How often a round trip was made to the server by the connection that writes, up to now.
async fn round_trips(store: &Store) -> u64 {
    let writer = store.0.writer.as_ref().expect("a writer");
    writer.run("count", |connection| Ok(connection.round_trips())).await.expect("counted")
}

/// How often the writer waits for the server while it does something.
pub(super) async fn waits<T>(store: &Store, work: impl Future<Output = T>) -> (T, u64) {
    let before = round_trips(store).await;
    let value = work.await;
    (value, round_trips(store).await - before)
}

/// Everything that a first cycle writes of some tokens: polls, schedules, changes, alerts and messages.
fn first_sight(round: usize, tokens: usize, events: usize) -> Commit {
    let name = |token: usize| format!("token-{round}-{token}");
    let mut commit = at(Commit::default());
    for token in (0..tokens).map(name) {
        let days = (0..events)
            .map(|day| put(&format!("k{day}"), unlock(&format!("2026-{:02}-{:02}", 4 + day / 28, 1 + day % 28), 10.0)));
        commit.polls.push(poll(Endpoint::UnlockEvents, Some(&token)));
        commit.feeds.push(schedule(&token, days.collect()));
        commit.changes.push(Change::of(ChangeKind::Added, Resource::Unlock, &token.as_str().into()));
        let alert = firing(&token, Some(&token));
        commit.notifications.push(notification(&alert, "firing", &["ops", "desk"]));
        commit.alerts.push(alert);
    }
    commit
}

/// How often a commit waits for the server, however many tokens, events, alerts and messages it has; of more than 32 tokens, once more for
/// each 32, and of very many statements, once for each thousand.
const MOST_WAITS: u64 = 12;

#[tokio::test]
async fn a_commit_waits_for_the_server_by_its_steps_and_not_by_its_records() {
    if server().is_none() {
        println!("left out on a file: there is nobody to wait for");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    // Statements are made ready by the first that needs them.
    store.commit(first_sight(0, 2, 3)).await.expect("committed");
    let (saved, few) = waits(&store, store.commit(first_sight(1, 4, 2))).await;
    assert_eq!(saved.expect("committed").deliveries, 8);
    let (saved, more) = waits(&store, store.commit(first_sight(2, 4, 40))).await;
    assert_eq!(saved.expect("committed").deliveries, 8);
    assert_eq!(more, few, "records cost no round trip");
    let (saved, many) = waits(&store, store.commit(first_sight(3, 32, 40))).await;
    assert_eq!(saved.expect("committed").deliveries, 64);
    assert_eq!(many, few, "neither do tokens");
    assert!(few <= MOST_WAITS, "{few} round trips");
}

#[tokio::test]
async fn attempts_that_are_recorded_together_wait_as_one_does() {
    if server().is_none() {
        println!("left out on a file: there is nobody to wait for");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(first_sight(0, 20, 1)).await.expect("committed");
    let due = store.due("ops".into(), now(), 100).await.expect("read");
    assert_eq!(due.len(), 20);
    let record = |delivery: &DueDelivery| tried(delivery.id, now(), DeliveryState::Delivered, None);
    let mut due = due.iter().map(record);
    store.record_attempts(due.by_ref().take(2).collect()).await.expect("recorded");
    let (recorded, one) = waits(&store, store.record_attempts(due.by_ref().take(1).collect())).await;
    recorded.expect("recorded");
    let (recorded, all) = waits(&store, store.record_attempts(due.collect())).await;
    recorded.expect("recorded");
    assert_eq!((one, all), (4, 4), "a begin, their states, what was written, the commit");
}
