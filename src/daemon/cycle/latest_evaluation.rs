//! The latest time by which anything was evaluated, by this or an earlier active instance.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{CycleError, stored};
use model::Timestamp;
use store::Store;

/// The stored time, read once. Only the active instance evaluates, so that later changes are its own.
#[derive(Debug, Default)]
pub struct LatestEvaluation(Mutex<CachedTime>);

#[derive(Clone, Copy, Debug, Default)]
enum CachedTime {
    #[default]
    Unread,
    /// `None` if nothing was evaluated yet.
    Read(Option<Timestamp>),
}

impl LatestEvaluation {
    fn cached(&self) -> MutexGuard<'_, CachedTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn get(&self, store: &Store) -> Result<Option<Timestamp>, CycleError> {
        if let CachedTime::Read(latest) = *self.cached() {
            return Ok(latest);
        }
        let latest = stored("read the time of the latest evaluation", store.evaluated_at()).await?;
        let mut cached = self.cached();
        // Another job may have read and advanced it meanwhile.
        let latest = if let CachedTime::Read(advanced) = *cached { advanced.max(latest) } else { latest };
        *cached = CachedTime::Read(latest);
        Ok(latest)
    }

    /// Records that a step was evaluated at `at` and stored.
    pub(super) fn stored(&self, at: Timestamp) {
        if let CachedTime::Read(latest) = &mut *self.cached() {
            *latest = (*latest).max(Some(at));
        }
    }

    /// Discards the time, because the stored one was repaired.
    pub(crate) fn forget(&self) {
        *self.cached() = CachedTime::Unread;
    }
}
