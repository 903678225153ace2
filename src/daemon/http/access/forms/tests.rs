use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
}

#[test]
fn a_form_of_another_page_is_from_elsewhere() {
    let external = Url::parse("https://cliffwatch.example.com/").ok();
    let host = ("host", "localhost:9797");
    for (given, elsewhere) in [
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
        assert_eq!(is_from_elsewhere(&headers(given), external.as_ref()), elsewhere, "{given:?}");
    }
}

#[test]
fn a_form_needs_the_key_of_its_visitor() {
    let visitor = |key: Option<&str>| Visitor { form_key: key.map(str::to_owned), is_logged_in: true, has_login: true };
    let admit = |body: &str, key| {
        super::admit(&FormFields::read(body.as_bytes()), FormKind::Change, &visitor(key), &HeaderMap::new(), None)
    };
    assert_eq!(admit("csrf=abc&x=1", Some("abc")), Ok(()));
    assert_eq!(admit("csrf=abd&x=1", Some("abc")), Err(FormRefusal::Stale));
    assert_eq!(admit("x=1", Some("abc")), Err(FormRefusal::Stale));
    assert_eq!(admit("csrf=&x=1", None), Err(FormRefusal::NotLoggedIn));
}

#[test]
fn who_has_not_logged_in_may_try_and_change_nothing() {
    let visitor = Visitor { form_key: Some("abc".into()), ..Visitor::default() };
    let admit = |kind| super::admit(&FormFields::read(b"csrf=abc"), kind, &visitor, &HeaderMap::new(), None);
    assert_eq!(admit(FormKind::Trial), Ok(()));
    assert_eq!(admit(FormKind::Change), Err(FormRefusal::NotLoggedIn));
}

#[test]
fn fields_are_read_in_their_order() {
    let fields = FormFields::read(b"matcher=a%3Db&matcher=c+d&text=+x%0A&broken=%ff");
    assert_eq!(fields.text("matcher"), "a=b", "the first");
    assert_eq!((fields.text("text"), fields.whole("text"), fields.text("none")), ("x", " x\n", ""));
    assert_eq!(fields.text("broken"), "\u{fffd}");
}

#[test]
fn after_a_login_one_stays_here() {
    for good in ["/", "/alerts/al_1?state=firing&x=%2F#top"] {
        assert_eq!(local_path(good), good);
    }
    for bad in ["", "alerts", "//evil.example", "/\\evil.example", "https://evil.example/", "/a b", "/a\r\nx: y", "/é"] {
        assert_eq!(local_path(bad), "/", "{bad:?}");
    }
}
