//! Carries deliveries to the receivers of the config. A digest by mail goes on terms that the database knows: who stopped it, and
//! the key of the links by which the others can; they are asked at each attempt, so that one that was held up respects them too.

use std::sync::Arc;

use super::{LedgerError, Pending, Transport};
use crate::{
    notify::{
        Outcome, Receivers,
        unsubscribe::{self, Terms},
    },
    store::{
        Store,
        model::{Attempt, DueDelivery},
    },
    supply::{ReceiverName, Timestamp},
};

/// The receivers, and the database that knows who wants digests.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// The wire.
    pub receivers: Arc<Receivers>,
    /// Who stopped digests.
    pub store: Store,
}

impl Carrier {
    async fn terms(&self, receiver: &ReceiverName) -> Result<Terms, LedgerError> {
        let key = match self.store.link_key().await? {
            Some(key) => key,
            None => {
                let fresh = unsubscribe::fresh_key().ok_or("the system gives no random bytes for the key of links")?;
                self.store.keep_link_key(fresh).await?
            }
        };
        let opted_out = self.store.opt_outs(Some(receiver.clone())).await?;
        Ok(Terms { key, opted_out: opted_out.into_iter().map(|wish| wish.address).collect() })
    }

    async fn attempt(&self, receiver: &ReceiverName, delivery: &DueDelivery, now: Timestamp) -> (Outcome, Attempt) {
        if !self.receivers.is_stoppable(receiver, delivery) {
            return self.receivers.send(receiver, delivery, now).await;
        }
        match self.terms(receiver).await {
            Ok(terms) => self.receivers.send_on(receiver, delivery, now, Some(&terms)).await,
            Err(error) => {
                let outcome = Outcome::LATER;
                let answer = format!("not sent: it cannot be read who wants digests: {error}");
                let attempt = Attempt { at: now, took_ms: 0, outcome: outcome.as_str().to_owned(), status: None, answer };
                (outcome, attempt)
            }
        }
    }
}

impl Transport for Carrier {
    fn names(&self) -> Vec<ReceiverName> {
        self.receivers.names().cloned().collect()
    }

    fn max_per_hour(&self, receiver: &ReceiverName) -> u32 {
        self.receivers.max_per_hour(receiver).unwrap_or(1)
    }

    fn send<'a>(
        &'a self,
        receiver: &'a ReceiverName,
        delivery: &'a DueDelivery,
        now: Timestamp,
    ) -> Pending<'a, (Outcome, Attempt)> {
        Box::pin(self.attempt(receiver, delivery, now))
    }
}
