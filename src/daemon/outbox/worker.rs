//! The worker of one receiver: reads due deliveries, starts as many attempts as the limits allow, and records them.

mod outage;
mod record;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::orphans::dead_letter_orphans;
use super::ports::{DeliveryStoreError, ReceiverIncident};
use super::receiver_health::ReceiverHealth;
use super::shared::Shared;
use super::{BATCH, DeliveryReport, MAX_SLEEP, MIN_SLEEP, STORE_PAUSE};
use engine::self_monitor;
use model::{Attempt, AttemptRecord, Clock, DeliveryId, DueDelivery, ReceiverName, RuleId, SOURCE_TROUBLE, Severity, Timestamp};
use notify::Outcome;
use record::{Recording, recorded, unreadable};

/// The time after which the queue is read again, because another process may have dropped deliveries.
const MAX_QUEUE_AGE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Worker {
    receiver: ReceiverName,
    shared: Arc<Shared>,
    health: ReceiverHealth,
    /// The last response of the receiver.
    response: String,
    /// `None` until it is read from the store.
    incident: Option<ReceiverIncident>,
    /// Deliveries that are read but not started.
    queue: VecDeque<DueDelivery>,
    /// The time when the queue was read. `None` if it must be read again.
    read_at: Option<Instant>,
    tasks: JoinSet<(Outcome, Attempt)>,
    /// The delivery of each task.
    prepared: HashMap<Id, Arc<DueDelivery>>,
    /// Attempts that ended but are not stored yet.
    unrecorded: Vec<AttemptRecord>,
    /// The current transaction. There is at most one.
    recording: Option<Recording>,
    /// The time of the last failure to store attempts. `None` after a success.
    record_failed_at: Option<Instant>,
    /// Whether the receiver reported that it no longer exists, and no alert was raised yet.
    is_gone: bool,
    /// Whether the receiver recovered from an outage, so that all retries are due now.
    has_recovered: bool,
    is_store_failing: bool,
}

/// An ended task. `None` if it panicked.
type Ended = (Id, Option<(Outcome, Attempt)>);

impl Worker {
    pub(super) fn new(receiver: ReceiverName, shared: Arc<Shared>) -> Self {
        Self {
            receiver,
            shared,
            health: ReceiverHealth::default(),
            response: String::new(),
            incident: None,
            queue: VecDeque::new(),
            read_at: None,
            tasks: JoinSet::new(),
            prepared: HashMap::new(),
            unrecorded: Vec::new(),
            recording: None,
            record_failed_at: None,
            is_gone: false,
            has_recovered: false,
            is_store_failing: false,
        }
    }

    pub(super) fn receiver(&self) -> &ReceiverName {
        &self.receiver
    }

