//! Saves the confirmed time for the next start: when the source first confirms it, after each correction, and once an hour.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;

use model::{Clock, Timestamp, text::error_chain};
use store::Store;

/// The interval between saves. The time since boot covers the rest.
const SAVE_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// The time of the last save, and the total correction of the clock at that time.
#[derive(Debug, Default)]
pub struct SavedClock(Mutex<Option<(Timestamp, TimeDelta)>>);

impl SavedClock {
    fn last(&self) -> MutexGuard<'_, Option<(Timestamp, TimeDelta)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves the time if it is confirmed and the last save is outdated.
    pub async fn save(&self, clock: &Clock, store: &Store) {
        let Some(anchor) = clock.anchor() else { return };
        let (now, total_correction) = (clock.now(), clock.total_correction());
        let is_current = |(at, by): (Timestamp, TimeDelta)| by == total_correction && at <= now && now - at < SAVE_INTERVAL;
        if self.last().is_some_and(is_current) {
            return;
        }
        match store.save_clock(&anchor).await {
            Ok(()) => *self.last() = Some((now, total_correction)),
            Err(error) => tracing::error!(error = error_chain(&error), "cannot save the time for the next start"),
        }
    }
}
