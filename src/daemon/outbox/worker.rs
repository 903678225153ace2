//! One receiver's deliveries: read what is due, send what there is room for, record what came of it.

mod record;
mod silence;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::health::ReceiverHealth;
use super::orphans::dead_letter_orphans;
use super::ports::{DeliveryStoreError, ReceiverIncident, incident_subject};
use super::shared::Shared;
use super::{BATCH, DeliveryReport, MAX_SLEEP, MIN_SLEEP, STORE_PAUSE};
use model::{Attempt, AttemptRecord, Clock, DeliveryId, DueDelivery, ReceiverName, Timestamp, Tone};
use notify::Outcome;
use record::{Recording, recorded};

/// How long what was read counts as still due: another process may have dropped it.
const MAX_QUEUE_AGE: Duration = Duration::from_secs(2);

/// One receiver's deliveries.
#[derive(Debug)]
pub(super) struct Worker {
    receiver: ReceiverName,
    shared: Arc<Shared>,
    health: ReceiverHealth,
    /// The last thing heard.
    answer: String,
    /// None until it was read.
    incident: Option<ReceiverIncident>,
    /// Read, not yet started.
    queue: VecDeque<DueDelivery>,
    /// When the queue was read; None where it must be read again.
    read_at: Option<Instant>,
    tasks: JoinSet<(Outcome, Attempt)>,
    /// What each task sends.
    prepared: HashMap<Id, Arc<DueDelivery>>,
    /// Ended, but not in the store yet.
    unrecorded: Vec<AttemptRecord>,
    /// On its way into the store: one transaction at a time.
    recording: Option<Recording>,
    /// When the store last failed to take records, until it takes them again.
    refused_at: Option<Instant>,
    /// It said that it is gone, which is yet to be told.
    is_gone: bool,
    /// It was down and is back: what waits for its next try need not wait any longer.
    is_back: bool,
    is_store_failing: bool,
}

/// How an attempt ended; none where it ended abnormally.
type Ended = (Id, Option<(Outcome, Attempt)>);

impl Worker {
    pub(super) fn new(receiver: ReceiverName, shared: Arc<Shared>) -> Self {
        Self {
            receiver,
            shared,
            health: ReceiverHealth::default(),
            answer: String::new(),
            incident: None,
            queue: VecDeque::new(),
            read_at: None,
            tasks: JoinSet::new(),
            prepared: HashMap::new(),
            unrecorded: Vec::new(),
            recording: None,
            refused_at: None,
            is_gone: false,
            is_back: false,
            is_store_failing: false,
        }
    }

    pub(super) fn receiver(&self) -> &ReceiverName {
        &self.receiver
    }

