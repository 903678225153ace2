use super::*;

async fn turn(rate_limiter: &RateLimiter) {
    rate_limiter.acquire(|| Ok::<(), ()>(())).await.expect("an allowed request");
}

#[tokio::test]
async fn no_window_has_more_requests_than_allowed() {
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
async fn hold_blocks_all_requests() {
    let rate_limiter = RateLimiter::new(100, Duration::from_secs(60));
    let began = Instant::now();
    rate_limiter.block_for(Duration::from_millis(50));
    rate_limiter.block_for(Duration::from_millis(10));
    turn(&rate_limiter).await;
    assert!(began.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn failed_check_does_not_use_the_limit() {
    let rate_limiter = RateLimiter::new(1, Duration::from_secs(3_600));
    assert!(rate_limiter.acquire(|| Err::<(), ()>(())).await.is_err());
    tokio::time::timeout(Duration::from_secs(5), turn(&rate_limiter)).await.expect("an allowed request");
}
