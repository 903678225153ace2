//! The outbox as an operator sees it, and what is done to it by hand beside a running daemon.

use rusqlite::params;

use super::notifications;
use crate::codec::{Conditions, Millis, all, counted, list, one, small, time, word};
use crate::error::StoreFault;
use crate::query::at;
use crate::sql::{Row, Transaction};
use crate::{Store, StoreError};
use model::{
    AlertId, Attempt, AttemptOutcome, BatchKind, DeliveryId, DeliveryState, Listed, Notification, NotificationRole, OutboxAlert,
    OutboxDetail, OutboxFilter, OutboxRow, ReceiverName, Timestamp, cut_summary,
};

impl Store {
    /// Deliveries for `outbox list`, the newest first.
    pub async fn outbox(&self, filter: OutboxFilter) -> Result<Vec<OutboxRow>, StoreError> {
        self.read("read the outbox", move |from| outbox(from, &filter)).await
    }

    /// Deliveries as [`Self::outbox`] has them, and how many there are in all.
    pub async fn outbox_listed(&self, filter: OutboxFilter) -> Result<Listed<OutboxRow>, StoreError> {
        let read = move |from: &Transaction<'_>| Ok(Listed { total: outbox_total(from, &filter)?, rows: outbox(from, &filter)? });
        self.read("list the outbox", read).await
    }

    /// The deliveries that tell of one of these alerts, the oldest first.
    pub async fn deliveries_of(&self, alerts: Vec<AlertId>) -> Result<Vec<OutboxRow>, StoreError> {
        self.read("read the deliveries of alerts", move |from| deliveries_of(from, &alerts)).await
    }

    /// One delivery with its attempts and what it tells; none where there is no such row.
    pub async fn outbox_one(&self, id: DeliveryId) -> Result<Option<OutboxDetail>, StoreError> {
        self.read("read a delivery", move |from| outbox_one(from, id)).await
    }

    /// Makes deliveries due at `now`, with the retry schedule begun anew and the same webhook id; answers how many. What was
    /// delivered stays as it is.
    pub async fn retry_at(&self, ids: Vec<DeliveryId>, now: Timestamp) -> Result<usize, StoreError> {
        self.act("make deliveries due again", move |to| retry(to, &ids, now)).await
    }

    /// Takes deliveries out that are due, retrying or dead, as of the time at which the store was opened; answers how many.
    pub async fn drop_deliveries(&self, ids: Vec<DeliveryId>) -> Result<usize, StoreError> {
        self.drop_at(ids, self.0.opened_at).await
    }

    /// As [`Self::drop_deliveries`], as of `now`.
    pub async fn drop_at(&self, ids: Vec<DeliveryId>, now: Timestamp) -> Result<usize, StoreError> {
        self.act("drop deliveries", move |to| drop_deliveries(to, &ids, now)).await
    }
}

const ROW_COLUMNS: &str = "no, webhook_id, receiver, state, attempts, next_attempt_at, last_answer, created_at, delivered_at, shape, CAST(bundle ->> '$.truncated' AS BIGINT) FROM delivery";

/// What a filter asks for, without the place at which the list begins.
fn conditions(filter: &OutboxFilter) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.and_some("receiver = ?", filter.receiver.as_ref().map(|name| name.as_str().to_owned()));
    if !filter.states.is_empty() {
        conditions.and("state IN (SELECT value FROM json_each(?))", list(filter.states.iter().map(|state| state.as_str())));
    }
    conditions.and_some("created_at >= ?", filter.since.map(at)).and_some("created_at < ?", filter.until.map(at));
    conditions
}

/// Of a time, the index of times has all that is asked for; whatever else is asked would be looked up row by row.
fn by_time(filter: &OutboxFilter) -> &'static str {
    if filter.since.or(filter.until).is_some() { "INDEXED BY delivery_age" } else { "" }
}

fn outbox_total(from: &Transaction<'_>, filter: &OutboxFilter) -> Result<u64, StoreFault> {
    let (sql, values) = conditions(filter).within(&format!("SELECT count(*) FROM delivery {}", by_time(filter)), "");
    Ok(one(&mut from.prepare(&sql)?, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0))
}

fn outbox(from: &Transaction<'_>, filter: &OutboxFilter) -> Result<Vec<OutboxRow>, StoreFault> {
    let mut conditions = conditions(filter);
    conditions.and_some("no < ?", filter.after.map(|after| after.0));
    let tail = format!(" ORDER BY no DESC LIMIT {}", filter.limit);
    // Of a time, the index alone says which they are; the rows themselves are read once that is known.
    let (head, tail) = match filter.since.or(filter.until) {
        None => (format!("SELECT {ROW_COLUMNS}"), tail),
        Some(_) => (
            format!("SELECT {ROW_COLUMNS} WHERE no IN (SELECT no FROM delivery {}", by_time(filter)),
            format!("{tail}) ORDER BY no DESC"),
        ),
    };
    let (sql, values) = conditions.within(&head, &tail);
    let rows = all(&mut from.prepare(&sql)?, values, outbox_row)?;
    rows.into_iter()
        .map(|mut row| {
            row.alerts = notifications(from, row.id, NotificationRole::Notified)?.iter().map(outbox_alert).collect();
            Ok(row)
        })
        .collect()
}

