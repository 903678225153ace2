//! How fast a service is asked: so many requests at once, and one more after each pause. Above that it would answer 429, and may
//! shut us out for longer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The pace towards one receiver, shared by all of its deliveries.
#[derive(Debug)]
pub struct RequestPace {
    burst: u32,
    pause: Duration,
    /// When the service will have forgotten all requests so far.
    rested_at: Mutex<Option<Instant>>,
}

impl RequestPace {
    /// `burst` requests at once, one more after each `pause`.
    pub fn new(burst: u32, pause: Duration) -> Self {
        Self { burst, pause, rested_at: Mutex::new(None) }
    }

    /// Takes a place in the row, and says when it comes; later than `deadline`, none is taken and the wait is the error.
    /// Fails with how long to wait before there is a place.
    pub fn take(&self, now: Instant, deadline: Instant) -> Result<Instant, Duration> {
        let mut rested_at = self.rested_at.lock().unwrap_or_else(PoisonError::into_inner);
        let rested = rested_at.map_or(now, |at| at.max(now));
        // What is still remembered may be as much as a burst, less this request.
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
