use super::*;

fn time(text: &str) -> Timestamp {
    crate::wire::parse_timestamp(text).expect("a time")
}

#[test]
fn a_digest_reads_as_plain_text_and_hostile_names_stay_on_their_lines() {
    let unlock = |symbol: &str, value| AheadLine {
        token: "x".into(),
        symbol: symbol.into(),
        at: time("2026-03-16T13:00:00Z"),
        when: "on 16 Mar 2026, 13:00 UTC".into(),
        value,
        amount: Some(92_650_000.0),
        share: value.map(|_| 2.3),
    };
    let digest = Digest {
        since: time("2026-03-08T07:00:00Z"),
        at: time("2026-03-09T07:00:00Z"),
        until: time("2026-03-16T07:00:00Z"),
        ahead: vec![unlock("ARB", Some(96_100_000.0)), unlock("EV\nIL", None)],
        ahead_left_out: 0,
        changes: vec![ChangedLine {
            at: time("2026-03-08T12:00:00Z"),
            token: "aptos".into(),
            symbol: "APT".into(),
            text: "APT: the unlock of 12 Mar 2026 moved by +4 days".into(),
        }],
        changes_left_out: 2,
        held_back: vec![SuppressedLine {
            state: NotificationState::Silenced,
            rule: "Big".into(),
            summary: "SUI: $5.0M unlocks".into(),
        }],
        held_back_left_out: 0,
        silences: vec![SilencedLine {
            matchers: "token=\"sui\"".into(),
            until: time("2026-03-10T18:00:00Z"),
            author: "ann".into(),
            comment: "known\r\nto the exchange".into(),
        }],
        silences_left_out: 0,
        firing: 1,
        trouble: vec!["The source does not answer in time".into()],
    };
    insta::assert_snapshot!(format!("{}\n\n{}", digest.summary(), digest.text()));
    let notice = digest.notice(&"desk".into(), digest.at);
    assert_eq!(notice.id, digest.notice(&"desk".into(), digest.until).id, "the same slot is the same message");
    assert_eq!(serde_json::from_value::<Digest>(notice.body.record.expect("a record")).expect("reads"), digest);
}