    /// Works until it is told to stop or its receiver is gone from the config, then until what is under way has ended.
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
            // What came of the last attempt must be known before the rest is given up.
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
    pub(super) async fn turn(&mut self, now: Timestamp, tried: &mut HashSet<DeliveryId>) -> DeliveryReport {
        let clock = Clock::manual(now);
        let mut report = DeliveryReport::default();
        self.read_at = None;
        loop {
            self.refused_at = None;
            self.begin_recording();
            if let Some(done) = recorded(&mut self.recording).await {
                report.errors.extend(done.as_ref().err().map(ToString::to_string));
                self.note_recorded(done);
            }
            if let Err(error) = self.advance_but(now, false, tried).await {
                report.errors.push(error.to_string());
                // What is under way still ends, and is recorded by the next turn.
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
        self.advance_but(now, is_stopping, &HashSet::new()).await
    }

    /// Begins to record what has ended, reads what is due, starts what there is room for.
    async fn advance_but(
        &mut self,
        now: Timestamp,
        is_stopping: bool,
        tried: &HashSet<DeliveryId>,
    ) -> Result<(), DeliveryStoreError> {
        let store = self.shared.deps.store.clone();
        if self.incident.is_none() {
            let rule = self.shared.deps.announce.rule();
            self.incident = Some(store.incident(rule, incident_subject(&self.receiver)).await?);
        }
        if self.is_back {
            store.retry_now(&self.receiver, now).await?;
            self.is_back = false;
            self.read_at = None;
        }
        self.begin_recording();
        // Where it cannot be known what was sent, nothing else is.
        if self.refused_at.is_some() {
            return Ok(());
        }
        if !is_stopping {
            self.announce_silence(now).await?;
            self.read(now, tried).await?;
            self.start(now);
        }
        self.note_store(Ok(()));
        Ok(())
    }

    /// Reads what is due, unless what was read is fresh enough or there is no room for it.
    async fn read(&mut self, now: Timestamp, tried: &HashSet<DeliveryId>) -> Result<(), DeliveryStoreError> {
        let is_fresh = self.read_at.is_some_and(|at| at.elapsed() < MAX_QUEUE_AGE);
        if is_fresh || self.room(now, true) == 0 {
            return Ok(());
        }
        // Those under way, those that are yet to be recorded and those tried in this turn are still due as far as the store knows.
        let under_way = self.prepared.values().map(|delivery| delivery.id);
        let known: HashSet<DeliveryId> = under_way.chain(self.awaiting_record().map(|record| record.delivery)).collect();
        let more = u32::try_from(known.len() + tried.len()).unwrap_or(u32::MAX);
        let due = self.shared.deps.store.due(&self.receiver, now, BATCH.saturating_add(more)).await?;
        self.read_at = Some(Instant::now());
        self.queue = due.into_iter().filter(|delivery| !known.contains(&delivery.id) && !tried.contains(&delivery.id)).collect();
        Ok(())
    }

    /// How many attempts may begin now; what is critical waits for no hour.
    fn room(&mut self, now: Timestamp, is_critical: bool) -> usize {
        let setup = self.shared.sending();
        let most = setup.delivery.concurrency;
        let concurrency = setup.sender.concurrency(&self.receiver).map_or(most, |own| own.min(most));
        let max_per_hour = if is_critical { u32::MAX } else { setup.sender.max_per_hour(&self.receiver) };
        let most_unrecorded = (concurrency.max(1) as usize).saturating_mul(2);
        let unrecorded = self.tasks.len() + self.awaiting_record().count();
        let room = self.health.room(now, self.tasks.len(), concurrency, max_per_hour);
        room.min(most_unrecorded.saturating_sub(unrecorded))
    }

    /// Starts what there is room for. Of two deliveries that tell of the same alert the store gives the later one only once the
    /// earlier has come to its end, so none of them can overtake another here.
    fn start(&mut self, now: Timestamp) {
        while let Some(first) = self.queue.front() {
            if !self.shared.deps.store.may_send() {
                // Paused or cut off for longer than the lease holds: another sends it.
                self.queue.clear();
                return;
            }
            let is_critical = first.bundle.tone == Tone::Critical;
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
        let task = self.tasks.spawn(async move { sender.send(&receiver, &sent, now).await });
        self.prepared.insert(task.id(), delivery);
    }

    /// How long nothing will be due.
    async fn nap(&mut self, now: Timestamp) -> Duration {
        if self.refused_at.is_some() {
            return STORE_PAUSE;
        }
        if !self.tasks.is_empty() || self.recording.is_some() {
            // The end of an attempt is an event; and those under way are still due as far as the store knows.
            return MAX_SLEEP;
        }
        let max_per_hour = self.shared.sending().sender.max_per_hour(&self.receiver);
        let opens_at = self.health.opens_at(now, max_per_hour);
        let next = match opens_at {
            Some(at) => Some(at),
            // Not knowing costs a look in two seconds.
            None => self.shared.deps.store.next_due_at(&self.receiver).await.ok().flatten(),
        };
        let wait = next.map_or(MAX_SLEEP, |at| (at - now).to_std().unwrap_or_default());
        wait.clamp(MIN_SLEEP, MAX_SLEEP)
    }

    /// The first failure of the store and its recovery are news; what lies between is not.
    fn note_store(&mut self, result: Result<(), &DeliveryStoreError>) {
        match result {
            Err(error) if !self.is_store_failing => {
                tracing::error!(receiver = %self.receiver, %error, "the outbox cannot read or write its table, and tries again every second");
            }
            Ok(()) if self.is_store_failing => {
                tracing::info!(receiver = %self.receiver, "the outbox reads and writes its table again")
            }
            _ => {}
        }
        self.is_store_failing = result.is_err();
    }
}

async fn next_ended(tasks: &mut JoinSet<(Outcome, Attempt)>) -> Option<Ended> {
    tasks.join_next_with_id().await.map(sort_out)
}

fn sort_out(joined: Result<(Id, (Outcome, Attempt)), JoinError>) -> Ended {
    match joined {
        Ok((id, done)) => (id, Some(done)),
        Err(error) => (error.id(), None),
    }
}
