//! Credits never exceed the cap, and polling recovers after every rejection. The fake source counts requests independently
//! ([`source`]). Uses the PostgreSQL server of the environment (`tests/postgres/run`), else a file.

mod disk;
mod source;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use cliffwatch::{
    daemon::{app::App, config::Environment, database_url::database_of, schedule::Job},
    model::{
        clock::Clock,
        config::Config,
        rows::CreditState,
        supply::{Endpoint, FeedId},
        text,
    },
    store::{Access, ErrorKind, Opening, Store},
};
use source::{Reply, Source, World};
use tokio::runtime::Runtime;

use crate::it::support::{BEGIN, Database, open, open_with, time};

/// A database, a source, and the current run of the app.
struct Stage {
    servers: Runtime,
    source: Source,
    /// The clock of the app, which may be wrong. The source has a separate clock.
    clock: Clock,
    folder: tempfile::TempDir,
    config: Config,
    life: Option<(Runtime, Arc<App>)>,
}

impl Stage {
    fn new(world: World, monthly_credits: Option<u64>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::new(folder.path().join("l.db"));
        Self::new_in(folder, &database, world, monthly_credits)
    }

    fn new_in(folder: tempfile::TempDir, database: &Database, world: World, monthly_credits: Option<u64>) -> Self {
        let servers = Runtime::new().expect("a runtime");
        let clock = Clock::manual(world.clock.now());
        let source = servers.block_on(Source::start(world));
        let mut config = config(&source.address);
        database.put_into(&mut config.store);
        config.budget.monthly_credits = monthly_credits;
        let mut stage = Self { servers, source, clock, folder, config, life: None };
        stage.start();
        stage
    }

    fn start(&mut self) {
        let runtime = Runtime::new().expect("a runtime");
        let app = runtime.block_on(open(&self.config, self.folder.path(), &self.clock));
        self.life = Some((runtime, Arc::new(app)));
    }

    /// Drops the app without closing it, and starts a new one.
    fn kill(&mut self) {
        let (runtime, app) = self.life.take().expect("alive");
        drop(app);
        runtime.shutdown_timeout(Duration::from_secs(10));
        self.source.drain();
        // A killed process releases its file lock at once, but here a thread must finish its transaction first. On a server, a new
        // lease holder fences off the old app.
        self.database().end_term();
        let place = database_of(&self.config.store).expect("a place");
        self.servers.block_on(async {
            loop {
                match Store::open_in(place.clone(), Access::Own, self.clock.now()).await {
                    Err(error) if error.kind() == ErrorKind::InUse => tokio::time::sleep(Duration::from_millis(50)).await,
                    opened => break opened.expect("opens").close().await.expect("closes"),
                }
            }
        });
        self.start();
    }

    fn restart(&mut self) {
        let (runtime, app) = self.life.take().expect("alive");
        let app = Arc::into_inner(app).expect("nothing is under way");
        runtime.block_on(app.close()).expect("closes");
        drop(runtime);
        self.start();
    }

