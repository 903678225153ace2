//! Tests the packaged Prometheus and Grafana files with a real Prometheus: the alerting rules pass their tests, and every query of the
//! dashboard returns data for a running daemon. Grafana itself is not needed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use axum::{Router, routing::post};
use cliffwatch::service as serve;
use serde_json::Value;
use testkit::free_port;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::receivers::outside::{self, ExternalProgram, until};

pub fn packaging(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(path)
}

fn promtool(arguments: &[&str]) {
    let output = Command::new(outside::program("promtool")).current_dir(packaging("prometheus")).args(arguments).output();
    let output = output.expect("promtool runs");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}

#[test]
fn alerting_rules_and_config_are_valid() {
    if outside::lacks_program("promtool", "prometheus") {
        return;
    }
    promtool(&["check", "rules", "cliffwatch.rules.yml"]);
    promtool(&["test", "rules", "cliffwatch.rules.test.yml"]);
    promtool(&["check", "config", "--syntax-only", "prometheus.yml"]);
    let (rules, tests) = (read("prometheus/cliffwatch.rules.yml"), read("prometheus/cliffwatch.rules.test.yml"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("- alertname: {alert}\n")), "{alert} has no test");
    }
}

#[test]
fn alertmanager_config_and_compose_file_are_valid() {
    let compose = read("compose.yaml");
    for mount in compose.lines().filter_map(|line| line.trim().strip_prefix("- ./")).filter_map(|mount| mount.split(':').next()) {
        // The operator creates these two.
        let is_ours = !["config", "secrets"].iter().any(|own| mount.starts_with(own));
        assert!(!is_ours || packaging(mount).exists(), "compose.yaml mounts {mount}, which does not exist");
    }
    let prometheus = read("prometheus/prometheus.yml");
    for target in prometheus.split("targets: [\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        let (host, port) = target.split_once(':').expect("a port");
        assert!(
            compose.contains(&format!("\n  {host}:\n")),
            "prometheus.yml names {host}, which is not a service in compose.yaml"
        );
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

#[test]
fn images_are_pinned_and_containers_are_confined() {
    let (compose, containerfile) = (read("compose.yaml"), read("Containerfile"));
    let images = compose.lines().filter_map(|line| line.trim().strip_prefix("image: "));
    let bases = containerfile.lines().filter_map(|line| line.strip_prefix("FROM ").or_else(|| line.strip_prefix("ARG BUILDER=")));
    let foreign: Vec<&str> = images.chain(bases).filter(|image| image.contains('/')).collect();
    assert_eq!(foreign.len(), 5, "{foreign:?}");
    for image in foreign {
        let digest = image.split_once("@sha256:").map(|(_, digest)| digest).unwrap_or_default();
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{image} is not pinned");
    }
    let services = compose.split_once("\nservices:\n").and_then(|(_, rest)| rest.split_once("\nsecrets:\n")).expect("services").0;
    let services: Vec<&str> = services.split("\n\n").filter(|service| !service.starts_with('#')).collect();
    assert_eq!(services.len(), 4);
    for service in services {
        for key in ["<<: *confined", "mem_limit: ", "pids_limit: ", "healthcheck:"] {
            assert!(service.contains(key), "{key} is missing: {service}");
        }
    }
    for key in ["init: true", "read_only: true", "cap_drop: [ALL]", "no-new-privileges:true"] {
        assert!(compose.contains(key), "{key}");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(packaging(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("grafana/dashboards/cliffwatch.json")).expect("the dashboard is JSON")
}

/// The panels of the dashboard with their queries.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().expect("a title");
        let targets = panel["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(!targets.is_empty() || panel["type"] == "row", "{title} has no query");
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
fn rules_and_dashboard_use_documented_metrics() {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operation.md")).expect("the docs");
    let queries: Vec<String> = queries(&dashboard()).into_iter().map(|(_, query)| query).collect();
    let rules = read("prometheus/cliffwatch.rules.yml");
    for name in metrics_in(&format!("{rules}\n{}", queries.join("\n"))) {
        assert!(docs.contains(&format!("| `{name}` |")), "{name} is not documented in docs/operation.md");
    }
}

#[test]
fn dashboard_panels_do_not_overlap() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let place = |panel: &Value| ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().expect("a place"));
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().expect("an id")).collect();
    assert_eq!(ids.len(), panels.len(), "panel ids are unique");
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

/// Writes the configs of the daemon and of Prometheus. The first messages wait for two seconds, so that Prometheus scrapes the zero counts
/// before.
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

/// Starts a webhook that accepts everything.
async fn hook() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let router = Router::new().route("/hook", post(|| async { "" }));
    tokio::spawn(serve::serve(listener, router, CancellationToken::new().cancelled_owned()));
    format!("http://{address}/hook")
}

pub fn cliffwatch(folder: &Path, arguments: &[&str]) -> ExternalProgram {
    ExternalProgram::start(
        Command::new(env!("CARGO_BIN_EXE_cliffwatch")).current_dir(folder).args(arguments).stderr(Stdio::null()),
    )
}

/// Sends a request to Prometheus. `None` unless it succeeds.
pub async fn query_prometheus(client: &reqwest::Client, url: &str) -> Option<Value> {
    let text = client.get(url).send().await.ok()?.text().await.ok()?;
    serde_json::from_str(&text).ok().filter(|response: &Value| response["status"] == "success")
}

/// The numbers in the response to a query.
fn numbers(response: &Value) -> Vec<f64> {
    let series = response["data"]["result"].as_array().map(Vec::as_slice).unwrap_or_default();
    series.iter().filter_map(|of| of["value"][1].as_str()?.parse::<f64>().ok()).filter(|number| !number.is_nan()).collect()
}

#[tokio::test]
async fn every_dashboard_panel_has_data_of_a_running_daemon() {
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
    let _prometheus = ExternalProgram::start(
        Command::new(outside::program("prometheus"))
            .current_dir(folder.path())
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=series", "--log.level=error"])
            .arg(format!("--web.listen-address={prometheus}")),
    );
    let ready = format!("http://{prometheus}/-/ready");
    until("Prometheus is ready", || async {
        client.get(&ready).send().await.ok().filter(|response| response.status().is_success())
    })
    .await;
    // Prometheus is ready some seconds before it scrapes. Start the daemon later, so that its first counts are increases from zero.
    let is_scraping = format!("http://{prometheus}/api/v1/query?query=up");
    until("Prometheus scrapes", || async {
        Some(numbers(&query_prometheus(&client, &is_scraping).await?)).filter(|up| !up.is_empty())
    })
    .await;
    let _daemon = cliffwatch(folder.path(), &["run"]);

    for (panel, query) in queries(&dashboard()) {
        let query = query.replace("$instance", ".*").replace("$__rate_interval", "1m");
        assert!(!query.contains('$'), "{panel}: unknown variable in {query}");
        let url =
            reqwest::Url::parse_with_params(&format!("http://{prometheus}/api/v1/query"), [("query", &query)]).expect("a URL");
        let what = format!("data for panel {panel:?}: {query}");
        let found = until(&what, || async {
            Some(numbers(&query_prometheus(&client, url.as_str()).await?)).filter(|found| !found.is_empty())
        })
        .await;
        assert!(found.iter().all(|number| number.is_finite()), "{panel}: {found:?}");
    }
    let rules = format!("http://{prometheus}/api/v1/rules");
    let are_well = || async {
        let response = query_prometheus(&client, &rules).await?;
        let rules = response["data"]["groups"][0]["rules"].as_array()?.clone();
        rules.iter().all(|rule| rule["health"] == "ok").then_some(rules)
    };
    let rules = until("all rules were evaluated without an error", are_well).await;
    let firing: Vec<&Value> = rules.iter().filter(|rule| rule["state"] == "firing").map(|rule| &rule["name"]).collect();
    assert!(firing.is_empty(), "alerts of a healthy daemon: {firing:?}");
}
