//! Our own pace: at most so many requests in any minute, whoever asks, in the order in which they came.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Most requests a minute that are counted one by one; whoever allows more wants no limit.
const MAX_COUNTED: usize = 100_000;

/// Lets requests through at the configured rate.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// When the last requests were let through, oldest first. The async lock is the queue: it is fair.
    sent: tokio::sync::Mutex<VecDeque<Instant>>,
    most: usize,
    window: Duration,
    not_before: Mutex<Option<Instant>>,
}

impl RateLimiter {
    /// At most `most` requests in any `window`.
    pub fn new(most: u32, window: Duration) -> Self {
        let most = usize::try_from(most).unwrap_or(MAX_COUNTED).clamp(1, MAX_COUNTED);
        Self { sent: tokio::sync::Mutex::default(), most, window, not_before: Mutex::default() }
    }

    /// Waits for a turn. `check` is asked when the turn is near and again when it has come, so that whoever queued behind a
    /// source that has failed meanwhile leaves at once and takes no turn.
    pub async fn turn<E>(&self, check: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let mut sent = self.sent.lock().await;
        loop {
            check()?;
            let now = Instant::now();
            while sent.front().is_some_and(|at| now.duration_since(*at) >= self.window) {
                sent.pop_front();
            }
            let held = self.held_until();
            let free = if sent.len() < self.most { None } else { sent.front().map(|oldest| *oldest + self.window) };
            match free.max(held).filter(|until| *until > now) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => {
                    sent.push_back(now);
                    return Ok(());
                }
            }
        }
    }

    /// Lets nobody through for a while: the source asked for patience.
    pub fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut held = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        *held = (*held).max(Some(until));
    }

    fn held_until(&self) -> Option<Instant> {
        *self.not_before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