    /// Restarts the app with a changed config.
    fn restart_with(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.config);
        self.restart();
    }

    fn database(&self) -> Database {
        Database::of(&self.config.store)
    }

    fn jobs(&self) -> Vec<Job> {
        self.life.as_ref().expect("alive").1.jobs()
    }

    fn credit(&self) -> CreditState {
        let (runtime, app) = self.life.as_ref().expect("alive");
        runtime.block_on(app.store().credit()).expect("read")
    }

    /// The open incidents of the app: subject and kind.
    fn incidents(&self) -> Vec<String> {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let open = runtime.block_on(app.store().source_alerts()).expect("read");
        open.into_iter().map(|alert| format!("{} {}", alert.subject, alert.labels["kind"])).collect()
    }

    /// Returns whether a schedule has a baseline, and the planned cost of its next poll in credits.
    fn schedule(&self, token: &str) -> (bool, u32) {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let feed = app.store().feed(FeedId::of(Endpoint::UnlockEvents, &token.into()));
        let feed = runtime.block_on(feed).expect("read");
        (feed.baseline_at.is_some(), feed.cost)
    }

    /// Runs jobs as a dry run does: on a copy of the database, but with the quota of the original.
    fn dry_run(&self, jobs: &[Job]) {
        if self.database().is_on_server() {
            return;
        }
        let runtime = Runtime::new().expect("a runtime");
        let copy = self.folder.path().join("copy.db");
        let _ = std::fs::remove_file(&copy);
        let mut config = self.config.clone();
        runtime.block_on(async {
            let opening = Opening { path: config.store.path.clone(), access: Access::Write, now: self.clock.now() };
            let quota = Store::open(opening).await.expect("opens while the app runs");
            quota.backup(copy.clone(), true).await.expect("copied");
            config.store.path = copy;
            let app = open_with(&config, self.folder.path(), &self.clock, Some(quota.clone())).await;
            for job in jobs {
                app.tick(*job).await.expect("a cycle");
            }
            app.close().await.expect("closes");
            quota.close().await.expect("closes");
        });
    }

    /// Runs jobs one after another and returns the errors.
    fn try_jobs(&self, jobs: &[Job]) -> Vec<String> {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let tick = |job: &Job| runtime.block_on(app.tick(*job)).err().map(|error| text::error_chain(&error));
        jobs.iter().filter_map(tick).collect()
    }

    /// Runs jobs concurrently, until they end or `most` has passed.
    fn run_jobs(&self, jobs: &[Job], most: Duration) {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let runs: Vec<_> = jobs
            .iter()
            .map(|job| {
                let (app, job) = (app.clone(), *job);
                runtime.spawn(async move { app.tick(job).await })
            })
            .collect();
        runtime.block_on(async {
            let all = async {
                for run in runs {
                    run.await.expect("no panic").expect("a cycle");
                }
            };
            let _ = tokio::time::timeout(most, all).await;
        });
    }

    /// Runs all jobs in the order of a daemon start: the lists first, then the others concurrently.
    fn run_all_jobs(&self) {
        let jobs = self.jobs();
        let (lists, rest): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| matches!(job, Job::Poll(Endpoint::TokenList | Endpoint::Upcoming)));
        for list in lists {
            self.run_jobs(&[list], WAIT_TIMEOUT);
        }
        self.run_jobs(&rest, WAIT_TIMEOUT);
    }

    fn pass(&self, span: TimeDelta) {
        self.clock.set(self.clock.now() + span);
        let world = self.source.world();
        world.clock.set(world.clock.now() + span);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some((runtime, app)) = self.life.take() {
            drop(app);
            runtime.shutdown_background();
        }
        let _ = &self.servers;
    }
}

/// An upper bound for the duration of a cycle.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

fn config(source: &str) -> Config {
    let text = format!(
        r#"
[source]
base_url = "{source}"
legacy_base_url = "{source}"
requests_per_minute = 60000
timeout = "5s"
[watch]
tokens = ["*"]
[rules]
paths = []
[http]
listen = "off"
[route]
receivers = []
"#
    );
    let environment = Environment { variables: Vec::new(), credentials: None };
    let loaded = cliffwatch::daemon::config::load_text(None, &text, &environment);
    loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics))
}

fn world(seed: u64) -> World {
    World::new(Clock::manual(time(BEGIN)), seed)
}

#[test]
fn first_start_spends_at_most_the_cap() {
    let stage = Stage::new(World { tokens: 60, cap: 500, ..world(1) }, Some(500));
    stage.run_all_jobs();
    let charged = stage.source.world().charged_now();
    // A tenth of the credits is for first reads at once, including segments; the rest is spread evenly.
    assert!((20..100).contains(&charged), "{charged} credits at the start");
    for _ in 0..40 {
        stage.pass(TimeDelta::hours(6));
        stage.run_all_jobs();
    }
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "{} charged, cap 500", world.charged_now());
    assert!(world.charged_now() > 120, "too few credits spent: {}", world.charged_now());
}

#[test]
fn pages_count_toward_the_cap() {
    let stage = Stage::new(World { tokens: 8, events: 60, cap: 20, ..world(2) }, Some(20));
    for _ in 0..8 {
        stage.run_all_jobs();
        stage.pass(TimeDelta::hours(6));
    }
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "{} charged, cap 20", world.charged_now());
}

