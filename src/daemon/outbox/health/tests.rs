use super::*;

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_773_000_000 + seconds, 0).expect("a timestamp")
}

const HOUR: TimeDelta = TimeDelta::hours(1);

#[test]
fn a_receiver_that_is_down_is_probed_one_at_a_time_and_ever_more_rarely() {
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
fn a_refusal_is_an_answer_and_closes_the_breaker() {
    let mut health = ReceiverHealth::default();
    for _ in 0..10 {
        health.note(&Outcome::LATER, time(0), HOUR);
    }
    health.note(&Outcome::Refused, time(60), HOUR);
    assert!(!health.is_down());
    assert_eq!(health.failing_since(), None);
}

#[test]
fn a_receivers_wish_holds_for_all_its_messages_within_bounds() {
    let mut health = ReceiverHealth::default();
    health.note(&Outcome::Later { retry_after: Some(TimeDelta::seconds(90)) }, time(0), HOUR);
    assert_eq!(health.room(time(89), 0, 4, 300), 0);
    assert_eq!(health.room(time(90), 0, 4, 300), 4);
    health.note(&Outcome::Later { retry_after: Some(TimeDelta::days(9)) }, time(100), HOUR);
    assert_eq!(health.opens_at(time(100), 300), Some(time(3_700)));
}

#[test]
fn above_the_storm_cap_messages_wait_until_the_hour_has_room() {
    let mut health = ReceiverHealth::default();
    for second in 0..4 {
        // The fourth is the summary of what is above the cap.
        assert!(health.room(time(second), 0, 4, 3) > 0);
        health.note(&Outcome::Accepted, time(second), HOUR);
    }
    assert_eq!(health.room(time(4), 0, 4, 3), 0);
    assert_eq!(health.opens_at(time(4), 3), Some(time(3_600)));
    assert_eq!(health.room(time(3_600), 0, 4, 3), 1);
    assert_eq!(health.room(time(3_600), 1, 4, 3), 0, "those under way count");
    assert_eq!(health.room(time(-100), 0, 4, 3), 4, "a clock set back does not lock it");
}

#[test]
fn silence_is_news_after_a_quarter_of_an_hour() {
    let mut health = ReceiverHealth::default();
    health.note(&Outcome::LATER, time(0), HOUR);
    assert!(!health.is_news(time(899)));
    assert!(health.is_news(time(900)));
    health.note(&Outcome::Accepted, time(901), HOUR);
    assert!(!health.is_news(time(10_000)));
}
