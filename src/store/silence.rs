//! Silences and acknowledgements.

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, all, all_readable, from_json, json, list, millis, one, word};
use super::error::StoreFault;
use super::event_log::{log_acknowledgement, log_new_silence, log_silence};
use super::rows::{self, ALERT_COLUMNS};
use super::sql::{Engine, Row, Transaction};
use super::{Store, StoreError, schedule};
use model::{
    Ack, AckResult, AcknowledgedAlert, ActionOutcome, Alert, AlertId, AlertState, EventType, Labels, MatcherSets, Silence,
    SilenceFact, SilencePreview, SilenceRequest, SilencedAlert, Timestamp,
};

/// The maximum number of alert ids returned for an ambiguous prefix.
const MAX_NAMED: usize = 5;

impl Store {
    /// Stores a silence. Does nothing if the id exists.
    pub async fn put_silence(&self, silence: Silence) -> Result<(), StoreError> {
        self.act("write a silence", move |to| put_silence(to, &silence)).await
    }

    /// Returns the silences that end after `not_over_at`, or all. The last to end comes first.
    pub async fn silences(&self, not_over_at: Option<Timestamp>) -> Result<Vec<Silence>, StoreError> {
        self.read("read silences", move |from| silences(from, not_over_at)).await
    }

    /// Ends a silence. Returns whether an active or future silence had this id.
    pub async fn expire_silence(&self, id: String, now: Timestamp) -> Result<bool, StoreError> {
        self.act("end a silence", move |to| expire_silence(to, &id, now)).await
    }

    /// Acknowledges a pending or firing alert, by its id or a prefix. An unknown or ambiguous id is a result, not an
    /// error.
    pub async fn acknowledge(
        &self,
        alert: String,
        author: String,
        comment: String,
        now: Timestamp,
    ) -> Result<AckResult, StoreError> {
        self.act("acknowledge an alert", move |to| acknowledge(to, &alert, &author, &comment, now)).await
    }

    /// Removes an acknowledgement. Returns whether there was one.
    pub async fn unacknowledge(&self, alert: AlertId, now: Timestamp) -> Result<bool, StoreError> {
        self.act("remove an acknowledgement", move |to| unacknowledge(to, alert, now)).await
    }

    /// Returns the acknowledgements of open alerts, latest first.
    pub async fn acks(&self) -> Result<Vec<Ack>, StoreError> {
        self.read("read acknowledgements", acks).await
    }

    /// Returns the acknowledgement of an alert, which may be resolved, or `None` if it is not acknowledged.
    pub async fn ack_of(&self, alert: AlertId) -> Result<Option<Ack>, StoreError> {
        let sql = "SELECT alert, author, comment, at, fact FROM ack WHERE alert = ?1";
        self.read("read an acknowledgement", move |from| one(&mut *from.prepare_cached(sql)?, [alert.as_str()], ack)).await
    }

    /// Returns the labels of pending and firing alerts.
    pub async fn open_labels(&self) -> Result<Vec<Labels>, StoreError> {
        self.read("read the labels of open alerts", open_labels).await
    }

    /// Returns the open alerts that silences would suppress, and the number of notifications of the week before `now`.
    pub async fn preview(&self, silences: MatcherSets, now: Timestamp) -> Result<SilencePreview, StoreError> {
        self.read("preview a silence", move |from| preview(from, &silences, now)).await
    }
}

/// Stores a silence in place of an active or future one, which ends. Does nothing and returns `false` if none has the id `replaced`.
pub(super) fn replace_silence(
    to: &Transaction<'_>,
    replaced: &str,
    silence: &Silence,
    now: Timestamp,
) -> Result<bool, StoreFault> {
    let is_replaced = expire_silence(to, replaced, now)?;
    if is_replaced {
        put_silence(to, silence)?;
    }
    Ok(is_replaced)
}

