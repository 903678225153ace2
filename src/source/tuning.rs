//! The timeouts and limits of the client, which tests can reduce.

use std::time::Duration;

#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The maximum number of requests for a page.
    pub tries: u32,
    /// The wait before the second request for a page, four times as long before each further one, with a jitter of 30 %.
    pub backoff: Duration,
    /// The number of repeated walks if the pages are inconsistent.
    pub rewalks: u32,
    /// The longest requested wait that a fetch waits for. A longer wait ends the fetch.
    pub short_wait: Duration,
    /// The wait after a 429 without `Retry-After`.
    pub limited_wait: Duration,
    /// The initial time for which the breaker stays open after a 429 without `Retry-After`. Doubles each time.
    pub limited_first: Duration,
    /// The maximum of `limited_first` after doubling.
    pub limited_max: Duration,
    /// The number of failed fetches in a row that open the breaker.
    pub breaker_failures: u32,
    /// The initial time for which the breaker stays open. Doubles after each failed probe.
    pub breaker_first: Duration,
    /// The maximum of `breaker_first` after doubling.
    pub breaker_max: Duration,
    /// The initial time until a rejected key is tried again. Doubles after each rejection.
    pub refused_first: Duration,
    /// The maximum of `refused_first` after doubling.
    pub refused_max: Duration,
    /// The time until the key is read again.
    pub key_cache: Duration,
    /// The window of `requests_per_minute`.
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
