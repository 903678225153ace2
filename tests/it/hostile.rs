//! Sends hostile text through the real binary to every output: each command in each format, both log formats, pages, calendar, metrics,
//! mail, and every webhook format. One function checks what must never appear in each kind of output.

mod check;
pub mod out;
mod world;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use check::{OutputKind, check};
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

/// A failing rule test, whose report contains the hostile texts.
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

/// All webhook formats, with their required keys.
pub const FORMATS: [(&str, &str); 20] = [
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

/// Returns whether a format is read by people (chat) or by programs (data).
fn output_kind(format: &str) -> OutputKind {
    match format {
        "cliffwatch" | "alertmanager" | "alertmanager-api" | "template" | "refuse" => OutputKind::Data,
        _ => OutputKind::Chat,
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    world: World,
    hooks: Received,
    mails: Received,
    _ending: tokio_util::sync::DropGuard,
}

impl Fixture {
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
        // Force terminal output: without a terminal, the program strips all escape sequences, and the test would see none.
        command.args(["--color", "always"]).args(arguments).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("USER", "tester");
        command.stdout(fs::File::create(self.path(&format!("{out}.out"))).expect("a file"));
        command.stderr(fs::File::create(self.path(&format!("{out}.err"))).expect("a file"));
        command
    }

    fn text(&self, file: &str) -> String {
        String::from_utf8(fs::read(self.path(file)).expect("read")).expect("UTF-8")
    }

    /// Runs a command and checks both of its streams. The colors of our own diagnostics are allowed.
    fn run(&self, arguments: &[&str], kind: OutputKind) -> String {
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
        check(&format!("{what} (stderr)"), OutputKind::Terminal, &without_colors(&err));
        if status.code() != Some(2) {
            check(&what, kind, &out);
        }
        out
    }
}

/// Removes the color sequences of our own diagnostics. The hostile sequences differ from them.
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

/// A child process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_never_print_hostile_text() {
    let fixture = Fixture::new().await;
    let seen = fixture.run(&["poll"], OutputKind::Terminal);
    assert!(seen.contains("unlock_events"), "{seen}");
    fixture.world.change();
    fixture.run(&["poll", "--dry-run"], OutputKind::Terminal);
    fixture.run(&["poll", "--format", "json"], OutputKind::Json);

    let alerts: Value = serde_json::from_str(&fixture.run(&["alerts", "--format", "json"], OutputKind::Json)).expect("JSON");
    assert!(alerts.as_array().is_some_and(|alerts| alerts.len() > 5), "too few alerts: {alerts:#}");
    let alert = alerts[0]["id"].as_str().expect("an id").to_owned();
    let (token, formula) = (format!("token={}", evil("x")), "token=~\"[=+@-].*\"".to_owned());
    fixture
        .run(&["silence", "add", &token, "--for", "1h", "--comment", &evil("=c"), "--author", &evil("@a")], OutputKind::Terminal);
    fixture.run(&["silence", "add", &formula, "--for", "1h", "--comment", "=1+1", "--author", "+me"], OutputKind::Terminal);
    fixture.run(&["ack", &alert, "--comment", &evil("=c"), "--author", &evil("-a")], OutputKind::Terminal);
    fixture.run(&["accept", &evil("x")], OutputKind::Terminal);

    let rows: Value =
        serde_json::from_str(&fixture.run(&["outbox", "list", "--receiver", "refuse", "--format", "json"], OutputKind::Json))
            .expect("JSON");
    let rejected = rows.as_array().expect("rows").first().expect("a rejected delivery");
    let delivery = rejected["id"].to_string();
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
        for (format, kind) in [("table", OutputKind::Terminal), ("json", OutputKind::Json), ("csv", OutputKind::Csv)] {
            let arguments = [list, &["--format", format]].concat();
            let out = fixture.run(&arguments, if kind == OutputKind::Json { OutputKind::Terminal } else { kind });
            if kind == OutputKind::Json && !out.is_empty() {
                check(&arguments.join(" "), kind, &out);
            }
        }
    }
    for (format, kind) in [("table", OutputKind::Terminal), ("json", OutputKind::Json), ("csv", OutputKind::Csv)] {
        fixture.run(&["backtest", "--html", "report.html", "--messages", "100", "--format", format], kind);
        check("the report of a backtest", OutputKind::Html, &fixture.text("report.html"));
    }
    fixture.run(&["routes", "show"], OutputKind::Terminal);
    fixture.run(&["check"], OutputKind::Terminal);
    fixture.run(&["check", "--format", "json"], OutputKind::Json);
    let report = fixture.run(&["test", "tests/test.toml"], OutputKind::Terminal);
    assert!(report.contains("unexpected:"), "{report}");
    fixture.run(&["test", "tests/test.toml", "--format", "json", "--junit", "junit.xml"], OutputKind::Json);
    check("the results as XML", OutputKind::Terminal, &fixture.text("junit.xml"));

    // Export to files and import them.
    let out = fixture.run(&["export", "out", "--db", "test.db"], OutputKind::Terminal);
    assert!(out.contains("tokens in"), "{out}\n{}", fixture.text("ran.err"));
    names(&fixture.path("out"), &mut |name| check("a file name", OutputKind::Terminal, name));
    fixture.run(&["import", "out", "--db", "service.db"], OutputKind::Terminal);
    fixture.run(&["import", "test.db", "--db", "copy.db", "--format", "json"], OutputKind::Json);
    check_received(&fixture);
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
pub fn fields(form: &str) -> String {
    let form = reqwest::Url::parse(&format!("http://form/?{form}")).expect("a form");
    let fields = form.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned().into()));
    serde_json::Value::Object(fields.collect()).to_string()
}

