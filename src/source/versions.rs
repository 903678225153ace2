//! The choice between the newest version of an endpoint and the next older one. Pure.
//!
//! A 404 can mean that the source lacks the version, the token, or the token in this version. So a 404 of one token only moves this
//! token to the older version. All tokens use the older version once several of them got a 404 from the newest and none got a response.
//! The newest version is tried again every [`RETRY_INTERVAL`], since a 404 costs no credit.

use std::collections::HashMap;

use chrono::TimeDelta;

use model::supply::Timestamp;

/// The time until the newest version is tried again after a 404.
const RETRY_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// The number of tokens that must get a 404 before the source counts as lacking the version.
const PROOFS: usize = 3;

/// The time after which a 404 is forgotten.
const MAX_AGE: TimeDelta = TimeDelta::days(1);

/// The responses to the newest version of a route.
#[derive(Debug, Default)]
pub(super) struct RouteVersions {
    /// The last response other than a 404.
    responded_at: Option<Timestamp>,
    /// The last 404 of each token or investor to which the older version responded. A list has an entry without a name.
    absent: HashMap<String, Timestamp>,
}

impl RouteVersions {
    /// Returns whether to request the older version of `token` first.
    pub fn prefers_older(&self, token: &str, now: Timestamp) -> bool {
        let last = if self.is_absent(now) { self.absent.values().max() } else { self.absent.get(token) };
        last.is_some_and(|at| is_within(*at, RETRY_INTERVAL, now))
    }

    /// Returns whether the source lacks the newest version for all tokens, as far as known.
    pub fn is_absent(&self, now: Timestamp) -> bool {
        let is_later = |at: &&Timestamp| self.responded_at.is_none_or(|responded_at| **at > responded_at);
        self.responded_at.is_none_or(|at| !is_within(at, RETRY_INTERVAL, now))
            && self.absent.values().filter(is_later).count() >= PROOFS
    }

    /// Records a response of the newest version.
    pub fn responded(&mut self, token: &str, now: Timestamp) {
        self.responded_at = Some(now);
        self.absent.remove(token);
    }

    /// Records a 404 of the newest version for a token to which the older one responded.
    pub fn lacks(&mut self, token: &str, now: Timestamp) {
        self.absent.retain(|_, at| is_within(*at, MAX_AGE, now));
        self.absent.insert(token.to_owned(), now);
    }
}

/// Returns whether `at` is less than `limit` ago. A time in the future, from before the clock was set back, is not.
fn is_within(at: Timestamp, limit: TimeDelta, now: Timestamp) -> bool {
    at <= now && now - at < limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(minutes: i64) -> Timestamp {
        Timestamp::default() + TimeDelta::minutes(minutes)
    }

    #[test]
    fn one_token_moves_no_other_to_the_older_version() {
        let mut versions = RouteVersions::default();
        versions.lacks("a", after(0));
        versions.lacks("b", after(0));
        assert!(versions.prefers_older("a", after(1)) && !versions.prefers_older("c", after(1)));
        assert!(!versions.prefers_older("a", after(60)), "tried again after an hour");
        versions.lacks("a", after(60));
        assert!(versions.prefers_older("a", after(119)));
    }

    #[test]
    fn three_tokens_without_any_response_move_all() {
        let mut versions = RouteVersions::default();
        versions.responded("z", after(0));
        for (minute, token) in [(1, "a"), (2, "b"), (3, "c")] {
            versions.lacks(token, after(minute));
        }
        assert!(!versions.prefers_older("d", after(4)), "another token got a response a moment ago");
        assert!(versions.prefers_older("d", after(60)));
        assert!(!versions.prefers_older("d", after(63)), "one token tries the newest version every hour");
        versions.lacks("d", after(63));
        assert!(versions.prefers_older("e", after(64)) && versions.prefers_older("a", after(64)));
        versions.responded("d", after(123));
        assert!(!versions.is_absent(after(124)) && !versions.prefers_older("e", after(124)), "one response moves all back");
    }

    #[test]
    fn future_times_are_ignored_after_the_clock_was_set_back() {
        let mut versions = RouteVersions::default();
        versions.lacks("a", after(600));
        assert!(!versions.prefers_older("a", after(0)));
        versions.lacks("b", after(0));
        assert_eq!(versions.absent.len(), 1);
    }
}
