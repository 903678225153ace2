//! The outbox: reads due deliveries, sends them, and records the attempts.
//!
//! The [dispatcher](Dispatcher) runs before it: it groups or suppresses notifications and creates the deliveries. It runs when it is
//! woken or a wait ends.
//!
//! [`Outbox`] supervises one worker per receiver (`worker`), each with its own task, circuit breaker, and hourly limit (`health`), so
//! that a slow receiver delays no other. The [delivery store](DeliveryStore) holds the state, the [sender](DeliverySender) makes the
//! attempts, and `orphans` handles deliveries to removed receivers.
//!
//! The loop takes no input and is safe to run twice; a wake-up only saves time. A delivery passes through `Due` (read from the store),
//! `Prepared` (in flight), an [`Outcome`](notify::Outcome), and `Recorded` (attempt, new state, and alerts, in one transaction). The
//! network is awaited between transactions.
//!
//! Guarantees: ended attempts are recorded at once, together if several have ended. At most twice the allowed concurrency is sent
//! without being recorded, and a killed process repeats no more than that. If recording fails, the worker retries it and sends nothing
//! else until it succeeds. A receiver gets the notifications of one alert in the order in which they were decided.

mod announcement;
mod dispatch_loop;
mod orphans;
mod ports;
mod receiver_health;
mod sender;
mod shared;
mod takeover;
mod worker;

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::{sync::Mutex, task::JoinSet};

use crate::{dispatch::Dispatcher, live::Live, metrics::Metrics, systemd::ProgressMarker};
use dispatch_loop::dispatch_until_stopped;
use model::{AttemptOutcome, BoxFuture, Clock, DeliveryId, DeliveryState, ReceiverName, Timestamp, config};
use orphans::dead_letter_orphans;
pub use ports::{DeliverySender, DeliveryStore, DeliveryStoreError, ReceiverIncident};
pub use sender::ReceiverSender;
use shared::{SendingSetup, Shared};
use worker::Worker;

/// The number of deliveries read at a time.
const BATCH: u32 = 256;

/// The longest sleep. Another process may have added deliveries.
const MAX_SLEEP: Duration = Duration::from_secs(2);

/// The shortest sleep without an event, so that a delivery that is due but cannot start causes no busy loop.
const MIN_SLEEP: Duration = Duration::from_millis(100);

/// The wait before a retry after the store failed.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The maximum number of passes of [`Outbox::deliver_due`]. A pass can add deliveries about failed ones.
const MAX_PASSES: usize = 16;

/// The outbox. Its workers run in tasks, or in [`Outbox::deliver_due`].
#[derive(Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
    /// Whether the workers run in tasks.
    is_running: AtomicBool,
    /// Whether [`Outbox::begin`] starts the workers.
    is_waiting: bool,
    /// The workers, while they do not run in tasks.
    idle: Mutex<Vec<Worker>>,
    running: Mutex<JoinSet<()>>,
}

/// The dependencies of the outbox.
#[derive(Clone)]
pub struct OutboxDeps {
    pub store: Arc<dyn DeliveryStore>,
    /// `None` if deliveries are stored without a dispatcher.
    pub dispatcher: Option<Arc<Dispatcher>>,
    pub sender: Arc<dyn DeliverySender>,
    /// The active rules and routes, for alerts about deliveries.
    pub live: Arc<Live>,
    pub metrics: Option<Arc<Metrics>>,
    pub clock: Clock,
    pub delivery: config::DeliverySettings,
}

impl fmt::Debug for OutboxDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxDeps").field("receivers", &self.sender.names()).finish_non_exhaustive()
    }
}

/// The result of a delivery pass, for the log of commands and for tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryReport {
    /// The attempts, each with the new state of its delivery.
    pub attempts: Vec<(DeliveryId, ReceiverName, AttemptOutcome, DeliveryState)>,
    /// The errors of the store.
    pub errors: Vec<String>,
}

impl DeliveryReport {
    /// Returns the number of attempts that left the delivery in `state`.
    pub fn count(&self, state: DeliveryState) -> usize {
        self.attempts.iter().filter(|(_, _, _, now)| *now == state).count()
    }
}

impl Outbox {
    /// Starts a worker for each receiver.
    pub fn start(deps: OutboxDeps) -> Self {
        let mut outbox = Self::idle(deps);
        let (running, idle) = (outbox.running.get_mut(), outbox.idle.get_mut());
        Self::run(&outbox.shared, &outbox.is_running, running, idle);
        outbox
    }

    /// Creates an outbox that starts its workers with [`Self::begin`].
    pub fn waiting(deps: OutboxDeps) -> Self {
        let mut outbox = Self::idle(deps);
        outbox.is_waiting = true;
        outbox
    }

    /// Starts a time in which nothing counts as removed from the config.
    pub fn begin_takeover(&self) {
        self.shared.takeover.begin();
    }

    /// Returns whether this instance took over a few minutes ago, so that nothing counts as removed from the config.
    pub fn is_after_takeover(&self) -> bool {
        self.shared.takeover.is_recent()
    }

    /// Starts the workers of a waiting outbox.
    pub async fn begin(&self) {
        if self.is_waiting && !self.is_running.load(Ordering::SeqCst) {
            let (mut running, mut idle) = (self.running.lock().await, self.idle.lock().await);
            Self::run(&self.shared, &self.is_running, &mut running, &mut idle);
        }
    }

