//! Notes on alerts, and their assignees.

use std::collections::HashMap;

use rusqlite::params;

use super::codec::{Millis, all, list, one};
use super::error::StoreFault;
use super::event_log::log_alert_event;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::note::{AlertNote, Assignment, MAX_NOTES, NewAssignment, NewNote};
use model::{ActionOutcome, AlertId, EventType, Timestamp};

impl Store {
    /// Returns the notes on an alert, oldest first.
    pub async fn notes(&self, alert: AlertId) -> Result<Vec<AlertNote>, StoreError> {
        let sql = "SELECT at, author, text FROM note WHERE alert = ?1 ORDER BY no";
        self.read("read the notes on an alert", move |from| {
            all(&mut *from.prepare_cached(sql)?, [alert.as_str()], |row| {
                Ok(AlertNote { at: row.get::<Millis>(0)?.0, author: row.get(1)?, text: row.get(2)? })
            })
        })
        .await
    }

    /// Returns the assignments of those of the alerts that have one.
    pub async fn assignments(&self, alerts: Vec<AlertId>) -> Result<HashMap<AlertId, Assignment>, StoreError> {
        let sql = "SELECT alert, name, author, at FROM assignee WHERE alert IN (SELECT value FROM json_each(?1))";
        self.read("read the assignees of alerts", move |from| {
            let found = all(&mut *from.prepare_cached(sql)?, [list(alerts.iter().map(AlertId::as_str))], |row| {
                let assignment = Assignment { assignee: row.get(1)?, author: row.get(2)?, at: row.get::<Millis>(3)?.0 };
                Ok((AlertId::from(row.get::<String>(0)?), assignment))
            })?;
            Ok(found.into_iter().collect())
        })
        .await
    }
}

/// Adds a note to an alert, also to one that has ended.
pub(super) fn add_note(to: &Transaction<'_>, note: &NewNote, now: Timestamp) -> Result<ActionOutcome, StoreFault> {
    if !exists(to, &note.alert)? {
        return Ok(ActionOutcome::Unknown);
    }
    let mut statement = to.prepare_cached("SELECT count(*) FROM note WHERE alert = ?1")?;
    let count = one(&mut statement, [note.alert.as_str()], |row| Ok(row.get::<i64>(0)?))?.unwrap_or(0);
    if count >= i64::from(MAX_NOTES) {
        return Ok(ActionOutcome::TooManyNotes);
    }
    to.prepare_cached("INSERT INTO note (alert, at, author, text) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        note.alert.as_str(),
        Millis(now),
        note.author,
        note.text
    ])?;
    log_alert_event(to, now, EventType::NoteAdded, &note.alert, note)?;
    Ok(ActionOutcome::Done)
}

/// Assigns an alert, also one that has ended. Does nothing if it is assigned to this person already.
pub(super) fn assign(to: &Transaction<'_>, new: &NewAssignment, now: Timestamp) -> Result<ActionOutcome, StoreFault> {
    if !exists(to, &new.alert)? {
        return Ok(ActionOutcome::Unknown);
    }
    let changed = match &new.assignee {
        Some(name) => to
            .prepare_cached(
                "INSERT INTO assignee (alert, name, author, at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (alert) DO UPDATE SET name = excluded.name, author = excluded.author, at = excluded.at
                 WHERE assignee.name <> excluded.name",
            )?
            .execute_counted(params![new.alert.as_str(), name, new.author, Millis(now)])?,
        None => to.prepare_cached("DELETE FROM assignee WHERE alert = ?1")?.execute_counted([new.alert.as_str()])?,
    };
    if changed > 0 {
        log_alert_event(to, now, EventType::AlertAssigned, &new.alert, new)?;
    }
    Ok(ActionOutcome::Done)
}

fn exists(from: &Transaction<'_>, alert: &AlertId) -> Result<bool, StoreFault> {
    Ok(one(&mut *from.prepare_cached("SELECT 1 FROM alert WHERE id = ?1")?, [alert.as_str()], |_| Ok(()))?.is_some())
}
