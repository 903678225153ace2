use super::*;

fn start() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

fn token(text: &str) -> Fingerprint {
    fingerprint(text.as_bytes())
}

#[test]
fn a_session_ends_by_hand_by_idleness_by_age_and_with_its_token() {
    let now = start();
    let begun = || {
        let mut sessions = Sessions::default();
        sessions.begin("id", "key".into(), token("old"), now);
        sessions
    };
    assert_eq!(begun().find("id", token("old"), now), Some("key".into()));
    assert_eq!(begun().find("other", token("old"), now), None);
    assert_eq!(begun().find("id", token("new"), now), None, "the token became another");
    assert_eq!(begun().find("id", token("old"), now + MAX_IDLE), None);
    let mut sessions = begun();
    sessions.end("id");
    assert_eq!(sessions.find("id", token("old"), now), None);
    let mut sessions = begun();
    let mut at = now;
    while sessions.find("id", token("old"), at).is_some() {
        at += TimeDelta::hours(6);
    }
    assert_eq!(at, now + MAX_AGE, "used all the time, it ends all the same");
}

#[test]
fn there_is_room_for_so_many() {
    let (mut sessions, now) = (Sessions::default(), start());
    for number in 0..200 {
        sessions.begin(&number.to_string(), "key".into(), token("t"), now + TimeDelta::seconds(number));
    }
    assert_eq!(sessions.0.len(), MAX_SESSIONS);
    let now = now + TimeDelta::seconds(200);
    assert_eq!(sessions.find("0", token("t"), now), None, "the oldest made room");
    assert!(sessions.find("199", token("t"), now).is_some());
}

#[test]
fn nothing_of_a_session_is_shown() {
    let mut sessions = Sessions::default();
    sessions.begin("the-id", "the-key".into(), token("t"), start());
    let shown = format!("{sessions:?}");
    assert!(!shown.contains("the-id") && !shown.contains("the-key"), "{shown}");
}
