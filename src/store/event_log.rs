//! The event log: everything that happened, in the order of the commits.
//!
//! An event is written in the transaction of what it reports. Write transactions of all processes run one after another, on both engines,
//! so the next number is one more than the highest: there is no gap, no repetition, and no event that becomes visible after a later one. A
//! transaction that is rolled back, such as one of an instance that lost the lease, uses no number.
//!
//! A change is shown as its record, which never changes. The other events store the facts that do.

use std::collections::HashMap;

use rusqlite::params;
use serde::Serialize;
use tokio::sync::watch;

use super::codec::{Millis, all, all_readable, from_json, json, list, one, word};
use super::error::StoreFault;
use super::list_limits::{CHUNK_ROWS, SizeLimit};
use super::query::{CHANGE_COLUMNS, change_row};
use super::sql::{Row, Transaction};
use super::{Store, StoreError};
use model::{
    AcknowledgedAlert, Alert, AlertId, ChangeRow, DecidedNotification, EndedDelivery, EventBody, EventLogFilter, EventLogPage,
    EventLogRange, EventType, LoggedAlert, LoggedEvent, LoggedReload, LoggedSilence, Notification, RuleId, Silence, Timestamp,
    TokenId,
};

/// The maximum number of events that a page examines. With a filter, a page can end before `limit`.
const MAX_EXAMINED: i64 = 10_000;

impl Store {
    /// Returns the events after a cursor, oldest first. A cursor outside of the range selects nothing; see [`EventLogRange::check`].
    pub async fn events(&self, filter: EventLogFilter) -> Result<EventLogPage, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("read the event log", move |from| events(from, &filter, max_bytes)).await
    }

    /// Returns the number of the newest event, or 0 if there never was one.
    pub async fn last_event(&self) -> Result<i64, StoreError> {
        self.read("read the number of the newest event", |from| Ok(range(from)?.last)).await
    }

    /// Returns a receiver that changes after each write of this process. Other processes write too, so readers also look from time to time.
    ///
    /// # Errors
    ///
    /// Fails if the database was opened for reading only.
    pub fn writes(&self) -> Result<watch::Receiver<()>, StoreError> {
        Ok(self.writer("wait for writes")?.done())
    }

    /// Adds a reload of the active instance to the event log.
    pub async fn log_reload(&self, reload: LoggedReload, at: Timestamp) -> Result<(), StoreError> {
        let kind = if reload.problem.is_none() { EventType::ReloadSucceeded } else { EventType::ReloadFailed };
        self.write("store a reload", move |to| {
            let body = Some(facts(&reload)?);
            log_event(to, at, &NewEvent { body, ..NewEvent::of(kind, String::new()) })
        })
        .await
    }
}

/// An event without number and time.
pub(super) struct NewEvent<'e> {
    pub(super) kind: EventType,
    pub(super) token: Option<&'e TokenId>,
    pub(super) rule: Option<&'e RuleId>,
    /// The id of the record that the event is about.
    pub(super) record_id: String,
    pub(super) body: Option<String>,
}

impl NewEvent<'_> {
    pub(super) fn of(kind: EventType, record_id: String) -> Self {
        Self { kind, token: None, rule: None, record_id, body: None }
    }
}

/// The next number. Each statement sees the events of the statements before it.
const NEXT: &str = "(SELECT coalesce(max(seq), 0) + 1 FROM event_log)";

const INSERT: &str = "INSERT INTO event_log (seq, at, type, token_no, rule, record_id, body)";

/// Adds an event.
pub(super) fn log_event(to: &Transaction<'_>, at: Timestamp, event: &NewEvent<'_>) -> Result<(), StoreFault> {
    let sql = format!("{INSERT} VALUES ({NEXT}, ?1, ?2, (SELECT no FROM token WHERE id = ?3), ?4, ?5, ?6)");
    let NewEvent { kind, token, rule, record_id, body } = event;
    let (token, rule) = (token.map(TokenId::as_str), rule.map(RuleId::as_str));
    Ok(to.prepare_cached(&sql)?.execute(params![Millis(at), kind.as_str(), token, rule, record_id, body])?)
}

/// Adds an event unless `known` selects a row. It can refer to the record by `?5` and to `state` by `?7`.
fn log_unless(to: &Transaction<'_>, known: &str, state: &str, at: Timestamp, event: &NewEvent<'_>) -> Result<(), StoreFault> {
    let sql = format!(
        "{INSERT} SELECT {NEXT}, CAST(?1 AS BIGINT), CAST(?2 AS TEXT), (SELECT no FROM token WHERE id = ?3), CAST(?4 AS TEXT),
         CAST(?5 AS TEXT), CAST(?6 AS TEXT) WHERE NOT EXISTS ({known})"
    );
    let NewEvent { kind, token, rule, record_id, body } = event;
    let (token, rule) = (token.map(TokenId::as_str), rule.map(RuleId::as_str));
    Ok(to.prepare_cached(&sql)?.execute(params![Millis(at), kind.as_str(), token, rule, record_id, body, state])?)
}

