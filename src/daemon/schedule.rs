//! Runs the jobs of `[schedule]`: each job at its slots, one run of a job at a time, and a missed slot once.
//!
//! `tokio-cron-scheduler` drives this: it ticks once a second, and each tick starts the jobs that are due. It does not get
//! the patterns themselves, because it freezes the UTC offset of a time zone when a job is created; [`Slots`] computes each slot when
//! it is needed. A run that outlasts its interval skips the slots that it covers. Failed polls are retried between slots.

mod early_retries;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio_cron_scheduler::{Job as CronJob, JobScheduler, JobSchedulerError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use early_retries::EarlyRetries;
use engine::slot::{SlotError, Slots};
use model::{Clock, Endpoint, Timestamp, config};

/// The pattern of the tick, in UTC: every second.
const TICK: &str = "* * * * * *";
/// The interval of a plain timer that triggers the same tick. The cron scheduler follows the wall clock: after that clock is set back, it
/// does not tick until the clock reaches the earlier time again.
const FALLBACK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    Poll(Endpoint),
    /// The evaluation of rules that depend on the time. Makes no requests.
    Evaluate,
}

impl Job {
    /// The key in `[schedule]`, and the name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Job::Poll(endpoint) => endpoint.as_str(),
            Job::Evaluate => "evaluate",
        }
    }

    pub fn endpoint(self) -> Option<Endpoint> {
        match self {
            Job::Poll(endpoint) => Some(endpoint),
            Job::Evaluate => None,
        }
    }
}

/// Returns the jobs of a config with their slots, without jobs that are off.
///
/// # Errors
///
/// Fails with the key of the first pattern or time zone that is not valid. The config check reports all of them.
pub fn jobs(schedule: &config::ScheduleSettings) -> Result<Vec<(Job, Slots)>, (&'static str, SlotError)> {
    let pattern_of = |endpoint| match endpoint {
        Endpoint::TokenList => &schedule.token_list,
        Endpoint::Upcoming => &schedule.upcoming,
        Endpoint::UnlockEvents => &schedule.unlock_events,
        Endpoint::Burn => &schedule.burn,
        Endpoint::Buyback => &schedule.buyback,
        Endpoint::Allocations => &schedule.allocations,
        Endpoint::DailyEmission => &schedule.daily_emission,
        Endpoint::WeeklyEmission => &schedule.weekly_emission,
        Endpoint::Investors => &schedule.investors,
    };
    let polls = Endpoint::ALL.into_iter().map(|endpoint| (Job::Poll(endpoint), pattern_of(endpoint)));
    let mut jobs = Vec::new();
    for (job, pattern) in polls.chain([(Job::Evaluate, &schedule.evaluate)]) {
        match Slots::parse(pattern, &schedule.timezone) {
            Ok(Some(slots)) => jobs.push((job, slots)),
            Ok(None) => {}
            Err(error) => return Err((job.as_str(), error)),
        }
    }
    Ok(jobs)
}

/// Returns the last slot that a job missed while the daemon was down, or `now` if the job never ran. `None` if it missed no slot. Earlier
/// missed slots are skipped.
pub fn missed(slots: &Slots, last_run: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    match (slots.last(now), last_run) {
        (_, None) => Some(now),
        (Some(slot), Some(last)) if slot > last => Some(slot),
        _ => None,
    }
}

/// The reason for a run of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunReason {
    /// A slot: polls everything that is due.
    Slot(Timestamp),
    /// A retry of failed polls between two slots. An urgent one ends all waits.
    Retry { is_urgent: bool },
}

/// When to retry the failed polls of a job before its next slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRetry {
    /// No failed poll waits for a retry.
    None,
    At(Timestamp),
    /// The source responds again, and other failed polls wait.
    Recovered,
    /// Polls failed: after a wait that grows with each such run, and not before the time that the source requested.
    Failed {
        not_before: Option<Timestamp>,
        is_paid: bool,
    },
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub retry: NextRetry,
    /// Whether the run read the token list for the first time, so that the polls of all tokens are due.
    pub is_first_list: bool,
}

impl RunEnd {
    /// The end of a run after which nothing is to be done.
    pub const DONE: Self = Self { retry: NextRetry::None, is_first_list: false };
}

