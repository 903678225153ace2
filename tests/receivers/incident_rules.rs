//! A table of incidents and of the packaged alerting rules that must see them, with a real Prometheus, data service, and daemon. Only the
//! conditions of the rules are compared; `promtool` tests how long each must last.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, http::StatusCode, routing::post};
use cliffwatch::service as serve;
use testkit::free_port;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    outside::{self, ExternalProgram},
    prometheus::{packaging, query_prometheus},
};

/// The time for which the conditions must stay as expected.
const STEADY_TIME: Duration = Duration::from_secs(3);

/// The library that sets the clock of a program.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

const RULES: &str = "[[rule]]\nalert = \"Burned\"\non = \"burn\"\nwhen = \"amount > 0\"\n[[rule]]\nalert = \"Ahead\"\non = \"unlock\"\nwithin = [\"365d\"]\n";

struct World {
    folder: tempfile::TempDir,
    /// The addresses of the data service, the daemon, and Prometheus.
    addresses: [String; 3],
    /// The status of the receiver.
    status: Arc<AtomicU16>,
    client: reqwest::Client,
    service: Option<ExternalProgram>,
    daemon: Option<ExternalProgram>,
    _prometheus: ExternalProgram,
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
    command.current_dir(folder).stderr(Stdio::null());
    command
}

