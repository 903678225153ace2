//! The interfaces of the outbox. Tests implement them with a store in memory and failing receivers.

use model::{
    Alert, AlertState, Attempt, AttemptRecord, BoxFuture, Commit, DueDelivery, Notification, ReceiverName, RuleId, Timestamp,
};
use notify::Outcome;
use store::Store;

pub type DeliveryStoreError = Box<dyn std::error::Error + Send + Sync>;

/// The database operations of the outbox.
pub trait DeliveryStore: Send + Sync + 'static {
    /// Returns the due deliveries of `receiver`, ordered by time. A delivery is left out while an earlier one to the same receiver
    /// contains the same alert and has not ended.
    fn due(
        &self,
        receiver: &ReceiverName,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<DueDelivery>, DeliveryStoreError>>;
    /// Returns whether this instance may send. Only the active instance may.
    fn may_send(&self) -> bool {
        true
    }
    /// Returns the time when the next delivery of `receiver` is due.
    fn next_due_at(&self, receiver: &ReceiverName) -> BoxFuture<'_, Result<Option<Timestamp>, DeliveryStoreError>>;
    /// Stores attempts, new states, and alerts in one transaction.
    fn record_attempts(&self, records: Vec<AttemptRecord>) -> BoxFuture<'_, Result<(), DeliveryStoreError>>;
    /// Returns the receivers with pending deliveries and their number, including receivers that are not in the config.
    fn pending_receivers(&self) -> BoxFuture<'_, Result<Vec<(ReceiverName, u32)>, DeliveryStoreError>>;
    /// Makes all retries of `receiver` due at `now`.
    fn retry_now(&self, receiver: &ReceiverName, now: Timestamp) -> BoxFuture<'_, Result<(), DeliveryStoreError>>;
    /// Stores an alert that belongs to no attempt.
    fn announce(&self, at: Timestamp, alert: Alert, notification: Notification) -> BoxFuture<'_, Result<(), DeliveryStoreError>>;
    /// Returns the incident with this subject: its open alert, and the number of episodes under `rule`.
    fn incident(&self, rule: RuleId, subject: String) -> BoxFuture<'_, Result<ReceiverIncident, DeliveryStoreError>>;
}

impl DeliveryStore for Store {
    fn due(
        &self,
        receiver: &ReceiverName,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<DueDelivery>, DeliveryStoreError>> {
        let receiver = receiver.clone();
        Box::pin(async move { Ok(Store::due(self, receiver, now, limit).await?) })
    }

    fn may_send(&self) -> bool {
        self.is_active()
    }

    fn next_due_at(&self, receiver: &ReceiverName) -> BoxFuture<'_, Result<Option<Timestamp>, DeliveryStoreError>> {
        let receiver = receiver.clone();
        Box::pin(async move { Ok(Store::next_due_at(self, receiver).await?) })
    }

    fn record_attempts(&self, records: Vec<AttemptRecord>) -> BoxFuture<'_, Result<(), DeliveryStoreError>> {
        Box::pin(async move { Ok(Store::record_attempts(self, records).await?) })
    }

    fn pending_receivers(&self) -> BoxFuture<'_, Result<Vec<(ReceiverName, u32)>, DeliveryStoreError>> {
        Box::pin(async move { Ok(Store::pending_receivers(self).await?) })
    }

    fn retry_now(&self, receiver: &ReceiverName, now: Timestamp) -> BoxFuture<'_, Result<(), DeliveryStoreError>> {
        let receiver = receiver.clone();
        Box::pin(async move { Ok(Store::retry_now(self, receiver, now).await?) })
    }

    fn announce(&self, at: Timestamp, alert: Alert, notification: Notification) -> BoxFuture<'_, Result<(), DeliveryStoreError>> {
        let commit = Commit { at, alerts: vec![alert], notifications: vec![notification], ..Commit::default() };
        Box::pin(async move {
            self.commit(commit).await?;
            Ok(())
        })
    }

    fn incident(&self, rule: RuleId, subject: String) -> BoxFuture<'_, Result<ReceiverIncident, DeliveryStoreError>> {
        Box::pin(async move {
            let open = self
                .source_alerts()
                .await?
                .into_iter()
                .find(|alert| alert.subject == subject && alert.state == AlertState::Firing);
            let episodes = self.episodes(vec![(rule, subject)]).await?;
            Ok(ReceiverIncident { open, episodes: episodes.first().copied().unwrap_or_default() })
        })
    }
}

/// Sends deliveries to receivers.
pub trait DeliverySender: Send + Sync + 'static {
    fn names(&self) -> Vec<ReceiverName>;
    /// The hourly limit of a receiver.
    fn max_per_hour(&self, receiver: &ReceiverName) -> u32;
    /// The maximum number of parallel attempts, if the receiver has its own limit.
    fn concurrency(&self, _receiver: &ReceiverName) -> Option<u32> {
        None
    }
    /// Makes one attempt, which ends in bounded time.
    fn send<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> BoxFuture<'a, (Outcome, Attempt)>;
}

/// The recorded outages of a receiver.
#[derive(Clone, Debug, Default)]
pub struct ReceiverIncident {
    /// The firing alert about the current outage.
    pub open: Option<Alert>,
    /// The number of outages, including the current one.
    pub episodes: u32,
}
