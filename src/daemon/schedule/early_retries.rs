//! When jobs with failed polls run again before their next slot. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{Job, NextRetry};
use engine::plan::early_wait;
use model::Timestamp;

/// The retries of all jobs.
#[derive(Debug, Default)]
pub(super) struct EarlyRetries(BTreeMap<Job, JobRetries>);

#[derive(Debug, Default)]
struct JobRetries {
    /// The number of runs in a row in which polls failed.
    failures: u32,
    next: Option<PendingRetry>,
}

#[derive(Clone, Copy, Debug)]
struct PendingRetry {
    since: Timestamp,
    at: Timestamp,
    is_urgent: bool,
}

impl EarlyRetries {
    /// Makes a retry of a job due now, without regard to its waits. If the job runs, it runs again.
    pub(super) fn hurry(&mut self, job: Job, now: Timestamp) {
        self.0.entry(job).or_default().next = Some(PendingRetry { since: now, at: now, is_urgent: true });
    }

    /// Records the begin of a run, which includes all retries that were due before.
    pub(super) fn begun(&mut self, job: Job) {
        if let Some(retries) = self.0.get_mut(&job) {
            retries.next = None;
        }
    }

    /// Records the end of a run. A retry that became urgent during the run stays.
    pub(super) fn ended(&mut self, job: Job, next: NextRetry, now: Timestamp) {
        let retries = self.0.entry(job).or_default();
        let at = match next {
            NextRetry::None => {
                retries.failures = 0;
                None
            }
            NextRetry::At(at) => Some(at),
            NextRetry::Recovered => {
                retries.failures = 0;
                Some(now)
            }
            NextRetry::Failed { not_before, is_paid } => {
                retries.failures = retries.failures.saturating_add(1);
                now.checked_add_signed(early_wait(retries.failures, is_paid)).max(not_before)
            }
        };
        retries.next = retries.next.or(at.map(|at| PendingRetry { since: now, at, is_urgent: false }));
    }

    /// Takes the due retries of idle jobs, each with whether it is urgent. If the clock was set back, a retry does not wait longer.
    pub(super) fn take_due(&mut self, busy: &BTreeSet<Job>, now: Timestamp) -> Vec<(Job, bool)> {
        let idle = self.0.iter_mut().filter(|(job, _)| !busy.contains(job));
        let due = idle.filter_map(|(job, retries)| {
            let next = retries.next.take_if(|next| now >= next.at || now < next.since)?;
            Some((*job, next.is_urgent))
        });
        due.collect()
    }

    /// Drops the retries of jobs that left the schedule.
    pub(super) fn retain(&mut self, has: impl Fn(Job) -> bool) {
        self.0.retain(|job, _| has(*job));
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use model::Endpoint;

    const JOB: Job = Job::Poll(Endpoint::Allocations);

    fn after(seconds: i64) -> Timestamp {
        Timestamp::default() + TimeDelta::seconds(seconds)
    }

    fn due(retries: &mut EarlyRetries, seconds: i64) -> Vec<(Job, bool)> {
        retries.take_due(&BTreeSet::new(), after(seconds))
    }

    #[test]
    fn failed_run_is_retried_with_growing_waits() {
        let mut retries = EarlyRetries::default();
        let failed = NextRetry::Failed { not_before: None, is_paid: false };
        retries.ended(JOB, failed, after(0));
        assert_eq!((due(&mut retries, 4), due(&mut retries, 5)), (vec![], vec![(JOB, false)]));
        retries.begun(JOB);
        retries.ended(JOB, failed, after(6));
        assert_eq!((due(&mut retries, 15), due(&mut retries, 16)), (vec![], vec![(JOB, false)]));
        retries.ended(JOB, NextRetry::Failed { not_before: Some(after(100)), is_paid: false }, after(17));
        assert_eq!((due(&mut retries, 99), due(&mut retries, 100)), (vec![], vec![(JOB, false)]), "as the source requested");
        retries.ended(JOB, NextRetry::None, after(101));
        assert_eq!(due(&mut retries, 100_000), []);
        retries.ended(JOB, failed, after(200));
        assert_eq!(due(&mut retries, 205), [(JOB, false)], "the waits start again after a success");
    }

    #[test]
    fn retry_requested_during_a_run_follows_it() {
        let mut retries = EarlyRetries::default();
        retries.hurry(JOB, after(0));
        retries.begun(JOB);
        retries.ended(JOB, NextRetry::None, after(1));
        assert_eq!(due(&mut retries, 2), [], "the run covers what was requested before");
        retries.begun(JOB);
        retries.hurry(JOB, after(3));
        assert_eq!(retries.take_due(&BTreeSet::from([JOB]), after(3)), [], "not while the job runs");
        retries.ended(JOB, NextRetry::None, after(4));
        assert_eq!(due(&mut retries, 4), [(JOB, true)]);
    }

    #[test]
    fn clock_that_is_set_back_delays_no_retry() {
        let mut retries = EarlyRetries::default();
        retries.ended(JOB, NextRetry::At(after(1_000)), after(900));
        assert_eq!(due(&mut retries, 10), [(JOB, false)]);
    }
}
