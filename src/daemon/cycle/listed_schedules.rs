//! The last responses about the schedules of all tokens, read from the database once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{CycleError, stored};
use engine::ingest::ListedSchedules;
use model::FeedUpdate;
use store::Store;

/// Only the active instance polls, so that later responses are its own.
#[derive(Debug, Default)]
pub struct ListedSchedulesCache(Mutex<Option<Arc<ListedSchedules>>>);

impl ListedSchedulesCache {
    fn cached(&self) -> MutexGuard<'_, Option<Arc<ListedSchedules>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn get(&self, store: &Store) -> Result<Arc<ListedSchedules>, CycleError> {
        if let Some(listed) = &*self.cached() {
            return Ok(listed.clone());
        }
        let read = stored("read the feeds of schedules", store.fold_schedule_feeds(ListedSchedules::apply)).await?;
        Ok(self.cached().get_or_insert_with(|| Arc::new(read)).clone())
    }

    /// Records what responses listed.
    pub(super) fn apply(&self, updates: &[FeedUpdate]) {
        if let Some(listed) = &mut *self.cached() {
            let listed = Arc::make_mut(listed);
            updates.iter().for_each(|update| listed.apply(update));
        }
    }
}
