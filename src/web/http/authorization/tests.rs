use super::*;

#[test]
fn compares_the_whole_token() {
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
fn state_changing_requests_are_never_reads() {
    for (method, path, kind) in [
        ("GET", "/", RequestKind::Read),
        ("HEAD", "/alerts", RequestKind::Read),
        ("GET", "/-/reload", RequestKind::Api(AccessRole::Admin)),
        ("POST", "/-/reload", RequestKind::Api(AccessRole::Admin)),
        ("POST", "/api/v1/silences", RequestKind::Api(AccessRole::Act)),
        ("DELETE", "/api/v1/silences/si_1", RequestKind::Api(AccessRole::Act)),
        ("POST", "/calendar.ics", RequestKind::Api(AccessRole::Act)),
        ("DELETE", "/events", RequestKind::Api(AccessRole::Act)),
        ("PUT", "/api/v1/none", RequestKind::Api(AccessRole::Act)),
        ("POST", "/alerts/al_1/acknowledge", RequestKind::Form(FormKind::Change(AccessRole::Act))),
        ("POST", "/", RequestKind::Form(FormKind::Change(AccessRole::Act))),
        ("DELETE", "/alerts", RequestKind::Form(FormKind::Change(AccessRole::Act))),
        ("POST", "/logout", RequestKind::Form(FormKind::Change(AccessRole::View))),
        ("POST", "/rules/new", RequestKind::Form(FormKind::Change(AccessRole::Admin))),
        ("POST", "/rules/playground", RequestKind::Form(FormKind::Trial)),
        ("GET", "/rules/playground", RequestKind::Read),
        ("POST", "/silences/preview", RequestKind::Form(FormKind::Trial)),
        ("POST", "/silences", RequestKind::Form(FormKind::Change(AccessRole::Act))),
        ("POST", "/login", RequestKind::Form(FormKind::Login)),
        ("GET", "/login", RequestKind::LoginPage),
        ("POST", "/login/", RequestKind::Form(FormKind::Change(AccessRole::Act))),
    ] {
        assert_eq!(RequestKind::of(&method.parse().expect("a method"), path), kind, "{method} {path}");
    }
}
