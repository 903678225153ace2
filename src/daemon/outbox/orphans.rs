//! Deliveries to receivers that the config no longer has.

use chrono::TimeDelta;

use super::BATCH;
use super::announcement::{add_announcement, is_worth_announcing, recipients};
use super::shared::Shared;
use model::{Attempt, AttemptOutcome, AttemptRecord, DeliveryState, DueDelivery, ReceiverName, Timestamp};

/// Most batches of deliveries to one unknown receiver that are given up at one start.
const MAX_ORPHAN_BATCHES: usize = 1_000;

/// Gives up what is addressed to receivers that the config no longer has: visibly, rather than leaving it due for ever.
pub(super) async fn dead_letter_orphans(shared: &Shared, now: Timestamp) {
    let pending = match shared.deps.store.pending_receivers().await {
        Ok(pending) => pending,
        Err(error) => {
            tracing::error!(error = %error, "the outbox cannot look for deliveries to receivers that are gone from the config");
            return;
        }
    };
    for receiver in pending.into_iter().map(|(receiver, _)| receiver).filter(|receiver| !shared.has_worker(receiver)) {
        let count = dead_letter_all_of(shared, &receiver, now).await;
        tracing::warn!(%receiver, count, "deliveries to a receiver that is gone from the config are dead letters now");
    }
}

/// Not only those whose retry falls due now: nobody will look at the others later. What waits behind an earlier delivery of the same
/// alert shows in the next batch.
async fn dead_letter_all_of(shared: &Shared, receiver: &ReceiverName, now: Timestamp) -> usize {
    let store = &shared.deps.store;
    let reason = format!("no receiver is called \"{receiver}\" in the config any more");
    let mut count = 0;
    for _ in 0..MAX_ORPHAN_BATCHES {
        let due = match store.due(receiver, now + TimeDelta::days(36_500), BATCH).await {
            Ok(due) if due.is_empty() => break,
            Ok(due) => due,
            Err(error) => {
                tracing::error!(%receiver, error = %error, "deliveries to a receiver that is gone from the config cannot be read");
                break;
            }
        };
        count += due.len();
        let records: Vec<AttemptRecord> = due.iter().map(|delivery| dead_letter(shared, delivery, &reason, now)).collect();
        let recipients: Vec<ReceiverName> = recipients(&records);
        if let Err(error) = store.record_attempts(records).await {
            tracing::error!(%receiver, error = %error, "deliveries to a receiver that is gone from the config could not be given up");
            break;
        }
        shared.wake_for_announcements(&recipients);
    }
    count
}

fn dead_letter(shared: &Shared, delivery: &DueDelivery, reason: &str, now: Timestamp) -> AttemptRecord {
    let mut record = AttemptRecord {
        delivery: delivery.id,
        attempt: Attempt { at: now, took_ms: 0, outcome: AttemptOutcome::Refused, status: None, answer: reason.to_owned() },
        state: DeliveryState::Dead,
        next_attempt_at: None,
        alerts: Vec::new(),
        notifications: Vec::new(),
    };
    let announcement = is_worth_announcing(delivery).then(|| shared.deps.announce.dead_letter(delivery, reason, now)).flatten();
    add_announcement(&mut record, announcement);
    record
}
