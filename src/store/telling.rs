//! What waits between a decision and its delivery: told in groups, held back, told again. The decisions are [`crate::group`]'s; here
//! is read what they go by, and written what they come to, in one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::TimeDelta;
use rusqlite::{OptionalExtension, Row, Transaction, params, types::Value};

use super::{
    codec::{Conditions, Millis, all, counted, from_json, json, list, millis, one, small, time, word},
    commit::webhook_id,
    cycle::{self, ALERT_COLUMNS},
    error::Fault,
    model::{Acknowledged, Bundle, DeliveryState, Dispatched, Fate, FateFilter, HeldCount, Repeat, Shape, Standing},
    outbox::{cut_summary, notice},
};
use crate::{
    alert::{Alert, AlertBody, AlertState, Labels, Notice, NoticeKind},
    group::{
        self, BURST_WINDOW, Beginning, Decision, HOUR, HeldBack, Holder, Message, Policy, Prospect, Situation, Sorted, Usage,
        Waiting,
    },
    route::{Firing, Matcher},
    silence::{Ack, Fact, Preview, Silence},
    supply::{AlertId, DeliveryId, NoticeId, ReceiverName, Timestamp},
};

/// Messages that one pass decides about, the longest waiting first; the others follow when these are gone.
const MAX_WAITING: i64 = 50_000;

/// Groups that are told again in one pass.
const MAX_REPEATS: i64 = 500;

/// Messages of the last week that the preview of a silence looks at.
const MAX_PREVIEWED: u32 = 20_000;

/// Alerts that an ambiguous id names.
const MAX_NAMED: usize = 5;

/// Puts a message down to wait.
pub(super) fn wait(to: &Transaction<'_>, notice: &Notice, receiver: &ReceiverName, at: Timestamp) -> Result<(), Fault> {
    to.prepare_cached(
        "INSERT INTO telling (notice, receiver, alert, kind, is_end, labels, state, since)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'waiting', ?7) ON CONFLICT DO NOTHING",
    )?
    .execute(params![
        notice.id.as_str(),
        receiver.as_str(),
        notice.alert.as_str(),
        notice.kind.as_str(),
        notice.body.status == "resolved",
        json("the labels of a notice", &notice.body.labels)?,
        Millis(at),
    ])?;
    Ok(())
}

/// What a pass goes by and what it comes to.
struct Weighed<'a> {
    sorted: &'a Sorted<'a>,
    decision: &'a Decision<'a>,
    told_at: &'a dyn Fn(usize) -> Option<Timestamp>,
    usage: &'a dyn Fn(&ReceiverName) -> Usage,
    /// Messages that were read: no more than [`MAX_WAITING`].
    waiting: usize,
}

