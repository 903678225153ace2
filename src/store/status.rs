//! The status of notifications: the state of each, and what suppresses them.

use std::collections::HashMap;

use chrono::TimeDelta;
use rusqlite::types::Value;

use super::codec::{Conditions, Millis, all, counted, list, one_of_words, word};
use super::error::StoreFault;
use super::silence::{acks, silences};
use super::sql::Transaction;
use super::{Store, StoreError, cycle, opt_out};
use model::{
    AlertId, DeliveryId, NotificationFilter, NotificationId, NotificationKind, NotificationOverview, NotificationRole,
    NotificationState, NotificationStatus, ReceiverName, ReceiverStatus, SuppressedCount, Timestamp, cut_summary, digest,
};

impl Store {
    /// Returns the status of notifications, oldest first.
    pub async fn notification_statuses(&self, filter: NotificationFilter) -> Result<Vec<NotificationStatus>, StoreError> {
        self.read("read the status of notifications", move |from| notification_statuses(from, &filter)).await
    }

    /// Returns the status of each alert for each of its receivers, ordered by receiver.
    pub async fn receiver_statuses(&self, alerts: Vec<AlertId>) -> Result<HashMap<AlertId, Vec<ReceiverStatus>>, StoreError> {
        self.read("read the receivers of alerts", move |from| receiver_statuses(from, &alerts)).await
    }

    /// Returns the active silences and acknowledgements, opt-outs, digest jobs, and the number of suppressed
    /// notifications. `since` is the start of the `lately` counts.
    pub async fn notification_overview(&self, now: Timestamp, since: Timestamp) -> Result<NotificationOverview, StoreError> {
        let read = move |from: &Transaction<'_>| {
            let (mut digests, mut created_digests) = (Vec::new(), Vec::new());
            for (name, slot) in cycle::job_slots(from)? {
                if name.starts_with(digest::JOB_PREFIX) {
                    digests.push((name, slot));
                } else if name.starts_with(digest::CREATED_PREFIX) {
                    created_digests.push((name, slot));
                }
            }
            Ok(NotificationOverview {
                silences: silences(from, Some(now))?,
                acks: acks(from)?,
                held: suppressed_counts(from, since)?,
                opt_outs: opt_out::opt_outs(from, None)?,
                digests,
                created_digests,
            })
        };
        self.read("read the suppressors of notifications", read).await
    }
}

/// Selects notifications with a delivery.
const IN_OUTBOX: &str =
    "SELECT n.id, n.alert, n.kind, n.at, n.body, d.receiver, v.state, d.role, v.no AS delivery, NULL AS suppressed_by
    FROM notification n JOIN delivery_notification d ON d.notification = n.id JOIN delivery v ON v.no = d.delivery_no UNION ALL";

/// Selects notifications without a delivery: pending or suppressed.
const NOT_IN_OUTBOX: &str = "SELECT n.id, n.alert, n.kind, n.at, n.body, t.receiver, t.state, NULL AS role, CAST(NULL AS BIGINT) AS delivery, t.suppressed_by AS suppressed_by";

/// Selects notifications without a receiver.
fn without_receiver() -> String {
    let (without_limit, limited) = (NotificationState::Nobody.as_str(), NotificationState::Limited.as_str());
    format!(
        "UNION ALL SELECT n.id, n.alert, n.kind, n.at, n.body, NULL,
         CASE WHEN n.body ->> '$.leftOutBy' IS NULL THEN '{without_limit}' ELSE '{limited}' END,
         NULL, CAST(NULL AS BIGINT), CAST(n.body ->> '$.leftOutBy' AS TEXT) FROM notification n WHERE n.receivers = '[]'"
    )
}

/// The tolerance between the time of a notification and of its pending row, in case the clock was set back.
const SLACK: TimeDelta = TimeDelta::days(1);

/// Returns the query for notifications and their state. Most notifications are delivered, so a filter for undelivered
/// ones starts with the pending rows.
fn statuses_of(filter: &NotificationFilter) -> String {
    let in_outbox = if filter.undelivered { "" } else { IN_OUTBOX };
    let without_receiver = if filter.receiver.is_some() { String::new() } else { without_receiver() };
    let from = match filter.since.filter(|_| filter.undelivered) {
        Some(since) => {
            format!(
                "FROM pending_notification t CROSS JOIN notification n WHERE n.id = t.notification AND t.since >= {}",
                since.checked_sub_signed(SLACK).unwrap_or(since).timestamp_millis()
            )
        }
        None => "FROM notification n JOIN pending_notification t ON t.notification = n.id".to_owned(),
    };
    format!("WITH status AS ({in_outbox} {NOT_IN_OUTBOX} {from} {without_receiver}) {COLUMNS}")
}

const COLUMNS: &str = "SELECT id, alert, kind, at, body ->> '$.rule', body ->> '$.annotations.summary', receiver, state, role, delivery, suppressed_by FROM status";