impl World {
    async fn start() -> Self {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _lost_race = rustls::crypto::ring::default_provider().install_default();
        }
        let folder = tempfile::tempdir().expect("a folder");
        let addresses: [String; 3] = std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()));
        let status = Arc::new(AtomicU16::new(200));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (hook, responded) = (listener.local_addr().expect("bound"), status.clone());
        let respond = move || {
            let status = StatusCode::from_u16(responded.load(Ordering::SeqCst)).expect("a status");
            async move { status }
        };
        tokio::spawn(serve::serve(
            listener,
            Router::new().route("/hook", post(respond)),
            CancellationToken::new().cancelled_owned(),
        ));
        let [service, daemon, prometheus] = &addresses;
        let config = format!(
            "[source]\nbase_url = \"http://{service}\"\nlegacy_base_url = \"http://{service}\"\napi_key_file = \"key\"\n\
             requests_per_minute = 60000\ntimeout = \"2s\"\n[watch]\ntokens = [\"arbitrum\", \"aptos\"]\n\
             [schedule]\ntoken_list = \"*/3 * * * * *\"\nunlock_events = \"*/2 * * * * *\"\nburn = \"*/2 * * * * *\"\nevaluate = \"*/2 * * * * *\"\n\
             [rules]\npaths = [\"rules.toml\"]\n[http]\nlisten = \"{daemon}\"\n\
             [[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://{hook}/hook\"\n\
             [route]\nreceivers = [\"ops\"]\ngroup_wait = \"0s\"\n"
        );
        fs::write(folder.path().join("cliffwatch.toml"), config).expect("written");
        fs::write(folder.path().join("rules.toml"), RULES).expect("written");
        let scrape = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\nrule_files: [{}]\n\
             scrape_configs:\n- {{ job_name: cliffwatch, static_configs: [{{ targets: [\"{daemon}\"] }}] }}\n",
            packaging("prometheus/cliffwatch.rules.yml").display()
        );
        fs::write(folder.path().join("prometheus.yml"), scrape).expect("written");
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
        let import = command(folder.path()).args(["import", data, "--db", "service.db"]).output();
        assert!(import.expect("it runs").status.success());
        let _prometheus = ExternalProgram::start(
            Command::new(outside::program("prometheus"))
                .current_dir(folder.path())
                .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series", "--log.level=error"])
                .arg(format!("--web.listen-address={prometheus}")),
        );
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().expect("a client");
        Self { folder, addresses, status, client, service: None, daemon: None, _prometheus }
    }

    fn key(&self, name: &str, limit: &str) {
        let added = command(self.folder.path())
            .args(["keys", "add", name, "--monthly-limit", limit, "--db", "service.db"])
            .output()
            .expect("it runs");
        assert!(added.status.success());
        fs::write(self.folder.path().join("key"), added.stdout).expect("written");
    }

    fn start_service(&mut self) {
        let arguments = ["serve", "--db", "service.db", "--listen", &self.addresses[0]];
        self.service = Some(ExternalProgram::start(command(self.folder.path()).args(arguments)));
    }

    /// Starts the daemon, with a clock that is ahead by `ahead`.
    fn start_daemon(&mut self, ahead: Option<&str>) {
        let mut command = command(self.folder.path());
        if let Some(ahead) = ahead {
            command.env("LD_PRELOAD", FAKETIME).env("FAKETIME", ahead);
        }
        self.daemon = Some(ExternalProgram::start(command.arg("run")));
    }

    /// The rules whose condition was true at the last evaluation. `None` while Prometheus does not respond.
    async fn true_conditions(&self) -> Option<BTreeSet<String>> {
        let rules = query_prometheus(&self.client, &format!("http://{}/api/v1/rules", self.addresses[2])).await?;
        let active = rules["data"]["groups"][0]["rules"].as_array()?.iter().filter(|rule| rule["state"] != "inactive");
        active.map(|rule| Some(rule["name"].as_str()?.trim_start_matches("Cliffwatch").to_owned())).collect()
    }

    /// Waits until exactly these rules are true, and remain so for some scrapes.
    async fn expect(&self, what: &str, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        let (since, last) = (Cell::new(None::<Instant>), RefCell::new(BTreeSet::new()));
        outside::until(&format!("{what}: {expected:?}"), || async {
            let found = self.true_conditions().await?;
            if found != expected {
                since.set(None);
            } else if since.get().is_none() {
                since.set(Some(Instant::now()));
            }
            if *last.borrow() != found {
                println!("{what}: {found:?} are true");
                last.replace(found);
            }
            since.get().filter(|since| since.elapsed() > STEADY_TIME)
        })
        .await;
    }
}

#[tokio::test]
async fn each_incident_is_seen_by_its_rules_and_by_no_other() {
    if outside::lacks_program("prometheus", "prometheus") || outside::lacks_program("faketime", "faketime") {
        return;
    }
    let mut world = World::start().await;
    world.expect("no daemon", &["Down"]).await;

    // Without any key, the data service is open to all.
    world.key("desk", "1000000");
    let key = world.folder.path().join("key");
    let right = fs::read(&key).expect("read");
    fs::write(&key, "wrong").expect("written");
    world.start_daemon(None);
    world.expect("first start, and the source does not respond", &["SourceDown", "NothingRead"]).await;
    world.start_service();
    world.expect("the source rejects the key", &["KeyRefused", "NothingRead"]).await;
    fs::write(&key, &right).expect("written");
    world.expect("the right key", &[]).await;
    world.key("small", "1");
    world.expect("a key without credits left", &["CreditsSpent"]).await;
    fs::write(&key, &right).expect("written");
    world.expect("the right key again", &[]).await;

    fs::write(world.folder.path().join("rules.toml"), "[[rule]]\nalert = \n").expect("written");
    world.expect("a broken rule file", &["ReloadFailed"]).await;
    world.status.store(400, Ordering::SeqCst);
    // Most unlocks have no committed amount, so the template fails when the alert is rendered.
    let template = "[[rule]]\nalert = \"Templated\"\non = \"unlock\"\nwithin = [\"365d\"]\nannotations = { summary = \"{{ committedAmount / 1000 }}\" }\n";
    fs::write(world.folder.path().join("rules.toml"), format!("{RULES}{template}")).expect("written");
    world.expect("a receiver that rejects, and a template that fails", &["DeadLetters", "TemplateFails"]).await;
    world.status.store(200, Ordering::SeqCst);
    fs::write(world.folder.path().join("rules.toml"), RULES).expect("written");
    let dropped = command(world.folder.path()).args(["outbox", "drop", "--dead"]).output().expect("it runs");
    assert!(dropped.status.success());
    // The increase over an hour stays.
    world.expect("dropped dead letters", &["TemplateFails"]).await;

    drop(world.daemon.take());
    world.start_daemon(Some("+3d"));
    world.expect("a wrong clock", &["ClockWrong", "TemplateFails"]).await;
    drop(world.daemon.take());
    world.expect("the daemon stopped", &["Down", "TemplateFails"]).await;
}