/// Reads everything that waits, decides about it, and hands that over; none where nothing waits and nothing is held back.
fn weigh<T>(
    from: &Transaction<'_>,
    policy: &Policy,
    now: Timestamp,
    then: impl FnOnce(&Weighed<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let waiting = waiting(from)?;
    let held = held(from)?;
    if waiting.is_empty() && held.is_empty() {
        return Ok(None);
    }
    let silences = silences(from, Some(now))?;
    let firing = if policy.routes.inhibit_rules().is_empty() { Vec::new() } else { firing(from)? };
    let routes = &policy.routes;
    let situation = Situation { routes, waiting: &waiting, held: &held, silences: &silences, firing: &firing, now };
    let sorted = group::sort(&situation);

    let mut told_at: Vec<Option<Timestamp>> = Vec::with_capacity(sorted.groups.len());
    let mut usages: BTreeMap<ReceiverName, Usage> = BTreeMap::new();
    for group in &sorted.groups {
        told_at.push(if group.is_kept() { told_group(from, &group.receiver, &group.key)? } else { None });
        if !usages.contains_key(&group.receiver) {
            // A receiver that is gone from the config gets nothing, but what is addressed to it becomes visible dead letters.
            let max_per_hour = policy.max_per_hour.get(&group.receiver).copied().unwrap_or(u32::MAX);
            usages.insert(group.receiver.clone(), usage(from, &group.receiver, max_per_hour, now)?);
        }
    }
    let none = Usage { max_per_hour: u32::MAX, last_hour: 0, oldest: None, lately: 0, folded_at: None, summed_at: None };
    let told_at = |index: usize| told_at.get(index).copied().flatten();
    let usage = |receiver: &ReceiverName| usages.get(receiver).copied().unwrap_or(none);
    let decision = group::decide(&sorted.groups, &told_at, &usage, now);
    let weighed = Weighed { sorted: &sorted, decision: &decision, told_at: &told_at, usage: &usage, waiting: waiting.len() };
    then(&weighed).map(Some)
}

/// What each message that waits is waiting for.
pub(super) fn prospects(from: &Transaction<'_>, policy: &Policy, now: Timestamp) -> Result<Vec<Prospect>, Fault> {
    let found = weigh(from, policy, now, |weighed| {
        let Weighed { sorted, decision, told_at, usage, .. } = *weighed;
        Ok(group::prospects(&sorted.groups, decision, &policy.routes, told_at, usage, now))
    })?;
    Ok(found.unwrap_or_default())
}

/// Decides about everything that waits.
pub(super) fn dispatch(to: &Transaction<'_>, policy: &Policy, now: Timestamp) -> Result<Dispatched, Fault> {
    Ok(weigh(to, policy, now, |weighed| write_down(to, weighed, now))?.unwrap_or_default())
}

/// Writes what a pass comes to.
fn write_down(to: &Transaction<'_>, weighed: &Weighed<'_>, now: Timestamp) -> Result<Dispatched, Fault> {
    let Weighed { sorted, decision, waiting, .. } = *weighed;
    for (row, held) in &sorted.held {
        to.prepare_cached("UPDATE telling SET state = ?2, holder = ?3, since = ?4 WHERE no = ?1")?.execute(params![
            row.no,
            held.by.as_str(),
            held.id,
            Millis(now)
        ])?;
    }
    let is_held_now: BTreeSet<i64> = sorted.held.iter().map(|(row, _)| row.no).collect();
    for no in sorted.released.iter().filter(|no| !is_held_now.contains(no)) {
        to.prepare_cached("UPDATE telling SET state = 'waiting', holder = NULL, since = ?2 WHERE no = ?1")?
            .execute(params![no, Millis(now)])?;
    }
    for index in &decision.flushed {
        let Some(group) = sorted.groups.get(*index).filter(|group| group.is_kept()) else { continue };
        let repeat_at = group.grouping.repeat.and_then(|span| now.checked_add_signed(span));
        to.prepare_cached(
            "INSERT INTO told_group (receiver, key, told_at, repeat_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET told_at = excluded.told_at, repeat_at = excluded.repeat_at",
        )?
        .execute(params![group.receiver.as_str(), group.key, Millis(now), millis(repeat_at)])?;
    }
    let mut dispatched = Dispatched::default();
    for message in &decision.messages {
        send(to, message, now)?;
        dispatched.deliveries += 1;
        if !dispatched.receivers.contains(&message.receiver) {
            dispatched.receivers.push(message.receiver.clone());
        }
    }
    for index in &decision.flushed {
        let Some(group) = sorted.groups.get(*index).filter(|group| group.is_kept()) else { continue };
        for row in &group.rows {
            let sql = if row.is_end {
                "DELETE FROM group_alert WHERE receiver = ?1 AND key = ?2 AND alert = ?3"
            } else {
                "INSERT INTO group_alert (receiver, key, alert) SELECT ?1, ?2, ?3 FROM alert WHERE id = ?3 AND state = 'firing'
                 ON CONFLICT DO NOTHING"
            };
            to.prepare_cached(sql)?.execute(params![group.receiver.as_str(), group.key, row.alert.as_str()])?;
        }
    }
    settle(to)?;

    dispatched.held = count(sorted.held.len());
    let done: usize = decision.flushed.iter().filter_map(|index| sorted.groups.get(*index)).map(|group| group.rows.len()).sum();
    let in_groups: usize = sorted.groups.iter().map(|group| group.rows.len()).sum();
    dispatched.waiting = count(in_groups.saturating_sub(done));
    dispatched.next_at = [sorted.next_at, decision.next_at].into_iter().flatten().min();
    if dispatched.waiting > 0 || i64::try_from(waiting).unwrap_or(i64::MAX) >= MAX_WAITING {
        // Never without a look ahead: a wait whose end nobody knows would be for ever.
        dispatched.next_at.get_or_insert(now + TimeDelta::minutes(1));
    }
    Ok(dispatched)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Held back for good: ends, things that happened once, what is acknowledged, and alerts that are over.
fn settle(to: &Transaction<'_>) -> Result<(), Fault> {
    to.prepare_cached(
        "UPDATE telling SET settled = 1 WHERE state <> 'waiting' AND settled = 0 AND (is_end = 1 OR state = 'acknowledged'
         OR NOT EXISTS (SELECT 1 FROM alert a WHERE a.id = telling.alert AND a.state = 'firing'))",
    )?
    .execute([])?;
    Ok(())
}

const WAITING_COLUMNS: &str = "t.no, t.notice, t.alert, t.receiver, t.kind, t.is_end, t.labels, t.since";

fn waiting(from: &Transaction<'_>) -> Result<Vec<Waiting>, Fault> {
    let sql = format!("SELECT {WAITING_COLUMNS} FROM telling t WHERE t.state = 'waiting' ORDER BY t.no LIMIT ?1");
    let mut rows = all(&mut *from.prepare_cached(&sql)?, [MAX_WAITING], waiting_row)?;
    let has_acks: bool = from.prepare_cached("SELECT EXISTS (SELECT 1 FROM ack)")?.query_row([], |row| row.get(0))?;
    for row in &mut rows {
        if row.is_end {
            row.beginning = beginning(from, row)?;
        } else if has_acks && row.kind == NoticeKind::Reminder {
            row.acknowledged = acknowledgement(from, row)?;
        }
    }
    Ok(rows)
}

fn waiting_row(row: &Row<'_>) -> Result<Waiting, Fault> {
    let notice: String = row.get(1)?;
    let (kind, labels): (String, String) = (row.get(4)?, row.get(6)?);
    Ok(Waiting {
        no: row.get(0)?,
        alert: AlertId::from(row.get::<_, String>(2)?),
        receiver: ReceiverName::from(row.get::<_, String>(3)?),
        kind: word("the kind of the message", &notice, &kind, NoticeKind::parse)?,
        is_end: row.get(5)?,
        labels: from_json::<Labels>("the labels of the message", &notice, &labels)?,
        since: row.get::<_, Millis>(7)?.0,
        notice: NoticeId::from(notice),
        beginning: Beginning::Told,
        acknowledged: None,
    })
}

/// What is held back, though its alert fires, and nothing later was told or waits. Left alone, SQLite would rather read all alerts.
fn held(from: &Transaction<'_>) -> Result<Vec<Waiting>, Fault> {
    let sql = format!(
        "SELECT {WAITING_COLUMNS} FROM telling t INDEXED BY telling_held WHERE t.state <> 'waiting' AND t.settled = 0
         AND EXISTS (SELECT 1 FROM alert a WHERE a.id = t.alert AND a.state = 'firing')
         AND NOT EXISTS (SELECT 1 FROM telling u WHERE u.alert = t.alert AND u.receiver = t.receiver AND u.no > t.no)
         AND NOT EXISTS (SELECT 1 FROM notice m JOIN notice n ON n.alert = m.alert JOIN delivery_notice d ON d.notice = n.id
                         WHERE m.id = t.notice AND d.receiver = t.receiver AND n.at > m.at)
         ORDER BY t.no LIMIT ?1"
    );
    all(&mut *from.prepare_cached(&sql)?, [MAX_WAITING], waiting_row)
}

/// Whether a receiver was told that the alert of an end began; if not, what held that back.
fn beginning(from: &Transaction<'_>, row: &Waiting) -> Result<Beginning, Fault> {
    let values = params![row.alert.as_str(), row.receiver.as_str(), row.no];
    let was_told: bool = from
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM notice n JOIN delivery_notice d ON d.notice = n.id WHERE n.alert = ?1 AND d.receiver = ?2)
             OR EXISTS (SELECT 1 FROM telling t WHERE t.alert = ?1 AND t.receiver = ?2 AND t.state = 'waiting' AND t.no < ?3)",
        )?
        .query_row(values, |row| row.get(0))?;
    if was_told {
        return Ok(Beginning::Told);
    }
    let mut statement = from.prepare_cached(
        "SELECT state, holder FROM telling WHERE alert = ?1 AND receiver = ?2 AND no < ?3 AND state <> 'waiting' ORDER BY no DESC LIMIT 1",
    )?;
    let held = one(&mut statement, values, |held| {
        let state: String = held.get(0)?;
        let by = word("the state of a message about", row.alert.as_str(), &state, Holder::parse)?;
        Ok(HeldBack { by, id: held.get(1)? })
    })?;
    Ok(held.map_or(Beginning::Told, Beginning::HeldBack))
}