    fn run(shared: &Arc<Shared>, is_running: &AtomicBool, running: &mut JoinSet<()>, idle: &mut Vec<Worker>) {
        is_running.store(true, Ordering::SeqCst);
        let shared = shared.clone();
        running.spawn(async move {
            match shared.deps.dispatcher.clone() {
                Some(dispatcher) => dispatch_until_stopped(&shared, dispatcher.as_ref()).await,
                None => dead_letter_orphans(&shared, shared.deps.clock.now()).await,
            }
        });
        for worker in idle.drain(..) {
            running.spawn(worker.run());
        }
    }

    /// Creates an outbox that only delivers in [`deliver_due`](Self::deliver_due).
    pub fn idle(deps: OutboxDeps) -> Self {
        let shared = Arc::new(Shared::new(deps));
        let idle = shared.sending().names.iter().map(|name| Worker::new(name.clone(), shared.clone())).collect();
        Self {
            shared,
            is_running: AtomicBool::new(false),
            is_waiting: false,
            idle: Mutex::new(idle),
            running: Mutex::new(JoinSet::new()),
        }
    }

    /// Replaces the receivers and settings for all new attempts. Attempts in flight continue. New receivers get workers. The worker of
    /// a removed receiver ends after its last attempt, and its remaining deliveries become dead letters.
    pub fn replace(&self, sender: Arc<dyn DeliverySender>, delivery: config::DeliverySettings) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (new, removed) = self.shared.replace(SendingSetup::of(sender, delivery));
            let new = new.into_iter().map(|name| Worker::new(name, self.shared.clone()));
            if self.is_running.load(Ordering::SeqCst) {
                let mut running = self.running.lock().await;
                // Frees the tasks that have ended.
                while running.try_join_next().is_some() {}
                for worker in new {
                    running.spawn(worker.run());
                }
            } else {
                let mut idle = self.idle.lock().await;
                idle.extend(new);
                // An idle worker has no attempts in flight.
                idle.retain(|worker| !removed.contains(worker.receiver()) || !self.shared.retire_worker(worker.receiver()));
                idle.sort_by(|a, b| a.receiver().cmp(b.receiver()));
            }
            self.shared.wake(&removed);
            self.wake();
        })
    }

    /// Signals that deliveries may be due. This only saves time, because workers also poll the table.
    pub fn wake(&self) {
        if self.shared.deps.dispatcher.is_some() {
            // The dispatcher wakes the workers.
            self.shared.dispatch_wake_up.notify_one();
            return;
        }
        for handle in self.shared.handles.read().unwrap_or_else(PoisonError::into_inner).values() {
            handle.wake_up.notify_one();
        }
    }

    /// The start of the last successful dispatch pass. Each notification decided before it is in a delivery, pending, or suppressed.
    pub fn dispatched_at(&self) -> Option<Timestamp> {
        *self.shared.dispatched_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the progress markers of workers and dispatcher. Each rises every few seconds while its task runs, even if a receiver hangs.
    pub fn progress(&self) -> Vec<ProgressMarker> {
        let dispatcher = self.shared.deps.dispatcher.is_some().then(|| self.shared.dispatch_progress.clone());
        let handles = self.shared.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.values().map(|handle| handle.progress.clone()).chain(dispatcher).collect()
    }

    /// Attempts everything that is due at `now` once, including alerts about failed deliveries. Returns an empty report if the workers
    /// run in tasks.
    pub fn deliver_due(&self, now: Timestamp) -> BoxFuture<'_, DeliveryReport> {
        Box::pin(async move {
            let mut workers = self.idle.lock().await;
            let mut report = DeliveryReport::default();
            if workers.is_empty() {
                return report;
            }
            let mut tried = HashSet::new();
            for _ in 0..MAX_PASSES {
                let before = report.attempts.len();
                if let Some(dispatcher) = &self.shared.deps.dispatcher
                    && let Err(error) = dispatcher.dispatch(now).await
                {
                    report.errors.push(error.to_string());
                }
                dead_letter_orphans(&self.shared, now).await;
                // The workers run in parallel, as in the daemon.
                let mut passes = JoinSet::new();
                for mut worker in workers.drain(..) {
                    let mut tried = tried.clone();
                    passes.spawn(async move {
                        let report = worker.deliver_due(now, &mut tried).await;
                        (worker, report)
                    });
                }
                while let Some(ended) = passes.join_next().await {
                    match ended {
                        Ok((worker, delivered)) => {
                            tried.extend(delivered.attempts.iter().map(|(id, ..)| *id));
                            report.attempts.extend(delivered.attempts);
                            report.errors.extend(delivered.errors);
                            workers.push(worker);
                        }
                        Err(error) => report.errors.push(format!("a worker of the outbox panicked: {error}")),
                    }
                }
                workers.sort_by(|a, b| a.receiver().cmp(b.receiver()));
                if report.attempts.len() == before {
                    break;
                }
            }
            report.attempts.sort_by_key(|(id, ..)| *id);
            report
        })
    }

    /// Starts no more attempts, waits up to `deadline` for those in flight, and drops the rest, which are sent again after a restart
    /// with the same ids. Returns the number of workers that were cut off.
    pub fn stop(&self, deadline: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            self.shared.stop.cancel();
            let mut running = self.running.lock().await;
            let ended = tokio::time::timeout(deadline, async { while running.join_next().await.is_some() {} }).await;
            let cut = if ended.is_ok() { 0 } else { running.len() };
            running.shutdown().await;
            cut
        })
    }
}

#[cfg(test)]
mod tests;
