//! Stores the accepted requests or mails of a delivery in memory, so that a retry sends only the rest. After a restart of the
//! process, all of them are sent again under the same ids. A reload passes them on to the new receiver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

const MAX_DELIVERIES: usize = 256;

/// The keys of the accepted requests, by webhook id of the delivery.
type PartsByDelivery = BTreeMap<String, BTreeSet<String>>;

/// The accepted requests of one receiver.
#[derive(Debug, Default)]
pub(super) struct AcceptedParts(RwLock<Arc<Mutex<PartsByDelivery>>>);

impl AcceptedParts {
    /// Continues with the parts of an earlier receiver, whose attempts in flight still add some.
    pub(super) fn continue_from(&self, earlier: &Self) {
        let shared = earlier.shared();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = shared;
    }

    fn shared(&self) -> Arc<Mutex<PartsByDelivery>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with<T>(&self, run: impl FnOnce(&mut PartsByDelivery) -> T) -> T {
        run(&mut self.shared().lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn accepted(&self, webhook_id: &str) -> BTreeSet<String> {
        self.with(|deliveries| deliveries.get(webhook_id).cloned().unwrap_or_default())
    }

    pub(super) fn remember(&self, webhook_id: &str, key: String) {
        self.with(|deliveries| {
            if deliveries.len() >= MAX_DELIVERIES && !deliveries.contains_key(webhook_id) {
                deliveries.pop_first();
            }
            deliveries.entry(webhook_id.to_owned()).or_default().insert(key);
        });
    }

    pub(super) fn forget(&self, webhook_id: &str) {
        self.with(|deliveries| deliveries.remove(webhook_id));
    }
}
