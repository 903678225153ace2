//! Receivers that choose message types.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unwanted_type_is_not_sent_and_shown_as_not_wanted() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    let hook = fixture.hook_address;
    fixture.configure(&format!(
        "[[route.routes]]\nmatchers = ['alertname=\"BigCliffAhead\"']\nreceivers = [\"few\", \"ops\"]\n\
         [[receiver]]\nname = \"few\"\ntype = \"webhook\"\nurl = \"http://{hook}/hook\"\ntypes = [\"alert.reminder\", \"source\"]\n"
    ));
    let workdir = &fixture.workdir;
    let at = |time: &str, line: &str| workdir.run(&format!("--now {time} {line}"));
    at(BEGIN, "poll").ok();
    let of = |receiver: &str, kind: &str| {
        let is_it = |body: &Value| body["data"]["receiver"] == receiver && body["type"] == kind;
        fixture.hook.accepted().iter().filter(|(_, body)| is_it(body)).count()
    };
    assert_eq!((of("ops", "alert.firing"), of("few", "alert.firing")), (1, 0));
    let rows = at(BEGIN, "outbox why --receiver few --format json").json();
    assert_eq!((&rows[0]["state"], &rows[0]["holder"]), (&json!("unwanted"), &json!("alert.firing")), "{rows:#}");
    assert_eq!(rows[0]["because"], "its `types` do not include alert.firing");
    let explained = at(BEGIN, "explain BigCliffAhead alpha").ok();
    assert!(explained.contains("not wanted by few: its `types` do not include alert.firing"), "{explained}");
    assert!(explained.contains("wants only messages of the types alert.reminder, source"), "{explained}");
    // The next lead time is a reminder, which both want.
    at("2026-03-15T12:00:00Z", "poll").ok();
    assert_eq!((of("ops", "alert.reminder"), of("few", "alert.reminder")), (1, 1));
    at(BEGIN, "notify few").ok();
    assert_eq!(of("few", "test"), 1, "a test is always sent");
}