/// The function that runs a job.
pub type RunJob = Arc<dyn Fn(Job, RunReason) -> Pin<Box<dyn Future<Output = RunEnd> + Send>> + Send + Sync>;

pub struct Scheduler {
    cron: JobScheduler,
    runner: Arc<JobRunner>,
}

struct JobRunner {
    clock: Clock,
    run: RunJob,
    running: TaskTracker,
    stop: CancellationToken,
    jobs: Mutex<JobStates>,
}

#[derive(Default)]
struct JobStates {
    slots: BTreeMap<Job, Slots>,
    /// The slot that each idle job waits for.
    next: BTreeMap<Job, Timestamp>,
    /// The jobs that run now. Each one's next slot is computed when its run ends.
    busy: BTreeSet<Job>,
    retries: EarlyRetries,
}

impl Scheduler {
    /// Starts the schedule. `last_runs` are the slots that jobs last ran for: a slot missed since then is run first.
    ///
    /// # Errors
    ///
    /// Fails if the cron scheduler does not start.
    pub async fn start(
        jobs: Vec<(Job, Slots)>,
        last_runs: &[(String, Timestamp)],
        clock: Clock,
        run: RunJob,
    ) -> Result<Self, JobSchedulerError> {
        let runner = Arc::new(JobRunner {
            clock,
            run,
            running: TaskTracker::new(),
            stop: CancellationToken::new(),
            jobs: Mutex::default(),
        });
        let schedule = Self { cron: JobScheduler::new().await?, runner };
        schedule.replace(jobs, last_runs);
        let ticking = schedule.runner.clone();
        let tick = CronJob::new_async(TICK, move |_, _| {
            ticking.tick();
            Box::pin(std::future::ready(()))
        })?;
        schedule.cron.add(tick).await?;
        schedule.cron.start().await?;
        schedule.runner.running.spawn(schedule.runner.clone().tick_by_timer());
        Ok(schedule)
    }

    /// Replaces the jobs. Runs in progress continue, and their jobs wait for a slot afterward. A job that was scheduled before waits for
    /// its next slot; a new one runs at once if it missed a slot since `last_runs`.
    pub fn replace(&self, jobs: Vec<(Job, Slots)>, last_runs: &[(String, Timestamp)]) {
        let now = self.runner.clock.now();
        let mut missed_slots = Vec::new();
        {
            let mut states = self.runner.jobs();
            let before = std::mem::replace(&mut states.slots, jobs.iter().cloned().collect());
            let next = std::mem::take(&mut states.next);
            for (job, slots) in jobs {
                let last_run = last_runs.iter().find(|(name, _)| name == job.as_str()).map(|(_, slot)| *slot);
                let due = match before.contains_key(&job) {
                    true => next.get(&job).copied().filter(|slot| *slot <= now),
                    false => missed(&slots, last_run, now),
                };
                match due {
                    _ if states.busy.contains(&job) => {}
                    Some(slot) => {
                        states.busy.insert(job);
                        missed_slots.push((job, slot));
                    }
                    None => {
                        states.wait_for_next(job, now);
                        // At a start, the polls that failed before do not wait for their slot.
                        if job.endpoint().is_some() && !before.contains_key(&job) {
                            states.retries.hurry(job, now);
                        }
                    }
                }
            }
            let JobStates { retries, slots, .. } = &mut *states;
            retries.retain(|job| slots.contains_key(&job));
        }
        // The lists determine what the other jobs poll, so they run first; the rest run side by side.
        let (lists, rest): (Vec<_>, Vec<_>) =
            missed_slots.into_iter().partition(|(job, _)| matches!(job, Job::Poll(Endpoint::TokenList | Endpoint::Upcoming)));
        let runner = self.runner.clone();
        self.runner.running.spawn(async move {
            for (job, slot) in lists {
                runner.clone().run(job, RunReason::Slot(slot)).await;
            }
            for (job, slot) in rest {
                runner.running.spawn(runner.clone().run(job, RunReason::Slot(slot)));
            }
        });
    }

    /// Retries all failed polls now.
    pub fn retry_now(&self) {
        let (now, mut states) = (self.runner.clock.now(), self.runner.jobs());
        let jobs: Vec<Job> = states.slots.keys().copied().filter(|job| job.endpoint().is_some()).collect();
        jobs.into_iter().for_each(|job| states.retries.hurry(job, now));
    }

