//! No credit is ever spent beyond the cap, whatever happens at once; and whatever was spent or refused, reading goes on by itself.
//! The source counts for itself ([`source`]). On the server that the environment names (`tests/postgres/run`), else in a file.

mod disk;
mod source;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use cliffwatch::{
    daemon::{app::App, config::Environment, place::place_of, schedule::Job},
    model::{
        clock::Clock,
        config::Config,
        rows::CreditState,
        supply::{Endpoint, FeedId},
        text,
    },
    store::{Access, Opening, Store, StoreError},
};
use source::{Reply, Source, World};
use tokio::runtime::Runtime;

use crate::support::{BEGIN, Database, open, open_with, time};

/// One database, its source, and the program as often as it is started.
struct Stage {
    servers: Runtime,
    source: Source,
    /// The program's clock, which may be wrong; the source has its own.
    clock: Clock,
    folder: tempfile::TempDir,
    config: Config,
    life: Option<(Runtime, Arc<App>)>,
}

impl Stage {
    fn set(world: World, monthly_credits: Option<u64>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::new(folder.path().join("l.db"));
        Self::set_in(folder, &database, world, monthly_credits)
    }

    fn set_in(folder: tempfile::TempDir, database: &Database, world: World, monthly_credits: Option<u64>) -> Self {
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

    /// The process is gone at once, with what it had under way.
    fn kill(&mut self) {
        let (runtime, app) = self.life.take().expect("alive");
        drop(app);
        runtime.shutdown_timeout(Duration::from_secs(10));
        self.source.drain();
        // A process that is killed lets go of a file at once; the thread that stands for it here ends its transaction first. On a server
        // its lease keeps it out, once another one took it.
        self.database().end_term();
        let place = place_of(&self.config.store).expect("a place");
        self.servers.block_on(async {
            loop {
                match Store::open_in(place.clone(), Access::Own, self.clock.now()).await {
                    Err(StoreError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
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

    /// The program as it is started with another config.
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

    /// What is the matter with the source, as far as the program says so.
    fn incidents(&self) -> Vec<String> {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let open = runtime.block_on(app.store().source_alerts()).expect("read");
        open.into_iter().map(|alert| format!("{} {}", alert.subject, alert.labels["kind"])).collect()
    }

    /// Whether a schedule was read, and at how many credits the next read is planned.
    fn schedule(&self, token: &str) -> (bool, u32) {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let feed = app.store().feed(FeedId::of(Endpoint::UnlockEvents, &token.into()));
        let feed = runtime.block_on(feed).expect("read");
        (feed.baseline_at.is_some(), feed.cost)
    }

    /// A dry run beside the program, on a copy of its file.
    fn fire_beside(&self, jobs: &[Job]) {
        if self.database().is_on_server() {
            return;
        }
        let runtime = Runtime::new().expect("a runtime");
        let copy = self.folder.path().join("copy.db");
        let _ = std::fs::remove_file(&copy);
        let mut config = self.config.clone();
        runtime.block_on(async {
            let opening = Opening { path: config.store.path.clone(), access: Access::Beside, now: self.clock.now() };
            let quota = Store::open(opening).await.expect("opens beside");
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

    /// Runs one job after the other, where they may fail; what they said then.
    fn try_jobs(&self, jobs: &[Job]) -> Vec<String> {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let tick = |job: &Job| runtime.block_on(app.tick(*job)).err().map(|error| text::error_chain(&error));
        jobs.iter().filter_map(tick).collect()
    }

    /// Runs jobs at once, to their end or for as long as `most`.
    fn fire(&self, jobs: &[Job], most: Duration) {
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

    /// As the daemon starts: the lists first, then everything at once.
    fn all_jobs(&self) {
        let jobs = self.jobs();
        let (lists, rest): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| matches!(job, Job::Poll(Endpoint::TokenList | Endpoint::Upcoming)));
        for list in lists {
            self.fire(&[list], PATIENCE);
        }
        self.fire(&rest, PATIENCE);
    }

    /// Both clocks go on.
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

/// Longer than any cycle takes here.
const PATIENCE: Duration = Duration::from_secs(60);

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
fn a_first_start_spends_no_more_than_the_cap() {
    let stage = Stage::set(World { tokens: 60, cap: 100, ..world(1) }, Some(100));
    stage.all_jobs();
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "{} charged, cap 100", world.charged_now());
    // What rules listen to is read first, schedules with their segments; the rest at an even pace.
    assert!(world.charged_now() > 40, "and it spends what it may: {}", world.charged_now());
}

#[test]
fn pages_count_against_the_cap() {
    let stage = Stage::set(World { tokens: 8, events: 60, cap: 20, ..world(2) }, Some(20));
    for _ in 0..8 {
        stage.all_jobs();
        stage.pass(TimeDelta::hours(6));
    }
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "{} charged, cap 20", world.charged_now());
}

#[test]
fn answers_that_cannot_be_read_count_against_the_cap() {
    for reply in [Reply::Garbage, Reply::Cut, Reply::Silence] {
        let stage = Stage::set(World { tokens: 8, cap: 20, faults: vec![(reply, 100)], ..world(3) }, Some(20));
        for _ in 0..8 {
            stage.all_jobs();
            stage.pass(TimeDelta::hours(6));
        }
        let world = stage.source.world();
        assert!(world.overspent.is_empty(), "{reply:?}: {} charged, cap 20", world.charged_now());
    }
}

/// What happens at random: see [`happens`].
fn a_life(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let limit = random.bool().then(|| random.u64(20..200));
    let cap = random.u64(12..60);
    let (tokens, events) = (random.usize(2..8), random.usize(1..14));
    let mut world = World { tokens, events, limit, cap, ..world(seed) };
    if limit.is_none() {
        // An API that does not say when its period ends has calendar months, as far as anybody can know.
        world.anchor = time(BEGIN);
    }
    let mut stage = Stage::set(world, Some(cap));
    for step in 0..10 {
        let before = stage.credit();
        happens(&mut stage, &mut random);
        let overspent = std::mem::take(&mut stage.source.world().overspent);
        let after = stage.credit();
        assert!(overspent.is_empty(), "seed {seed}, step {step}: {overspent:#?}\nbefore it {before:#?}\nafter it {after:#?}");
    }
    stage.source.world().faults.clear();
    let (now, end) = (stage.clock.now(), stage.source.world().period(stage.clock.now()).1);
    stage.pass(end - now + TimeDelta::hours(1));
    for _ in 0..6 {
        stage.all_jobs();
        stage.pass(TimeDelta::days(4));
    }
    let (incidents, credit) = (stage.incidents(), stage.credit());
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "seed {seed}: {:#?}", world.overspent);
    let charged = world.charged_now();
    // With a dozen credits a month, a day's share comes late.
    let is_used = charged >= 1 || cap.min(limit.unwrap_or(cap)) < 40;
    assert!(is_used, "seed {seed}: a new period is used, and {charged} were charged of {cap}: {incidents:?} {credit:#?}");
}

/// Jobs at once, a kill, a restart, time, faults, a dry run beside, a clock that is wrong, another cap.
fn happens(stage: &mut Stage, random: &mut fastrand::Rng) {
    let some = |random: &mut fastrand::Rng| -> Vec<Job> { stage.jobs().into_iter().filter(|_| random.u8(0..3) > 0).collect() };
    match random.u8(0..14) {
        0..=2 => stage.all_jobs(),
        3 | 4 => stage.fire(&some(random), PATIENCE),
        5 | 6 => {
            stage.fire(&some(random), Duration::from_millis(random.u64(1..60)));
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
            let (beside, at_once) = (some(random), some(random));
            std::thread::scope(|scope| {
                scope.spawn(|| stage.fire_beside(&beside));
                stage.fire(&at_once, PATIENCE);
            });
        }
        12 => {
            // Only where the API tells the time; what shows that can be read.
            let now = stage.clock.now();
            if stage.source.world().limit.is_none() {
                return;
            }
            let faults = std::mem::take(&mut stage.source.world().faults);
            stage.fire(&stage.jobs(), PATIENCE);
            stage.clock.set(now + TimeDelta::days(random.i64(-40..40)));
            stage.all_jobs();
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

/// Lives at random; more with `CLIFFWATCH_LIVES=1000`.
#[test]
fn whatever_happens_no_credit_is_spent_beyond_the_cap() {
    let lives = std::env::var("CLIFFWATCH_LIVES").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let first = std::env::var("CLIFFWATCH_FIRST_LIFE").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + lives {
        a_life(seed);
    }
}

#[test]
fn after_a_renewal_everything_goes_on_by_itself() {
    for is_restarted in [false, true] {
        let mut stage = Stage::set(World { tokens: 60, limit: Some(30), ..world(4) }, None);
        for _ in 0..3 {
            stage.all_jobs();
            stage.pass(TimeDelta::hours(6));
        }
        assert!(stage.source.world().charged_now() >= 25, "{}", stage.source.world().charged_now());
        assert!(stage.source.world().refused <= 1, "nothing is asked that would be refused: {}", stage.source.world().refused);
        // One credit may be left, which pays for no walk that is planned.
        assert!(stage.incidents().iter().all(|incident| incident == "source/quota quota_exhausted"), "{:?}", stage.incidents());
        if is_restarted {
            stage.restart();
        }
        stage.pass(TimeDelta::days(30));
        stage.all_jobs();
        assert!(stage.source.world().charged_now() >= 10, "{}", stage.source.world().charged_now());
        stage.pass(TimeDelta::hours(6));
        stage.all_jobs();
        assert!(stage.source.world().charged_now() >= 20, "{}", stage.source.world().charged_now());
    }
}

#[test]
fn a_reservation_that_cannot_be_written_sends_nothing_and_it_goes_on_once_it_can() {
    // So few that none is reserved in advance.
    let stage = Stage::set(World { tokens: 12, cap: 60, ..world(10) }, Some(60));
    stage.fire(&[Job::Poll(Endpoint::TokenList)], PATIENCE);
    let asked = stage.source.world().requests;
    stage.database().sabotage("credit");
    let (runtime, app) = stage.life.as_ref().expect("alive");
    for _ in 0..2 {
        let error = runtime.block_on(app.tick(Job::Poll(Endpoint::UnlockEvents))).expect_err("it cannot plan");
        assert!(error.to_string().contains("quota"), "{error}");
    }
    assert_eq!(stage.source.world().requests, asked, "nothing is sent that is not written down");
    stage.database().mend("credit");
    stage.all_jobs();
    assert_eq!(stage.incidents(), [""; 0]);
    let world = stage.source.world();
    assert!(world.requests > asked + 12 && world.overspent.is_empty(), "{} since {asked}", world.requests);
}

#[test]
fn a_walk_dearer_than_planned_goes_on_in_the_next_slot() {
    let stage = Stage::set(World { tokens: 60, events: 100, ..world(5) }, None);
    stage.all_jobs();
    assert_eq!(stage.schedule("t0"), (false, 20), "a page shows what it costs");
    assert_eq!(stage.incidents(), [""; 0]);
    stage.pass(TimeDelta::hours(6));
    stage.all_jobs();
    assert_eq!(stage.schedule("t0"), (true, 20));
    assert_eq!(stage.incidents(), [""; 0]);
}

/// Half a day of `wrong`, then all is well: within one slot everything is read, and nothing is the matter any more.
fn recovers(name: &str, wrong: impl Fn(&mut Stage), right: impl Fn(&mut Stage)) {
    let mut stage = Stage::set(World { tokens: 12, ..world(6) }, None);
    stage.all_jobs();
    wrong(&mut stage);
    for _ in 0..4 {
        stage.pass(TimeDelta::hours(3));
        stage.all_jobs();
    }
    assert_eq!(stage.incidents().len(), 1, "{name}: {:?}", stage.incidents());
    right(&mut stage);
    stage.pass(TimeDelta::hours(3));
    let before = stage.source.world().charged_now();
    stage.all_jobs();
    assert_eq!(stage.incidents(), [""; 0], "{name}");
    assert!(stage.source.world().charged_now() >= before + 40, "{name}: {} since {before}", stage.source.world().charged_now());
}

#[test]
fn reading_goes_on_within_one_slot_after_whatever_was_wrong() {
    let weeks = 15 * 86_400;
    let refusals = [401, 402, 429, 503].map(Reply::Status).into_iter().chain([5, weeks].map(Reply::TooMany));
    for reply in refusals {
        let refuses = move |stage: &mut Stage| stage.source.world().faults = vec![(reply, 100)];
        recovers(&format!("{reply:?}"), refuses, |stage| stage.source.world().faults.clear());
    }
    let point = |stage: &mut Stage, address: String| stage.restart_with(|config| config.source.base_url = address);
    recovers(
        "no network",
        |stage| point(stage, "http://127.0.0.1:9".into()),
        |stage| {
            let address = stage.source.address.clone();
            point(stage, address);
        },
    );
}

#[test]
fn a_wrong_key_that_becomes_right_is_used_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    let write = |key: &str| std::fs::write(&file, key).expect("written");
    write("wrong");
    recovers(
        "a wrong key",
        |stage| {
            stage.source.world().key = Some("right".into());
            stage.restart_with(|config| config.source.api_key_file = Some(file.clone()));
        },
        |_| {
            write("right");
            // As long as a key is used before it is read again.
            std::thread::sleep(Duration::from_millis(2_100));
        },
    );
}

#[test]
fn a_list_of_what_comes_that_names_nobody_is_an_incident_where_events_are_known() {
    let stage = Stage::set(World { tokens: 12, ..world(7) }, None);
    stage.all_jobs();
    stage.source.world().forgets_upcoming = true;
    stage.pass(TimeDelta::hours(6));
    stage.all_jobs();
    assert_eq!(stage.incidents(), ["source/upcoming emptied"]);
    stage.source.world().forgets_upcoming = false;
    stage.pass(TimeDelta::hours(6));
    stage.all_jobs();
    assert_eq!(stage.incidents(), [""; 0]);
}

#[test]
fn an_incident_of_what_is_not_asked_any_more_ends() {
    let mut stage = Stage::set(World { tokens: 12, broken: Some("/v5/burn"), ..world(8) }, None);
    stage.all_jobs();
    assert_eq!(stage.incidents().len(), 1, "{:?}", stage.incidents());
    stage.restart_with(|config| config.schedule.burn = "off".into());
    stage.pass(TimeDelta::hours(6));
    stage.all_jobs();
    assert_eq!(stage.incidents(), [""; 0]);
}

/// The real binary: polls one after the other, each with a dry run beside it.
#[test]
fn the_binary_and_dry_runs_beside_it_keep_within_one_cap() {
    let stage = Stage::set(World { tokens: 10, events: 8, cap: 25, ..world(9) }, Some(25));
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "[source]\nbase_url = {address:?}\nlegacy_base_url = {address:?}\nrequests_per_minute = 60000\n[budget]\nmonthly_credits = 25\n\
         [store]\npath = \"b.db\"\n[rules]\npaths = []\n[http]\nlisten = \"off\"\n[route]\nreceivers = []\n",
        address = stage.source.address,
    );
    std::fs::write(folder.path().join("cliffwatch.toml"), text).expect("written");
    let start = |slot: i64, dry: &[&str]| {
        let now = (stage.clock.now() + TimeDelta::hours(6 * slot)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
        command.args(["--config", "cliffwatch.toml", "--now", &now, "poll"]).args(dry).current_dir(folder.path());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().expect("starts")
    };
    // The first one makes the database.
    start(0, &[]).wait().expect("ends");
    for slot in 1..5 {
        let children = [start(slot, &[]), start(slot, &["--dry-run"]), start(slot, &["--dry-run"])];
        for mut child in children {
            child.wait().expect("ends");
        }
    }
    let world = stage.source.world();
    assert!(world.overspent.is_empty(), "{:#?}", world.overspent);
    assert!(world.charged_now() >= 20, "and they ask: {}", world.charged_now());
}
