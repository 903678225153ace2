//! The outbox: what is due, what came of an attempt, and what an operator does by hand beside a running daemon.

use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use super::{
    codec::{Conditions, Millis, all, count, counted, from_json, list, millis, one, small, time, word},
    commit::{Scribe, Way},
    error::Fault,
    model::{
        Attempt, AttemptRecord, DeliveryState, DueDelivery, OutboxAlert, OutboxDetail, OutboxFilter, OutboxRow, Saved, Shape,
    },
};
use crate::{
    alert::{AlertBody, Notice, NoticeKind},
    failpoint,
    supply::{AlertId, DeliveryId, NoticeId, ReceiverName, Timestamp},
};

/// What is kept of a receiver's answer: four KiB, cut between characters.
const MAX_ANSWER_BYTES: usize = 4096;

/// The first line of a message in `outbox list` is not longer than this, in characters.
const MAX_SUMMARY_CHARS: usize = 200;

/// Holds back what is told of an alert while something earlier of the same alert still waits for the same receiver: an end never
/// overtakes its beginning. A dead or dropped delivery holds nothing up.
const NOT_HELD_BACK: &str = "NOT EXISTS (
     SELECT 1 FROM delivery_notice d JOIN notice n ON n.id = d.notice JOIN notice m ON m.alert = n.alert
     JOIN delivery_notice e ON e.notice = m.id AND e.receiver = d.receiver JOIN delivery w ON w.no = e.delivery_no
     WHERE d.delivery_no = v.no AND w.no < v.no AND w.state IN ('due', 'retrying'))";

pub(super) fn due_sql() -> String {
    format!(
        "SELECT v.no, v.webhook_id, v.attempts, v.tries, v.created_at, v.due_at, v.bundle FROM delivery v
         WHERE v.receiver = ?1 AND v.state IN ('due', 'retrying') AND v.next_attempt_at <= ?2 AND {NOT_HELD_BACK}
         ORDER BY v.next_attempt_at, v.no LIMIT ?3"
    )
}

pub(super) fn next_due_sql() -> String {
    format!(
        "SELECT v.next_attempt_at FROM delivery v WHERE v.receiver = ?1 AND v.state IN ('due', 'retrying') AND {NOT_HELD_BACK}
         ORDER BY v.next_attempt_at LIMIT 1"
    )
}

pub(super) fn due(
    from: &Transaction<'_>,
    receiver: &ReceiverName,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<DueDelivery>, Fault> {
    let mut statement = from.prepare_cached(&due_sql())?;
    let mut deliveries = all(&mut statement, params![receiver.as_str(), Millis(now), limit], |row| {
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
            notices: Vec::new(),
            bundle: bundle.unwrap_or_default(),
        })
    })?;
    for delivery in &mut deliveries {
        delivery.notices = notices(from, delivery.id)?;
    }
    Ok(deliveries)
}

fn notices(from: &Transaction<'_>, delivery: DeliveryId) -> Result<Vec<Notice>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT n.id, n.alert, n.kind, n.at, n.receivers, n.body FROM delivery_notice d JOIN notice n ON n.id = d.notice
         WHERE d.delivery_no = ?1 AND d.role = 'told' ORDER BY d.ordinal",
    )?;
    all(&mut statement, [delivery.0], notice)
}

pub(super) fn notice(row: &Row<'_>) -> Result<Notice, Fault> {
    let id: String = row.get(0)?;
    let (kind, receivers, body): (String, String, String) = (row.get(2)?, row.get(4)?, row.get(5)?);
    Ok(Notice {
        alert: AlertId::from(row.get::<_, String>(1)?),
        kind: word("the kind of the notice", &id, &kind, NoticeKind::parse)?,
        at: row.get::<_, Millis>(3)?.0,
        receivers: from_json("the receivers of the notice", &id, &receivers)?,
        body: from_json::<AlertBody>("the body of the notice", &id, &body)?,
        id: NoticeId::from(id),
    })
}

