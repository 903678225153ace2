//! Reuses the buffers of response bodies. Otherwise the kernel would map and clear new pages for each body, because the allocator
//! returns large blocks to it at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::envelope::ResponsePage;

/// The maximum number of idle buffers.
const MAX_IDLE_BUFFERS: usize = 4;
/// The maximum capacity of an idle buffer in bytes. Larger ones are freed.
const MAX_IDLE_CAPACITY: usize = 256 * 1024;

/// Idle buffers, at most one megabyte in total.
#[derive(Default)]
pub(super) struct BodyBuffers {
    idle: Mutex<Vec<Vec<u8>>>,
}

impl BodyBuffers {
    /// Returns an empty buffer with at least this capacity in bytes.
    pub fn take(&self, capacity: usize) -> Vec<u8> {
        let idle = self.idle().pop();
        idle.filter(|buffer| buffer.capacity() >= capacity).unwrap_or_else(|| Vec::with_capacity(capacity))
    }

    /// Keeps the buffers of pages that are no longer needed, for [`Self::take`].
    pub fn put(&self, pages: Vec<ResponsePage>) {
        for mut buffer in pages.into_iter().map(ResponsePage::into_body) {
            let mut idle = self.idle();
            if buffer.capacity() <= MAX_IDLE_CAPACITY && idle.len() < MAX_IDLE_BUFFERS {
                buffer.clear();
                idle.push(buffer);
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed assertion fails the test")]

    use super::super::envelope;
    use super::*;

    fn page(length: usize) -> ResponsePage {
        let body = format!("{{\"status\": true, \"data\": [\"{}\"]}}", "a".repeat(length));
        envelope::read(body.into_bytes(), None, true).unwrap()
    }

    #[test]
    fn returned_buffer_is_empty_and_taken_again() {
        let buffers = BodyBuffers::default();
        buffers.put(vec![page(1_000)]);
        let buffer = buffers.take(500);
        assert!(buffer.is_empty() && buffer.capacity() >= 1_000);
        assert_eq!(buffers.take(500).capacity(), 500);
    }

    #[test]
    fn buffer_that_is_too_small_is_replaced() {
        let buffers = BodyBuffers::default();
        buffers.put(vec![page(100)]);
        assert!(buffers.take(5_000).capacity() >= 5_000);
        assert!(buffers.idle().is_empty());
    }

    #[test]
    fn idle_buffers_are_bounded_in_number_and_size() {
        let buffers = BodyBuffers::default();
        buffers.put(vec![page(MAX_IDLE_CAPACITY)]);
        assert!(buffers.idle().is_empty());
        buffers.put((0..10).map(|_| page(10)).collect());
        assert_eq!(buffers.idle().len(), MAX_IDLE_BUFFERS);
    }
}
