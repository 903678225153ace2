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
