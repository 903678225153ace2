//! Pending notifications: grouping, suppression, and repeats. The caller supplies the decision of a dispatch pass; this
//! file reads its input and writes its result in one transaction.

use std::{borrow::Cow, cell::RefCell, sync::atomic::Ordering};

use rusqlite::params;

use super::codec::{Millis, all, all_readable, from_json, json, millis, one, readable, small, time, word};
use super::commit::{CommitWriter, DELIVERY_NOTIFICATION_COLUMNS, NotificationTarget, webhook_id};
use super::error::StoreFault;
use super::outbox::notification;
use super::rows::{self, ALERT_COLUMN_COUNT, ALERT_COLUMNS};
use super::silence::{ack, silences};
use super::sql::{PendingQuery, Row, Transaction, row_of};
use super::{Store, StoreError};
use model::{
    Ack, AlertBody, AlertId, AlertStatus, BURST_WINDOW, Batch, BatchKind, CommitResult, DeliveryState, Dispatch, DispatchResult,
    FiringAlert, GroupUpdate, HOUR, Labels, NewDelivery, Notification, NotificationId, NotificationKind, PendingLookup,
    PendingNotification, PendingState, Precedence, ReceiverName, ReceiverUsage, RepeatAlert, RepeatGroup, Repeats, Severity,
    SilenceFact, Suppression, Suppressor, Timestamp,
};

/// The maximum number of notifications considered in one pass. Later passes handle the rest.
const MAX_PENDING: usize = 50_000;

/// The maximum number of groups repeated in one pass.
const MAX_REPEATS: i64 = 500;

impl Store {
    /// Makes new notifications wait for [`Self::dispatch`], which groups or suppresses them. Without this call, each
    /// notification goes directly into the outbox.
    pub fn await_dispatch(&self) {
        self.handle.is_dispatched.store(true, Ordering::SeqCst);
    }

