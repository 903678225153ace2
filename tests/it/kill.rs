//! `kill -9` at named points and at random times. Afterwards every alert was delivered, repeats have the webhook id of the first
//! attempt, and no stored change lacks its delivery. Uses the PostgreSQL server of the environment (`tests/postgres/run`), else a file.

mod bots;
mod followed;

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use cliffwatch::{
    model::{clock::Clock, supply::Timestamp},
    service as serve,
    service::{AccessPolicy, Options, Service},
    store::failpoint,
};
use testkit::faults::Faults;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::it::support::{Database, Hook, cliff, item};

const TOKENS: usize = 12;
/// The maximum number of accepted but unrecorded deliveries: twice the default concurrency per receiver.
const UNRECORDED: usize = 8;
/// The time limit of each wait.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The source, a receiver, and a folder with a config for the real binary.
struct Stage {
    service: Service,
    hook: Hook,
    folder: tempfile::TempDir,
    database: Database,
    starts: usize,
    _ending: tokio_util::sync::DropGuard,
}

impl Stage {
    async fn new() -> Self {
        let ending = CancellationToken::new();
        let service = Service::in_memory(Options { access: AccessPolicy::Open, ..Options::default() }).expect("a service");
        let soon = Clock::system().now() + TimeDelta::days(5);
        let date = |at: Timestamp| at.format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let later = soon + TimeDelta::days(200);
        service
            .edit(|edit| {
                for n in 0..TOKENS {
                    let id = token(n);
                    edit.put_token(&item(&id, &id))?;
                    edit.put_events(
                        &id,
                        vec![cliff(&date(soon), "Team", 2e6, "second"), cliff(&date(later), "Team", 2e6, "second")],
                    )?;
                }
                Ok(())
            })
            .expect("filled");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, Faults::new().wrap(service.legacy_router()), ending.clone().cancelled_owned()));
        let (hook, address) = Hook::start(ending.clone()).await;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("rules")).expect("a folder");
        std::fs::write(folder.path().join("rules/r.toml"), RULES).expect("written");
        let database = Database::new(folder.path().join("kill.db"));
        let store = database.setting();
        let config = format!(
            r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 60000
[schedule]
token_list = "* * * * * *"
upcoming = "off"
unlock_events = "* * * * * *"
burn = "off"
buyback = "off"
allocations = "off"
evaluate = "* * * * * *"
[store]
{store}
[http]
listen = "off"
[log]
format = "human"
[delivery]
retry = ["0s", "1s", "1s", "1s", "1s", "1s", "1s", "1s"]
max_per_hour = 1000 # one message per alert, and no welcome message
[[receiver]]
name = "ops"
type = "webhook"
url = "http://{address}/hook"
[route]
receivers = ["ops"]
"#
        );
        std::fs::write(folder.path().join("cliffwatch.toml"), config).expect("written");
        Self { service, hook, folder, database, starts: 0, _ending: ending.drop_guard() }
    }

    /// Starts the daemon with standard error in a new file.
    fn start(&mut self, crash_at: Option<&str>) -> Child {
        self.starts += 1;
        let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
        command.args(["--config", "cliffwatch.toml", "--color", "never", "run"]).current_dir(self.folder.path());
        command.env_remove(failpoint::VARIABLE).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(self.log_path()).expect("a log"));
        if let Some(point) = crash_at {
            command.env(failpoint::VARIABLE, point);
        }
        command.spawn().expect("starts")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join(format!("log-{}", self.starts))
    }

    /// The log of the last start.
    fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Returns whether the baseline of a token is stored.
    fn has_baseline(&self, token: &str) -> bool {
        // A process killed before its first commit leaves an empty database.
        self.database.has_tables() && !self.dates(token).is_empty()
    }

    /// The stored event dates of a token.
    fn dates(&self, token: &str) -> Vec<i64> {
        let sql = format!(
            "SELECT starts_at FROM record JOIN token ON token.no = record.token_no WHERE token.id = '{token}' ORDER BY starts_at"
        );
        self.database.column(&sql).iter().filter_map(serde_json::Value::as_i64).collect()
    }

    fn move_last_event(&self, token: &str, by: TimeDelta) {
        self.service
            .edit(|edit| {
                let events = edit.events(token)?;
                let at = events.last().and_then(|event| event.unlock_date.copied()).expect("dated");
                edit.move_event(token, at, at + by)
            })
            .expect("edited");
    }

    /// Rule and token of all accepted alerts, with their webhook ids.
    fn notified(&self) -> BTreeMap<(String, String), BTreeSet<String>> {
        let mut notified: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (id, body) in self.hook.accepted() {
            for alert in body["data"]["alerts"].as_array().expect("alerts") {
                let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
                notified.entry((text(&alert["rule"]), text(&alert["token"]["id"]))).or_default().insert(id.clone());
            }
        }
        notified
    }

    /// Runs the binary until `is_done` and until the outbox is empty, then stops it with SIGTERM.
    async fn finish(&mut self, is_done: impl Fn(&Self) -> bool) {
        let mut child = self.start(None);
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !(self.log().contains(" started")
            && is_done(self)
            && self.database.count("SELECT count(*) FROM delivery WHERE state IN ('due', 'retrying')") == 0)
        {
            assert!(Instant::now() < deadline, "notified {:#?}\n{}", self.notified(), self.log());
            assert_eq!(child.try_wait().expect("waits"), None, "exited early\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        terminate(&child);
        let status = wait(&mut child).await;
        assert!(status.success(), "ended by {status}\n{}", self.log());
    }

    /// Asserts that every notification was delivered and that the snapshot matches the source.
    fn assert_sound(&self) {
        assert!(self.database.is_intact());
        let undelivered = "SELECT count(*) FROM notification WHERE receivers <> '[]' AND id NOT IN (SELECT notification FROM delivery_notification)";
        assert_eq!(self.database.count(undelivered), 0, "a notification without a delivery");
        let events = self.database.count("SELECT count(*) FROM alert WHERE state = 'event'");
        assert_eq!(self.database.count("SELECT count(*) FROM change"), events, "each change has its alert");
        assert_eq!(self.database.count("SELECT count(*) FROM delivery WHERE state <> 'delivered'"), 0);
        let accepted: BTreeSet<String> = self.hook.accepted().into_iter().map(|(id, _)| id).collect();
        let recorded = self.database.column("SELECT webhook_id FROM delivery");
        let recorded: BTreeSet<String> = recorded.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
        assert_eq!(recorded, accepted, "recorded and accepted deliveries differ");
        for n in 0..TOKENS {
            let mut dates = self.service.edit(|edit| edit.events(&token(n))).expect("read");
            dates.sort_by_key(|event| event.unlock_date.copied());
            let expected: Vec<i64> =
                dates.iter().filter_map(|event| Some(event.unlock_date.copied()?.timestamp_millis())).collect();
            assert_eq!(self.dates(&token(n)), expected, "{} differs from the source", token(n));
        }
    }

    /// The number of repeated messages: those beyond the first of each id.
    fn repeats(&self) -> usize {
        let accepted = self.hook.accepted();
        let ids: BTreeSet<&str> = accepted.iter().map(|(id, _)| id.as_str()).collect();
        accepted.len() - ids.len()
    }
}

fn token(n: usize) -> String {
    format!("token-{n:02}")
}

const RULES: &str = r#"
[[rule]]
alert  = "BigCliffAhead"
on     = "unlock"
within = ["30d"]
when   = "cliffValue >= 1000000"

[[rule]]
alert = "ScheduleChanged"
on    = "unlock.*"
# Changes wait for the end of their cycle.
limit = 100
"#;

/// Sends SIGTERM to a child process.
fn terminate(child: &Child) {
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
}

async fn wait(child: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        if let Some(status) = child.try_wait().expect("waits") {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().ok();
            return child.wait().expect("ended");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Crashes the daemon at `point`, restarts it, and asserts that everything is delivered with at most `most` repeats.
async fn check(point: &str, most: usize) {
    assert!(failpoint::POINTS.iter().any(|known| point.starts_with(known)), "{point} is not a failpoint");
    let mut stage = Stage::new().await;
    let mut child = stage.start(Some(point));
    let status = wait(&mut child).await;
    assert_eq!(status.signal(), Some(6), "{point}: not killed by the failpoint but ended by {status}\n{}", stage.log());
    assert!(stage.log().contains(&format!("dying at {}", point.split(':').next().expect("a point"))), "{}", stage.log());
    // A change during the downtime is notified if the token had a baseline.
    let moved = token(3);
    let was_known = stage.has_baseline(&moved);
    stage.move_last_event(&moved, TimeDelta::days(9));
    stage.finish(|stage| stage.notified().len() >= TOKENS + usize::from(was_known)).await;

    stage.assert_sound();
    let notified = stage.notified();
    for n in 0..TOKENS {
        assert!(notified.contains_key(&("BigCliffAhead".into(), token(n))), "{point}: {notified:#?}");
    }
    assert_eq!(notified.contains_key(&("ScheduleChanged".into(), moved)), was_known, "{point}: {notified:#?}");
    assert!(notified.values().all(|ids| ids.len() == 1), "{point}: a repeat has a different webhook id: {notified:#?}");
    let repeats = stage.repeats();
    assert!(repeats <= most, "{point}: {repeats} repeats");
}

macro_rules! points {
    ($($name:ident: $point:literal, $most:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[cfg_attr(not(any(debug_assertions, feature = "failpoints")), ignore = "release builds have no failpoints")]
            async fn $name() {
                check($point, $most).await;
            }
        )*
    };
}

points! {
    killed_before_the_first_commit: "commit.before:1", 0;
    killed_before_a_later_commit: "commit.before:4", UNRECORDED;
    killed_inside_the_first_commit: "commit.inside:1", 0;
    killed_inside_a_later_commit: "commit.inside:3", UNRECORDED;
    killed_after_a_commit_before_any_delivery: "commit.after:3", UNRECORDED;
    killed_before_an_accepted_attempt_was_recorded: "attempt.before:1", UNRECORDED;
    killed_after_a_later_receiver_accepted: "attempt.before:2", UNRECORDED;
    killed_after_an_attempt_was_recorded: "attempt.after:2", UNRECORDED;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_alert_arrives_despite_random_kills() {
    const ROUNDS: usize = 8;
    let seed = fastrand::u64(..);
    // Shown if the test fails.
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut stage = Stage::new().await;
    let mut moved = BTreeSet::new();
    for round in 0..ROUNDS {
        stage.database.end_term();
        let mut child = stage.start(None);
        tokio::time::sleep(Duration::from_millis(random.u64(20..1_500))).await;
        child.kill().expect("kill -9");
        let status = wait(&mut child).await;
        assert_eq!(status.signal(), Some(9), "not killed by the test but ended by {status}\n{}", stage.log());
        let id = token(round);
        if stage.has_baseline(&id) {
            moved.insert(id.clone());
        }
        stage.move_last_event(&id, TimeDelta::days(9));
    }
    let expected = TOKENS + moved.len();
    stage.finish(|stage| stage.notified().len() >= expected).await;

    stage.assert_sound();
    let notified = stage.notified();
    for n in 0..TOKENS {
        assert!(notified.contains_key(&("BigCliffAhead".into(), token(n))), "{notified:#?}");
    }
    let notified_moves: BTreeSet<String> =
        notified.keys().filter(|(rule, _)| rule == "ScheduleChanged").map(|(_, token)| token.clone()).collect();
    assert_eq!(notified_moves, moved, "all moves after the baseline are notified");
    assert!(notified.values().all(|ids| ids.len() == 1), "a repeat has a different webhook id: {notified:#?}");
    let repeats = stage.repeats();
    assert!(repeats <= ROUNDS * UNRECORDED, "{repeats} repeats");
}
