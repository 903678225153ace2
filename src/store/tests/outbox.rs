use chrono::TimeDelta;
use tempfile::TempDir;

use super::support::*;
use model::*;

#[tokio::test]
async fn due_deliveries_are_ordered_by_next_attempt() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let mut ids = Vec::new();
    for subject in ["a", "b", "c"] {
        ids.push(notify(&store, subject, &["ops"]).await.remove(0).id);
    }
    notify(&store, "d", &["desk"]).await;
    let retry_at = now() + minutes(5);
    let records = vec![
        tried(ids[0], now(), DeliveryState::Retrying, Some(retry_at)),
        tried(ids[2], now(), DeliveryState::Retrying, Some(now() - minutes(1))),
    ];
    store.record_attempts(records).await.expect("recorded");
    let due = async |at: Timestamp, limit: u32| {
        let due = store.due("ops".into(), at, limit).await.expect("read");
        due.iter().map(|delivery| delivery.id).collect::<Vec<_>>()
    };
    assert_eq!(due(now(), 9).await, [ids[2], ids[1]]);
    assert_eq!(due(now(), 1).await, [ids[2]]);
    assert_eq!(due(retry_at - TimeDelta::milliseconds(1), 9).await.len(), 2);
    assert_eq!(due(retry_at, 9).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(store.next_due_at("ops".into()).await.expect("read"), Some(now() - minutes(1)));
    assert_eq!(store.next_due_at("unknown".into()).await.expect("read"), None);
}

#[tokio::test]
async fn backlog_does_not_delay_critical_or_new_notifications() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.await_dispatch();
    let notify = async |subject: &str, severity: &str| {
        let mut notice = notification(&firing(subject, Some("arbitrum")), "firing", &["ops"]);
        notice.body.labels.insert("severity".into(), severity.into());
        store.commit(at(Commit { notifications: vec![notice], ..Commit::default() })).await.expect("committed");
    };
    notify("severe", "critical").await;
    let notices = "WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 60000)
        SELECT 'no_x' || n, 'al_x' || n, 'alert.firing', 0, '[]', '{}' FROM many";
    let many = "WITH RECURSIVE many(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 60000)
        SELECT 'no_x' || n, 'ops', 'al_x' || n, 'alert.firing', 0, '{}', state, 0, nullif(state, 'waiting') FROM many, (SELECT 'STATE' AS state) s";
    for state in ["waiting", "silenced"] {
        let many = many.replace("no_x", &format!("no_{state}"));
        change(
            &store,
            &format!(
                "INSERT INTO notification (id, alert, kind, at, receivers, body) {}",
                notices.replace("no_x", &format!("no_{state}"))
            ),
        );
        let into =
            "INSERT INTO pending_notification (notification, receiver, alert, kind, is_end, labels, state, since, suppressed_by)";
        change(&store, &format!("{into} {}", many.replace("STATE", state)));
    }
    notify("new", "info").await;
    let found = store.pending(
        |state| {
            let severities: Vec<Severity> = state.waiting.iter().map(|row| row.precedence.severity).collect();
            let last = state.waiting.last().map(|row| row.notice.clone());
            (state.waiting.len(), severities.first().copied(), last, state.is_cut, state.suppressed.len())
        },
        now(),
    );
    let (count, first, last, is_cut, suppressed) = found.await.expect("read").expect("pending notifications");
    assert!((25_000..=50_000).contains(&count) && is_cut && suppressed <= 50_000, "{count} {suppressed}");
    assert_eq!(first, Some(Severity::Critical));
    assert_eq!(last, Some(notification(&firing("new", Some("arbitrum")), "firing", &["ops"]).id));
}

