//! Edits of rules and config in a running daemon: by saving a file alone, under load, good ones and bad ones.

use std::{
    collections::BTreeMap,
    os::unix::net::UnixDatagram,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::*;

/// A rule that tells each burn by its amount.
const BURNS: &str = r#"
[[rule]]
alert = "Burned"
on    = "burn"
when  = "amount > 1"
annotations = { summary = "burned {{ amount }}" }
"#;

/// How often the source has something new.
const LOAD: Duration = Duration::from_millis(100);

/// Burns that go on and on, each another amount.
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

    /// Ends it; how many there were.
    async fn end(self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.expect("ended");
        self.made.load(Ordering::SeqCst)
    }
}

/// How often each burn was told, by its summary.
fn burns(hook: &Hook) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    for (_, body) in hook.accepted() {
        for alert in body["data"]["alerts"].as_array().into_iter().flatten().filter(|alert| alert["rule"] == "Burned") {
            *told.entry(alert["annotations"]["summary"].as_str().expect("a summary").to_owned()).or_default() += 1;
        }
    }
    told
}

/// What was told of a rule: the status of each alert, with its reason.
fn told_of(hook: &Hook, rule: &str) -> Vec<String> {
    let alerts = hook.accepted().into_iter().flat_map(|(_, body)| body["data"]["alerts"].as_array().cloned().unwrap_or_default());
    let of_rule = alerts.filter(|alert| alert["rule"] == rule);
    of_rule
        .map(|alert| format!("{} {}", alert["status"].as_str().unwrap_or(""), alert["reason"].as_str().unwrap_or("")))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_under_load_lose_nothing_repeat_nothing_and_name_the_line() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let rules = format!("{RULES}{BURNS}");
    room.desk.write("rules/test.toml", &rules);
    // However long it takes on a busy machine, each burn is to come in a message of its own.
    room.configure("[delivery]\nmax_per_hour = 10000\n");
    let daemon = room.desk.start("run", &[]);
    let address = daemon.address();
    until("the first read", || unlocks(&room) == 5, || daemon.log());
    room.until_told("BigCliffAhead alpha", &daemon);
    let load = Load::start(room.service.clone());
    room.until_told("Burned alpha", &daemon);
    let reloads = |count: usize| {
        until("a reload", || daemon.log().matches("the rules were reloaded").count() == count, || daemon.log());
    };

    // A slip in the last rule: nobody is signalled, the file was saved.
    room.desk.write("rules/test.toml", &rules.replace("amount > 1\"", "amuont > 1\""));
    let line = rules.lines().position(|line| line.contains("amount > 1\"")).expect("the line is there") + 1;
    let place = format!("rules/test.toml:{line}:10");
    daemon.until_log(&place);
    room.until_told("SourceTrouble", &daemon);
    let trouble = told_text(&room.hook, "SourceTrouble");
    assert!(trouble.contains(&place) && trouble.contains("did you mean `amount`?"), "the message names the line: {trouble}");
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 0"));

    // Another name under the same id: swapped, and nothing is told again.
    let renamed = rules.replacen("alert  = \"BigCliffAhead\"", "alert = \"Cliff\"\nid = \"BigCliffAhead\"", 1);
    room.desk.write("rules/test.toml", &renamed);
    reloads(1);

    // Right as rules, but the test beside them fails: refused.
    fs::create_dir(room.desk.path("rules/tests")).expect("made");
    let test = "[[test]]\nname = \"small burns are silent\"\nstart = 2026-03-01T00:00:00Z\n[[test.input]]\ntoken = \"x\"\nburn = []\n\
                [[test.input]]\nat = \"1d\"\ntoken = \"x\"\nadd = [{ burn = \"2026-03-01\", amount = 7 }]\n[[test.expect]]\nat = \"2d\"\nrule = \"Burned\"\nsilence = true\n";
    room.desk.write("rules/tests/burns.toml", test);
    daemon.until_log("small burns are silent");
    fs::remove_file(room.desk.path("rules/tests/burns.toml")).expect("removed");
    reloads(2);

    // A rule that is gone ends its alerts with the reason.
    let from = renamed.find("[[rule]]").expect("a rule");
    let next = from + 8 + renamed[from + 8..].find("[[rule]]").expect("another rule");
    room.desk.write("rules/test.toml", &format!("{}{}", &renamed[..from], &renamed[next..]));
    reloads(3);
    until(
        "the end of the alert",
        || told_of(&room.hook, "Cliff").iter().any(|told| told == "resolved rule gone"),
        || format!("{:#?}\n{}", told_of(&room.hook, "Cliff"), daemon.log()),
    );

    let made = load.end().await;
    until("all burns", || burns(&room.hook).len() >= made, || format!("{made}: {:#?}\n{}", burns(&room.hook), daemon.log()));
    assert_eq!(daemon.stop().code(), 0);
    let told = burns(&room.hook);
    let repeated: Vec<_> = told.iter().filter(|(_, count)| **count != 1).collect();
    assert!(made > 50 && told.len() == made && repeated.is_empty(), "{made} burns: {repeated:?}");
    assert_eq!(told_of(&room.hook, "BigCliffAhead"), ["firing lead 30d"]);
    assert_eq!(told_of(&room.hook, "Cliff"), ["resolved rule gone"]);
    let mut tried = room.hook.tried();
    tried.sort();
    tried.dedup();
    assert_eq!(tried.len(), room.hook.accepted().len(), "no delivery was made twice");
}

