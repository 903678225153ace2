//! The report of a cycle, for the log, the status page, commands, and tests.

use std::fmt;

use crate::schedule::Job;
use engine::budget::PollReason;
use model::{
    change::Change,
    phrase,
    poll::PollFailure,
    supply::{FeedId, Timestamp},
};

#[derive(Clone, Debug)]
pub struct CycleReport {
    pub job: Job,
    /// The time that the evaluation of the cycle uses.
    pub at: Timestamp,
    /// The number of polls.
    pub requested: u32,
    /// The number of fresh responses.
    pub fresh: u32,
    pub unchanged: u32,
    pub failed: Vec<(FeedId, PollFailure)>,
    /// The feeds with a held response.
    pub held: Vec<FeedId>,
    pub changes: Vec<Change>,
    /// The number of alerts with a transition.
    pub alerts: u32,
    /// The number of new deliveries or pending notifications.
    pub deliveries: u32,
    pub credits: u32,
    /// The part of `credits` that failed polls may have cost.
    pub failed_credits: u32,
    /// Whether the cycle read the token list for the first time.
    pub is_first_list: bool,
    /// The number of feeds that were deferred for lack of credits, by reason.
    pub deferred: Vec<(PollReason, u32)>,
    /// The number of feeds that did not need a poll.
    pub resting: u32,
    /// The number of evaluated tokens.
    pub evaluated: u32,
}

impl CycleReport {
    pub(super) fn new(job: Job, at: Timestamp) -> Self {
        Self {
            job,
            at,
            requested: 0,
            fresh: 0,
            unchanged: 0,
            failed: Vec::new(),
            held: Vec::new(),
            changes: Vec::new(),
            alerts: 0,
            deliveries: 0,
            credits: 0,
            failed_credits: 0,
            is_first_list: false,
            deferred: Vec::new(),
            resting: 0,
            evaluated: 0,
        }
    }

    /// Returns the id of the cycle in logs, messages (`source.polledAt`), the poll log, and `explain`: its time, which no other cycle
    /// of the job has.
    #[must_use]
    pub fn id(&self) -> String {
        phrase::rfc3339(self.at)
    }

    /// Returns whether nothing happened that is worth an `info` log entry.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.fresh == 0
            && self.failed.is_empty()
            && self.held.is_empty()
            && self.alerts == 0
            && self.deliveries == 0
            && self.deferred.is_empty()
    }
}

impl fmt::Display for CycleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.job.as_str())?;
        if self.job == Job::Evaluate {
            write!(f, "{} evaluated", phrase::count(self.evaluated, "token"))?;
        } else {
            write!(f, "{} polled, {} fresh, {} unchanged", self.requested, self.fresh, self.unchanged)?;
            if !self.failed.is_empty() {
                write!(f, ", {} failed", self.failed.len())?;
            }
            if !self.held.is_empty() {
                write!(f, ", {} held", self.held.len())?;
            }
            write!(f, ", {}", phrase::count(self.credits, "credit"))?;
        }
        if !self.changes.is_empty() {
            write!(f, "; {}", phrase::count(self.changes.len(), "change"))?;
        }
        if self.alerts > 0 || self.deliveries > 0 {
            write!(f, "; {}, {}", phrase::count(self.alerts, "alert"), phrase::count(self.deliveries, "message"))?;
        }
        for (why, count) in &self.deferred {
            write!(f, "; {count} deferred ({})", why.as_str())?;
        }
        Ok(())
    }
}