#[tokio::test]
async fn resolved_notification_waits_for_earlier_delivery() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let first = notify(&store, "a", &["ops", "desk"]).await;
    let ops: ReceiverName = "ops".into();
    let later = now() + minutes(30);
    store.record_attempts(vec![tried(first[0].id, now(), DeliveryState::Retrying, Some(later))]).await.expect("recorded");
    store.record_attempts(vec![tried(first[1].id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    let alert = firing("a", Some("arbitrum"));
    let end = notification(&alert, "resolved", &["ops", "desk"]);
    store.commit(at(Commit { notifications: vec![end.clone()], ..Commit::default() })).await.expect("committed");
    assert!(store.due(ops.clone(), now(), 9).await.expect("read").is_empty());
    assert_eq!(store.next_due_at(ops.clone()).await.expect("read"), Some(later), "the earlier delivery is next");
    assert_eq!(store.due("desk".into(), now(), 9).await.expect("read").len(), 1, "another receiver does not wait for it");
    assert_eq!(store.due(ops.clone(), later, 9).await.expect("read")[0].id, first[0].id);
    store.record_attempts(vec![tried(first[0].id, later, DeliveryState::Dead, None)]).await.expect("recorded");
    let due = store.due(ops, later, 9).await.expect("read");
    assert_eq!(due[0].notifications, [end], "a dead letter does not block later deliveries");
}

#[tokio::test]
async fn delivery_keeps_webhook_id_and_manual_retry_restarts_schedule() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let first = notify(&store, "a", &["ops"]).await.remove(0);
    assert!(first.webhook_id.starts_with("msg_") && first.webhook_id.len() > 20, "{}", first.webhook_id);
    for step in 0..3 {
        let record = tried(first.id, now() + minutes(step), DeliveryState::Retrying, Some(now() + minutes(step + 1)));
        store.record_attempts(vec![record]).await.expect("recorded");
    }
    let mut dead = tried(first.id, now() + minutes(3), DeliveryState::Dead, None);
    dead.attempt.response = "ä".repeat(4000);
    let announcement = firing("receiver/ops", None);
    dead.notifications = vec![notification(&announcement, "dead", &["desk"])];
    dead.alerts = vec![announcement];
    store.record_attempts(vec![dead]).await.expect("recorded");
    assert!(store.due("ops".into(), now() + TimeDelta::days(9), 9).await.expect("read").is_empty());
    assert_eq!(store.due("desk".into(), now() + minutes(3), 9).await.expect("read").len(), 1, "the dead letter is announced");
    assert_eq!(store.global_alerts().await.expect("read").len(), 1);

    let detail = store.outbox_one(first.id).await.expect("read").expect("there");
    assert_eq!((detail.row.state, detail.row.attempts, detail.attempts.len()), (DeliveryState::Dead, 4, 4));
    assert!(detail.attempts[3].response.len() <= 4096 && detail.attempts[3].response.starts_with('ä'));
    assert_eq!(detail.notifications, first.notifications);
    assert_eq!(detail.row.alerts[0].summary, "ARB: \u{202e}$2M \"soon\"");
    assert_eq!(store.outbox_one(DeliveryId(999)).await.expect("read"), None);

    assert_eq!(store.retry_at(vec![first.id, DeliveryId(999)], now()).await.expect("retried"), 1);
    let again = store.due("ops".into(), now(), 9).await.expect("read").remove(0);
    assert_eq!((again.webhook_id.as_str(), again.attempts, again.tries), (first.webhook_id.as_str(), 4, 0));
    assert_eq!(again.due_at, now());
    store.record_attempts(vec![tried(first.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
    assert_eq!(store.retry_at(vec![first.id], now()).await.expect("queried"), 0, "delivered deliveries are not retried");
    let row = store.outbox_one(first.id).await.expect("read").expect("there").row;
    assert_eq!((row.state, row.attempts, row.delivered_at), (DeliveryState::Delivered, 5, Some(now())));
    let json = serde_json::to_value(&row).expect("JSON");
    for name in ["id", "webhookId", "receiver", "state", "attempts", "nextAttemptAt", "lastAnswer", "alerts"] {
        assert!(json.get(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn dropped_delivery_stays_dropped_unless_delivered() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (a, b) = (notify(&store, "a", &["ops"]).await.remove(0).id, notify(&store, "b", &["ops"]).await.remove(0).id);
    assert_eq!(store.drop_deliveries(vec![a, b]).await.expect("dropped"), 2);
    assert_eq!(store.drop_deliveries(vec![a]).await.expect("dropped"), 0);
    store
        .record_attempts(vec![
            tried(a, now(), DeliveryState::Retrying, Some(now() + minutes(1))),
            tried(b, now(), DeliveryState::Delivered, None),
            tried(DeliveryId(4711), now(), DeliveryState::Delivered, None),
        ])
        .await
        .expect("recorded");
    let filter =
        OutboxFilter { states: vec![DeliveryState::Dropped], receiver: Some("ops".into()), limit: 9, ..OutboxFilter::default() };
    let dropped = store.outbox(filter).await.expect("read");
    assert_eq!(dropped.iter().map(|row| row.id).collect::<Vec<_>>(), [a]);
    assert_eq!(store.outbox_one(b).await.expect("read").expect("there").row.state, DeliveryState::Delivered);
    assert_eq!(store.retry_at(vec![a], now()).await.expect("retried"), 1);
}

#[tokio::test]
async fn retry_without_time_is_due_at_once() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let id = notify(&store, "a", &["ops"]).await.remove(0).id;
    store.record_attempts(vec![tried(id, now(), DeliveryState::Retrying, None)]).await.expect("recorded");
    assert_eq!(store.next_due_at("ops".into()).await.expect("read"), Some(now()));
}

#[tokio::test]
async fn receiver_status_follows_deliveries_and_pending_notifications() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let notified = notify(&store, "cliff", &["ops", "wall", "desk"]).await;
    let of = |name: &str| notified.iter().find(|delivery| delivery.receiver.as_str() == name).expect("a delivery").id;
    let records =
        vec![tried(of("ops"), now(), DeliveryState::Delivered, None), tried(of("wall"), now(), DeliveryState::Dead, None)];
    store.record_attempts(records).await.expect("recorded");
    // A reminder that is pending.
    store.await_dispatch();
    let alert = firing("cliff", Some("arbitrum"));
    let mut reminder = notification(&alert, "lead 1d", &["ops"]);
    reminder.at = now() + minutes(1);
    store.commit(at(Commit { notifications: vec![reminder], ..Commit::default() })).await.expect("committed");

    let receiver_states = store.receiver_statuses(vec![alert.id.clone(), "al_other".into()]).await.expect("read");
    let status = |receiver: &str, was_notified: bool, state: &str| ReceiverStatus {
        receiver: receiver.into(),
        was_notified,
        state: NotificationState::parse(state).expect("a state"),
    };
    let expected = vec![status("desk", false, "due"), status("ops", true, "waiting"), status("wall", false, "dead")];
    assert_eq!(receiver_states, [(alert.id, expected)].into());
    let pending_notification = store.notification_overview(now() + minutes(2), now()).await.expect("read");
    let held = SuppressedCount { receiver: "ops".into(), waiting: 1, silenced: 0, inhibited: 0, lately: 0 };
    assert_eq!(pending_notification, NotificationOverview { held: vec![held], ..NotificationOverview::default() });
}

#[tokio::test]
async fn left_out_notification_has_state_limited() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (known, unknown) = (firing("known", Some("arbitrum")), firing("unknown", Some("arbitrum")));
    let mut left_out = notification(&known, "firing", &[]);
    left_out.body.left_out_by = Some(10);
    let commit = Commit {
        notifications: vec![notification(&unknown, "firing", &[])],
        left_out: vec![left_out],
        alerts: vec![known.clone(), unknown.clone()],
        ..Commit::default()
    };
    store.commit(at(commit)).await.expect("committed");
    let filter = NotificationFilter { undelivered: true, limit: 10, ..NotificationFilter::default() };
    let statuses = store.notification_statuses(filter).await.expect("read");
    let state_of = |alert: &Alert| statuses.iter().find(|status| status.alert == alert.id).map(|status| status.state);
    assert_eq!(state_of(&known), Some(NotificationState::Limited));
    assert_eq!(state_of(&unknown), Some(NotificationState::Nobody));
    let limit_of = |alert: &Alert| statuses.iter().find(|status| status.alert == alert.id)?.suppressor.as_deref();
    assert_eq!((limit_of(&known), limit_of(&unknown)), (Some("10"), None));
    assert!(statuses.iter().all(|status| status.receiver.is_none()), "{statuses:?}");
}

#[tokio::test]
async fn pending_notifications_are_found_by_receiver_and_time() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    notify(&store, "delivered", &["ops", "desk"]).await;
    store.await_dispatch();
    let waits = firing("waits", Some("arbitrum"));
    let notifications = vec![notification(&waits, "firing", &["ops"])];
    store.commit(at(Commit { notifications, alerts: vec![waits.clone()], ..Commit::default() })).await.expect("committed");
    let queried = |receiver: &str, since: Timestamp| NotificationFilter {
        receiver: Some(receiver.into()),
        since: Some(since),
        undelivered: true,
        limit: 10,
        ..NotificationFilter::default()
    };
    let found = async |filter: NotificationFilter| -> Vec<AlertId> {
        store.notification_statuses(filter).await.expect("read").into_iter().map(|status| status.alert).collect()
    };
    assert_eq!(found(queried("ops", now())).await, std::slice::from_ref(&waits.id));
    assert_eq!(found(queried("desk", now())).await, []);
    assert_eq!(found(queried("ops", now() + minutes(3))).await, [], "older notifications are excluded");
    let all = NotificationFilter { undelivered: false, ..queried("ops", now()) };
    assert_eq!(found(all).await.len(), 2, "delivered notifications are included on request");
    assert_eq!(found(queried("ops", Timestamp::MIN_UTC)).await, [waits.id], "no time is too early");
}

#[tokio::test]
async fn last_resolved_alert_closes_storm_batch() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.await_dispatch();
    let alerts: Vec<Alert> = ["a", "b", "c"].map(|subject| firing(subject, Some("arbitrum"))).into();
    let notify = async |alerts: &[Alert], transition: &str, status: AlertStatus| {
        let notified = |alert: &Alert| {
            let mut notice = notification(alert, transition, &["ops"]);
            notice.body.status = status;
            notice
        };
        let notifications = alerts.iter().map(notified).collect();
        store.commit(at(Commit { alerts: alerts.to_vec(), notifications, ..Commit::default() })).await.expect("committed");
        let all_at_once = |state: &PendingState<'_>| {
            let notified = state.waiting.iter().map(|row| (row.no, row.notice.clone())).collect();
            let delivery =
                NewDelivery { receiver: "ops".into(), notified, counted: vec![], merged: vec![], batch: Batch::default() };
            Dispatch { deliveries: vec![delivery], ..Dispatch::default() }
        };
        store.dispatch(all_at_once, now()).await.expect("dispatched");
        let due = store.due("ops".into(), now(), 9).await.expect("read").remove(0);
        store.record_attempts(vec![tried(due.id, now(), DeliveryState::Delivered, None)]).await.expect("recorded");
        due
    };
    let storm = notify(&alerts, "firing", AlertStatus::Firing).await;
    assert_eq!((storm.notifications.len(), storm.over.len()), (3, 0));
    let end = |at: usize| [Alert { state: AlertState::Resolved, ..alerts[at].clone() }];
    for early in [0, 2] {
        assert!(notify(&end(early), "resolved", AlertStatus::Resolved).await.over.is_empty(), "others still fire");
    }
    assert_eq!(notify(&end(1), "resolved", AlertStatus::Resolved).await.over, [storm.webhook_id]);
}

#[tokio::test]
async fn deliveries_in_time_range_are_filtered_counted_and_paged() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let mut ids = Vec::new();
    for (subject, after) in [("a", 0), ("b", 60), ("c", 120), ("d", 180)] {
        let alert = firing(subject, Some("arbitrum"));
        let at = now() + minutes(after);
        let notifications = vec![notification(&alert, "firing", &["ops"])];
        store.commit(Commit { at, alerts: vec![alert], notifications, ..Commit::default() }).await.expect("committed");
        let newest = store.outbox(OutboxFilter { limit: 1, ..OutboxFilter::default() }).await.expect("read").remove(0);
        assert_eq!(newest.created_at, at);
        ids.push(newest.id);
    }
    store.record_attempts(vec![tried(ids[2], now(), DeliveryState::Dead, None)]).await.expect("recorded");
    let all = OutboxFilter { limit: 9, ..OutboxFilter::default() };
    let (one, three) = (Some(now() + minutes(60)), Some(now() + minutes(180)));
    for (filter, expected) in [
        (OutboxFilter { since: one, ..all.clone() }, &[3, 2, 1][..]),
        (OutboxFilter { until: one, ..all.clone() }, &[0]),
        (OutboxFilter { since: one, until: three, ..all.clone() }, &[2, 1]),
        (OutboxFilter { since: one, states: vec![DeliveryState::Dead], ..all.clone() }, &[2]),
        (OutboxFilter { since: one, receiver: Some("unknown".into()), ..all.clone() }, &[]),
    ] {
        let listed = store.outbox_listed(filter.clone()).await.expect("read");
        let found: Vec<DeliveryId> = listed.rows.iter().map(|row| row.id).collect();
        let expected: Vec<DeliveryId> = expected.iter().map(|at| ids[*at]).collect();
        assert_eq!((found, listed.total), (expected.clone(), expected.len() as u64), "{filter:?}");
    }
    let part = OutboxFilter { since: one, position: ListPosition::after(ids[3].0), limit: 1, ..all };
    assert_eq!(store.outbox(part).await.expect("read").iter().map(|row| row.id).collect::<Vec<_>>(), [ids[2]]);
}

#[tokio::test]
async fn orphan_is_due_again_when_its_receiver_returns() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let mut records = Vec::new();
    for (alert, outcome) in [("a", AttemptOutcome::Orphaned), ("b", AttemptOutcome::Refused)] {
        let delivery = notify(&store, alert, &["ops"]).await.remove(0);
        let mut dead = tried(delivery.id, now(), DeliveryState::Dead, None);
        dead.attempt.outcome = outcome;
        records.push(dead);
    }
    let orphan = records[0].delivery;
    store.record_attempts(records).await.expect("recorded");
    let revive = async |receiver: &str, since| store.revive_orphans(receiver.into(), since, now()).await.expect("revived");
    assert_eq!(revive("desk", now()).await, 0);
    assert_eq!(revive("ops", now() + minutes(1)).await, 0, "too old");
    assert_eq!(revive("ops", now()).await, 1, "the receiver rejected the other one");
    assert_eq!(store.due("ops".into(), now(), 9).await.expect("read").iter().map(|due| due.id).collect::<Vec<_>>(), [orphan]);
}
