//! From the end of an attempt to its record in the store, with the delivery's new state and what is announced of it.

use tokio::{task::JoinHandle, time::Instant};

use super::{Ended, Worker, sort_out};
use crate::outbox::STORE_PAUSE;
use crate::outbox::announcement::{add_announcement, is_worth_announcing, recipients};
use crate::outbox::ports::DeliveryStoreError;
use model::{Attempt, AttemptOutcome, AttemptRecord, Clock, DueDelivery, Timestamp};
use notify::{NextStep, Outcome, retry};

/// Attempts that are being written, and the task that writes them.
#[derive(Debug)]
pub(super) struct Recording {
    records: Vec<AttemptRecord>,
    task: JoinHandle<Result<(), DeliveryStoreError>>,
}

impl Worker {
    /// Settles an attempt that has ended, and all others that have by now.
    pub(super) fn settle(&mut self, ended: Ended, clock: &Clock) {
        let mut ended = Some(ended);
        while let Some((id, done)) = ended {
            if let Some(delivery) = self.prepared.remove(&id) {
                let now = clock.now();
                let (outcome, attempt) = done.unwrap_or_else(|| (Outcome::LATER, abnormal(now)));
                let record = self.record(&delivery, &outcome, attempt, now);
                self.unrecorded.push(record);
            }
            ended = self.tasks.try_join_next_with_id().map(sort_out);
        }
        if self.queue.is_empty() {
            // One that waited for its turn may be due now.
            self.read_at = None;
        }
    }

    /// What an outcome makes of a delivery.
    fn record(&mut self, delivery: &DueDelivery, outcome: &Outcome, attempt: Attempt, now: Timestamp) -> AttemptRecord {
        let (deps, setup) = (self.shared.deps.clone(), self.shared.sending());
        if let Some(metrics) = &deps.metrics {
            metrics.attempt(&self.receiver, outcome, (now - delivery.created_at).to_std().unwrap_or_default());
        }
        let (was_failing, was_down) = (self.health.failing_since().is_some(), self.health.is_down());
        self.health.note(outcome, now, setup.delivery.max_retry_after.delta());
        self.answer.clone_from(&attempt.answer);
        let tries = delivery.tries.saturating_add(1);
        let next = retry::decide(outcome, tries, delivery.due_at, now, fastrand::f64(), &setup.delivery);
        let mut record = next.record_of(delivery.id, attempt);
        let answer = &record.attempt.answer;
        match &next {
            NextStep::Dead { reason } => {
                tracing::warn!(receiver = %self.receiver, delivery = %delivery.id, %reason, %answer, "a delivery is given up");
                let reason = format!("{reason}: {answer}");
                let announcement =
                    is_worth_announcing(delivery).then(|| deps.announce.dead_letter(delivery, &reason, now)).flatten();
                add_announcement(&mut record, announcement);
            }
            NextStep::RetryAt(at) if !was_failing => {
                tracing::warn!(receiver = %self.receiver, delivery = %delivery.id, %answer, next = %at, "a delivery failed, and is tried again");
            }
            NextStep::RetryAt(_) | NextStep::Delivered => {
                tracing::debug!(receiver = %self.receiver, delivery = %delivery.id, outcome = outcome.word().as_str(), %answer, "attempt");
            }
        }
        if *outcome == Outcome::Accepted {
            if was_failing {
                tracing::info!(receiver = %self.receiver, "the receiver takes messages again");
            }
            if let Some(alert) = self.incident.as_mut().and_then(|incident| incident.open.take()) {
                add_announcement(&mut record, deps.announce.receiver_back(&self.receiver, &alert, now));
            }
        }
        self.is_gone = *outcome == Outcome::Gone || (self.is_gone && *outcome != Outcome::Accepted);
        self.is_back |= *outcome == Outcome::Accepted && was_down;
        record
    }

    /// Hands what has ended to the store, unless it is busy with what ended before, or has just refused it.
    pub(super) fn begin_recording(&mut self) {
        let is_refused = self.refused_at.is_some_and(|at| at.elapsed() < STORE_PAUSE);
        if self.recording.is_some() || self.unrecorded.is_empty() || is_refused {
            return;
        }
        let records = std::mem::take(&mut self.unrecorded);
        let (store, written) = (self.shared.deps.store.clone(), records.clone());
        let task = tokio::spawn(async move { store.record_attempts(written).await });
        self.recording = Some(Recording { records, task });
    }

    /// Takes note of whether the store has what it was given; what it has not is given to it again.
    pub(super) fn note_recorded(&mut self, done: Result<(), DeliveryStoreError>) {
        let Some(Recording { records, .. }) = self.recording.take() else { return };
        match done {
            Ok(()) => {
                self.refused_at = None;
                self.shared.wake_for_announcements(&recipients(&records));
                if self.queue.is_empty() {
                    // One that waited for its turn may be due now.
                    self.read_at = None;
                }
            }
            Err(error) => {
                let later = std::mem::replace(&mut self.unrecorded, records);
                self.unrecorded.extend(later);
                self.refused_at = Some(Instant::now());
                self.note_store(Err(&error));
            }
        }
    }

    /// Attempts that are not in the store, though they were made.
    pub(super) fn awaiting_record(&self) -> impl Iterator<Item = &AttemptRecord> {
        self.unrecorded.iter().chain(self.recording.iter().flat_map(|recording| &recording.records))
    }
}

/// Waits until the store has taken what it was given, or refused it; none where it was given nothing.
pub(super) async fn recorded(recording: &mut Option<Recording>) -> Option<Result<(), DeliveryStoreError>> {
    let done = (&mut recording.as_mut()?.task).await;
    Some(done.unwrap_or_else(|error| Err(error.into())))
}

/// The record of an attempt that ended in a fault of this program.
fn abnormal(now: Timestamp) -> Attempt {
    let answer = "the attempt ended abnormally: a fault of this program, please report it".to_owned();
    Attempt { at: now, took_ms: 0, outcome: AttemptOutcome::Retry, status: None, answer }
}
