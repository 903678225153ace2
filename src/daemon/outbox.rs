//! The deliver loop: take what is due, send it, record what came of it.
//!
//! Before it stands the dispatcher ([`Dispatcher`]), which groups what was decided, suppresses what is silenced, and makes deliveries
//! of the rest; it runs when it is woken and when a wait is over.
//!
//! The cast: the [delivery store](DeliveryStore) holds the truth; [`Outbox`] supervises a worker for each receiver (`worker`), with
//! its own task, breaker and storm cap (`health`), so that one that hangs or refuses delays nobody else; the
//! [sender](DeliverySender) is the wire; `orphans` are deliveries to receivers that the config no longer has.
//!
//! The path: the loop takes no input and is safe to run twice; waking it saves time. A delivery goes through `Due` (read from the
//! store), `Prepared` (started, under way), an [`Outcome`](notify::Outcome), and `Recorded` (attempt, new state and what is to
//! be announced, in one transaction). The network is awaited between transactions.
//!
//! The promises: what ended is recorded at once, together with whatever else has ended by then; twice as many attempts as may be under
//! way are made and not yet recorded at most, and a process that dies repeats no more than these. What cannot be recorded is kept and
//! recorded later, and until then its worker sends nothing else. Of one alert, a receiver is told things in the order in which they
//! were decided.

mod announcement;
mod dispatch_loop;
mod health;
mod orphans;
mod ports;
mod sender;
mod shared;
mod worker;

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::{sync::Mutex, task::JoinSet};

use crate::{dispatch::Dispatcher, metrics::Metrics, systemd::ProgressMarker};
use dispatch_loop::dispatch_until_stopped;
use model::{AttemptOutcome, BoxFuture, Clock, DeliveryId, DeliveryState, ReceiverName, Timestamp, config};
use orphans::dead_letter_orphans;
pub use ports::{Announce, DeliverySender, DeliveryStore, DeliveryStoreError, DownReceiver, ReceiverIncident, incident_subject};
pub use sender::ReceiverSender;
use shared::{SendingSetup, Shared};
use worker::Worker;

/// Deliveries read at once.
const BATCH: u32 = 256;

/// Longest sleep: another process may have put something in.
const MAX_SLEEP: Duration = Duration::from_secs(2);

/// Shortest sleep without an event, so that a delivery that is due but withheld makes no busy loop.
const MIN_SLEEP: Duration = Duration::from_millis(100);

/// Wait before the store is tried again after it failed.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Most rounds of one crank over all workers: what they announce to each other.
const MAX_ROUNDS: usize = 16;

/// The outbox: running by itself, or turned by hand.
#[derive(Debug)]
pub struct Outbox {
    shared: Arc<Shared>,
    /// Whether each worker has a task of its own.
    drives_itself: AtomicBool,
    /// Whether it is to move by itself once it is told to.
    waits: bool,
    /// The workers, while nobody runs them.
    idle: Mutex<Vec<Worker>>,
    running: Mutex<JoinSet<()>>,
}

/// What the outbox works with.
#[derive(Clone)]
pub struct OutboxDeps {
    pub store: Arc<dyn DeliveryStore>,
    /// Who makes deliveries of what waits; none where everything goes straight into the table.
    pub dispatcher: Option<Arc<Dispatcher>>,
    pub sender: Arc<dyn DeliverySender>,
    /// Who words what is announced.
    pub announce: Arc<dyn Announce>,
    /// Where attempts are counted.
    pub metrics: Option<Arc<Metrics>>,
    pub clock: Clock,
    /// Schedule, limits.
    pub delivery: config::DeliverySettings,
}

impl fmt::Debug for OutboxDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxDeps").field("receivers", &self.sender.names()).finish_non_exhaustive()
    }
}

/// What came of deliveries, for the log line of a command and for tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryReport {
    /// Each attempt: which delivery, to whom, what it came to, where it stands now.
    pub attempts: Vec<(DeliveryId, ReceiverName, AttemptOutcome, DeliveryState)>,
    /// What the store failed with.
    pub errors: Vec<String>,
}

impl DeliveryReport {
    /// How many deliveries stand in `state` after it.
    pub fn count(&self, state: DeliveryState) -> usize {
        self.attempts.iter().filter(|(_, _, _, now)| *now == state).count()
    }
}

impl Outbox {
    /// Starts a worker for each receiver.
    pub fn start(deps: OutboxDeps) -> Self {
        let mut outbox = Self::idle(deps);
        let (running, idle) = (outbox.running.get_mut(), outbox.idle.get_mut());
        Self::run(&outbox.shared, &outbox.drives_itself, running, idle);
        outbox
    }

    /// An outbox that moves once it is told to [begin](Self::begin), and not before.
    pub fn waiting(deps: OutboxDeps) -> Self {
        let mut outbox = Self::idle(deps);
        outbox.waits = true;
        outbox
    }

    /// Starts the workers of one that was waiting.
    pub async fn begin(&self) {
        if self.waits && !self.drives_itself.load(Ordering::SeqCst) {
            let (mut running, mut idle) = (self.running.lock().await, self.idle.lock().await);
            Self::run(&self.shared, &self.drives_itself, &mut running, &mut idle);
        }
    }

