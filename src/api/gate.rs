//! Whether the source may be asked at all: the breaker, and what the source itself told us to wait for. Pure but for its lock.
//!
//! The gate is open until something about the source as a whole goes wrong: it was unreachable several times in a row, it refused
//! the key, it asked for patience, its credits are spent. Then it is shut until an instant, answers at once in the source's
//! stead, and afterwards lets one fetch through as a probe. What the probe meets opens the gate or shuts it again for longer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;

use super::{Failure, FailureKind, Tuning, shown};
use crate::{config::SecretText, supply::Timestamp};

/// Longest time that the gate stays shut at a stretch. A remaining time beyond it means that the clock was set back.
pub(super) const MAX_SHUT: TimeDelta = TimeDelta::hours(1);

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
        /// What shut it: `unreachable`, `timeout`, `server_error`, `unauthorized`, `rate_limited` or `quota_exhausted`.
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
        /// What shut it.
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
pub(super) enum Verdict {
    /// It answered, if only about the one thing.
    Answered,
    /// Nothing was learnt.
    Nothing,
    /// It could not be reached, or broke down.
    Down(FailureKind, String),
    /// It refused the key.
    Refused(String),
    /// It asked for patience until then, if it said until when.
    Limited(Option<Timestamp>, String),
    /// The credits are spent until then.
    Spent(Timestamp, String),
}

#[derive(Debug)]
struct Shut {
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

impl Shut {
    /// What fetches are answered meanwhile.
    fn answer(&self) -> FailureKind {
        match self.kind {
            FailureKind::Unauthorized | FailureKind::RateLimited | FailureKind::QuotaExhausted => self.kind,
            _ => FailureKind::Suspended,
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.until || self.until - now > MAX_SHUT
    }

    fn refusal(&self, what: &str) -> Failure {
        let next = if self.is_probed {
            "another request is finding out whether that is over".to_owned()
        } else {
            format!("next try at {}", self.until.format("%Y-%m-%d %H:%M:%S UTC"))
        };
        let message = shown::clip(&format!("{what} was not sent ({next}): {}", self.cause), shown::MAX_MESSAGE);
        Failure { kind: self.answer(), message, retry_at: Some(self.told.max(self.until)) }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Fetches in a row that found the source down.
    failures: u32,
    /// Times in a row that the gate was shut for the same kind of reason.
    level: u32,
    shut: Option<Shut>,
}

/// The gate itself, shared by all fetches of a client.
#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<State>,
    tuning: Tuning,
}

/// Leave to ask. Dropping it without a verdict leaves the gate as it was, for the next one to try.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    is_probe: bool,
}

impl Drop for Pass {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(shut) = &mut self.gate.lock().shut
        {
            shut.is_probed = false;
        }
    }
}

fn same_key(a: Option<&SecretText>, b: Option<&SecretText>) -> bool {
    a.map(SecretText::expose) == b.map(SecretText::expose)
}

