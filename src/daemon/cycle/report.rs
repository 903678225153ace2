//! What a cycle saw and did: the log line, the status page and the tests read the same value.

use std::fmt;

use crate::schedule::Job;
use engine::budget::PollReason;
use model::{
    change::Change,
    format,
    poll::PollFailure,
    supply::{FeedId, Timestamp},
};

/// What a cycle saw and did: the log line, the status page and the tests read this.
#[derive(Clone, Debug)]
pub struct CycleReport {
    /// Which job.
    pub job: Job,
    /// The time of the cycle, which everything in it goes by.
    pub at: Timestamp,
    /// Things asked.
    pub asked: u32,
    /// Complete answers that differed from the last ones.
    pub fresh: u32,
    /// Complete answers that did not.
    pub unchanged: u32,
    /// What could not be read, and why.
    pub failed: Vec<(FeedId, PollFailure)>,
    /// Feeds whose answer is held, since most of it vanished at once.
    pub held: Vec<FeedId>,
    /// What the diff told.
    pub changes: Vec<Change>,
    /// Alerts that began, moved on or ended.
    pub alerts: u32,
    /// Messages put into the outbox.
    pub deliveries: u32,
    /// Credits spent.
    pub credits: u32,
    /// Feeds that wait for more credits.
    pub deferred: Vec<(PollReason, u32)>,
    /// Feeds that needed no look.
    pub resting: u32,
    /// Tokens that were evaluated.
    pub evaluated: u32,
}

impl CycleReport {
    pub(super) fn new(job: Job, at: Timestamp) -> Self {
        Self {
            job,
            at,
            asked: 0,
            fresh: 0,
            unchanged: 0,
            failed: Vec::new(),
            held: Vec::new(),
            changes: Vec::new(),
            alerts: 0,
            deliveries: 0,
            credits: 0,
            deferred: Vec::new(),
            resting: 0,
            evaluated: 0,
        }
    }

    /// What the cycle is known by in logs, messages (`source.polledAt`), the poll log and `explain`: its instant. No two cycles of a
    /// job share one, and all of these keep it anyway.
    #[must_use]
    pub fn id(&self) -> String {
        format::exact(self.at)
    }

    /// Whether nothing happened that anyone would want in a log.
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
            write!(f, "{} judged", plural(self.evaluated, "token"))?;
        } else {
            write!(f, "{} asked, {} fresh, {} unchanged", self.asked, self.fresh, self.unchanged)?;
            if !self.failed.is_empty() {
                write!(f, ", {} failed", self.failed.len())?;
            }
            if !self.held.is_empty() {
                write!(f, ", {} held", self.held.len())?;
            }
            write!(f, ", {}", plural(self.credits, "credit"))?;
        }
        if !self.changes.is_empty() {
            write!(f, "; {}", plural(u32::try_from(self.changes.len()).unwrap_or(u32::MAX), "change"))?;
        }
        if self.alerts > 0 || self.deliveries > 0 {
            write!(f, "; {}, {}", plural(self.alerts, "alert"), plural(self.deliveries, "message"))?;
        }
        for (why, count) in &self.deferred {
            write!(f, "; {count} deferred ({})", why.as_str())?;
        }
        Ok(())
    }
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
