//! What became of notifications: where each stands, how many are held back, and what holds them.

use std::collections::HashMap;

use chrono::TimeDelta;
use rusqlite::types::Value;

use super::codec::{Conditions, Millis, all, counted, list, word};
use super::error::StoreFault;
use super::silence::{acks, silences};
use super::sql::Transaction;
use super::{Store, StoreError, cycle, opt_out};
use model::{
    AlertId, DeliveryId, NotificationFilter, NotificationId, NotificationKind, NotificationOverview, NotificationRole,
    NotificationState, NotificationStatus, ReceiverName, ReceiverStatus, SuppressedCount, Timestamp, cut_summary,
};

impl Store {
    /// What became of each notification: of one alert, or of all decided since then, in their order.
    pub async fn notification_statuses(&self, filter: NotificationFilter) -> Result<Vec<NotificationStatus>, StoreError> {
        self.read("read what became of notifications", move |from| notification_statuses(from, &filter)).await
    }

    /// Where each of these alerts stands with each receiver that something was to be told, in the order of the receivers.
    pub async fn receiver_statuses(&self, alerts: Vec<AlertId>) -> Result<HashMap<AlertId, Vec<ReceiverStatus>>, StoreError> {
        self.read("read who was told", move |from| receiver_statuses(from, &alerts)).await
    }

    /// What suppresses notifications at `now`, how many, and who stopped digests; counts of what was suppressed begin at `since`.
    pub async fn notification_overview(&self, now: Timestamp, since: Timestamp) -> Result<NotificationOverview, StoreError> {
        let read = move |from: &Transaction<'_>| {
            let mut digests = cycle::job_slots(from)?;
            digests.retain(|(name, _)| name.starts_with(model::digest::JOB_PREFIX));
            Ok(NotificationOverview {
                silences: silences(from, Some(now))?,
                acks: acks(from)?,
                held: suppressed_counts(from, since)?,
                opt_outs: opt_out::opt_outs(from, None)?,
                digests,
            })
        };
        self.read("read what suppresses notifications", read).await
    }
}

/// What was to be told to somebody and is in the outbox.
const IN_OUTBOX: &str =
    "SELECT n.id, n.alert, n.kind, n.at, n.body, d.receiver, v.state, d.role, v.no AS delivery, NULL AS holder
    FROM notice n JOIN delivery_notice d ON d.notice = n.id JOIN delivery v ON v.no = d.delivery_no UNION ALL";

/// What is in none: it waits, or is held back.
const IN_NONE: &str = "SELECT n.id, n.alert, n.kind, n.at, n.body, t.receiver, t.state, NULL AS role, CAST(NULL AS BIGINT) AS delivery, t.holder AS holder";

/// What nobody was named for.
const FOR_NOBODY: &str = "UNION ALL SELECT n.id, n.alert, n.kind, n.at, n.body, NULL, CASE WHEN n.body ->> '$.leftOutBy' IS NULL THEN 'nobody' ELSE 'limited' END,
    NULL, CAST(NULL AS BIGINT), NULL FROM notice n WHERE n.receivers = '[]'";

/// How far a clock may have been set back between a notice and what became of it.
const SLACK: TimeDelta = TimeDelta::days(1);

/// Everything that was to be told to somebody, and what became of it, as far as a filter may let it in: of a busy week nearly everything
/// was handed over, so that whoever asks for the rest begins with what waits or is held back.
fn statuses_of(filter: &NotificationFilter) -> String {
    let in_outbox = if filter.undelivered { "" } else { IN_OUTBOX };
    let for_nobody = if filter.receiver.is_some() { "" } else { FOR_NOBODY };
    let from = match filter.since.filter(|_| filter.undelivered) {
        Some(since) => {
            format!(
                "FROM telling t CROSS JOIN notice n WHERE n.id = t.notice AND t.since >= {}",
                since.checked_sub_signed(SLACK).unwrap_or(since).timestamp_millis()
            )
        }
        None => "FROM notice n JOIN telling t ON t.notice = n.id".to_owned(),
    };
    format!("WITH status AS ({in_outbox} {IN_NONE} {from} {for_nobody}) {COLUMNS}")
}

const COLUMNS: &str = "SELECT id, alert, kind, at, body ->> '$.rule', body ->> '$.annotations.summary', receiver, state, role, delivery, holder FROM status";

