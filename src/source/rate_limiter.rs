//! Limits the request rate of the client. Requests wait in order.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The upper bound of the limit, because each request within the window is stored.
const MAX_COUNTED: usize = 100_000;

#[derive(Debug)]
pub(super) struct RateLimiter {
    /// The times of the requests within the window, oldest first. The lock is fair, so it is also the queue.
    sent: tokio::sync::Mutex<VecDeque<Instant>>,
    max: usize,
    window: Duration,
    not_before: Mutex<Option<Instant>>,
}

impl RateLimiter {
    /// Allows at most `max` requests in any `window`.
    pub fn new(max: u32, window: Duration) -> Self {
        let max = usize::try_from(max).unwrap_or(MAX_COUNTED).clamp(1, MAX_COUNTED);
        Self { sent: tokio::sync::Mutex::default(), max, window, not_before: Mutex::default() }
    }

    /// Waits until a request is allowed. Calls `check` before and after each wait, so that queued requests fail early if the source
    /// has failed in the meantime.
    pub async fn acquire<E>(&self, check: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let mut sent = self.sent.lock().await;
        loop {
            check()?;
            let now = Instant::now();
            while sent.front().is_some_and(|at| now.duration_since(*at) >= self.window) {
                sent.pop_front();
            }
            let blocked = self.blocked_until();
            let free = if sent.len() < self.max { None } else { sent.front().map(|oldest| *oldest + self.window) };
            match free.max(blocked).filter(|until| *until > now) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => {
                    sent.push_back(now);
                    return Ok(());
                }
            }
        }
    }

    /// Blocks all requests for a while, because the source requested it.
    pub fn block_for(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut blocked = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        *blocked = (*blocked).max(Some(until));
    }

    fn blocked_until(&self) -> Option<Instant> {
        *self.not_before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