/// Who knows of the alert of a reminder, and what it tells.
fn acknowledgement(from: &Transaction<'_>, row: &Waiting) -> Result<Option<(Ack, Fact)>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT k.alert, k.author, k.comment, k.at, k.fact, a.level, n.body FROM ack k JOIN alert a ON a.id = k.alert
         JOIN notice n ON n.id = ?2 WHERE k.alert = ?1",
    )?;
    one(&mut statement, params![row.alert.as_str(), row.notice.as_str()], |found| {
        let ack = ack(found)?;
        let level = found.get::<_, Option<i64>>(5)?.map(small);
        let body: AlertBody = from_json("the body of the notice", row.notice.as_str(), &found.get::<_, String>(6)?)?;
        Ok((ack, Fact::told(level, &body)))
    })
}

fn ack(row: &Row<'_>) -> Result<Ack, Fault> {
    let alert: String = row.get(0)?;
    let fact: String = row.get(4)?;
    Ok(Ack {
        author: row.get(1)?,
        comment: row.get(2)?,
        at: row.get::<_, Millis>(3)?.0,
        fact: from_json("the fact of the acknowledgement", &alert, &fact)?,
        alert: AlertId::from(alert),
    })
}

fn firing(from: &Transaction<'_>) -> Result<Vec<Firing>, Fault> {
    let mut statement =
        from.prepare_cached("SELECT id, body ->> '$.labels' FROM alert WHERE state = 'firing' ORDER BY starts_at, id")?;
    all(&mut statement, [], |row| {
        let id: String = row.get(0)?;
        let labels: String = row.get(1)?;
        Ok(Firing { labels: from_json("the labels of the alert", &id, &labels)?, id: AlertId::from(id) })
    })
}