    /// Runs until the outbox stops or the receiver is removed, and then until the attempts in flight have ended.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        let Some(handle) = shared.handle(&self.receiver) else {
            return;
        };
        let clock = shared.deps.clock.clone();
        loop {
            let now = clock.now();
            let is_leaving = shared.stop.is_cancelled();
            let is_stopping = is_leaving || !shared.sending().names.contains(&self.receiver);
            let mut nap = MAX_SLEEP;
            match self.advance(now, is_stopping).await {
                Ok(()) => nap = if is_stopping { MAX_SLEEP } else { self.nap(now).await },
                Err(error) => {
                    self.note_store(Err(&error));
                    nap = nap.min(STORE_PAUSE);
                }
            }
            handle.progress.mark();
            if is_leaving && self.tasks.is_empty() && self.recording.is_none() {
                return;
            }
            // The last attempt must be recorded before the rest becomes dead letters.
            let is_done = self.tasks.is_empty() && self.awaiting_record().next().is_none();
            if is_stopping && is_done && shared.retire_worker(&self.receiver) {
                dead_letter_orphans(&shared, now).await;
                return;
            }
            tokio::select! {
                Some(ended) = next_ended(&mut self.tasks), if !self.tasks.is_empty() => self.settle(ended, &clock),
                Some(done) = recorded(&mut self.recording), if self.recording.is_some() => self.note_recorded(done),
                () = handle.wake_up.notified() => self.read_at = None,
                () = tokio::time::sleep(nap) => self.read_at = None,
                () = shared.stop.cancelled(), if !is_leaving => {}
            }
        }
    }

    /// Attempts everything that is due at `now` and not in `tried`.
    pub(super) async fn deliver_due(&mut self, now: Timestamp, tried: &mut HashSet<DeliveryId>) -> DeliveryReport {
        let clock = Clock::manual(now);
        let mut report = DeliveryReport::default();
        self.read_at = None;
        loop {
            self.record_failed_at = None;
            self.begin_recording();
            if let Some(done) = recorded(&mut self.recording).await {
                report.errors.extend(done.as_ref().err().map(ToString::to_string));
                self.note_recorded(done);
            }
            if let Err(error) = self.advance_except(now, false, tried).await {
                report.errors.push(error.to_string());
                // Attempts in flight still end and are recorded by the next call.
            }
            if self.tasks.is_empty() {
                return report;
            }
            let Some(ended) = next_ended(&mut self.tasks).await else {
                return report;
            };
            let before = self.unrecorded.len();
            self.settle(ended, &clock);
            for record in self.unrecorded.iter().skip(before) {
                tried.insert(record.delivery);
                report.attempts.push((record.delivery, self.receiver.clone(), record.attempt.outcome, record.state));
            }
        }
    }

    async fn advance(&mut self, now: Timestamp, is_stopping: bool) -> Result<(), DeliveryStoreError> {
        self.advance_except(now, is_stopping, &HashSet::new()).await
    }

    /// Starts to record ended attempts, reads due deliveries, and starts new attempts, except for deliveries in `tried`.
    async fn advance_except(
        &mut self,
        now: Timestamp,
        is_stopping: bool,
        tried: &HashSet<DeliveryId>,
    ) -> Result<(), DeliveryStoreError> {
        let store = self.shared.deps.store.clone();
        if self.incident.is_none() {
            let subject = self_monitor::receiver_subject(&self.receiver);
            self.incident = Some(store.incident(RuleId::from(SOURCE_TROUBLE), subject).await?);
        }
        if self.has_recovered {
            store.retry_now(&self.receiver, now).await?;
            self.has_recovered = false;
            self.read_at = None;
        }
        self.begin_recording();
        // Nothing else is sent until the ended attempts are recorded.
        if self.record_failed_at.is_some() {
            return Ok(());
        }
        if !is_stopping {
            self.announce_outage(now).await?;
            self.read(now, tried).await?;
            self.start(now);
        }
        self.note_store(Ok(()));
        Ok(())
    }

    /// Reads due deliveries, unless the queue is recent or no attempt may start.
    async fn read(&mut self, now: Timestamp, tried: &HashSet<DeliveryId>) -> Result<(), DeliveryStoreError> {
        let is_fresh = self.read_at.is_some_and(|at| at.elapsed() < MAX_QUEUE_AGE);
        if is_fresh || self.room(now, true) == 0 {
            return Ok(());
        }
        // For the store, deliveries in flight, not yet recorded, or tried in this call are still due.
        let in_flight = self.prepared.values().map(|delivery| delivery.id);
        let known: HashSet<DeliveryId> = in_flight.chain(self.awaiting_record().map(|record| record.delivery)).collect();
        let more = u32::try_from(known.len() + tried.len()).unwrap_or(u32::MAX);
        let due = self.shared.deps.store.due(&self.receiver, now, BATCH.saturating_add(more)).await?;
        self.read_at = Some(Instant::now());
        self.queue = due.into_iter().filter(|delivery| !known.contains(&delivery.id) && !tried.contains(&delivery.id)).collect();
        Ok(())
    }

    /// Returns the number of attempts that may start now. Critical deliveries are exempt from the hourly limit.
    fn room(&mut self, now: Timestamp, is_critical: bool) -> usize {
        let setup = self.shared.sending();
        let max = setup.delivery.concurrency;
        let concurrency = setup.sender.concurrency(&self.receiver).map_or(max, |own| own.min(max));
        let max_per_hour = if is_critical { u32::MAX } else { setup.sender.max_per_hour(&self.receiver) };
        let max_unrecorded = (concurrency.max(1) as usize).saturating_mul(2);
        let unrecorded = self.tasks.len() + self.awaiting_record().count();
        let room = self.health.room(now, self.tasks.len(), concurrency, max_per_hour);
        room.min(max_unrecorded.saturating_sub(unrecorded))
    }

    /// Starts as many attempts as the limits allow. Deliveries of the same alert stay in order, because the store returns the later
    /// one only after the earlier one has ended.
    fn start(&mut self, now: Timestamp) {
        while let Some(first) = self.queue.front() {
            if !self.shared.deps.store.may_send() {
                // This process was suspended or cut off for longer than the lease lasts, so another instance sends them.
                self.queue.clear();
                return;
            }
            let is_critical = first.batch.severity == Severity::Critical;
            if self.room(now, is_critical) == 0 {
                return;
            }
            if let Some(delivery) = self.queue.pop_front() {
                self.prepare(Arc::new(delivery), now);
            }
        }
    }

    fn prepare(&mut self, delivery: Arc<DueDelivery>, now: Timestamp) {
        let sender = self.shared.sending().sender.clone();
        let receiver = self.receiver.clone();
        let sent = delivery.clone();
        let task = match delivery.notifications.is_empty() {
            true => self.tasks.spawn(async move { (Outcome::Refused, unreadable(now)) }),
            false => self.tasks.spawn(async move { sender.send(&receiver, &sent, now).await }),
        };
        self.prepared.insert(task.id(), delivery);
    }

    /// Returns how long to sleep without an event.
    async fn nap(&mut self, now: Timestamp) -> Duration {
        if self.record_failed_at.is_some() {
            return STORE_PAUSE;
        }
        if !self.tasks.is_empty() || self.recording.is_some() {
            // The end of an attempt is an event. For the store, deliveries in flight are still due.
            return MAX_SLEEP;
        }
        let max_per_hour = self.shared.sending().sender.max_per_hour(&self.receiver);
        let opens_at = self.health.opens_at(now, max_per_hour);
        let next = match opens_at {
            Some(at) => Some(at),
            // If this fails, the next pass comes after `MAX_SLEEP`.
            None => self.shared.deps.store.next_due_at(&self.receiver).await.ok().flatten(),
        };
        let wait = next.map_or(MAX_SLEEP, |at| (at - now).to_std().unwrap_or_default());
        wait.clamp(MIN_SLEEP, MAX_SLEEP)
    }

    /// Logs the first failure of the store and its recovery.
    fn note_store(&mut self, result: Result<(), &DeliveryStoreError>) {
        match result {
            Err(error) if !self.is_store_failing => {
                tracing::error!(receiver = %self.receiver, %error, "the outbox cannot use the database, will retry every second");
            }
            Ok(()) if self.is_store_failing => {
                tracing::info!(receiver = %self.receiver, "the outbox can use the database again")
            }
            _ => {}
        }
        self.is_store_failing = result.is_err();
    }
}

async fn next_ended(tasks: &mut JoinSet<(Outcome, Attempt)>) -> Option<Ended> {
    tasks.join_next_with_id().await.map(ended_from)
}

fn ended_from(joined: Result<(Id, (Outcome, Attempt)), JoinError>) -> Ended {
    match joined {
        Ok((id, done)) => (id, Some(done)),
        Err(error) => (error.id(), None),
    }
}
