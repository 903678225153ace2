use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
}

#[test]
fn detects_cross_site_forms() {
    let external = Url::parse("https://cliffwatch.example.com/").ok();
    let host = ("host", "localhost:9797");
    for (given, is_cross) in [
        (&[host][..], false),
        (&[host, ("origin", "http://localhost:9797")], false),
        (&[host, ("origin", "https://cliffwatch.example.com")], false),
        (&[host, ("origin", "http://localhost:9797"), ("sec-fetch-site", "same-origin")], false),
        (&[host, ("sec-fetch-site", "same-origin")], false),
        (&[host, ("origin", "http://localhost:8080")], true),
        (&[host, ("origin", "https://evil.example")], true),
        (&[host, ("origin", "https://cliffwatch.example.com.evil.example")], true),
        (&[host, ("origin", "null")], true),
        (&[host, ("origin", "")], true),
        (&[("origin", "http://")], true),
        (&[host, ("sec-fetch-site", "cross-site")], true),
        (&[host, ("sec-fetch-site", "same-site"), ("origin", "http://localhost:9797")], true),
        (&[host, ("sec-fetch-site", "none")], true),
    ] {
        assert_eq!(is_cross_site(&headers(given), external.as_ref()), is_cross, "{given:?}");
    }
}

#[test]
fn rejects_form_without_valid_csrf_token() {
    let visitor = |token: Option<&str>| Visitor {
        csrf_token: token.map(str::to_owned),
        user: Some(User { role: AccessRole::Act, ..User::with_token() }),
        has_login: true,
        ..Visitor::default()
    };
    let check = |body: &str, token| {
        super::check(
            &FormFields::parse(body.as_bytes()),
            FormKind::Change(AccessRole::Act),
            &visitor(token),
            &HeaderMap::new(),
            None,
        )
    };
    assert_eq!(check("csrf=abc&x=1", Some("abc")), Ok(()));
    assert_eq!(check("csrf=abd&x=1", Some("abc")), Err(FormError::Expired));
    assert_eq!(check("x=1", Some("abc")), Err(FormError::Expired));
    assert_eq!(check("csrf=&x=1", None), Err(FormError::NotLoggedIn));
}

#[test]
fn visitor_without_session_can_preview_but_not_change() {
    let visitor = Visitor { csrf_token: Some("abc".into()), ..Visitor::default() };
    let check = |kind| super::check(&FormFields::parse(b"csrf=abc"), kind, &visitor, &HeaderMap::new(), None);
    assert_eq!(check(FormKind::Trial), Ok(()));
    assert_eq!(check(FormKind::Change(AccessRole::View)), Err(FormError::NotLoggedIn));
}

#[test]
fn form_needs_a_sufficient_role() {
    for role in AccessRole::ALL {
        let user = User { role, ..User::with_token() };
        let visitor = Visitor { csrf_token: Some("abc".into()), user: Some(user.clone()), ..Visitor::default() };
        for required in AccessRole::ALL {
            let kind = FormKind::Change(required);
            let checked = super::check(&FormFields::parse(b"csrf=abc"), kind, &visitor, &HeaderMap::new(), None);
            let expected = if role >= required { Ok(()) } else { Err(FormError::Role(user.clone(), required)) };
            assert_eq!(checked, expected, "{role} for {required}");
        }
    }
}

#[test]
fn returns_the_first_value_of_a_field() {
    let fields = FormFields::parse(b"matcher=a%3Db&matcher=c+d&text=+x%0A&broken=%ff");
    assert_eq!(fields.text("matcher"), "a=b");
    assert_eq!((fields.text("text"), fields.raw("text"), fields.text("none")), ("x", " x\n", ""));
    assert_eq!(fields.text("broken"), "\u{fffd}");
}

#[test]
fn local_path_rejects_other_sites() {
    for good in ["/", "/alerts/al_1?state=firing&x=%2F#top"] {
        assert_eq!(local_path(good), good);
    }
    for bad in ["", "alerts", "//evil.example", "/\\evil.example", "https://evil.example/", "/a b", "/a\r\nx: y", "/é"] {
        assert_eq!(local_path(bad), "/", "{bad:?}");
    }
}