fn told_group(from: &Transaction<'_>, receiver: &ReceiverName, key: &str) -> Result<Option<Timestamp>, Fault> {
    let mut statement = from.prepare_cached("SELECT told_at FROM told_group WHERE receiver = ?1 AND key = ?2")?;
    one(&mut statement, params![receiver.as_str(), key], |row| Ok(row.get::<_, Millis>(0)?.0))
}

fn usage(from: &Transaction<'_>, receiver: &ReceiverName, max_per_hour: u32, now: Timestamp) -> Result<Usage, Fault> {
    // A clock that was set back must not close the hour: what was made later than now does not count.
    let mut statement = from.prepare_cached(
        "SELECT count(*), min(created_at), count(CASE WHEN created_at > ?3 THEN 1 END) FROM delivery
         WHERE receiver = ?1 AND created_at > ?2 AND created_at <= ?4 AND shape <> 'summary'",
    )?;
    let (hour, burst) = (now - HOUR, now - BURST_WINDOW);
    let (last_hour, oldest, lately) = statement
        .query_row(params![receiver.as_str(), Millis(hour), Millis(burst), Millis(now)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Millis>>(1)?, row.get::<_, i64>(2)?))
        })?;
    let last = |shape: Shape| -> Result<Option<Timestamp>, Fault> {
        let mut statement = from.prepare_cached(
            "SELECT max(created_at) FROM delivery WHERE receiver = ?1 AND created_at > ?2 AND created_at <= ?3 AND shape = ?4",
        )?;
        let values = params![receiver.as_str(), Millis(hour), Millis(now), shape.as_str()];
        Ok(time(statement.query_row(values, |row| row.get::<_, Option<Millis>>(0)).optional()?.flatten()))
    };
    Ok(Usage {
        max_per_hour,
        last_hour: small(last_hour),
        oldest: time(oldest),
        lately: small(lately),
        folded_at: last(Shape::Fold)?,
        summed_at: last(Shape::Summary)?,
    })
}