    /// Runs one dispatch pass: applies `decide` to all pending notifications and writes the result, in one transaction.
    pub async fn dispatch(
        &self,
        decide: impl FnOnce(&PendingState<'_>) -> Dispatch + Send + 'static,
        now: Timestamp,
    ) -> Result<DispatchResult, StoreError> {
        self.write("dispatch pending notifications", move |to| dispatch(to, decide, now)).await
    }

    /// Applies `inspect` to the notifications that are pending at `now`. Returns `None` if there are none.
    pub async fn pending<T: Send + 'static>(
        &self,
        inspect: impl FnOnce(&PendingState<'_>) -> T + Send + 'static,
        now: Timestamp,
    ) -> Result<Option<T>, StoreError> {
        self.read("read pending notifications", move |from| pending(from, inspect, now)).await
    }

    /// Returns the groups whose repeat is due, with their firing alerts and the last notification of each.
    pub async fn repeats(&self, now: Timestamp) -> Result<Vec<RepeatGroup>, StoreError> {
        self.read("read due repeats", move |from| repeats(from, now)).await
    }

    /// Stores repeated notifications, and the next repeat time of their groups.
    pub async fn commit_repeats(&self, repeats: Repeats, now: Timestamp) -> Result<(), StoreError> {
        self.write("write repeats", move |to| commit_repeats(to, &repeats, now)).await
    }
}

/// Adds a notification to the pending ones.
pub(super) fn add_pending(
    to: &Transaction<'_>,
    notice: &Notification,
    receiver: &ReceiverName,
    at: Timestamp,
) -> Result<(), StoreFault> {
    let Precedence { severity, value, due } = notice.body.precedence(notice.at);
    to.prepare_cached(
        "INSERT INTO pending_notification (notification, receiver, alert, kind, is_end, labels, state, since, severity, value, due_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'waiting', ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
    )?
    .execute(params![
        notice.id.as_str(),
        receiver.as_str(),
        notice.alert.as_str(),
        notice.kind.as_str(),
        notice.body.status == AlertStatus::Resolved,
        json("the labels of a notification", &notice.body.labels)?,
        Millis(at),
        severity as i64,
        value,
        millis(due),
    ])?;
    Ok(())
}

fn pending<T>(
    from: &Transaction<'_>,
    inspect: impl FnOnce(&PendingState<'_>) -> T,
    now: Timestamp,
) -> Result<Option<T>, StoreFault> {
    let waiting = waiting(from)?;
    let suppressed = suppressed(from)?;
    if waiting.is_empty() && suppressed.is_empty() {
        return Ok(None);
    }
    let silences = silences(from, Some(now))?;
    let lookup = StoreLookup { from, now, fault: RefCell::new(None) };
    let is_cut = waiting.len() >= MAX_PENDING / 2;
    let state = PendingState { waiting: &waiting, is_cut, suppressed: &suppressed, silences: &silences, lookup: &lookup };
    let found = inspect(&state);
    // Discard a decision that was based on incomplete data.
    match lookup.fault.into_inner() {
        Some(fault) => Err(fault),
        None => Ok(Some(found)),
    }
}

fn dispatch(
    to: &Transaction<'_>,
    decide: impl FnOnce(&PendingState<'_>) -> Dispatch,
    now: Timestamp,
) -> Result<DispatchResult, StoreFault> {
    match pending(to, decide, now)? {
        Some(dispatch) => apply(to, &dispatch, now),
        None => Ok(DispatchResult::default()),
    }
}

/// Writes the result of a pass.
fn apply(to: &Transaction<'_>, dispatch: &Dispatch, now: Timestamp) -> Result<DispatchResult, StoreFault> {
    for (no, by) in &dispatch.suppressed {
        to.prepare_cached("UPDATE pending_notification SET state = ?2, suppressed_by = ?3, since = ?4 WHERE no = ?1")?
            .execute(params![no, by.by.as_str(), by.id, Millis(now)])?;
    }
    for no in &dispatch.released {
        to.prepare_cached("UPDATE pending_notification SET state = 'waiting', suppressed_by = NULL, since = ?2 WHERE no = ?1")?
            .execute(params![no, Millis(now)])?;
    }
    for no in &dispatch.settled {
        to.prepare_cached("UPDATE pending_notification SET settled = 1 WHERE no = ?1")?.execute([no])?;
    }
    for group in &dispatch.groups {
        update_group(to, group, now)?;
    }
    let mut dispatched = DispatchResult {
        held: count(dispatch.suppressed.len()),
        waiting: dispatch.waiting,
        next_at: [dispatch.next_at, dispatch.recheck_at].into_iter().flatten().min(),
        ..DispatchResult::default()
    };
    deliver(to, &dispatch.deliveries, now)?;
    for delivery in &dispatch.deliveries {
        dispatched.deliveries += 1;
        if !dispatched.receivers.contains(&delivery.receiver) {
            dispatched.receivers.push(delivery.receiver.clone());
        }
    }
    Ok(dispatched)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn update_group(to: &Transaction<'_>, group: &GroupUpdate, now: Timestamp) -> Result<(), StoreFault> {
    let GroupUpdate { receiver, key, repeat_at, joined, left } = group;
    to.prepare_cached(
        "INSERT INTO notification_group (receiver, key, notified_at, repeat_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (receiver, key) DO UPDATE SET notified_at = excluded.notified_at, repeat_at = excluded.repeat_at",
    )?
    .execute(params![receiver.as_str(), key, Millis(now), millis(*repeat_at)])?;
    for alert in joined {
        to.prepare_cached("INSERT INTO group_alert (receiver, key, alert) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
            .execute(params![receiver.as_str(), key, alert.as_str()])?;
    }
    for alert in left {
        to.prepare_cached("DELETE FROM group_alert WHERE receiver = ?1 AND key = ?2 AND alert = ?3")?.execute(params![
            receiver.as_str(),
            key,
            alert.as_str()
        ])?;
    }
    Ok(())
}

const PENDING_COLUMNS: &str = "t.no, t.notification, t.alert, t.receiver, t.kind, t.is_end, t.labels, t.since, \
     EXISTS (SELECT 1 FROM alert a WHERE a.id = t.alert AND a.state = 'firing'), t.severity, t.value, t.due_at";

/// The number of [`PENDING_COLUMNS`].
const PENDING_COLUMN_COUNT: usize = 12;

/// Returns a condition on `pending_notification t` that matches at most about [`MAX_PENDING`] rows. If more rows match
/// `which`, it keeps the alerts with the highest severity and the newest alerts, so that a backlog does not delay
/// urgent or new alerts.
fn capped_filter(from: &Transaction<'_>, which: &str) -> Result<String, StoreFault> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM pending_notification t WHERE {which} LIMIT {MAX_PENDING} + 1) few");
    let count: i64 = from.prepare_cached(&sql)?.query_row([], |row| row.get(0))?;
    if usize::try_from(count).unwrap_or(usize::MAX) <= MAX_PENDING {
        return Ok(which.to_owned());
    }
    let half = MAX_PENDING / 2;
    Ok(format!(
        "{which} AND t.alert IN (SELECT alert FROM (SELECT t.alert FROM pending_notification t WHERE {which} ORDER BY t.severity DESC, t.no LIMIT {half}) most_severe
         UNION SELECT alert FROM (SELECT t.alert FROM pending_notification t WHERE {which} ORDER BY t.no DESC LIMIT {half}) newest)"
    ))
}

fn waiting(from: &Transaction<'_>) -> Result<Vec<PendingNotification>, StoreFault> {
    let which = capped_filter(from, "t.state = 'waiting'")?;
    let sql = format!("SELECT {PENDING_COLUMNS} FROM pending_notification t WHERE {which} ORDER BY t.no");
    let mut rows = all(&mut *from.prepare_cached(&sql)?, [], pending_row)?;
    for row in rows.iter_mut().filter(|row| row.is_end) {
        row.was_notified = was_notified(from, row)?;
        row.suppressed_before = if row.was_notified { None } else { suppressed_before(from, row)? };
    }
    acknowledged(from, &mut rows)?;
    Ok(rows)
}

/// Fills in the acknowledgements of reminders.
fn acknowledged(from: &Transaction<'_>, rows: &mut [PendingNotification]) -> Result<(), StoreFault> {
    let has_acks: bool = from.prepare_cached("SELECT EXISTS (SELECT 1 FROM ack)")?.query_row([], |row| row.get(0))?;
    for row in rows.iter_mut().filter(|row| has_acks && row.kind == NotificationKind::Reminder) {
        row.acknowledged = readable(acknowledgement(from, row))?.flatten();
    }
    Ok(())
}

fn pending_row(row: &Row<'_>) -> Result<PendingNotification, StoreFault> {
    let notice: String = row.get(1)?;
    let (kind, labels): (String, String) = (row.get(4)?, row.get(6)?);
    let severity =
        usize::try_from(row.get::<i64>(9)?).ok().and_then(|severity| Severity::ALL.get(severity).copied()).unwrap_or_default();
    Ok(PendingNotification {
        precedence: Precedence { severity, value: row.get(10)?, due: time(row.get(11)?) },
        no: row.get(0)?,
        alert: AlertId::from(row.get::<String>(2)?),
        receiver: ReceiverName::from(row.get::<String>(3)?),
        kind: readable(word("the kind of the message", &notice, &kind, NotificationKind::parse))?
            .unwrap_or(NotificationKind::Firing),
        is_end: row.get(5)?,
        // Without labels, a message is sent alone, and nothing suppresses it.
        labels: readable(from_json::<Labels>("the labels of the message", &notice, &labels))?.unwrap_or_default(),
        since: row.get::<Millis>(7)?.0,
        is_firing: row.get(8)?,
        suppression: None,
        is_superseded: false,
        was_notified: false,
        suppressed_before: None,
        acknowledged: None,
        notice: NotificationId::from(notice),
    })
}

/// Returns suppressed notifications that are not settled. The index is forced because SQLite would otherwise scan all
/// alerts.
fn suppressed(from: &Transaction<'_>) -> Result<Vec<PendingNotification>, StoreFault> {
    let which = capped_filter(from, "t.state <> 'waiting' AND t.settled = 0")?;
    let indexed = from.engine().indexed_by("pending_notification_suppressed");
    let sql = format!(
        "SELECT {PENDING_COLUMNS}, t.state, t.suppressed_by,
         EXISTS (SELECT 1 FROM pending_notification u WHERE u.alert = t.alert AND u.receiver = t.receiver AND u.no > t.no)
         OR EXISTS (SELECT 1 FROM notification m JOIN notification n ON n.alert = m.alert JOIN delivery_notification d ON d.notification = n.id
                    WHERE m.id = t.notification AND d.receiver = t.receiver AND n.at > m.at)
         FROM pending_notification t {indexed} WHERE {which} ORDER BY t.no"
    );
    let mut rows = all_readable(&mut *from.prepare_cached(&sql)?, [], |row| {
        let pending = pending_row(row)?;
        let suppression = suppression(row, PENDING_COLUMN_COUNT, pending.alert.as_str())?;
        Ok(PendingNotification { suppression: Some(suppression), is_superseded: row.get(PENDING_COLUMN_COUNT + 2)?, ..pending })
    })?;
    acknowledged(from, &mut rows)?;
    Ok(rows)
}

/// Reads the suppression of a row from the columns `state, suppressed_by`, starting at `first`.
fn suppression(row: &Row<'_>, first: usize, alert: &str) -> Result<Suppression, StoreFault> {
    let state: String = row.get(first)?;
    let by = word("the state of a message about", alert, &state, Suppressor::parse)?;
    Ok(Suppression { by, id: row.get(first + 1)? })
}

/// Returns whether the receiver got any notification of the resolved alert.
fn was_notified(from: &Transaction<'_>, end: &PendingNotification) -> Result<bool, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM notification n JOIN delivery_notification d ON d.notification = n.id WHERE n.alert = ?1 AND d.receiver = ?2)",
    )?;
    Ok(statement.query_row(params![end.alert.as_str(), end.receiver.as_str()], |row| row.get(0))?)
}

/// Returns what suppressed the last notification before the resolution of an alert, except for those that the receiver does not want.
fn suppressed_before(from: &Transaction<'_>, end: &PendingNotification) -> Result<Option<Suppression>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT state, suppressed_by FROM pending_notification WHERE alert = ?1 AND receiver = ?2 AND no < ?3 AND state NOT IN ('waiting', 'unwanted') ORDER BY no DESC LIMIT 1",
    )?;
    let values = params![end.alert.as_str(), end.receiver.as_str(), end.no];
    one(&mut statement, values, |row| suppression(row, 0, end.alert.as_str()))
}

/// Returns the acknowledgement of a reminder's alert, and the fact that the reminder contains.
fn acknowledgement(from: &Transaction<'_>, row: &PendingNotification) -> Result<Option<(Ack, SilenceFact)>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT k.alert, k.author, k.comment, k.at, k.fact, a.level, n.body FROM ack k JOIN alert a ON a.id = k.alert
         JOIN notification n ON n.id = ?2 WHERE k.alert = ?1",
    )?;
    one(&mut statement, params![row.alert.as_str(), row.notice.as_str()], |found| {
        let ack = ack(found)?;
        let level = found.get::<Option<i64>>(5)?.map(small);
        let body: AlertBody = from_json("the body of the notification", row.notice.as_str(), &found.get::<String>(6)?)?;
        Ok((ack, SilenceFact::notified(level, &body)))
    })
}

/// The lookups of a pass. `fault` is the first error.
struct StoreLookup<'a> {
    from: &'a Transaction<'a>,
    now: Timestamp,
    fault: RefCell<Option<StoreFault>>,
}

