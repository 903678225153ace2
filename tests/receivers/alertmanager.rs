//! Alertmanager accepts, groups, and resolves our alerts, and its webhook has the same fields and fingerprints as ours.

use std::{
    collections::BTreeSet,
    process::Command,
    sync::{Arc, Mutex},
};

use axum::{Json, Router, extract::State, routing::post};
use cliffwatch::{notify::Outcome, service as serve};
use serde_json::Value;
use testkit::free_port;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::receivers::outside::{self, ExternalProgram, due, receivers, resolved, send, unlock, until};

type Bodies = Arc<Mutex<Vec<Value>>>;

/// Starts a webhook that records its messages.
async fn hook() -> (String, Bodies) {
    async fn take(State(bodies): State<Bodies>, Json(body): Json<Value>) {
        bodies.lock().unwrap().push(body);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let bodies = Bodies::default();
    let router = Router::new().route("/hook", post(take)).with_state(bodies.clone());
    tokio::spawn(serve::serve(listener, router, CancellationToken::new().cancelled_owned()));
    (format!("http://{address}/hook"), bodies)
}

/// Starts an Alertmanager that groups by rule and notifies `hook` after a second.
async fn alertmanager(folder: &std::path::Path, hook: &str) -> (ExternalProgram, String) {
    let config = format!(
        "route:\n  receiver: hook\n  group_by: [alertname]\n  group_wait: 1s\n  group_interval: 1s\n  repeat_interval: 1h\n\
         receivers:\n- name: hook\n  webhook_configs:\n  - url: {hook}\n    send_resolved: true\n"
    );
    let file = folder.join("alertmanager.yml");
    std::fs::write(&file, config).expect("written");
    let port = free_port();
    let child = ExternalProgram::start(
        Command::new(outside::program("prometheus-alertmanager"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .args(["--cluster.listen-address=", "--log.level=error"]),
    );
    let address = format!("http://127.0.0.1:{port}");
    until("Alertmanager is ready", || async { get(&format!("{address}/-/ready")).await.map(|_| ()) }).await;
    (child, address)
}

/// The response body. `None` unless the status is a success.
async fn get(url: &str) -> Option<String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _lost_race = rustls::crypto::ring::default_provider().install_default();
    }
    let response = reqwest::Client::builder().no_proxy().build().expect("a client").get(url).send().await.ok()?;
    if response.status().is_success() { response.text().await.ok() } else { None }
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

#[tokio::test]
async fn alertmanager_accepts_groups_and_resolves_our_alerts() {
    if outside::lacks_program("prometheus-alertmanager", "prometheus-alertmanager") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hook_url, notified) = hook().await;
    let (_child, address) = alertmanager(folder.path(), &hook_url).await;
    let ours = receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"alertmanager-api\"\nurl = \"{address}\"\n"
    ));

    // Two tokens, and a second unlock of one of them under the same rule: three alerts, in one group.
    let mut later = unlock("aptos", 40);
    later.alert = "al_another_unlock_of_aptos".into();
    let firing = vec![unlock("aptos", 7), unlock("arbitrum", 3), later];
    let (outcome, attempt) = send(&ours, &due("msg_1", firing.clone())).await;
    assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(200)), "{}", attempt.response);

    let group = until("the group is notified", || async {
        notified.lock().unwrap().iter().find(|body| body["alerts"].as_array().is_some_and(|alerts| alerts.len() == 3)).cloned()
    })
    .await;
    assert_eq!(group["status"], "firing");
    assert_eq!(group["commonLabels"]["alertname"], "BigCliffAhead");
    let listed: Value = serde_json::from_str(&get(&format!("{address}/api/v2/alerts")).await.expect("alerts")).expect("JSON");
    let listed = listed.as_array().expect("alerts").clone();
    assert_eq!(listed.len(), 3);
    for alert in &listed {
        assert_eq!(alert["status"]["state"], "active");
        assert!(alert["annotations"]["headline"].as_str().is_some_and(|line| line.contains("$33.15M (2.77% of market cap)")));
        // The end lies in the future, so that Alertmanager does not resolve it by itself.
        assert!(alert["endsAt"].as_str().expect("a time") > outside::now().to_rfc3339().as_str());
    }

    // Our webhooks in Alertmanager's format have the same fields and fingerprints.
    let (own_url, own) = hook().await;
    let as_webhook =
        receivers(&format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"alertmanager\"\nurl = \"{own_url}\"\n"));
    let (outcome, attempt) = send(&as_webhook, &due("msg_2", firing.clone())).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    let mine = own.lock().unwrap().first().cloned().expect("a body");
    assert_eq!(names(&mine), names(&group));
    assert_eq!(names(&mine["alerts"][0]), names(&group["alerts"][0]));
    let fingerprints = |body: &Value| -> BTreeSet<String> {
        body["alerts"].as_array().expect("alerts").iter().map(|alert| alert["fingerprint"].to_string()).collect()
    };
    assert_eq!(fingerprints(&mine), fingerprints(&group));
    assert_eq!(mine["version"], group["version"]);

    let (outcome, attempt) = send(&ours, &due("msg_3", firing.iter().map(resolved).collect())).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    let end = until("the resolution is notified", || async {
        notified.lock().unwrap().iter().find(|body| body["status"] == "resolved").cloned()
    })
    .await;
    assert_eq!(end["alerts"].as_array().map(Vec::len), Some(3), "{end}");
    let left = until("no alert fires", || async {
        let listed = get(&format!("{address}/api/v2/alerts?active=true")).await?;
        (listed.trim() == "[]").then_some(())
    })
    .await;
    assert_eq!(left, ());
}

