//! Lists of deliveries for operators, and manual actions on them.

use std::collections::HashMap;

use rusqlite::params;

use super::notifications;
use super::replay::replay;
use crate::codec::{Conditions, Millis, all, counted, list, one, one_of_words, small, time, word};
use crate::error::StoreFault;
use crate::event_log::log_delivery_event;
use crate::list_limits::{in_chunks, json_bytes};
use crate::query::at;
use crate::sql::{Engine, Row, Statement, Transaction};
use crate::{Store, StoreError};
use model::{
    AlertId, Attempt, AttemptOutcome, BatchKind, DeliveryId, DeliveryState, EndedDelivery, EventType, ListPosition, Listed,
    NotificationId, NotificationKind, NotificationRole, OutboxAlert, OutboxDetail, OutboxFilter, OutboxRow, ReceiverName,
    Timestamp, cut_summary,
};

impl Store {
    /// Returns deliveries, newest first.
    pub async fn outbox(&self, filter: OutboxFilter) -> Result<Vec<OutboxRow>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("read the outbox", move |from| Ok(outbox(from, &filter, max_bytes)?.0)).await
    }

    /// Returns deliveries like [`Self::outbox`], with the total count.
    pub async fn outbox_listed(&self, filter: OutboxFilter) -> Result<Listed<OutboxRow>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("list the outbox", move |from| {
            let (rows, is_cut) = outbox(from, &filter, max_bytes)?;
            Ok(Listed { rows, total: outbox_total(from, &filter)?, is_cut })
        })
        .await
    }

    /// Returns the numbers of deliveries, newest first.
    pub async fn delivery_ids(&self, filter: OutboxFilter) -> Result<Vec<DeliveryId>, StoreError> {
        self.read("read the numbers of deliveries", move |from| delivery_ids(from, &filter)).await
    }

    /// Returns the deliveries that contain one of these alerts, oldest first.
    pub async fn deliveries_of(&self, alerts: Vec<AlertId>) -> Result<Vec<OutboxRow>, StoreError> {
        self.read("read the deliveries of alerts", move |from| deliveries_of(from, &alerts)).await
    }

    /// Returns a delivery with its attempts and notifications, or `None` if it does not exist.
    pub async fn outbox_one(&self, id: DeliveryId) -> Result<Option<OutboxDetail>, StoreError> {
        self.read("read a delivery", move |from| outbox_one(from, id)).await
    }

    /// Makes deliveries due at `now` and restarts their retry schedule. The webhook id stays the same. Skips delivered
    /// ones. Returns the number changed.
    pub async fn retry_at(&self, ids: Vec<DeliveryId>, now: Timestamp) -> Result<usize, StoreError> {
        self.act("make deliveries due again", move |to| retry(to, &ids, now)).await
    }

    /// Drops pending and dead deliveries, as of the time at which the store was opened. Returns the number dropped.
    pub async fn drop_deliveries(&self, ids: Vec<DeliveryId>) -> Result<usize, StoreError> {
        self.drop_at(ids, self.handle.opened_at).await
    }

    /// Like [`Self::drop_deliveries`], as of `now`.
    pub async fn drop_at(&self, ids: Vec<DeliveryId>, now: Timestamp) -> Result<usize, StoreError> {
        self.act("drop deliveries", move |to| drop_deliveries(to, &ids, now)).await
    }
}

const ROW_COLUMNS: &str = "no, webhook_id, receiver, state, attempts, next_attempt_at, last_response, created_at, delivered_at, shape, \
     CAST(batch ->> '$.truncated' AS BIGINT), replayed_at, first_delivered_at FROM delivery";

/// Returns the conditions of a filter, without its position.
fn conditions(filter: &OutboxFilter) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.and_some("receiver = ?", filter.receiver.as_ref().map(|name| name.as_str().to_owned()));
    if !filter.states.is_empty() {
        conditions.and_plain(&one_of_words("state", filter.states.iter().map(|state| state.as_str())));
    }
    conditions.and_some("created_at >= ?", filter.since.map(at)).and_some("created_at < ?", filter.until.map(at));
    conditions
}

/// Forces the index on the creation time, which covers all filter columns.
fn by_time(engine: Engine, filter: &OutboxFilter) -> String {
    filter.since.or(filter.until).map(|_| engine.indexed_by("delivery_age")).unwrap_or_default()
}

fn outbox_total(from: &Transaction<'_>, filter: &OutboxFilter) -> Result<u64, StoreFault> {
    let (sql, values) =
        conditions(filter).within(&format!("SELECT count(*) FROM delivery {}", by_time(from.engine(), filter)), "");
    Ok(one(&mut from.prepare(&sql)?, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0))
}

