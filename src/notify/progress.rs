//! What was taken already of deliveries that take several requests or mails, so that another attempt goes on where one ended. Lost
//! with the process, which costs repeats that carry the ids they had.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Most deliveries of which is remembered what was taken.
const MAX_DELIVERIES: usize = 256;

/// By delivery, the keys of what was taken.
#[derive(Debug, Default)]
pub(super) struct TakenParts(Mutex<BTreeMap<String, BTreeSet<String>>>);

impl TakenParts {
    /// What was taken of a delivery.
    pub(super) fn taken(&self, webhook_id: &str) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(webhook_id).cloned().unwrap_or_default()
    }

    /// One more was taken.
    pub(super) fn remember(&self, webhook_id: &str, key: String) {
        let mut deliveries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if deliveries.len() >= MAX_DELIVERIES && !deliveries.contains_key(webhook_id) {
            deliveries.pop_first();
        }
        deliveries.entry(webhook_id.to_owned()).or_default().insert(key);
    }

    /// The delivery is over.
    pub(super) fn forget(&self, webhook_id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(webhook_id);
    }
}
