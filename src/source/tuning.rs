//! Waits and counts of the client in one place, so that tests can make them small.

use std::time::Duration;

/// Waits and counts that tests make small.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Requests for one page.
    pub tries: u32,
    /// Wait before the second request for a page; four times as long before each further one. Jittered by 30 %.
    pub backoff: Duration,
    /// Walks after the first, where pages did not fit together.
    pub rewalks: u32,
    /// Waits that the source asks for are waited out inside a fetch up to this length.
    pub short_wait: Duration,
    /// Wait after a 429 that names none.
    pub limited_wait: Duration,
    /// How long nothing is asked after repeated 429s that name no time, at first and at most.
    pub limited_first: Duration,
    /// See `limited_first`.
    pub limited_max: Duration,
    /// Failed fetches in a row that open the breaker.
    pub breaker_failures: u32,
    /// How long the breaker stays open, at first and at most.
    pub breaker_first: Duration,
    /// See `breaker_first`.
    pub breaker_max: Duration,
    /// How long a refused key is not tried again, at first and at most.
    pub refused_first: Duration,
    /// See `refused_first`.
    pub refused_max: Duration,
    /// How long a key that was read is used before it is read again.
    pub key_cache: Duration,
    /// The minute of `requests_per_minute`.
    pub minute: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            tries: 3,
            backoff: Duration::from_millis(500),
            rewalks: 2,
            short_wait: Duration::from_secs(10),
            limited_wait: Duration::from_secs(5),
            limited_first: Duration::from_secs(60),
            limited_max: Duration::from_secs(900),
            breaker_failures: 5,
            breaker_first: Duration::from_secs(30),
            breaker_max: Duration::from_secs(600),
            refused_first: Duration::from_secs(300),
            refused_max: Duration::from_secs(3_600),
            key_cache: Duration::from_secs(2),
            minute: Duration::from_secs(60),
        }
    }
}
