//! The outbox: due deliveries and the results of attempts. `list` contains the queries and actions of operators.

pub(super) mod list;
mod replay;

use std::collections::HashMap;

use rusqlite::params;
use rusqlite::types::Value;

use super::codec::{Millis, all, all_of, count, from_json, list, millis, one, one_of, readable, small, word};
use super::commit::{CommitWriter, NotificationTarget};
use super::error::StoreFault;
use super::event_log::log_delivery;
use super::sql::{Connection, PendingQuery, Row, Transaction, row_of};
use super::{Store, StoreError, failpoint, series};
use model::{
    AlertBody, AlertId, AlertStatus, AttemptRecord, CommitResult, DeliveryId, DeliveryState, DueDelivery, EndedDelivery,
    Notification, NotificationId, NotificationKind, NotificationRole, ReceiverName, Timestamp,
};

pub(super) use replay::{count_deleted, delete_old_counts};

impl Store {
    /// Returns all receivers with pending deliveries and their number, including receivers that left the config.
    pub async fn pending_receivers(&self) -> Result<Vec<(ReceiverName, u32)>, StoreError> {
        self.read("read the receivers with pending deliveries", pending_receivers).await
    }

    /// Returns the due deliveries of `receiver`: critical ones first, then oldest first. Skips deliveries that wait for
    /// an earlier one of the same alert, so that a resolution never overtakes its alert. Damaged notifications are left out, so a
    /// delivery may have none. Reading does not change the state of deliveries; the caller tracks which attempts are running.
    pub async fn due(&self, receiver: ReceiverName, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>, StoreError> {
        let doing = "read due deliveries";
        if self.is_shared() {
            // Read under the lease, so that a stale instance gets nothing to send.
            return self.read_as_active(doing, move |from| due(from, &receiver, now, limit)).await;
        }
        self.read(doing, move |from| due(from, &receiver, now, limit)).await
    }

    /// Returns when the next delivery of `receiver` is due, or `None` if none is pending. Skips deliveries that wait
    /// for an earlier one.
    pub async fn next_due_at(&self, receiver: ReceiverName) -> Result<Option<Timestamp>, StoreError> {
        self.read("read the next due time", move |from| next_due_at(from, &receiver)).await
    }

    /// Adds a notification to the outbox of its receivers, past the dispatcher. Any process may do so: the active instance sends it.
    pub async fn enqueue(&self, notification: Notification, at: Timestamp) -> Result<(), StoreError> {
        self.act("add a message to the outbox", move |to| {
            let writer = CommitWriter::new(to, at, NotificationTarget::Outbox);
            writer.notifications([&notification], &mut CommitResult::default())
        })
        .await
    }

    /// Makes all deliveries of `receiver` that wait for a retry due at `now`, after the receiver recovered.
    pub async fn retry_now(&self, receiver: ReceiverName, now: Timestamp) -> Result<(), StoreError> {
        self.write("retry deliveries at once", move |to| retry_now(to, &receiver, now)).await
    }

    /// Makes deliveries due that became dead letters after `since` only because `receiver` had left the config. Returns their number.
    pub async fn revive_orphans(&self, receiver: ReceiverName, since: Timestamp, now: Timestamp) -> Result<usize, StoreError> {
        self.write("send deliveries to a receiver that returned", move |to| revive_orphans(to, &receiver, since, now)).await
    }

    /// Records attempts, their effect on the deliveries, and alerts about the receiver, in one transaction.
    pub async fn record_attempts(&self, records: Vec<AttemptRecord>) -> Result<(), StoreError> {
        let doing = "record attempts";
        let target = self.notification_target();
        self.writer(doing)?.run(doing, move |connection| record_attempts(connection, &records, target)).await
    }
}

/// The stored part of a receiver's response, in bytes, cut at a character boundary.
const MAX_RESPONSE_BYTES: usize = 4096;

/// Excludes deliveries while an earlier delivery of the same alert to the same receiver is pending. Dead and dropped
/// deliveries block nothing. The nested `EXISTS … LIMIT 1 OFFSET 0` force one index lookup per level; without
/// statistics, the planner of PostgreSQL would start with all deliveries of the receiver.
const NOT_BLOCKED: &str = "NOT EXISTS (
     SELECT 1 FROM delivery_notification d JOIN notification n ON n.id = d.notification WHERE d.delivery_no = v.no AND EXISTS (
         SELECT 1 FROM notification m WHERE m.alert = n.alert AND EXISTS (
             SELECT 1 FROM delivery_notification e JOIN delivery w ON w.no = e.delivery_no
             WHERE e.notification = m.id AND e.receiver = v.receiver AND w.no < v.no AND w.state IN ('due', 'retrying') LIMIT 1 OFFSET 0)
         LIMIT 1 OFFSET 0)
     LIMIT 1 OFFSET 0)";