fn delivery_ids(from: &Transaction<'_>, filter: &OutboxFilter) -> Result<Vec<DeliveryId>, StoreFault> {
    let mut conditions = conditions(filter);
    conditions.and_some("no < ?", filter.position.after).and_some("no > ?", filter.position.before);
    let (sql, values) = conditions.within("SELECT no FROM delivery", &format!(" ORDER BY no DESC LIMIT {}", filter.limit));
    all(&mut from.prepare(&sql)?, values, |row| Ok(DeliveryId(row.get(0)?)))
}

/// Returns deliveries, and whether the size limit left out any.
fn outbox(from: &Transaction<'_>, filter: &OutboxFilter, max_bytes: usize) -> Result<(Vec<OutboxRow>, bool), StoreFault> {
    let (mut rows, is_cut) = in_chunks(filter.limit, max_bytes, |last: Option<&OutboxRow>, limit| {
        let position = last.map_or(filter.position, |row| filter.position.past(row.id.0));
        let rows = outbox_chunk(from, filter, position, limit)?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let bytes = json_bytes(&row.alerts) + ROW_BYTES;
                (row, bytes)
            })
            .collect())
    })?;
    if filter.position.is_from_before() {
        rows.reverse();
    }
    Ok((rows, is_cut))
}

/// The approximate size of a delivery without its alerts, in bytes.
const ROW_BYTES: usize = 500;

/// Reads deliveries from the start of the limit in one statement, and their alerts.
fn outbox_chunk(
    from: &Transaction<'_>,
    filter: &OutboxFilter,
    position: ListPosition,
    limit: u32,
) -> Result<Vec<OutboxRow>, StoreFault> {
    let mut conditions = conditions(filter);
    conditions.and_some("no < ?", position.after).and_some("no > ?", position.before);
    let order = if position.is_from_before() { "ASC" } else { "DESC" };
    let tail = format!(" ORDER BY no {order} LIMIT {limit}");
    // With a time range, the index alone selects the rows, and only the selected rows are read.
    let (head, tail) = match filter.since.or(filter.until) {
        None => (format!("SELECT {ROW_COLUMNS}"), tail),
        Some(_) => (
            format!("SELECT {ROW_COLUMNS} WHERE no IN (SELECT no FROM delivery {}", by_time(from.engine(), filter)),
            format!("{tail}) ORDER BY no {order}"),
        ),
    };
    let (sql, values) = conditions.within(&head, &tail);
    let rows = all(&mut from.prepare(&sql)?, values, outbox_row)?;
    with_alerts(from, rows)
}

/// Adds the notified alerts to deliveries, in one statement.
fn with_alerts(from: &Transaction<'_>, mut rows: Vec<OutboxRow>) -> Result<Vec<OutboxRow>, StoreFault> {
    let mut alerts = outbox_alerts(from, rows.iter().map(|row| row.id), NotificationRole::Notified)?;
    for row in &mut rows {
        row.alerts = alerts.remove(&row.id).unwrap_or_default();
    }
    Ok(rows)
}

/// Reads the alerts of deliveries in a role, without the bodies of their notifications.
fn outbox_alerts(
    from: &Transaction<'_>,
    deliveries: impl Iterator<Item = DeliveryId>,
    role: NotificationRole,
) -> Result<HashMap<DeliveryId, Vec<OutboxAlert>>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT d.delivery_no, n.id, n.alert, n.kind, n.body ->> '$.rule', n.body ->> '$.token.id', n.body ->> '$.annotations.summary'
         FROM delivery_notification d JOIN notification n ON n.id = d.notification
         WHERE d.delivery_no IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND d.role = ?2 ORDER BY d.delivery_no, d.ordinal",
    )?;
    let numbers = serde_json::Value::from(deliveries.map(|id| id.0).collect::<Vec<_>>()).to_string();
    let of = all(&mut statement, params![numbers, role.as_str()], |row| {
        let (id, kind): (String, String) = (row.get(1)?, row.get(3)?);
        let summary: Option<String> = row.get(6)?;
        let alert = OutboxAlert {
            id: row.get(2)?,
            kind: word("the kind of the notification", &id, &kind, NotificationKind::parse)?,
            rule: row.get::<Option<String>>(4)?.unwrap_or_default(),
            token: row.get(5)?,
            summary: cut_summary(&summary.unwrap_or_default()),
            notice: NotificationId::from(id),
        };
        Ok((DeliveryId(row.get(0)?), alert))
    })?;
    let mut by_delivery: HashMap<DeliveryId, Vec<OutboxAlert>> = HashMap::new();
    for (delivery, alert) in of {
        by_delivery.entry(delivery).or_default().push(alert);
    }
    Ok(by_delivery)
}

