//! The circuit breaker of the source. Pure except for its lock.
//!
//! The breaker opens after several failures in a row, a rejected key, a rate limit, or an exhausted quota. While it is open, it rejects
//! every fetch. After a time it allows one fetch as a probe, whose result closes it or keeps it open for longer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;

use super::{Tuning, redact};
use model::poll::{FailureKind, PollFailure};
use model::{clock::Clock, config::SecretText, phrase, supply::Timestamp};

/// The maximum time until the next probe. A longer remaining time means that the clock was set back.
pub(super) const MAX_OPEN: TimeDelta = TimeDelta::hours(1);

/// The state of the breaker, for status and metrics.
#[derive(Clone, Debug, PartialEq)]
pub enum BreakerState {
    Closed {
        /// The number of failed fetches in a row.
        failures: u32,
    },
    Open {
        kind: FailureKind,
        /// The message of the failure that opened the breaker.
        cause: String,
        since: Timestamp,
        /// When the next probe is allowed.
        until: Timestamp,
    },
    /// A probe is running.
    Probing {
        kind: FailureKind,
        /// The message of the failure that opened the breaker.
        cause: String,
        since: Timestamp,
    },
}

impl BreakerState {
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, BreakerState::Closed { .. })
    }
}

/// The health of the source according to a fetch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SourceHealth {
    /// The source responded, even if with an error about the requested token.
    Responded,
    /// No request was sent.
    Unknown,
    /// Unreachable, or a server error.
    Down(FailureKind, String),
    /// The key is missing or was rejected.
    KeyRejected(FailureKind, String),
    /// With the requested end of the wait, if the source named one.
    RateLimited(Option<Timestamp>, String),
    /// With the time when the quota resets.
    QuotaExhausted(Timestamp, String),
}

#[derive(Debug)]
struct OpenCircuit {
    kind: FailureKind,
    cause: String,
    since: Timestamp,
    until: Timestamp,
    /// The wait that the source requested, for `retry_at`.
    requested_until: Timestamp,
    /// The key in use when the breaker opened. If the cause depends on the key or its quota, a new key is tried at once.
    key: Option<SecretText>,
    is_probed: bool,
}

impl OpenCircuit {
    /// Returns the failure kind of rejected fetches.
    fn rejection_kind(&self) -> FailureKind {
        match self.kind {
            kind if kind.is_about_key() || self.is_requested() => kind,
            _ => FailureKind::Suspended,
        }
    }

    /// Returns whether the source requested the wait.
    const fn is_requested(&self) -> bool {
        matches!(self.kind, FailureKind::RateLimited | FailureKind::QuotaExhausted)
    }

    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.until || self.until - now > MAX_OPEN
    }

    fn refusal(&self, what: &str) -> PollFailure {
        let next = if self.is_probed {
            "a probe is running".to_owned()
        } else {
            format!("next attempt at {}", phrase::instant_iso_seconds(self.until))
        };
        let message = redact::message(&format!("{what} was not sent ({next}): {}", self.cause));
        PollFailure { kind: self.rejection_kind(), message, retry_at: Some(self.requested_until.max(self.until)) }
    }
}

#[derive(Debug, Default)]
struct BreakerCounts {
    /// The number of failed fetches in a row.
    failures: u32,
    /// The number of times in a row that the breaker opened for the same reason.
    level: u32,
    open: Option<OpenCircuit>,
}

/// The breaker of a client, shared by all its fetches.
#[derive(Debug)]
pub(super) struct Breaker {
    state: Mutex<BreakerCounts>,
    tuning: Tuning,
    /// Notified at the end of a probe.
    probed: Notify,
}

/// The permission to fetch. If it is dropped without [`Breaker::conclude`], the next fetch can probe.
#[derive(Debug)]
pub(super) struct BreakerPermit {
    breaker: Arc<Breaker>,
    is_probe: bool,
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(open) = &mut self.breaker.lock().open
        {
            open.is_probed = false;
        }
        if self.is_probe {
            self.breaker.probed.notify_waiters();
        }
    }
}

/// Compares two keys in constant time.
pub(super) fn same_key(a: Option<&SecretText>, b: Option<&SecretText>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.expose().as_bytes().ct_eq(b.expose().as_bytes()).into(),
        (a, b) => a.is_none() && b.is_none(),
    }
}

