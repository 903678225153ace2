//! Limits the request rate to a service: a burst, and one more request after each pause. A service that gets more requests returns
//! 429, and may block the client for longer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The rate limit of one receiver, shared by all its deliveries.
#[derive(Debug)]
pub struct RequestPace {
    burst: u32,
    pause: Duration,
    /// When the full burst is available again.
    rested_at: Mutex<Option<Instant>>,
}

impl RequestPace {
    /// Allows `burst` requests at once, and one more after each `pause`.
    pub fn new(burst: u32, pause: Duration) -> Self {
        Self { burst, pause, rested_at: Mutex::new(None) }
    }

    /// Reserves the next request, and returns when it can be sent.
    ///
    /// # Errors
    ///
    /// Returns the wait if the request could only be sent after `deadline`. Nothing is reserved then.
    pub fn take(&self, now: Instant, deadline: Instant) -> Result<Instant, Duration> {
        let mut rested_at = self.rested_at.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = rested_at.map_or(now, |at| at.max(now));
        // A burst of requests, including this one, may be outstanding.
        let at = rested.checked_sub(self.pause * self.burst.saturating_sub(1)).unwrap_or(now).max(now);
        if at > deadline {
            return Err(at - now);
        }
        *rested_at = Some(rested + self.pause);
        Ok(at)
    }
}

#[cfg(test)]
mod tests;
