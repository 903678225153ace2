use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use crate::Store;
use model::*;

fn request(since: Timestamp, until: Timestamp) -> ReplayRequest {
    ReplayRequest { receiver: "ops".into(), since, until, includes_recent: false }
}

/// Selects everything that has ended and was not replayed, as the engine does.
fn ended(state: &ReplayState) -> ReplayPlan {
    let is_ended = |candidate: &&ReplayCandidate| {
        candidate.replayed_at.is_none() && matches!(candidate.state, DeliveryState::Delivered | DeliveryState::Dead)
    };
    let deliveries: Vec<DeliveryId> = state.candidates.iter().filter(is_ended).map(|candidate| candidate.id).collect();
    let pending = (state.candidates.len() - deliveries.len()) as u64;
    ReplayPlan { deliveries, pending, ..ReplayPlan::default() }
}

async fn delivered(store: &Store, subject: &str, at: Timestamp) -> DueDelivery {
    let delivery = notify(store, subject, &["ops"]).await.remove(0);
    store.record_attempts(vec![tried(delivery.id, at, DeliveryState::Delivered, None)]).await.expect("recorded");
    delivery
}

#[tokio::test]
async fn delivered_message_is_due_again_under_its_id() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let first = delivered(&store, "a", now() + minutes(1)).await;
    let later = now() + minutes(60);
    let range = request(now(), later);
    let preview = store.preview_replay(range.clone(), ended).await.expect("read");
    assert_eq!(
        (preview.deliveries, store.due("ops".into(), later, 9).await.expect("read").len()),
        (1, 0),
        "a preview sends nothing"
    );
    let result = store.replay(range.clone(), ended, later).await.expect("replayed");
    assert_eq!(result, preview);

    let again = store.due("ops".into(), later, 9).await.expect("read").remove(0);
    assert_eq!((again.id, &again.webhook_id, &again.notifications), (first.id, &first.webhook_id, &first.notifications));
    assert_eq!((again.tries, again.attempts, again.due_at), (0, 1, later));
    let replay = Replay { requested_at: later, first_delivered_at: Some(now() + minutes(1)) };
    assert_eq!(again.replay, Some(replay));
    let statuses = store.receiver_statuses(vec![first.notifications[0].alert.clone()]).await.expect("read");
    assert!(statuses.values().flatten().all(|status| status.was_notified), "the receiver was notified before: {statuses:?}");

    store.record_attempts(vec![tried(first.id, later, DeliveryState::Dead, None)]).await.expect("recorded");
    store
        .replay(
            range,
            |state| ReplayPlan { deliveries: vec![state.candidates[0].id], ..ReplayPlan::default() },
            later + minutes(1),
        )
        .await
        .expect("replayed");
    let row = store.outbox_one(first.id).await.expect("read").expect("there").row;
    let replay = Replay { requested_at: later + minutes(1), ..replay };
    assert_eq!((row.state, row.replay), (DeliveryState::Due, Some(replay)), "the first delivery stays known");
}

#[tokio::test]
async fn requests_at_the_same_time_send_each_message_once() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    for subject in ["a", "b", "c"] {
        delivered(&store, subject, now()).await;
    }
    let range = request(now(), now() + minutes(1));
    let both = tokio::join!(store.replay(range.clone(), ended, now()), store.replay(range, ended, now()));
    let (first, second) = (both.0.expect("replayed"), both.1.expect("replayed"));
    assert_eq!(first.deliveries + second.deliveries, 3, "{first:?} {second:?}");
    assert_eq!(first.pending + second.pending, 3);
    assert_eq!(count(&store, "event_log WHERE type = 'replay.requested'"), 1);
}

#[tokio::test]
async fn replays_come_after_everything_else() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let old = delivered(&store, "old", now()).await;
    store.replay(request(now(), now() + minutes(1)), ended, now() + minutes(1)).await.expect("replayed");
    let new = notify(&store, "new", &["ops"]).await;
    let due = store.due("ops".into(), now() + minutes(2), 9).await.expect("read");
    assert_eq!(due.iter().map(|delivery| delivery.id).collect::<Vec<_>>(), [new[0].id, old.id]);
    assert_eq!(store.due("ops".into(), now() + minutes(2), 1).await.expect("read")[0].id, new[0].id);
}