impl StoreLookup<'_> {
    fn found<T: Default>(&self, found: Result<T, StoreFault>) -> T {
        found.unwrap_or_else(|fault| {
            self.fault.borrow_mut().get_or_insert(fault);
            T::default()
        })
    }
}

impl PendingLookup for StoreLookup<'_> {
    fn firing(&self) -> Cow<'_, [FiringAlert]> {
        Cow::Owned(self.found(firing(self.from)))
    }

    fn notified_at(&self, receiver: &ReceiverName, key: &str) -> Option<Timestamp> {
        self.found(notified_at(self.from, receiver, key))
    }

    fn notified_and_firing(&self, receiver: &ReceiverName, key: &str) -> Vec<AlertId> {
        self.found(notified_and_firing(self.from, receiver, key))
    }

    fn usage(&self, receiver: &ReceiverName) -> ReceiverUsage {
        self.found(usage(self.from, receiver, self.now))
    }
}

fn firing(from: &Transaction<'_>) -> Result<Vec<FiringAlert>, StoreFault> {
    let mut statement = from.prepare_cached(&format!(
        "SELECT id, {} ->> '$.labels' FROM alert WHERE state = 'firing' ORDER BY starts_at, id",
        from.engine().json("body")
    ))?;
    all_readable(&mut statement, [], |row| {
        let id: String = row.get(0)?;
        let labels: String = row.get::<Option<String>>(1)?.unwrap_or_default();
        Ok(FiringAlert { labels: from_json("the labels of the alert", &id, &labels)?, id: AlertId::from(id) })
    })
}

