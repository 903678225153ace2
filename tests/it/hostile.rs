//! One hostile world through the real binary and out at every way: each command in each format, both logs, every page, calendar, metrics,
//! mail, every format of a webhook. One checker says for each way what must never appear.

mod check;
mod out;
mod world;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use check::{WayOut, check};
use out::Received;
use world::{World, evil};

const RULES: &str = r#"
[[rule]]
alert  = "Ahead"
on     = "unlock"
within = ["30d"]
labels = { severity = "warning", who = "{{ token.name }}" }
annotations = { summary = "{{ token.symbol }} {{ token.name }} of {{ dataSource }}", description = "{{ token.name }}\n{{ dataSource }}" }

[[rule]]
alert  = "BuiltIn"
on     = "unlock"
within = ["30d"]

[[rule]]
alert = "Changed"
on    = "unlock.*"

[[rule]]
alert = "Table"
on    = "allocation.*"

[[rule]]
alert = "Burned"
on    = "burn"

[[rule]]
alert = "Bought"
on    = "buyback"
"#;

/// Fails on purpose, so that its report shows what was told.
const RULE_TEST: &str = r#"
rules = ["../rules/test.toml"]
[[token]]
id = "alpha"
name = "\u001b]0;owned\u0007\n2026-03-01T00:00:00Z ERROR forged\u202e"
symbol = "=1+1"
[[test]]
name = "\u001b[31mred"
start = 2026-03-01T00:00:00Z
[[test.input]]
token = "alpha"
unlock = [{ unlockDate = "2026-03-20", cliffAmount = 2000, dataSource = "\u001b[2J\r\n2026-03-01T00:00:00Z ERROR forged" }]
[[test.expect]]
at = "1d"
silence = true
"#;

/// A receiver of each format, with what it needs.
const FORMATS: [(&str, &str); 20] = [
    ("cliffwatch", ""),
    ("alertmanager", ""),
    ("alertmanager-api", ""),
    ("slack", ""),
    ("discord", ""),
    ("telegram", "token = \"123456:AAbbCCddEEff\"\nchat_id = \"-1001234567890\"\n"),
    ("teams", ""),
    ("pagerduty", "routing_key = \"0123456789abcdef0123456789abcdef\"\n"),
    ("opsgenie", "api_key = \"eb243592-faa2-4ba2-a551q-1afdf565c889\"\n"),
    ("ntfy", "topic = \"unlocks\"\n"),
    ("mattermost", ""),
    ("rocketchat", ""),
    ("googlechat", ""),
    ("matrix", "room = \"!unlocks:example.org\"\ntoken = \"syt_Y2xpZmZ3YXRjaA\"\n"),
    ("zulip", "bot_email = \"bot@example.com\"\napi_key = \"abcdefghijklmnopqrstuvwxyz012345\"\nchannel = \"unlocks\"\n"),
    ("gotify", "token = \"AwKvPDtS0Zf1QdU\"\n"),
    ("pushover", "token = \"azGDORePK8gMaC0QOYAMyEEuzJnyUi\"\nuser_key = \"uQiRzpo4DXghDmr9QzzfQu27cmVRsG\"\n"),
    (
        "twilio",
        "account_sid = \"AC0123456789abcdef0123456789abcdef\"\nauth_token = \"fedcba9876543210fedcba9876543210\"\n\
         from_number = \"+15005550006\"\nto_number = \"+15005550009\"\n",
    ),
    ("apprise", ""),
    ("template", "template = '{\"text\": {{ title }}, \"lines\": {{ alerts }}}'\n"),
];

/// What people are shown; of the others the texts are data.
fn way_of(format: &str) -> WayOut {
    match format {
        "cliffwatch" | "alertmanager" | "alertmanager-api" | "template" | "refuse" => WayOut::Data,
        _ => WayOut::Chat,
    }
}

struct Room {
    folder: tempfile::TempDir,
    world: World,
    hooks: Received,
    mails: Received,
    _ending: tokio_util::sync::DropGuard,
}

