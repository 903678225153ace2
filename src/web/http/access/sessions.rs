//! Login sessions. A session ends at the logout, after a time, or when the configured token changes.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::{Fingerprint, fingerprint};
use model::Timestamp;

/// The maximum number of sessions. Beyond it, the least recently used session ends.
const MAX_SESSIONS: usize = 64;
/// The time without a request after which a session ends.
const MAX_IDLE: TimeDelta = TimeDelta::hours(12);
/// The time after which a session ends even if it is in use.
pub(in crate::http) const MAX_AGE: TimeDelta = TimeDelta::days(7);

/// Sessions by the fingerprint of the cookie value, so that a memory dump reveals no valid cookie.
#[derive(Debug, Default)]
pub(in crate::http) struct Sessions(HashMap<Fingerprint, Session>);

struct Session {
    csrf_token: String,
    /// The fingerprint of the token at the login.
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
    fn is_valid(&self, now: Timestamp) -> bool {
        // If the clock was set back, the differences are negative and the session stays valid.
        now - self.used_at < MAX_IDLE && now - self.began_at < MAX_AGE
    }
}

impl Sessions {
    /// Begins a session. `id` is the value of its cookie.
    pub fn begin(&mut self, id: &str, csrf_token: String, token: Fingerprint, now: Timestamp) {
        self.0.retain(|_, session| session.is_valid(now));
        if self.0.len() >= MAX_SESSIONS {
            let oldest = self.0.iter().min_by_key(|(_, session)| session.used_at).map(|(key, _)| *key);
            oldest.map(|key| self.0.remove(&key));
        }
        self.0.insert(fingerprint(id.as_bytes()), Session { csrf_token, token, began_at: now, used_at: now });
    }

    /// Returns the CSRF token of a session and marks the session as used. `None` if the session does not exist or has ended.
    pub fn touch(&mut self, id: &str, token: Fingerprint, now: Timestamp) -> Option<String> {
        let key = fingerprint(id.as_bytes());
        let session = self.0.get_mut(&key)?;
        if session.token != token || !session.is_valid(now) {
            self.0.remove(&key);
            return None;
        }
        session.used_at = session.used_at.max(now);
        Some(session.csrf_token.clone())
    }

    pub fn end(&mut self, id: &str) {
        self.0.remove(&fingerprint(id.as_bytes()));
    }
}

#[cfg(test)]
mod tests;
