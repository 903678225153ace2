//! `TestApp`: the real app with a temporary database, a manual clock, an in-process data service with faults as its source, and
//! receivers that record their messages. Tests drive it explicitly with [`TestApp::tick`] and [`TestApp::deliver`].

use std::{net::SocketAddr, path::Path, time::Duration};

use cliffwatch::{
    daemon::{
        app::{App, Drive},
        cycle::CycleReport,
        outbox::DeliveryReport,
        schedule::Job,
    },
    model::{clock::Clock, config, supply::Endpoint},
    service as serve,
    service::{AccessPolicy, Edit, EditError, Options, Service},
    source::Tuning,
    store::Store,
};
use serde_json::{Value, json};
use testkit::faults::Faults;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use testkit::records::{burn, buyback, cliff, item};
pub use testkit::{Cluster, Database, Hook, create_schema, time};

/// The start time of every test.
pub const BEGIN: &str = "2026-03-01T00:00:00Z";

/// One line for each alert of the messages: `type rule token: summary`.
pub fn lines(bodies: &[Value]) -> Vec<String> {
    bodies
        .iter()
        .flat_map(|body| {
            let kind = body["type"].as_str().expect("a type").to_owned();
            body["data"]["alerts"].as_array().expect("alerts").iter().map(move |alert| {
                let token = alert["token"]["id"].as_str().unwrap_or("-");
                format!(
                    "{kind} {} {token}: {}",
                    alert["rule"].as_str().unwrap(),
                    alert["annotations"]["summary"].as_str().unwrap()
                )
            })
        })
        .collect()
}

/// Fills the data service.
pub type Fill = Box<dyn Fn(&mut Edit<'_>) -> Result<(), EditError>>;

/// The settings of a [`TestApp`].
pub struct Setup {
    pub tokens: Value,
    pub rules: String,
    /// TOML to append to the config, starting in `[route]`.
    pub config: String,
    pub fill: Fill,
    /// The clock of the app. `None` to share the clock of the source.
    pub machine: Option<Clock>,
    /// Whether to use a file even if the environment provides a PostgreSQL server.
    pub is_on_file: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            tokens: json!(["*"]),
            rules: RULES.to_owned(),
            config: String::new(),
            fill: Box::new(two_tokens),
            machine: None,
            is_on_file: false,
        }
    }
}

pub const RULES: &str = r#"
[[rule]]
alert  = "BigCliffAhead"
on     = "unlock"
within = ["30d", "7d", "1d"]
when   = "cliffValue >= 1000000"
labels = { severity = "warning" }

[[rule]]
alert = "ScheduleChanged"
on    = "unlock.*"

[[rule]]
alert = "Burned"
on    = "burn"
when  = "amount >= 1000"

[[rule]]
alert = "BoughtBack"
on    = "buyback"
"#;

/// Adds `alpha` with six monthly cliffs of second precision, and `beta` with one of month precision. Each has a burn and a buyback.
pub fn two_tokens(edit: &mut Edit<'_>) -> Result<(), EditError> {
    edit.put_token(&item("alpha", "ALP"))?;
    edit.put_token(&item("beta", "BET"))?;
    let months = ["2026-03-20", "2026-04-20", "2026-05-20", "2026-06-20", "2026-07-20", "2026-08-20"];
    edit.put_events(
        "alpha",
        months.iter().map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", 2_000_000.0, "second")).collect(),
    )?;
    edit.put_events("beta", vec![cliff("2026-05-15T00:00:00Z", "Seed", 5_000_000.0, "month")])?;
    for token in ["alpha", "beta"] {
        edit.add_burn(token, burn("2026-01-10T00:00:00Z", 5_000.0))?;
        edit.add_buyback(token, buyback("2026-01-11T00:00:00Z", 5_000.0))?;
    }
    Ok(())
}

/// Opens the app with short real-time waits in the client. Circuit breakers and the like use the manual clock and stay unchanged.
pub async fn open(config: &config::Config, folder: &Path, clock: &Clock) -> App {
    open_with(config, folder, clock, None).await
}

/// Like [`open`], but with the quota of another database.
pub async fn open_with(config: &config::Config, folder: &Path, clock: &Clock, quota: Option<Store>) -> App {
    let tuning = Tuning {
        backoff: Duration::from_millis(5),
        short_wait: Duration::from_millis(50),
        limited_wait: Duration::from_millis(20),
        ..Tuning::default()
    };
    App::open_tuned(config.clone(), folder, clock.clone(), Drive::Manual, tuning, quota).await.expect("opens")
}

pub struct TestApp {
    /// The clock of the source.
    pub clock: Clock,
    /// The clock of the app.
    pub machine: Clock,
    pub service: Service,
    pub faults: Faults,
    pub hook: Hook,
    /// A second receiver, `desk`, without a route by default.
    pub desk: Hook,
    pub folder: tempfile::TempDir,
    pub config: config::Config,
    app: Option<App>,
    ending: CancellationToken,
}

