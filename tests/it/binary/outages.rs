//! Outages of the source and of receivers, and the demo.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_poll_is_distinct_from_an_empty_response() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    // All polls fail: an empty list is printed with the reason.
    fixture.faults.set("", Fault::status(500));
    let daemon = fixture.workdir.start("run", &[]);
    let address = daemon.address();
    fixture.until_notified("source SourceTrouble", &daemon);
    let ran = fixture.workdir.run("upcoming");
    assert!(ran.err.contains("all polls of the source failed"), "{}", ran.err);
    let up = async || {
        get(&address, "/metrics").await.lines().find_map(|line| line.strip_prefix("cliffwatch_source_up ").map(str::to_owned))
    };
    until_async("the metric says so", async || up().await.as_deref() == Some("0")).await;
    assert!(get(&address, "/metrics").await.contains("cliffwatch_polls_total{endpoint=\"token_list\",outcome=\"server_error\"}"));
    let status = fixture.workdir.run("status").ok();
    assert!(status.contains("source    DOWN") && status.contains("incident"), "{status}");
    let status: Value = serde_json::from_str(&get(&address, "/api/v1/status").await).expect("JSON");
    assert_eq!(status["sourceUp"], false, "{status:#}");
    assert!(get(&address, "/").await.contains("The source responds with server errors"), "the page describes the incident");

    // The source recovers with an empty response, which is printed differently.
    fixture.faults.clear();
    fixture.service.edit(|edit| edit.put_events("alpha", Vec::new())).expect("edited");
    until(
        "the recovery",
        || fixture.hook.accepted().iter().any(|(_, body)| body["type"] == "source" && body["data"]["status"] == "resolved"),
        || daemon.log(),
    );
    // The list of tokens recovers first, and until the schedule is read, nothing is known about it.
    let upcoming = || fixture.workdir.run("upcoming");
    until("the empty schedule", || upcoming().err.contains("no matches in the data of the source"), || upcoming().err);
    assert_eq!(upcoming().code(), 0);
    assert_eq!(daemon.stop().code(), 0);
}

