//! Login sessions that ended before their time. All instances on a database share them.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The time after which a session ends even if it is in use.
pub const MAX_SESSION_AGE: TimeDelta = TimeDelta::days(7);

/// The maximum number of ended sessions that are listed.
const MAX_ENDED: usize = 256;

/// The sessions that users ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndedSessions {
    /// The fingerprint and the start of each session. A session that is too old to be valid is left out.
    ended: Vec<(String, Timestamp)>,
    /// All sessions that began at this time or before have ended. `None` unless there were too many to list.
    all_until: Option<Timestamp>,
}

impl EndedSessions {
    /// Adds a session. If there are too many, the oldest one and all sessions that began before it are ended together.
    pub fn end(&mut self, fingerprint: String, began_at: Timestamp, now: Timestamp) {
        self.ended.retain(|(_, began_at)| now - *began_at < MAX_SESSION_AGE);
        if !self.contains(&fingerprint, began_at) {
            self.ended.push((fingerprint, began_at));
        }
        self.ended.sort_by_key(|(_, began_at)| *began_at);
        let surplus = self.ended.len().saturating_sub(MAX_ENDED);
        let oldest = self.ended.drain(..surplus).map(|(_, began_at)| began_at).max();
        self.all_until = self.all_until.max(oldest);
    }

    /// Adds the sessions of another list.
    pub fn add(&mut self, others: Self, now: Timestamp) {
        self.all_until = self.all_until.max(others.all_until);
        others.ended.into_iter().for_each(|(fingerprint, began_at)| self.end(fingerprint, began_at, now));
    }

    /// Returns whether a session was ended.
    #[must_use]
    pub fn contains(&self, fingerprint: &str, began_at: Timestamp) -> bool {
        self.all_until.is_some_and(|until| began_at <= until) || self.ended.iter().any(|(ended, _)| ended == fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        chrono::DateTime::from_timestamp(1_790_000_000 + secs, 0).expect("a time")
    }

    #[test]
    fn ended_session_never_returns() {
        let mut sessions = EndedSessions::default();
        for number in 0..1_000 {
            sessions.end(number.to_string(), at(number), at(2_000));
            assert!((0..=number).all(|number| sessions.contains(&number.to_string(), at(number))), "{number}");
            assert!(sessions.ended.len() <= MAX_ENDED);
            assert!(!sessions.contains("other", at(1_500)), "a newer session goes on");
        }
        let mut own = EndedSessions::default();
        own.end("own".to_owned(), at(1_990), at(2_000));
        own.add(sessions.clone(), at(2_000));
        assert!(own.contains("own", at(1_990)) && own.contains("999", at(999)), "both lists count");
        // Sessions that are too old to be valid are not listed.
        sessions.end("last".to_owned(), at(700_000), at(2_000) + MAX_SESSION_AGE);
        assert_eq!(sessions.ended.len(), 1);
    }
}