/// Selects deliveries that contain a critical alert.
const CRITICAL: &str = "v.batch ->> '$.severity' = 'critical'";

/// Returns the query of due deliveries: critical ones or the others, of replays or of everything else.
pub(super) fn due_sql(is_critical: bool, is_replay: bool) -> String {
    let which = if is_critical { CRITICAL.to_owned() } else { format!("({CRITICAL}) IS NOT TRUE") };
    let replayed = if is_replay { "v.replayed_at IS NOT NULL" } else { "v.replayed_at IS NULL" };
    format!(
        "SELECT v.no, v.webhook_id, v.attempts, v.tries, v.created_at, v.due_at, v.batch, v.replayed_at, v.first_delivered_at
         FROM delivery v
         WHERE v.receiver = ?1 AND v.state IN ('due', 'retrying') AND v.next_attempt_at <= ?2 AND {replayed} AND {which} AND {NOT_BLOCKED}
         ORDER BY v.next_attempt_at, v.no LIMIT ?3"
    )
}

pub(super) fn next_due_sql() -> String {
    format!(
        "SELECT v.next_attempt_at FROM delivery v WHERE v.receiver = ?1 AND v.state IN ('due', 'retrying') AND {NOT_BLOCKED}
         ORDER BY v.next_attempt_at LIMIT 1"
    )
}

fn due(from: &Transaction<'_>, receiver: &ReceiverName, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>, StoreFault> {
    let read = |row: &Row<'_>| {
        let batch: Option<String> = row.get(6)?;
        let batch = batch.map(|text| from_json("the batch of a delivery to", receiver.as_str(), &text)).transpose();
        Ok(DueDelivery {
            id: DeliveryId(row.get(0)?),
            webhook_id: row.get(1)?,
            receiver: receiver.clone(),
            attempts: small(row.get(2)?),
            tries: small(row.get(3)?),
            created_at: row.get::<Millis>(4)?.0,
            due_at: row.get::<Millis>(5)?.0,
            notifications: Vec::new(),
            batch: readable(batch)?.flatten().unwrap_or_default(),
            over: Vec::new(),
            replay: replay::replay(row, 7)?,
        })
    };
    let send_query = |sql: String| from.prepare_cached(&sql)?.send_query(params![receiver.as_str(), Millis(now), limit]);
    // A replay delays nothing else. Critical ones come before all others, because only they may exceed the hourly limit.
    let classes = [(true, false), (true, true), (false, false), (false, true)];
    let queried = classes.map(|(is_critical, is_replay)| send_query(due_sql(is_critical, is_replay)));
    let mut deliveries = Vec::new();
    for queried in queried {
        deliveries.extend(all_of(queried?.rows()?, read)?);
    }
    deliveries.truncate(limit as usize);
    let role = NotificationRole::Notified;
    let queried =
        deliveries.iter().map(|delivery| query_notifications(from, delivery.id, role)).collect::<Result<Vec<_>, _>>()?;
    for (delivery, queried) in deliveries.iter_mut().zip(queried) {
        let notifications = all_of(queried.rows()?, |row| readable(notification(row)))?;
        delivery.notifications = notifications.into_iter().flatten().collect();
        delivery.over = finished_storms(from, delivery)?;
    }
    Ok(deliveries)
}

/// The minimum number of alerts in a storm batch.
const MIN_STORM_ALERTS: i64 = 2;