/// Stores a silence, unless its id exists.
pub(super) fn put_silence(to: &Transaction<'_>, silence: &Silence) -> Result<(), StoreFault> {
    log_new_silence(to, silence)?;
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

pub(super) fn silences(from: &Transaction<'_>, not_over_at: Option<Timestamp>) -> Result<Vec<Silence>, StoreFault> {
    let sql = format!("SELECT {SILENCE_COLUMNS} FROM silence WHERE ends_at > ?1 OR ?1 IS NULL ORDER BY ends_at DESC, id");
    all_readable(&mut *from.prepare_cached(&sql)?, [millis(not_over_at)], silence)
}

/// The columns for [`silence`].
const SILENCE_COLUMNS: &str = "id, matchers, author, comment, starts_at, ends_at, created_at";

fn silence(row: &Row<'_>) -> Result<Silence, StoreFault> {
    let id: String = row.get(0)?;
    let matchers: String = row.get(1)?;
    Ok(Silence {
        matchers: from_json("the matchers of the silence", &id, &matchers)?,
        author: row.get(2)?,
        comment: row.get(3)?,
        starts_at: row.get::<Millis>(4)?.0,
        ends_at: row.get::<Millis>(5)?.0,
        created_at: row.get::<Millis>(6)?.0,
        id,
    })
}

fn expire_silence(to: &Transaction<'_>, id: &str, now: Timestamp) -> Result<bool, StoreFault> {
    // A silence that has not started will never start.
    let ended = to
        .prepare_cached("UPDATE silence SET ends_at = ?2, starts_at = min(starts_at, ?2) WHERE id = ?1 AND ends_at > ?2")?
        .execute_counted(params![id, Millis(now)])?;
    if ended == 0 {
        return Ok(false);
    }
    let sql = format!("SELECT {SILENCE_COLUMNS} FROM silence WHERE id = ?1");
    if let Some(silence) = one(&mut *to.prepare_cached(&sql)?, [id], silence)? {
        log_silence(to, now, EventType::SilenceExpired, &silence)?;
    }
    Ok(true)
}

/// Replaces the values of an active or future silence.
pub(super) fn update_silence(
    to: &Transaction<'_>,
    id: &str,
    request: SilenceRequest,
    now: Timestamp,
) -> Result<ActionOutcome, StoreFault> {
    let sql = format!("SELECT {SILENCE_COLUMNS} FROM silence WHERE id = ?1 AND ends_at > ?2");
    let Some(former) = one(&mut *to.prepare_cached(&sql)?, params![id, Millis(now)], silence)? else {
        return Ok(ActionOutcome::Unknown);
    };
    let silence = match request.into_update(&former, now) {
        Ok(silence) => silence,
        Err(error) => return Ok(ActionOutcome::InvalidSilence(error)),
    };
    if silence != former {
        to.prepare_cached(
            "UPDATE silence SET matchers = ?2, author = ?3, comment = ?4, starts_at = ?5, ends_at = ?6 WHERE id = ?1",
        )?
        .execute(params![
            silence.id,
            json("the matchers of a silence", &silence.matchers)?,
            silence.author,
            silence.comment,
            Millis(silence.starts_at),
            Millis(silence.ends_at),
        ])?;
        log_silence(to, now, EventType::SilenceUpdated, &silence)?;
    }
    Ok(ActionOutcome::SilenceUpdated(silence))
}

pub(super) fn acknowledge(
    to: &Transaction<'_>,
    id: &str,
    author: &str,
    comment: &str,
    now: Timestamp,
) -> Result<AckResult, StoreFault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.state IN ('pending', 'firing') AND substr(a.id, 1, length(?1)) = ?1 ORDER BY a.id LIMIT {}",
        MAX_NAMED + 1
    );
    let mut found = all(&mut *to.prepare_cached(&sql)?, [id], rows::alert)?;
    if let Some(exact) = found.iter().position(|alert| alert.id.as_str() == id) {
        found = vec![found.swap_remove(exact)];
    }
    let alert = match (found.pop(), found.is_empty()) {
        (None, _) => return Ok(AckResult::Unknown),
        (Some(last), false) => {
            let ids = found.into_iter().chain([last]).map(|alert| alert.id).take(MAX_NAMED).collect();
            return Ok(AckResult::Several(ids));
        }
        (Some(alert), true) => alert,
    };
    // The current facts: the known record, else the record of the last notification.
    let record = match known_record(to, &alert)? {
        Some(record) => Some(record),
        None => notified_record(to, &alert)?,
    };
    let fact = SilenceFact::of(alert.level, record.as_ref());
    to.prepare_cached(
        "INSERT INTO ack (alert, author, comment, at, fact) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (alert) DO UPDATE SET author = excluded.author, comment = excluded.comment, at = excluded.at, fact = excluded.fact",
    )?
    .execute(params![alert.id.as_str(), author, comment, Millis(now), json("the fact of an acknowledgement", &fact)?])?;
    let acknowledged =
        AcknowledgedAlert { alert: alert.id.clone(), author: Some(author.to_owned()), comment: Some(comment.to_owned()) };
    log_acknowledgement(to, now, EventType::AcknowledgementAdded, &acknowledged)?;
    Ok(AckResult::Done(Box::new(alert)))
}

/// Returns the current record of an alert.
fn known_record(from: &Transaction<'_>, alert: &Alert) -> Result<Option<serde_json::Value>, StoreFault> {
    let (Some(token), Some(resource), Some(key)) = (&alert.token, alert.resource, &alert.key) else { return Ok(None) };
    let mut statement = from.prepare_cached(
        "SELECT r.scope_no, r.body FROM record r JOIN token t ON t.no = r.token_no WHERE t.id = ?1 AND r.resource = ?2 AND r.key = ?3 LIMIT 1",
    )?;
    let found = one(&mut statement, params![token.as_str(), resource.as_str(), key.as_str()], |row| {
        Ok((row.get::<i64>(0)?, row.get::<Option<String>>(1)?))
    })?;
    let Some((scope, body)) = found else { return Ok(None) };
    match body {
        Some(text) => from_json("the record of the alert", alert.id.as_str(), &text).map(Some),
        None => {
            let event = schedule::event(from, scope, key.as_str(), token.as_str())?;
            Ok(serde_json::to_value(&event.record).ok())
        }
    }
}

