//! Records ended attempts with the new states of their deliveries and the resulting alerts.

use tokio::{task::JoinHandle, time::Instant};

use super::{Ended, Worker, ended_from};
use crate::outbox::STORE_PAUSE;
use crate::outbox::announcement::{add_alert, add_dead_letter, add_rejected_recipients, recipients};
use crate::outbox::ports::DeliveryStoreError;
use engine::self_monitor;
use model::{Attempt, AttemptOutcome, AttemptRecord, Clock, DueDelivery, Timestamp, phrase};
use notify::{NextStep, Outcome, retry};

/// Attempts and the task that stores them.
#[derive(Debug)]
pub(super) struct Recording {
    records: Vec<AttemptRecord>,
    task: JoinHandle<Result<(), DeliveryStoreError>>,
}

impl Worker {
    /// Handles an ended attempt, and all others that have ended as well.
    pub(super) fn settle(&mut self, ended: Ended, clock: &Clock) {
        let mut ended = Some(ended);
        while let Some((id, done)) = ended {
            if let Some(delivery) = self.prepared.remove(&id) {
                let now = clock.now();
                let (outcome, attempt) = done.unwrap_or_else(|| (Outcome::LATER, panicked(now)));
                let record = self.record(&delivery, &outcome, attempt, now);
                self.unrecorded.push(record);
            }
            ended = self.tasks.try_join_next_with_id().map(ended_from);
        }
        if self.queue.is_empty() {
            // A later delivery of the same alert may be due now.
            self.read_at = None;
        }
    }

    /// Returns the record of an attempt, with the new state of the delivery.
    fn record(&mut self, delivery: &DueDelivery, outcome: &Outcome, attempt: Attempt, now: Timestamp) -> AttemptRecord {
        let (deps, setup) = (self.shared.deps.clone(), self.shared.sending());
        if let Some(metrics) = &deps.metrics {
            // A replay is not late.
            let queued_at = delivery.replay.map_or(delivery.created_at, |replay| replay.requested_at);
            metrics.attempt(&self.receiver, outcome, (now - queued_at).to_std().unwrap_or_default());
        }
        let (was_failing, was_down) = (self.health.failing_since().is_some(), self.health.is_down());
        // Nothing was sent if the notifications are damaged.
        if !delivery.notifications.is_empty() {
            self.health.note(outcome, now, setup.delivery.max_retry_after.delta());
        }
        self.response.clone_from(&attempt.response);
        let tries = delivery.tries.saturating_add(1);
        let next = retry::decide(outcome, tries, delivery.due_at, now, fastrand::f64(), &setup.delivery);
        let mut record = next.record_of(delivery.id, attempt);
        let response = &record.attempt.response;
        match &next {
            NextStep::Dead { reason } => {
                tracing::warn!(receiver = %self.receiver, delivery = %delivery.id, %reason, %response, "delivery failed, became a dead letter");
                let replayed = delivery.replay.map(|replay| format!(" ({})", phrase::replay_of(replay))).unwrap_or_default();
                let reason = format!("{reason}{replayed}: {response}");
                add_dead_letter(&mut record, &deps.live, delivery, &reason, now);
            }
            NextStep::RetryAt(at) if !was_failing => {
                tracing::warn!(receiver = %self.receiver, delivery = %delivery.id, %response, next = %at, "delivery failed, will retry");
            }
            NextStep::RetryAt(_) | NextStep::Delivered => {
                tracing::debug!(receiver = %self.receiver, delivery = %delivery.id, outcome = outcome.word().as_str(), %response, "attempt");
            }
        }
        if let Outcome::AcceptedExcept { rejected } = outcome {
            add_rejected_recipients(&mut record, &deps.live, delivery, rejected, now);
        }
        if outcome.is_accepted() {
            if was_failing {
                tracing::info!(receiver = %self.receiver, "the receiver accepts messages again");
            }
            if let Some(alert) = self.incident.as_mut().and_then(|incident| incident.open.take()) {
                let active = deps.live.load().active.clone();
                add_alert(&mut record, self_monitor::recovered(&alert, &active.context(now)));
            }
        }
        self.is_gone = *outcome == Outcome::Gone || (self.is_gone && !outcome.is_accepted());
        self.has_recovered |= outcome.is_accepted() && was_down;
        record
    }

    /// Starts to store ended attempts, unless a transaction is running or one has just failed.
    pub(super) fn begin_recording(&mut self) {
        let has_just_failed = self.record_failed_at.is_some_and(|at| at.elapsed() < STORE_PAUSE);
        if self.recording.is_some() || self.unrecorded.is_empty() || has_just_failed {
            return;
        }
        let records = std::mem::take(&mut self.unrecorded);
        let (store, written) = (self.shared.deps.store.clone(), records.clone());
        let task = tokio::spawn(async move { store.record_attempts(written).await });
        self.recording = Some(Recording { records, task });
    }

    /// Handles the end of a transaction. Attempts that were not stored are stored with the next one.
    pub(super) fn note_recorded(&mut self, done: Result<(), DeliveryStoreError>) {
        let Some(Recording { records, .. }) = self.recording.take() else { return };
        match done {
            Ok(()) => {
                self.record_failed_at = None;
                self.shared.wake_for_announcements(&recipients(&records));
                if self.queue.is_empty() {
                    // A later delivery of the same alert may be due now.
                    self.read_at = None;
                }
            }
            Err(error) => {
                let later = std::mem::replace(&mut self.unrecorded, records);
                self.unrecorded.extend(later);
                self.record_failed_at = Some(Instant::now());
                self.note_store(Err(&error));
            }
        }
    }

    /// Attempts that are not stored yet.
    pub(super) fn awaiting_record(&self) -> impl Iterator<Item = &AttemptRecord> {
        self.unrecorded.iter().chain(self.recording.iter().flat_map(|recording| &recording.records))
    }
}

/// Waits for the end of the transaction. Returns `None` if no transaction is running.
pub(super) async fn recorded(recording: &mut Option<Recording>) -> Option<Result<(), DeliveryStoreError>> {
    let done = (&mut recording.as_mut()?.task).await;
    Some(done.unwrap_or_else(|error| Err(error.into())))
}

/// The result of a delivery whose notifications are all damaged.
pub(super) fn unreadable(now: Timestamp) -> Attempt {
    let response = "not sent: its stored notifications are damaged; the log names them".to_owned();
    Attempt { at: now, took_ms: 0, outcome: AttemptOutcome::Refused, status: None, response }
}

fn panicked(now: Timestamp) -> Attempt {
    let response = "internal error in Cliffwatch; please report this bug".to_owned();
    Attempt { at: now, took_ms: 0, outcome: AttemptOutcome::Retry, status: None, response }
}
