//! From the tick of a cron pattern to a run of its job: one run of a job at a time, missed slots made up for once.
//!
//! The ticker is `tokio-cron-scheduler`, used for single shots only: it would freeze a zone's offset when a job is made, and may fire
//! up to a second early. So each slot is computed afresh by [`Slots`], the job waits for the rest of the second, and the next slot is
//! armed when the run is over; a run that outlasts its interval skips the slots that it covers. And it goes by the wall clock, which may be
//! set: a guard takes what it passes over.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio_cron_scheduler::{Job as Shot, JobScheduler, JobSchedulerError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use engine::slot::{SlotError, Slots};
use model::{Clock, Endpoint, Timestamp, config};

/// How often the guard looks for slots that the ticker passed over.
const GUARD: Duration = Duration::from_secs(5);
/// How early a single shot may come, and how late before the guard takes its slot.
const SHOT_SLACK: TimeDelta = TimeDelta::seconds(2);

/// What a schedule runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    Poll(Endpoint),
    /// Evaluate what time alone changes.
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

/// The jobs of a config with their slots; those that are off are left out.
/// Fails with the first pattern or zone that cannot be read, with its key. The check of the config finds all of them.
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

/// The slot that a job missed while nobody ran it: the last one, once, however many there were. A job that never ran is due at once.
pub fn missed(slots: &Slots, last_run: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    match (slots.last(now), last_run) {
        (_, None) => Some(now),
        (Some(slot), Some(last)) if slot > last => Some(slot),
        _ => None,
    }
}