#[test]
fn unreadable_responses_count_toward_the_cap() {
    for reply in [Reply::Garbage, Reply::Cut, Reply::Silence] {
        let stage = Stage::new(World { tokens: 8, cap: 20, faults: vec![(reply, 100)], ..world(3) }, Some(20));
        for _ in 0..8 {
            stage.run_all_jobs();
            stage.pass(TimeDelta::hours(6));
        }
        let world = stage.source.world();
        assert!(world.overspent.is_empty(), "{reply:?}: {} charged, cap 20", world.charged_now());
    }
}

/// Runs random steps ([`random_step`]) and checks the credits after each.
fn run_random_steps(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let limit = random.bool().then(|| random.u64(20..200));
    let cap = random.u64(12..60);
    let (tokens, events) = (random.usize(2..8), random.usize(1..14));
    let mut world = World { tokens, events, limit, cap, ..world(seed) };
    if limit.is_none() {
        // If the API does not report the end of its period, the app assumes calendar months.
        world.anchor = time(BEGIN);
    }
    let mut stage = Stage::new(world, Some(cap));
    for step in 0..10 {
        let before = stage.credit();
        random_step(&mut stage, &mut random);
        let overspent = std::mem::take(&mut stage.source.world().overspent);
        let after = stage.credit();
        assert!(overspent.is_empty(), "seed {seed}, step {step}: {overspent:#?}\nbefore it {before:#?}\nafter it {after:#?}");
    }
    stage.source.world().faults.clear();
    let (now, end) = (stage.clock.now(), stage.source.world().period(stage.clock.now()).1);
    stage.pass(end - now + TimeDelta::hours(1));
    for _ in 0..6 {
        stage.run_all_jobs();
        // At different hours of the day, because an even pace allows nearly no credits in the first hours.
        stage.pass(TimeDelta::hours(4 * 24 + 5));
    }
    let (incidents, credit) = (stage.incidents(), stage.credit());
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "seed {seed}: {:#?}", world.overspent);
    let charged = world.charged_now();
    // With only a dozen credits per month, the first daily share may come later than this.
    let is_used = charged >= 1 || cap.min(limit.unwrap_or(cap)) < 40;
    assert!(is_used, "seed {seed}: only {charged} of {cap} charged in the new period: {incidents:?} {credit:#?}");
}

/// One random step: concurrent jobs, a kill, a restart, passing time, faults, a dry run, a wrong clock, or another cap.
fn random_step(stage: &mut Stage, random: &mut fastrand::Rng) {
    let some = |random: &mut fastrand::Rng| -> Vec<Job> { stage.jobs().into_iter().filter(|_| random.u8(0..3) > 0).collect() };
    match random.u8(0..14) {
        0..=2 => stage.run_all_jobs(),
        3 | 4 => stage.run_jobs(&some(random), WAIT_TIMEOUT),
        5 | 6 => {
            stage.run_jobs(&some(random), Duration::from_millis(random.u64(1..60)));
            stage.kill();
        }
        7 => stage.restart(),
        8 => stage.pass(TimeDelta::hours(random.i64(1..40))),
        9 => stage.pass(TimeDelta::days(random.i64(5..33))),
        10 => {
            let all = [Reply::Garbage, Reply::Cut, Reply::Silence, Reply::Status(500), Reply::Status(429), Reply::Status(403)];
            let faults = (0..random.usize(0..4)).map(|_| (all[random.usize(0..all.len())], random.u8(1..30))).collect();
            stage.source.world().faults = faults;
        }
        11 => {
            let (dry, real) = (some(random), some(random));
            std::thread::scope(|scope| {
                scope.spawn(|| stage.dry_run(&dry));
                stage.run_jobs(&real, WAIT_TIMEOUT);
            });
        }
        12 => {
            // Only if the API reports its time, and without faults, so that the app can detect the wrong clock.
            let now = stage.clock.now();
            if stage.source.world().limit.is_none() {
                return;
            }
            let faults = std::mem::take(&mut stage.source.world().faults);
            stage.run_jobs(&stage.jobs(), WAIT_TIMEOUT);
            stage.clock.set(now + TimeDelta::days(random.i64(-40..40)));
            stage.run_all_jobs();
            stage.clock.set(now);
            stage.source.world().faults = faults;
        }
        _ => {
            let cap = random.u64(12..60);
            stage.source.world().cap = cap;
            stage.restart_with(|config| config.budget.monthly_credits = Some(cap));
        }
    }
}

