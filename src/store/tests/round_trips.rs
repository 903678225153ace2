//! Round trips to the server: their number depends on the steps of a transaction, not on its rows.

use tempfile::TempDir;

use super::support::*;
use crate::Store;
use model::*;

/// Returns the total round trips of the writer.
async fn round_trips(store: &Store) -> u64 {
    let writer = store.handle.writer.as_ref().expect("a writer");
    writer.run("count", |connection| Ok(connection.round_trips())).await.expect("counted")
}

/// Returns the round trips of the writer during `work`.
pub(super) async fn count_round_trips<T>(store: &Store, work: impl Future<Output = T>) -> (T, u64) {
    let before = round_trips(store).await;
    let value = work.await;
    (value, round_trips(store).await - before)
}

/// The commit of a first cycle: polls, schedules, changes, alerts, and notifications.
fn first_cycle(round: usize, tokens: usize, events: usize) -> Commit {
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

/// The maximum number of round trips of a commit. Each further 32 tokens add one, and so does each further thousand statements.
const MAX_ROUND_TRIPS: u64 = 12;

#[tokio::test]
async fn commit_round_trips_do_not_depend_on_record_count() {
    if server().is_none() {
        println!("skipped without PostgreSQL: round trips");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    // The first commit prepares the statements.
    store.commit(first_cycle(0, 2, 3)).await.expect("committed");
    let (saved, few) = count_round_trips(&store, store.commit(first_cycle(1, 4, 2))).await;
    assert_eq!(saved.expect("committed").deliveries, 8);
    let (saved, more) = count_round_trips(&store, store.commit(first_cycle(2, 4, 40))).await;
    assert_eq!(saved.expect("committed").deliveries, 8);
    assert_eq!(more, few, "records cost no round trip");
    let (saved, many) = count_round_trips(&store, store.commit(first_cycle(3, 32, 40))).await;
    assert_eq!(saved.expect("committed").deliveries, 64);
    assert_eq!(many, few, "neither do tokens");
    assert!(few <= MAX_ROUND_TRIPS, "{few} round trips");
}

#[tokio::test]
async fn record_lookups_of_a_feed_are_batched() {
    if server().is_none() {
        println!("skipped without PostgreSQL: round trips");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let burns = |count: usize, amount: f64| {
        let burn = |at: usize| {
            let day = format!("2026-01-{:02}", 1 + at % 28);
            Record::Burn(Box::new(read(serde_json::json!({"burnDate": day, "amount": amount, "burnType": null}))))
        };
        let mut update = schedule("arbitrum", (0..count).map(|at| put(&format!("b{at}"), burn(at))).collect());
        update.id = FeedId::of(Endpoint::Burn, &"arbitrum".into());
        // A duplicate key in one response: the last record wins.
        update.put.push(put("b0", Record::Burn(Box::new(read(serde_json::json!({"burnDate": "2026-01-01", "amount": 7.0}))))));
        at(Commit { feeds: vec![update], ..Commit::default() })
    };
    for amount in [1.0, 2.0] {
        store.commit(burns(3, amount)).await.expect("committed");
    }
    let (written, few) = count_round_trips(&store, store.commit(burns(8, 3.0))).await;
    written.expect("committed");
    let (written, more) = count_round_trips(&store, store.commit(burns(28, 4.0))).await;
    written.expect("committed");
    assert!(more <= few && few <= 10, "{few} round trips for 8 records, {more} for 28");
    let bodies = rows(&store, "SELECT key, body FROM record ORDER BY no", |row| {
        (row.get::<String>(0).expect("a key"), row.get::<String>(1).expect("a body"))
    });
    assert_eq!(bodies.len(), 28);
    let amount = |body: &str| body.contains("\"amount\":7.0");
    assert!(bodies.iter().all(|(key, body)| amount(body) == (key == "b0")), "{bodies:?}");
}

#[tokio::test]
async fn batch_of_attempts_costs_as_many_round_trips_as_one() {
    if server().is_none() {
        println!("skipped without PostgreSQL: round trips");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.commit(first_cycle(0, 20, 1)).await.expect("committed");
    let due = store.due("ops".into(), now(), 100).await.expect("read");
    assert_eq!(due.len(), 20);
    let record = |delivery: &DueDelivery| tried(delivery.id, now(), DeliveryState::Delivered, None);
    let mut due = due.iter().map(record);
    store.record_attempts(due.by_ref().take(2).collect()).await.expect("recorded");
    let (recorded, one) = count_round_trips(&store, store.record_attempts(due.by_ref().take(1).collect())).await;
    recorded.expect("recorded");
    let (recorded, all) = count_round_trips(&store, store.record_attempts(due.collect())).await;
    recorded.expect("recorded");
    assert_eq!((one, all), (4, 4), "begin, states, writes, commit");
}