/// The deliveries that tell of one of these alerts, the oldest first.
fn deliveries_of(from: &Transaction<'_>, alerts: &[AlertId]) -> Result<Vec<OutboxRow>, StoreFault> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} WHERE no IN (SELECT d.delivery_no FROM delivery_notice d JOIN notice n ON n.id = d.notice
             WHERE n.alert IN (SELECT value FROM json_each(?1))) ORDER BY no"
    );
    let rows = all(&mut *from.prepare_cached(&sql)?, [list(alerts.iter().map(AlertId::as_str))], outbox_row)?;
    rows.into_iter()
        .map(|mut row| {
            row.alerts = notifications(from, row.id, NotificationRole::Notified)?.iter().map(outbox_alert).collect();
            Ok(row)
        })
        .collect()
}

fn outbox_row(row: &Row<'_>) -> Result<OutboxRow, StoreFault> {
    let id = DeliveryId(row.get(0)?);
    let state: String = row.get(3)?;
    Ok(OutboxRow {
        id,
        webhook_id: row.get(1)?,
        receiver: ReceiverName::from(row.get::<_, String>(2)?),
        state: word("the state of the delivery", &id.to_string(), &state, DeliveryState::parse)?,
        attempts: small(row.get(4)?),
        next_attempt_at: time(row.get(5)?),
        last_answer: row.get(6)?,
        created_at: row.get::<_, Millis>(7)?.0,
        delivered_at: time(row.get(8)?),
        shape: word("the shape of the delivery", &id.to_string(), &row.get::<_, String>(9)?, BatchKind::parse)?,
        truncated_alerts: small(row.get::<_, Option<i64>>(10)?.unwrap_or(0)),
        alerts: Vec::new(),
    })
}

fn outbox_alert(notification: &Notification) -> OutboxAlert {
    let summary = notification.body.annotations.get("summary").map_or("", String::as_str);
    OutboxAlert {
        id: notification.alert.as_str().to_owned(),
        notice: notification.id.clone(),
        kind: notification.kind,
        rule: notification.body.rule.clone(),
        token: notification.body.token.as_ref().map(|token| token.id.clone()),
        summary: cut_summary(summary),
    }
}

fn outbox_one(from: &Transaction<'_>, id: DeliveryId) -> Result<Option<OutboxDetail>, StoreFault> {
    let row = one(&mut *from.prepare_cached(&format!("SELECT {ROW_COLUMNS} WHERE no = ?1"))?, [id.0], outbox_row)?;
    let Some(mut row) = row else { return Ok(None) };
    let only_counted = notifications(from, id, NotificationRole::Counted)?.iter().map(outbox_alert).collect();
    let notifications = notifications(from, id, NotificationRole::Notified)?;
    row.alerts = notifications.iter().map(outbox_alert).collect();
    let mut statement =
        from.prepare_cached("SELECT at, took_ms, outcome, status, answer FROM attempt WHERE delivery_no = ?1 ORDER BY no")?;
    let attempts = all(&mut statement, [id.0], |row| {
        Ok(Attempt {
            at: row.get::<_, Millis>(0)?.0,
            took_ms: counted(row.get(1)?),
            outcome: word("the outcome of an attempt at", &id.to_string(), &row.get::<_, String>(2)?, AttemptOutcome::parse)?,
            status: row.get(3)?,
            answer: row.get(4)?,
        })
    })?;
    Ok(Some(OutboxDetail { row, attempts, notifications, counted: only_counted }))
}

/// Makes deliveries due again, with the schedule of retries begun anew; what was delivered stays so.
fn retry(to: &Transaction<'_>, ids: &[DeliveryId], now: Timestamp) -> Result<usize, StoreFault> {
    let mut statement = to.prepare_cached(
        "UPDATE delivery SET state = 'due', tries = 0, due_at = ?2, next_attempt_at = ?2, updated_at = ?2
         WHERE no = ?1 AND state <> 'delivered'",
    )?;
    ids.iter().try_fold(0, |done, id| Ok(done + statement.execute_counted(params![id.0, Millis(now)])?))
}

/// Takes deliveries out that were not accepted yet.
fn drop_deliveries(to: &Transaction<'_>, ids: &[DeliveryId], now: Timestamp) -> Result<usize, StoreFault> {
    let mut statement = to.prepare_cached(
        "UPDATE delivery SET state = 'dropped', next_attempt_at = NULL, updated_at = ?2
         WHERE no = ?1 AND state IN ('due', 'retrying', 'dead')",
    )?;
    ids.iter().try_fold(0, |done, id| Ok(done + statement.execute_counted(params![id.0, Millis(now)])?))
}
