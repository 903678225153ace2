//! The outbox: what is due, and what came of an attempt. `list` has what an operator sees of it and does by hand.

mod list;

use std::collections::HashMap;

use rusqlite::params;

use super::codec::{Millis, all, all_of, count, from_json, list, millis, one, one_of, small, word};
use super::commit::{CommitWriter, NotificationTarget};
use super::error::StoreFault;
use super::sql::{Connection, Question, Row, Transaction};
use super::{Store, StoreError, failpoint, series};
use model::{
    AlertBody, AlertId, AlertStatus, AttemptRecord, CommitResult, DeliveryId, DeliveryState, DueDelivery, Notification,
    NotificationId, NotificationKind, NotificationRole, ReceiverName, Timestamp,
};

impl Store {
    /// Everyone to whom something is yet to be delivered, with how much, whether the config knows them or not.
    pub async fn pending_receivers(&self) -> Result<Vec<(ReceiverName, u32)>, StoreError> {
        self.read("read who waits for deliveries", pending_receivers).await
    }

    /// Deliveries to `receiver` whose next attempt is due, what is critical first, then the longest waiting. One waits while an
    /// earlier one of the same alert does, so that an end never overtakes its beginning. They stay due: whoever sends holds for
    /// itself what is under way.
    pub async fn due(&self, receiver: ReceiverName, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>, StoreError> {
        let doing = "read what is due";
        if self.is_shared() {
            // So that a stale instance gets nothing that it could send.
            return self.read_as_active(doing, move |from| due(from, &receiver, now, limit)).await;
        }
        self.read(doing, move |from| due(from, &receiver, now, limit)).await
    }

    /// When the next delivery of `receiver` falls due, those left aside that wait for an earlier one; none where nothing waits.
    pub async fn next_due_at(&self, receiver: ReceiverName) -> Result<Option<Timestamp>, StoreError> {
        self.read("read what falls due next", move |from| next_due_at(from, &receiver)).await
    }

    /// Makes what waits for a retry of `receiver` due at `now`, since it answers again.
    pub async fn retry_now(&self, receiver: ReceiverName, now: Timestamp) -> Result<(), StoreError> {
        self.write("retry deliveries at once", move |to| retry_now(to, &receiver, now)).await
    }

    /// Records attempts, what they make of their deliveries, and what is announced of them, in one transaction.
    pub async fn record_attempts(&self, records: Vec<AttemptRecord>) -> Result<(), StoreError> {
        let doing = "record attempts";
        let goes_to = self.notification_target();
        self.writer(doing)?.run(doing, move |connection| record_attempts(connection, &records, goes_to)).await
    }
}

/// What is kept of a receiver's answer: four KiB, cut between characters.
const MAX_ANSWER_BYTES: usize = 4096;

/// Holds back what is told of an alert while something earlier of the same alert still waits for the same receiver: an end never
/// overtakes its beginning. A dead or dropped delivery holds nothing up. One in the other, each by its index: a planner that knows too
/// little of these tables, as it does for the first minutes, would otherwise begin with all that ever went to the receiver.
const NOT_HELD_BACK: &str = "NOT EXISTS (
     SELECT 1 FROM delivery_notice d JOIN notice n ON n.id = d.notice WHERE d.delivery_no = v.no AND EXISTS (
         SELECT 1 FROM notice m WHERE m.alert = n.alert AND EXISTS (
             SELECT 1 FROM delivery_notice e JOIN delivery w ON w.no = e.delivery_no
             WHERE e.notice = m.id AND e.receiver = v.receiver AND w.no < v.no AND w.state IN ('due', 'retrying') LIMIT 1 OFFSET 0)
         LIMIT 1 OFFSET 0)
     LIMIT 1 OFFSET 0)";

/// A delivery that holds something critical.
const CRITICAL: &str = "v.bundle ->> '$.tone' = 'critical'";

pub(super) fn due_sql(is_critical: bool) -> String {
    let which = if is_critical { CRITICAL.to_owned() } else { format!("({CRITICAL}) IS NOT TRUE") };
    format!(
        "SELECT v.no, v.webhook_id, v.attempts, v.tries, v.created_at, v.due_at, v.bundle FROM delivery v
         WHERE v.receiver = ?1 AND v.state IN ('due', 'retrying') AND v.next_attempt_at <= ?2 AND {which} AND {NOT_HELD_BACK}
         ORDER BY v.next_attempt_at, v.no LIMIT ?3"
    )
}

pub(super) fn next_due_sql() -> String {
    format!(
        "SELECT v.next_attempt_at FROM delivery v WHERE v.receiver = ?1 AND v.state IN ('due', 'retrying') AND {NOT_HELD_BACK}
         ORDER BY v.next_attempt_at LIMIT 1"
    )
}