fn facts(body: &impl Serialize) -> Result<String, StoreFault> {
    json("the body of an event", body)
}

/// Adds the transition of an alert that is about to be written, unless it already has this state.
pub(super) fn log_transition(to: &Transaction<'_>, at: Timestamp, alert: &Alert) -> Result<(), StoreFault> {
    let event = NewEvent {
        kind: EventType::of_alert(&alert.rule, alert.state),
        token: alert.token.as_ref(),
        rule: Some(&alert.rule),
        record_id: alert.id.as_str().to_owned(),
        body: Some(facts(&LoggedAlert::of(alert))?),
    };
    log_unless(to, "SELECT 1 FROM alert WHERE id = CAST(?5 AS TEXT) AND state = ?7", alert.state.as_str(), at, &event)
}

/// Adds a notification.
pub(super) fn log_notification(to: &Transaction<'_>, at: Timestamp, notification: &Notification) -> Result<(), StoreFault> {
    let Notification { id, alert, kind, body, .. } = notification;
    let decided = DecidedNotification { notification: id.clone(), alert: alert.clone(), kind: *kind };
    let (token, rule) = (body.token.as_ref().map(|token| TokenId::from(token.id.as_str())), RuleId::from(body.rule.as_str()));
    let event = NewEvent {
        kind: EventType::Notification,
        token: token.as_ref(),
        rule: Some(&rule),
        record_id: id.as_str().to_owned(),
        body: Some(facts(&decided)?),
    };
    log_event(to, at, &event)
}

/// Adds the end of a delivery. Does nothing if it has not ended.
pub(super) fn log_delivery(to: &Transaction<'_>, at: Timestamp, ended: &EndedDelivery) -> Result<(), StoreFault> {
    EventType::of_delivery(ended.state).map_or(Ok(()), |kind| log_delivery_event(to, at, kind, ended))
}

/// Adds an event of a delivery.
pub(super) fn log_delivery_event(
    to: &Transaction<'_>,
    at: Timestamp,
    kind: EventType,
    delivery: &EndedDelivery,
) -> Result<(), StoreFault> {
    log_event(to, at, &NewEvent { body: Some(facts(delivery)?), ..NewEvent::of(kind, delivery.delivery.to_string()) })
}

/// Adds an acknowledgement or its removal.
pub(super) fn log_acknowledgement(
    to: &Transaction<'_>,
    at: Timestamp,
    kind: EventType,
    acknowledged: &AcknowledgedAlert,
) -> Result<(), StoreFault> {
    log_alert_event(to, at, kind, &acknowledged.alert, acknowledged)
}

/// Adds what a user did with an alert.
pub(super) fn log_alert_event(
    to: &Transaction<'_>,
    at: Timestamp,
    kind: EventType,
    alert: &AlertId,
    body: &impl Serialize,
) -> Result<(), StoreFault> {
    let mut statement =
        to.prepare_cached("SELECT t.id, a.rule FROM alert a LEFT JOIN token t ON t.no = a.token_no WHERE a.id = ?1")?;
    let found = one(&mut statement, [alert.as_str()], |row| {
        Ok((row.get::<Option<String>>(0)?.map(TokenId::from), RuleId::from(row.get::<String>(1)?)))
    })?;
    let (token, rule) = found.map_or((None, None), |(token, rule)| (token, Some(rule)));
    let event = NewEvent {
        kind,
        token: token.as_ref(),
        rule: rule.as_ref(),
        record_id: alert.as_str().to_owned(),
        body: Some(facts(body)?),
    };
    log_event(to, at, &event)
}

/// Adds a silence that is about to be written, unless its id exists.
pub(super) fn log_new_silence(to: &Transaction<'_>, silence: &Silence) -> Result<(), StoreFault> {
    let body = Some(facts(&LoggedSilence::of(silence))?);
    let event = NewEvent { body, ..NewEvent::of(EventType::SilenceCreated, silence.id.clone()) };
    let known = "SELECT 1 FROM silence WHERE id = CAST(?7 AS TEXT)";
    log_unless(to, known, &silence.id, silence.created_at, &event)
}

/// Adds a change of a silence: its update, or its end by a user.
pub(super) fn log_silence(to: &Transaction<'_>, at: Timestamp, kind: EventType, silence: &Silence) -> Result<(), StoreFault> {
    let body = Some(facts(&LoggedSilence::of(silence))?);
    log_event(to, at, &NewEvent { body, ..NewEvent::of(kind, silence.id.clone()) })
}