/// Makes the delivery of a message: what waited for it waits no longer.
fn send(to: &Transaction<'_>, message: &Message<'_>, now: Timestamp) -> Result<(), Fault> {
    let Message { receiver, told, counted, merged, bundle } = message;
    let rows = told.iter().map(|row| (row, "told"));
    let rows = rows.chain(counted.iter().map(|row| (row, "counted"))).chain(merged.iter().map(|row| (row, "merged")));
    let mut bundle = bundle.clone();
    if let Some(key) = &bundle.group_key {
        let mut statement = to.prepare_cached(
            "SELECT count(*) FROM group_alert m JOIN alert a ON a.id = m.alert WHERE m.receiver = ?1 AND m.key = ?2
             AND a.state = 'firing' AND m.alert NOT IN (SELECT value FROM json_each(?3))",
        )?;
        let alerts = list(told.iter().chain(counted).map(|row| row.alert.as_str()));
        bundle.told_before = small(statement.query_row(params![receiver.as_str(), key, alerts], |row| row.get(0))?);
    }
    let written = if bundle == Bundle::default() { None } else { Some(json("the bundle of a delivery", &bundle)?) };
    to.prepare_cached(
        "INSERT INTO delivery (webhook_id, receiver, state, attempts, tries, created_at, due_at, next_attempt_at, updated_at, shape, bundle)
         VALUES (?1, ?2, ?3, 0, 0, ?4, ?4, ?4, ?4, ?5, ?6)",
    )?
    .execute(params![
        webhook_id(rows.clone().map(|(row, _)| row.notice.as_str()), receiver),
        receiver.as_str(),
        DeliveryState::Due.as_str(),
        Millis(now),
        bundle.shape.as_str(),
        written,
    ])?;
    let delivery = to.last_insert_rowid();
    for (ordinal, (row, role)) in (0_i64..).zip(rows) {
        to.prepare_cached(
            "INSERT INTO delivery_notice (delivery_no, ordinal, notice, receiver, role) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![delivery, ordinal, row.notice.as_str(), receiver.as_str(), role])?;
        to.prepare_cached("DELETE FROM telling WHERE no = ?1")?.execute([row.no])?;
    }
    Ok(())
}

// -- telling again --

pub(super) fn repeats(from: &Transaction<'_>, now: Timestamp) -> Result<Vec<Repeat>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, key FROM told_group WHERE repeat_at IS NOT NULL AND repeat_at <= ?1 ORDER BY repeat_at LIMIT ?2",
    )?;
    let groups = all(&mut statement, params![Millis(now), MAX_REPEATS], |row| {
        Ok((ReceiverName::from(row.get::<_, String>(0)?), row.get::<_, String>(1)?))
    })?;
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM group_alert m JOIN alert a ON a.id = m.alert LEFT JOIN token t ON t.no = a.token_no
         WHERE m.receiver = ?1 AND m.key = ?2 AND a.state = 'firing' AND NOT EXISTS (SELECT 1 FROM ack k WHERE k.alert = a.id)
         ORDER BY a.starts_at, a.id"
    );
    groups
        .into_iter()
        .map(|(receiver, key)| {
            let alerts = all(&mut *from.prepare_cached(&sql)?, params![receiver.as_str(), key], cycle::alert)?;
            let mut pairs = Vec::with_capacity(alerts.len());
            for alert in alerts {
                let mut statement = from.prepare_cached(
                    "SELECT id, alert, kind, at, receivers, body FROM notice WHERE alert = ?1 ORDER BY at DESC, id LIMIT 1",
                )?;
                if let Some(last) = one(&mut statement, [alert.id.as_str()], notice)? {
                    pairs.push((alert, last));
                }
            }
            Ok(Repeat { receiver, key, alerts: pairs })
        })
        .collect()
}