/// Returns the webhook ids of storm batches that contain an alert resolved by this delivery, and in which no alert
/// fires anymore. Two resolutions sent at once both return the batch; closing an incident twice is harmless.
fn finished_storms(from: &Transaction<'_>, delivery: &DueDelivery) -> Result<Vec<String>, StoreFault> {
    let is_end = |notice: &&Notification| notice.body.status == AlertStatus::Resolved;
    let ended: Vec<&str> = delivery.notifications.iter().filter(is_end).map(|notice| notice.alert.as_str()).collect();
    if ended.is_empty() || delivery.batch.group_key.is_some() {
        return Ok(Vec::new());
    }
    let mut statement = from.prepare_cached(
        "SELECT v.webhook_id FROM notification n JOIN delivery_notification d ON d.notification = n.id AND d.receiver = ?2
         JOIN delivery v ON v.no = d.delivery_no
         WHERE n.alert IN (SELECT value FROM json_each(?1)) AND v.no < ?3 AND v.batch ->> '$.groupKey' IS NULL
           AND (SELECT count(*) FROM delivery_notification c WHERE c.delivery_no = v.no) >= ?4
           AND NOT EXISTS (SELECT 1 FROM delivery_notification c JOIN notification o ON o.id = c.notification JOIN alert a ON a.id = o.alert
                           WHERE c.delivery_no = v.no AND a.state IN ('pending', 'firing'))
         GROUP BY v.no, v.webhook_id ORDER BY v.no",
    )?;
    let values = params![list(ended), delivery.receiver.as_str(), delivery.id.0, MIN_STORM_ALERTS];
    all(&mut statement, values, |row| Ok(row.get(0)?))
}

pub(super) fn notifications(
    from: &Transaction<'_>,
    delivery: DeliveryId,
    role: NotificationRole,
) -> Result<Vec<Notification>, StoreFault> {
    all_of(query_notifications(from, delivery, role)?.rows()?, notification)
}

/// Queries the notifications of a delivery in a role. [`notification`] reads each row.
fn query_notifications<'a>(
    from: &Transaction<'a>,
    delivery: DeliveryId,
    role: NotificationRole,
) -> Result<PendingQuery<'a>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT n.id, n.alert, n.kind, n.at, n.receivers, n.body, n.series
         FROM delivery_notification d JOIN notification n ON n.id = d.notification
         WHERE d.delivery_no = ?1 AND d.role = ?2 ORDER BY d.ordinal",
    )?;
    Ok(statement.send_query(params![delivery.0, role.as_str()])?)
}

/// Reads a notification from the columns `id, alert, kind, at, receivers, body, series`.
pub(super) fn notification(row: &Row<'_>) -> Result<Notification, StoreFault> {
    let id: String = row.get(0)?;
    let (kind, receivers, body): (String, String, String) = (row.get(2)?, row.get(4)?, row.get(5)?);
    let mut body: AlertBody = from_json("the body of the notification", &id, &body)?;
    if let Some(series) = series::read(row, 6, &id)? {
        body.series = series;
    }
    Ok(Notification {
        alert: AlertId::from(row.get::<String>(1)?),
        kind: word("the kind of the notification", &id, &kind, NotificationKind::parse)?,
        at: row.get::<Millis>(3)?.0,
        receivers: from_json("the receivers of the notification", &id, &receivers)?,
        body,
        id: NotificationId::from(id),
    })
}

fn next_due_at(from: &Transaction<'_>, receiver: &ReceiverName) -> Result<Option<Timestamp>, StoreFault> {
    let mut statement = from.prepare_cached(&next_due_sql())?;
    one(&mut statement, [receiver.as_str()], |row| Ok(row.get::<Millis>(0)?.0))
}

fn pending_receivers(from: &Transaction<'_>) -> Result<Vec<(ReceiverName, u32)>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, count(*) FROM delivery WHERE state IN ('due', 'retrying') GROUP BY receiver ORDER BY receiver",
    )?;
    all(&mut statement, [], |row| Ok((ReceiverName::from(row.get::<String>(0)?), small(row.get(1)?))))
}

fn revive_orphans(to: &Transaction<'_>, receiver: &ReceiverName, since: Timestamp, now: Timestamp) -> Result<usize, StoreFault> {
    let mut statement = to.prepare_cached(
        "UPDATE delivery SET state = 'due', tries = 0, due_at = ?3, next_attempt_at = ?3, updated_at = ?3
         WHERE receiver = ?1 AND state = 'dead' AND updated_at >= ?2
           AND (SELECT a.outcome FROM attempt a WHERE a.delivery_no = delivery.no ORDER BY a.no DESC LIMIT 1) = 'orphaned'",
    )?;
    Ok(statement.execute_counted(params![receiver.as_str(), Millis(since), Millis(now)])?)
}