fn due(from: &Transaction<'_>, receiver: &ReceiverName, now: Timestamp, limit: u32) -> Result<Vec<DueDelivery>, StoreFault> {
    let read = |row: &Row<'_>| {
        let bundle: Option<String> = row.get(6)?;
        let bundle = bundle.map(|text| from_json("the bundle of a delivery to", receiver.as_str(), &text)).transpose()?;
        Ok(DueDelivery {
            id: DeliveryId(row.get(0)?),
            webhook_id: row.get(1)?,
            receiver: receiver.clone(),
            attempts: small(row.get(2)?),
            tries: small(row.get(3)?),
            created_at: row.get::<_, Millis>(4)?.0,
            due_at: row.get::<_, Millis>(5)?.0,
            notifications: Vec::new(),
            bundle: bundle.unwrap_or_default(),
            over: Vec::new(),
        })
    };
    let ask = |is_critical| from.prepare_cached(&due_sql(is_critical))?.ask(params![receiver.as_str(), Millis(now), limit]);
    let (critical, others) = (ask(true)?, ask(false)?);
    let mut deliveries = all_of(critical.rows()?, read)?;
    deliveries.extend(all_of(others.rows()?, read)?);
    deliveries.truncate(limit as usize);
    let role = NotificationRole::Notified;
    let asked = deliveries.iter().map(|delivery| ask_notifications(from, delivery.id, role)).collect::<Result<Vec<_>, _>>()?;
    for (delivery, asked) in deliveries.iter_mut().zip(asked) {
        delivery.notifications = all_of(asked.rows()?, notification)?;
        delivery.over = storms_over(from, delivery)?;
    }
    Ok(deliveries)
}

/// Alerts of a delivery from which on it may have been told as one storm.
const MANY: i64 = 2;

/// Storms that told an alert which this delivery ends, and of which nothing fires any more. Of two ends that are told at once both find
/// theirs: a pager closes nothing twice.
fn storms_over(from: &Transaction<'_>, delivery: &DueDelivery) -> Result<Vec<String>, StoreFault> {
    let is_end = |notice: &&Notification| notice.body.status == AlertStatus::Resolved;
    let ended: Vec<&str> = delivery.notifications.iter().filter(is_end).map(|notice| notice.alert.as_str()).collect();
    if ended.is_empty() || delivery.bundle.group_key.is_some() {
        return Ok(Vec::new());
    }
    let mut statement = from.prepare_cached(
        "SELECT v.webhook_id FROM notice n JOIN delivery_notice d ON d.notice = n.id AND d.receiver = ?2
         JOIN delivery v ON v.no = d.delivery_no
         WHERE n.alert IN (SELECT value FROM json_each(?1)) AND v.no < ?3 AND v.bundle ->> '$.groupKey' IS NULL
           AND (SELECT count(*) FROM delivery_notice c WHERE c.delivery_no = v.no) >= ?4
           AND NOT EXISTS (SELECT 1 FROM delivery_notice c JOIN notice o ON o.id = c.notice JOIN alert a ON a.id = o.alert
                           WHERE c.delivery_no = v.no AND a.state IN ('pending', 'firing'))
         GROUP BY v.no, v.webhook_id ORDER BY v.no",
    )?;
    let values = params![list(ended), delivery.receiver.as_str(), delivery.id.0, MANY];
    all(&mut statement, values, |row| Ok(row.get(0)?))
}

pub(super) fn notifications(
    from: &Transaction<'_>,
    delivery: DeliveryId,
    role: NotificationRole,
) -> Result<Vec<Notification>, StoreFault> {
    all_of(ask_notifications(from, delivery, role)?.rows()?, notification)
}

/// What a delivery tells, or only counts; [`notification`] reads each row.
fn ask_notifications<'a>(
    from: &Transaction<'a>,
    delivery: DeliveryId,
    role: NotificationRole,
) -> Result<Question<'a>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT n.id, n.alert, n.kind, n.at, n.receivers, n.body, n.series FROM delivery_notice d JOIN notice n ON n.id = d.notice
         WHERE d.delivery_no = ?1 AND d.role = ?2 ORDER BY d.ordinal",
    )?;
    Ok(statement.ask(params![delivery.0, role.as_str()])?)
}

/// A notification from the columns `id, alert, kind, at, receivers, body, series`.
pub(super) fn notification(row: &Row<'_>) -> Result<Notification, StoreFault> {
    let id: String = row.get(0)?;
    let (kind, receivers, body): (String, String, String) = (row.get(2)?, row.get(4)?, row.get(5)?);
    let mut body: AlertBody = from_json("the body of the notice", &id, &body)?;
    if let Some(series) = series::read(row, 6, &id)? {
        body.series = series;
    }
    Ok(Notification {
        alert: AlertId::from(row.get::<_, String>(1)?),
        kind: word("the kind of the notice", &id, &kind, NotificationKind::parse)?,
        at: row.get::<_, Millis>(3)?.0,
        receivers: from_json("the receivers of the notice", &id, &receivers)?,
        body,
        id: NotificationId::from(id),
    })
}

