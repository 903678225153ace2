use super::*;

fn start() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

fn token(text: &str) -> Fingerprint {
    fingerprint(text.as_bytes())
}

#[test]
fn session_ends_at_logout_when_idle_at_maximum_age_or_with_new_token() {
    let now = start();
    let begun = || {
        let mut sessions = Sessions::default();
        sessions.begin("id", "key".into(), token("old"), now);
        sessions
    };
    assert_eq!(begun().touch("id", token("old"), now), Some("key".into()));
    assert_eq!(begun().touch("other", token("old"), now), None);
    assert_eq!(begun().touch("id", token("new"), now), None, "the configured token changed");
    assert_eq!(begun().touch("id", token("old"), now + MAX_IDLE), None);
    let mut sessions = begun();
    sessions.end("id");
    assert_eq!(sessions.touch("id", token("old"), now), None);
    let mut sessions = begun();
    let mut at = now;
    while sessions.touch("id", token("old"), at).is_some() {
        at += TimeDelta::hours(6);
    }
    assert_eq!(at, now + MAX_AGE, "a session in use ends too");
}

#[test]
fn least_recently_used_session_ends_at_the_limit() {
    let (mut sessions, now) = (Sessions::default(), start());
    for number in 0..200 {
        sessions.begin(&number.to_string(), "key".into(), token("t"), now + TimeDelta::seconds(number));
    }
    assert_eq!(sessions.0.len(), MAX_SESSIONS);
    let now = now + TimeDelta::seconds(200);
    assert_eq!(sessions.touch("0", token("t"), now), None, "the oldest was removed");
    assert!(sessions.touch("199", token("t"), now).is_some());
}

#[test]
fn debug_output_hides_secrets() {
    let mut sessions = Sessions::default();
    sessions.begin("the-id", "the-key".into(), token("t"), start());
    let shown = format!("{sessions:?}");
    assert!(!shown.contains("the-id") && !shown.contains("the-key"), "{shown}");
}
