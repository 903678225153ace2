use super::*;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn private_addresses_are_recognized_in_every_form() {
    for text in [
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "0.0.0.0",
        "0.1.2.3",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "192.0.0.8",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "::ffff:0:10.0.0.1",
        "::ffff:0:127.0.0.1",
        "2606:4700::5efe:192.168.0.1",
        "2606:4700::200:5efe:10.0.0.1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "fe80::1",
        "fc00::1",
        "fd12:3456::1",
        "ff02::1",
        "2002:0a00:0001::",
        "2001:db8::1",
        "fec0::1",
        "64:ff9b:1::808:808",
        "3fff:fff::1",
    ] {
        assert!(is_private(address(text)), "{text} is private");
    }
    for text in [
        "1.1.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "64:ff9b::1.1.1.1",
        "::ffff:0:1.1.1.1",
        "2606:4700::5efe:1.1.1.1",
    ] {
        assert!(!is_private(address(text)), "{text} is public");
    }
}

#[test]
fn only_listed_private_networks_are_allowed() {
    let network = |text: &str| text.parse::<Network>().expect("a network");
    let guard = Guard::new(vec![network("10.1.0.0/16"), network("fd00::/8"), network("192.168.1.7")]);
    for (text, admitted) in [
        ("10.1.255.255", true),
        ("::ffff:10.1.0.1", true),
        ("10.2.0.1", false),
        ("fd12::1", true),
        ("fe80::1", false),
        ("192.168.1.7", true),
        ("192.168.1.8", false),
        ("8.8.8.8", true),
        ("127.0.0.1", false),
    ] {
        assert_eq!(guard.admit(address(text), false).is_ok(), admitted, "{text}");
    }
    assert!(Guard::default().admit(address("127.0.0.1"), true).is_ok());
    assert!(Guard::default().admit(address("10.0.0.1"), true).is_err());
    assert!(network("0.0.0.0/0").contains(address("10.0.0.1")));
    assert!(network("::/0").contains(address("fe80::1")));
}

#[test]
fn invalid_network_error_has_an_example() {
    for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "ten", "10.0.0.0/-1", "10.0.0.0/8/8"] {
        let error = text.parse::<Network>().expect_err(text);
        assert!(error.contains("example: "), "{error}");
    }
}

#[tokio::test]
async fn only_localhost_may_resolve_to_loopback() {
    let guard = Guard::default();
    let resolved = guard.resolve("localhost".parse().expect("a name")).await.expect("localhost resolves");
    assert!(resolved.count() > 0);
    // An address literal resolves to itself without a name server.
    let Err(error) = guard.resolve("127.0.0.1".parse().expect("a name")).await else { panic!("it was admitted") };
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
    assert!(error.downcast_ref::<Forbidden>().is_some());
}