pub(super) fn commit_repeats(
    to: &Transaction<'_>,
    notices: &[Notice],
    groups: &[(ReceiverName, String, Option<Timestamp>)],
    now: Timestamp,
) -> Result<(), Fault> {
    let scribe = super::commit::Scribe::new(to, now, super::commit::Way::Waits);
    for notice in notices {
        scribe.notice(notice, &mut super::model::Saved::default())?;
    }
    for (receiver, key, repeat_at) in groups {
        to.prepare_cached("UPDATE told_group SET repeat_at = ?3 WHERE receiver = ?1 AND key = ?2")?.execute(params![
            receiver.as_str(),
            key,
            millis(*repeat_at)
        ])?;
    }
    Ok(())
}

// -- silences and acknowledgements --

pub(super) fn put_silence(to: &Transaction<'_>, silence: &Silence) -> Result<(), Fault> {
    to.prepare_cached(
        "INSERT INTO silence (id, matchers, author, comment, starts_at, ends_at, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (id) DO NOTHING",
    )?
    .execute(params![
        silence.id,
        json("the matchers of a silence", &silence.matchers)?,
        silence.author,
        silence.comment,
        Millis(silence.starts_at),
        Millis(silence.ends_at),
        Millis(silence.created_at),
    ])?;
    Ok(())
}

pub(super) fn silences(from: &Transaction<'_>, not_over_at: Option<Timestamp>) -> Result<Vec<Silence>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT id, matchers, author, comment, starts_at, ends_at, created_at FROM silence WHERE ?1 IS NULL OR ends_at > ?1
         ORDER BY ends_at DESC, id",
    )?;
    all(&mut statement, [millis(not_over_at)], |row| {
        let id: String = row.get(0)?;
        let matchers: String = row.get(1)?;
        Ok(Silence {
            matchers: from_json("the matchers of the silence", &id, &matchers)?,
            author: row.get(2)?,
            comment: row.get(3)?,
            starts_at: row.get::<_, Millis>(4)?.0,
            ends_at: row.get::<_, Millis>(5)?.0,
            created_at: row.get::<_, Millis>(6)?.0,
            id,
        })
    })
}

pub(super) fn expire_silence(to: &Transaction<'_>, id: &str, now: Timestamp) -> Result<bool, Fault> {
    // One that had not begun never will.
    let ended = to
        .prepare_cached("UPDATE silence SET ends_at = ?2, starts_at = min(starts_at, ?2) WHERE id = ?1 AND ends_at > ?2")?
        .execute(params![id, Millis(now)])?;
    Ok(ended > 0)
}

pub(super) fn acknowledge(
    to: &Transaction<'_>,
    id: &str,
    author: &str,
    comment: &str,
    now: Timestamp,
) -> Result<Acknowledged, Fault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.state IN ('pending', 'firing') AND substr(a.id, 1, length(?1)) = ?1 ORDER BY a.id LIMIT {}",
        MAX_NAMED + 1
    );
    let mut found = all(&mut *to.prepare_cached(&sql)?, [id], cycle::alert)?;
    if let Some(exact) = found.iter().position(|alert| alert.id.as_str() == id) {
        found = vec![found.swap_remove(exact)];
    }
    let alert = match (found.pop(), found.is_empty()) {
        (None, _) => return Ok(Acknowledged::Unknown),
        (Some(last), false) => {
            let ids = found.into_iter().chain([last]).map(|alert| alert.id).take(MAX_NAMED).collect();
            return Ok(Acknowledged::Several(ids));
        }
        (Some(alert), true) => alert,
    };
    // What is known now: the record as it stands, else as it was last told.
    let record: Option<String> = to
        .prepare_cached(
            "SELECT coalesce(
                 (SELECT r.body FROM record r JOIN alert a ON a.token_no = r.token_no AND a.resource = r.resource AND a.key = r.key
                  WHERE a.id = ?1 LIMIT 1),
                 (SELECT body ->> '$.record' FROM notice WHERE alert = ?1 ORDER BY at DESC LIMIT 1))",
        )?
        .query_row([alert.id.as_str()], |row| row.get(0))?;
    let record =
        record.map(|text| from_json::<serde_json::Value>("the record of the alert", alert.id.as_str(), &text)).transpose()?;
    let fact = Fact::of(alert.level, record.as_ref());
    to.prepare_cached(
        "INSERT INTO ack (alert, author, comment, at, fact) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET author = excluded.author, comment = excluded.comment, at = excluded.at, fact = excluded.fact",
    )?
    .execute(params![alert.id.as_str(), author, comment, Millis(now), json("the fact of an acknowledgement", &fact)?])?;
    Ok(Acknowledged::Done(Box::new(alert)))
}