pub(super) fn next_due_at(from: &Transaction<'_>, receiver: &ReceiverName) -> Result<Option<Timestamp>, Fault> {
    let mut statement = from.prepare_cached(&next_due_sql())?;
    one(&mut statement, [receiver.as_str()], |row| Ok(row.get::<_, Millis>(0)?.0))
}

/// Everyone to whom something is yet to be delivered, with how much.
pub(super) fn pending_receivers(from: &Transaction<'_>) -> Result<Vec<(ReceiverName, u32)>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, count(*) FROM delivery WHERE state IN ('due', 'retrying') GROUP BY receiver ORDER BY receiver",
    )?;
    let rows = statement.query_map([], |row| Ok((ReceiverName::from(row.get::<_, String>(0)?), row.get::<_, i64>(1)?)))?;
    rows.map(|row| row.map(|(receiver, count)| (receiver, u32::try_from(count).unwrap_or(u32::MAX))).map_err(Fault::from))
        .collect()
}

/// Makes what waits for a retry due now: the receiver answers again.
pub(super) fn hasten(to: &Transaction<'_>, receiver: &ReceiverName, now: Timestamp) -> Result<(), Fault> {
    to.prepare_cached(
        "UPDATE delivery SET next_attempt_at = ?2 WHERE receiver = ?1 AND state = 'retrying' AND next_attempt_at > ?2",
    )?
    .execute(rusqlite::params![receiver.as_str(), now.timestamp_millis()])?;
    Ok(())
}

/// Records attempts, the new state of their deliveries, and what is announced of them, in one transaction.
pub(super) fn record_attempts(connection: &mut Connection, records: &[AttemptRecord], way: Way) -> Result<(), Fault> {
    failpoint::pass("attempt.before");
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for record in records {
        record_attempt(&transaction, record, way)?;
    }
    transaction.commit()?;
    failpoint::pass("attempt.after");
    Ok(())
}

fn record_attempt(to: &Transaction<'_>, record: &AttemptRecord, way: Way) -> Result<(), Fault> {
    let AttemptRecord { delivery, attempt, state, next_attempt_at, alerts, notices } = record;
    let mut scribe = Scribe::new(to, attempt.at, way);
    for alert in alerts {
        scribe.alert(alert)?;
    }
    for notice in notices {
        scribe.notice(notice, &mut Saved::default())?;
    }
    let now_is: Option<String> =
        one(&mut *to.prepare_cached("SELECT state FROM delivery WHERE no = ?1")?, [delivery.0], |row| Ok(row.get(0)?))?;
    let Some(now_is) = now_is else {
        // Pruned meanwhile, which happens to none that is pending: nothing is left to be kept straight.
        return Ok(());
    };
    let now_is = word("the state of the delivery", &delivery.to_string(), &now_is, DeliveryState::parse)?;
    let answer = cut(&attempt.answer, MAX_ANSWER_BYTES);
    to.prepare_cached("INSERT INTO attempt (delivery_no, at, took_ms, outcome, status, answer) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![delivery.0, Millis(attempt.at), count(attempt.took_ms), attempt.outcome, attempt.status, answer])?;
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

const ROW_COLUMNS: &str = "no, webhook_id, receiver, state, attempts, next_attempt_at, last_answer, created_at, delivered_at, shape, bundle ->> '$.truncated' FROM delivery";

pub(super) fn outbox(from: &Transaction<'_>, filter: &OutboxFilter) -> Result<Vec<OutboxRow>, Fault> {
    let mut conditions = Conditions::default();
    conditions.and_some("receiver = ?", filter.receiver.as_ref().map(|name| name.as_str().to_owned()));
    if !filter.states.is_empty() {
        conditions.and("state IN (SELECT value FROM json_each(?))", list(filter.states.iter().map(|state| state.as_str())));
    }
    let tail = format!(" ORDER BY no DESC LIMIT {}", filter.limit);
    let (sql, values) = conditions.within(&format!("SELECT {ROW_COLUMNS}"), &tail);
    let rows = all(&mut from.prepare(&sql)?, values, outbox_row)?;
    rows.into_iter()
        .map(|mut row| {
            row.alerts = notices(from, row.id)?.iter().map(outbox_alert).collect();
            Ok(row)
        })
        .collect()
}

/// The deliveries that tell of one of these alerts, the oldest first.
pub(super) fn deliveries_of(from: &Transaction<'_>, alerts: &[AlertId]) -> Result<Vec<OutboxRow>, Fault> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} WHERE no IN (SELECT d.delivery_no FROM delivery_notice d JOIN notice n ON n.id = d.notice
             WHERE n.alert IN (SELECT value FROM json_each(?1))) ORDER BY no"
    );
    let rows = all(&mut *from.prepare_cached(&sql)?, [list(alerts.iter().map(AlertId::as_str))], outbox_row)?;
    rows.into_iter()
        .map(|mut row| {
            row.alerts = notices(from, row.id)?.iter().map(outbox_alert).collect();
            Ok(row)
        })
        .collect()
}

