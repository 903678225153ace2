//! The health of a receiver: its circuit breaker, its hourly limit, and when an outage is reported. Pure.

use std::collections::VecDeque;

use chrono::TimeDelta;

use model::Timestamp;
use notify::Outcome;

/// The number of consecutive failed attempts after which a receiver counts as down.
pub const BREAK_AFTER: u32 = 5;

/// The time without success after which an outage is reported.
pub const REPORT_AFTER: TimeDelta = TimeDelta::minutes(15);

/// The wait before the first probe of a receiver that is down. Doubles after each failed probe.
const MIN_PROBE_WAIT: TimeDelta = TimeDelta::seconds(5);

const MAX_PROBE_WAIT: TimeDelta = TimeDelta::minutes(5);

/// The state of a receiver, kept in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiverHealth {
    /// The number of consecutive failed attempts.
    failures: u32,
    failing_since: Option<Timestamp>,
    /// No attempt starts before this time: the receiver requested it, or it is down and the next probe comes then.
    resume_at: Option<Timestamp>,
    probe_wait: TimeDelta,
    /// The times of the messages in the last hour, oldest first.
    sent: VecDeque<Timestamp>,
}

/// The maximum number of messages in an hour. The extra one is the summary of suppressed messages.
fn hourly_limit(max_per_hour: u32) -> usize {
    (max_per_hour.max(1) as usize).saturating_add(1)
}

impl ReceiverHealth {
    /// Returns whether the receiver counts as down, so that only one attempt at a time is made, as a probe.
    pub fn is_down(&self) -> bool {
        self.failures >= BREAK_AFTER
    }

    /// The time of the first of the consecutive failures. `None` if the last attempt succeeded.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.failing_since
    }

    /// Returns whether an outage has lasted long enough to report it.
    pub fn should_report(&self, now: Timestamp) -> bool {
        self.failing_since.is_some_and(|since| now - since >= REPORT_AFTER)
    }

    /// Returns the number of attempts that may start now in addition to those in flight.
    pub fn room(&mut self, now: Timestamp, in_flight: usize, concurrency: u32, max_per_hour: u32) -> usize {
        if self.resume_at.is_some_and(|at| now < at) {
            return 0;
        }
        let max = if self.is_down() { 1 } else { concurrency.max(1) as usize };
        self.drop_future_times(now);
        while self.sent.pop_front_if(|at| now - *at >= TimeDelta::hours(1)).is_some() {}
        let left = hourly_limit(max_per_hour).saturating_sub(self.sent.len() + in_flight);
        max.saturating_sub(in_flight).min(left)
    }

    /// Returns the time when attempts may start again. `None` if only the end of an attempt makes room.
    pub fn opens_at(&self, now: Timestamp, max_per_hour: u32) -> Option<Timestamp> {
        let hour =
            self.sent.front().filter(|_| self.sent.len() >= hourly_limit(max_per_hour)).map(|at| *at + TimeDelta::hours(1));
        [self.resume_at, hour].into_iter().flatten().filter(|at| *at > now).max()
    }

    /// Records an outcome. `max_wait` limits the wait that a receiver can request.
    pub fn note(&mut self, outcome: &Outcome, now: Timestamp, max_wait: TimeDelta) {
        match outcome {
            // The receiver responded about this message, so it is not down, even if it rejected the message.
            Outcome::Accepted | Outcome::AcceptedExcept { .. } | Outcome::Partly | Outcome::Refused | Outcome::Gone => {
                self.failures = 0;
                self.failing_since = None;
                self.resume_at = None;
                self.probe_wait = TimeDelta::zero();
            }
            Outcome::Later { .. } | Outcome::Uncertain => {
                self.failures = self.failures.saturating_add(1);
                self.failing_since.get_or_insert(now);
                let probe = self.is_down().then(|| {
                    self.probe_wait = (self.probe_wait * 2).clamp(MIN_PROBE_WAIT, MAX_PROBE_WAIT);
                    self.probe_wait
                });
                // `Retry-After` concerns the receiver, not only this message, so all its messages wait.
                let requested = if let Outcome::Later { retry_after } = outcome { *retry_after } else { None };
                let requested = requested.map(|wait| wait.clamp(TimeDelta::zero(), max_wait));
                let wait = probe.into_iter().chain(requested).max();
                self.resume_at = wait.and_then(|wait| now.checked_add_signed(wait));
            }
        }
        if outcome.is_accepted() || matches!(outcome, Outcome::Partly | Outcome::Uncertain) {
            self.drop_future_times(now);
            self.sent.push_back(now);
        }
    }

    /// Drops times in the future, so that a clock that was set back blocks the receiver for at most an hour.
    fn drop_future_times(&mut self, now: Timestamp) {
        while self.sent.pop_back_if(|at| *at > now).is_some() {}
    }
}

#[cfg(test)]
mod tests;