pub(super) fn unacknowledge(to: &Transaction<'_>, alert: &AlertId) -> Result<bool, Fault> {
    Ok(to.prepare_cached("DELETE FROM ack WHERE alert = ?1")?.execute([alert.as_str()])? > 0)
}

pub(super) fn acks(from: &Transaction<'_>) -> Result<Vec<Ack>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT alert, author, comment, at, fact FROM ack
         WHERE EXISTS (SELECT 1 FROM alert a WHERE a.id = ack.alert AND a.state IN ('pending', 'firing')) ORDER BY at DESC, alert",
    )?;
    all(&mut statement, [], ack)
}

// -- accounting --

/// Everything that was to be told to somebody, and what became of it: in the outbox, in `telling`, or nowhere since nobody was named.
const FATES: &str = "WITH fate AS (
    SELECT n.id, n.alert, n.kind, n.at, n.body, d.receiver, v.state, d.role, v.no AS delivery, NULL AS holder
    FROM notice n JOIN delivery_notice d ON d.notice = n.id JOIN delivery v ON v.no = d.delivery_no
    UNION ALL
    SELECT n.id, n.alert, n.kind, n.at, n.body, t.receiver, t.state, NULL, NULL, t.holder
    FROM notice n JOIN telling t ON t.notice = n.id
    UNION ALL
    SELECT n.id, n.alert, n.kind, n.at, n.body, NULL, 'nobody', NULL, NULL, NULL FROM notice n WHERE n.receivers = '[]')
    SELECT id, alert, kind, at, body ->> '$.rule', body ->> '$.annotations.summary', receiver, state, role, delivery, holder FROM fate";

pub(super) fn fates(from: &Transaction<'_>, filter: &FateFilter) -> Result<Vec<Fate>, Fault> {
    let mut conditions = Conditions::default();
    conditions
        .and_some("alert = ?", filter.alert.as_ref().map(|id| id.as_str().to_owned()))
        .and_some("receiver = ?", filter.receiver.as_ref().map(|name| name.as_str().to_owned()))
        .and_some("at >= ?", filter.since.map(|at| Value::Integer(at.timestamp_millis())));
    if filter.undelivered {
        let states = ["waiting", "silenced", "inhibited", "acknowledged", "nobody"];
        conditions.and("state IN (SELECT value FROM json_each(?))", list(states));
    }
    let (sql, values) = conditions.within(FATES, &format!(" ORDER BY at, id, receiver LIMIT {}", filter.limit));
    all(&mut from.prepare(&sql)?, values, |row| {
        let summary: Option<String> = row.get(5)?;
        Ok(Fate {
            notice: NoticeId::from(row.get::<_, String>(0)?),
            alert: AlertId::from(row.get::<_, String>(1)?),
            kind: row.get(2)?,
            at: row.get::<_, Millis>(3)?.0,
            rule: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
            summary: cut_summary(summary.as_deref().unwrap_or_default()),
            receiver: row.get::<_, Option<String>>(6)?.map(ReceiverName::from),
            state: row.get(7)?,
            role: row.get(8)?,
            delivery: row.get::<_, Option<i64>>(9)?.map(DeliveryId),
            holder: row.get(10)?,
        })
    })
}

