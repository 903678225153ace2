use super::*;

/// Returns the hours at which a feed that always fails is polled, with a slot every `hours`.
fn polled_hours(hours: i64, days: i64) -> Vec<i64> {
    let begin: Timestamp = "2026-03-01T00:00:00Z".parse().expect("a time");
    let mut feed = FeedState::default();
    let mut polled = Vec::new();
    for hour in (0..days * 24).step_by(usize::try_from(hours).expect("positive")) {
        let now = begin + TimeDelta::hours(hour);
        if is_due(&feed, now) {
            feed = FeedState { tried_at: Some(now), failing_since: feed.failing_since.or(Some(now)), ..feed };
            polled.push(hour);
        }
    }
    polled
}

#[test]
fn waits_double_up_to_a_day() {
    assert_eq!(polled_hours(3, 5), [0, 3, 6, 12, 24, 48, 72, 96]);
    assert!(polled_hours(1, 30).len() <= 36, "{:?}", polled_hours(1, 30));
}
