//! No credit is ever spent beyond the cap, whatever happens at once; and whatever was spent or refused, reading goes on by itself.
//! The source counts for itself ([`source`]).

mod source;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use cliffwatch::{
    daemon::{app::App, config::Environment, schedule::Job},
    model::{clock::Clock, config::Config, supply::Endpoint},
};
use source::{Reply, Source, World};
use tokio::runtime::Runtime;

use crate::support::{BEGIN, open, time};

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
        let servers = Runtime::new().expect("a runtime");
        let clock = Clock::manual(world.clock.now());
        let source = servers.block_on(Source::start(world));
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = config(&source.address, &folder.path().join("l.db"));
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
        self.start();
    }

    fn restart(&mut self) {
        let (runtime, app) = self.life.take().expect("alive");
        let app = Arc::into_inner(app).expect("nothing is under way");
        runtime.block_on(app.close()).expect("closes");
        drop(runtime);
        self.start();
    }

    /// Runs jobs at once, to their end or for as long as `most`.
    fn fire(&self, jobs: &[Job], most: Duration) {
        let (runtime, app) = self.life.as_ref().expect("alive");
        let runs: Vec<_> = jobs
            .iter()
            .map(|job| {
                let (app, job) = (app.clone(), *job);
                runtime.spawn(async move { app.tick(job).await.expect("a cycle") })
            })
            .collect();
        runtime.block_on(async {
            let all = async {
                for run in runs {
                    run.await.expect("no panic");
                }
            };
            let _ = tokio::time::timeout(most, all).await;
        });
    }

    /// As the daemon starts: the lists first, then everything at once.
    fn all_jobs(&self) {
        let jobs = self.life.as_ref().expect("alive").1.jobs();
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

fn config(source: &str, database: &std::path::Path) -> Config {
    let text = format!(
        r#"
[source]
base_url = "{source}"
legacy_base_url = "{source}"
requests_per_minute = 60000
timeout = "5s"
[watch]
tokens = ["*"]
[store]
path = {database:?}
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
    assert!(world.charged_now() > 60, "and it spends what it may: {}", world.charged_now());
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