impl Room {
    async fn new() -> Self {
        let ending = CancellationToken::new();
        let (world, source) = World::start(ending.clone()).await;
        let (hooks, hook) = Received::webhooks(ending.clone()).await;
        let (mails, mail) = Received::mails(ending.clone()).await;
        let folder = tempfile::tempdir().expect("a folder");
        let mut receivers = String::new();
        let mut names = Vec::new();
        for (format, keys) in FORMATS {
            receivers.push_str(&format!(
                "[[receiver]]\nname = \"{format}\"\ntype = \"webhook\"\nformat = \"{format}\"\nurl = \"http://{hook}/{format}\"\n{keys}"
            ));
            names.push(format!("{format:?}"));
        }
        let names = names.join(", ");
        let text = format!(
            r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 60000
timeout = "5s"
[watch]
tokens = ["*"]
[schedule]
token_list = "* * * * * *"
upcoming = "* * * * * *"
unlock_events = "* * * * * *"
burn = "* * * * * *"
buyback = "* * * * * *"
allocations = "* * * * * *"
evaluate = "* * * * * *"
[store]
path = "test.db"
[http]
listen = "127.0.0.1:0"
{receivers}
[[receiver]]
name = "refuse"
type = "webhook"
url = "http://{hook}/refuse"
[[receiver]]
name = "desk"
type = "email"
smtp = "smtp://{mail}"
from = "Cliffwatch <a@example.com>"
to = ["b@example.com"]
[route]
receivers = [{names}, "desk", "refuse"]
group_by = ["alertname"]
group_wait = "0s"
group_interval = "1s"
"#
        );
        for (name, text) in
            [("cliffwatch.toml", text.as_str()), ("rules/test.toml", RULES), ("tests/test.toml", RULE_TEST), ("empty/.keep", "")]
        {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        fs::write(folder.path().join("cliffwatch.toml"), text.replace("[store]", "[rules]\npaths = [\"rules/*.toml\"]\n[store]"))
            .expect("written");
        Self { folder, world, hooks, mails, _ending: ending.drop_guard() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str], out: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
        // As on a terminal: where there is none, escape sequences would be taken out on the way and none be seen here.
        command.args(["--color", "always"]).args(arguments).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("USER", "tester");
        command.stdout(fs::File::create(self.path(&format!("{out}.out"))).expect("a file"));
        command.stderr(fs::File::create(self.path(&format!("{out}.err"))).expect("a file"));
        command
    }

    fn text(&self, file: &str) -> String {
        String::from_utf8(fs::read(self.path(file)).expect("read")).expect("UTF-8")
    }

    /// Runs a command and checks both of its streams. Colours of our own, in diagnostics, are no harm.
    fn run(&self, arguments: &[&str], way: WayOut) -> String {
        let what = arguments.join(" ").escape_debug().to_string();
        let mut child = self.command(arguments, "ran").spawn().expect("starts");
        let begun = Instant::now();
        let deadline = begun + Duration::from_secs(120);
        let status = loop {
            match child.try_wait().expect("waits") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    child.kill().ok();
                    panic!("{what}: hangs");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        eprintln!("{:>6} ms  {}", begun.elapsed().as_millis(), what.chars().take(80).collect::<String>());
        let (out, err) = (self.text("ran.out"), self.text("ran.err"));
        assert!(status.code().is_some_and(|code| code != 101), "{what}: {status}\n{err}");
        check(&format!("{what} (stderr)"), WayOut::Terminal, &without_colors(&err));
        if status.code() != Some(2) {
            check(&what, way, &out);
        }
        out
    }
}

/// Without the sequences that set a colour, such as diagnostics have: those of the world do more than that, or end in another letter.
fn without_colors(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        let tail = &rest[at + 2..];
        let digits = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').len();
        let is_color = tail[digits..].starts_with('m') && tail[..digits] != *"31";
        let end = if is_color { at + 2 + digits + 1 } else { at + 2 };
        plain.push_str(&rest[..if is_color { at } else { end }]);
        rest = &rest[end..];
    }
    plain + rest
}

/// Stops it in the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_hostile_world_gets_out_by_any_command() {
    let room = Room::new().await;
    let seen = room.run(&["poll"], WayOut::Terminal);
    assert!(seen.contains("unlock_events"), "{seen}");
    room.world.change();
    room.run(&["poll", "--dry-run"], WayOut::Terminal);
    room.run(&["poll", "--format", "json"], WayOut::Json);