fn notification_statuses(from: &Transaction<'_>, filter: &NotificationFilter) -> Result<Vec<NotificationStatus>, StoreFault> {
    let mut conditions = Conditions::default();
    conditions
        .and_some("alert = ?", filter.alert.as_ref().map(|id| id.as_str().to_owned()))
        .and_some("receiver = ?", filter.receiver.as_ref().map(|name| name.as_str().to_owned()))
        .and_some("at >= ?", filter.since.map(|at| Value::Integer(at.timestamp_millis())));
    if filter.undelivered {
        use NotificationState::{Acknowledged, Inhibited, Limited, Nobody, Silenced, Waiting};
        let states = [Waiting, Silenced, Inhibited, Acknowledged, Nobody, Limited].map(NotificationState::as_str);
        conditions.and_plain(&one_of_words("state", states));
    }
    let (sql, values) = conditions.within(&statuses_of(filter), &format!(" ORDER BY at, id, receiver LIMIT {}", filter.limit));
    all(&mut from.prepare(&sql)?, values, |row| {
        let summary: Option<String> = row.get(5)?;
        let id: String = row.get(0)?;
        Ok(NotificationStatus {
            alert: AlertId::from(row.get::<String>(1)?),
            kind: word("the kind of the notification", &id, &row.get::<String>(2)?, NotificationKind::parse)?,
            at: row.get::<Millis>(3)?.0,
            rule: row.get::<Option<String>>(4)?.unwrap_or_default(),
            summary: cut_summary(summary.as_deref().unwrap_or_default()),
            receiver: row.get::<Option<String>>(6)?.map(ReceiverName::from),
            state: word("the state of the notification", &id, &row.get::<String>(7)?, NotificationState::parse)?,
            role: row
                .get::<Option<String>>(8)?
                .map(|role| word("the role of the notification", &id, &role, NotificationRole::parse))
                .transpose()?,
            delivery: row.get::<Option<i64>>(9)?.map(DeliveryId),
            suppressor: row.get(10)?,
            notice: NotificationId::from(id),
        })
    })
}

/// Selects the latest notification of each alert and receiver, and whether any was delivered.
const RECEIVER_STATUSES: &str =
    "WITH notifications AS (SELECT id, alert, at FROM notification WHERE alert IN (SELECT value FROM json_each(?1))),
    status AS (
        SELECT n.alert, d.receiver, n.at, n.id, v.state, v.first_delivered_at FROM notifications n JOIN delivery_notification d ON d.notification = n.id
        JOIN delivery v ON v.no = d.delivery_no
        UNION ALL
        SELECT n.alert, t.receiver, n.at, n.id, t.state, CAST(NULL AS BIGINT) FROM notifications n JOIN pending_notification t ON t.notification = n.id)
    SELECT alert, receiver, max(CASE WHEN state = 'delivered' OR first_delivered_at IS NOT NULL THEN 1 ELSE 0 END) OVER whole, state,
           row_number() OVER (PARTITION BY alert, receiver ORDER BY at DESC, id DESC) AS place
    FROM status WINDOW whole AS (PARTITION BY alert, receiver) ORDER BY alert, receiver, place";

fn receiver_statuses(from: &Transaction<'_>, alerts: &[AlertId]) -> Result<HashMap<AlertId, Vec<ReceiverStatus>>, StoreFault> {
    let mut statement = from.prepare_cached(RECEIVER_STATUSES)?;
    let rows = all(&mut statement, [list(alerts.iter().map(AlertId::as_str))], |row| {
        let (alert, state): (String, String) = (row.get(0)?, row.get(3)?);
        let status = ReceiverStatus {
            receiver: ReceiverName::from(row.get::<String>(1)?),
            was_notified: row.get(2)?,
            state: word("the state of a notification", &alert, &state, NotificationState::parse)?,
        };
        Ok((AlertId::from(alert), status, row.get::<i64>(4)? == 1))
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
             SELECT receiver, 1 AS waiting, 0 AS silenced, 0 AS inhibited, 0 AS lately FROM pending_notification WHERE state = 'waiting'
             UNION ALL
             SELECT receiver, 0, CASE WHEN state = 'silenced' THEN 1 ELSE 0 END, CASE WHEN state = 'inhibited' THEN 1 ELSE 0 END, 0 FROM pending_notification WHERE state <> 'waiting' AND settled = 0
             UNION ALL
             SELECT receiver, 0, 0, 0, 1 FROM pending_notification WHERE state NOT IN ('waiting', 'unwanted') AND since > ?1)
         each GROUP BY receiver ORDER BY receiver",
    )?;
    all(&mut statement, [Millis(since)], |row| {
        Ok(SuppressedCount {
            receiver: ReceiverName::from(row.get::<String>(0)?),
            waiting: counted(row.get(1)?),
            silenced: counted(row.get(2)?),
            inhibited: counted(row.get(3)?),
            lately: counted(row.get(4)?),
        })
    })
}
