use super::*;

#[test]
fn a_token_is_compared_whole() {
    let token: SecretText = "abc".to_owned().into();
    for (given, is_good) in [
        ("Bearer abc", true),
        ("bearer abc", true),
        ("Bearer ab", false),
        ("Bearer abcd", false),
        ("abc", false),
        ("Basic abc", false),
        ("Bearer ", false),
    ] {
        let given = Scheme::Bearer.token(given).unwrap_or_default();
        assert_eq!(is_token(&given, Some(&token)), is_good, "{given}");
    }
    assert!(!is_token("", None) && !is_token("abc", None));
    assert!(!is_token("", Some(&String::new().into())));
}

#[test]
fn what_changes_something_never_enters_by_the_door_of_those_who_look() {
    for (method, path, door) in [
        ("GET", "/", Door::Look),
        ("HEAD", "/alerts", Door::Look),
        ("GET", "/-/reload", Door::Program),
        ("POST", "/-/reload", Door::Program),
        ("POST", "/api/silences", Door::Program),
        ("DELETE", "/api/silences/si_1", Door::Program),
        ("PUT", "/api/none", Door::Program),
        ("POST", "/alerts/al_1/acknowledge", Door::Form(FormKind::Change)),
        ("POST", "/", Door::Form(FormKind::Change)),
        ("DELETE", "/alerts", Door::Form(FormKind::Change)),
        ("POST", "/logout", Door::Form(FormKind::Change)),
        ("POST", "/rules/playground", Door::Form(FormKind::Trial)),
        ("GET", "/rules/playground", Door::Look),
        ("POST", "/silences/preview", Door::Form(FormKind::Trial)),
        ("POST", "/silences", Door::Form(FormKind::Change)),
        ("POST", "/login", Door::Login),
        ("GET", "/login", Door::Login),
        ("POST", "/login/", Door::Form(FormKind::Change)),
    ] {
        assert_eq!(Door::of(&method.parse().expect("a method"), path), door, "{method} {path}");
    }
}