    let alerts: Value = serde_json::from_str(&room.run(&["alerts", "--format", "json"], WayOut::Json)).expect("JSON");
    assert!(alerts.as_array().is_some_and(|alerts| alerts.len() > 5), "the world was told: {alerts:#}");
    let alert = alerts[0]["id"].as_str().expect("an id").to_owned();
    let (token, formula) = (format!("token={}", evil("x")), "token=~\"[=+@-].*\"".to_owned());
    room.run(&["silence", "add", &token, "--for", "1h", "--comment", &evil("=c"), "--author", &evil("@a")], WayOut::Terminal);
    room.run(&["silence", "add", &formula, "--for", "1h", "--comment", "=1+1", "--author", "+me"], WayOut::Terminal);
    room.run(&["ack", &alert, "--comment", &evil("=c"), "--author", &evil("-a")], WayOut::Terminal);
    room.run(&["accept", &evil("x")], WayOut::Terminal);

    let rows: Value =
        serde_json::from_str(&room.run(&["outbox", "list", "--receiver", "refuse", "--format", "json"], WayOut::Json))
            .expect("JSON");
    let refused = rows.as_array().expect("rows").first().expect("refused");
    let delivery = refused["id"].to_string();
    let (evil_id, evil_word) = (evil("x"), evil("=w"));
    let lists: [&[&str]; 24] = [
        &["upcoming", "--limit", "500"],
        &["upcoming", &evil_id],
        &["changes", "--limit", "500"],
        &["changes", "--token", &evil_id],
        &["alerts", "--limit", "500"],
        &["alerts", "--rule", &evil_word],
        &["status"],
        &["plan"],
        &["explain", "Ahead", "alpha"],
        &["explain", "Ahead", "=1+cmd|'!A0"],
        &["explain", "Changed", "@SUM(A1)"],
        &["explain", "Ahead", &evil_id],
        &["explain", &evil_word],
        &["explain", "BuiltIn"],
        &["outbox", "list", "--limit", "500"],
        &["outbox", "show", &delivery],
        &["outbox", "why", "--limit", "500"],
        &["silence", "list"],
        &["silence", "add", "token=~\".+\"", "--for", "1h", "--comment", "c", "--dry-run"],
        &["ack", "--list"],
        &["digest", "list"],
        &["routes", "test", &format!("who={evil_word}"), "severity=warning"],
        &["notify", &evil_word],
        &["notify", "refuse"],
    ];
    for list in lists {
        for (format, way) in [("table", WayOut::Terminal), ("json", WayOut::Json), ("csv", WayOut::Csv)] {
            let arguments = [list, &["--format", format]].concat();
            let out = room.run(&arguments, if way == WayOut::Json { WayOut::Terminal } else { way });
            if way == WayOut::Json && !out.is_empty() {
                check(&arguments.join(" "), way, &out);
            }
        }
    }
    for (format, way) in [("table", WayOut::Terminal), ("json", WayOut::Json), ("csv", WayOut::Csv)] {
        room.run(&["backtest", "--html", "report.html", "--messages", "100", "--format", format], way);
        check("the report of a backtest", WayOut::Html, &room.text("report.html"));
    }
    room.run(&["routes", "show"], WayOut::Terminal);
    room.run(&["check"], WayOut::Terminal);
    room.run(&["check", "--format", "json"], WayOut::Json);
    let report = room.run(&["test", "tests/test.toml"], WayOut::Terminal);
    assert!(report.contains("told, but not expected"), "{report}");
    room.run(&["test", "tests/test.toml", "--format", "json", "--junit", "junit.xml"], WayOut::Json);
    check("the results as XML", WayOut::Terminal, &room.text("junit.xml"));

