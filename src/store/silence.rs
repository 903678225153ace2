//! What a person does not want to hear: silences and acknowledgements, and what a silence would hide.

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, all, from_json, json, millis, one, word};
use super::error::StoreFault;
use super::rows::{self, ALERT_COLUMNS};
use super::sql::{Row, Transaction};
use super::{Store, StoreError, schedule};
use model::{Ack, AckResult, Alert, AlertId, AlertState, Labels, Silence, SilenceFact, SilencePreview, SilencedAlert, Timestamp};

/// Alerts that an ambiguous id names.
const MAX_NAMED: usize = 5;

impl Store {
    /// Makes a silence; the same one twice is one.
    pub async fn put_silence(&self, silence: Silence) -> Result<(), StoreError> {
        self.act("write a silence", move |to| put_silence(to, &silence)).await
    }

    /// Silences that are not over at `now`, or all, those that end last first.
    pub async fn silences(&self, not_over_at: Option<Timestamp>) -> Result<Vec<Silence>, StoreError> {
        self.read("read silences", move |from| silences(from, not_over_at)).await
    }

    /// Ends a silence; answers whether there was one of this id that was not over.
    pub async fn expire_silence(&self, id: String, now: Timestamp) -> Result<bool, StoreError> {
        self.act("end a silence", move |to| expire_silence(to, &id, now)).await
    }

    /// Acknowledges an alert that fires or is pending, by its id or the begin of it.
    /// That there is no such alert, or several, is an answer.
    pub async fn acknowledge(
        &self,
        alert: String,
        author: String,
        comment: String,
        now: Timestamp,
    ) -> Result<AckResult, StoreError> {
        self.act("acknowledge an alert", move |to| acknowledge(to, &alert, &author, &comment, now)).await
    }

    /// Takes an acknowledgement back; answers whether there was one.
    pub async fn unacknowledge(&self, alert: AlertId) -> Result<bool, StoreError> {
        self.act("take an acknowledgement back", move |to| unacknowledge(to, &alert)).await
    }

    /// What is acknowledged, the latest first; where an alert is over, nothing is any more.
    pub async fn acks(&self) -> Result<Vec<Ack>, StoreError> {
        self.read("read acknowledgements", acks).await
    }

    /// The acknowledgement of an alert, also of one that is over; none where nobody acknowledged it, or took that back.
    pub async fn ack_of(&self, alert: AlertId) -> Result<Option<Ack>, StoreError> {
        let sql = "SELECT alert, author, comment, at, fact FROM ack WHERE alert = ?1";
        self.read("read an acknowledgement", move |from| one(&mut *from.prepare_cached(sql)?, [alert.as_str()], ack)).await
    }

    /// The labels of the alerts that are pending or fire.
    pub async fn open_labels(&self) -> Result<Vec<Labels>, StoreError> {
        self.read("read the labels of open alerts", open_labels).await
    }

    /// What a silence that hides these labels takes of the alerts that are open, and of the messages of the week before `now`.
    pub async fn preview(
        &self,
        hides: impl Fn(&Labels) -> bool + Send + 'static,
        now: Timestamp,
    ) -> Result<SilencePreview, StoreError> {
        self.read("preview a silence", move |from| preview(from, hides, now)).await
    }
}

