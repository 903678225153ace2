//! `TestApp`: the real app on a temporary database with a manual clock, a data service of our own with knobs as its source, and
//! receivers that keep what they get. Tests turn the crank: [`TestApp::tick`], [`TestApp::deliver`].

mod cluster;
mod database;
pub mod ports;

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    routing::post,
};
use cliffwatch::{
    daemon::{
        app::{App, Drive},
        cycle::CycleReport,
        outbox::DeliveryReport,
        schedule::Job,
    },
    model::{
        clock::Clock,
        config,
        supply::{Endpoint, Timestamp},
        wire,
    },
    service as serve,
    service::{AccessPolicy, Edit, EditError, Options, Service, faults::Faults},
    source::Tuning,
    store::Store,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use cluster::Cluster;
pub use database::{Database, schema_of_its_own};

/// The time at which every test begins.
pub const BEGIN: &str = "2026-03-01T00:00:00Z";

pub fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a timestamp")
}

/// A webhook receiver that keeps bodies and answers as told. What it refuses, it refuses as many servers do: with the address in
/// the answer.
#[derive(Clone, Debug, Default)]
pub struct Hook(Arc<Mutex<HookState>>);

#[derive(Debug, Default)]
struct HookState {
    bodies: Vec<(String, Value)>,
    /// Statuses for the next requests; 204 once it is empty.
    answers: Vec<u16>,
    /// Status for all requests, while set.
    always: Option<u16>,
    /// Whether a request carried a signature.
    signed: bool,
    /// The `webhook-id` of each request, accepted or not.
    tried: Vec<String>,
}

impl Hook {
    pub async fn start(ending: CancellationToken) -> (Self, SocketAddr) {
        async fn take(State(hook): State<Hook>, uri: Uri, headers: HeaderMap, body: String) -> (StatusCode, String) {
            let mut state = hook.0.lock().unwrap();
            state.signed |= headers.contains_key("webhook-signature");
            let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
            state.tried.push(id.clone());
            let status = state.always.unwrap_or_else(|| if state.answers.is_empty() { 204 } else { state.answers.remove(0) });
            if status < 300 {
                state.bodies.push((id, serde_json::from_str(&body).expect("JSON")));
            }
            let answer = if status < 300 { String::new() } else { format!("nothing at {uri}") };
            (StatusCode::from_u16(status).unwrap(), answer)
        }
        let hook = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/hook", post(take)).route("/hook/{*rest}", post(take)).with_state(hook.clone());
        tokio::spawn(serve::serve(listener, router, ending.cancelled_owned()));
        (hook, address)
    }

    /// What was accepted since this was last taken, in its order.
    pub fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap().bodies).into_iter().map(|(_, body)| body).collect()
    }

    /// What was accepted since it was last taken, with its `webhook-id`; left where it is.
    pub fn accepted(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().bodies.clone()
    }

    /// The `webhook-id` of each request, accepted or not.
    pub fn tried(&self) -> Vec<String> {
        self.0.lock().unwrap().tried.clone()
    }

    /// Whether any request carried a signature.
    pub fn was_signed(&self) -> bool {
        self.0.lock().unwrap().signed
    }

    pub fn answer_always(&self, status: Option<u16>) {
        self.0.lock().unwrap().always = status;
    }
}

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

