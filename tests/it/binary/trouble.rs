//! When the source or a receiver cannot be reached; and the demo, where everything can.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn could_not_ask_never_looks_like_nothing_there() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    // Nobody answers yet: empty lists say why they are empty.
    room.faults.set("", Fault::status(500));
    let daemon = room.desk.start("run", &[]);
    let address = daemon.address();
    room.until_told("source SourceTrouble", &daemon);
    let ran = room.desk.run("upcoming");
    assert!(ran.err.contains("never answered"), "{}", ran.err);
    let up = async || {
        get(&address, "/metrics").await.lines().find_map(|line| line.strip_prefix("cliffwatch_source_up ").map(str::to_owned))
    };
    until_async("the metric says so", async || up().await.as_deref() == Some("0")).await;
    assert!(get(&address, "/metrics").await.contains("cliffwatch_polls_total{endpoint=\"token_list\",outcome=\"server_error\"}"));
    let status = room.desk.run("status").ok();
    assert!(status.contains("source    DOWN") && status.contains("trouble"), "{status}");
    let status: Value = serde_json::from_str(&get(&address, "/api/status").await).expect("JSON");
    assert_eq!(status["sourceUp"], false, "{status:#}");
    assert!(get(&address, "/").await.contains("The source answers with errors of its own"), "the page names the trouble");

    // It comes back: the answer is empty, which is another thing.
    room.faults.clear();
    room.service.edit(|edit| edit.put_events("alpha", Vec::new())).expect("edited");
    until(
        "the recovery",
        || room.hook.accepted().iter().any(|(_, body)| body["type"] == "source" && body["data"]["status"] == "resolved"),
        || daemon.log(),
    );
    let ran = room.desk.run("upcoming");
    assert_eq!(ran.code(), 0);
    assert!(ran.err.contains("the source was read"), "{}", ran.err);
    assert_eq!(daemon.stop().code(), 0);
}

async fn until_async(what: &str, is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}: not in {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_receiver_and_a_storm_of_429_delay_nobody_else() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let ending = CancellationToken::new();
    // It takes connections and never says a word.
    let hung = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let hung_address = hung.local_addr().expect("bound");
    let (storm, storm_address) = Hook::start(ending.clone()).await;
    storm.answer_always(Some(429));
    room.configure(&format!(
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
max_per_hour = 10000 # each in a message of its own, also the first
"#
    ));
    room.service
        .edit(|edit| {
            for n in 0..20 {
                let id = format!("token-{n:02}");
                edit.put_token(&item(&id, &id))?;
                edit.put_events(&id, vec![cliff(&wire(from_now(5)), "Team", 2e6, "second")])?;
            }
            Ok(())
        })
        .expect("edited");
    let daemon = room.desk.start("run", &[]);
    let told = || lines(&room.hook.accepted().into_iter().map(|(_, body)| body).collect::<Vec<_>>());
    let ahead = || told().iter().filter(|line| line.contains("BigCliffAhead")).count();
    until("all of them are told", || ahead() == 21, || format!("{:#?}\n{}", told(), daemon.log()));
    let rows = |state: &str, name: &str| {
        room.desk
            .run(&format!("outbox list --limit 100 --receiver {name} --state {state} --format json"))
            .json()
            .as_array()
            .map_or(0, Vec::len)
    };
    // What a receiver took is recorded a moment later.
    until("all of them are recorded", || rows("delivered", "ops") == 21, || daemon.log());
    // An attempt at the hung receiver lasts 15 s: everything else was done meanwhile.
    assert_eq!(rows("due", "hung"), 21, "{}", daemon.log());
    assert!(rows("retrying", "storm") > 0 && rows("dead", "storm") == 0, "a 429 is tried again later");
    drop(daemon);
    drop(hung);
    ending.cancel();
}

#[test]
fn the_demo_tells_real_unlocks_and_finds_the_correction_and_leaves_nothing_behind() {
    let desk = Desk::new();
    desk.write("none", "");
    let temporary = desk.path("tmp");
    fs::create_dir(&temporary).expect("a folder");
    let mut demo = desk.start("demo", &[("TMPDIR", temporary.to_str().expect("UTF-8"))]);
    let out = demo.base.with_extension("out");
    let said = || fs::read_to_string(&out).unwrap_or_default();
    let parts =
        ["status page", "CliffAhead", " mail ", "source corrects itself", "ScheduleMoved", "UnlockResized", "BigBurn", "Buyback"];
    until("the demo", || parts.iter().all(|part| said().contains(part)), || format!("{}\n{}", said(), demo.log()));
    demo.signal("INT");
    assert_eq!(wait(&mut demo.child).code(), Some(0), "{}", demo.log());
    assert_eq!(fs::read_dir(&temporary).expect("listed").count(), 0, "its folder goes with it");
    let said = said();
    let mails = said.lines().filter(|line| line.contains("s  mail  ")).count();
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("The demo has ended: ") && last.ends_with(&format!(", {mails} messages by mail.")),
        "{mails} mails: {last}"
    );
}
