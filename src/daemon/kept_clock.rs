//! The time that was borne out, kept for the next start: as soon as the source has spoken, again where the time was set, and once an
//! hour.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;

use model::{Clock, Timestamp, text::error_chain};
use store::Store;

/// How often it is kept anew; the time since boot bridges what lies between.
const KEEP: TimeDelta = TimeDelta::hours(1);

/// When the time was last kept, and how far it had been set by then.
#[derive(Debug, Default)]
pub struct KeptClock(Mutex<Option<(Timestamp, TimeDelta)>>);

impl KeptClock {
    fn last(&self) -> MutexGuard<'_, Option<(Timestamp, TimeDelta)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the time where it has been borne out and was not kept lately.
    pub async fn keep(&self, clock: &Clock, store: &Store) {
        let Some(anchor) = clock.anchor() else { return };
        let (now, stepped) = (clock.now(), clock.stepped());
        let is_kept = |(at, by): (Timestamp, TimeDelta)| by == stepped && at <= now && now - at < KEEP;
        if self.last().is_some_and(is_kept) {
            return;
        }
        match store.keep_clock(&anchor).await {
            Ok(()) => *self.last() = Some((now, stepped)),
            Err(error) => tracing::error!(error = error_chain(&error), "cannot keep the time for the next start"),
        }
    }
}