fn notified_at(from: &Transaction<'_>, receiver: &ReceiverName, key: &str) -> Result<Option<Timestamp>, StoreFault> {
    let mut statement = from.prepare_cached("SELECT notified_at FROM notification_group WHERE receiver = ?1 AND key = ?2")?;
    one(&mut statement, params![receiver.as_str(), key], |row| Ok(row.get::<Millis>(0)?.0))
}

fn notified_and_firing(from: &Transaction<'_>, receiver: &ReceiverName, key: &str) -> Result<Vec<AlertId>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT m.alert FROM group_alert m JOIN alert a ON a.id = m.alert WHERE m.receiver = ?1 AND m.key = ?2 AND a.state = 'firing'",
    )?;
    all(&mut statement, params![receiver.as_str(), key], |row| Ok(AlertId::from(row.get::<String>(0)?)))
}

fn usage(from: &Transaction<'_>, receiver: &ReceiverName, now: Timestamp) -> Result<ReceiverUsage, StoreFault> {
    // After a clock was set back, deliveries from the future must not use up the hourly limit.
    let mut statement = from.prepare_cached(
        "SELECT count(*), min(created_at), count(CASE WHEN created_at > ?3 THEN 1 END) FROM delivery
         WHERE receiver = ?1 AND created_at > ?2 AND created_at <= ?4 AND shape <> 'summary'",
    )?;
    let (hour, burst) = (now - HOUR, now - BURST_WINDOW);
    let (last_hour, oldest, recent) = statement
        .query_row(params![receiver.as_str(), Millis(hour), Millis(burst), Millis(now)], |row| {
            Ok((row.get::<i64>(0)?, row.get::<Option<Millis>>(1)?, row.get::<i64>(2)?))
        })?;
    let last = |shape: BatchKind| -> Result<Option<Timestamp>, StoreFault> {
        let mut statement = from.prepare_cached(
            "SELECT max(created_at) FROM delivery WHERE receiver = ?1 AND created_at > ?2 AND created_at <= ?3 AND shape = ?4",
        )?;
        let values = params![receiver.as_str(), Millis(hour), Millis(now), shape.as_str()];
        Ok(time(statement.query_row(values, |row| row.get(0))?))
    };
    let is_new = from
        .prepare_cached(
            "SELECT NOT EXISTS (
                 SELECT 1 FROM delivery v JOIN delivery_notification d ON d.delivery_no = v.no JOIN notification n ON n.id = d.notification
                 WHERE v.receiver = ?1 AND v.created_at <= ?2 AND n.kind NOT IN (?3, ?4, ?5))",
        )?
        .query_row(
            params![
                receiver.as_str(),
                Millis(hour),
                NotificationKind::Test.as_str(),
                NotificationKind::Source.as_str(),
                NotificationKind::Digest.as_str(),
            ],
            |row| row.get(0),
        )?;
    Ok(ReceiverUsage {
        is_new,
        last_hour: small(last_hour),
        oldest: time(oldest),
        recent: small(recent),
        batched_at: last(BatchKind::Batch)?,
        summed_at: last(BatchKind::Summary)?,
    })
}

