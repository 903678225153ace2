//! `notify replay`: sends the messages of a time range again.

use super::*;

const RANGE: &str = "--since 2026-03-01T00:00:00Z --until 2026-03-01T00:30:00Z";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn message_is_sent_again_once_with_its_id() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    let workdir = &fixture.workdir;
    let at = |time: &str, line: &str| workdir.run(&format!("--now {time} {line}"));
    at(BEGIN, "poll").ok();
    let sent = fixture.hook.accepted();
    assert_eq!(sent.len(), 1, "{sent:#?}");

    let later = "2026-03-01T01:00:00Z";
    let replay = format!("notify replay ops {RANGE}");
    let shown = at(later, &format!("{replay} --dry-run")).ok();
    assert!(shown.contains("1 message to ops, queued from 1 Mar 2026, 00:00 UTC"), "{shown}");
    let rows = at(later, "outbox list --format json").json();
    assert_eq!((&rows[0]["state"], &rows[0]["replay"]), (&json!("delivered"), &Value::Null), "a dry run sends nothing");

    // Two requests at the same time.
    let both = [workdir.start(&format!("--now {later} {replay}"), &[]), workdir.start(&format!("--now {later} {replay}"), &[])];
    for mut requested in both {
        assert!(wait(&mut requested.child).success(), "{}", requested.log());
    }
    let rows = at(later, "outbox list --format json").json();
    assert_eq!((&rows[0]["state"], &rows[0]["replay"]["requestedAt"]), (&json!("due"), &json!(later)), "{rows:#}");
    at("2026-03-01T01:00:10Z", "poll").ok();
    let again = fixture.hook.accepted();
    assert_eq!(again.len(), 2, "once: {again:#?}");
    assert_eq!(again[0].0, again[1].0, "the webhook id stays the same");
    let note = again[1].1["data"]["note"].as_str().unwrap_or_default();
    assert!(note.starts_with("Replay of a message of 1 Mar 2026, 00:00 UTC, first delivered at"), "{note}");

    let recent = at("2026-03-01T01:05:00Z", &replay).ok();
    assert!(recent.contains("0 messages to ops") && recent.contains("1 message replayed just before"), "{recent}");
    let json = at("2026-03-01T01:05:00Z", &format!("{replay} --dry-run --again --format json")).json();
    assert_eq!((&json["deliveries"], &json["recentlyReplayed"]), (&json!(1), &json!(0)), "{json:#}");

    let why = at("2026-03-01T01:05:00Z", "outbox why").ok();
    assert!(
        why.contains("a replay of the message delivered at 1 Mar 2026, 00:00 UTC, requested at 1 Mar 2026, 01:00 UTC"),
        "{why}"
    );
    let explained = at("2026-03-01T01:05:00Z", "explain BigCliffAhead alpha").ok();
    assert!(explained.contains("a replay of the message delivered"), "{explained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_explained() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    fixture.workdir.run(&format!("--now {BEGIN} poll")).ok();
    for (line, said) in [
        ("notify replay opps --since 2026-03-01", "did you mean \"ops\"?"),
        ("notify replay ops --since 2026-03-01 --until 2026-02-01", "is not before the end of the range"),
        ("notify replay ops", "--since"),
        ("notify", "RECEIVER"),
    ] {
        let ran = fixture.workdir.run(line);
        assert_eq!((ran.code(), ran.err.contains(said)), (2, true), "{line}: {}", ran.err);
    }
}
