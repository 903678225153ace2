//! Tests of the real binary: its output, exit codes, signals, and secrets.

mod check_with_database;
mod database;
mod database_server;
mod dialogue;
mod dry_run;
mod first_minutes;
mod inspect;
mod mcp;
mod mcp_limits;
mod message_types;
mod outages;
mod program;
mod reload;
mod replay;
mod restore;
mod runbooks;
mod secrets;
mod signals;
mod unit;
mod walks;

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
    service::{AccessPolicy, Options, Service},
};
use serde_json::{Value, json};
use testkit::faults::{Fault, Faults};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use crate::support::{BEGIN, Hook, burn, buyback, cliff, item, lines, time, two_tokens};

/// The time limit for a command and for each wait.
const WAIT_TIMEOUT: Duration = Duration::from_secs(180);

/// A temporary folder with a config, in which the binary runs.
pub struct Workdir {
    folder: tempfile::TempDir,
    runs: std::cell::Cell<usize>,
}

/// The exit status and output of a command.
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

    /// Returns standard output. Panics if the exit code is not 0.
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

    /// Returns the header and rows of a CSV list. Panics if a row's length differs from the header's.
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

impl Workdir {
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
        // The binary rejects secret files that other users can read.
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o600)).expect("private");
        self
    }

    /// The binary with an empty environment except for `PATH`.
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

    /// Runs a command and waits for its exit.
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

    /// Starts a command in the background.
    fn start(&self, line: &str, environment: &[(&str, &str)]) -> Daemon {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let (mut command, base) = self.command(&arguments);
        command.envs(environment.iter().copied());
        Daemon { child: command.spawn().expect("starts"), base }
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + WAIT_TIMEOUT;
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

/// Waits for a condition. `shown` is called for the failure message.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool, shown: impl Fn() -> String) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {WAIT_TIMEOUT:?}\n{}", shown());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A background process. Killed on drop.
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

    /// Waits for the URL of the pages in the log.
    #[track_caller]
    fn address(&self) -> String {
        self.until_log("web pages at http://");
        let log = self.log();
        let (_, rest) = log.split_once("web pages at ").expect("logged");
        rest.split_whitespace().next().expect("an address").trim_end_matches('/').to_owned()
    }

    /// Sends SIGTERM and waits for the exit.
    #[track_caller]
    fn stop(mut self) -> Ran {
        self.signal("TERM");
        let status = wait(&mut self.child);
        Workdir::ran(status, &self.base)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A folder for the binary, whose config polls an in-process data service and sends to one receiver.
struct Fixture {
    workdir: Workdir,
    service: Service,
    faults: Faults,
    hook: Hook,
    key: String,
    source: std::net::SocketAddr,
    hook_address: std::net::SocketAddr,
    _ending: tokio_util::sync::DropGuard,
}

/// The clock and data of the data service.
enum Time {
    /// Always [`BEGIN`], with two tokens.
    Begin,
    /// The real time, with the token `alpha` and future cliffs only.
    System,
}

/// Noon, `days` days from now.
fn from_now(days: i64) -> Timestamp {
    let day = Clock::system().now().date_naive() + chrono::TimeDelta::days(days);
    day.and_hms_opt(12, 0, 0).expect("noon").and_utc()
}

fn wire(at: Timestamp) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Fixture {
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
        tokio::spawn(serve::serve(listener, faults.wrap(service.legacy_router()), ending.clone().cancelled_owned()));
        let (hook, hook_address) = Hook::start(ending.clone()).await;
        let workdir = Workdir::new();
        workdir.write("rules/test.toml", RULES);
        let fixture = Self { workdir, service, faults, hook, key, source, hook_address, _ending: ending.drop_guard() };
        fixture.configure("");
        fixture
    }

    /// Writes a config that polls all feeds each second, followed by `more`.
    fn configure(&self, more: &str) {
        let (source, hook) = (self.source, self.hook_address);
        let schedule: String = ["token_list", "upcoming", "unlock_events", "burn", "buyback", "evaluate"]
            .map(|job| format!("{job} = \"* * * * * *\"\n"))
            .concat();
        self.workdir.write(
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
    fn until_notified(&self, what: &str, daemon: &Daemon) -> Vec<String> {
        let notified = || lines(&self.hook.accepted().into_iter().map(|(_, body)| body).collect::<Vec<_>>());
        until(what, || notified().iter().any(|line| line.contains(what)), || format!("{:#?}\n{}", notified(), daemon.log()));
        notified()
    }
}

/// Rules with custom texts, so that tests do not depend on the built-in wording.
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
    let response = client.get(format!("{address}{path}")).send().await.expect("an answer");
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.text().await.expect("a text")
}

/// The number of unlock records in the database.
fn unlocks(fixture: &Fixture) -> i64 {
    let path = fixture.workdir.path("test.db");
    if !path.exists() {
        return 0;
    }
    let Ok(database) = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY) else { return 0 };
    database.query_row("SELECT count(*) FROM record WHERE resource = 'unlock'", [], |row| row.get(0)).unwrap_or(0)
}

/// The commands listed in a help text.
pub fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned);
    listed.filter(|line| !line.starts_with("   ")).filter_map(name).collect()
}
