//! Plays the table of incidents in docs/operation.md: the packaged alerting rules that it lists for an incident must see it, and no other
//! rule, with a real Prometheus, data service, and daemon. Only the conditions of the rules are compared; `promtool` tests how long each must
//! last.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
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

mod pair;

use crate::receivers::{
    outside::{self, ExternalProgram},
    prometheus::{packaging, query_prometheus},
};

/// The time for which the conditions must stay as expected.
const STEADY_TIME: Duration = Duration::from_secs(2);

/// The mount option for the size of the database's disk.
const DISK_SIZE: &str = "size=48m";

/// How many unlocks of a token remain, all of them in the past.
const FEW_UNLOCKS: usize = 3;

/// The number of last log lines that a failed test prints.
const LOG_LINES: usize = 80;

/// The library that sets the clock of a program.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

const RULES: &str = "[[rule]]\nalert = \"Burned\"\non = \"burn\"\nwhen = \"amount > 0\"\n[[rule]]\nalert = \"Ahead\"\non = \"unlock\"\nwithin = [\"365d\"]\n";

struct World {
    folder: tempfile::TempDir,
    /// The addresses of the data service and the daemon.
    addresses: [String; 2],
    /// The status of the receiver.
    status: Arc<AtomicU16>,
    service: Option<ExternalProgram>,
    daemon: Option<ExternalProgram>,
    prometheus: PrometheusRules,
}

/// The clocks that can be set. An hour passes if both are set.
const CLOCKS: [&str; 2] = ["clock-source", "clock-daemon"];

/// Sets the clock of a program, for example by `+3d`.
fn set_clock(folder: &Path, name: &str, by: &str) {
    let beside = folder.join("beside");
    fs::write(&beside, by).expect("written");
    fs::rename(beside, folder.join(name)).expect("renamed");
}

/// A Prometheus that scrapes instances with the packaged rules.
struct PrometheusRules {
    address: String,
    client: reqwest::Client,
    _program: ExternalProgram,
}

impl PrometheusRules {
    fn start(folder: &Path, daemons: &[&str]) -> Self {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _lost_race = rustls::crypto::ring::default_provider().install_default();
        }
        let scrape = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\nrule_files: [{}]\n\
             scrape_configs:\n- {{ job_name: cliffwatch, static_configs: [{{ targets: {daemons:?} }}] }}\n",
            packaging("prometheus/cliffwatch.rules.yml").display()
        );
        fs::write(folder.join("prometheus.yml"), scrape).expect("written");
        let address = format!("127.0.0.1:{}", free_port());
        let _program = ExternalProgram::start(
            Command::new(outside::program("prometheus"))
                .current_dir(folder)
                .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series", "--log.level=error"])
                .arg(format!("--web.listen-address={address}")),
        );
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().expect("a client");
        Self { address, client, _program }
    }

    /// The rules whose condition was true at the last evaluation. `None` while Prometheus does not respond.
    async fn true_conditions(&self) -> Option<BTreeSet<String>> {
        let rules = query_prometheus(&self.client, &format!("http://{}/api/v1/rules", self.address)).await?;
        let active = rules["data"]["groups"][0]["rules"].as_array()?.iter().filter(|rule| rule["state"] != "inactive");
        active.map(|rule| Some(rule["name"].as_str()?.trim_start_matches("Cliffwatch").to_owned())).collect()
    }

    /// Waits until exactly the rules are true that the documentation lists for these incidents, or for none of them, and remain so for some
    /// scrapes. `lasting` are rules that stay true for a while after their incident.
    async fn expect(&self, incidents: &[&str], lasting: &[&str]) {
        let mut expected: BTreeSet<String> = incidents.iter().flat_map(|incident| documented_alerts(incident)).collect();
        expected.extend(lasting.iter().map(|name| (*name).to_owned()));
        let (since, last) = (Cell::new(None::<Instant>), RefCell::new(BTreeSet::new()));
        outside::until(&format!("{incidents:?}: {expected:?}"), || async {
            let found = self.true_conditions().await?;
            if found != expected {
                since.set(None);
            } else if since.get().is_none() {
                since.set(Some(Instant::now()));
            }
            if *last.borrow() != found {
                println!("{incidents:?}: {found:?} are true");
                last.replace(found);
            }
            since.get().filter(|since| since.elapsed() > STEADY_TIME)
        })
        .await;
    }
}

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");

