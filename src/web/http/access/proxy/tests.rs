use super::*;

fn proxies() -> TrustedProxies {
    let settings = HttpSettings {
        user_header: Some("X-Forwarded-User".into()),
        trusted_proxies: vec!["10.0.0.0/8".into(), "192.168.1.7".into(), "::1".into()],
        user_role: AccessRole::Act,
        ..HttpSettings::default()
    };
    TrustedProxies::of(&settings).expect("proxies")
}

fn headers(values: &[&str]) -> HeaderMap {
    values.iter().map(|value| (HeaderName::from_static("x-forwarded-user"), value.parse().expect("a value"))).collect()
}

#[test]
fn only_trusted_proxies_name_users() {
    let user = |peer: &str, values: &[&str]| proxies().user(peer.parse().expect("an address"), &headers(values));
    let actor = Actor { name: "ann".into(), via: ActorSource::Proxy };
    let ann = || Some(ProxyUser::Named(User { actor: actor.clone(), role: AccessRole::Act }));
    assert_eq!(user("10.1.2.3", &["ann"]), ann());
    assert_eq!(user("10.1.2.3", &[" ann "]), ann());
    assert_eq!(user("::ffff:10.1.2.3", &["ann"]), ann(), "an IPv4 address of a socket for both");
    assert_eq!(user("::1", &["ann"]), ann());
    assert_eq!(user("192.168.1.7", &["ann"]), ann(), "a single address");
    assert_eq!(user("127.0.0.1", &["ann"]), None, "not a proxy");
    assert_eq!(user("192.168.1.8", &["ann"]), None, "not a proxy");
    assert_eq!(user("192.0.2.1", &["ann"]), None, "not a proxy");
}

#[test]
fn header_without_a_user_or_with_several_names_none() {
    let user = |values: &[&str]| proxies().user("10.1.2.3".parse().expect("an address"), &headers(values));
    let long = "x".repeat(MAX_AUTHOR + 1);
    for values in [&[][..], &[""], &["  "], &["ann", "bob"], &[long.as_str()]] {
        assert_eq!(user(values), Some(ProxyUser::Unnamed), "{values:?}");
    }
}

#[test]
fn config_without_header_or_proxies_trusts_none() {
    let header = HttpSettings { user_header: Some("X-User".into()), ..HttpSettings::default() };
    let networks = HttpSettings { trusted_proxies: vec!["10.0.0.0/8".into()], ..HttpSettings::default() };
    for settings in [HttpSettings::default(), header, networks] {
        assert_eq!(TrustedProxies::of(&settings), None);
    }
}
