//! Repair after a wall clock that was ahead: times of past events that lie in the future are reset to now, with the
//! deadlines derived from them. Times that another instance with a right clock may have written stay: a digest slot that
//! was reset would come due a second time.

use rusqlite::params;

use super::codec::{Millis, counted, from_json};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{ClockAnchor, MAX_CLOCK_DIFFERENCE, Timestamp};

/// The columns that contain times of past events. A test compares the list with the schema.
pub(super) const HAPPENED: [(&str, &[&str]); 24] = [
    ("token", &["unlisted_at", "first_seen"]),
    ("feed", &["baseline_at", "read_at", "tried_at", "failing_since", "held_since"]),
    ("record", &["first_seen", "version_at"]),
    ("record_version", &["at", "replaced_at"]),
    ("schedule_version", &["replaced_at"]),
    ("change", &["at"]),
    ("poll", &["at"]),
    ("alert", &["active_at", "false_since", "updated_at"]),
    ("notification", &["at"]),
    ("delivery", &["created_at", "due_at", "delivered_at", "updated_at", "replayed_at", "first_delivered_at"]),
    ("attempt", &["at"]),
    ("job", &["slot"]),
    ("rule_match", &["at"]),
    ("pending_notification", &["since"]),
    ("notification_group", &["notified_at"]),
    ("silence", &["created_at"]),
    ("ack", &["at"]),
    ("opt_out", &["at"]),
    ("event_log", &["at"]),
    ("keyed_request", &["at"]),
    ("access_key", &["created_at"]),
    ("audit", &["at"]),
    ("note", &["at"]),
    ("assignee", &["at"]),
];

/// Statements that fix deadlines. They run before the columns above are reset, which still show how far the clock was
/// ahead.
const WAITS: [&str; 5] = [
    "UPDATE meta SET value = CAST(?2 AS TEXT) WHERE CASE WHEN key IN ('evaluated_until', 'evaluated_at') THEN CAST(value AS BIGINT) END > ?1",
    "UPDATE alert SET recheck_at = ?2 WHERE recheck_at > ?2 AND updated_at > ?1",
    "UPDATE delivery SET next_attempt_at = ?2 WHERE next_attempt_at > ?2 AND updated_at > ?1",
    "UPDATE notification_group SET repeat_at = repeat_at - (notified_at - ?2) WHERE notified_at > ?1 AND repeat_at IS NOT NULL",
    // A two-hour silence keeps its length.
    "UPDATE silence SET starts_at = starts_at - (created_at - ?2), ends_at = ends_at - (created_at - ?2) WHERE created_at > ?1",
];

/// Statements that start waits of the outbox at `?1` if they began after that, up to `?2`. A later time was written with a wrong clock, or
/// this clock is wrong.
const FUTURE_WAITS: [&str; 3] = [
    "UPDATE pending_notification SET since = ?1 WHERE since > ?1 AND since <= ?2 AND state = 'waiting'",
    "UPDATE notification_group SET notified_at = ?1 WHERE notified_at > ?1 AND notified_at <= ?2",
    "UPDATE delivery SET next_attempt_at = next_attempt_at - (updated_at - ?1), updated_at = ?1
     WHERE state IN ('due', 'retrying') AND updated_at > ?1 AND updated_at <= ?2",
];

impl Store {
    /// Stores a confirmed time for the next start.
    pub async fn save_clock(&self, anchor: &ClockAnchor) -> Result<(), StoreError> {
        let text = serde_json::to_string(anchor).unwrap_or_default();
        self.write("store the trusted time", move |to| {
            let sql = "INSERT INTO meta (key, value) VALUES ('clock', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            to.prepare_cached(sql)?.execute([text])?;
            Ok(())
        })
        .await
    }

    /// Returns the last stored time, of this machine or of another one.
    pub async fn saved_clock(&self) -> Result<Option<ClockAnchor>, StoreError> {
        self.read("read the trusted time", |from| {
            let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = 'clock'")?;
            let mut rows = statement.query([])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            from_json("the trusted time", "clock", &row.get::<String>(0)?).map(Some)
        })
        .await
    }

    /// Starts waits of the outbox at `now` that began in the future: the clock of an earlier active instance was ahead of this one, by a
    /// difference that counts as right. Without this, messages would wait until this clock has caught up.
    pub async fn restart_future_waits(&self, now: Timestamp) -> Result<(), StoreError> {
        self.write("restart waits that began in the future", move |to| {
            let latest = Millis(now.checked_add_signed(MAX_CLOCK_DIFFERENCE).unwrap_or(now));
            for sql in FUTURE_WAITS {
                to.execute(sql, params![Millis(now), latest])?;
            }
            Ok(())
        })
        .await
    }

    /// Resets times of past events that lie in the future to `now`, and returns the number of changed rows. Such times
    /// were written while the clock was ahead.
    pub async fn repair_future_times(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write("repair times that lie in the future", move |to| repair_future_times(to, now)).await
    }
}

fn repair_future_times(to: &Transaction<'_>, now: Timestamp) -> Result<u64, StoreFault> {
    let latest = Millis(now.checked_add_signed(MAX_CLOCK_DIFFERENCE).unwrap_or(now));
    let mut rows = 0;
    for sql in WAITS {
        rows += to.execute_counted(sql, params![latest, Millis(now)])?;
    }
    for (table, columns) in HAPPENED {
        for column in columns {
            let sql = format!("UPDATE {table} SET {column} = ?2 WHERE {column} > ?1");
            rows += to.execute_counted(&sql, params![latest, Millis(now)])?;
        }
    }
    Ok(counted(i64::try_from(rows).unwrap_or(i64::MAX)))
}
