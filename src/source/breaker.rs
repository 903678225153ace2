//! Whether the source may be asked at all: the breaker, and what the source itself asked us to wait for. Pure but for its lock.
//!
//! The breaker is closed until something about the source as a whole goes wrong: it was unreachable several times in a row, it refused
//! the key, it asked for patience, its credits are spent. Then the breaker is open until an instant, refuses every fetch at once, and
//! afterwards lets one through as a probe. What the probe meets closes the breaker, or keeps it open for longer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;

use super::{Tuning, redact};
use model::poll::{FailureKind, PollFailure};
use model::{clock::Clock, config::SecretText, supply::Timestamp};

/// Longest time that the breaker stays open at a stretch. A remaining time beyond it means that the clock was set back.
pub(super) const MAX_OPEN: TimeDelta = TimeDelta::hours(1);

/// How the client stands to the source, for status and metrics.
#[derive(Clone, Debug, PartialEq)]
pub enum BreakerState {
    /// The source is asked.
    Closed {
        /// Fetches in a row that found it unreachable, slow or broken.
        failures: u32,
    },
    /// The source is not asked.
    Open {
        /// What opened it: `unreachable`, `timeout`, `server_error`, `unauthorized`, `rate_limited` or `quota_exhausted`.
        kind: FailureKind,
        /// What happened, for people.
        cause: String,
        /// Since when.
        since: Timestamp,
        /// When the next try is let through.
        until: Timestamp,
    },
    /// One fetch is under way to see whether the source is back.
    Probing {
        /// What opened it.
        kind: FailureKind,
        /// What happened, for people.
        cause: String,
        /// Since when.
        since: Timestamp,
    },
}

impl BreakerState {
    /// Whether the source is asked freely.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, BreakerState::Closed { .. })
    }
}

/// What a fetch says of the source as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SourceHealth {
    /// It answered, if only about the one thing.
    Answered,
    /// Nothing was learnt.
    Unknown,
    /// It could not be reached, or broke down.
    Down(FailureKind, String),
    /// It refused the key, or wants one.
    KeyRefused(FailureKind, String),
    /// It asked for patience until then, if it said until when.
    RateLimited(Option<Timestamp>, String),
    /// The credits are spent until then.
    QuotaSpent(Timestamp, String),
}

/// Why and until when the breaker is open.
#[derive(Debug)]
struct OpenCircuit {
    kind: FailureKind,
    cause: String,
    since: Timestamp,
    until: Timestamp,
    /// What the source says of itself, for `retry_at`.
    told: Timestamp,
    /// The key that was in use, for a new key deserves a new try.
    key: Option<SecretText>,
    is_probed: bool,
}

impl OpenCircuit {
    /// What fetches are answered meanwhile.
    fn answer(&self) -> FailureKind {
        match self.kind {
            FailureKind::NoKey | FailureKind::Unauthorized | FailureKind::RateLimited | FailureKind::QuotaExhausted => self.kind,
            _ => FailureKind::Suspended,
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.until || self.until - now > MAX_OPEN
    }

    fn refusal(&self, what: &str) -> PollFailure {
        let next = if self.is_probed {
            "another request is finding out whether that is over".to_owned()
        } else {
            format!("next try at {}", self.until.format("%Y-%m-%d %H:%M:%S UTC"))
        };
        let message = redact::message(&format!("{what} was not sent ({next}): {}", self.cause));
        PollFailure { kind: self.answer(), message, retry_at: Some(self.told.max(self.until)) }
    }
}

#[derive(Debug, Default)]
struct BreakerCounts {
    /// Fetches in a row that found the source down.
    failures: u32,
    /// Times in a row that the breaker opened for the same kind of reason.
    level: u32,
    open: Option<OpenCircuit>,
}

/// The breaker itself, shared by all fetches of a client.
#[derive(Debug)]
pub(super) struct Breaker {
    state: Mutex<BreakerCounts>,
    tuning: Tuning,
    /// A probe is over.
    probed: Notify,
}

/// Leave to ask. Dropping it without a conclusion leaves the breaker as it was, for the next one to try.
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

/// Whether two keys are the same, compared in constant time.
pub(super) fn same_key(a: Option<&SecretText>, b: Option<&SecretText>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.expose().as_bytes().ct_eq(b.expose().as_bytes()).into(),
        (a, b) => a.is_none() && b.is_none(),
    }
}

impl Breaker {
    /// A closed breaker: the source is asked.
    pub fn new(tuning: Tuning) -> Self {
        Self { state: Mutex::default(), tuning, probed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BreakerCounts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it stands.
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

    /// Asks for leave to fetch `what` with `key`. While another fetch finds out whether the source is back, it waits for what that meets.
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
                answer => return answer,
            }
        }
    }

    /// As [`Self::enter`], without waiting.
    pub fn admit(self: &Arc<Self>, what: &str, key: Option<&SecretText>, now: Timestamp) -> Result<BreakerPermit, PollFailure> {
        let mut state = self.lock();
        let mut is_probe = false;
        if let Some(open) = &mut state.open {
            let depends_on_key = open.answer() != FailureKind::Suspended;
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

    /// Whether a fetch that is under way may send its next request.
    pub fn check(&self, permit: &BreakerPermit, what: &str) -> Result<(), PollFailure> {
        match &self.lock().open {
            Some(open) if !permit.is_probe => Err(open.refusal(what)),
            _ => Ok(()),
        }
    }

    /// Takes note of what a fetch met.
    pub fn conclude(&self, permit: BreakerPermit, health: SourceHealth, key: Option<&SecretText>, now: Timestamp) {
        let mut state = self.lock();
        let is_probe = permit.is_probe;
        match health {
            SourceHealth::Unknown => {}
            SourceHealth::Answered => {
                state.failures = 0;
                // A fetch that began before the breaker opened proves that the source is up, not that it changed its mind.
                if is_probe || state.open.as_ref().is_some_and(|open| open.answer() == FailureKind::Suspended) {
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
            SourceHealth::KeyRefused(kind, cause) => {
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
            // Asking is free while the credits are spent, and a plan may be raised at any time: look once an hour.
            SourceHealth::QuotaSpent(told, cause) => {
                let until = told.min(now + MAX_OPEN);
                if is_probe || state.open.as_ref().is_none_or(|open| open.kind != FailureKind::QuotaExhausted) {
                    open(&mut state, FailureKind::QuotaExhausted, cause, now, until, told, key);
                }
            }
        }
        // The lock is not reentrant, and the pass takes it when it goes.
        drop(state);
        drop(permit);
    }

    /// How long to stay open: the first span, doubled each time in a row that the reason is the same.
    fn span(
        &self,
        state: &mut BreakerCounts,
        answer: FailureKind,
        first: std::time::Duration,
        most: std::time::Duration,
    ) -> TimeDelta {
        let is_same = state.open.as_ref().is_some_and(|open| open.answer() == answer);
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
    told: Timestamp,
    key: Option<&SecretText>,
) {
    let since = state.open.as_ref().filter(|open| open.kind == kind).map_or(now, |open| open.since);
    state.open = Some(OpenCircuit { kind, cause, since, until, told, key: key.cloned(), is_probed: false });
}

#[cfg(test)]
mod tests;