/// Returns the record in the last notification of an alert.
fn notified_record(from: &Transaction<'_>, alert: &Alert) -> Result<Option<serde_json::Value>, StoreFault> {
    let mut statement =
        from.prepare_cached("SELECT body ->> '$.record' FROM notification WHERE alert = ?1 ORDER BY at DESC LIMIT 1")?;
    let notified = one(&mut statement, [alert.id.as_str()], |row| Ok(row.get::<Option<String>>(0)?))?.flatten();
    notified.map(|text| from_json("the record of the alert", alert.id.as_str(), &text)).transpose()
}

pub(super) fn unacknowledge(to: &Transaction<'_>, alert: AlertId, now: Timestamp) -> Result<bool, StoreFault> {
    let deleted = to.prepare_cached("DELETE FROM ack WHERE alert = ?1")?.execute_counted([alert.as_str()])?;
    if deleted > 0 {
        let removed = AcknowledgedAlert { alert, author: None, comment: None };
        log_acknowledgement(to, now, EventType::AcknowledgementRemoved, &removed)?;
    }
    Ok(deleted > 0)
}

pub(super) fn acks(from: &Transaction<'_>) -> Result<Vec<Ack>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT alert, author, comment, at, fact FROM ack
         WHERE EXISTS (SELECT 1 FROM alert a WHERE a.id = ack.alert AND a.state IN ('pending', 'firing')) ORDER BY at DESC, alert",
    )?;
    all(&mut statement, [], ack)
}

pub(super) fn ack(row: &Row<'_>) -> Result<Ack, StoreFault> {
    let alert: String = row.get(0)?;
    let fact: String = row.get(4)?;
    Ok(Ack {
        author: row.get(1)?,
        comment: row.get(2)?,
        at: row.get::<Millis>(3)?.0,
        fact: from_json("the fact of the acknowledgement", &alert, &fact)?,
        alert: AlertId::from(alert),
    })
}

/// Previews a silence. Reads only the labels of alerts that it does not hide.
fn preview(from: &Transaction<'_>, silences: &MatcherSets, now: Timestamp) -> Result<SilencePreview, StoreFault> {
    let mut preview = SilencePreview::default();
    let mut suppressed: Vec<String> = Vec::new();
    let mut statement = from.prepare_cached(&open_sql(from.engine()))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        preview.open += 1;
        if is_matched(silences, &row, "the labels of an alert")? {
            suppressed.push(row.get(1)?);
        }
    }
    let mut statement = from.prepare_cached(
        "SELECT id, name, state, body ->> '$.annotations.summary', subject FROM alert
         WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY updated_at DESC, id",
    )?;
    preview.alerts = all(&mut statement, [list(suppressed.iter().map(String::as_str))], |row| {
        let (id, rule, state, subject): (String, String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?);
        let state = word("the state of the alert", &id, &state, AlertState::parse)?;
        let summary: Option<String> = row.get(3)?;
        Ok(SilencedAlert::of(AlertId::from(id), rule, state, summary.as_deref(), &subject))
    })?;
    let mut statement = from.prepare_cached(&week_sql(from.engine()))?;
    let mut rows = statement.query(params![Millis(now - TimeDelta::days(7)), SilencePreview::MAX_MESSAGES])?;
    while let Some(row) = rows.next()? {
        preview.last_week_all += 1;
        preview.last_week += usize::from(is_matched(silences, &row, "the labels of a notification")?);
    }
    Ok(preview)
}

/// Selects the labels and ids of open alerts, latest first. Reads only the index, because alerts are large.
pub(super) fn open_sql(engine: Engine) -> String {
    let indexed = engine.indexed_by("alert_open_labels");
    format!("SELECT {}, id FROM alert {indexed} WHERE {OPEN} ORDER BY updated_at DESC, id", engine.labels())
}

/// Selects the labels of notifications since a time. Reads only the index, because notifications are large.
pub(super) fn week_sql(engine: Engine) -> String {
    let indexed = engine.indexed_by("notification_age");
    format!(
        "SELECT {} FROM notification {indexed} WHERE at >= ?1 AND receivers <> '[]' ORDER BY at DESC LIMIT ?2",
        engine.labels()
    )
}

/// Returns whether a silence matches the labels in the first column.
fn is_matched(silences: &MatcherSets, row: &Row<'_>, what: &'static str) -> Result<bool, StoreFault> {
    let text = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    if !silences.can_match(text) {
        return Ok(false);
    }
    Ok(silences.match_labels(&labels(row, what)?))
}

/// Matches pending and firing alerts.
const OPEN: &str = "state IN ('pending', 'firing')";

fn open_labels(from: &Transaction<'_>) -> Result<Vec<Labels>, StoreFault> {
    all(&mut *from.prepare_cached(&open_sql(from.engine()))?, [], |row| labels(row, "the labels of an alert"))
}

/// Reads labels from the first column.
fn labels(row: &Row<'_>, what: &'static str) -> Result<Labels, StoreFault> {
    from_json(what, "", row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)
}
