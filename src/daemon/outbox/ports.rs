//! What the outbox needs from outside. Each trait has a second implementor in the tests: a store in memory, receivers that fail as
//! told, and an announcer.

use model::{
    Alert, AlertState, Attempt, AttemptRecord, BoxFuture, Commit, DueDelivery, Notification, ReceiverName, RuleId, Timestamp,
};
use notify::Outcome;
use store::Store;

/// Why the delivery store failed.
pub type DeliveryStoreError = Box<dyn std::error::Error + Send + Sync>;

/// What the outbox reads and writes.
pub trait DeliveryStore: Send + Sync + 'static {
    /// Deliveries of `receiver` that are due, by their time. One waits, and is not among them, while an earlier one to the same
    /// receiver tells of the same alert and is neither delivered nor given up.
    fn due(
        &self,
        receiver: &ReceiverName,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<DueDelivery>, DeliveryStoreError>>;
    /// Whether what was read may still be sent: of several instances only the active one sends.
    fn may_send(&self) -> bool {
        true
    }
    /// When the next delivery of `receiver` falls due.
    fn next_due_at(&self, receiver: &ReceiverName) -> BoxFuture<'_, Result<Option<Timestamp>, DeliveryStoreError>>;
    /// Attempts, the states they lead to, and what is announced of them, in one transaction.
    fn record_attempts(&self, records: Vec<AttemptRecord>) -> BoxFuture<'_, Result<(), DeliveryStoreError>>;
    /// Everyone to whom something is yet to be delivered, whether the config knows them or not, with how many.
    fn pending_receivers(&self) -> BoxFuture<'_, Result<Vec<(ReceiverName, u32)>, DeliveryStoreError>>;
    /// Makes everything that waits to be tried again with `receiver` due at `now`.
    fn retry_now(&self, receiver: &ReceiverName, now: Timestamp) -> BoxFuture<'_, Result<(), DeliveryStoreError>>;
    /// Writes an announcement that belongs to no attempt.
    fn announce(&self, at: Timestamp, alert: Alert, notice: Notification) -> BoxFuture<'_, Result<(), DeliveryStoreError>>;
    /// The incident with this subject: its open alert, and how many episodes `rule` has had for it.
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

    fn announce(&self, at: Timestamp, alert: Alert, notice: Notification) -> BoxFuture<'_, Result<(), DeliveryStoreError>> {
        let commit = Commit { at, alerts: vec![alert], notifications: vec![notice], ..Commit::default() };
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

/// What carries deliveries to receivers.
pub trait DeliverySender: Send + Sync + 'static {
    /// Everyone that can be reached.
    fn names(&self) -> Vec<ReceiverName>;
    /// Most messages to a receiver in an hour.
    fn max_per_hour(&self, receiver: &ReceiverName) -> u32;
    /// Most attempts at once, where the receiver itself says so.
    fn concurrency(&self, _receiver: &ReceiverName) -> Option<u32> {
        None
    }
    /// One attempt, which ends in bounded time.
    fn send<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> BoxFuture<'a, (Outcome, Attempt)>;
}

/// What is said of deliveries that fail, and to whom. None: to nobody.
pub trait Announce: Send + Sync + 'static {
    /// The rule under which incidents of receivers run.
    fn rule(&self) -> RuleId;
    /// A delivery was given up for `reason`.
    fn dead_letter(&self, delivery: &DueDelivery, reason: &str, now: Timestamp) -> Option<(Alert, Notification)>;
    /// Nothing reaches a receiver.
    fn receiver_down(&self, down: &DownReceiver<'_>, now: Timestamp) -> Option<(Alert, Notification)>;
    /// It takes messages again: the end of `open`.
    fn receiver_back(&self, receiver: &ReceiverName, open: &Alert, now: Timestamp) -> Option<(Alert, Notification)>;
}

/// A receiver that nothing reaches.
#[derive(Clone, Copy, Debug)]
pub struct DownReceiver<'a> {
    /// Which.
    pub receiver: &'a ReceiverName,
    pub since: Timestamp,
    /// The last thing heard.
    pub answer: &'a str,
    /// Deliveries that wait for it.
    pub waiting: u32,
    /// How many such incidents it has had before.
    pub latest_episode: u32,
}

/// Whether nothing reaches a receiver, as far as that was told.
#[derive(Clone, Debug, Default)]
pub struct ReceiverIncident {
    /// The alert that says so, while it fires.
    pub open: Option<Alert>,
    /// How many there were, this one included.
    pub episodes: u32,
}

/// Subject of the alert about a receiver.
pub fn incident_subject(receiver: &ReceiverName) -> String {
    format!("receiver/{receiver}")
}