#[tokio::test]
async fn range_and_receiver_limit_a_replay_and_tests_are_left_out() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    delivered(&store, "a", now()).await;
    notify(&store, "b", &["desk"]).await;
    let mut test = notification(&firing("t", None), "test", &["ops"]);
    test.kind = NotificationKind::Test;
    store.enqueue(test, now()).await.expect("queued");
    let candidates = async |since: Timestamp, until: Timestamp| {
        let all = |state: &ReplayState| ReplayPlan { pending: state.candidates.len() as u64, ..ReplayPlan::default() };
        store.preview_replay(request(since, until), all).await.expect("read").pending
    };
    assert_eq!(candidates(now(), now() + minutes(1)).await, 1);
    assert_eq!(candidates(now() + TimeDelta::milliseconds(1), now() + minutes(1)).await, 0);
    assert_eq!(candidates(now() - minutes(1), now()).await, 0, "the end is exclusive");
}

#[tokio::test]
async fn events_name_the_replay_and_its_deliveries() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let delivery = delivered(&store, "a", now()).await;
    let later = now() + minutes(5);
    store.replay(request(now(), later), ended, later).await.expect("replayed");
    store.record_attempts(vec![tried(delivery.id, later, DeliveryState::Delivered, None)]).await.expect("recorded");
    let filter = EventLogFilter {
        kinds: vec![EventType::ReplayRequested, EventType::DeliveryDelivered],
        limit: 9,
        ..EventLogFilter::default()
    };
    let events = store.events(filter).await.expect("read").events;
    let bodies: Vec<serde_json::Value> = events.iter().map(|event| serde_json::to_value(&event.body).expect("JSON")).collect();
    assert_eq!(bodies[0].get("replay"), None, "{bodies:#?}");
    assert_eq!(
        bodies[1],
        serde_json::json!({
            "receiver": "ops", "since": "2026-03-09T00:00:00Z", "until": "2026-03-09T00:05:00Z", "deliveries": 1
        })
    );
    assert_eq!(
        bodies[2]["replay"],
        serde_json::json!({"requestedAt": "2026-03-09T00:05:00Z", "firstDeliveredAt": "2026-03-09T00:00:00Z"})
    );
}

#[tokio::test]
async fn deleted_messages_are_counted() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let alert = Alert { state: AlertState::Event, ..firing("a", Some("arbitrum")) };
    let notices = vec![notification(&alert, "one", &["ops", "desk"]), notification(&alert, "two", &["ops"])];
    let commit = Commit { alerts: vec![alert.clone()], notifications: notices, ..Commit::default() };
    store.commit(at(commit)).await.expect("committed");
    for receiver in ["ops", "desk"] {
        for delivery in store.due(receiver.into(), now(), 9).await.expect("read") {
            store.record_attempts(vec![tried(delivery.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
        }
    }
    // The second one of `ops` waited for the first.
    for delivery in store.due("ops".into(), now(), 9).await.expect("read") {
        store.record_attempts(vec![tried(delivery.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    }
    let days = |days: i64| TimeDelta::days(days);
    let retention = std::time::Duration::from_secs(30 * 86_400);
    store.prune(now() + days(31), retention, retention).await.expect("pruned");
    assert_eq!(count(&store, "delivery"), 0);
    let deleted = async |since: Timestamp, until: Timestamp| {
        store.preview_replay(request(since, until), ended).await.expect("read").deleted
    };
    assert_eq!(deleted(now(), now() + days(31)).await, 2);
    assert_eq!(deleted(now() + minutes(30), now() + days(31)).await, 2, "hours are counted as a whole");
    assert_eq!(deleted(now() + minutes(60), now() + days(31)).await, 0);
    assert_eq!(deleted(now() - days(1), now()).await, 0, "the end is exclusive");
    store.prune(now() + days(31 + 367), retention, retention).await.expect("pruned");
    assert_eq!(deleted(now(), now() + days(31)).await, 0, "counts are kept for a year");
}
