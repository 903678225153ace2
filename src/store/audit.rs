//! The audit log: the actions of users, with their authors.
//!
//! [`Store::acting_as`] names the author of all actions of a handle. Each action writes an event in its transaction, and the audit log
//! repeats it with the author before the transaction ends, so that no action lacks a row.

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Conditions, Millis, all, counted, from_json, json, list, one, word};
use super::error::StoreFault;
use super::event_log::{NewEvent, log_event};
use super::list_limits::in_chunks;
use super::query::at;
use super::sql::{Row, Transaction};
use super::{Store, StoreError};
use model::{Actor, ActorSource, AuditFilter, AuditRow, EventType, Listed, LoggedAction, Timestamp, TokenId};

/// The time for which the audit log is kept at least, also if other rows are deleted sooner.
pub(super) const MIN_AUDIT_RETENTION: TimeDelta = TimeDelta::days(400);

impl Store {
    /// Returns a handle whose actions are recorded with this author.
    #[must_use]
    pub fn acting_as(&self, actor: Actor) -> Self {
        Self { actor: Some(actor.into()), ..self.clone() }
    }

    /// Returns rows of the audit log, newest first, with the number of all rows that match.
    pub async fn audit(&self, filter: AuditFilter) -> Result<Listed<AuditRow>, StoreError> {
        let max_bytes = self.max_list_bytes();
        self.read("read the audit log", move |from| audit(from, &filter, max_bytes)).await
    }

    /// Returns the names of all authors, sorted.
    pub async fn audit_actors(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT actor FROM audit ORDER BY actor LIMIT 200";
        self.read("read the authors of actions", move |from| all(&mut *from.prepare_cached(sql)?, [], |row| Ok(row.get(0)?)))
            .await
    }

    /// Adds an action whose effect is not in the database, such as a saved rule.
    pub async fn log_action(&self, kind: EventType, action: LoggedAction, at: Timestamp) -> Result<(), StoreError> {
        self.act("store an action", move |to| log_action(to, kind, None, &action, at)).await
    }
}

/// Adds the event of an action.
pub(super) fn log_action(
    to: &Transaction<'_>,
    kind: EventType,
    token: Option<&TokenId>,
    action: &LoggedAction,
    at: Timestamp,
) -> Result<(), StoreFault> {
    let body = Some(json("the body of an event", action)?);
    log_event(to, at, &NewEvent { token, body, ..NewEvent::of(kind, action.subject.clone()) })
}

/// Returns the number of the newest event.
pub(super) fn newest_event(from: &Transaction<'_>) -> Result<i64, StoreFault> {
    let newest = one(&mut *from.prepare_cached("SELECT max(seq) FROM event_log")?, [], |row| Ok(row.get::<Option<i64>>(0)?))?;
    Ok(newest.flatten().unwrap_or(0))
}

/// Adds the events after `newest` to the audit log.
pub(super) fn record(to: &Transaction<'_>, actor: &Actor, newest: i64) -> Result<(), StoreFault> {
    let mut statement = to.prepare_cached(
        "INSERT INTO audit (at, actor, via, type, token_no, subject, body)
         SELECT at, CAST(?1 AS TEXT), CAST(?2 AS TEXT), type, token_no, record_id, coalesce(body, 'null') FROM event_log
         WHERE seq > ?3 AND type IN (SELECT value FROM json_each(?4)) ORDER BY seq",
    )?;
    let types = list(EventType::OF_USERS.iter().map(|kind| kind.as_str()));
    statement.execute(params![actor.name, actor.via.as_str(), newest, types])?;
    Ok(())
}

fn audit(from: &Transaction<'_>, filter: &AuditFilter, max_bytes: usize) -> Result<Listed<AuditRow>, StoreFault> {
    let (sql, values) = conditions(filter).within("SELECT count(*) FROM audit a", "");
    let total = one(&mut from.prepare(&sql)?, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0);
    let (mut rows, is_cut) = in_chunks(filter.limit, max_bytes, |last: Option<&AuditRow>, limit| {
        let position = last.map_or(filter.position, |row| filter.position.past(row.no));
        let mut conditions = conditions(filter);
        conditions.and_some("a.no < ?", position.after).and_some("a.no > ?", position.before);
        let order = if position.is_from_before() { "ASC" } else { "DESC" };
        let (sql, values) = conditions.within(
            "SELECT a.no, a.at, a.actor, a.via, a.type, t.id, a.subject, a.body FROM audit a LEFT JOIN token t ON t.no = a.token_no",
            &format!(" ORDER BY a.no {order} LIMIT {limit}"),
        );
        all(&mut from.prepare(&sql)?, values, |row| Ok((audit_row(row)?, row.text_bytes())))
    })?;
    if filter.position.is_from_before() {
        rows.reverse();
    }
    Ok(Listed { rows, total, is_cut })
}

fn conditions(filter: &AuditFilter) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.and_some("a.actor = ?", filter.actor.clone());
    if !filter.kinds.is_empty() {
        conditions.and("a.type IN (SELECT value FROM json_each(?))", list(filter.kinds.iter().map(|kind| kind.as_str())));
    }
    conditions.and_some("a.at >= ?", filter.since.map(at)).and_some("a.at < ?", filter.until.map(at));
    conditions
}

fn audit_row(row: &Row<'_>) -> Result<AuditRow, StoreFault> {
    let no: i64 = row.get(0)?;
    let of = no.to_string();
    Ok(AuditRow {
        no,
        at: row.get::<Millis>(1)?.0,
        actor: Actor {
            name: row.get(2)?,
            via: word("the source of the author", &of, &row.get::<String>(3)?, ActorSource::parse)?,
        },
        kind: word("the type of the action", &of, &row.get::<String>(4)?, EventType::parse)?,
        token: row.get::<Option<String>>(5)?.map(TokenId::from),
        subject: row.get(6)?,
        facts: from_json("the facts of the action", &of, &row.get::<String>(7)?)?,
    })
}
