//! The login sessions that users ended, for all instances on the database. One row of `meta`, since their number is limited.

use super::codec::{from_json, json};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{EndedSessions, Timestamp};

impl Store {
    /// Returns the sessions that users ended.
    pub async fn ended_sessions(&self) -> Result<EndedSessions, StoreError> {
        self.read("read the ended sessions", ended_sessions).await
    }

    /// Ends a session, of which only a hash is stored. Returns all sessions that users ended.
    pub async fn end_session(
        &self,
        fingerprint: String,
        began_at: Timestamp,
        now: Timestamp,
    ) -> Result<EndedSessions, StoreError> {
        self.act("end a session", move |to| {
            let mut sessions = ended_sessions(to)?;
            sessions.end(fingerprint, began_at, now);
            let text = json("the ended sessions", &sessions)?;
            to.prepare_cached(
                "INSERT INTO meta (key, value) VALUES ('ended_sessions', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            )?
            .execute([text])?;
            Ok(sessions)
        })
        .await
    }
}

fn ended_sessions(from: &Transaction<'_>) -> Result<EndedSessions, StoreFault> {
    let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = 'ended_sessions'")?;
    let mut rows = statement.query([])?;
    match rows.next()? {
        Some(row) => from_json("the ended sessions", "ended_sessions", &row.get::<String>(0)?),
        None => Ok(EndedSessions::default()),
    }
}