impl TestApp {
    pub async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        cliffwatch::source::install_crypto_provider();
        let clock = Clock::manual(time(BEGIN));
        let ending = CancellationToken::new();
        let service = Service::in_memory(Options { access: AccessPolicy::Open, clock: clock.clone(), ..Options::default() })
            .expect("a service");
        service.edit(|edit| (setup.fill)(edit)).expect("filled");
        let faults = Faults::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let source = listener.local_addr().expect("bound");
        tokio::spawn(serve::serve(listener, faults.wrap(service.legacy_router()), ending.clone().cancelled_owned()));
        let (hook, hook_address) = Hook::start(ending.clone()).await;
        let (desk, desk_address) = Hook::start(ending.clone()).await;

        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("rules")).expect("a folder");
        std::fs::write(folder.path().join("rules/test.toml"), &setup.rules).expect("written");
        let file = folder.path().join("test.db");
        let database = if setup.is_on_file { Database::File(file) } else { Database::new(file) };
        let text = format!(
            r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 60000
timeout = "5s"
[watch]
tokens = {tokens}
[store]
{store}
[http]
listen = "off"
[[receiver]]
name = "ops"
type = "webhook"
url = "http://{hook_address}/hook"
[[receiver]]
name = "desk"
type = "webhook"
url = "http://{desk_address}/hook"
[route]
receivers = ["ops"]
{more}
"#,
            tokens = setup.tokens,
            store = database.setting(),
            more = setup.config,
        );
        let path = folder.path().join("cliffwatch.toml");
        std::fs::write(&path, text).expect("written");
        let loaded = cliffwatch::daemon::config::load(Some(&path), &cliffwatch::daemon::config::Environment::default());
        let problems = cliffwatch::model::diagnostic::render(&loaded.diagnostics, &loaded.sources, false);
        let config = loaded.config.unwrap_or_else(|| panic!("{problems}"));
        let machine = setup.machine.unwrap_or_else(|| clock.clone());
        let app = open(&config, folder.path(), &machine).await;
        Self { clock, machine, service, faults, hook, desk, folder, config, app: Some(app), ending }
    }

    pub fn app(&self) -> &App {
        self.app.as_ref().expect("open")
    }

    /// Restarts the app on the same database.
    pub async fn restart(&mut self) {
        self.restart_with(|_| {}).await;
    }

    /// Restarts the app with a changed config. `change` runs while the app is closed.
    pub async fn restart_with(&mut self, change: impl FnOnce(&mut config::Config)) {
        self.app.take().expect("open").close().await.expect("closes");
        change(&mut self.config);
        self.machine = self.machine.restarted();
        self.app = Some(open(&self.config, self.folder.path(), &self.machine).await);
    }

    /// Serves the pages while `read` runs, then opens the app again. `[http] listen` must be set.
    pub async fn with_pages(&mut self, read: impl AsyncFnOnce(SocketAddr)) {
        let app = self.app.take().expect("open");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ready, started) = tokio::sync::oneshot::channel();
        let running =
            tokio::spawn(app.run(cliffwatch::web::serve, async move { drop(stopped.await) }, move |address| {
                ready.send(address).expect("waits")
            }));
        read(started.await.expect("started").expect("an address")).await;
        stop.send(()).expect("waits");
        running.await.expect("ended").expect("stopped");
        self.machine = self.machine.restarted();
        self.app = Some(open(&self.config, self.folder.path(), &self.machine).await);
    }

    pub async fn poll(&self, endpoint: Endpoint) -> CycleReport {
        self.app().tick(Job::Poll(endpoint)).await.expect("a cycle")
    }

    /// Runs all enabled jobs: polls, then the evaluation.
    pub async fn tick(&self) -> Vec<CycleReport> {
        let mut reports = Vec::new();
        for job in self.app().jobs() {
            reports.push(self.app().tick(job).await.expect("a cycle"));
        }
        reports
    }

    pub async fn evaluate(&self) -> CycleReport {
        self.app().tick(Job::Evaluate).await.expect("a cycle")
    }

    pub async fn deliver(&self) -> DeliveryReport {
        self.app().deliver().await
    }

    /// Runs a tick and the deliveries. Returns the messages of the receiver as lines.
    pub async fn tick_and_deliver(&self) -> Vec<String> {
        self.tick().await;
        self.deliver().await;
        lines(&self.hook.take())
    }

    pub fn at(&self, text: &str) {
        self.clock.set(time(text));
    }

    /// Runs a query on the database directly.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        self.database().rows(sql)
    }

    /// Direct access to the database.
    pub fn database(&self) -> Database {
        Database::of(&self.config.store)
    }

    pub fn edit(&self, change: impl FnOnce(&mut Edit<'_>) -> Result<(), EditError>) {
        self.service.edit(change).expect("edited");
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.ending.cancel();
        if !std::thread::panicking() {
            let mut left = lines(&self.hook.take());
            left.extend(lines(&self.desk.take()));
            assert!(left.is_empty(), "unexpected deliveries: {left:#?}");
        }
    }
}
