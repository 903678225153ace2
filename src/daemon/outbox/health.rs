//! Whether a receiver takes what it is sent: the breaker of its worker, its storm cap, and when its silence is news. Pure.

use std::collections::VecDeque;

use chrono::TimeDelta;

use model::Timestamp;
use notify::Outcome;

/// Attempts in a row without an answer after which a receiver counts as down.
pub const BREAK_AFTER: u32 = 5;

/// How long nothing may succeed before that is told.
pub const TELL_AFTER: TimeDelta = TimeDelta::minutes(15);

/// Wait before the first probe of a receiver that is down; doubled after each that fails.
const FIRST_PROBE: TimeDelta = TimeDelta::seconds(5);

/// Longest wait between probes.
const MAX_PROBE: TimeDelta = TimeDelta::minutes(5);

/// What is remembered of a receiver while the process runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiverHealth {
    /// Attempts in a row that came to nothing.
    failures: u32,
    /// Since when nothing succeeds.
    failing_since: Option<Timestamp>,
    /// Not before this time: the receiver asked for it, or it is down and this is the next probe.
    resume_at: Option<Timestamp>,
    /// Wait before the next probe.
    probe_wait: TimeDelta,
    /// When messages of the last hour were sent, oldest first.
    sent: VecDeque<Timestamp>,
}

/// Messages sent in an hour: those that the dispatcher makes, and the summary of what is above them.
fn most_sent(max_per_hour: u32) -> usize {
    (max_per_hour.max(1) as usize).saturating_add(1)
}

impl ReceiverHealth {
    /// Whether it counts as down: then one attempt at a time is made, as a probe.
    pub fn is_down(&self) -> bool {
        self.failures >= BREAK_AFTER
    }

    /// Since when nothing succeeds; None while it does.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.failing_since
    }

    /// Whether its silence has lasted long enough to be told.
    pub fn is_news(&self, now: Timestamp) -> bool {
        self.failing_since.is_some_and(|since| now - since >= TELL_AFTER)
    }

    /// How many attempts may begin now, beside `in_flight` that are under way.
    pub fn room(&mut self, now: Timestamp, in_flight: usize, concurrency: u32, max_per_hour: u32) -> usize {
        if self.resume_at.is_some_and(|at| now < at) {
            return 0;
        }
        let most = if self.is_down() { 1 } else { concurrency.max(1) as usize };
        self.forget_other_times(now);
        while self.sent.pop_front_if(|at| now - *at >= TimeDelta::hours(1)).is_some() {}
        let left = (most_sent(max_per_hour)).saturating_sub(self.sent.len() + in_flight);
        most.saturating_sub(in_flight).min(left)
    }

    /// When there may be room again, where that is known: for the next look.
    pub fn opens_at(&self, now: Timestamp, max_per_hour: u32) -> Option<Timestamp> {
        let hour = self.sent.front().filter(|_| self.sent.len() >= most_sent(max_per_hour)).map(|at| *at + TimeDelta::hours(1));
        [self.resume_at, hour].into_iter().flatten().filter(|at| *at > now).max()
    }

    /// Takes note of an outcome. `max_wait` is the longest wish of a receiver that is honoured.
    pub fn note(&mut self, outcome: &Outcome, now: Timestamp, max_wait: TimeDelta) {
        match outcome {
            // It answered and meant this one message: it is not down, whatever it thinks of the message.
            Outcome::Accepted | Outcome::Refused | Outcome::Gone => {
                self.failures = 0;
                self.failing_since = None;
                self.resume_at = None;
                self.probe_wait = TimeDelta::zero();
            }
            Outcome::Later { .. } | Outcome::Uncertain => {
                self.failures = self.failures.saturating_add(1);
                self.failing_since.get_or_insert(now);
                let probe = self.is_down().then(|| {
                    self.probe_wait = (self.probe_wait * 2).clamp(FIRST_PROBE, MAX_PROBE);
                    self.probe_wait
                });
                // "Come back in a minute" is about the receiver, not about this message: the others wait too.
                let asked = if let Outcome::Later { retry_after } = outcome { *retry_after } else { None };
                let asked = asked.map(|wait| wait.clamp(TimeDelta::zero(), max_wait));
                let wait = probe.into_iter().chain(asked).max();
                self.resume_at = wait.and_then(|wait| now.checked_add_signed(wait));
            }
        }
        if matches!(outcome, Outcome::Accepted | Outcome::Uncertain) {
            self.forget_other_times(now);
            self.sent.push_back(now);
        }
    }

    /// A clock that was set back must not close the hour for longer than an hour.
    fn forget_other_times(&mut self, now: Timestamp) {
        while self.sent.pop_back_if(|at| *at > now).is_some() {}
    }
}

#[cfg(test)]
mod tests;