fn notification_statuses(from: &Transaction<'_>, filter: &NotificationFilter) -> Result<Vec<NotificationStatus>, StoreFault> {
    let mut conditions = Conditions::default();
    conditions
        .and_some("alert = ?", filter.alert.as_ref().map(|id| id.as_str().to_owned()))
        .and_some("receiver = ?", filter.receiver.as_ref().map(|name| name.as_str().to_owned()))
        .and_some("at >= ?", filter.since.map(|at| Value::Integer(at.timestamp_millis())));
    if filter.undelivered {
        use NotificationState::{Acknowledged, Inhibited, Limited, Nobody, Silenced, Waiting};
        let states = [Waiting, Silenced, Inhibited, Acknowledged, Nobody, Limited].map(NotificationState::as_str);
        conditions.and("state IN (SELECT value FROM json_each(?))", list(states));
    }
    let (sql, values) = conditions.within(&statuses_of(filter), &format!(" ORDER BY at, id, receiver LIMIT {}", filter.limit));
    all(&mut from.prepare(&sql)?, values, |row| {
        let summary: Option<String> = row.get(5)?;
        let id: String = row.get(0)?;
        Ok(NotificationStatus {
            alert: AlertId::from(row.get::<_, String>(1)?),
            kind: word("the kind of the notice", &id, &row.get::<_, String>(2)?, NotificationKind::parse)?,
            at: row.get::<_, Millis>(3)?.0,
            rule: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
            summary: cut_summary(summary.as_deref().unwrap_or_default()),
            receiver: row.get::<_, Option<String>>(6)?.map(ReceiverName::from),
            state: word("the state of the notice", &id, &row.get::<_, String>(7)?, NotificationState::parse)?,
            role: row
                .get::<_, Option<String>>(8)?
                .map(|role| word("the role of the notice", &id, &role, NotificationRole::parse))
                .transpose()?,
            delivery: row.get::<_, Option<i64>>(9)?.map(DeliveryId),
            holder: row.get(10)?,
            notice: NotificationId::from(id),
        })
    })
}

/// The latest of what was to be told of each alert to each receiver, and whether anything of it arrived.
const RECEIVER_STATUSES: &str =
    "WITH asked AS (SELECT id, alert, at FROM notice WHERE alert IN (SELECT value FROM json_each(?1))),
    status AS (
        SELECT n.alert, d.receiver, n.at, n.id, v.state FROM asked n JOIN delivery_notice d ON d.notice = n.id
        JOIN delivery v ON v.no = d.delivery_no
        UNION ALL
        SELECT n.alert, t.receiver, n.at, n.id, t.state FROM asked n JOIN telling t ON t.notice = n.id)
    SELECT alert, receiver, max(CASE WHEN state = 'delivered' THEN 1 ELSE 0 END) OVER whole, state,
           row_number() OVER (PARTITION BY alert, receiver ORDER BY at DESC, id DESC) AS place
    FROM status WINDOW whole AS (PARTITION BY alert, receiver) ORDER BY alert, receiver, place";

fn receiver_statuses(from: &Transaction<'_>, alerts: &[AlertId]) -> Result<HashMap<AlertId, Vec<ReceiverStatus>>, StoreFault> {
    let mut statement = from.prepare_cached(RECEIVER_STATUSES)?;
    let rows = all(&mut statement, [list(alerts.iter().map(AlertId::as_str))], |row| {
        let (alert, state): (String, String) = (row.get(0)?, row.get(3)?);
        let status = ReceiverStatus {
            receiver: ReceiverName::from(row.get::<_, String>(1)?),
            was_told: row.get(2)?,
            state: word("the state of a notice", &alert, &state, NotificationState::parse)?,
        };
        Ok((AlertId::from(alert), status, row.get::<_, i64>(4)? == 1))
    })?;
    let mut statuses: HashMap<AlertId, Vec<ReceiverStatus>> = HashMap::new();
    for (alert, status, _) in rows.into_iter().filter(|(_, _, is_latest)| *is_latest) {
        statuses.entry(alert).or_default().push(status);
    }
    Ok(statuses)
}

fn suppressed_counts(from: &Transaction<'_>, since: Timestamp) -> Result<Vec<SuppressedCount>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, sum(waiting), sum(silenced), sum(inhibited), sum(lately) FROM (
             SELECT receiver, 1 AS waiting, 0 AS silenced, 0 AS inhibited, 0 AS lately FROM telling WHERE state = 'waiting'
             UNION ALL
             SELECT receiver, 0, CASE WHEN state = 'silenced' THEN 1 ELSE 0 END, CASE WHEN state = 'inhibited' THEN 1 ELSE 0 END, 0 FROM telling WHERE state <> 'waiting' AND settled = 0
             UNION ALL
             SELECT receiver, 0, 0, 0, 1 FROM telling WHERE state <> 'waiting' AND since > ?1)
         each GROUP BY receiver ORDER BY receiver",
    )?;
    all(&mut statement, [Millis(since)], |row| {
        Ok(SuppressedCount {
            receiver: ReceiverName::from(row.get::<_, String>(0)?),
            waiting: counted(row.get(1)?),
            silenced: counted(row.get(2)?),
            inhibited: counted(row.get(3)?),
            lately: counted(row.get(4)?),
        })
    })
}