    fn run(shared: &Arc<Shared>, drives_itself: &AtomicBool, running: &mut JoinSet<()>, idle: &mut Vec<Worker>) {
        drives_itself.store(true, Ordering::SeqCst);
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

    /// An outbox that only moves when [`deliver_due`](Self::deliver_due) turns it.
    pub fn idle(deps: OutboxDeps) -> Self {
        let shared = Arc::new(Shared::new(deps));
        let idle = shared.sending().names.iter().map(|name| Worker::new(name.clone(), shared.clone())).collect();
        Self {
            shared,
            drives_itself: AtomicBool::new(false),
            waits: false,
            idle: Mutex::new(idle),
            running: Mutex::new(JoinSet::new()),
        }
    }

    /// Sends everything that begins from now on in another way. Workers go on with what they have under way; a receiver that is new
    /// gets one, and that of a receiver which is gone ends with its last attempt, after which what waits for it becomes dead letters.
    pub fn replace(&self, sender: Arc<dyn DeliverySender>, delivery: config::DeliverySettings) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (new, gone) = self.shared.replace(SendingSetup::of(sender, delivery));
            let new = new.into_iter().map(|name| Worker::new(name, self.shared.clone()));
            if self.drives_itself.load(Ordering::SeqCst) {
                let mut running = self.running.lock().await;
                // Those that ended need not be remembered until the daemon does.
                while running.try_join_next().is_some() {}
                for worker in new {
                    running.spawn(worker.run());
                }
            } else {
                let mut idle = self.idle.lock().await;
                idle.extend(new);
                // Nothing is under way between two turns.
                idle.retain(|worker| !gone.contains(worker.receiver()) || !self.shared.retire_worker(worker.receiver()));
                idle.sort_by(|a, b| a.receiver().cmp(b.receiver()));
            }
            self.shared.wake(&gone);
            self.wake();
        })
    }

    /// Says that something may be due. It saves time, no more: the table holds the truth.
    pub fn wake(&self) {
        if self.shared.deps.dispatcher.is_some() {
            // It wakes those for whom there is something.
            self.shared.dispatch_wake_up.notify_one();
            return;
        }
        for handle in self.shared.handles.read().unwrap_or_else(PoisonError::into_inner).values() {
            handle.wake_up.notify_one();
        }
    }

    /// When the dispatcher last began a look at what waits that went well: what was decided before has its deliveries, or is to wait.
    pub fn dispatched_at(&self) -> Option<Timestamp> {
        *self.shared.dispatched_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A marker for each worker: it rises at least every few seconds for as long as the worker lives, whatever its receiver does.
    pub fn progress(&self) -> Vec<ProgressMarker> {
        let dispatcher = self.shared.deps.dispatcher.is_some().then(|| self.shared.dispatch_progress.clone());
        let handles = self.shared.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.values().map(|handle| handle.progress.clone()).chain(dispatcher).collect()
    }

    /// Attempts everything that is due at `now` once, and what is announced on the way. For an outbox that was not started; one that
    /// was delivers by itself, and the report is empty.
    pub fn deliver_due(&self, now: Timestamp) -> BoxFuture<'_, DeliveryReport> {
        Box::pin(async move {
            let mut workers = self.idle.lock().await;
            let mut report = DeliveryReport::default();
            if workers.is_empty() {
                return report;
            }
            let mut tried = HashSet::new();
            for _ in 0..MAX_ROUNDS {
                let before = report.attempts.len();
                if let Some(dispatcher) = &self.shared.deps.dispatcher
                    && let Err(error) = dispatcher.dispatch(now).await
                {
                    report.errors.push(error.to_string());
                }
                dead_letter_orphans(&self.shared, now).await;
                // Receivers wait for each other here no more than in the daemon.
                let mut turns = JoinSet::new();
                for mut worker in workers.drain(..) {
                    let mut tried = tried.clone();
                    turns.spawn(async move {
                        let report = worker.turn(now, &mut tried).await;
                        (worker, report)
                    });
                }
                while let Some(turn) = turns.join_next().await {
                    match turn {
                        Ok((worker, turned)) => {
                            tried.extend(turned.attempts.iter().map(|(id, ..)| *id));
                            report.attempts.extend(turned.attempts);
                            report.errors.extend(turned.errors);
                            workers.push(worker);
                        }
                        Err(error) => report.errors.push(format!("a worker of the outbox ended abnormally: {error}")),
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

    /// Stops taking deliveries, waits for those under way until `patience` is over, drops the rest: they are sent again after a
    /// restart, under the same id. Says how many workers had to be cut off.
    pub fn stop(&self, patience: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            self.shared.stop.cancel();
            let mut running = self.running.lock().await;
            let ended = tokio::time::timeout(patience, async { while running.join_next().await.is_some() {} }).await;
            let cut = if ended.is_ok() { 0 } else { running.len() };
            running.shutdown().await;
            cut
        })
    }
}

#[cfg(test)]
mod tests;