/// What runs a job for a slot.
pub type RunJob = Arc<dyn Fn(Job, Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The ticker at work.
pub struct Scheduler {
    inner: Arc<Ticker>,
}

struct Ticker {
    ticker: JobScheduler,
    clock: Clock,
    run: RunJob,
    running: TaskTracker,
    stop: CancellationToken,
    jobs: Mutex<JobStates>,
}

#[derive(Default)]
struct JobStates {
    /// When each is due; replaced by a reload.
    slots: BTreeMap<Job, Slots>,
    /// The slot that each job waits for: a shot for any other is void.
    armed: BTreeMap<Job, Timestamp>,
    /// Jobs that run, or are about to make up for a slot: they arm themselves once they have.
    busy: BTreeSet<Job>,
}

impl Scheduler {
    /// Starts the ticker. `last_runs` are the slots that jobs last ran for: what was missed since is made up for first.
    /// Fails where the ticker does not start.
    pub async fn start(
        jobs: Vec<(Job, Slots)>,
        last_runs: &[(String, Timestamp)],
        clock: Clock,
        run: RunJob,
    ) -> Result<Self, JobSchedulerError> {
        let ticker = JobScheduler::new().await?;
        ticker.start().await?;
        let inner = Arc::new(Ticker {
            ticker,
            clock,
            run,
            running: TaskTracker::new(),
            stop: CancellationToken::new(),
            jobs: Mutex::default(),
        });
        inner.running.spawn(inner.clone().guard());
        let schedule = Self { inner };
        schedule.replace(jobs, last_runs).await;
        Ok(schedule)
    }

    /// Goes by these jobs from now on. Runs in hand end first; a job that was on before takes its next slot, one that was not makes
    /// up for what it missed since `last_runs`.
    pub async fn replace(&self, jobs: Vec<(Job, Slots)>, last_runs: &[(String, Timestamp)]) {
        let now = self.inner.clock.now();
        let (mut late, mut waiting) = (Vec::new(), Vec::new());
        {
            let mut known = self.inner.jobs();
            let before = std::mem::replace(&mut known.slots, jobs.iter().cloned().collect());
            let armed = std::mem::take(&mut known.armed);
            let untaken = |job: &Job| armed.get(job).copied().filter(|slot| *slot <= now);
            for (job, slots) in jobs {
                let last_run = last_runs.iter().find(|(name, _)| name == job.as_str()).map(|(_, slot)| *slot);
                let due = if before.contains_key(&job) { untaken(&job) } else { missed(&slots, last_run, now) };
                match due {
                    _ if known.busy.contains(&job) => {}
                    Some(slot) => {
                        known.busy.insert(job);
                        late.push((job, slot));
                    }
                    None => waiting.push(job),
                }
            }
        }
        for job in waiting {
            self.inner.clone().arm(job, now).await;
        }
        // The lists say what the others ask, so they go first; a long first read must hold up nobody else.
        let (first, rest): (Vec<_>, Vec<_>) =
            late.into_iter().partition(|(job, ..)| matches!(job, Job::Poll(Endpoint::TokenList | Endpoint::Upcoming)));
        let this = self.inner.clone();
        self.inner.running.spawn(async move {
            for (job, slot) in first {
                this.clone().make_up(job, slot).await;
            }
            for (job, slot) in rest {
                this.running.spawn(this.clone().make_up(job, slot));
            }
        });
    }

    /// A job whose slot came more than `patience` ago and was not taken, though it is not running: the ticker stands still.
    pub fn overdue(&self, patience: TimeDelta) -> Option<(Job, Timestamp)> {
        let late = self.inner.clock.now() - patience;
        self.inner.jobs().armed.iter().find(|(_, slot)| **slot < late).map(|(job, slot)| (*job, *slot))
    }

    /// Takes no new slot, and waits for the runs in hand, at most `deadline`. Whether they ended in time.
    pub async fn stop(&self, deadline: Duration) -> bool {
        self.inner.stop.cancel();
        self.inner.running.close();
        let ended = tokio::time::timeout(deadline, self.inner.running.wait()).await.is_ok();
        if let Err(error) = self.inner.ticker.clone().shutdown().await {
            tracing::debug!(%error, "the ticker was down already");
        }
        ended
    }
}

impl Ticker {
    fn jobs(&self) -> MutexGuard<'_, JobStates> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms the next slot of a job that is on.
    fn arm(self: Arc<Self>, job: Job, after: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let slot = {
                let mut jobs = self.jobs();
                jobs.busy.remove(&job);
                let Some(slots) = jobs.slots.get(&job) else { return };
                let Some(slot) = slots.next(after) else {
                    tracing::warn!(job = job.as_str(), "the pattern has no further slot: the job rests");
                    return;
                };
                jobs.armed.insert(job, slot);
                slot
            };
            let wait = (slot - self.clock.now()).max(TimeDelta::zero()).to_std().unwrap_or_default();
            let this = self.clone();
            let shot = Shot::new_one_shot_async(wait, move |_, _| {
                let this = this.clone();
                Box::pin(async move { this.take(job, slot) })
            });
            match shot {
                Ok(shot) => {
                    if let Err(error) = self.ticker.add(shot).await {
                        tracing::error!(job = job.as_str(), %error, "cannot arm the next slot: the job stands still until a restart");
                    }
                }
                Err(error) => {
                    tracing::error!(job = job.as_str(), %error, "cannot make the next slot: the job stands still until a restart")
                }
            }
        })
    }

    /// Takes the slots that the ticker passed over, since the wall clock by which it goes was set back; and where our own time was, has each
    /// job wait for the slot that now comes next.
    async fn guard(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(GUARD) => {}
                () = self.stop.cancelled() => return,
            }
            let now = self.clock.now();
            let mut due = Vec::new();
            {
                let JobStates { slots, armed, .. } = &mut *self.jobs();
                for (job, slot) in armed {
                    let next = slots.get(job).and_then(|slots| slots.next(now));
                    *slot = next.map_or(*slot, |next| next.min(*slot));
                    if *slot <= now - SHOT_SLACK {
                        due.push((*job, *slot));
                    }
                }
            }
            for (job, slot) in due {
                self.clone().take(job, slot);
            }
        }
    }

    /// Runs a job for a slot that was missed, then arms the next one.
    async fn make_up(self: Arc<Self>, job: Job, slot: Timestamp) {
        if self.stop.is_cancelled() {
            return;
        }
        self.run_once(job, slot).await;
        let after = self.clock.now().max(slot);
        self.arm(job, after).await;
    }

    /// Runs the job in a task of its own: a run that panics must not end the job.
    async fn run_once(&self, job: Job, slot: Timestamp) {
        if let Err(error) = tokio::spawn((self.run)(job, slot)).await {
            tracing::error!(job = job.as_str(), %error, "a run ended abnormally; the next slot is taken as usual");
        }
    }

    /// Runs the job for its slot in a task of its own, so that stopping can wait for it, then arms the next slot.
    fn take(self: Arc<Self>, job: Job, slot: Timestamp) {
        if self.stop.is_cancelled() {
            return;
        }
        let this = self.clone();
        self.running.spawn(async move {
            let rest = (slot - this.clock.now()).max(TimeDelta::zero());
            if rest > SHOT_SLACK {
                return; // the wall clock was set: the guard takes it when its time has come
            }
            let rest = rest.to_std().unwrap_or_default();
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = this.stop.cancelled() => return,
            }
            {
                let mut jobs = this.jobs();
                if jobs.armed.get(&job) != Some(&slot) {
                    return;
                }
                jobs.armed.remove(&job);
                jobs.busy.insert(job);
            }
            this.run_once(job, slot).await;
            let after = this.clock.now().max(slot);
            this.clone().arm(job, after).await;
        });
    }
}

#[cfg(test)]
mod tests;