#[tokio::test]
async fn level_change_replaces_the_alert_in_alertmanager() {
    if outside::lacks_program("prometheus-alertmanager", "prometheus-alertmanager") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hook_url, notified) = hook().await;
    let (_child, address) = alertmanager(folder.path(), &hook_url).await;
    let ours = receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"alertmanager-api\"\nurl = \"{address}\"\n"
    ));
    let active = async || -> Vec<String> {
        let listed = get(&format!("{address}/api/v2/alerts?active=true")).await.expect("alerts");
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let severity = |alert: &Value| alert["labels"]["severity"].as_str().expect("a severity").to_owned();
        listed.as_array().expect("alerts").iter().map(severity).collect()
    };
    let mut warning = unlock("aptos", 7);
    // Set an earlier start, because the alert with the former labels must end after its start.
    warning.body.starts_at -= chrono::TimeDelta::hours(1);
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![warning.clone()])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    assert_eq!(active().await, ["warning"]);
    until("the alert is notified", || async { (!notified.lock().unwrap().is_empty()).then_some(()) }).await;

    let mut critical = warning.clone();
    critical.body.reason = "level 1".into();
    critical.body.labels.insert("severity".into(), "critical".into());
    critical.body.former_labels = vec![warning.body.labels.clone()];
    let (outcome, attempt) = send(&ours, &due("msg_2", vec![critical.clone()])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    assert_eq!(active().await, ["critical"], "the warning is resolved");
    let seen = until("both alerts are notified", || async {
        let bodies = notified.lock().unwrap();
        let alerts = bodies.last()?["alerts"].as_array()?.clone();
        (alerts.len() == 2).then_some(alerts)
    })
    .await;
    for alert in seen {
        let is_on = alert["labels"]["severity"] == "critical";
        assert_eq!(alert["status"], if is_on { "firing" } else { "resolved" }, "{alert}");
    }
    let (outcome, attempt) = send(&ours, &due("msg_3", vec![resolved(&critical)])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    assert_eq!(active().await, [""; 0]);
}

#[tokio::test]
async fn alertmanager_accepts_hostile_names_and_late_messages() {
    if outside::lacks_program("prometheus-alertmanager", "prometheus-alertmanager") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hook_url, notified) = hook().await;
    let (_child, address) = alertmanager(folder.path(), &hook_url).await;
    let ours = receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"alertmanager-api\"\nurl = \"{address}\"\n"
    ));
    let nasty = "<script>\r\n\u{202e}\u{0}{{ 7*7 }}<!channel>".to_owned() + &"x".repeat(10_000);
    let mut notification = unlock("aptos", 7);
    notification.body.labels.insert("1 strange-nàme".into(), nasty.clone());
    notification.body.labels.insert("token".into(), nasty.clone());
    notification.body.annotations.insert("summary".into(), nasty);
    // A late delivery, after the date of the event, must still create an alert.
    notification.at -= chrono::TimeDelta::days(30);
    notification.body.starts_at = notification.at;
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![notification])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(200)), "{}", attempt.response);
    let body = until("the alert is notified", || async { notified.lock().unwrap().first().cloned() }).await;
    assert_eq!(body["status"], "firing");
    assert!(body["alerts"][0]["labels"]["_1_strange_n_me"].is_string(), "{body}");
}
