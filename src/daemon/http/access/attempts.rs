//! Wrong tokens, counted for each address: after some, each costs a wait that doubles. Pure.

use std::{collections::HashMap, net::IpAddr};

use chrono::TimeDelta;

use model::Timestamp;

/// Wrong tokens that cost nothing: people mistype, and a monitor may hold an old one for a while.
const FREE: u32 = 10;
/// The wait after the first one more.
const FIRST_WAIT: TimeDelta = TimeDelta::seconds(1);
/// The longest wait.
const MAX_WAIT: TimeDelta = TimeDelta::minutes(15);
/// When an address that tried no more is forgotten.
const MEMORY: TimeDelta = TimeDelta::hours(1);
/// Addresses that are remembered; beyond them the one that tried longest ago is forgotten.
const MAX_ADDRESSES: usize = 1024;

#[derive(Debug, Default)]
pub(in crate::http) struct Attempts(HashMap<IpAddr, Failures>);

#[derive(Clone, Copy, Debug)]
struct Failures {
    count: u32,
    last: Timestamp,
    until: Timestamp,
}

impl Attempts {
    /// How long an address has to wait before its next token is looked at; none where it need not.
    pub fn wait(&self, peer: IpAddr, now: Timestamp) -> Option<TimeDelta> {
        let wait = self.0.get(&peer)?.until - now;
        // A clock that was set back must not lock anybody out for longer than a wait lasts.
        (wait > TimeDelta::zero()).then(|| wait.min(MAX_WAIT))
    }

    /// A token was wrong.
    pub fn failed(&mut self, peer: IpAddr, now: Timestamp) {
        self.0.retain(|_, failures| now - failures.last < MEMORY);
        if !self.0.contains_key(&peer) && self.0.len() >= MAX_ADDRESSES {
            let oldest = self.0.iter().min_by_key(|(_, failures)| failures.last).map(|(peer, _)| *peer);
            oldest.map(|peer| self.0.remove(&peer));
        }
        let failures = self.0.entry(peer).or_insert(Failures { count: 0, last: now, until: now });
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.until = now + wait_after(failures.count);
    }

    /// A token was right.
    pub fn succeeded(&mut self, peer: IpAddr) {
        self.0.remove(&peer);
    }
}

fn wait_after(count: u32) -> TimeDelta {
    match count.checked_sub(FREE + 1) {
        None => TimeDelta::zero(),
        Some(doublings) => FIRST_WAIT.checked_mul(1 << doublings.min(20)).map_or(MAX_WAIT, |wait| wait.min(MAX_WAIT)),
    }
}

#[cfg(test)]
mod tests;
