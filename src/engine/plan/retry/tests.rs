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

#[test]
fn early_waits_double_up_to_five_minutes_or_an_hour() {
    let secs = |is_paid: bool| (1..=13).map(|failures| early_wait(failures, is_paid).num_seconds()).collect::<Vec<_>>();
    assert_eq!(secs(false), [5, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300, 300]);
    assert_eq!(secs(true), [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]);
}

#[test]
fn unread_feeds_and_failures_of_the_whole_source_are_retried_early() {
    let at = |hour: i64| Some(Timestamp::default() + TimeDelta::hours(hour));
    let feed = |baseline_at, tried_at, failing_since| FeedState { baseline_at, tried_at, failing_since, ..FeedState::default() };
    assert!(is_early(&feed(None, at(1), at(1))), "never read");
    assert!(is_early(&feed(at(1), at(2), at(3))), "the source failed since the last response");
    assert!(!is_early(&feed(at(1), at(3), at(3))), "this feed failed alone");
    assert!(!is_early(&feed(at(1), at(3), None)) && !is_early(&feed(None, None, None)), "no failure");
}
