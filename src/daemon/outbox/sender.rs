//! Sends deliveries to the receivers of the config. Each attempt to send a digest by mail reads the opt-outs and the key for
//! unsubscribe links from the database, so that a delayed digest respects later opt-outs.

use std::sync::Arc;

use super::{DeliverySender, DeliveryStoreError};
use crate::digest_positions::DigestPositions;
use model::{Attempt, BoxFuture, DueDelivery, ReceiverName, Timestamp};
use notify::unsubscribe::{self, DigestConsent};
use notify::{Outcome, Receivers};
use store::Store;

#[derive(Clone, Debug)]
pub struct ReceiverSender {
    pub receivers: Arc<Receivers>,
    pub store: Store,
    pub positions: DigestPositions,
}

impl ReceiverSender {
    async fn consent(&self, receiver: &ReceiverName) -> Result<DigestConsent, DeliveryStoreError> {
        let key = match self.store.link_key().await? {
            Some(key) => key,
            None => {
                let fresh =
                    unsubscribe::fresh_key().ok_or("the system provides no random bytes for the key of unsubscribe links")?;
                self.store.ensure_link_key(fresh).await?
            }
        };
        let opted_out = self.store.opt_outs(Some(receiver.clone())).await?;
        Ok(DigestConsent { key, opted_out: opted_out.into_iter().map(|opt_out| opt_out.address).collect() })
    }

    async fn attempt(&self, receiver: &ReceiverName, delivery: &DueDelivery, now: Timestamp) -> (Outcome, Attempt) {
        let delivery = &*self.positions.add(&self.store, receiver, delivery).await;
        if !self.receivers.is_stoppable(receiver, delivery) {
            return self.receivers.send(receiver, delivery, now).await;
        }
        match self.consent(receiver).await {
            Ok(consent) => self.receivers.send_digest(receiver, delivery, now, &consent).await,
            Err(error) => {
                let outcome = Outcome::LATER;
                let response = format!("not sent: cannot read who opted out of digests: {error}");
                let attempt = Attempt { at: now, took_ms: 0, outcome: outcome.word(), status: None, response };
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
