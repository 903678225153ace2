//! The real binary, entered by the user's door: what it prints, how it exits, what it does with signals, what it never shows.

mod dialogue;
mod dry_run;
mod known;
mod program;
mod reload;
mod restore;

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use cliffwatch::{
    model::{clock::Clock, supply::Timestamp},
    service as serve,
    service::{
        AccessPolicy, Options, Service,
        faults::{Fault, Faults},
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use crate::support::{BEGIN, Hook, burn, buyback, cliff, item, lines, time, two_tokens};

/// How long one command, or anything that is waited for, may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a config, for the binary alone.
pub struct Desk {
    folder: tempfile::TempDir,
    runs: std::cell::Cell<usize>,
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by {}: {}", self.status, self.err))
    }

    /// Standard output of a command that did what it was asked.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code(), 0, "{}\n{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    fn json(self) -> Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Header and rows of a CSV list; each row is as long as its header.
    #[track_caller]
    fn csv(self) -> Vec<Vec<String>> {
        let rows: Vec<Vec<String>> = self.ok().lines().map(csv_row).collect();
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:#?}");
        rows
    }
}

fn csv_row(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().expect("a cell").push(c),
        }
    }
    cells
}

impl Desk {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("rules")).expect("a folder");
        Self { folder, runs: std::cell::Cell::new(0) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.path(name), text).expect("written");
        // Some of it is a secret.
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o600)).expect("private");
        self
    }

    /// The binary with nothing of our environment but where programs are.
    fn command(&self, arguments: &[&str]) -> (Command, PathBuf) {
        self.runs.set(self.runs.get() + 1);
        let base = self.path(&format!("ran-{}", self.runs.get()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
        command.args(arguments).current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdout(fs::File::create(base.with_extension("out")).expect("a file"));
        command.stderr(fs::File::create(base.with_extension("err")).expect("a file"));
        (command, base)
    }

    fn ran(status: ExitStatus, base: &Path) -> Ran {
        let read = |extension| String::from_utf8(fs::read(base.with_extension(extension)).expect("read")).expect("UTF-8");
        Ran { status, out: read("out"), err: read("err") }
    }

    /// Runs a command to its end.
    pub fn run(&self, line: &str) -> Ran {
        self.run_with(line, &[])
    }

    fn run_with(&self, line: &str, environment: &[(&str, &str)]) -> Ran {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let (mut command, base) = self.command(&arguments);
        command.envs(environment.iter().copied());
        let mut child = command.spawn().expect("starts");
        let status = wait(&mut child);
        Self::ran(status, &base)
    }

    /// Starts a command that goes on by itself.
    fn start(&self, line: &str, environment: &[(&str, &str)]) -> Daemon {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let (mut command, base) = self.command(&arguments);
        command.envs(environment.iter().copied());
        Daemon { child: command.spawn().expect("starts"), base }
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("waits") {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().ok();
            return child.wait().expect("ended");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for a condition; `shown` is what the failure shows.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool, shown: impl Fn() -> String) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not in {PATIENCE:?}\n{}", shown());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that runs until it is told to stop, or the test is over.
struct Daemon {
    child: Child,
    base: PathBuf,
}

impl Daemon {
    fn log(&self) -> String {
        fs::read_to_string(self.base.with_extension("err")).unwrap_or_default()
    }

    #[track_caller]
    fn until_log(&self, text: &str) {
        until(text, || self.log().contains(text), || self.log());
    }

    fn signal(&self, name: &str) {
        Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().expect("kill runs");
    }

    /// The address of its pages.
    #[track_caller]
    fn address(&self) -> String {
        self.until_log("status page at http://");
        let log = self.log();
        let (_, rest) = log.split_once("status page at ").expect("logged");
        rest.split_whitespace().next().expect("an address").trim_end_matches('/').to_owned()
    }

    /// Asks it to end, and waits for that.
    #[track_caller]
    fn stop(mut self) -> Ran {
        self.signal("TERM");
        let status = wait(&mut self.child);
        Desk::ran(status, &self.base)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A desk whose config asks our own service, with a receiver.
struct Room {
    desk: Desk,
    service: Service,
    faults: Faults,
    hook: Hook,
    key: String,
    source: std::net::SocketAddr,
    hook_address: std::net::SocketAddr,
    _ending: tokio_util::sync::DropGuard,
}

/// What a room's clock shows.
enum Time {
    /// [`BEGIN`], always; two tokens.
    Begin,
    /// The real time; `alpha` alone, whose cliffs lie ahead of it.
    System,
}

/// Noon, so many days from now.
fn from_now(days: i64) -> Timestamp {
    let day = Clock::system().now().date_naive() + chrono::TimeDelta::days(days);
    day.and_hms_opt(12, 0, 0).expect("noon").and_utc()
}

fn wire(at: Timestamp) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Room {
    async fn new(time_: Time, access: AccessPolicy) -> Self {
        let ending = CancellationToken::new();
        let clock = match time_ {
            Time::Begin => Clock::manual(time(BEGIN)),
            Time::System => Clock::system(),
        };
        let service = Service::in_memory(Options { access, clock, ..Options::default() }).expect("a service");
        match time_ {
            Time::Begin => service.edit(two_tokens),
            Time::System => service.edit(|edit| {
                edit.put_token(&item("alpha", "ALP"))?;
                let at = [10, 80, 110, 140, 170].map(from_now);
                edit.put_events("alpha", at.map(|at| cliff(&wire(at), "Team", 2_000_000.0, "second")).to_vec())
            }),
        }
        .expect("filled");
        let key = service.add_key("desk", 100_000).expect("a key");
        let faults = Faults::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, service.faulty_router(&faults), ending.clone().cancelled_owned()));
        let (hook, hook_address) = Hook::start(ending.clone()).await;
        let desk = Desk::new();
        desk.write("rules/test.toml", RULES);
        let room = Self { desk, service, faults, hook, key, source, hook_address, _ending: ending.drop_guard() };
        room.configure("");
        room
    }

    /// Writes the config: each second, everything, with `more` behind it.
    fn configure(&self, more: &str) {
        let (source, hook) = (self.source, self.hook_address);
        let schedule: String = ["token_list", "upcoming", "unlock_events", "burn", "buyback", "evaluate"]
            .map(|job| format!("{job} = \"* * * * * *\"\n"))
            .concat();
        self.desk.write(
            "cliffwatch.toml",
            &format!(
                r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 60000
timeout = "5s"
[schedule]
{schedule}
allocations = "off"
[store]
path = "test.db"
[http]
listen = "127.0.0.1:0"
[log]
format = "human"
[[receiver]]
name = "ops"
type = "webhook"
url = "http://{hook}/hook"
[route]
receivers = ["ops"]
{more}
"#
            ),
        );
    }

    #[track_caller]
    fn until_told(&self, what: &str, daemon: &Daemon) -> Vec<String> {
        let told = || lines(&self.hook.accepted().into_iter().map(|(_, body)| body).collect::<Vec<_>>());
        until(what, || told().iter().any(|line| line.contains(what)), || format!("{:#?}\n{}", told(), daemon.log()));
        told()
    }
}

/// Rules whose texts are their own, so that the built-in wording may change.
const RULES: &str = r#"
[[rule]]
alert  = "BigCliffAhead"
on     = "unlock"
within = ["30d", "7d", "1d"]
when   = "cliffValue >= 1000000"
labels = { severity = "warning" }
annotations = { summary = "{{ token.symbol }} unlocks {{ cliffValue | usd }}" }

[[rule]]
alert = "ScheduleChanged"
on    = "unlock.*"
annotations = { summary = "{{ token.symbol }}: {{ change.kind }}" }

[[rule]]
alert = "BoughtBack"
on    = "buyback"
annotations = { summary = "{{ token.symbol }} bought back" }
"#;

async fn get(address: &str, path: &str) -> String {
    cliffwatch::source::install_crypto_provider();
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().expect("a client");
    let answer = client.get(format!("{address}{path}")).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    answer.text().await.expect("a text")
}

// ---- the first minutes ----

#[test]
fn what_init_writes_passes_check_and_a_second_init_replaces_nothing() {
    let desk = Desk::new();
    fs::remove_dir(desk.path("rules")).expect("removed");
    let ran = desk.run("init");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert!(ran.err.contains("wrote cliffwatch.toml") && ran.err.contains("cliffwatch check"), "{}", ran.err);
    desk.write("api-key", "a key\n");
    for line in ["check", "check --strict"] {
        let ran = desk.run(line);
        assert_eq!((ran.code(), ran.out.as_str()), (0, ""), "{line}: {}", ran.err);
    }
    let before = fs::read(desk.path("cliffwatch.toml")).expect("read");
    let again = desk.run("init");
    assert_eq!(again.code(), 1);
    assert!(again.err.contains("nothing was written"), "{}", again.err);
    assert_eq!(fs::read(desk.path("cliffwatch.toml")).expect("read"), before);
}

#[test]
fn a_typo_is_answered_with_its_place_and_its_likely_meaning() {
    let good_config = "[source]\napi_key = \"k\"\n[watch]\ntokens = [\"arbitrum\"]\n";
    let good_rule = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\"]\nwhen = \"cliffValue >= 5000000\"\n";
    let cases = [
        ("a config key", "[source]\napi_key = \"k\"\n[watch]\ntokns = [\"arbitrum\"]\n".to_owned(), good_rule.to_owned()),
        ("a config section", format!("{good_config}[budgt]\nreserve = \"5%\"\n"), good_rule.to_owned()),
        ("a cron expression", format!("{good_config}[schedule]\nburn = \"0 20 */6 * *\"\n"), good_rule.to_owned()),
        ("a cron field", format!("{good_config}[schedule]\nburn = \"0 75 */6 * * *\"\n"), good_rule.to_owned()),
        ("a time zone", format!("{good_config}[schedule]\ntimezone = \"Europe/Berln\"\n"), good_rule.to_owned()),
        ("a rule key", good_config.to_owned(), good_rule.replace("within", "wihtin")),
        ("a record", good_config.to_owned(), good_rule.replace("\"unlock\"", "\"unlok\"")),
        ("a field", good_config.to_owned(), good_rule.replace("cliffValue", "clifValue")),
        ("a type", good_config.to_owned(), good_rule.replace("cliffValue >= 5000000", "cliffValue >= 'five'")),
        ("a lead time", good_config.to_owned(), good_rule.replace("7d", "7dd")),
        (
            "a template variable",
            good_config.to_owned(),
            format!("{good_rule}annotations = {{ summary = \"{{{{ token.symbl }}}}\" }}\n"),
        ),
        (
            "a template filter",
            good_config.to_owned(),
            format!("{good_rule}annotations = {{ summary = \"{{{{ cliffValue | uds }}}}\" }}\n"),
        ),
        (
            "a receiver",
            format!(
                "{good_config}[route]\nreceivers = [\"opps\"]\n[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://example.com/x\"\n"
            ),
            good_rule.to_owned(),
        ),
    ];
    let mut golden = String::new();
    for (what, config, rule) in cases {
        let desk = Desk::new();
        desk.write("cliffwatch.toml", &config).write("rules/a.toml", &rule);
        let ran = desk.run("check");
        assert_eq!((ran.code(), ran.out.as_str()), (1, ""), "{what}: {}", ran.err);
        let problems: Vec<&str> = ran.err.lines().take_while(|line| !line.contains("1 error")).collect();
        golden.push_str(&format!("━━ {what}\n{}\n", problems.join("\n")));
        // The same place for programs.
        let ran = desk.run("check --format json");
        let problems: Value = serde_json::from_str(&ran.out).expect("JSON");
        let place = |key: &str| problems[0][key].as_u64().unwrap_or_default();
        assert_eq!(ran.code(), 1, "{what}");
        assert!(place("line") > 0 && place("column") > 0, "{what}: {problems:#}");
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn every_problem_of_every_file_is_told_at_once() {
    let desk = Desk::new();
    desk.write("cliffwatch.toml", "[watch]\ntokens = [\"arbitrum\"]\n");
    desk.write(
        "rules/a.toml",
        "[[rule]]\nalert = \"A\"\non = \"unlok\"\n[[rule]]\nalert = \"B\"\non = \"burn\"\nwhen = \"amunt > 1\"\n",
    );
    desk.write("rules/b.toml", "[[rule]]\nalert = \"C\"\non = \"unlock\"\nwen = \"true\"\n");
    let ran = desk.run("check");
    for said in ["rules/a.toml:3:", "rules/a.toml:7:", "rules/b.toml:4:", "3 errors"] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
}

#[test]
fn exit_codes_are_those_of_the_readme() {
    let desk = Desk::new();
    desk.write("cliffwatch.toml", "[watch]\ntokens = [\"arbitrum\"]\n");
    // In percent: 0.05 is hardly meant.
    desk.write(
        "rules/a.toml",
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\"]\nwhen = \"valueToMarketCap >= 0.05\"\n",
    );
    for (line, code) in [
        ("--version", 0),
        ("--help", 0),
        ("check", 0),
        ("check --strict", 3),
        ("", 2),
        ("chek", 2),
        ("check --strikt", 2),
        ("check --format csv", 2),
        ("upcoming --within 30x", 2),
        ("outbox retry", 2),
        ("status", 1),
        ("--config nowhere.toml check", 1),
        ("--config nowhere.toml run", 1),
    ] {
        let ran = desk.run(line);
        assert_eq!(ran.code(), code, "{line:?}: {}", ran.err);
        assert!(code == 0 || !ran.err.is_empty(), "{line:?} says why");
    }
    desk.write("rules/a.toml", "[[rule]]\nalert = \"A\"\n");
    assert_eq!(desk.run("check --strict").code(), 1, "errors outweigh warnings");
}

/// The commands in a page of help.
pub fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned);
    listed.filter(|line| !line.starts_with("   ")).filter_map(name).collect()
}

#[test]
fn every_command_explains_itself() {
    let desk = Desk::new();
    let mut open: Vec<String> = commands(&desk.run("--help").ok());
    assert!(open.len() >= 16, "{open:?}");
    let mut seen = 0;
    while let Some(line) = open.pop() {
        let help = desk.run_with(&format!("{line} --help"), &[("CLIFFWATCH_SOURCE__API_KEY", "hidden-value")]).ok();
        assert!(help.contains(&format!("Usage: cliffwatch {line}")), "{help}");
        let about = help.lines().next().unwrap_or_default();
        assert!(about.len() > 10 && !about.starts_with("Usage"), "{line} says what it does: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{line} fits a terminal:\n{help}");
        assert!(!help.contains("hidden-value"), "{help}");
        open.extend(commands(&help).into_iter().map(|sub| format!("{line} {sub}")));
        seen += 1;
    }
    assert!(seen >= 24, "{seen} commands");
}

// ---- looking ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_seen_is_shown_as_table_json_and_csv() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    room.configure("[[receiver]]\nname = \"sick\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9/hook\"\n[[route.routes]]\nmatchers = ['alertname=\"BoughtBack\"']\nreceivers = [\"sick\"]\n");
    let desk = &room.desk;
    let at = |time: &str, line: &str| desk.run(&format!("--now {time} {line}"));
    let empty = at(BEGIN, "upcoming");
    assert_eq!(empty.code(), 1, "there is no database yet");
    assert!(empty.err.contains("cliffwatch poll"), "{}", empty.err);

    at(BEGIN, "poll").ok();
    room.service
        .edit(|edit| {
            edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z"))?;
            edit.add_buyback("beta", buyback("2026-02-28T02:00:00Z", 700.0))
        })
        .expect("edited");
    let seen = at("2026-03-01T06:00:00Z", "poll").ok();
    assert!(seen.contains("rescheduled") && seen.contains("delivered") && seen.contains("retrying"), "{seen}");
    assert_eq!(
        lines(&room.hook.take()),
        ["alert.firing BigCliffAhead alpha: ALP unlocks $2.00M", "alert.event ScheduleChanged alpha: ALP: rescheduled"]
    );

    let now = "2026-03-01T07:00:00Z";
    let mut golden = String::new();
    for line in ["upcoming", "upcoming --within 60d alpha", "changes", "alerts", "outbox list"] {
        let page = at(now, line).ok();
        golden.push_str(&format!("━━ {line}\n{page}\n"));
    }
    let filters =
        [(r"\b[0-9a-f]{16,}\b", "ID"), (r"127\.0\.0\.1:\d+", "HOST"), (r"2026-03-01 06:00:\d\d", "SOON"), (r"[ ]+\n", "\n")];
    insta::with_settings!({filters => filters}, { insta::assert_snapshot!(golden) });

    let upcoming = at(now, "upcoming --format json").json();
    assert_eq!(upcoming.as_array().expect("a list").len(), 7);
    assert_eq!((&upcoming[0]["tokenId"], &upcoming[0]["cliffValue"]), (&json!("alpha"), &json!(2_000_000.0)), "{upcoming:#}");
    let changes = at(now, "changes --kind rescheduled --token ALP --format json").json();
    assert_eq!(changes[0]["change"]["shiftDays"], 5.0, "{changes:#}");
    let alerts = at(now, "alerts --state event --format json").json();
    assert_eq!(alerts.as_array().expect("a list").len(), 2, "{alerts:#}");
    let status = at(now, "status --format json").json();
    assert_eq!(status["sourceUp"], true, "{status:#}");
    for (line, header, rows) in [
        ("upcoming", "symbol", 7),
        ("changes", "at", 2),
        ("alerts --limit 2", "updatedAt", 2),
        ("outbox list", "id", 3),
        ("outbox list --receiver ops --state delivered", "id", 2),
        ("outbox list --state dead", "id", 0),
    ] {
        let csv = at(now, &format!("{line} --format csv")).csv();
        assert_eq!((csv[0][0].as_str(), csv.len() - 1), (header, rows), "{line}: {csv:#?}");
    }
    let page = at(now, "status").ok();
    for said in ["source    up", "2 known, 2 listed", "1 firing", "unlock_events"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let strange = at(now, "changes --token nobody");
    assert_ne!(strange.code(), 0, "a token that is not known is not the same as no changes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_can_be_looked_at_sent_again_under_its_id_and_dropped() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    let desk = &room.desk;
    let at = |time: &str, line: &str| desk.run(&format!("--now {time} {line}"));
    room.hook.answer_always(Some(400));
    at(BEGIN, "poll");
    let rows = at(BEGIN, "outbox list --format json").json();
    let row =
        rows.as_array().expect("rows").iter().find(|row| row["alerts"][0]["rule"] == "BigCliffAhead").expect("the cliff").clone();
    assert_eq!((&row["state"], &row["attempts"]), (&json!("dead"), &json!(1)), "{row:#}");
    let (id, webhook_id) = (row["id"].as_i64().expect("an id"), row["webhookId"].as_str().expect("an id").to_owned());
    let page = at(BEGIN, &format!("outbox show {id}")).ok();
    for said in [webhook_id.as_str(), "dead", "400", "ALP unlocks $2.00M", "nothing at"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let shown = at(BEGIN, &format!("outbox show {id} --format json")).json();
    assert_eq!(shown["attemptLog"].as_array().map(Vec::len), Some(1), "{shown:#}");
    assert_eq!(at(BEGIN, "outbox show 99999").code(), 2);

    room.hook.answer_always(None);
    let ran = at(BEGIN, &format!("outbox retry {id}"));
    assert_eq!(ran.code(), 0, "{}", ran.err);
    at("2026-03-01T00:10:00Z", "poll").ok();
    let accepted = room.hook.accepted();
    assert_eq!(accepted.iter().filter(|(id, _)| *id == webhook_id).count(), 1, "{accepted:#?}");
    let ran = at(BEGIN, &format!("outbox retry {id}"));
    assert_eq!(ran.code(), 1, "what was delivered is not sent again: {}", ran.err);

    // Another one, dropped: it is never sent.
    room.hook.answer_always(Some(503));
    room.service.edit(|edit| edit.add_buyback("beta", buyback("2026-02-28T02:00:00Z", 700.0))).expect("edited");
    at("2026-03-01T06:00:00Z", "poll");
    let rows = at(BEGIN, "outbox list --state retrying --format json").json();
    let id = rows[0]["id"].as_i64().expect("one waits");
    assert_eq!(at(BEGIN, &format!("outbox drop {id}")).code(), 0);
    room.hook.answer_always(None);
    room.hook.take();
    at("2026-03-01T12:00:00Z", "poll");
    assert_eq!(lines(&room.hook.take()).iter().filter(|line| line.contains("BoughtBack")).count(), 0);
    let rows = at(BEGIN, "outbox list --state dropped --format json").json();
    assert_eq!(rows[0]["id"], id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_commits_and_sends_nothing() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    room.desk.run(&format!("--now {BEGIN} poll --dry-run")).ok();
    assert!(!room.desk.folder.path().join("test.db").exists(), "where there is no database, it makes none");
    assert_eq!(room.hook.take(), Vec::<Value>::new());
    let seen = room.desk.run(&format!("--now {BEGIN} poll")).ok();
    assert!(seen.contains("unlock_events: 2 asked, 2 fresh"), "nothing was learnt before: {seen}");
    assert_eq!(room.hook.take().len(), 1);
    let before = room.desk.run("status --format json").json();
    room.desk.run("--now 2026-03-21T00:00:00Z poll --dry-run").ok();
    let after = room.desk.run("status --format json").json();
    assert_eq!((&before["alerts"], &before["endpoints"][0]["lastTry"]), (&after["alerts"], &after["endpoints"][0]["lastTry"]));
    assert!(
        before["credits"]["spent"].as_u64() < after["credits"]["spent"].as_u64(),
        "only what it cost is written down: {after}"
    );
    assert_eq!(room.hook.take(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_that_could_not_ask_fails_and_says_so() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    room.faults.set("/v5/unlock/events/alpha", Fault::Html);
    let ran = room.desk.run(&format!("--now {BEGIN} poll"));
    assert_eq!(ran.code(), 1, "{}", ran.out);
    assert!(ran.out.contains("failed  unlock_events/alpha") && ran.out.contains("text/html"), "{}", ran.out);
}

// ---- the database ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_daemon_on_one_database_is_refused_and_commands_are_not() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let daemon = room.desk.start("run", &[]);
    daemon.until_log("is watching");
    let second = room.desk.run("run");
    assert_eq!(second.code(), 1, "{}", second.err);
    let pid = daemon.child.id().to_string();
    assert!(second.err.contains("test.db") && second.err.contains(&pid), "it names the database and who has it: {}", second.err);
    assert_eq!(room.desk.run("poll").code(), 1, "poll writes, so it is refused too");
    room.desk.run("status").ok();
    room.desk.run("outbox list").ok();
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_program_is_refused_and_left_as_it_is() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    room.desk.run(&format!("--now {BEGIN} poll")).ok();
    let path = room.desk.path("test.db");
    let database = rusqlite::Connection::open(&path).expect("opens");
    database.pragma_update(None, "user_version", 999).expect("set");
    database.close().expect("closed");
    let before = fs::read(&path).expect("read");
    for line in ["run", "poll", "status", "upcoming", "outbox list", "backup copy.db"] {
        let ran = room.desk.run(line);
        assert_eq!(ran.code(), 1, "{line}: {}", ran.err);
        assert!(ran.err.contains("test.db") && ran.err.contains("999") && ran.err.contains("newer"), "{line}: {}", ran.err);
    }
    assert_eq!(fs::read(&path).expect("read"), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_a_running_daemon_is_whole_and_opens() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    let daemon = room.desk.start("run", &[]);
    room.until_told("Any", &daemon);
    let ran = room.desk.run("backup copy.db");
    assert_eq!(ran.code(), 0, "{}", ran.err);
    assert_eq!(room.desk.run("backup copy.db").code(), 1, "a file that is there is not replaced");
    assert_eq!(daemon.stop().code(), 0);
    let copy = [("CLIFFWATCH_STORE__PATH", "copy.db")];
    let alerts = room.desk.run_with("alerts --format json", &copy).json();
    assert!(!alerts.as_array().expect("a list").is_empty());
    let database = rusqlite::Connection::open(room.desk.path("copy.db")).expect("opens");
    assert_eq!(database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).expect("checked"), "ok");
}

// ---- signals ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_finishes_the_tick_in_hand_and_leaves_with_0() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let path = "/v5/unlock/events/alpha";
    room.faults.set(path, Fault::Slow(Duration::from_millis(1500)));
    let mut daemon = room.desk.start("run", &[]);
    let asked = || room.faults.log().iter().any(|seen| seen.uri.starts_with(path));
    until("an unlock schedule is asked for", asked, || daemon.log());
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert_eq!(status.code(), Some(0), "{status}\n{}", daemon.log());
    assert!(daemon.log().contains("stopped"), "{}", daemon.log());
    assert_eq!(unlocks(&room), 5, "the answer that was waited for is written down\n{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_during_a_slow_first_cycle_leaves_within_ten_seconds_and_loses_nothing() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let tokens: Vec<String> = (0..40).map(|number| format!("slow-{number}")).collect();
    room.service
        .edit(|edit| {
            for token in &tokens {
                edit.put_token(&item(token, "SLO"))?;
                edit.put_events(token, vec![cliff(&wire(from_now(20)), "Team", 3_000_000.0, "second")])?;
            }
            Ok(())
        })
        .expect("filled");
    room.faults.set("/v5/unlock/events", Fault::Slow(Duration::from_secs(4)));
    let mut daemon = room.desk.start("run", &[]);
    let asked = || room.faults.log().iter().any(|seen| seen.uri.starts_with("/v5/unlock/events"));
    until("an unlock schedule is asked for", asked, || daemon.log());
    let begun = Instant::now();
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}\n{}", begun.elapsed(), daemon.log());
    assert_eq!(status.code(), Some(0), "{status}\n{}", daemon.log());

    room.faults.clear();
    let daemon = room.desk.start("run", &[]);
    let told = || lines(&room.hook.accepted().into_iter().map(|(_, body)| body).collect::<Vec<_>>());
    let missing =
        || tokens.iter().filter(|token| !told().iter().any(|line| line.contains(&format!("BigCliffAhead {token}:")))).count();
    until("every token is told", || missing() == 0, || format!("{:#?}\n{}", told(), daemon.log()));
    let told = told();
    let doubled: Vec<_> = tokens
        .iter()
        .filter(|token| told.iter().filter(|line| line.contains(&format!("BigCliffAhead {token}:"))).count() > 1)
        .collect();
    assert!(doubled.is_empty(), "{doubled:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigint_and_a_sigterm_at_the_very_start_end_it_in_good_order() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let mut daemon = room.desk.start("run", &[]);
    daemon.until_log("is watching");
    daemon.signal("INT");
    assert_eq!(wait(&mut daemon.child).code(), Some(0), "{}", daemon.log());
    let mut daemon = room.desk.start("run", &[]);
    // As early as it can be seen to live: its lock is taken before anything else of the database.
    until(
        "the lock is taken",
        || fs::read_to_string(room.desk.path("test.db.lock")).is_ok_and(|pid| pid.trim() == daemon.child.id().to_string()),
        || daemon.log(),
    );
    daemon.signal("TERM");
    let status = wait(&mut daemon.child);
    assert_eq!((status.code(), status.signal()), (Some(0), None), "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_is_inert_where_the_file_is_bad_or_the_same() {
    let room = Room::new(Time::System, AccessPolicy::Open).await;
    let daemon = room.desk.start("run", &[]);
    let address = daemon.address();
    until("the first read", || unlocks(&room) == 5, || daemon.log());

    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"X\"\non = \"unlok\"\n");
    daemon.signal("HUP");
    room.until_told("source ", &daemon);
    let told = lines(&room.hook.take());
    assert!(told.iter().any(|line| line.contains("SourceTrouble")), "{told:#?}");
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 0"));
    assert!(daemon.log().contains("rules/test.toml:3:7"), "the log says where: {}", daemon.log());
    assert!(get(&address, "/api/status").await.contains("unlok"), "and so does the status page");

    // The old rules are at work.
    room.service.edit(|edit| edit.move_event("alpha", from_now(110), from_now(115))).expect("edited");
    room.until_told("ScheduleChanged alpha", &daemon);

    // A good file ends the trouble; it holds another rule, which works from now on.
    let more = format!("{RULES}\n[[rule]]\nalert = \"Burned\"\non = \"burn\"\nwhen = \"amount > 1\"\n");
    room.desk.write("rules/test.toml", &more);
    daemon.signal("HUP");
    daemon.until_log("the rules were reloaded");
    assert!(get(&address, "/metrics").await.contains("cliffwatch_config_last_reload_successful 1"));
    until(
        "the recovery",
        || room.hook.accepted().iter().any(|(_, body)| body["type"] == "source" && body["data"]["status"] == "resolved"),
        || daemon.log(),
    );
    room.service.edit(|edit| edit.add_burn("alpha", burn(&wire(from_now(-1)), 9_000.0))).expect("edited");
    room.until_told("Burned alpha", &daemon);

    // The same file again tells nothing: wait until evaluations have passed.
    room.hook.take();
    daemon.signal("HUP");
    until("the second reload", || daemon.log().matches("the rules were reloaded").count() == 2, || daemon.log());
    let evaluated = || {
        let database = rusqlite::Connection::open(room.desk.path("test.db")).expect("opens");
        database.query_row("SELECT slot FROM job WHERE name = 'evaluate'", [], |row| row.get::<_, i64>(0)).expect("read")
    };
    let before = evaluated();
    until("two evaluations", || evaluated() >= before + 2_000, || daemon.log());
    assert_eq!(lines(&room.hook.take()), [""; 0]);
    assert_eq!(daemon.stop().code(), 0);
}

/// Records of unlocks in the database of a room.
fn unlocks(room: &Room) -> i64 {
    let path = room.desk.path("test.db");
    if !path.exists() {
        return 0;
    }
    let Ok(database) = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY) else { return 0 };
    database.query_row("SELECT count(*) FROM record WHERE resource = 'unlock'", [], |row| row.get(0)).unwrap_or(0)
}

// ---- trouble ----

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
}

// ---- secrets ----

/// A mail server that refuses every login and says why, with what it was given.
async fn rude_mail_server(ending: CancellationToken) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        loop {
            let stream = tokio::select! {
                Ok((stream, _)) = listener.accept() => stream,
                () = ending.cancelled() => return,
            };
            tokio::spawn(async move {
                let (read, mut write) = stream.into_split();
                write.write_all(b"220 rude ESMTP\r\n").await.ok();
                let mut lines = BufReader::new(read).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    let answer = match line.split(' ').next().unwrap_or_default().to_ascii_uppercase().as_str() {
                        "EHLO" => "250-rude\r\n250 AUTH PLAIN LOGIN\r\n".to_owned(),
                        "AUTH" => format!("535 5.7.8 refused: {line} smtp-password-4242\r\n"),
                        "QUIT" => "221 bye\r\n".to_owned(),
                        _ => "250 ok\r\n".to_owned(),
                    };
                    if write.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_shown_anywhere() {
    let room = Room::new(Time::System, AccessPolicy::Keys).await;
    let ending = CancellationToken::new();
    let mail = rude_mail_server(ending.clone()).await;
    let hook = room.hook_address;
    // Inline, by file, and by the environment.
    room.desk.write("api-key", &room.key).write("ops-secret", "whsec_c2lnbmluZy1zZWNyZXQtNDI0Mg==\n");
    room.configure(&format!(
        r#"
fallback = ["mail"]
[[receiver]]
name = "signed"
type = "webhook"
url = "http://{hook}/hook/url-secret-4242"
secret_file = "ops-secret"
[[receiver]]
name = "mail"
type = "email"
smtp = "smtp://{mail}"
username = "alerts"
password = "smtp-password-4242"
from = "Cliffwatch <a@example.com>"
to = ["b@example.com"]
[[route.routes]]
matchers = ['alertname=~".+"']
receivers = ["ops", "signed", "mail"]
"#
    ));
    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    room.hook.answer_always(Some(503));
    let environment = [
        ("CLIFFWATCH_SOURCE__API_KEY_FILE", "api-key"),
        ("CLIFFWATCH_HTTP__TOKEN", "http-token-4242"),
        ("CLIFFWATCH_HTTP__DEAD_MANS_SWITCH", "http://127.0.0.1:9/ping/switch-secret-4242"),
        ("RUST_LOG", "trace"),
    ];
    let secrets = [
        room.key.as_str(),
        "c2lnbmluZy1zZWNyZXQtNDI0Mg",
        "signing-secret-4242",
        "url-secret-4242",
        "smtp-password-4242",
        // The login as it goes over the wire: base64 of NUL, name, NUL, password.
        "AGFsZXJ0cwBzbXRwLXBhc3N3b3JkLTQyNDI",
        "http-token-4242",
        "switch-secret-4242",
    ];
    let clean = |what: &str, text: &str| {
        for secret in secrets {
            if let Some(at) = text.find(secret) {
                let from = text[..at].rfind('\n').map_or(0, |at| at + 1);
                panic!("{what} shows {secret}: {}", &text[from..(at + secret.len() + 40).min(text.len())]);
            }
        }
    };

    let daemon = room.desk.start("run", &environment);
    let address = daemon.address();
    // Everything has met refusal once: the webhooks 503, the mail server a bad login, the switch a closed port.
    let tried = || {
        let rows = room.desk.run_with("outbox list --format json", &environment).json();
        let rows = rows.as_array().expect("rows").clone();
        ["ops", "signed", "mail"]
            .iter()
            .all(|name| rows.iter().any(|row| row["receiver"] == *name && row["lastAnswer"].is_string()))
    };
    until("each receiver was tried", tried, || daemon.log());
    // They were really used, and repeated to us: what is kept of it is clean.
    let rows = room.desk.run_with("outbox list --format json", &environment).json();
    let answers: String = rows.as_array().expect("rows").iter().filter_map(|row| row["lastAnswer"].as_str()).collect();
    assert!(answers.contains("535") && answers.contains("refused: AUTH") && answers.contains("nothing at"), "{answers}");
    // A source in trouble that repeats the key; then one that refuses it.
    room.faults.set("/v", Fault::Body(format!("{{\"status\":false,\"errorMessage\":\"bad key {}\"}}", room.key)));
    until("the source is in trouble", || daemon.log().contains("failed"), || daemon.log());
    room.faults.clear();
    room.faults.set("/v", Fault::status(401));
    until("the key is refused", || daemon.log().contains("unauthorized"), || daemon.log());

    for path in ["/", "/metrics", "/api/status", "/api/upcoming", "/api/changes", "/api/alerts", "/api/outbox", "/-/ready"] {
        clean(path, &page(&address, path).await);
    }
    for line in [
        "check",
        "check --format json",
        "status",
        "alerts",
        "changes",
        "upcoming",
        "outbox list",
        "outbox show 1",
        "outbox show 2",
        "outbox show 3",
        "--help",
        "run --help",
    ] {
        let ran = room.desk.run_with(line, &environment);
        clean(line, &ran.out);
        clean(line, &ran.err);
    }
    room.hook.answer_always(None);
    until("the receiver takes it at last", || room.hook.was_signed(), || daemon.log());
    let ran = daemon.stop();
    assert_eq!(ran.code(), 0);
    clean("the log", &ran.err);
    clean("standard output", &ran.out);
    for entry in fs::read_dir(room.desk.folder.path()).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test.db")) {
            clean("the database", &String::from_utf8_lossy(&fs::read(&path).expect("read")));
        }
    }
    // A config that cannot be used is told without the secrets in it, nor those in the lines around.
    let broken = fs::read_to_string(room.desk.path("cliffwatch.toml")).expect("read").replace("username", "usrname");
    room.desk.write("cliffwatch.toml", &broken);
    let ran = room.desk.run_with("check", &environment);
    assert_eq!(ran.code(), 1);
    assert!(ran.err.contains("username"), "{}", ran.err);
    clean("check", &ran.err);
    ending.cancel();
}

/// A page, with the token, whatever its status.
async fn page(address: &str, path: &str) -> String {
    cliffwatch::source::install_crypto_provider();
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().expect("a client");
    client
        .get(format!("{address}{path}"))
        .bearer_auth("http-token-4242")
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("a text")
}

// ---- the unit ----

#[test]
fn the_unit_is_valid_and_hardened() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("SKIPPED the_unit_is_valid_and_hardened: systemd-analyze is not installed (Debian: apt-get install systemd)");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let unit = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/cliffwatch.service")).expect("read");
    // `verify` wants the program to be there.
    let unit = unit.replace("/usr/bin/cliffwatch", env!("CARGO_BIN_EXE_cliffwatch"));
    let path = folder.path().join("cliffwatch.service");
    fs::write(&path, unit).expect("written");
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output().expect("runs");
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("cliffwatch.service")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
    let rated = Command::new("systemd-analyze").args(["security", "--offline=true"]).arg(&path).output().expect("runs");
    let said = String::from_utf8_lossy(&rated.stdout);
    let overall = said.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_else(|| panic!("{said}"));
    let level: f64 = overall.split_whitespace().find_map(|word| word.parse().ok()).expect("a level");
    assert!(level <= 1.5, "{overall}");
}
