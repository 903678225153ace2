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
mod tests {
    use super::*;

    async fn turn(rate_limiter: &RateLimiter) {
        rate_limiter.turn(|| Ok::<(), ()>(())).await.expect("a turn");
    }

    #[tokio::test]
    async fn no_window_sees_more_requests_than_allowed() {
        let window = Duration::from_millis(60);
        let rate_limiter = RateLimiter::new(3, window);
        let mut at = Vec::new();
        for _ in 0..10 {
            turn(&rate_limiter).await;
            at.push(Instant::now());
        }
        let gaps: Vec<Duration> = at.windows(4).map(|four| four[3].duration_since(four[0])).collect();
        assert!(gaps.iter().all(|gap| *gap + Duration::from_millis(5) >= window), "{gaps:?}");
        assert!(at[2].duration_since(at[0]) < window, "the first three need not wait");
    }

    #[tokio::test]
    async fn a_hold_stops_everybody_for_its_time() {
        let rate_limiter = RateLimiter::new(100, Duration::from_secs(60));
        let began = Instant::now();
        rate_limiter.hold(Duration::from_millis(50));
        rate_limiter.hold(Duration::from_millis(10));
        turn(&rate_limiter).await;
        assert!(began.elapsed() >= Duration::from_millis(50));
    }

    #[tokio::test]
    async fn whoever_may_no_longer_ask_takes_no_turn() {
        let rate_limiter = RateLimiter::new(1, Duration::from_secs(3_600));
        assert!(rate_limiter.turn(|| Err::<(), ()>(())).await.is_err());
        tokio::time::timeout(Duration::from_secs(5), turn(&rate_limiter)).await.expect("the turn is still free");
    }
}