impl Breaker {
    pub fn new(tuning: Tuning) -> Self {
        Self { state: Mutex::default(), tuning, probed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BreakerCounts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state(&self) -> BreakerState {
        let state = self.lock();
        match &state.open {
            None => BreakerState::Closed { failures: state.failures },
            Some(open) if open.is_probed => {
                BreakerState::Probing { kind: open.kind, cause: open.cause.clone(), since: open.since }
            }
            Some(open) => BreakerState::Open { kind: open.kind, cause: open.cause.clone(), since: open.since, until: open.until },
        }
    }

    /// Requests a permit to fetch `what` with `key`. Waits for the result of a running probe.
    pub async fn enter(
        self: &Arc<Self>,
        what: &str,
        key: Option<&SecretText>,
        clock: &Clock,
    ) -> Result<BreakerPermit, PollFailure> {
        loop {
            let probed = self.probed.notified();
            tokio::pin!(probed);
            probed.as_mut().enable();
            match self.admit(what, key, clock.now()) {
                Err(_) if matches!(self.state(), BreakerState::Probing { .. }) => probed.await,
                result => return result,
            }
        }
    }

    /// Like [`Self::enter`], without waiting.
    pub fn admit(self: &Arc<Self>, what: &str, key: Option<&SecretText>, now: Timestamp) -> Result<BreakerPermit, PollFailure> {
        let mut state = self.lock();
        let mut is_probe = false;
        if let Some(open) = &mut state.open {
            let depends_on_key = open.rejection_kind() != FailureKind::Suspended;
            if depends_on_key && !same_key(open.key.as_ref(), key) {
                *state = BreakerCounts::default();
            } else if open.is_due(now) && !open.is_probed {
                open.is_probed = true;
                is_probe = true;
            } else {
                return Err(open.refusal(what));
            }
        }
        drop(state);
        Ok(BreakerPermit { breaker: Arc::clone(self), is_probe })
    }

    /// Opens the breaker because no key can be sent, until a key is read or the wait ends.
    pub fn key_unusable(&self, cause: &str, now: Timestamp) {
        let mut state = self.lock();
        let kind = FailureKind::UnusableKey;
        if state.open.as_ref().is_none_or(|open| open.is_due(now) || (open.kind != kind && !open.is_requested())) {
            let until = now + self.span(&mut state, kind, self.tuning.refused_first, self.tuning.refused_max);
            open(&mut state, kind, cause.to_owned(), now, until, until, None);
        }
    }

    /// Allows a probe now, unless the source limits the rate of requests. A probe of a used-up quota is free if it is rejected.
    pub fn end_wait(&self, now: Timestamp) {
        if let Some(open) = &mut self.lock().open
            && open.kind != FailureKind::RateLimited
        {
            open.until = open.until.min(now);
        }
    }

    /// Checks whether a running fetch can send its next request. Fails if the breaker opened in the meantime, unless the fetch is the
    /// probe.
    pub fn check(&self, permit: &BreakerPermit, what: &str) -> Result<(), PollFailure> {
        match &self.lock().open {
            Some(open) if !permit.is_probe => Err(open.refusal(what)),
            _ => Ok(()),
        }
    }

    /// Updates the breaker after a fetch.
    pub fn conclude(&self, permit: BreakerPermit, health: SourceHealth, key: Option<&SecretText>, now: Timestamp) {
        let mut state = self.lock();
        let is_probe = permit.is_probe;
        match health {
            SourceHealth::Unknown => {}
            SourceHealth::Responded => {
                state.failures = 0;
                // A fetch from before the breaker opened proves that the source is up, but not that it accepts the key again.
                if is_probe || state.open.as_ref().is_some_and(|open| open.rejection_kind() == FailureKind::Suspended) {
                    *state = BreakerCounts::default();
                }
            }
            SourceHealth::Down(kind, cause) => {
                state.failures = state.failures.saturating_add(1);
                if is_probe || (state.open.is_none() && state.failures >= self.tuning.breaker_failures) {
                    let span = self.span(&mut state, FailureKind::Suspended, self.tuning.breaker_first, self.tuning.breaker_max);
                    open(&mut state, kind, cause, now, now + span, now + span, key);
                }
            }
            SourceHealth::KeyRejected(kind, cause) => {
                if is_probe || state.open.as_ref().is_none_or(|open| open.kind != kind) {
                    let span = self.span(&mut state, kind, self.tuning.refused_first, self.tuning.refused_max);
                    open(&mut state, kind, cause, now, now + span, now + span, key);
                }
            }
            SourceHealth::RateLimited(until, cause) => {
                let until = until.unwrap_or_else(|| {
                    now + self.span(&mut state, FailureKind::RateLimited, self.tuning.limited_first, self.tuning.limited_max)
                });
                let until = until.min(now + MAX_OPEN);
                if is_probe || state.open.as_ref().is_none_or(|open| open.until < until) {
                    open(&mut state, FailureKind::RateLimited, cause, now, until, until, key);
                }
            }
            // Rejected requests are free, and the operator may extend the plan at any time, so a probe is sent every hour.
            SourceHealth::QuotaExhausted(requested_until, cause) => {
                let until = requested_until.min(now + MAX_OPEN);
                if is_probe || state.open.as_ref().is_none_or(|open| open.kind != FailureKind::QuotaExhausted) {
                    open(&mut state, FailureKind::QuotaExhausted, cause, now, until, requested_until, key);
                }
            }
        }
        // Dropping the permit takes the lock, which is not reentrant.
        drop(state);
        drop(permit);
    }

    /// Returns the time until the next probe: `first`, doubled each time that the breaker opens again for the same reason, up to `most` and
    /// [`MAX_OPEN`].
    fn span(
        &self,
        state: &mut BreakerCounts,
        kind: FailureKind,
        first: std::time::Duration,
        most: std::time::Duration,
    ) -> TimeDelta {
        let is_same = state.open.as_ref().is_some_and(|open| open.rejection_kind() == kind);
        state.level = if is_same { state.level.saturating_add(1) } else { 0 };
        let span = first.saturating_mul(1_u32.checked_shl(state.level).unwrap_or(u32::MAX)).min(most);
        TimeDelta::from_std(span).unwrap_or(MAX_OPEN).min(MAX_OPEN)
    }
}

fn open(
    state: &mut BreakerCounts,
    kind: FailureKind,
    cause: String,
    now: Timestamp,
    until: Timestamp,
    requested_until: Timestamp,
    key: Option<&SecretText>,
) {
    let since = state.open.as_ref().filter(|open| open.kind == kind).map_or(now, |open| open.since);
    state.open = Some(OpenCircuit { kind, cause, since, until, requested_until, key: key.cloned(), is_probed: false });
}

#[cfg(test)]
mod tests;