/// All that was told of a rule, as text.
fn told_text(hook: &Hook, rule: &str) -> String {
    let alerts = hook.accepted().into_iter().flat_map(|(_, body)| body["data"]["alerts"].as_array().cloned().unwrap_or_default());
    alerts.filter(|alert| alert["rule"] == rule).map(|alert| alert.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_config_goes_to_work_whole_or_not_at_all() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    room.desk.write("rules/test.toml", BURNS);
    let (desk, desk_address) = Hook::start(CancellationToken::new()).await;
    let daemon = room.desk.start("run", &[]);
    let address = daemon.address();
    until("the first read", || unlocks(&room) == 5, || daemon.log());
    // A burn that is there before the first read of burns belongs to the baseline.
    daemon.until_log("burn: 1 asked");
    let burn = |number: u32| {
        let at = wire(from_now(-1) + chrono::TimeDelta::seconds(number.into()));
        room.service.edit(|edit| edit.add_burn("alpha", burn(&at, f64::from(number)))).expect("edited");
    };
    let told = |hook: &Hook| burns(hook).into_keys().collect::<Vec<_>>();
    burn(2);
    room.until_told("Burned alpha", &daemon);

    // A receiver that a route names, and that is not there: the line is named, and nothing of it goes to work.
    let second = format!("[[receiver]]\nname = \"desk\"\ntype = \"webhook\"\nurl = \"http://{desk_address}/hook\"\n");
    let route = "[[route.routes]]\nmatchers = ['alertname=\"Burned\"']\nreceivers = [\"desk\"]\n";
    room.configure(&route.replace("\"desk\"", "\"dsek\""));
    daemon.signal("HUP");
    daemon.until_log("dsek");
    let line =
        fs::read_to_string(room.desk.path("cliffwatch.toml")).expect("read").lines().position(|line| line.contains("dsek"));
    room.until_told("SourceTrouble", &daemon);
    let trouble = told_text(&room.hook, "SourceTrouble");
    assert!(trouble.contains(&format!("cliffwatch.toml:{}:", line.expect("the line is there") + 1)), "{trouble}");
    burn(3);
    until("the old routes", || told(&room.hook) == ["burned 2", "burned 3"], || daemon.log());

    // With the receiver it is right: saving it is enough. What only a restart can change is named.
    room.configure(&format!("{second}{route}"));
    let config = fs::read_to_string(room.desk.path("cliffwatch.toml")).expect("read");
    room.desk.write("cliffwatch.toml", &config.replace("timeout = \"5s\"", "timeout = \"6s\""));
    daemon.until_log("only a restart puts it to work: [source] timeout");
    burn(4);
    until("the new route", || told(&desk) == ["burned 4"], || daemon.log());
    assert!(get(&address, "/api/status").await.contains("desk"), "the status knows it");

    // Gone again: what waits for it is given up where all see it, and the others go on.
    desk.answer_always(Some(503));
    burn(5);
    until("an attempt", || desk.tried().len() > 1, || daemon.log());
    room.configure("");
    daemon.until_log("deliveries to a receiver that is gone from the config are dead letters now");
    burn(6);
    until("the route before", || told(&room.hook).contains(&"burned 6".to_owned()), || daemon.log());
    assert_eq!(told(&desk), ["burned 4"]);

    // Other tokens and other times: what is no longer watched is not asked for.
    let watched = config
        .replace("[schedule]", "[watch]\ntokens = [\"beta\"]\n[schedule]")
        .replace("burn = \"* * * * * *\"", "burn = \"off\"");
    let reloads = daemon.log().matches("the rules were reloaded").count();
    room.desk.write("cliffwatch.toml", &watched);
    until("the last reload", || daemon.log().matches("the rules were reloaded").count() > reloads, || daemon.log());
    burn(7);
    let evaluated = || {
        let database = rusqlite::Connection::open(room.desk.path("test.db")).expect("opens");
        database.query_row("SELECT slot FROM job WHERE name = 'evaluate'", [], |row| row.get::<_, i64>(0)).expect("read")
    };
    let before = evaluated();
    until("two evaluations", || evaluated() >= before + 2_000, || daemon.log());
    assert_eq!(daemon.stop().code(), 0);
    assert_eq!(told(&room.hook), ["burned 2", "burned 3", "burned 6"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn systemd_hears_of_each_reload_and_of_what_came_of_it() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let path = room.desk.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    let hear = |wanted: &str| {
        let mut buffer = [0; 4096];
        let mut heard = Vec::new();
        while !heard.last().is_some_and(|text: &String| text.contains(wanted)) {
            let length = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("{wanted}: {error}: {heard:#?}"));
            heard.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        heard
    };
    let config = fs::read_to_string(room.desk.path("cliffwatch.toml")).expect("read");
    room.desk.write("cliffwatch.toml", &format!("{}\n", config.replace("[http]\n", "[http]\ntoken = \"let-me\"\n")));
    let daemon = room.desk.start("run", &[("NOTIFY_SOCKET", path.to_str().expect("a path"))]);
    hear("READY=1");
    daemon.until_log("status page at");

    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"X\"\non = \"unlok\"\n");
    daemon.signal("HUP");
    let heard = hear("RELOADING=1");
    assert!(heard.last().is_some_and(|text| text.contains("MONOTONIC_USEC=")), "systemd believes nothing else: {heard:?}");
    let heard = hear("READY=1");
    let status = heard.last().expect("heard");
    assert!(status.contains("STATUS=") && status.contains("rules/test.toml:3:7"), "the place, in one line: {status}");
    assert_eq!(status.lines().count(), 2, "{status:?}");

    // By hand and with the token: the answer says the same.
    cliffwatch::source::install_crypto_provider();
    let post = async |token: &str| {
        let client = reqwest::Client::builder().timeout(PATIENCE).build().expect("a client");
        let answer = client.post(format!("{}/-/reload", daemon.address())).bearer_auth(token).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    };
    assert_eq!(post("guess").await.0, 401);
    let (status, text) = post("let-me").await;
    assert!(status >= 400 && text.contains("test.toml:3:7"), "{status}: {text}");
    room.desk.write("rules/test.toml", RULES);
    let (status, text) = post("let-me").await;
    assert!(status == 200 && text.contains("3 rules at work"), "{status}: {text}");
    assert_eq!(daemon.stop().code(), 0);
}
