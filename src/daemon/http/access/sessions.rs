//! Who is logged in: a session begins with the token and ends with time, by hand, or when the token becomes another. Pure but for the
//! secrets that come in.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::{Fingerprint, fingerprint};
use model::Timestamp;

/// Sessions at once; beyond them the one that was used longest ago ends.
const MAX_SESSIONS: usize = 64;
/// A session that nobody uses ends after this time.
const MAX_IDLE: TimeDelta = TimeDelta::hours(12);
/// The longest session.
pub(in crate::http) const MAX_AGE: TimeDelta = TimeDelta::days(7);

/// Sessions by the fingerprint of what their cookies hold: whoever reads this memory has no cookie.
#[derive(Debug, Default)]
pub(in crate::http) struct Sessions(HashMap<Fingerprint, Session>);

struct Session {
    /// What its forms carry.
    form_key: String,
    /// Of the token that it began with.
    token: Fingerprint,
    began_at: Timestamp,
    used_at: Timestamp,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("began_at", &self.began_at).field("used_at", &self.used_at).finish_non_exhaustive()
    }
}

impl Session {
    fn holds(&self, now: Timestamp) -> bool {
        // A clock that was set back makes no session older.
        now - self.used_at < MAX_IDLE && now - self.began_at < MAX_AGE
    }
}

impl Sessions {
    /// Begins a session whose cookie holds `id`.
    pub fn begin(&mut self, id: &str, form_key: String, token: Fingerprint, now: Timestamp) {
        self.0.retain(|_, session| session.holds(now));
        if self.0.len() >= MAX_SESSIONS {
            let oldest = self.0.iter().min_by_key(|(_, session)| session.used_at).map(|(key, _)| *key);
            oldest.map(|key| self.0.remove(&key));
        }
        self.0.insert(fingerprint(id.as_bytes()), Session { form_key, token, began_at: now, used_at: now });
    }

    /// What the forms of this session carry; none where there is no such session, or it is over.
    pub fn find(&mut self, id: &str, token: Fingerprint, now: Timestamp) -> Option<String> {
        let key = fingerprint(id.as_bytes());
        let session = self.0.get_mut(&key)?;
        if session.token != token || !session.holds(now) {
            self.0.remove(&key);
            return None;
        }
        session.used_at = session.used_at.max(now);
        Some(session.form_key.clone())
    }

    /// Ends a session.
    pub fn end(&mut self, id: &str) {
        self.0.remove(&fingerprint(id.as_bytes()));
    }
}

#[cfg(test)]
mod tests;
