//! The real binary, entered by the user's door: what it prints, how it exits, what it does with signals, what it never shows.

mod database;
mod dialogue;
mod dry_run;
mod first_minutes;
mod known;
mod looking;
mod program;
mod reload;
mod restore;
mod secrets;
mod signals;
mod trouble;
mod unit;

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

/// Records of unlocks in the database of a room.
fn unlocks(room: &Room) -> i64 {
    let path = room.desk.path("test.db");
    if !path.exists() {
        return 0;
    }
    let Ok(database) = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY) else { return 0 };
    database.query_row("SELECT count(*) FROM record WHERE resource = 'unlock'", [], |row| row.get(0)).unwrap_or(0)
}

/// The commands in a page of help.
pub fn commands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &str| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned);
    listed.filter(|line| !line.starts_with("   ")).filter_map(name).collect()
}