fn next_due_at(from: &Transaction<'_>, receiver: &ReceiverName) -> Result<Option<Timestamp>, StoreFault> {
    let mut statement = from.prepare_cached(&next_due_sql())?;
    one(&mut statement, [receiver.as_str()], |row| Ok(row.get::<_, Millis>(0)?.0))
}

/// Everyone to whom something is yet to be delivered, with how much.
fn pending_receivers(from: &Transaction<'_>) -> Result<Vec<(ReceiverName, u32)>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, count(*) FROM delivery WHERE state IN ('due', 'retrying') GROUP BY receiver ORDER BY receiver",
    )?;
    all(&mut statement, [], |row| Ok((ReceiverName::from(row.get::<_, String>(0)?), small(row.get(1)?))))
}

/// Makes what waits for a retry due now: the receiver answers again.
fn retry_now(to: &Transaction<'_>, receiver: &ReceiverName, now: Timestamp) -> Result<(), StoreFault> {
    to.prepare_cached(
        "UPDATE delivery SET next_attempt_at = ?2 WHERE receiver = ?1 AND state = 'retrying' AND next_attempt_at > ?2",
    )?
    .execute(params![receiver.as_str(), Millis(now)])?;
    Ok(())
}

/// Records attempts, the new state of their deliveries, and what is announced of them, in one transaction.
fn record_attempts(
    connection: &mut Connection,
    records: &[AttemptRecord],
    goes_to: NotificationTarget,
) -> Result<(), StoreFault> {
    failpoint::pass("attempt.before");
    connection.write(true, |transaction| {
        let mut states = HashMap::with_capacity(records.len());
        for AttemptRecord { delivery, .. } in records {
            states.insert(*delivery, ask_state(transaction, *delivery)?);
        }
        records.iter().try_for_each(|record| {
            // A second attempt of one delivery finds what the first left.
            let state = states.remove(&record.delivery).map_or_else(|| ask_state(transaction, record.delivery), Ok)?;
            record_attempt(transaction, record, state, goes_to)
        })
    })?;
    failpoint::pass("attempt.after");
    Ok(())
}

/// The state of a delivery as it stands.
fn ask_state<'a>(from: &Transaction<'a>, delivery: DeliveryId) -> Result<Question<'a>, StoreFault> {
    Ok(from.prepare_cached("SELECT state FROM delivery WHERE no = ?1")?.ask([delivery.0])?)
}

fn record_attempt(
    to: &Transaction<'_>,
    record: &AttemptRecord,
    state_is: Question<'_>,
    goes_to: NotificationTarget,
) -> Result<(), StoreFault> {
    let AttemptRecord { delivery, attempt, state, next_attempt_at, alerts, notifications } = record;
    let mut writer = CommitWriter::new(to, attempt.at, goes_to);
    for alert in alerts {
        writer.alert(alert)?;
    }
    writer.notifications(notifications, &mut CommitResult::default())?;
    let now_is: Option<String> = one_of(state_is.rows()?, |row| Ok(row.get(0)?))?;
    let Some(now_is) = now_is else {
        // Pruned meanwhile, which happens to none that is pending: nothing is left to be kept straight.
        return Ok(());
    };
    let now_is = word("the state of the delivery", &delivery.to_string(), &now_is, DeliveryState::parse)?;
    let answer = cut(&attempt.answer, MAX_ANSWER_BYTES);
    to.prepare_cached("INSERT INTO attempt (delivery_no, at, took_ms, outcome, status, answer) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![
            delivery.0,
            Millis(attempt.at),
            count(attempt.took_ms),
            attempt.outcome.as_str(),
            attempt.status,
            answer
        ])?;
    // Somebody may have dropped it while the attempt was under way: an acceptance is the truth, anything else changes nothing.
    let state = match (now_is, state) {
        (DeliveryState::Delivered, _) => DeliveryState::Delivered,
        (DeliveryState::Dropped, given) if *given != DeliveryState::Delivered => DeliveryState::Dropped,
        (_, given) => *given,
    };
    let is_pending = matches!(state, DeliveryState::Due | DeliveryState::Retrying);
    // A retry without a time is one at once: a delivery that nobody ever looks at again would be lost.
    let next = is_pending.then(|| next_attempt_at.unwrap_or(attempt.at));
    to.prepare_cached(
        "UPDATE delivery SET state = ?2, attempts = attempts + 1, tries = tries + 1, next_attempt_at = ?3, last_answer = ?4,
         updated_at = ?5, delivered_at = CASE WHEN ?2 = 'delivered' THEN coalesce(delivered_at, ?5) END WHERE no = ?1",
    )?
    .execute(params![delivery.0, state.as_str(), millis(next), answer, Millis(attempt.at)])?;
    Ok(())
}

fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
