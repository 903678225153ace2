//! `cliffwatch mcp`, called by the official Python package for the Model Context Protocol.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};

use testkit::{Cluster, free_port};

use super::database_server::use_server;
use super::*;

/// Returns the interpreter with the package `mcp`. `None` without it, which is an error if external software is required.
fn python() -> Option<std::ffi::OsString> {
    let python = std::env::var_os("CLIFFWATCH_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", "import mcp"]).stderr(Stdio::null()).status();
    if has.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let is_required = std::env::var_os("CLIFFWATCH_TEST_EXTERNAL").is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!is_required, "CLIFFWATCH_TEST_EXTERNAL is set, but the Python package mcp is not installed");
    writeln!(std::io::stderr(), "SKIPPED: the Python package mcp is not installed").ok();
    None
}

/// A session of the client with the server in a folder.
struct Session(Value);

impl Session {
    fn run(python: &std::ffi::OsStr, workdir: &Workdir, globals: &[&str], calls: &[(&str, Value)]) -> Self {
        Self::run_calls(python, workdir, globals, &json!(calls))
    }

    /// Runs calls of the form [tool, arguments, seconds until the client cancels the call].
    fn run_calls(python: &std::ffi::OsStr, workdir: &Workdir, globals: &[&str], calls: &Value) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/binary/mcp_client.py");
        let arguments: Vec<&str> = globals.iter().copied().chain(["mcp"]).collect();
        let given = json!({
            "command": env!("CARGO_BIN_EXE_cliffwatch"), "args": arguments, "cwd": workdir.path(""), "calls": calls,
        });
        let mut client =
            Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        client.stdin.take().expect("piped").write_all(given.to_string().as_bytes()).expect("written");
        let mut out = String::new();
        client.stdout.take().expect("piped").read_to_string(&mut out).expect("read");
        assert!(client.wait().expect("ended").success(), "{out}");
        Self(serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}")))
    }

    fn result(&self, call: usize) -> &Value {
        &self.0["results"][call]
    }

    /// Returns the JSON of a successful call.
    #[track_caller]
    fn json(&self, call: usize) -> Value {
        let result = self.result(call);
        assert_eq!(result["isError"], false, "{result:#}");
        serde_json::from_str(result["texts"][0].as_str().expect("a text")).unwrap_or_else(|error| panic!("{error}: {result:#}"))
    }

    /// Returns the message of a failed call.
    #[track_caller]
    fn error(&self, call: usize) -> &str {
        let result = self.result(call);
        assert_eq!(result["isError"], true, "{result:#}");
        result["texts"][0].as_str().expect("a text")
    }
}

const RULE: &str = "[[rule]]\nalert = \"Tried\"\non = \"unlock\"\nwithin = \"30d\"\nwhen = \"cliffValue > 1000000\"\n";

/// A time at which the fixture has firing alerts and a change.
const NOW: &str = "2026-03-01T07:00:00Z";