/// What a test may choose before the app starts.
pub struct Setup {
    pub tokens: Value,
    pub rules: String,
    /// More TOML for the config; it begins inside `[route]`.
    pub config: String,
    pub fill: Fill,
    /// The machine's clock, where it is not the one by which the source goes.
    pub machine: Option<Clock>,
    /// Whether the database is a file also where the environment names a server, in which it would be a schema of its own.
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

/// A cliff of one allocation, valued at one dollar a token.
pub fn cliff(date: &str, allocation: &str, amount: f64, precision: &str) -> wire::UnlockEvent {
    serde_json::from_value(json!({
        "unlockDate": date, "tokenName": "Alpha", "tokenSymbol": "ALP", "listedMethod": "INTERNAL", "dataSource": "Whitepaper",
        "linearUnlocks": null,
        "cliffUnlocks": {"cliffAmount": amount, "cliffValue": amount, "valueToMarketCap": amount / 1e6, "allocationBreakdown": [
            {"unlockDate": date, "allocationName": allocation, "standardAllocationName": "Founder / Team", "cliffAmount": amount,
             "cliffValue": amount, "referencePrice": 1.0, "referencePriceUpdatedTime": "2026-02-28T00:00:00Z", "unlockPrecision": precision}]},
        "latestUpdateDate": "2026-02-01T00:00:00Z"
    }))
    .expect("an event")
}

pub fn item(id: &str, symbol: &str) -> wire::TokenItem {
    serde_json::from_value(json!({
        "id": id, "name": symbol, "symbol": symbol, "listedMethod": "INTERNAL", "marketCap": 1e8, "maxSupply": 1e9,
        "hasBurn": true, "hasBuyback": true, "lastUpdatedDate": "2026-02-01T00:00:00Z"
    }))
    .expect("a token")
}

pub fn burn(date: &str, amount: f64) -> wire::Burn {
    serde_json::from_value(json!({"burnEventLabel": "Burn", "burnType": "PROGRAMMATIC", "burnDate": date, "amount": amount,
        "pricePerToken": 1.0, "value": amount, "metadata": {"burners": ["PROJECT"], "burnReasons": ["GOVERNANCE"]}}))
    .expect("a burn")
}

pub fn buyback(date: &str, amount: f64) -> wire::Buyback {
    serde_json::from_value(json!({"buybackEventLabel": "Buyback", "buybackType": "TREASURY_BUYBACK", "buybackDate": date,
        "tokenAmount": amount, "value": amount, "spentAmount": null, "spentUnit": "", "resolution": "period_net", "basis": "estimated"}))
    .expect("a buyback")
}

/// `alpha` with six monthly cliffs to the second, `beta` with one of month precision, each with a burn and a buyback.
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

/// The app with a client whose waits in real time are short; breakers and the like go by the manual clock, and stay as they are.
pub async fn open(config: &config::Config, folder: &Path, clock: &Clock) -> App {
    open_with(config, folder, clock, None).await
}

/// As [`open`], on a copy whose quota is that of another database.
pub async fn open_with(config: &config::Config, folder: &Path, clock: &Clock, quota: Option<Store>) -> App {
    let tuning = Tuning {
        backoff: Duration::from_millis(5),
        short_wait: Duration::from_millis(50),
        limited_wait: Duration::from_millis(20),
        ..Tuning::default()
    };
    App::open_tuned(config.clone(), folder, clock.clone(), Drive::Crank, tuning, quota).await.expect("opens")
}

pub struct TestApp {
    /// By which the source goes, and the app where no machine has a clock of its own.
    pub clock: Clock,
    pub machine: Clock,
    pub service: Service,
    pub faults: Faults,
    pub hook: Hook,
    /// A second receiver, `desk`, which no route leads to unless a test's config does.
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
        tokio::spawn(serve::serve(listener, service.faulty_router(&faults), ending.clone().cancelled_owned()));
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

    /// As after a restart: the same database, nothing else kept.
    pub async fn restart(&mut self) {
        self.restart_with(|_| {}).await;
    }

    /// As after a restart with another config; `change` runs while the app is closed.
    pub async fn restart_with(&mut self, change: impl FnOnce(&mut config::Config)) {
        self.app.take().expect("open").close().await.expect("closes");
        change(&mut self.config);
        self.machine = self.machine.restarted();
        self.app = Some(open(&self.config, self.folder.path(), &self.machine).await);
    }

    /// Asks one endpoint.
    pub async fn poll(&self, endpoint: Endpoint) -> CycleReport {
        self.app().tick(Job::Poll(endpoint)).await.expect("a cycle")
    }

    /// Asks everything that is on, then evaluates.
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

    /// A tick and the deliveries that follow: the lines of what the receiver got.
    pub async fn turn(&self) -> Vec<String> {
        self.tick().await;
        self.deliver().await;
        lines(&self.hook.take())
    }

    pub fn at(&self, text: &str) {
        self.clock.set(time(text));
    }

    /// Rows of the database, past every operation of the store, as lists of JSON values.
    pub fn rows(&self, sql: &str) -> Vec<Vec<Value>> {
        self.database().rows(sql)
    }

    /// The database, past every operation of the store.
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
            assert!(left.is_empty(), "deliveries that nobody expected: {left:#?}");
        }
    }
}