const DOCS: &str = include_str!("../../docs/operation.md");

/// The rows of the table of incidents: the incident and the cell with its alerts.
fn documented_incidents() -> Vec<(&'static str, &'static str)> {
    let table = DOCS.lines().skip_while(|line| *line != "| Incident | Alerts |").skip(2);
    let rows = table.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.collect()
}

/// The rules for an incident.
fn documented_alerts(incident: &str) -> Vec<String> {
    let rows = documented_incidents();
    let alerts = rows.iter().find(|(name, _)| *name == incident).unwrap_or_else(|| panic!("{incident} is not in the table")).1;
    alerts.split('`').filter_map(|word| word.strip_prefix("Cliffwatch")).map(str::to_owned).collect()
}

#[test]
fn every_documented_incident_is_played() {
    let rows = documented_incidents();
    assert!(rows.len() > 12, "{rows:?}");
    for (incident, _) in rows {
        let name = format!("\"{incident}\"");
        let tests = [include_str!("incident_rules.rs"), include_str!("incident_rules/pair.rs")];
        assert!(tests.iter().any(|text| text.contains(&name)), "no test plays {name}");
    }
}

/// Imports a data folder into the data service.
fn import(folder: &Path, data: &Path) {
    let imported = command(folder).arg("import").arg(data).args(["--db", "service.db"]).output().expect("it runs");
    assert!(imported.status.success(), "{imported:?}");
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cliffwatch"));
    command.current_dir(folder).stderr(Stdio::null());
    command
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let addresses: [String; 2] = std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()));
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
        let [service, daemon] = &addresses;
        let config = format!(
            "[source]\nbase_url = \"http://{service}\"\nlegacy_base_url = \"http://{service}\"\napi_key_file = \"key\"\n\
             requests_per_minute = 60000\ntimeout = \"2s\"\n[watch]\ntokens = [\"arbitrum\", \"aptos\"]\n\
             [schedule]\ntoken_list = \"*/3 * * * * *\"\nunlock_events = \"*/2 * * * * *\"\nburn = \"*/2 * * * * *\"\nevaluate = \"*/2 * * * * *\"\n\
             [rules]\npaths = [\"rules.toml\"]\n[store]\npath = \"disk/cliffwatch.db\"\n[http]\nlisten = \"{daemon}\"\n\
             [[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://{hook}/hook\"\n\
             [route]\nreceivers = [\"ops\"]\ngroup_wait = \"0s\"\n"
        );
        fs::write(folder.path().join("cliffwatch.toml"), config).expect("written");
        fs::write(folder.path().join("rules.toml"), RULES).expect("written");
        CLOCKS.iter().for_each(|clock| set_clock(folder.path(), clock, "+0"));
        let disk = folder.path().join("disk");
        fs::create_dir(&disk).expect("a folder");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK_SIZE, "tmpfs"]).arg(&disk).status();
        assert!(mounted.is_ok_and(|status| status.success()), "a disk that can be full needs root");
        import(folder.path(), Path::new(DATA));
        let prometheus = PrometheusRules::start(folder.path(), &[daemon]);
        Self { folder, addresses, status, service: None, daemon: None, prometheus }
    }

    fn key(&self, name: &str, limit: &str) {
        let added = command(self.folder.path())
            .args(["keys", "add", name, "--monthly-limit", limit, "--db", "service.db"])
            .output()
            .expect("it runs");
        assert!(added.status.success());
        fs::write(self.folder.path().join("key"), added.stdout).expect("written");
    }

    /// A command whose wall clock, but not its monotonic clock, is the file `clock`.
    fn command_at(&self, clock: &str) -> Command {
        let mut command = command(self.folder.path());
        command.env("LD_PRELOAD", FAKETIME).env("FAKETIME_TIMESTAMP_FILE", self.folder.path().join(clock));
        command.env("FAKETIME_CACHE_DURATION", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
        command
    }

    fn start_service(&mut self) {
        let arguments = ["serve", "--db", "service.db", "--listen", &self.addresses[0]];
        let log = self.log_file("service.log");
        self.service = Some(ExternalProgram::start(self.command_at(CLOCKS[0]).args(arguments).stderr(log)));
    }

    /// Lets time pass for the daemon and for the source, which trusts its clock since its start.
    fn pass_time(&mut self, by: &str) {
        self.service.take();
        CLOCKS.iter().for_each(|clock| set_clock(self.folder.path(), clock, by));
        self.start_service();
    }

    fn set_daemon_clock(&self, by: &str) {
        set_clock(self.folder.path(), CLOCKS[1], by);
    }

    fn start_daemon(&mut self) {
        let log = self.log_file("daemon.log");
        self.daemon = Some(ExternalProgram::start(self.command_at(CLOCKS[1]).arg("run").stderr(log)));
    }

    fn log_file(&self, name: &str) -> fs::File {
        fs::File::options().append(true).create(true).open(self.folder.path().join(name)).expect("a log file")
    }

    /// Prints what a failed test must explain: the last log lines of both programs, and the metrics of the daemon.
    fn print_state(&self) {
        for name in ["service.log", "daemon.log"] {
            let log = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            println!("{name}:\n{}", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"));
        }
        let metrics = Command::new("curl").args(["-s", "-m", "5"]).arg(format!("http://{}/metrics", self.addresses[1])).output();
        let metrics = metrics.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        println!("metrics:\n{}", metrics.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n"));
    }

    async fn expect(&self, incidents: &[&str]) {
        self.prometheus.expect(incidents, &[]).await;
    }

    /// Waits until alerts of a rule fire and a delivery is pending.
    async fn until_pending(&self, rule: &str) {
        let firing = format!("cliffwatch_alerts_firing{{rule=\"{rule}\",");
        outside::until("a delivery is pending", || async {
            let page = self.prometheus.client.get(format!("http://{}/metrics", self.addresses[1])).send().await.ok()?;
            let page = page.text().await.ok()?;
            let is_positive = |start: &str| page.lines().any(|line| line.starts_with(start) && !line.ends_with(" 0"));
            (is_positive(&firing) && is_positive("cliffwatch_outbox_pending{")).then_some(())
        })
        .await;
    }

    /// Lets the source list few of the unlocks of a token.
    fn hide_unlocks(&self, token: &str) {
        let (data, file) = (self.folder.path().join("data"), format!("unlock-events/{token}.json"));
        let copied = Command::new("cp").arg("-r").arg(DATA).arg(&data).status();
        assert!(copied.is_ok_and(|status| status.success()));
        let mut events: serde_json::Value = serde_json::from_slice(&fs::read(data.join(&file)).expect("read")).expect("JSON");
        let list = if events.is_array() { &mut events } else { &mut events["data"] };
        list.as_array_mut().expect("a list").truncate(FEW_UNLOCKS);
        fs::write(data.join(&file), events.to_string()).expect("written");
        import(self.folder.path(), &data);
    }

    /// Returns the number of files that the daemon has open.
    fn open_files(&self) -> usize {
        let pid = self.daemon.as_ref().expect("started").id();
        fs::read_dir(format!("/proc/{pid}/fd")).expect("read").count()
    }

    /// Sets how many files the daemon may open. The files that it has open stay open.
    fn limit_files(&self, limit: &str) {
        let pid = self.daemon.as_ref().expect("started").id().to_string();
        let limited = Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={limit}")]).status();
        assert!(limited.is_ok_and(|status| status.success()));
    }

    fn disk(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn fill_disk(&self) {
        let mut ballast = fs::File::create(self.disk().join("ballast")).expect("a file");
        let block = vec![0; 1 << 12];
        while ballast.write_all(&block).is_ok() {}
    }

    fn empty_disk(&self) {
        fs::remove_file(self.disk().join("ballast")).expect("removed");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_state();
        }
        self.daemon.take();
        Command::new("umount").arg("-l").arg(self.disk()).stderr(Stdio::null()).status().ok();
    }
}

#[tokio::test]
async fn each_incident_is_seen_by_its_rules_and_by_no_other() {
    if outside::lacks_program("prometheus", "prometheus") || outside::lacks_program("faketime", "faketime") {
        return;
    }
    let mut world = World::start().await;
    world.expect(&["the daemon is stopped"]).await;

    // Without any key, the data service is open to all.
    world.key("desk", "1000000");
    let key = world.folder.path().join("key");
    let right = fs::read(&key).expect("read");
    fs::write(&key, "wrong").expect("written");
    world.start_daemon();
    world.expect(&["first start, and the source does not respond"]).await;
    world.start_service();
    world.expect(&["first start, and the source rejects the API key"]).await;
    fs::write(&key, &right).expect("written");
    world.expect(&["everything works"]).await;
    fs::write(&key, "wrong").expect("written");
    world.expect(&["the source rejects the API key"]).await;
    fs::write(&key, &right).expect("written");
    world.expect(&["everything works"]).await;
    drop(world.service.take());
    world.expect(&["the source does not respond"]).await;
    world.start_service();
    world.expect(&["everything works"]).await;
    world.key("small", "1");
    world.expect(&["the credits are used up"]).await;
    fs::write(&key, &right).expect("written");
    world.expect(&["everything works"]).await;

    world.hide_unlocks("arbitrum");
    world.expect(&["most unlocks of a token are missing"]).await;
    import(world.folder.path(), Path::new(DATA));
    world.expect(&["everything works"]).await;

    // A few more, so that the daemon can still read its files.
    world.limit_files(&format!("{}:", world.open_files() + 5));
    world.expect(&["few file descriptors are left"]).await;
    world.limit_files("20000:");
    world.expect(&["everything works"]).await;

    world.fill_disk();
    world.expect(&["the disk is full"]).await;
    world.empty_disk();
    world.expect(&["everything works"]).await;

    world.set_daemon_clock("+3d");
    world.expect(&["the clock is wrong"]).await;
    drop(world.daemon.take());
    world.start_daemon();
    world.expect(&["the clock is wrong"]).await;
    world.set_daemon_clock("+0");
    world.expect(&["everything works"]).await;

    // The alerts of another rule wait for the receiver. An hour passes for the daemon and for the source.
    world.status.store(503, Ordering::SeqCst);
    fs::write(world.folder.path().join("rules.toml"), RULES.replace("Ahead", "Coming")).expect("written");
    world.until_pending("Coming").await;
    world.expect(&["a receiver fails for less than an hour"]).await;
    world.pass_time("+61m");
    world.expect(&["a receiver fails for an hour"]).await;
    world.status.store(200, Ordering::SeqCst);
    world.pass_time("+122m");
    world.expect(&["everything works"]).await;

    fs::write(world.folder.path().join("rules.toml"), "[[rule]]\nalert = \n").expect("written");
    world.expect(&["a rule file has an error"]).await;
    world.status.store(400, Ordering::SeqCst);
    // Most unlocks have no committed amount, so the template fails when the alert is rendered.
    let template = "[[rule]]\nalert = \"Templated\"\non = \"unlock\"\nwithin = [\"365d\"]\nannotations = { summary = \"{{ committedAmount / 1000 }}\" }\n";
    fs::write(world.folder.path().join("rules.toml"), format!("{RULES}{template}")).expect("written");
    world.expect(&["a receiver rejects a message", "a template fails"]).await;
    world.status.store(200, Ordering::SeqCst);
    fs::write(world.folder.path().join("rules.toml"), RULES).expect("written");
    let dropped = world.command_at(CLOCKS[1]).args(["outbox", "drop", "--dead"]).output().expect("it runs");
    assert!(dropped.status.success(), "{dropped:?}");
    // The increase over an hour stays.
    world.prometheus.expect(&["everything works"], &["TemplateFails"]).await;
    drop(world.daemon.take());
    world.prometheus.expect(&["the daemon is stopped"], &["TemplateFails"]).await;
}
