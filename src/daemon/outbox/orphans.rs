//! Orphans: deliveries to receivers that were removed from the config.

use chrono::TimeDelta;

use super::BATCH;
use super::announcement::{add_dead_letter, recipients};
use super::shared::Shared;
use model::{Attempt, AttemptOutcome, AttemptRecord, DeliveryState, DueDelivery, ReceiverName, Timestamp};

/// The maximum number of batches per removed receiver in one run.
const MAX_ORPHAN_BATCHES: usize = 1_000;

/// Turns all orphans into dead letters, so that they are reported and do not stay due forever. Does nothing just after a takeover.
pub(super) async fn dead_letter_orphans(shared: &Shared, now: Timestamp) {
    if shared.takeover.is_recent() {
        return;
    }
    let pending = match shared.deps.store.pending_receivers().await {
        Ok(pending) => pending,
        Err(error) => {
            tracing::error!(error = %error, "cannot read the deliveries to removed receivers");
            return;
        }
    };
    for receiver in pending.into_iter().map(|(receiver, _)| receiver).filter(|receiver| !shared.has_worker(receiver)) {
        let count = dead_letter_receiver(shared, &receiver, now).await;
        tracing::warn!(%receiver, count, "deliveries to a removed receiver became dead letters");
    }
}

/// Turns all deliveries to a receiver into dead letters, whether they are due or not. A delivery that waits for an earlier one of the
/// same alert is in the next batch.
async fn dead_letter_receiver(shared: &Shared, receiver: &ReceiverName, now: Timestamp) -> usize {
    let store = &shared.deps.store;
    let reason = format!("the receiver \"{receiver}\" is no longer in the config");
    let mut count = 0;
    for _ in 0..MAX_ORPHAN_BATCHES {
        let due = match store.due(receiver, now + TimeDelta::days(36_500), BATCH).await {
            Ok(due) if due.is_empty() => break,
            Ok(due) => due,
            Err(error) => {
                tracing::error!(%receiver, error = %error, "cannot read the deliveries to a removed receiver");
                break;
            }
        };
        count += due.len();
        let records: Vec<AttemptRecord> = due.iter().map(|delivery| dead_letter(shared, delivery, &reason, now)).collect();
        let recipients: Vec<ReceiverName> = recipients(&records);
        if let Err(error) = store.record_attempts(records).await {
            tracing::error!(%receiver, error = %error, "cannot store the dead letters of a removed receiver");
            break;
        }
        shared.wake_for_announcements(&recipients);
    }
    count
}

fn dead_letter(shared: &Shared, delivery: &DueDelivery, reason: &str, now: Timestamp) -> AttemptRecord {
    let mut record = AttemptRecord {
        delivery: delivery.id,
        attempt: Attempt { at: now, took_ms: 0, outcome: AttemptOutcome::Orphaned, status: None, response: reason.to_owned() },
        state: DeliveryState::Dead,
        next_attempt_at: None,
        alerts: Vec::new(),
        notifications: Vec::new(),
    };
    add_dead_letter(&mut record, &shared.deps.live, delivery, reason, now);
    record
}
