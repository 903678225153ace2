//! The signal that ends a running read whose result is no longer needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A signal to end a read. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadStop(Arc<AtomicBool>);

impl ReadStop {
    pub(super) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard that sends the signal when it is dropped.
    pub(super) fn on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }
}

/// Sends the signal of a [`ReadStop`] when dropped.
#[derive(Debug)]
pub(super) struct StopOnDrop(ReadStop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