/// Checks the messages of all webhook formats and of mail.
fn check_received(fixture: &Fixture) {
    let hooks = fixture.hooks.all();
    for (format, _) in FORMATS {
        assert!(hooks.iter().any(|(path, _)| path.trim_matches('/').starts_with(format)), "{format} got nothing");
    }
    for (path, body) in hooks {
        let format = path.trim_matches('/').split('/').next().unwrap_or_default().to_owned();
        let body = if ["zulip", "twilio"].contains(&format.as_str()) { fields(&body) } else { body };
        check(&format!("the body of {format}"), output_kind(&format), &body);
        assert!(!body.contains("\"<!channel>") && (format != "slack" || !body.contains("<!channel>")), "{format}: {body}");
    }
    let mails = fixture.mails.all();
    assert!(!mails.is_empty(), "no mail was received");
    for (_, mail) in mails {
        check("a mail", OutputKind::Mail, &mail);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_and_pages_never_contain_hostile_text() {
    cliffwatch::source::install_crypto_provider();
    let fixture = Fixture::new().await;
    for (format, kind) in [("human", OutputKind::Terminal), ("json", OutputKind::JsonLines)] {
        let mut command = fixture.command(&["run"], "daemon");
        command.env("CLIFFWATCH_LOG__FORMAT", format).env("RUST_LOG", "debug,hyper=info,h2=info,reqwest=info");
        let running = KillOnDrop(command.spawn().expect("starts"));
        let log = || fixture.text("daemon.err");
        let until = async |what: &str, is_so: &dyn Fn(&str) -> bool| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while !is_so(&log()) {
                assert!(Instant::now() < deadline, "{what}: {}", log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        until("the start", &|log| log.contains("web pages at http://")).await;
        let text = log();
        let (_, rest) = text.split_once("web pages at ").expect("an address");
        let address: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != '"').collect();
        let address = address.trim_end_matches('/').to_owned();
        until("all feeds were polled", &|log| log.matches("buyback: ").count() > 1).await;
        fixture.world.change();
        until("a change was logged", &|log| log.contains("change")).await;
        for (path, kind) in [
            ("/", OutputKind::Html),
            ("/metrics", OutputKind::Metrics),
            ("/calendar.ics", OutputKind::Calendar),
            ("/-/ready", OutputKind::Terminal),
            ("/api/v1/status", OutputKind::Json),
            ("/api/v1/upcoming?limit=500", OutputKind::Json),
            ("/api/v1/changes?limit=500", OutputKind::Json),
            ("/api/v1/alerts?limit=500", OutputKind::Json),
            ("/api/v1/outbox?limit=500", OutputKind::Json),
            ("/api/v1/outbox/1", OutputKind::Json),
            ("/api/v1/silences", OutputKind::Json),
            ("/api/v1/alerts?token=%1b%5b31m%0a", OutputKind::Json),
            ("/api/v1/changes?kind=%1b%5b31m%0a%c2%9b", OutputKind::Json),
            ("/%1b%5b31m%0a", OutputKind::Terminal),
        ] {
            let response = reqwest::get(format!("{address}{path}")).await.expect("an answer");
            for (name, value) in response.headers() {
                assert!(value.to_str().is_ok(), "{path}: {name}: {value:?}");
            }
            check(path, kind, &response.text().await.expect("a text"));
        }
        drop(running);
        // Ignore a last line that the kill truncated.
        let text = log();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        check(&format!("the {format} log"), kind, &without_colors(whole));
    }
}