fn retry_now(to: &Transaction<'_>, receiver: &ReceiverName, now: Timestamp) -> Result<(), StoreFault> {
    to.prepare_cached(
        "UPDATE delivery SET next_attempt_at = ?2 WHERE receiver = ?1 AND state = 'retrying' AND next_attempt_at > ?2",
    )?
    .execute(params![receiver.as_str(), Millis(now)])?;
    Ok(())
}

fn record_attempts(connection: &mut Connection, records: &[AttemptRecord], target: NotificationTarget) -> Result<(), StoreFault> {
    failpoint::pass("attempt.before");
    connection.write(true, |transaction| {
        let mut states = HashMap::with_capacity(records.len());
        for AttemptRecord { delivery, .. } in records {
            states.insert(*delivery, query_state(transaction, *delivery)?);
        }
        let mut attempts = Vec::with_capacity(records.len());
        for record in records {
            // A second attempt of the same delivery must see the result of the first.
            let state = states.remove(&record.delivery).map_or_else(|| query_state(transaction, record.delivery), Ok)?;
            attempts.extend(record_attempt(transaction, record, state, target)?);
        }
        let columns = ["delivery_no", "at", "took_ms", "outcome", "status", "response"];
        Ok(transaction.insert_many("attempt", &columns, attempts)?)
    })?;
    failpoint::pass("attempt.after");
    Ok(())
}

fn query_state<'a>(from: &Transaction<'a>, delivery: DeliveryId) -> Result<PendingQuery<'a>, StoreFault> {
    Ok(from
        .prepare_cached("SELECT state, webhook_id, receiver, replayed_at, first_delivered_at FROM delivery WHERE no = ?1")?
        .send_query([delivery.0])?)
}

/// Writes what an attempt changes, and returns its row; `None` if its delivery was pruned.
fn record_attempt(
    to: &Transaction<'_>,
    record: &AttemptRecord,
    state_is: PendingQuery<'_>,
    target: NotificationTarget,
) -> Result<Option<Vec<Value>>, StoreFault> {
    let AttemptRecord { delivery, attempt, state, next_attempt_at, alerts, notifications } = record;
    let mut writer = CommitWriter::new(to, attempt.at, target);
    for alert in alerts {
        writer.alert(alert)?;
    }
    writer.notifications(notifications, &mut CommitResult::default())?;
    let found = one_of(state_is.rows()?, |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<String>(2)?, replay::replay(row, 3)?))
    })?;
    let Some((now_is, webhook_id, receiver, replay)) = found else {
        // A pending delivery is never pruned, so nothing is lost.
        return Ok(None);
    };
    let now_is = word("the state of the delivery", &delivery.to_string(), &now_is, DeliveryState::parse)?;
    let response = truncate(&attempt.response, MAX_RESPONSE_BYTES);
    // An operator may have dropped the delivery during the attempt. Only a success overrides that.
    let state = match (now_is, state) {
        (DeliveryState::Delivered, _) => DeliveryState::Delivered,
        (DeliveryState::Dropped, given) if *given != DeliveryState::Delivered => DeliveryState::Dropped,
        (_, given) => *given,
    };
    let is_pending = matches!(state, DeliveryState::Due | DeliveryState::Retrying);
    // A pending delivery without a next attempt would never be sent, so retry it at once.
    let next = is_pending.then(|| next_attempt_at.unwrap_or(attempt.at));
    to.prepare_cached(
        "UPDATE delivery SET state = ?2, attempts = attempts + 1, tries = tries + 1, next_attempt_at = ?3, last_response = ?4,
         updated_at = ?5, delivered_at = CASE WHEN ?2 = 'delivered' THEN coalesce(delivered_at, ?5) END WHERE no = ?1",
    )?
    .execute(params![delivery.0, state.as_str(), millis(next), response, Millis(attempt.at)])?;
    if state != now_is {
        let ended = EndedDelivery { delivery: delivery.0, webhook_id, receiver: receiver.into(), state, replay };
        log_delivery(to, attempt.at, &ended)?;
    }
    let (at, took_ms) = (Millis(attempt.at), count(attempt.took_ms));
    Ok(Some(row_of(params![delivery.0, at, took_ms, attempt.outcome.as_str(), attempt.status, response])?))
}

fn truncate(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
