//! Stores the accepted requests or mails of a delivery in memory, so that a retry sends only the rest. After a restart of the
//! process, all of them are sent again under the same ids.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

const MAX_DELIVERIES: usize = 256;

/// The keys of the accepted requests, by webhook id of the delivery.
#[derive(Debug, Default)]
pub(super) struct AcceptedParts(Mutex<BTreeMap<String, BTreeSet<String>>>);

impl AcceptedParts {
    pub(super) fn accepted(&self, webhook_id: &str) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(webhook_id).cloned().unwrap_or_default()
    }

    pub(super) fn remember(&self, webhook_id: &str, key: String) {
        let mut deliveries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if deliveries.len() >= MAX_DELIVERIES && !deliveries.contains_key(webhook_id) {
            deliveries.pop_first();
        }
        deliveries.entry(webhook_id.to_owned()).or_default().insert(key);
    }

    pub(super) fn forget(&self, webhook_id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(webhook_id);
    }
}