    // Out as files, and in again.
    let out = room.run(&["export", "out", "--db", "test.db"], WayOut::Terminal);
    assert!(out.contains("tokens in"), "{out}\n{}", room.text("ran.err"));
    names(&room.path("out"), &mut |name| check("a name of a file", WayOut::Terminal, name));
    room.run(&["import", "out", "--db", "service.db"], WayOut::Terminal);
    room.run(&["import", "test.db", "--db", "copy.db", "--format", "json"], WayOut::Json);
    received(&room);
}

fn names(folder: &Path, see: &mut dyn FnMut(&str)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        see(&entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            names(&entry.path(), see);
        }
    }
}

/// The fields of a form, as JSON.
fn fields(form: &str) -> String {
    let form = reqwest::Url::parse(&format!("http://form/?{form}")).expect("a form");
    let fields = form.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned().into()));
    serde_json::Value::Object(fields.collect()).to_string()
}

/// What receivers got: every format, and mail.
fn received(room: &Room) {
    let hooks = room.hooks.all();
    for (format, _) in FORMATS {
        assert!(hooks.iter().any(|(path, _)| path.trim_matches('/').starts_with(format)), "{format} got nothing");
    }
    for (path, body) in hooks {
        let format = path.trim_matches('/').split('/').next().unwrap_or_default().to_owned();
        let body = if ["zulip", "twilio"].contains(&format.as_str()) { fields(&body) } else { body };
        check(&format!("the body of {format}"), way_of(&format), &body);
        assert!(!body.contains("\"<!channel>") && (format != "slack" || !body.contains("<!channel>")), "{format}: {body}");
    }
    let mails = room.mails.all();
    assert!(!mails.is_empty(), "no mail came");
    for (_, mail) in mails {
        check("a mail", WayOut::Mail, &mail);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_hostile_world_gets_out_by_a_log_or_a_page() {
    cliffwatch::source::install_crypto_provider();
    let room = Room::new().await;
    for (format, way) in [("human", WayOut::Terminal), ("json", WayOut::JsonLines)] {
        let mut command = room.command(&["run"], "daemon");
        command.env("CLIFFWATCH_LOG__FORMAT", format).env("RUST_LOG", "debug,hyper=info,h2=info,reqwest=info");
        let running = Running(command.spawn().expect("starts"));
        let log = || room.text("daemon.err");
        let until = async |what: &str, is_so: &dyn Fn(&str) -> bool| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while !is_so(&log()) {
                assert!(Instant::now() < deadline, "{what}: {}", log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        until("it starts", &|log| log.contains("status page at http://")).await;
        let text = log();
        let (_, rest) = text.split_once("status page at ").expect("an address");
        let address: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != '"').collect();
        let address = address.trim_end_matches('/').to_owned();
        until("everything was read", &|log| log.matches("buyback: ").count() > 1).await;
        room.world.change();
        until("a change was told", &|log| log.contains("change")).await;
        for (path, way) in [
            ("/", WayOut::Html),
            ("/metrics", WayOut::Metrics),
            ("/calendar.ics", WayOut::Calendar),
            ("/-/ready", WayOut::Terminal),
            ("/api/status", WayOut::Json),
            ("/api/upcoming?limit=500", WayOut::Json),
            ("/api/changes?limit=500", WayOut::Json),
            ("/api/alerts?limit=500", WayOut::Json),
            ("/api/outbox?limit=500", WayOut::Json),
            ("/api/outbox/1", WayOut::Json),
            ("/api/silences", WayOut::Json),
            ("/api/alerts?token=%1b%5b31m%0a", WayOut::Json),
            ("/api/changes?kind=%1b%5b31m%0a%c2%9b", WayOut::Json),
            ("/%1b%5b31m%0a", WayOut::Terminal),
        ] {
            let answer = reqwest::get(format!("{address}{path}")).await.expect("an answer");
            for (name, value) in answer.headers() {
                assert!(value.to_str().is_ok(), "{path}: {name}: {value:?}");
            }
            check(path, way, &answer.text().await.expect("a text"));
        }
        drop(running);
        // A line that a kill cut off is none.
        let text = log();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        check(&format!("the {format} log"), way, &without_colors(whole));
    }
}