fn deliveries_of(from: &Transaction<'_>, alerts: &[AlertId]) -> Result<Vec<OutboxRow>, StoreFault> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} WHERE no IN (SELECT d.delivery_no FROM delivery_notification d JOIN notification n ON n.id = d.notification
             WHERE n.alert IN (SELECT value FROM json_each(?1))) ORDER BY no"
    );
    let rows = all(&mut *from.prepare_cached(&sql)?, [list(alerts.iter().map(AlertId::as_str))], outbox_row)?;
    with_alerts(from, rows)
}

fn outbox_row(row: &Row<'_>) -> Result<OutboxRow, StoreFault> {
    let id = DeliveryId(row.get(0)?);
    let state: String = row.get(3)?;
    Ok(OutboxRow {
        id,
        webhook_id: row.get(1)?,
        receiver: ReceiverName::from(row.get::<String>(2)?),
        state: word("the state of the delivery", &id.to_string(), &state, DeliveryState::parse)?,
        attempts: small(row.get(4)?),
        next_attempt_at: time(row.get(5)?),
        last_response: row.get(6)?,
        created_at: row.get::<Millis>(7)?.0,
        delivered_at: time(row.get(8)?),
        shape: word("the shape of the delivery", &id.to_string(), &row.get::<String>(9)?, BatchKind::parse)?,
        truncated_alerts: small(row.get::<Option<i64>>(10)?.unwrap_or(0)),
        replay: replay(row, 11)?,
        alerts: Vec::new(),
    })
}

fn outbox_one(from: &Transaction<'_>, id: DeliveryId) -> Result<Option<OutboxDetail>, StoreFault> {
    let row = one(&mut *from.prepare_cached(&format!("SELECT {ROW_COLUMNS} WHERE no = ?1"))?, [id.0], outbox_row)?;
    let Some(row) = with_alerts(from, row.into_iter().collect())?.pop() else { return Ok(None) };
    let only_counted = outbox_alerts(from, [id].into_iter(), NotificationRole::Counted)?.remove(&id).unwrap_or_default();
    let notifications = notifications(from, id, NotificationRole::Notified)?;
    let mut statement =
        from.prepare_cached("SELECT at, took_ms, outcome, status, response FROM attempt WHERE delivery_no = ?1 ORDER BY no")?;
    let attempts = all(&mut statement, [id.0], |row| {
        Ok(Attempt {
            at: row.get::<Millis>(0)?.0,
            took_ms: counted(row.get(1)?),
            outcome: word("the outcome of an attempt at", &id.to_string(), &row.get::<String>(2)?, AttemptOutcome::parse)?,
            status: row.get(3)?,
            response: row.get(4)?,
        })
    })?;
    Ok(Some(OutboxDetail { row, attempts, notifications, counted: only_counted }))
}

pub(crate) fn retry(to: &Transaction<'_>, ids: &[DeliveryId], now: Timestamp) -> Result<usize, StoreFault> {
    let mut statement = to.prepare_cached(&format!(
        "UPDATE delivery SET state = 'due', tries = 0, due_at = ?2, next_attempt_at = ?2, updated_at = ?2
         WHERE no = ?1 AND state <> 'delivered' {CHANGED}"
    ))?;
    change_each(&mut statement, to, ids, (EventType::DeliveryRetried, DeliveryState::Due), now)
}

/// The columns that [`change_each`] reads of a changed delivery.
const CHANGED: &str = "RETURNING webhook_id, receiver, replayed_at, first_delivered_at";

/// Runs a statement that changes a delivery for each of them, and adds the events. Returns the number that it changed.
fn change_each(
    statement: &mut Statement<'_>,
    to: &Transaction<'_>,
    ids: &[DeliveryId],
    (kind, state): (EventType, DeliveryState),
    now: Timestamp,
) -> Result<usize, StoreFault> {
    let mut changed = 0;
    for id in ids {
        let delivery = one(statement, params![id.0, Millis(now)], |row| {
            let (webhook_id, receiver) = (row.get(0)?, row.get::<String>(1)?.into());
            Ok(EndedDelivery { delivery: id.0, webhook_id, receiver, state, replay: replay(row, 2)? })
        })?;
        let Some(delivery) = delivery else { continue };
        log_delivery_event(to, now, kind, &delivery)?;
        changed += 1;
    }
    Ok(changed)
}

pub(crate) fn drop_deliveries(to: &Transaction<'_>, ids: &[DeliveryId], now: Timestamp) -> Result<usize, StoreFault> {
    let mut statement = to.prepare_cached(&format!(
        "UPDATE delivery SET state = 'dropped', next_attempt_at = NULL, updated_at = ?2
         WHERE no = ?1 AND state IN ('due', 'retrying', 'dead') {CHANGED}"
    ))?;
    change_each(&mut statement, to, ids, (EventType::DeliveryDropped, DeliveryState::Dropped), now)
}