fn range(from: &Transaction<'_>) -> Result<EventLogRange, StoreFault> {
    // One index lookup each. A statement with both aggregates would read the whole table.
    let mut statement = from.prepare_cached("SELECT (SELECT min(seq) FROM event_log), (SELECT max(seq) FROM event_log)")?;
    let (first, last) = statement.query_row([], |row| Ok((row.get::<Option<i64>>(0)?, row.get::<Option<i64>>(1)?)))?;
    Ok(EventLogRange { first: first.unwrap_or(1), last: last.unwrap_or(0) })
}

/// Reads a page. Its parts are read in one transaction, so they belong together.
fn events(from: &Transaction<'_>, filter: &EventLogFilter, max_bytes: usize) -> Result<EventLogPage, StoreFault> {
    let range = range(from)?;
    let after = filter.after.unwrap_or(range.first - 1);
    let mut page = EventLogPage { range, events: Vec::new(), next: after };
    if range.check(after).is_err() {
        return Ok(page);
    }
    let until = after.saturating_add(MAX_EXAMINED).min(range.last);
    let (mut size, mut left) = (SizeLimit::new(max_bytes), filter.limit);
    while left > 0 {
        let wanted = left.min(CHUNK_ROWS);
        let chunk = chunk(from, filter, page.next, until, wanted)?;
        let is_last = chunk.len() < wanted as usize;
        for (event, bytes) in chunk {
            if !size.take(bytes) {
                return Ok(page);
            }
            page.next = event.seq;
            page.events.push(event);
        }
        if is_last {
            page.next = until;
            break;
        }
        left -= wanted;
    }
    Ok(page)
}

/// Reads events with their sizes.
fn chunk(
    from: &Transaction<'_>,
    filter: &EventLogFilter,
    after: i64,
    until: i64,
    limit: u32,
) -> Result<Vec<(LoggedEvent, usize)>, StoreFault> {
    let types = if filter.kinds.is_empty() { &EventType::ALL[..] } else { &filter.kinds };
    let mut statement = from.prepare_cached(
        "SELECT e.seq, e.at, e.type, t.id, e.rule, e.record_id, e.body FROM event_log e LEFT JOIN token t ON t.no = e.token_no
         WHERE e.seq > ?1 AND e.seq <= ?2 AND e.type IN (SELECT value FROM json_each(?3)) ORDER BY e.seq LIMIT ?4",
    )?;
    let values = params![after, until, list(types.iter().map(|kind| kind.as_str())), limit];
    let rows = all(&mut statement, values, |row| Ok((event(row)?, row.get::<String>(5)?, row.text_bytes())))?;
    let is_change = |event: &LoggedEvent| event.kind == EventType::Change;
    let numbers = rows.iter().filter(|(event, ..)| is_change(event)).map(|(_, number, _)| number.as_str());
    let mut changes: HashMap<String, (ChangeRow, usize)> =
        changes(from, numbers)?.into_iter().map(|change| (change.0.id.to_string(), change)).collect();
    let mut events = Vec::with_capacity(rows.len());
    for (mut event, number, mut bytes) in rows {
        if is_change(&event)
            && let Some((change, change_bytes)) = changes.remove(&number)
        {
            event.body = Some(EventBody::Change(Box::new(change)));
            bytes += change_bytes;
        }
        events.push((event, bytes));
    }
    Ok(events)
}

/// Reads an event, except for the body of a change.
fn event(row: &Row<'_>) -> Result<LoggedEvent, StoreFault> {
    let seq: i64 = row.get(0)?;
    let of = seq.to_string();
    let body: Option<String> = row.get(6)?;
    let body = body.map(|text| from_json("the body of the event", &of, &text)).transpose()?;
    Ok(LoggedEvent {
        seq,
        kind: word("the type of the event", &of, &row.get::<String>(2)?, EventType::parse)?,
        at: row.get::<Millis>(1)?.0,
        token: row.get::<Option<String>>(3)?.map(TokenId::from),
        rule: row.get::<Option<String>>(4)?.map(RuleId::from),
        body: body.map(EventBody::Facts),
    })
}

/// Reads changes with their sizes, by number. Damaged ones are left out: their events have no body, and the log goes on.
fn changes<'n>(from: &Transaction<'_>, numbers: impl Iterator<Item = &'n str>) -> Result<Vec<(ChangeRow, usize)>, StoreFault> {
    let sql = format!(
        "SELECT {CHANGE_COLUMNS} FROM change c LEFT JOIN token t ON t.no = c.token_no
         WHERE c.no IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) ORDER BY c.no"
    );
    all_readable(&mut *from.prepare_cached(&sql)?, [list(numbers)], |row| Ok((change_row(row)?, row.text_bytes())))
}