fn outbox_row(row: &Row<'_>) -> Result<OutboxRow, Fault> {
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
        shape: word("the shape of the delivery", &id.to_string(), &row.get::<_, String>(9)?, Shape::parse)?,
        truncated_alerts: small(row.get::<_, Option<i64>>(10)?.unwrap_or(0)),
        alerts: Vec::new(),
    })
}

fn outbox_alert(notice: &Notice) -> OutboxAlert {
    let summary = notice.body.annotations.get("summary").map_or("", String::as_str);
    OutboxAlert {
        id: notice.alert.as_str().to_owned(),
        notice: notice.id.clone(),
        kind: notice.kind.as_str().to_owned(),
        rule: notice.body.rule.clone(),
        token: notice.body.token.as_ref().map(|token| token.id.clone()),
        summary: cut_summary(summary),
    }
}

/// The first line of a summary, cut.
pub(super) fn cut_summary(summary: &str) -> String {
    summary.lines().next().unwrap_or_default().chars().take(MAX_SUMMARY_CHARS).collect()
}

pub(super) fn outbox_one(from: &Transaction<'_>, id: DeliveryId) -> Result<Option<OutboxDetail>, Fault> {
    let row = one(&mut *from.prepare_cached(&format!("SELECT {ROW_COLUMNS} WHERE no = ?1"))?, [id.0], outbox_row)?;
    let Some(mut row) = row else { return Ok(None) };
    let notices = notices(from, id)?;
    row.alerts = notices.iter().map(outbox_alert).collect();
    let mut statement =
        from.prepare_cached("SELECT at, took_ms, outcome, status, answer FROM attempt WHERE delivery_no = ?1 ORDER BY no")?;
    let attempts = all(&mut statement, [id.0], |row| {
        Ok(Attempt {
            at: row.get::<_, Millis>(0)?.0,
            took_ms: counted(row.get(1)?),
            outcome: row.get(2)?,
            status: row.get(3)?,
            answer: row.get(4)?,
        })
    })?;
    Ok(Some(OutboxDetail { row, attempts, notices }))
}

/// Makes deliveries due again, with the schedule of retries begun anew; what was delivered stays so.
pub(super) fn retry(to: &Transaction<'_>, ids: &[DeliveryId], now: Timestamp) -> Result<usize, Fault> {
    let mut statement = to.prepare_cached(
        "UPDATE delivery SET state = 'due', tries = 0, due_at = ?2, next_attempt_at = ?2, updated_at = ?2
         WHERE no = ?1 AND state <> 'delivered'",
    )?;
    ids.iter().try_fold(0, |done, id| Ok(done + statement.execute(params![id.0, Millis(now)])?))
}

/// Takes deliveries out that were not accepted yet.
pub(super) fn drop_deliveries(to: &Transaction<'_>, ids: &[DeliveryId], now: Timestamp) -> Result<usize, Fault> {
    let mut statement = to.prepare_cached(
        "UPDATE delivery SET state = 'dropped', next_attempt_at = NULL, updated_at = ?2
         WHERE no = ?1 AND state IN ('due', 'retrying', 'dead')",
    )?;
    ids.iter().try_fold(0, |done, id| Ok(done + statement.execute(params![id.0, Millis(now)])?))
}
