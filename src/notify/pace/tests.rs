use super::*;

#[test]
fn burst_is_allowed_at_once_and_the_rest_after_pauses() {
    let pace = RequestPace::new(3, Duration::from_secs(2));
    let now = Instant::now();
    let far = now + Duration::from_secs(100);
    let waits: Vec<u64> = (0..6).map(|_| (pace.take(now, far).expect("a time") - now).as_secs()).collect();
    assert_eq!(waits, [0, 0, 0, 2, 4, 6]);
    let later = now + Duration::from_secs(60);
    assert_eq!(pace.take(later, far), Ok(later), "the burst is available again");
}

#[test]
fn nothing_is_reserved_after_the_deadline() {
    let pace = RequestPace::new(1, Duration::from_secs(10));
    let now = Instant::now();
    let deadline = now + Duration::from_secs(5);
    assert_eq!(pace.take(now, deadline), Ok(now));
    assert_eq!(pace.take(now, deadline), Err(Duration::from_secs(10)));
    assert_eq!(pace.take(now, deadline), Err(Duration::from_secs(10)));
}