impl Gate {
    /// An open gate.
    pub fn new(tuning: Tuning) -> Self {
        Self { state: Mutex::default(), tuning }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it stands.
    pub fn state(&self) -> BreakerState {
        let state = self.lock();
        match &state.shut {
            None => BreakerState::Closed { failures: state.failures },
            Some(shut) if shut.is_probed => {
                BreakerState::Probing { kind: shut.kind, cause: shut.cause.clone(), since: shut.since }
            }
            Some(shut) => BreakerState::Open { kind: shut.kind, cause: shut.cause.clone(), since: shut.since, until: shut.until },
        }
    }

    /// Asks for leave to fetch `what` with `key`.
    pub fn admit(self: &Arc<Self>, what: &str, key: Option<&SecretText>, now: Timestamp) -> Result<Pass, Failure> {
        let mut state = self.lock();
        let mut is_probe = false;
        if let Some(shut) = &mut state.shut {
            let depends_on_key = shut.answer() != FailureKind::Suspended;
            if depends_on_key && !same_key(shut.key.as_ref(), key) {
                *state = State::default();
            } else if shut.is_due(now) && !shut.is_probed {
                shut.is_probed = true;
                is_probe = true;
            } else {
                return Err(shut.refusal(what));
            }
        }
        drop(state);
        Ok(Pass { gate: Arc::clone(self), is_probe })
    }

    /// Whether a fetch that is under way may send its next request.
    pub fn check(&self, pass: &Pass, what: &str) -> Result<(), Failure> {
        match &self.lock().shut {
            Some(shut) if !pass.is_probe => Err(shut.refusal(what)),
            _ => Ok(()),
        }
    }

    /// Takes note of what a fetch met.
    pub fn conclude(&self, pass: Pass, verdict: Verdict, key: Option<&SecretText>, now: Timestamp) {
        let mut state = self.lock();
        let is_probe = pass.is_probe;
        match verdict {
            Verdict::Nothing => {}
            Verdict::Answered => {
                state.failures = 0;
                // A fetch that began before the gate shut proves that the source is up, not that it changed its mind.
                if is_probe || state.shut.as_ref().is_some_and(|shut| shut.answer() == FailureKind::Suspended) {
                    *state = State::default();
                }
            }
            Verdict::Down(kind, cause) => {
                state.failures = state.failures.saturating_add(1);
                if is_probe || (state.shut.is_none() && state.failures >= self.tuning.breaker_failures) {
                    let span = self.span(&mut state, FailureKind::Suspended, self.tuning.breaker_first, self.tuning.breaker_max);
                    shut(&mut state, kind, cause, now, now + span, now + span, key);
                }
            }
            Verdict::Refused(cause) => {
                if is_probe || state.shut.as_ref().is_none_or(|shut| shut.kind != FailureKind::Unauthorized) {
                    let span =
                        self.span(&mut state, FailureKind::Unauthorized, self.tuning.refused_first, self.tuning.refused_max);
                    shut(&mut state, FailureKind::Unauthorized, cause, now, now + span, now + span, key);
                }
            }
            Verdict::Limited(until, cause) => {
                let until = until.unwrap_or_else(|| {
                    now + self.span(&mut state, FailureKind::RateLimited, self.tuning.limited_first, self.tuning.limited_max)
                });
                let until = until.min(now + MAX_SHUT);
                if is_probe || state.shut.as_ref().is_none_or(|shut| shut.until < until) {
                    shut(&mut state, FailureKind::RateLimited, cause, now, until, until, key);
                }
            }
            // Asking is free while the credits are spent, and a plan may be raised at any time: look once an hour.
            Verdict::Spent(told, cause) => {
                let until = told.min(now + MAX_SHUT);
                if is_probe || state.shut.as_ref().is_none_or(|shut| shut.kind != FailureKind::QuotaExhausted) {
                    shut(&mut state, FailureKind::QuotaExhausted, cause, now, until, told, key);
                }
            }
        }
        // The lock is not reentrant, and the pass takes it when it goes.
        drop(state);
        drop(pass);
    }

    /// How long to stay shut: the first span, doubled each time in a row that the reason is the same.
    fn span(&self, state: &mut State, answer: FailureKind, first: std::time::Duration, most: std::time::Duration) -> TimeDelta {
        let is_same = state.shut.as_ref().is_some_and(|shut| shut.answer() == answer);
        state.level = if is_same { state.level.saturating_add(1) } else { 0 };
        let span = first.saturating_mul(1_u32.checked_shl(state.level).unwrap_or(u32::MAX)).min(most);
        TimeDelta::from_std(span).unwrap_or(MAX_SHUT).min(MAX_SHUT)
    }
}

fn shut(
    state: &mut State,
    kind: FailureKind,
    cause: String,
    now: Timestamp,
    until: Timestamp,
    told: Timestamp,
    key: Option<&SecretText>,
) {
    let since = state.shut.as_ref().filter(|shut| shut.kind == kind).map_or(now, |shut| shut.since);
    state.shut = Some(Shut { kind, cause, since, until, told, key: key.cloned(), is_probed: false });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse_timestamp;

    fn start() -> Timestamp {
        parse_timestamp("2026-03-09T00:00:00Z").expect("a timestamp")
    }

    fn after(seconds: i64) -> Timestamp {
        start() + TimeDelta::seconds(seconds)
    }

    fn gate() -> Arc<Gate> {
        Arc::new(Gate::new(Tuning::default()))
    }

    fn down() -> Verdict {
        Verdict::Down(FailureKind::Unreachable, "connection refused".into())
    }

    fn meet(gate: &Arc<Gate>, seconds: i64, verdict: Verdict) {
        let pass = gate.admit("GET /x", None, after(seconds)).expect("leave to ask");
        gate.conclude(pass, verdict, None, after(seconds));
    }

    fn refused(gate: &Arc<Gate>, seconds: i64) -> Option<FailureKind> {
        gate.admit("GET /x", None, after(seconds)).err().map(|failure| failure.kind)
    }

    #[test]
    fn five_failures_in_a_row_open_the_breaker_and_one_probe_closes_it() {
        let gate = gate();
        for _ in 0..4 {
            meet(&gate, 0, down());
        }
        meet(&gate, 0, Verdict::Answered);
        for _ in 0..4 {
            meet(&gate, 0, down());
        }
        assert!(gate.state().is_closed(), "an answer in between begins anew");
        meet(&gate, 0, down());
        assert_eq!(refused(&gate, 29), Some(FailureKind::Suspended));
        let probe = gate.admit("GET /x", None, after(30)).expect("a probe");
        assert_eq!(refused(&gate, 30), Some(FailureKind::Suspended), "one probe at a time");
        gate.conclude(probe, Verdict::Answered, None, after(31));
        assert_eq!(gate.state(), BreakerState::Closed { failures: 0 });
    }

    #[test]
    fn each_failed_probe_doubles_the_wait_up_to_ten_minutes() {
        let gate = gate();
        for _ in 0..5 {
            meet(&gate, 0, down());
        }
        let mut at = 0;
        for wait in [30, 60, 120, 240, 480, 600, 600] {
            assert_eq!(refused(&gate, at + wait - 1), Some(FailureKind::Suspended));
            at += wait;
            meet(&gate, at, down());
        }
    }

    #[test]
    fn a_probe_that_was_given_up_leaves_its_place_to_the_next() {
        let gate = gate();
        for _ in 0..5 {
            meet(&gate, 0, down());
        }
        drop(gate.admit("GET /x", None, after(30)).expect("a probe"));
        assert!(gate.admit("GET /x", None, after(30)).is_ok());
    }

    #[test]
    fn a_refused_key_is_not_asked_again_for_five_minutes_then_ever_longer() {
        let gate = gate();
        meet(&gate, 0, Verdict::Refused("401".into()));
        assert_eq!(refused(&gate, 299), Some(FailureKind::Unauthorized));
        meet(&gate, 300, Verdict::Refused("401".into()));
        assert_eq!(refused(&gate, 899), Some(FailureKind::Unauthorized));
        meet(&gate, 900, Verdict::Answered);
        assert!(gate.state().is_closed());
    }

    #[test]
    fn a_new_key_is_tried_at_once() {
        let gate = gate();
        meet(&gate, 0, Verdict::Refused("401".into()));
        let key = SecretText::from("new".to_owned());
        assert!(gate.admit("GET /x", Some(&key), after(1)).is_ok());
        assert!(gate.state().is_closed());
    }

    #[test]
    fn a_new_key_does_not_close_the_breaker() {
        let gate = gate();
        for _ in 0..5 {
            meet(&gate, 0, down());
        }
        let key = SecretText::from("new".to_owned());
        assert!(gate.admit("GET /x", Some(&key), after(1)).is_err());
    }

    #[test]
    fn spent_credits_name_their_reset_and_are_looked_at_once_an_hour() {
        let gate = gate();
        let reset = after(86_400);
        meet(&gate, 0, Verdict::Spent(reset, "spent".into()));
        let failure = gate.admit("GET /x", None, after(3_599)).expect_err("shut");
        assert_eq!((failure.kind, failure.retry_at), (FailureKind::QuotaExhausted, Some(reset)));
        assert!(gate.admit("GET /x", None, after(3_600)).is_ok());
    }

    #[test]
    fn a_success_that_began_earlier_does_not_lift_a_rate_limit() {
        let gate = gate();
        let early = gate.admit("GET /x", None, after(0)).expect("leave");
        meet(&gate, 0, Verdict::Limited(Some(after(60)), "429".into()));
        assert!(gate.check(&early, "GET /x").is_err(), "what is under way stops too");
        gate.conclude(early, Verdict::Answered, None, after(1));
        assert_eq!(refused(&gate, 59), Some(FailureKind::RateLimited));
        assert_eq!(refused(&gate, 60), None);
    }

    #[test]
    fn a_clock_set_back_does_not_keep_it_shut() {
        let gate = gate();
        meet(&gate, 0, Verdict::Refused("401".into()));
        assert!(gate.admit("GET /x", None, after(-86_400)).is_ok());
    }
}
