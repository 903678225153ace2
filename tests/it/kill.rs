//! `kill -9` at random and at named points: afterwards every alert arrived, and nothing is ahead of its deliveries.

use std::{
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cliffwatch::serve::{self, Options, Service, faults::Faults};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{Hook, cliff, item, lines};

const TOKENS: usize = 12;

/// The source, a receiver, and a folder with a config for the real binary.
struct Stage {
    service: Service,
    hook: Hook,
    folder: tempfile::TempDir,
    _ending: tokio_util::sync::DropGuard,
}

impl Stage {
    async fn set() -> Self {
        let ending = CancellationToken::new();
        let service = Service::in_memory(Options { access: serve::Access::Open, ..Options::default() }).expect("a service");
        let soon = cliffwatch::clock::Clock::system().now() + chrono::TimeDelta::days(5);
        let date = soon.format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let later = (soon + chrono::TimeDelta::days(200)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        service
            .edit(|edit| {
                for n in 0..TOKENS {
                    let id = format!("token-{n}");
                    edit.put_token(&item(&id, &id))?;
                    edit.put_events(&id, vec![cliff(&date, "Team", 2e6, "second"), cliff(&later, "Team", 2e6, "second")])?;
                }
                Ok(())
            })
            .expect("filled");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, service.faulty_router(&Faults::new()), ending.clone().cancelled_owned()));
        let (hook, address) = Hook::start(ending.clone()).await;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("rules")).expect("a folder");
        std::fs::write(folder.path().join("rules/r.toml"), RULES).expect("written");
        let config = format!(
            r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 100000
[schedule]
token_list = "* * * * * *"
upcoming = "off"
unlock_events = "* * * * * *"
burn = "off"
buyback = "off"
allocations = "off"
evaluate = "* * * * * *"
[store]
path = "kill.db"
[http]
listen = "off"
[delivery]
retry = ["0s", "1s", "1s", "1s", "1s", "1s", "1s", "1s"]
[[receiver]]
name = "ops"
type = "webhook"
url = "http://{address}/hook"
[route]
receivers = ["ops"]
"#
        );
        std::fs::write(folder.path().join("cliffwatch.toml"), config).expect("written");
        Self { service, hook, folder, _ending: ending.drop_guard() }
    }

    fn start(&self, crash_at: Option<&str>) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
        command.args(["--config", "cliffwatch.toml", "run"]).current_dir(self.folder.path());
        command.env_remove("CLIFFWATCH_CRASH_AT").stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log(self.folder.path()));
        if let Some(point) = crash_at {
            command.env("CLIFFWATCH_CRASH_AT", point);
        }
        command.spawn().expect("starts")
    }

    /// Rules and tokens of everything that was told so far, without repeats.
    fn told(&self) -> Vec<String> {
        let mut told: Vec<String> =
            self.hook.peek().iter().flat_map(|body| lines(std::slice::from_ref(body))).map(|line| line.split(':').next().unwrap_or_default().to_owned()).collect();
        told.sort();
        told.dedup();
        told
    }

    /// Runs the binary until `expected` messages arrived, then ends it kindly.
    async fn finish(&self, expected: usize) {
        let mut child = self.start(None);
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.told().len() < expected {
            assert!(Instant::now() < deadline, "told {:#?}\n{}", self.told(), self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        terminate(&child);
        let status = child.wait().expect("ended");
        assert!(status.success(), "ended by {status}\n{}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
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
"#;

fn log(folder: &Path) -> Stdio {
    std::fs::File::options().create(true).append(true).open(folder.join("log")).map_or_else(|_| Stdio::null(), Stdio::from)
}

fn terminate(child: &Child) {
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
}

/// No snapshot may be ahead of its deliveries: every notice with a receiver has its row in the outbox, every change its alert.
fn assert_sound(database: &Path) {
    let database = rusqlite::Connection::open(database).expect("opens");
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql);
    assert_eq!(database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).expect("checked"), "ok");
    assert_eq!(count("SELECT count(*) FROM notice WHERE id NOT IN (SELECT notice_id FROM delivery_notice)"), 0, "a notice without a delivery");
    assert_eq!(count("SELECT count(*) FROM change"), count("SELECT count(*) FROM alert WHERE state = 'event'"), "a change without its alert");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_named_points_every_alert_arrives() {
    for point in ["commit.before:3", "commit.inside:2", "commit.inside:4", "commit.after:2", "attempt.before:1", "attempt.before:5", "attempt.after:1"] {
        let stage = Stage::set().await;
        let mut child = stage.start(Some(point));
        let status = wait(&mut child, Duration::from_secs(60)).await;
        assert_eq!(status.signal(), Some(6), "{point}: must die of the crash point, ended by {status}\n{}", stage.log());
        stage.finish(TOKENS).await;
        assert_sound(&stage.folder.path().join("kill.db"));
        let bodies = stage.hook.peek();
        let repeats = bodies.len() - TOKENS;
        // Between a receiver's word and our record of it there is at most one message for each delivery under way.
        let most = if point.starts_with("attempt") { 4 } else { 0 };
        assert!(repeats <= most, "{point}: {repeats} repeats");
        stage.hook.take();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_every_alert_arrives() {
    let stage = Stage::set().await;
    for round in 0..6_u64 {
        let mut child = stage.start(None);
        tokio::time::sleep(Duration::from_millis(60 + round * 170)).await;
        child.kill().expect("kill -9");
        let status = child.wait().expect("ended");
        assert_eq!(status.signal(), Some(9), "must die of the kill\n{}", stage.log());
        let token = format!("token-{round}");
        stage
            .service
            .edit(|edit| {
                let events = edit.events(&token)?;
                let at = events.last().and_then(|event| event.unlock_date.copied()).expect("dated");
                edit.move_event(&token, at, at + chrono::TimeDelta::days(9))
            })
            .expect("edited");
    }
    let begin = Instant::now();
    // A move made before the token was first read is part of its baseline: so many alerts at least, all moves at most.
    stage.finish(TOKENS).await;
    assert_sound(&stage.folder.path().join("kill.db"));
    assert!(begin.elapsed() < Duration::from_secs(60));
    stage.hook.take();
}

async fn wait(child: &mut Child, patience: Duration) -> std::process::ExitStatus {
    let deadline = Instant::now() + patience;
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
