use super::*;

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_773_000_000 + seconds, 0).expect("a timestamp")
}

const HOUR: TimeDelta = TimeDelta::hours(1);

#[test]
fn receiver_outage_is_probed_one_at_a_time_with_growing_waits() {
    let mut health = ReceiverHealth::default();
    for _ in 0..BREAK_AFTER {
        assert_eq!(health.room(time(0), 0, 4, 300), 4);
        health.note(&Outcome::LATER, time(0), HOUR);
    }
    assert!(health.is_down());
    assert_eq!(health.room(time(4), 0, 4, 300), 0);
    assert_eq!(health.room(time(5), 0, 4, 300), 1);
    assert_eq!(health.room(time(5), 1, 4, 300), 0, "one probe at a time");
    health.note(&Outcome::LATER, time(5), HOUR);
    assert_eq!(health.opens_at(time(5), 300), Some(time(15)));
    for _ in 0..20 {
        health.note(&Outcome::Uncertain, time(5), HOUR);
    }
    assert_eq!(health.opens_at(time(5), 300), Some(time(305)));
    health.note(&Outcome::Accepted, time(310), HOUR);
    assert!(!health.is_down());
    assert_eq!(health.room(time(310), 0, 4, 300), 4);
}

#[test]
fn rejection_closes_breaker() {
    let mut health = ReceiverHealth::default();
    for _ in 0..10 {
        health.note(&Outcome::LATER, time(0), HOUR);
    }
    health.note(&Outcome::Refused, time(60), HOUR);
    assert!(!health.is_down());
    assert_eq!(health.failing_since(), None);
}

#[test]
fn retry_after_applies_to_all_messages_within_limit() {
    let mut health = ReceiverHealth::default();
    health.note(&Outcome::Later { retry_after: Some(TimeDelta::seconds(90)) }, time(0), HOUR);
    assert_eq!(health.room(time(89), 0, 4, 300), 0);
    assert_eq!(health.room(time(90), 0, 4, 300), 4);
    health.note(&Outcome::Later { retry_after: Some(TimeDelta::days(9)) }, time(100), HOUR);
    assert_eq!(health.opens_at(time(100), 300), Some(time(3_700)));
}

#[test]
fn messages_above_hourly_limit_wait() {
    let mut health = ReceiverHealth::default();
    for second in 0..4 {
        // The fourth is the summary of the messages above the limit.
        assert!(health.room(time(second), 0, 4, 3) > 0);
        health.note(&Outcome::Accepted, time(second), HOUR);
    }
    assert_eq!(health.room(time(4), 0, 4, 3), 0);
    assert_eq!(health.opens_at(time(4), 3), Some(time(3_600)));
    assert_eq!(health.room(time(3_600), 0, 4, 3), 1);
    assert_eq!(health.room(time(3_600), 1, 4, 3), 0, "attempts in flight count");
    assert_eq!(health.room(time(-100), 0, 4, 3), 4, "a clock that was set back does not block the receiver");
}

#[test]
fn outage_is_reported_after_15_minutes() {
    let mut health = ReceiverHealth::default();
    health.note(&Outcome::LATER, time(0), HOUR);
    assert!(!health.should_report(time(899)));
    assert!(health.should_report(time(900)));
    health.note(&Outcome::Accepted, time(901), HOUR);
    assert!(!health.should_report(time(10_000)));
}
