//! Reloads of rules and config in a running daemon: on save or on a signal, under load, with valid and invalid files.

use std::{
    collections::BTreeMap,
    os::unix::net::UnixDatagram,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::*;

/// A rule that notifies each burn with its amount.
const BURNS: &str = r#"
[[rule]]
alert = "Burned"
on    = "burn"
when  = "amount > 1"
annotations = { summary = "burned {{ amount }}" }
"#;

/// The interval between new burns.
const LOAD: Duration = Duration::from_millis(100);

/// A background task that adds burns with increasing amounts.
struct Load {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Load {
    fn start(service: Service) -> Self {
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (is_over, count) = (stop.clone(), made.clone());
        let task = tokio::spawn(async move {
            let first = from_now(-1);
            while !is_over.load(Ordering::SeqCst) {
                let number = count.load(Ordering::SeqCst);
                let at = first + chrono::TimeDelta::seconds(i64::try_from(number).expect("few"));
                service.edit(|edit| edit.add_burn("alpha", burn(&wire(at), 1_000.0 + number as f64))).expect("edited");
                count.store(number + 1, Ordering::SeqCst);
                tokio::time::sleep(LOAD).await;
            }
        });
        Self { stop, made, task }
    }

    /// Stops the task and returns the number of burns.
    async fn end(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.expect("ended");
        self.made.load(Ordering::SeqCst)
    }
}

/// The number of notifications of each burn, keyed by summary.
fn burns(hook: &Hook) -> BTreeMap<String, usize> {
    let mut notified = BTreeMap::new();
    for (_, body) in hook.accepted() {
        for alert in body["data"]["alerts"].as_array().into_iter().flatten().filter(|alert| alert["rule"] == "Burned") {
            *notified.entry(alert["annotations"]["summary"].as_str().expect("a summary").to_owned()).or_default() += 1;
        }
    }
    notified
}

/// The status and reason of each notified alert of a rule.
fn notified_about(hook: &Hook, rule: &str) -> Vec<String> {
    let alerts = hook.accepted().into_iter().flat_map(|(_, body)| body["data"]["alerts"].as_array().cloned().unwrap_or_default());
    let of_rule = alerts.filter(|alert| alert["rule"] == rule);
    of_rule
        .map(|alert| format!("{} {}", alert["status"].as_str().unwrap_or(""), alert["reason"].as_str().unwrap_or("")))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_under_load_lose_and_repeat_nothing_and_report_the_line() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let rules = format!("{RULES}{BURNS}");
    fixture.workdir.write("rules/test.toml", &rules);
    // Each burn gets its own message, even on a slow machine.
    fixture.configure("[delivery]\nmax_per_hour = 10000\n");
    let daemon = fixture.workdir.start("run", &[]);
    let address = daemon.address();
    until("the first read", || unlocks(&fixture) == 5, || daemon.log());
    fixture.until_notified("BigCliffAhead alpha", &daemon);
    let load = Load::start(fixture.service.clone());
    fixture.until_notified("Burned alpha", &daemon);
    let reloads = |count: usize| {
        until("a reload", || daemon.log().matches("reloaded config and rules").count() == count, || daemon.log());
    };

    // A typo in the last rule, noticed without a signal.
    fixture.workdir.write("rules/test.toml", &rules.replace("amount > 1\"", "amuont > 1\""));
    let line = rules.lines().position(|line| line.contains("amount > 1\"")).expect("the line is there") + 1;
    let place = format!("rules/test.toml:{line}:10");
    daemon.until_log(&place);
    fixture.until_notified("SourceTrouble", &daemon);
    let incident = notified_text(&fixture.hook, "SourceTrouble");
    assert!(
        incident.contains(&place) && incident.contains("did you mean `amount`?"),
        "the message contains the line: {incident}"
    );
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 0"));

    // A new name under the same id: reloaded without repeated notifications.
    let renamed = rules.replacen("alert  = \"BigCliffAhead\"", "alert = \"Cliff\"\nid = \"BigCliffAhead\"", 1);
    fixture.workdir.write("rules/test.toml", &renamed);
    reloads(1);

    // Valid rules with a failing rule test are rejected.
    fs::create_dir(fixture.workdir.path("rules/tests")).expect("made");
    let test = "[[test]]\nname = \"small burns are silent\"\nstart = 2026-03-01T00:00:00Z\n[[test.input]]\ntoken = \"x\"\nburn = []\n\
                [[test.input]]\nat = \"1d\"\ntoken = \"x\"\nadd = [{ burn = \"2026-03-01\", amount = 7 }]\n[[test.expect]]\nat = \"2d\"\nrule = \"Burned\"\nsilence = true\n";
    fixture.workdir.write("rules/tests/burns.toml", test);
    daemon.until_log("small burns are silent");
    fs::remove_file(fixture.workdir.path("rules/tests/burns.toml")).expect("removed");
    reloads(2);

    // Removing a rule resolves its alerts with a reason.
    let from = renamed.find("[[rule]]").expect("a rule");
    let next = from + 8 + renamed[from + 8..].find("[[rule]]").expect("another rule");
    fixture.workdir.write("rules/test.toml", &format!("{}{}", &renamed[..from], &renamed[next..]));
    reloads(3);
    until(
        "the end of the alert",
        || notified_about(&fixture.hook, "Cliff").iter().any(|notified| notified == "resolved rule gone"),
        || format!("{:#?}\n{}", notified_about(&fixture.hook, "Cliff"), daemon.log()),
    );

    let made = load.end().await;
    until(
        "all burns",
        || burns(&fixture.hook).len() >= made,
        || format!("{made}: {:#?}\n{}", burns(&fixture.hook), daemon.log()),
    );
    assert_eq!(daemon.stop().code(), 0);
    let notified = burns(&fixture.hook);
    let repeated: Vec<_> = notified.iter().filter(|(_, count)| **count != 1).collect();
    assert!(made > 50 && notified.len() == made && repeated.is_empty(), "{made} burns: {repeated:?}");
    assert_eq!(notified_about(&fixture.hook, "BigCliffAhead"), ["firing lead 30d"]);
    assert_eq!(notified_about(&fixture.hook, "Cliff"), ["resolved rule gone"]);
    let mut tried = fixture.hook.tried();
    tried.sort();
    tried.dedup();
    assert_eq!(tried.len(), fixture.hook.accepted().len(), "no delivery was sent twice");
}

/// All notified alerts of a rule, as JSON text.
fn notified_text(hook: &Hook, rule: &str) -> String {
    let alerts = hook.accepted().into_iter().flat_map(|(_, body)| body["data"]["alerts"].as_array().cloned().unwrap_or_default());
    alerts.filter(|alert| alert["rule"] == rule).map(|alert| alert.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn config_is_reloaded_completely_or_not_at_all() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    fixture.workdir.write("rules/test.toml", BURNS);
    let (desk, desk_address) = Hook::start(CancellationToken::new()).await;
    let daemon = fixture.workdir.start("run", &[]);
    let address = daemon.address();
    until("the first read", || unlocks(&fixture) == 5, || daemon.log());
    // Burns before the first poll of burns belong to the baseline.
    daemon.until_log("burn: 1 polled");
    let burn = |number: u32| {
        let at = wire(from_now(-1) + chrono::TimeDelta::seconds(number.into()));
        fixture.service.edit(|edit| edit.add_burn("alpha", burn(&at, f64::from(number)))).expect("edited");
    };
    let notified = |hook: &Hook| burns(hook).into_keys().collect::<Vec<_>>();
    burn(2);
    fixture.until_notified("Burned alpha", &daemon);

    // A route to an unknown receiver: the error names the line, and the old config stays active.
    let second = format!("[[receiver]]\nname = \"desk\"\ntype = \"webhook\"\nurl = \"http://{desk_address}/hook\"\n");
    let route = "[[route.routes]]\nmatchers = ['alertname=\"Burned\"']\nreceivers = [\"desk\"]\n";
    fixture.configure(&route.replace("\"desk\"", "\"dsek\""));
    daemon.signal("HUP");
    daemon.until_log("dsek");
    let line =
        fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read").lines().position(|line| line.contains("dsek"));
    fixture.until_notified("SourceTrouble", &daemon);
    let incident = notified_text(&fixture.hook, "SourceTrouble");
    assert!(incident.contains(&format!("cliffwatch.toml:{}:", line.expect("the line is there") + 1)), "{incident}");
    burn(3);
    until("the old routes", || notified(&fixture.hook) == ["burned 2", "burned 3"], || daemon.log());

    // With the receiver, the saved file is loaded. The log lists the changes that need a restart.
    fixture.configure(&format!("{second}{route}"));
    let config = fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read");
    fixture.workdir.write("cliffwatch.toml", &config.replace("timeout = \"5s\"", "timeout = \"6s\""));
    daemon.until_log("changed keys that need a restart: [source] timeout");
    burn(4);
    until("the new route", || notified(&desk) == ["burned 4"], || daemon.log());
    assert!(get(&address, "/api/v1/status").await.contains("desk"), "the status lists the receiver");

    // The receiver is removed: its pending deliveries become dead letters, and other receivers are unaffected.
    desk.respond_always(Some(503));
    burn(5);
    until("an attempt", || desk.tried().len() > 1, || daemon.log());
    fixture.configure("");
    daemon.until_log("deliveries to a removed receiver became dead letters");
    burn(6);
    until("the previous route", || notified(&fixture.hook).contains(&"burned 6".to_owned()), || daemon.log());
    assert_eq!(notified(&desk), ["burned 4"]);

    // Other watched tokens and schedules: the daemon stops polling unwatched tokens.
    let watched = config
        .replace("[schedule]", "[watch]\ntokens = [\"beta\"]\n[schedule]")
        .replace("burn = \"* * * * * *\"", "burn = \"off\"");
    let reloads = daemon.log().matches("reloaded config and rules").count();
    fixture.workdir.write("cliffwatch.toml", &watched);
    until("the last reload", || daemon.log().matches("reloaded config and rules").count() > reloads, || daemon.log());
    burn(7);
    let evaluated = || {
        let database = rusqlite::Connection::open(fixture.workdir.path("test.db")).expect("opens");
        database.query_row("SELECT slot FROM job WHERE name = 'evaluate'", [], |row| row.get::<_, i64>(0)).expect("read")
    };
    let before = evaluated();
    until("two evaluations", || evaluated() >= before + 2_000, || daemon.log());
    assert_eq!(daemon.stop().code(), 0);
    assert_eq!(notified(&fixture.hook), ["burned 2", "burned 3", "burned 6"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn systemd_is_notified_of_each_reload_and_its_result() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    let path = fixture.workdir.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(WAIT_TIMEOUT)).expect("set");
    let read = |wanted: &str| {
        let mut buffer = [0; 4096];
        let mut received = Vec::new();
        while !received.last().is_some_and(|text: &String| text.contains(wanted)) {
            let length = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("{wanted}: {error}: {received:#?}"));
            received.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        received
    };
    let config = fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read");
    fixture.workdir.write("cliffwatch.toml", &format!("{}\n", config.replace("[http]\n", "[http]\ntoken = \"let-me\"\n")));
    let daemon = fixture.workdir.start("run", &[("NOTIFY_SOCKET", path.to_str().expect("a path"))]);
    read("READY=1");
    daemon.until_log("web pages at");

    fixture.workdir.write("rules/test.toml", "[[rule]]\nalert = \"X\"\non = \"unlok\"\n");
    daemon.signal("HUP");
    let received = read("RELOADING=1");
    assert!(received.last().is_some_and(|text| text.contains("MONOTONIC_USEC=")), "systemd requires the timestamp: {received:?}");
    let received = read("READY=1");
    let status = received.last().expect("received");
    assert!(status.contains("STATUS=") && status.contains("rules/test.toml:3:7"), "the location, in one line: {status}");
    assert_eq!(status.lines().count(), 2, "{status:?}");

    // A reload through the API needs the token and returns the same errors.
    cliffwatch::source::install_crypto_provider();
    let post = async |token: &str| {
        let client = reqwest::Client::builder().timeout(WAIT_TIMEOUT).build().expect("a client");
        let response = client.post(format!("{}/-/reload", daemon.address())).bearer_auth(token).send().await.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("a text"))
    };
    assert_eq!(post("guess").await.0, 401);
    let (status, text) = post("let-me").await;
    assert!(status >= 400 && text.contains("test.toml:3:7"), "{status}: {text}");
    fixture.workdir.write("rules/test.toml", RULES);
    let (status, text) = post("let-me").await;
    assert!(status == 200 && text.contains("3 active rules"), "{status}: {text}");
    assert_eq!(daemon.stop().code(), 0);
}