/// `CLIFFWATCH_LIVES` sets the number of random runs, `CLIFFWATCH_FIRST_LIFE` the first seed.
#[test]
fn credits_never_exceed_the_cap_in_random_runs() {
    let lives = std::env::var("CLIFFWATCH_LIVES").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let first = std::env::var("CLIFFWATCH_FIRST_LIFE").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + lives {
        run_random_steps(seed);
    }
}

#[test]
fn polling_resumes_after_the_quota_renews() {
    for is_restarted in [false, true] {
        let mut stage = Stage::new(World { tokens: 60, limit: Some(30), ..world(4) }, None);
        for _ in 0..40 {
            stage.run_all_jobs();
            if stage.source.world().charged_now() >= 25 {
                break;
            }
            stage.pass(TimeDelta::hours(12));
        }
        assert!(stage.source.world().charged_now() >= 25, "{}", stage.source.world().charged_now());
        assert!(stage.source.world().rejected <= 1, "requests beyond the quota: {}", stage.source.world().rejected);
        // One credit may remain, which is less than any planned poll costs.
        assert!(stage.incidents().iter().all(|incident| incident == "source/quota quota_exhausted"), "{:?}", stage.incidents());
        if is_restarted {
            stage.restart();
        }
        stage.pass(TimeDelta::days(30));
        stage.run_all_jobs();
        assert!(stage.source.world().charged_now() >= 3, "{}", stage.source.world().charged_now());
        let mut most = 0;
        for _ in 0..10 {
            stage.pass(TimeDelta::hours(24));
            stage.run_all_jobs();
            most = most.max(stage.source.world().charged_now());
        }
        assert!(most >= 20, "{most}");
    }
}

#[test]
fn failed_reservation_sends_nothing_and_polling_recovers() {
    // Too few credits to reserve any in advance.
    let stage = Stage::new(World { tokens: 12, cap: 300, ..world(10) }, Some(300));
    stage.run_jobs(&[Job::Poll(Endpoint::TokenList)], WAIT_TIMEOUT);
    let requested = stage.source.world().requests;
    stage.database().sabotage("credit");
    let (runtime, app) = stage.life.as_ref().expect("alive");
    for _ in 0..2 {
        let error = runtime.block_on(app.tick(Job::Poll(Endpoint::UnlockEvents))).expect_err("planning fails");
        assert!(error.to_string().contains("credits"), "{error}");
    }
    assert_eq!(stage.source.world().requests, requested, "no request without a stored reservation");
    stage.database().repair("credit");
    stage.run_all_jobs();
    assert_eq!(stage.incidents(), [""; 0]);
    let world = stage.source.world();
    assert!(world.requests > requested + 12 && world.overspent.is_empty(), "{} since {requested}", world.requests);
}

#[test]
fn poll_more_expensive_than_planned_continues_in_the_next_slot() {
    let stage = Stage::new(World { tokens: 60, events: 100, ..world(5) }, None);
    stage.run_all_jobs();
    assert_eq!(stage.schedule("t0"), (false, 20), "the first page shows the total cost");
    assert_eq!(stage.incidents(), [""; 0]);
    stage.pass(TimeDelta::hours(6));
    stage.run_all_jobs();
    assert_eq!(stage.schedule("t0"), (true, 20));
    assert_eq!(stage.incidents(), [""; 0]);
}

/// Runs half a day after `wrong`, then applies `right`: within one slot, all feeds are polled and the incident is resolved.
fn check_recovery(name: &str, wrong: impl Fn(&mut Stage), right: impl Fn(&mut Stage)) {
    let mut stage = Stage::new(World { tokens: 12, ..world(6) }, None);
    stage.run_all_jobs();
    wrong(&mut stage);
    for _ in 0..4 {
        stage.pass(TimeDelta::hours(3));
        stage.run_all_jobs();
    }
    assert_eq!(stage.incidents().len(), 1, "{name}: {:?}", stage.incidents());
    right(&mut stage);
    stage.pass(TimeDelta::hours(3));
    let before = stage.source.world().charged_now();
    stage.run_all_jobs();
    assert_eq!(stage.incidents(), [""; 0], "{name}");
    assert!(stage.source.world().charged_now() >= before + 40, "{name}: {} since {before}", stage.source.world().charged_now());
}

