//! Rate limit of logins. After ten failures, an address must wait before each further attempt, twice as long each time.

use std::{collections::HashMap, net::IpAddr};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use chrono::TimeDelta;

use model::Timestamp;

/// The number of failures without a wait, to allow for typing errors and clients with an old token.
const FREE_FAILURES: u32 = 10;
/// The wait after the first failure above `FREE_FAILURES`. It doubles with each further failure.
const FIRST_WAIT: TimeDelta = TimeDelta::seconds(1);
const MAX_WAIT: TimeDelta = TimeDelta::minutes(15);
/// The time after the last failure until the failures of an address are deleted.
const RETENTION: TimeDelta = TimeDelta::hours(1);
/// The maximum number of addresses. Beyond it, the one with the oldest failure is deleted.
const MAX_ADDRESSES: usize = 1024;

/// The headers of a quota: the limit, the rest, and the seconds until the next attempt is allowed.
pub(in crate::http) const QUOTA_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
];

#[derive(Debug, Default)]
pub(in crate::http) struct FailedLogins(HashMap<IpAddr, Failures>);

/// The failed logins that an address has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct LoginQuota {
    remaining: u32,
    /// The seconds until the next attempt is allowed, or until the failures are deleted.
    pub reset_secs: i64,
}

impl LoginQuota {
    /// Adds the [`QUOTA_HEADERS`].
    pub fn add_to(self, headers: &mut HeaderMap) {
        let values = [HeaderValue::from(FREE_FAILURES), HeaderValue::from(self.remaining), HeaderValue::from(self.reset_secs)];
        headers.extend(QUOTA_HEADERS.into_iter().zip(values));
    }
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last_at: Timestamp,
    blocked_until: Timestamp,
}

impl FailedLogins {
    /// Returns the time until the next attempt of an address is allowed. `None` if it is allowed now.
    pub fn retry_after(&self, peer: IpAddr, now: Timestamp) -> Option<TimeDelta> {
        let wait = self.0.get(&peer)?.blocked_until - now;
        // If the clock was set back, the wait must not exceed the maximum.
        (wait > TimeDelta::zero()).then(|| wait.min(MAX_WAIT))
    }

    /// Returns what an address has left.
    pub fn quota(&self, peer: IpAddr, now: Timestamp) -> LoginQuota {
        let failures = self.0.get(&peer);
        let used = failures.map_or(0, |failures| failures.count);
        let until = match self.retry_after(peer, now) {
            Some(wait) => wait,
            None => failures.map_or(TimeDelta::zero(), |failures| failures.last_at + RETENTION - now).min(RETENTION),
        };
        LoginQuota { remaining: FREE_FAILURES.saturating_sub(used), reset_secs: until.num_seconds().max(1) }
    }

    pub fn record_failure(&mut self, peer: IpAddr, now: Timestamp) {
        self.0.retain(|_, failures| now - failures.last_at < RETENTION);
        if !self.0.contains_key(&peer) && self.0.len() >= MAX_ADDRESSES {
            let oldest = self.0.iter().min_by_key(|(_, failures)| failures.last_at).map(|(peer, _)| *peer);
            oldest.map(|peer| self.0.remove(&peer));
        }
        let failures = self.0.entry(peer).or_insert(Failures { count: 0, last_at: now, blocked_until: now });
        failures.count = failures.count.saturating_add(1);
        failures.last_at = now;
        failures.blocked_until = now + wait_after(failures.count);
    }

    pub fn record_success(&mut self, peer: IpAddr) {
        self.0.remove(&peer);
    }
}

fn wait_after(count: u32) -> TimeDelta {
    match count.checked_sub(FREE_FAILURES + 1) {
        None => TimeDelta::zero(),
        Some(doublings) => FIRST_WAIT.checked_mul(1 << doublings.min(20)).map_or(MAX_WAIT, |wait| wait.min(MAX_WAIT)),
    }
}

#[cfg(test)]
mod tests;