/// The latest of what was to be told of each alert to each receiver, and whether anything of it arrived.
const STANDINGS: &str = "WITH asked AS (SELECT id, alert, at FROM notice WHERE alert IN (SELECT value FROM json_each(?1))),
    fate AS (
        SELECT n.alert, d.receiver, n.at, n.id, v.state FROM asked n JOIN delivery_notice d ON d.notice = n.id
        JOIN delivery v ON v.no = d.delivery_no
        UNION ALL
        SELECT n.alert, t.receiver, n.at, n.id, t.state FROM asked n JOIN telling t ON t.notice = n.id)
    SELECT alert, receiver, max(state = 'delivered') OVER whole, state,
           row_number() OVER (PARTITION BY alert, receiver ORDER BY at DESC, id DESC) AS place
    FROM fate WINDOW whole AS (PARTITION BY alert, receiver) ORDER BY alert, receiver, place";

pub(super) fn standings(from: &Transaction<'_>, alerts: &[AlertId]) -> Result<HashMap<AlertId, Vec<Standing>>, Fault> {
    let mut statement = from.prepare_cached(STANDINGS)?;
    let rows = all(&mut statement, [list(alerts.iter().map(AlertId::as_str))], |row| {
        let standing =
            Standing { receiver: ReceiverName::from(row.get::<_, String>(1)?), was_told: row.get(2)?, state: row.get(3)? };
        Ok((AlertId::from(row.get::<_, String>(0)?), standing, row.get::<_, i64>(4)? == 1))
    })?;
    let mut standings: HashMap<AlertId, Vec<Standing>> = HashMap::new();
    for (alert, standing, _) in rows.into_iter().filter(|(_, _, is_latest)| *is_latest) {
        standings.entry(alert).or_default().push(standing);
    }
    Ok(standings)
}

pub(super) fn held_counts(from: &Transaction<'_>, since: Timestamp) -> Result<Vec<HeldCount>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT receiver, sum(waiting), sum(silenced), sum(inhibited), sum(lately) FROM (
             SELECT receiver, 1 AS waiting, 0 AS silenced, 0 AS inhibited, 0 AS lately FROM telling WHERE state = 'waiting'
             UNION ALL
             SELECT receiver, 0, state = 'silenced', state = 'inhibited', 0 FROM telling WHERE state <> 'waiting' AND settled = 0
             UNION ALL
             SELECT receiver, 0, 0, 0, 1 FROM telling WHERE state <> 'waiting' AND since > ?1)
         GROUP BY receiver ORDER BY receiver",
    )?;
    all(&mut statement, [Millis(since)], |row| {
        Ok(HeldCount {
            receiver: ReceiverName::from(row.get::<_, String>(0)?),
            waiting: counted(row.get(1)?),
            silenced: counted(row.get(2)?),
            inhibited: counted(row.get(3)?),
            lately: counted(row.get(4)?),
        })
    })
}

/// What a silence with these matchers hides.
pub(super) fn preview(from: &Transaction<'_>, matchers: &[Matcher], now: Timestamp) -> Result<Preview, Fault> {
    let last_week = labels_since(from, now - TimeDelta::days(7), MAX_PREVIEWED)?;
    Ok(Preview::of(matchers, &open_alerts(from)?, &last_week))
}

/// Alerts that are pending or fire, those that moved last first.
pub(super) fn open_alerts(from: &Transaction<'_>) -> Result<Vec<Alert>, Fault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no WHERE a.state IN ('{}', '{}')
         ORDER BY a.updated_at DESC, a.id",
        AlertState::Pending.as_str(),
        AlertState::Firing.as_str()
    );
    all(&mut *from.prepare_cached(&sql)?, [], cycle::alert)
}

/// Labels of what was told or held back since then.
fn labels_since(from: &Transaction<'_>, since: Timestamp, limit: u32) -> Result<Vec<Labels>, Fault> {
    let mut statement = from.prepare_cached(
        "SELECT id, body ->> '$.labels' FROM notice WHERE at >= ?1 AND receivers <> '[]' ORDER BY at DESC LIMIT ?2",
    )?;
    all(&mut statement, params![Millis(since), limit], |row| {
        let id: String = row.get(0)?;
        from_json("the labels of the notice", &id, &row.get::<_, String>(1)?)
    })
}
