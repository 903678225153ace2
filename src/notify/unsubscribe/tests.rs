use super::*;

fn subscriber(receiver: &str, address: &str) -> Subscriber {
    Subscriber { receiver: receiver.into(), address: address.into() }
}

#[test]
fn link_identifies_its_recipient_without_the_address() {
    let key = LinkKey::new([7; 32]);
    let all = [
        subscriber("desk", "a@example.com"),
        subscriber("desk", "b@example.com"),
        subscriber("risk", "a@example.com"),
        subscriber("des", "ka@example.com"),
    ];
    let mut links = Vec::new();
    for one in &all {
        let link = link("https://cliffwatch.example.com/below/", &key, one).expect("a link");
        let tag = link.strip_prefix("https://cliffwatch.example.com/below/unsubscribe/").expect("our path");
        assert!(!link.contains("example.com/a") && !tag.contains('@') && tag.len() == 22, "{link}");
        assert_eq!(owner(&key, tag, &all), Some(one));
        assert_eq!(owner(&LinkKey::new([8; 32]), tag, &all), None, "a link with another key");
        links.push(link);
    }
    links.dedup();
    assert_eq!(links.len(), 4);
}

#[test]
fn modified_tag_has_no_owner() {
    let key = LinkKey::new([7; 32]);
    let all = [subscriber("desk", "a@example.com")];
    let good = tag(&key, &all[0]);
    for at in 0..good.len() {
        let mut bad: Vec<char> = good.chars().collect();
        bad[at] = if bad[at] == 'A' { 'B' } else { 'A' };
        assert_eq!(owner(&key, &bad.into_iter().collect::<String>(), &all), None, "letter {at}");
    }
    for bad in ["", "A", &good[..21], &format!("{good}A"), &"A".repeat(10_000), "../../etc/passwd"] {
        assert_eq!(owner(&key, bad, &all), None, "{bad:?}");
    }
}

#[test]
fn only_mail_receivers_with_a_digest_have_subscribers() {
    let mail = |digest| config::ReceiverSettings {
        name: "desk".into(),
        kind: ReceiverKind::Email,
        to: vec!["Desk <Desk@Example.com>".into(), "risk@example.com".into()],
        digest,
        ..Default::default()
    };
    let digest = Some(config::DigestSettings { at: "08:00".into(), ..Default::default() });
    let found = subscribers(&[mail(digest), mail(None)]);
    assert_eq!(found, [subscriber("desk", "desk@example.com"), subscriber("desk", "risk@example.com")]);
}
