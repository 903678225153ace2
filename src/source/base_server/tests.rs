use std::sync::Arc;

use super::*;

fn networks(texts: &[&str]) -> Result<Vec<IpNet>, String> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    private_networks(&texts).map_err(|error| error.to_string())
}

#[test]
fn http_is_only_allowed_in_private_networks() {
    for good in
        ["10.0.0.0/8", "10.1.2.0/24", "192.168.7.7", "172.16.0.0/12", "100.64.0.0/10", "fd00::/8", "fe80::1", "127.0.0.1/32"]
    {
        assert!(networks(&[good]).is_ok(), "{good}");
    }
    for bad in ["0.0.0.0/0", "8.8.8.0/24", "172.0.0.0/8", "::/0", "2001:db8::/32", "ten", "", "10.0.0.0/33"] {
        assert!(networks(&[bad]).is_err_and(|error| error.contains("not a private network")), "{bad}");
    }
}

#[test]
fn addresses_are_checked_at_once_and_names_when_resolved() {
    let ten = networks(&["10.0.0.0/8", "fd00::/8"]).unwrap();
    for (host, is_plain) in [
        ("10.1.2.3", true),
        ("[fd00::7]", true),
        ("[::ffff:10.1.2.3]", true),
        ("11.1.2.3", false),
        ("192.168.0.1", false),
        ("[2001:db8::1]", false),
        ("mirror.internal", true),
    ] {
        assert_eq!(allows_http(host, &ten), is_plain, "{host}");
        assert!(!allows_http(host, &[]), "{host}: no network is allowed");
    }
}

#[tokio::test]
async fn name_that_resolves_elsewhere_is_rejected() {
    let resolve = async |name: &str, allowed: &[&str]| {
        let names = PrivateNames(Arc::from(networks(allowed).unwrap()));
        let found = names.resolve(name.parse().unwrap()).await.map_err(|error| error.to_string());
        found.map(|addresses| addresses.map(|address| address.ip()).collect::<Vec<_>>())
    };
    let here = resolve("localhost", &["127.0.0.0/8", "::1/128"]).await.unwrap();
    assert!(!here.is_empty() && here.iter().all(IpAddr::is_loopback), "{here:?}");
    let refused = resolve("localhost", &["10.0.0.0/8"]).await.unwrap_err();
    assert!(refused.contains("allow_http_networks"), "{refused}");
}