    /// Returns an idle job whose slot came more than `patience` ago: the schedule does not tick.
    pub fn overdue(&self, patience: TimeDelta) -> Option<(Job, Timestamp)> {
        let late = self.runner.clock.now() - patience;
        self.runner.jobs().next.iter().find(|(_, slot)| **slot < late).map(|(job, slot)| (*job, *slot))
    }

    /// Starts no more runs and waits up to `deadline` for the current ones. Returns whether all of them ended.
    pub async fn stop(&self, deadline: Duration) -> bool {
        self.runner.stop.cancel();
        self.runner.running.close();
        let ended = tokio::time::timeout(deadline, self.runner.running.wait()).await.is_ok();
        if let Err(error) = self.cron.clone().shutdown().await {
            tracing::debug!(%error, "the cron scheduler was already shut down");
        }
        ended
    }
}

impl JobStates {
    /// Sets the next slot of an idle job: the first one after `after`. A job that left the schedule, or whose pattern has no later match,
    /// has no next slot.
    fn wait_for_next(&mut self, job: Job, after: Timestamp) {
        let Some(slots) = self.slots.get(&job) else { return };
        match slots.next(after) {
            Some(slot) => {
                self.next.insert(job, slot);
            }
            None => tracing::warn!(job = job.as_str(), "the cron pattern has no future match: the job will not run again"),
        }
    }

    /// Takes the due slots and retries, and marks their jobs as busy.
    fn take_due(&mut self, now: Timestamp) -> Vec<(Job, RunReason)> {
        for (job, slot) in &mut self.next {
            // The clock may have been set back: then an earlier slot comes first.
            let earlier = self.slots.get(job).and_then(|slots| slots.next(now));
            *slot = earlier.map_or(*slot, |earlier| earlier.min(*slot));
        }
        let mut due: Vec<(Job, RunReason)> =
            self.next.extract_if(.., |_, slot| *slot <= now).map(|(job, slot)| (job, RunReason::Slot(slot))).collect();
        self.busy.extend(due.iter().map(|(job, _)| *job));
        for (job, is_urgent) in self.retries.take_due(&self.busy, now) {
            self.next.remove(&job);
            self.busy.insert(job);
            due.push((job, RunReason::Retry { is_urgent }));
        }
        due
    }
}

impl JobRunner {
    fn jobs(&self) -> MutexGuard<'_, JobStates> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the due jobs.
    fn tick(self: &Arc<Self>) {
        if self.stop.is_cancelled() {
            return;
        }
        let due = self.jobs().take_due(self.clock.now());
        for (job, reason) in due {
            self.running.spawn(self.clone().run(job, reason));
        }
    }

    async fn tick_by_timer(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(FALLBACK_INTERVAL) => self.tick(),
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Runs a busy job. The job then waits for its next slot or retry.
    async fn run(self: Arc<Self>, job: Job, reason: RunReason) {
        if self.stop.is_cancelled() {
            return;
        }
        let begun_at = self.clock.now();
        self.jobs().retries.begun(job);
        // In a task of its own: a run that panics must not end the job.
        let end = tokio::spawn((self.run)(job, reason)).await.unwrap_or_else(|error| {
            tracing::error!(job = job.as_str(), %error, "a run panicked; the job will run again at its next slot");
            RunEnd::DONE
        });
        let now = self.clock.now();
        let mut jobs = self.jobs();
        jobs.busy.remove(&job);
        // A reload during the run may have removed the job.
        if jobs.slots.contains_key(&job) {
            jobs.retries.ended(job, end.retry, now);
        }
        if end.is_first_list {
            let per_token = |job: &Job| job.endpoint().is_some_and(Endpoint::is_per_token);
            let unread: Vec<Job> = jobs.slots.keys().copied().filter(per_token).collect();
            unread.into_iter().for_each(|job| jobs.retries.hurry(job, now));
        }
        jobs.wait_for_next(
            job,
            match reason {
                RunReason::Slot(slot) => now.max(slot),
                // A slot during the retry is not covered by it.
                RunReason::Retry { .. } => begun_at,
            },
        );
    }
}

#[cfg(test)]
mod tests;
