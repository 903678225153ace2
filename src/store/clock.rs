//! What a wall clock that was ahead left behind: times of what has happened that lie in the future. They are pulled back to now, and what
//! waits for a time that was reckoned from one of them waits no longer.

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, counted, from_json};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{ClockAnchor, Timestamp};

/// How far ahead a time may lie and still be that of something that has just happened.
const SLACK: TimeDelta = TimeDelta::minutes(1);

/// The columns that say when something happened; a test holds them against the schema.
pub(super) const HAPPENED: [(&str, &[&str]); 18] = [
    ("token", &["unlisted_at", "first_seen"]),
    ("feed", &["baseline_at", "read_at", "tried_at", "failing_since", "held_since"]),
    ("record", &["first_seen", "version_at"]),
    ("record_version", &["at", "replaced_at"]),
    ("schedule_version", &["replaced_at"]),
    ("change", &["at"]),
    ("poll", &["at"]),
    ("alert", &["active_at", "false_since", "updated_at"]),
    ("notice", &["at"]),
    ("delivery", &["created_at", "due_at", "delivered_at", "updated_at"]),
    ("attempt", &["at"]),
    ("job", &["slot"]),
    ("rule_match", &["at"]),
    ("telling", &["since"]),
    ("told_group", &["told_at"]),
    ("silence", &["created_at"]),
    ("ack", &["at"]),
    ("opt_out", &["at"]),
];

/// Set right before those above are pulled back, as long as they still tell by how much the clock was ahead.
const WAITS: [&str; 5] = [
    "UPDATE meta SET value = CAST(?2 AS TEXT) WHERE CASE WHEN key = 'evaluated_until' THEN CAST(value AS BIGINT) END > ?1",
    "UPDATE alert SET recheck_at = ?2 WHERE recheck_at > ?2 AND updated_at > ?1",
    "UPDATE delivery SET next_attempt_at = ?2 WHERE next_attempt_at > ?2 AND updated_at > ?1",
    "UPDATE told_group SET repeat_at = repeat_at - (told_at - ?2) WHERE told_at > ?1 AND repeat_at IS NOT NULL",
    // A silence of two hours is one of two hours.
    "UPDATE silence SET starts_at = starts_at - (created_at - ?2), ends_at = ends_at - (created_at - ?2) WHERE created_at > ?1",
];

impl Store {
    /// Keeps a time that was borne out, for the next start.
    pub async fn keep_clock(&self, anchor: &ClockAnchor) -> Result<(), StoreError> {
        let text = serde_json::to_string(anchor).unwrap_or_default();
        self.write("keep the time", move |to| {
            let sql = "INSERT INTO meta (key, value) VALUES ('clock', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
            to.prepare_cached(sql)?.execute([text])?;
            Ok(())
        })
        .await
    }

    /// The time that was last kept.
    pub async fn kept_clock(&self) -> Result<Option<ClockAnchor>, StoreError> {
        self.read("read the time that was kept", |from| {
            let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = 'clock'")?;
            let mut rows = statement.query([])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            from_json("the time that was kept", "clock", &row.get::<_, String>(0)?).map(Some)
        })
        .await
    }

    /// Pulls back to `now` each time of something that has happened and lies in the future all the same: the clock was ahead when it
    /// was written. Answers how many rows there were.
    pub async fn pull_back(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write("pull back times that lie in the future", move |to| pull_back(to, now)).await
    }
}

fn pull_back(to: &Transaction<'_>, now: Timestamp) -> Result<u64, StoreFault> {
    let latest = Millis(now.checked_add_signed(SLACK).unwrap_or(now));
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