#[test]
fn polling_recovers_within_one_slot_after_any_fault() {
    let weeks = 15 * 86_400;
    let rejections = [401, 402, 429, 503].map(Reply::Status).into_iter().chain([5, weeks].map(Reply::TooMany));
    for reply in rejections {
        let reject = move |stage: &mut Stage| stage.source.world().faults = vec![(reply, 100)];
        check_recovery(&format!("{reply:?}"), reject, |stage| stage.source.world().faults.clear());
    }
    let point = |stage: &mut Stage, address: String| stage.restart_with(|config| config.source.base_url = address);
    check_recovery(
        "no network",
        |stage| point(stage, "http://127.0.0.1:9".into()),
        |stage| {
            let address = stage.source.address.clone();
            point(stage, address);
        },
    );
}

#[test]
fn corrected_api_key_is_used_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    let write = |key: &str| std::fs::write(&file, key).expect("written");
    write("wrong");
    check_recovery(
        "a wrong key",
        |stage| {
            stage.source.world().key = Some("right".into());
            stage.restart_with(|config| config.source.api_key_file = Some(file.clone()));
        },
        |_| {
            write("right");
            // Wait until the app reads the key file again.
            std::thread::sleep(Duration::from_millis(2_100));
        },
    );
}

#[test]
fn empty_upcoming_list_is_an_incident_if_events_are_known() {
    let stage = Stage::new(World { tokens: 12, ..world(7) }, None);
    stage.run_all_jobs();
    stage.source.world().has_empty_upcoming = true;
    stage.pass(TimeDelta::hours(6));
    stage.run_all_jobs();
    assert_eq!(stage.incidents(), ["source/upcoming emptied"]);
    stage.source.world().has_empty_upcoming = false;
    stage.pass(TimeDelta::hours(6));
    stage.run_all_jobs();
    assert_eq!(stage.incidents(), [""; 0]);
}

#[test]
fn incident_of_an_unpolled_endpoint_resolves() {
    let mut stage = Stage::new(World { tokens: 12, broken: Some("/v5/burn"), ..world(8) }, None);
    stage.run_all_jobs();
    assert_eq!(stage.incidents().len(), 1, "{:?}", stage.incidents());
    stage.restart_with(|config| config.schedule.burn = "off".into());
    stage.pass(TimeDelta::hours(6));
    stage.run_all_jobs();
    assert_eq!(stage.incidents(), [""; 0]);
}

/// Runs polls of the real binary, each concurrently with two dry runs.
#[test]
fn polls_and_concurrent_dry_runs_share_one_cap() {
    let stage = Stage::new(World { tokens: 10, events: 8, cap: 25, ..world(9) }, Some(25));
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "[source]\nbase_url = {address:?}\nlegacy_base_url = {address:?}\nrequests_per_minute = 60000\n[budget]\nmonthly_credits = 25\n\
         [store]\npath = \"b.db\"\n[rules]\npaths = []\n[http]\nlisten = \"off\"\n[route]\nreceivers = []\n",
        address = stage.source.address,
    );
    std::fs::write(folder.path().join("cliffwatch.toml"), text).expect("written");
    let start = |slot: i64, dry: &[&str]| {
        let now = (stage.clock.now() + TimeDelta::hours(72 * slot)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
        command.args(["--config", "cliffwatch.toml", "--now", &now, "poll"]).args(dry).current_dir(folder.path());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().expect("starts")
    };
    // The first poll creates the database.
    start(0, &[]).wait().expect("ends");
    for slot in 1..9 {
        let children = [start(slot, &[]), start(slot, &["--dry-run"]), start(slot, &["--dry-run"])];
        for mut child in children {
            child.wait().expect("ends");
        }
    }
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "{:#?}", world.overspent);
    assert!(world.charged_now() >= 15, "too few requests: {}", world.charged_now());
}