/// Creates deliveries and deletes the pending notifications that they contain.
fn deliver(to: &Transaction<'_>, deliveries: &[NewDelivery], now: Timestamp) -> Result<(), StoreFault> {
    let queried = deliveries.iter().map(|delivery| Ok((delivery, delivery_row(to, delivery, now)?)));
    let mut rows = Vec::new();
    for (delivery, number) in queried.collect::<Result<Vec<_>, StoreFault>>()? {
        let number: i64 = number.row(|row| row.get(0))?;
        for (ordinal, (no, notice, role)) in (0_i64..).zip(delivery.rows()) {
            rows.push(row_of(params![number, ordinal, notice.as_str(), delivery.receiver.as_str(), role.as_str()])?);
            to.prepare_cached("DELETE FROM pending_notification WHERE no = ?1")?.execute([no])?;
        }
    }
    Ok(to.insert_many("delivery_notification", &DELIVERY_NOTIFICATION_COLUMNS, rows)?)
}

/// Inserts a delivery. Returns its number.
fn delivery_row<'a>(to: &Transaction<'a>, delivery: &NewDelivery, now: Timestamp) -> Result<PendingQuery<'a>, StoreFault> {
    let NewDelivery { receiver, batch, .. } = delivery;
    let written = if *batch == Batch::default() { None } else { Some(json("the batch of a delivery", batch)?) };
    let mut statement = to.prepare_cached(
        "INSERT INTO delivery (webhook_id, receiver, state, attempts, tries, created_at, due_at, next_attempt_at, updated_at, shape, batch)
         VALUES (?1, ?2, ?3, 0, 0, ?4, ?4, ?4, ?4, ?5, ?6) RETURNING no",
    )?;
    Ok(statement.send_query(params![
        webhook_id(delivery.rows().map(|(_, notice, _)| notice.as_str()), receiver),
        receiver.as_str(),
        DeliveryState::Due.as_str(),
        Millis(now),
        batch.shape.as_str(),
        written,
    ])?)
}

