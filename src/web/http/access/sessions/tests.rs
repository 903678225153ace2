use super::*;

fn start() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

fn key(shared: u8, token: &str) -> SessionKey {
    SessionKey::of(&LinkKey::new([shared; 32]), &token.to_owned().into())
}

#[test]
fn session_is_valid_on_every_instance_until_the_token_changes() {
    let now = start();
    let session = Session::begin("id_-7".into(), None, now);
    let cookie = session.cookie(&key(1, "old"));
    assert_eq!(Session::read(&cookie, &key(1, "old"), now), Some(session.clone()));
    assert_eq!(Session::read(&cookie, &key(1, "new"), now), None, "the configured token changed");
    assert_eq!(Session::read(&cookie, &key(2, "old"), now), None, "another database");
    assert_eq!(session.csrf_token(&key(1, "old")), session.csrf_token(&key(1, "old")));
    assert_ne!(session.csrf_token(&key(1, "old")), Session::begin("other".into(), None, now).csrf_token(&key(1, "old")));
    assert!(!cookie.contains(&session.csrf_token(&key(1, "old"))));
}

#[test]
fn session_of_an_access_key_is_valid_for_that_key_only() {
    let (now, shared) = (start(), LinkKey::new([1; 32]));
    let key = SessionKey::of_access_key(&shared, &[7; 32]);
    for name in ["bot", "Ann Müller of the desk", &"ü".repeat(100)] {
        let session = Session::begin("id".into(), Some(name.to_owned()), now);
        let cookie = session.cookie(&key);
        assert_eq!(Session::claimed_access_key(&cookie).as_deref(), Some(name));
        assert_eq!(Session::read(&cookie, &key, now), Some(session));
        assert_eq!(Session::read(&cookie, &SessionKey::of_access_key(&shared, &[8; 32]), now), None, "another key of this name");
        assert_eq!(Session::read(&cookie, &SessionKey::of(&shared, &"t".to_owned().into()), now), None, "the token");
    }
    let of_token = Session::begin("id".into(), None, now).cookie(&self::key(1, "t"));
    assert_eq!(Session::claimed_access_key(&of_token), None);
}

#[test]
fn session_ends_when_idle_and_at_maximum_age() {
    let (now, key) = (start(), key(1, "t"));
    let mut session = Session::begin("id".into(), None, now);
    let cookie = session.cookie(&key);
    assert!(Session::read(&cookie, &key, now + MAX_IDLE - TimeDelta::seconds(1)).is_some());
    assert_eq!(Session::read(&cookie, &key, now + MAX_IDLE), None);
    assert!(Session::read(&cookie, &key, now - TimeDelta::hours(1)).is_some(), "the clock of this instance is behind");
    assert_eq!(session.renewed(now + TimeDelta::minutes(9)), None, "the cookie is recent");
    let mut at = now;
    while let Some(read) = Session::read(&session.cookie(&key), &key, at) {
        assert_eq!(read.remaining(at), now + MAX_SESSION_AGE - at);
        session = read.renewed(at).unwrap_or(read);
        at += TimeDelta::hours(6);
    }
    assert_eq!(at, now + MAX_SESSION_AGE, "a session in use ends too");
    assert_eq!(session.identity().1, now, "the begin stays");
}

#[test]
fn changed_cookie_is_rejected() {
    let (now, key) = (start(), key(1, "t"));
    let cookie = Session::begin("id".into(), None, now).cookie(&key);
    for at in 0..cookie.len() {
        for byte in *b"0A.~" {
            let mut changed = cookie.clone().into_bytes();
            changed[at] = byte;
            let changed = String::from_utf8(changed).expect("ASCII");
            if changed != cookie {
                // The last character of the signature has bits that decode to nothing.
                let read = Session::read(&changed, &key, now);
                assert!(read.is_none() || at + 1 == cookie.len(), "{changed}");
            }
        }
    }
    for text in ["", ".", "...", "id.1.2.3", &"x".repeat(10_000), &format!("{cookie}.{cookie}")] {
        assert_eq!(Session::read(text, &key, now), None, "{text}");
    }
}

#[test]
fn debug_output_hides_secrets() {
    let session = Session::begin("the-id".into(), None, start());
    assert!(!format!("{session:?}").contains("the-id"));
    assert!(!session.identity().0.contains("the-id"));
}