fn put_silence(to: &Transaction<'_>, silence: &Silence) -> Result<(), StoreFault> {
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
    let mut statement = from.prepare_cached(
        "SELECT id, matchers, author, comment, starts_at, ends_at, created_at FROM silence WHERE ends_at > ?1 OR ?1 IS NULL
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

fn expire_silence(to: &Transaction<'_>, id: &str, now: Timestamp) -> Result<bool, StoreFault> {
    // One that had not begun never will.
    let ended = to
        .prepare_cached("UPDATE silence SET ends_at = ?2, starts_at = min(starts_at, ?2) WHERE id = ?1 AND ends_at > ?2")?
        .execute_counted(params![id, Millis(now)])?;
    Ok(ended > 0)
}

fn acknowledge(to: &Transaction<'_>, id: &str, author: &str, comment: &str, now: Timestamp) -> Result<AckResult, StoreFault> {
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
    // What is known now: the record as it stands, else as it was last told.
    let record = match known_record(to, &alert)? {
        Some(record) => Some(record),
        None => told_record(to, &alert)?,
    };
    let fact = SilenceFact::of(alert.level, record.as_ref());
    to.prepare_cached(
        "INSERT INTO ack (alert, author, comment, at, fact) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (alert) DO UPDATE SET author = excluded.author, comment = excluded.comment, at = excluded.at, fact = excluded.fact",
    )?
    .execute(params![alert.id.as_str(), author, comment, Millis(now), json("the fact of an acknowledgement", &fact)?])?;
    Ok(AckResult::Done(Box::new(alert)))
}

/// The record of an alert as it stands.
fn known_record(from: &Transaction<'_>, alert: &Alert) -> Result<Option<serde_json::Value>, StoreFault> {
    let (Some(token), Some(resource), Some(key)) = (&alert.token, alert.resource, &alert.key) else { return Ok(None) };
    let mut statement = from.prepare_cached(
        "SELECT r.scope_no, r.body FROM record r JOIN token t ON t.no = r.token_no WHERE t.id = ?1 AND r.resource = ?2 AND r.key = ?3 LIMIT 1",
    )?;
    let found = one(&mut statement, params![token.as_str(), resource.as_str(), key.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?))
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

/// The record of an alert as it was last told.
fn told_record(from: &Transaction<'_>, alert: &Alert) -> Result<Option<serde_json::Value>, StoreFault> {
    let mut statement =
        from.prepare_cached("SELECT body ->> '$.record' FROM notice WHERE alert = ?1 ORDER BY at DESC LIMIT 1")?;
    let told = one(&mut statement, [alert.id.as_str()], |row| Ok(row.get::<_, Option<String>>(0)?))?.flatten();
    told.map(|text| from_json("the record of the alert", alert.id.as_str(), &text)).transpose()
}

fn unacknowledge(to: &Transaction<'_>, alert: &AlertId) -> Result<bool, StoreFault> {
    Ok(to.prepare_cached("DELETE FROM ack WHERE alert = ?1")?.execute_counted([alert.as_str()])? > 0)
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
        at: row.get::<_, Millis>(3)?.0,
        fact: from_json("the fact of the acknowledgement", &alert, &fact)?,
        alert: AlertId::from(alert),
    })
}

/// What a silence hides of what is open and of last week's messages. Only the labels are read of what it does not hide.
fn preview(from: &Transaction<'_>, hides: impl Fn(&Labels) -> bool, now: Timestamp) -> Result<SilencePreview, StoreFault> {
    let mut preview = SilencePreview::default();
    let mut statement = from.prepare_cached(&format!(
        "SELECT body ->> '$.labels', id, name, state, body ->> '$.annotations.summary', subject FROM alert WHERE {OPEN}
         ORDER BY updated_at DESC, id"
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        preview.open += 1;
        if hides(&labels(&row, "the labels of an alert")?) {
            let (id, rule, state, subject): (String, String, String, String) =
                (row.get(1)?, row.get(2)?, row.get(3)?, row.get(5)?);
            let state = word("the state of the alert", &id, &state, AlertState::parse)?;
            let summary: Option<String> = row.get(4)?;
            preview.alerts.push(SilencedAlert::of(AlertId::from(id), rule, state, summary.as_deref(), &subject));
        }
    }
    let mut statement = from.prepare_cached(WEEK)?;
    let mut rows = statement.query(params![Millis(now - TimeDelta::days(7)), SilencePreview::MAX_MESSAGES])?;
    while let Some(row) = rows.next()? {
        preview.last_week_all += 1;
        preview.last_week += usize::from(hides(&labels(&row, "the labels of a notice")?));
    }
    Ok(preview)
}

/// The labels of what was told or held back since a time, by the index alone: messages are long.
pub(super) const WEEK: &str =
    "SELECT body ->> '$.labels' FROM notice INDEXED BY notice_age WHERE at >= ?1 AND receivers <> '[]' ORDER BY at DESC LIMIT ?2";

/// Alerts that are pending or fire.
const OPEN: &str = "state IN ('pending', 'firing')";

fn open_labels(from: &Transaction<'_>) -> Result<Vec<Labels>, StoreFault> {
    let mut statement = from.prepare_cached(&format!("SELECT body ->> '$.labels' FROM alert WHERE {OPEN}"))?;
    all(&mut statement, [], |row| labels(row, "the labels of an alert"))
}

/// The labels of the first column.
fn labels(row: &Row<'_>, what: &'static str) -> Result<Labels, StoreFault> {
    from_json(what, "", row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)
}
