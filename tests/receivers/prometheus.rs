//! What we ship for Prometheus and Grafana, against a real Prometheus: the alerting rules pass their tests and evaluate, and every panel of the
//! dashboard has something to show of a daemon that was scraped. Grafana itself is not asked: it draws what these queries answer.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use axum::{Router, routing::post};
use cliffwatch::service as serve;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    outside::{self, Outside, until},
    ports::free_port,
};

fn packaging(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(path)
}

fn promtool(arguments: &[&str]) {
    let output = Command::new(outside::program("promtool")).current_dir(packaging("prometheus")).args(arguments).output();
    let output = output.expect("promtool runs");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}

#[test]
fn the_alerting_rules_pass_their_tests_and_the_config_is_one() {
    if outside::lacks_program("promtool", "prometheus") {
        return;
    }
    promtool(&["check", "rules", "cliffwatch.rules.yml"]);
    promtool(&["test", "rules", "cliffwatch.rules.test.yml"]);
    promtool(&["check", "config", "--syntax-only", "prometheus.yml"]);
    let (rules, tests) = (read("prometheus/cliffwatch.rules.yml"), read("prometheus/cliffwatch.rules.test.yml"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("- alertname: {alert}\n")), "no test lets {alert} fire");
    }
}

#[test]
fn alertmanager_takes_its_config_and_the_compose_file_names_what_is_there() {
    let compose = read("compose.yaml");
    for mount in compose.lines().filter_map(|line| line.trim().strip_prefix("- ./")).filter_map(|mount| mount.split(':').next()) {
        // The operator makes these two.
        let is_ours = !["config", "secrets"].iter().any(|own| mount.starts_with(own));
        assert!(!is_ours || packaging(mount).exists(), "compose.yaml mounts {mount}, which is not there");
    }
    let prometheus = read("prometheus/prometheus.yml");
    for target in prometheus.split("targets: [\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let (host, port) = target.split_once(':').expect("a port");
        assert!(compose.contains(&format!("\n  {host}:\n")), "prometheus.yml names {host}, which is no service of compose.yaml");
        assert!(compose.contains(&format!(":{port}:{port}\"]")), "{target}: compose.yaml has no port {port}");
    }
    if outside::lacks_program("amtool", "prometheus-alertmanager") {
        return;
    }
    let checked =
        Command::new(outside::program("amtool")).arg("check-config").arg(packaging("alertmanager/alertmanager.yml")).output();
    let checked = checked.expect("amtool runs");
    assert!(checked.status.success(), "{}{}", String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
}

fn read(path: &str) -> String {
    std::fs::read_to_string(packaging(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("grafana/dashboards/cliffwatch.json")).expect("the dashboard is JSON")
}

/// Each query of the dashboard with the panel that it belongs to.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        let targets = panel["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(!targets.is_empty() || panel["type"] == "row", "{title} asks nothing");
        queries.extend(targets.iter().map(|target| (title.to_owned(), target["expr"].as_str().expect("a query").to_owned())));
    }
    queries
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    let names = words.filter(|word| word.starts_with("cliffwatch_") || word.starts_with("process_"));
    names.map(|name| ["_bucket", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)).collect()
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_the_docs_name() {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operation.md")).expect("the docs");
    let queries: Vec<String> = queries(&dashboard()).into_iter().map(|(_, query)| query).collect();
    let rules = read("prometheus/cliffwatch.rules.yml");
    for name in metrics_in(&format!("{rules}\n{}", queries.join("\n"))) {
        assert!(docs.contains(&format!("| `{name}` |")), "{name} is in no row of docs/operation.md");
    }
}

#[test]
fn no_panel_of_the_dashboard_covers_another() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let place = |panel: &Value| ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a place"));
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().expect("an id")).collect();
    assert_eq!(ids.len(), panels.len(), "each has an id of its own");
    for (at, panel) in panels.iter().enumerate() {
        let [x, y, w, h] = place(panel);
        assert!(x + w <= 24, "{}", panel["title"]);
        for other in panels.iter().skip(at + 1) {
            let [ox, oy, ow, oh] = place(other);
            let is_apart = x + w <= ox || ox + ow <= x || y + h <= oy || oy + oh <= y;
            assert!(is_apart, "{} and {}", panel["title"], other["title"]);
        }
    }
}