fn repeats(from: &Transaction<'_>, now: Timestamp) -> Result<Vec<RepeatGroup>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, key FROM notification_group WHERE repeat_at IS NOT NULL AND repeat_at <= ?1 ORDER BY repeat_at, receiver, key LIMIT ?2",
    )?;
    let groups = all(&mut statement, params![Millis(now), MAX_REPEATS], |row| {
        Ok((ReceiverName::from(row.get::<String>(0)?), row.get::<String>(1)?))
    })?;
    let sql = format!(
        "SELECT {ALERT_COLUMNS}, EXISTS (SELECT 1 FROM ack k WHERE k.alert = a.id)
         FROM group_alert m JOIN alert a ON a.id = m.alert LEFT JOIN token t ON t.no = a.token_no
         WHERE m.receiver = ?1 AND m.key = ?2 AND a.state = 'firing' ORDER BY a.starts_at, a.id"
    );
    groups
        .into_iter()
        .map(|(receiver, key)| {
            let mut statement = from.prepare_cached(&sql)?;
            let found = all_readable(&mut statement, params![receiver.as_str(), key], |row| {
                Ok((rows::alert(row)?, row.get::<bool>(ALERT_COLUMN_COUNT)?))
            })?;
            let mut alerts = Vec::with_capacity(found.len());
            for (alert, is_acknowledged) in found {
                let mut statement = from.prepare_cached(
                    "SELECT id, alert, kind, at, receivers, body, series FROM notification WHERE alert = ?1 ORDER BY at DESC, id LIMIT 1",
                )?;
                if let Some(last) = readable(one(&mut statement, [alert.id.as_str()], notification))?.flatten() {
                    alerts.push(RepeatAlert { alert, last, is_acknowledged });
                }
            }
            Ok(RepeatGroup { receiver, key, alerts })
        })
        .collect()
}

fn commit_repeats(to: &Transaction<'_>, repeats: &Repeats, now: Timestamp) -> Result<(), StoreFault> {
    let recorder = CommitWriter::new(to, now, NotificationTarget::Dispatcher);
    recorder.notifications(&repeats.notifications, &mut CommitResult::default())?;
    for (receiver, key, repeat_at) in &repeats.groups {
        to.prepare_cached("UPDATE notification_group SET repeat_at = ?3 WHERE receiver = ?1 AND key = ?2")?.execute(params![
            receiver.as_str(),
            key,
            millis(*repeat_at)
        ])?;
    }
    Ok(())
}