/// Replaces the slots of polls by one in January, so that only retries poll after the start.
fn poll_once_a_year(fixture: &Fixture, more: &str) {
    fixture.configure("");
    let config = fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read");
    let config =
        config.replace("\"* * * * * *\"", "\"0 0 0 1 1 *\"").replace("evaluate = \"0 0 0 1 1 *\"", "evaluate = \"* * * * * *\"");
    fixture.workdir.write("cliffwatch.toml", &config.replace("[source]\n", &format!("[source]\n{more}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_first_poll_does_not_wait_for_the_next_slot() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    poll_once_a_year(&fixture, "");
    fixture.faults.set("", Fault::status(500));
    let daemon = fixture.workdir.start("run", &[]);
    fixture.until_notified("source SourceTrouble", &daemon);
    fixture.faults.clear();
    fixture.until_notified("BigCliffAhead", &daemon);
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_then_wrong_then_right_key_is_used_at_once() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Keys).await;
    poll_once_a_year(&fixture, "api_key_file = \"key\"\n");
    let daemon = fixture.workdir.start("run", &[]);
    daemon.until_log("cannot read the API key from");
    let notified = fixture.until_notified("source SourceTrouble", &daemon);
    assert!(notified.iter().any(|line| line.contains("The API key cannot be used, so no request was sent")), "{notified:#?}");
    assert!(!daemon.log().contains("rejected"), "{}", daemon.log());
    fixture.workdir.write("key", "wrong\n");
    daemon.until_log("the key from source.api_key_file was rejected");
    fixture.workdir.write("key", &format!("{}\n", fixture.key));
    fixture.until_notified("BigCliffAhead", &daemon);
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_polls_what_failed_before() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    poll_once_a_year(&fixture, "");
    fixture.faults.set("", Fault::status(500));
    let daemon = fixture.workdir.start("run", &[]);
    fixture.until_notified("source SourceTrouble", &daemon);
    assert_eq!(daemon.stop().code(), 0);
    fixture.faults.clear();
    let daemon = fixture.workdir.start("run", &[]);
    fixture.until_notified("BigCliffAhead", &daemon);
    assert_eq!(daemon.stop().code(), 0);
}

pub(super) async fn until_async(what: &str, is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}: not in {WAIT_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_and_rate_limiting_receivers_delay_no_other_receiver() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let ending = CancellationToken::new();
    // Accepts connections and never responds.
    let hung = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let hung_address = hung.local_addr().expect("bound");
    let (storm, storm_address) = Hook::start(ending.clone()).await;
    storm.respond_always(Some(429));
    fixture.configure(&format!(
        r#"
[[receiver]]
name = "hung"
type = "webhook"
url = "http://{hung_address}/hook"
[[receiver]]
name = "storm"
type = "webhook"
url = "http://{storm_address}/hook"
[[route.routes]]
matchers = ['alertname=~".+"']
receivers = ["hung", "storm", "ops"]
[delivery]
max_per_hour = 10000 # one message per alert, including the first
"#
    ));
    fixture
        .service
        .edit(|edit| {
            for n in 0..20 {
                let id = format!("token-{n:02}");
                edit.put_token(&item(&id, &id))?;
                edit.put_events(&id, vec![cliff(&wire(from_now(5)), "Team", 2e6, "second")])?;
            }
            Ok(())
        })
        .expect("edited");
    let daemon = fixture.workdir.start("run", &[]);
    let notified = || lines(&fixture.hook.accepted().into_iter().map(|(_, body)| body).collect::<Vec<_>>());
    let ahead = || notified().iter().filter(|line| line.contains("BigCliffAhead")).count();
    until("all notifications", || ahead() == 21, || format!("{:#?}\n{}", notified(), daemon.log()));
    let rows = |state: &str, name: &str| {
        fixture
            .workdir
            .run(&format!("outbox list --limit 100 --receiver {name} --state {state} --format json"))
            .json()
            .as_array()
            .map_or(0, Vec::len)
    };
    // A delivery is recorded shortly after the receiver accepts it.
    until("all deliveries are recorded", || rows("delivered", "ops") == 21, || daemon.log());
    // An attempt to the hung receiver takes 15 s. The other deliveries did not wait for it.
    assert_eq!(rows("due", "hung"), 21, "{}", daemon.log());
    assert!(rows("retrying", "storm") > 0 && rows("dead", "storm") == 0, "a 429 is retried");
    drop(daemon);
    drop(hung);
    ending.cancel();
}

#[test]
fn demo_notifies_unlocks_and_corrections_and_removes_its_folder() {
    let workdir = Workdir::new();
    workdir.write("none", "");
    let temporary = workdir.path("tmp");
    fs::create_dir(&temporary).expect("a folder");
    let mut demo = workdir.start("demo", &[("TMPDIR", temporary.to_str().expect("UTF-8"))]);
    let out = demo.base.with_extension("out");
    let said = || fs::read_to_string(&out).unwrap_or_default();
    let parts = [
        "web pages",
        "CliffAhead",
        "s  mail  ",
        "source corrects its data",
        "ScheduleMoved",
        "UnlockResized",
        "BigBurn",
        "Buyback",
    ];
    until("the demo", || parts.iter().all(|part| said().contains(part)), || format!("{}\n{}", said(), demo.log()));
    demo.signal("INT");
    assert_eq!(wait(&mut demo.child).code(), Some(0), "{}", demo.log());
    assert_eq!(fs::read_dir(&temporary).expect("listed").count(), 0, "the demo removes its folder");
    let said = said();
    let mails = said.lines().filter(|line| line.contains("s  mail  ")).count();
    let last = said.lines().last().unwrap_or_default();
    let counted = if mails == 1 { ", 1 message by mail.".to_owned() } else { format!(", {mails} messages by mail.") };
    assert!(last.starts_with("The demo has ended: ") && last.ends_with(&counted), "{mails} mails: {last}");
}
