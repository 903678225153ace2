//! Sends deliveries to the receivers of the config. The database knows who stopped a digest by mail, and the key of the links by which
//! the others can; it is asked at each attempt, so that a digest that was held up respects their wishes too.

use std::sync::Arc;

use super::{DeliverySender, DeliveryStoreError};
use model::{Attempt, BoxFuture, DueDelivery, ReceiverName, Timestamp};
use notify::unsubscribe::{self, DigestConsent};
use notify::{Outcome, Receivers};
use store::Store;

/// The receivers, and the database that knows who wants digests.
#[derive(Clone, Debug)]
pub struct ReceiverSender {
    pub receivers: Arc<Receivers>,
    /// Who stopped digests.
    pub store: Store,
}

impl ReceiverSender {
    async fn consent(&self, receiver: &ReceiverName) -> Result<DigestConsent, DeliveryStoreError> {
        let key = match self.store.link_key().await? {
            Some(key) => key,
            None => {
                let fresh = unsubscribe::fresh_key().ok_or("the system gives no random bytes for the key of links")?;
                self.store.keep_link_key(fresh).await?
            }
        };
        let opted_out = self.store.opt_outs(Some(receiver.clone())).await?;
        Ok(DigestConsent { key, opted_out: opted_out.into_iter().map(|wish| wish.address).collect() })
    }

    async fn attempt(&self, receiver: &ReceiverName, delivery: &DueDelivery, now: Timestamp) -> (Outcome, Attempt) {
        if !self.receivers.is_stoppable(receiver, delivery) {
            return self.receivers.send(receiver, delivery, now).await;
        }
        match self.consent(receiver).await {
            Ok(consent) => self.receivers.send_digest(receiver, delivery, now, &consent).await,
            Err(error) => {
                let outcome = Outcome::LATER;
                let answer = format!("not sent: it cannot be read who wants digests: {error}");
                let attempt = Attempt { at: now, took_ms: 0, outcome: outcome.word(), status: None, answer };
                (outcome, attempt)
            }
        }
    }
}

impl DeliverySender for ReceiverSender {
    fn names(&self) -> Vec<ReceiverName> {
        self.receivers.names().cloned().collect()
    }

    fn max_per_hour(&self, receiver: &ReceiverName) -> u32 {
        self.receivers.max_per_hour(receiver).unwrap_or(1)
    }

    fn concurrency(&self, receiver: &ReceiverName) -> Option<u32> {
        self.receivers.concurrency(receiver)
    }

    fn send<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> BoxFuture<'a, (Outcome, Attempt)> {
        Box::pin(self.attempt(receiver, delivery, now))
    }
}