async fn polled_fixture() -> Fixture {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    fixture.configure("");
    let at = |time: &str, line: &str| fixture.workdir.run(&format!("--now {time} {line}"));
    at(BEGIN, "poll").ok();
    fixture
        .service
        .edit(|edit| edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")))
        .expect("edited");
    at("2026-03-01T06:00:00Z", "poll").ok();
    fixture
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tool_returns_the_json_of_its_command() {
    let Some(python) = python() else { return };
    let fixture = polled_fixture().await;
    let workdir = &fixture.workdir;
    let calls = [
        (
            "upcoming",
            json!({"tokens": ["ALP"], "within": "120d", "minValue": "1M", "type": "cliff"}),
            "upcoming ALP --within 120d --min-value 1M --type cliff",
        ),
        ("token", json!({"token": "alpha", "resource": "unlock"}), "token alpha --resource unlock"),
        ("changes", json!({"token": "ALP", "kind": "rescheduled"}), "changes --token ALP --kind rescheduled"),
        ("alerts", json!({"limit": 1}), "alerts --limit 1"),
        ("explain", json!({"rule": "BigCliffAhead", "about": "alpha"}), "explain BigCliffAhead alpha"),
        ("fields", json!({"on": "unlock.rescheduled"}), "fields unlock.rescheduled"),
        ("check", json!({"rule": RULE}), "check --rules tried --no-positions"),
        ("backtest", json!({"rule": RULE, "from": "2026-01-01"}), "backtest --rules tried --from 2026-01-01"),
        ("plan", json!({}), "plan"),
    ];
    fs::create_dir(workdir.path("tried")).expect("a folder");
    workdir.write("tried/rule.toml", RULE);
    let requests: Vec<(&str, Value)> = calls.iter().map(|(tool, arguments, _)| (*tool, arguments.clone())).collect();
    let session = Session::run(&python, workdir, &["--now", NOW], &requests);
    for (index, (tool, _, line)) in calls.iter().enumerate() {
        let printed = workdir.run(&format!("--now {NOW} {line} --format json")).json();
        // A result that is not empty shows that the call reached the data.
        assert!(*tool == "check" || !printed.as_array().is_some_and(Vec::is_empty), "{tool}: {printed:#}");
        let same_file = |json: Value| json.to_string().replace("tried/rule.toml", "(standard input)");
        assert_eq!(same_file(session.json(index)), same_file(printed), "{tool}");
    }
    assert!(session.json(7)["messages"].as_array().is_some_and(|messages| !messages.is_empty()), "{}", session.result(7));
    let named: BTreeSet<&str> =
        session.0["tools"].as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(named, calls.iter().map(|(tool, ..)| *tool).collect(), "each tool is tested");
    assert_eq!(session.0["server"]["serverInfo"]["name"], "cliffwatch");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_call_of_a_tool_is_explained() {
    let Some(python) = python() else { return };
    let fixture = polled_fixture().await;
    let wrong_rule = RULE.replace("cliffValue", "clifValue");
    let calls = [
        ("upcoming", json!({"tokens": ["alpah"]}), "did you mean"),
        ("upcoming", json!({"within": "30x"}), "30x"),
        ("token", json!({"token": "alpah"}), "did you mean"),
        ("changes", json!({"kind": "rescheduld"}), "did you mean `rescheduled`?"),
        ("alerts", json!({"token": "nothing-like-this"}), "nothing-like-this"),
        ("explain", json!({"rule": "BigClifAhead"}), "did you mean \"BigCliffAhead\"?"),
        ("fields", json!({"on": "unlock.moved"}), "rescheduled"),
        ("check", json!({"rule": "x".repeat(40_000)}), "expected a text of 1 to 32768 bytes"),
        ("backtest", json!({"rule": wrong_rule}), "did you mean"),
        ("backtest", json!({"rule": RULE, "from": "soon"}), "2026-03-09"),
        ("plan", json!({"tokens": 3}), "has no parameter"),
    ];
    let requests: Vec<(&str, Value)> = calls.iter().map(|(tool, arguments, _)| (*tool, arguments.clone())).collect();
    let requests: Vec<(&str, Value)> =
        requests.into_iter().chain([("tokens", json!({})), ("check", json!({"rule": wrong_rule}))]).collect();
    let session = Session::run(&python, &fixture.workdir, &["--now", NOW], &requests);
    for (index, (tool, arguments, expected)) in calls.iter().enumerate() {
        let error = session.error(index);
        assert!(error.contains(expected), "{tool} {arguments}: {error}");
        assert!(!error.contains("Usage:") && !error.contains("--help"), "{tool} {arguments}: {error}");
    }
    let unknown = session.result(calls.len());
    assert!(unknown["protocolError"].as_str().is_some_and(|error| error.contains("did you mean `token`?")), "{unknown:#}");
    // An invalid rule is a result of `check`, not a failure.
    let problems = session.json(calls.len() + 1);
    assert_eq!((&problems[0]["severity"], &problems[0]["file"]), (&json!("error"), &json!("(standard input)")), "{problems:#}");
}

/// A rule text must not reveal positions, for example by a warning about its threshold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positions_and_secrets_do_not_reach_a_client() {
    let Some(python) = python() else { return };
    let fixture = polled_fixture().await;
    fixture.workdir.write("token", "a-secret-word\n");
    fixture.configure("[watch.positions]\nalpha = 271828.0\n");
    let config = fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read");
    fixture.workdir.write("cliffwatch.toml", &config.replace("listen = ", "token_file = \"token\"\nlisten = "));
    let rule = |when: &str| RULE.replace("cliffValue > 1000000", when);
    let probe = |amount: u32| json!({"rule": rule(&format!("position.amount > {amount}"))});
    let calls = [
        ("upcoming", json!({})),
        ("token", json!({"token": "alpha"})),
        ("alerts", json!({})),
        ("explain", json!({"rule": "BigCliffAhead", "about": "alpha"})),
        ("check", probe(271_827)),
        ("check", probe(271_829)),
        ("backtest", probe(271_827)),
        ("backtest", probe(271_829)),
        ("plan", json!({})),
    ];
    let session = Session::run(&python, &fixture.workdir, &["--now", NOW], &calls);
    let text = session.0["results"].to_string();
    assert!(!text.contains("271828") && !text.contains("a-secret-word"), "{text}");
    let without_amount = |call: usize| session.result(call).to_string().replace("271829", "271827");
    assert_eq!(without_amount(4), without_amount(5));
    assert_eq!(without_amount(6), without_amount(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_work_next_to_a_daemon_on_either_engine() {
    let Some(python) = python() else { return };
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    check_next_to_a_daemon(&python, &fixture).await;
    let Some(cluster) = Cluster::start("") else { return };
    let fixture = Fixture::new(Time::System, AccessPolicy::Open).await;
    use_server(&fixture, cluster.port, free_port());
    check_next_to_a_daemon(&python, &fixture).await;
}

async fn check_next_to_a_daemon(python: &std::ffi::OsStr, fixture: &Fixture) {
    let daemon = fixture.workdir.start("run", &[]);
    let address = daemon.address();
    fixture.until_notified("BigCliffAhead", &daemon);
    // The first message may precede the linear unlocks.
    let count = async || {
        let rows: Value = serde_json::from_str(&get(&address, "/api/v1/upcoming?token=alpha").await).expect("JSON");
        rows.as_array().map(Vec::len)
    };
    outages::until_async("all unlocks", async || count().await == Some(5)).await;
    let calls = [
        ("upcoming", json!({"tokens": ["ALP"]})),
        ("token", json!({"token": "ALP"})),
        ("alerts", json!({"rule": "BigCliffAhead"})),
        ("explain", json!({"rule": "BigCliffAhead", "about": "ALP"})),
        ("backtest", json!({"rule": RULE, "tokens": ["ALP"]})),
        ("plan", json!({})),
    ];
    let session = Session::run(python, &fixture.workdir, &[], &calls);
    assert_eq!(session.json(0).as_array().map(Vec::len), Some(5));
    let served: Value = serde_json::from_str(&get(&address, "/api/v1/tokens/alpha").await).expect("JSON");
    // The sums of coming supply depend on the time.
    assert_eq!(session.json(1)["records"], served["records"]);
    let alerts: Value = serde_json::from_str(&get(&address, "/api/v1/alerts?rule=BigCliffAhead").await).expect("JSON");
    assert_eq!(session.json(2)[0]["id"], alerts[0]["id"]);
    for call in 3..calls.len() {
        session.json(call);
    }
    assert_eq!(daemon.stop().code(), 0);
}

/// Two canceled calls would block all others if their commands went on.
#[test]
fn call_that_the_client_gives_up_ends() {
    let Some(python) = python() else { return };
    let workdir = mcp_limits::hanging();
    let plan = json!(["plan", {}, 1.0]);
    let calls = json!([plan, plan, plan, ["fields", {"on": "burn"}, 30.0]]);
    let session = Session::run_calls(&python, &workdir, &["--config", "hanging.toml"], &calls);
    for call in 0..3 {
        let error = session.result(call)["protocolError"].as_str().unwrap_or_default();
        assert!(error.to_lowercase().contains("timed out"), "{:#}", session.result(call));
    }
    assert!(session.json(3).as_array().is_some_and(|fields| fields.len() > 3), "{}", session.result(3));
}

#[test]
fn server_without_a_client_ends_with_the_reason() {
    let ran = Workdir::new().run("mcp");
    assert_eq!((ran.code(), ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("the client did not begin a session"), "{}", ran.err);
}