/// A folder with what the daemon and Prometheus are told. The first messages wait for two seconds, so that Prometheus has seen that there
/// were none.
fn configure(folder: &Path, service: &str, daemon: &str, hook: &str) {
    let config = format!(
        "[source]\nbase_url = \"http://{service}\"\nlegacy_base_url = \"http://{service}\"\napi_key = \"none\"\n\
         [watch]\ntokens = [\"arbitrum\", \"aptos\", \"sui\", \"starknet\"]\ngroups = {{ desk = [\"arbitrum\", \"aptos\"], rest = [\"s*\"] }}\n\
         [rules]\npaths = [\"rules.toml\"]\n[http]\nlisten = \"{daemon}\"\n\
         [schedule]\nunlock_events = \"*/2 * * * * *\"\n[budget]\nmonthly_credits = 100000\n\
         [[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"{hook}\"\n\
         [route]\nreceivers = [\"ops\"]\ngroup_wait = \"2s\"\n"
    );
    std::fs::write(folder.join("cliffwatch.toml"), config).expect("written");
    let rule = "[[rule]]\nalert = \"Ahead\"\non = \"unlock\"\nwithin = [\"365d\"]\nlabels = { severity = \"critical\" }\n";
    std::fs::write(folder.join("rules.toml"), rule).expect("written");
    let rules = packaging("prometheus/cliffwatch.rules.yml");
    let scrape = format!(
        "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\nrule_files: [{}]\n\
         scrape_configs:\n- {{ job_name: cliffwatch, static_configs: [{{ targets: [\"{daemon}\"] }}] }}\n",
        rules.display()
    );
    std::fs::write(folder.join("prometheus.yml"), scrape).expect("written");
}

/// A webhook that accepts everything.
async fn hook() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let router = Router::new().route("/hook", post(|| async { "" }));
    tokio::spawn(serve::serve(listener, router, CancellationToken::new().cancelled_owned()));
    format!("http://{address}/hook")
}

fn cliffwatch(folder: &Path, arguments: &[&str]) -> Outside {
    Outside::start(Command::new(env!("CARGO_BIN_EXE_cliffwatch")).current_dir(folder).args(arguments).stderr(Stdio::null()))
}

/// What Prometheus answers, where it answers well.
async fn ask(client: &reqwest::Client, url: &str) -> Option<Value> {
    let text = client.get(url).send().await.ok()?.text().await.ok()?;
    serde_json::from_str(&text).ok().filter(|answer: &Value| answer["status"] == "success")
}

/// Numbers of the answer to a query.
fn numbers(answer: &Value) -> Vec<f64> {
    let series = answer["data"]["result"].as_array().map(Vec::as_slice).unwrap_or_default();
    series.iter().filter_map(|of| of["value"][1].as_str()?.parse::<f64>().ok()).filter(|number| !number.is_nan()).collect()
}

#[tokio::test]
async fn every_panel_of_the_dashboard_shows_something_of_a_daemon_that_was_scraped() {
    if outside::lacks_program("prometheus", "prometheus") {
        return;
    }
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _lost_race = rustls::crypto::ring::default_provider().install_default();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let addresses: [String; 3] = std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()));
    let [service, daemon, prometheus] = &addresses;
    configure(folder.path(), service, daemon, &hook().await);
    let import = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
        .args(["import", concat!(env!("CARGO_MANIFEST_DIR"), "/data"), "--db", "service.db"])
        .current_dir(folder.path())
        .output();
    assert!(import.expect("it runs").status.success());
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let _service = cliffwatch(folder.path(), &["serve", "--db", "service.db", "--listen", service]);
    let _prometheus = Outside::start(
        Command::new(outside::program("prometheus"))
            .current_dir(folder.path())
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series", "--log.level=error"])
            .arg(format!("--web.listen-address={prometheus}")),
    );
    let ready = format!("http://{prometheus}/-/ready");
    until("Prometheus is ready", || async { client.get(&ready).send().await.ok().filter(|answer| answer.status().is_success()) })
        .await;
    // It is ready some seconds before it scrapes. What the daemon counts from nothing is an increase only where nothing was seen before.
    let is_scraping = format!("http://{prometheus}/api/v1/query?query=up");
    until("Prometheus scrapes", || async { Some(numbers(&ask(&client, &is_scraping).await?)).filter(|up| !up.is_empty()) }).await;
    let _daemon = cliffwatch(folder.path(), &["run"]);

    for (panel, query) in queries(&dashboard()) {
        let query = query.replace("$instance", ".*").replace("$__rate_interval", "1m");
        assert!(!query.contains('$'), "{panel}: a variable is left in {query}");
        let url =
            reqwest::Url::parse_with_params(&format!("http://{prometheus}/api/v1/query"), [("query", &query)]).expect("a URL");
        let what = format!("the panel {panel:?} has something to show: {query}");
        let found =
            until(&what, || async { Some(numbers(&ask(&client, url.as_str()).await?)).filter(|found| !found.is_empty()) }).await;
        assert!(found.iter().all(|number| number.is_finite()), "{panel}: {found:?}");
    }
    let rules = format!("http://{prometheus}/api/v1/rules");
    let are_well = || async {
        let answer = ask(&client, &rules).await?;
        let rules = answer["data"]["groups"][0]["rules"].as_array()?.clone();
        rules.iter().all(|rule| rule["health"] == "ok").then_some(rules)
    };
    let rules = until("all rules were evaluated without an error", are_well).await;
    let firing: Vec<&Value> = rules.iter().filter(|rule| rule["state"] == "firing").map(|rule| &rule["name"]).collect();
    assert!(firing.is_empty(), "of a daemon that is well: {firing:?}");
}
