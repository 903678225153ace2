//! Alertmanager takes, groups and resolves what we push, and its own webhook has the shape and the fingerprints of ours.

use std::{
    collections::BTreeSet,
    process::Command,
    sync::{Arc, Mutex},
};

use axum::{Json, Router, extract::State, routing::post};
use cliffwatch::{notify::Outcome, service as serve};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    outside::{self, Outside, due, receivers, resolved, send, unlock, until},
    ports::free_port,
};

type Bodies = Arc<Mutex<Vec<Value>>>;

/// A webhook that keeps what it gets.
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

/// An Alertmanager that tells `hook` of groups by rule after a second.
async fn alertmanager(folder: &std::path::Path, hook: &str) -> (Outside, String) {
    let config = format!(
        "route:\n  receiver: hook\n  group_by: [alertname]\n  group_wait: 1s\n  group_interval: 1s\n  repeat_interval: 1h\n\
         receivers:\n- name: hook\n  webhook_configs:\n  - url: {hook}\n    send_resolved: true\n"
    );
    let file = folder.join("alertmanager.yml");
    std::fs::write(&file, config).expect("written");
    let port = free_port();
    let child = Outside::start(
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

/// The body of an answer with status 200.
async fn get(url: &str) -> Option<String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _lost_race = rustls::crypto::ring::default_provider().install_default();
    }
    let answer = reqwest::Client::builder().no_proxy().build().expect("a client").get(url).send().await.ok()?;
    if answer.status().is_success() { answer.text().await.ok() } else { None }
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

#[tokio::test]
async fn alertmanager_takes_groups_and_resolves_what_is_pushed() {
    if outside::lacks_program("prometheus-alertmanager", "prometheus-alertmanager") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hook_url, told) = hook().await;
    let (_child, address) = alertmanager(folder.path(), &hook_url).await;
    let ours = receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"alertmanager-api\"\nurl = \"{address}\"\n"
    ));

    // Two tokens, and a second unlock of one of them under the same rule: three alerts, in one group.
    let mut later = unlock("aptos", 40);
    later.alert = "al_another_unlock_of_aptos".into();
    let firing = vec![unlock("aptos", 7), unlock("arbitrum", 3), later];
    let (outcome, attempt) = send(&ours, &due("msg_1", firing.clone())).await;
    assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(200)), "{}", attempt.answer);

    let group = until("the group is told", || async {
        told.lock().unwrap().iter().find(|body| body["alerts"].as_array().is_some_and(|alerts| alerts.len() == 3)).cloned()
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
        // Alive until after its date, so that it does not end by itself before we say so.
        assert!(alert["endsAt"].as_str().expect("a time") > outside::now().to_rfc3339().as_str());
    }

    // What we send to webhooks in its format has its shape, and knows each alert by the same fingerprint.
    let (own_url, own) = hook().await;
    let as_webhook =
        receivers(&format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"alertmanager\"\nurl = \"{own_url}\"\n"));
    let (outcome, attempt) = send(&as_webhook, &due("msg_2", firing.clone())).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    let mine = own.lock().unwrap().first().cloned().expect("a body");
    assert_eq!(names(&mine), names(&group));
    assert_eq!(names(&mine["alerts"][0]), names(&group["alerts"][0]));
    let fingerprints = |body: &Value| -> BTreeSet<String> {
        body["alerts"].as_array().expect("alerts").iter().map(|alert| alert["fingerprint"].to_string()).collect()
    };
    assert_eq!(fingerprints(&mine), fingerprints(&group));
    assert_eq!(mine["version"], group["version"]);

    let (outcome, attempt) = send(&ours, &due("msg_3", firing.iter().map(resolved).collect())).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    let end =
        until("the end is told", || async { told.lock().unwrap().iter().find(|body| body["status"] == "resolved").cloned() })
            .await;
    assert_eq!(end["alerts"].as_array().map(Vec::len), Some(3), "{end}");
    let left = until("nothing fires any more", || async {
        let listed = get(&format!("{address}/api/v2/alerts?active=true")).await?;
        (listed.trim() == "[]").then_some(())
    })
    .await;
    assert_eq!(left, ());
}

#[tokio::test]
async fn an_alert_that_rises_a_level_is_one_alert_there_too() {
    if outside::lacks_program("prometheus-alertmanager", "prometheus-alertmanager") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hook_url, told) = hook().await;
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
    // It began a while ago: what was called otherwise before ends after it began.
    warning.body.starts_at -= chrono::TimeDelta::hours(1);
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![warning.clone()])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    assert_eq!(active().await, ["warning"]);
    until("it is told", || async { (!told.lock().unwrap().is_empty()).then_some(()) }).await;

    let mut critical = warning.clone();
    critical.body.reason = "level 1".into();
    critical.body.labels.insert("severity".into(), "critical".into());
    critical.body.former_labels = vec![warning.body.labels.clone()];
    let (outcome, attempt) = send(&ours, &due("msg_2", vec![critical.clone()])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    assert_eq!(active().await, ["critical"], "the warning is over there");
    let seen = until("both are told", || async {
        let bodies = told.lock().unwrap();
        let alerts = bodies.last()?["alerts"].as_array()?.clone();
        (alerts.len() == 2).then_some(alerts)
    })
    .await;
    for alert in seen {
        let is_on = alert["labels"]["severity"] == "critical";
        assert_eq!(alert["status"], if is_on { "firing" } else { "resolved" }, "{alert}");
    }
    let (outcome, attempt) = send(&ours, &due("msg_3", vec![resolved(&critical)])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    assert_eq!(active().await, [""; 0]);
}

#[tokio::test]
async fn alertmanager_takes_a_hostile_name_and_a_message_that_comes_late() {
    if outside::lacks_program("prometheus-alertmanager", "prometheus-alertmanager") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (hook_url, told) = hook().await;
    let (_child, address) = alertmanager(folder.path(), &hook_url).await;
    let ours = receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"alertmanager-api\"\nurl = \"{address}\"\n"
    ));
    let nasty = "<script>\r\n\u{202e}\u{0}{{ 7*7 }}<!channel>".to_owned() + &"x".repeat(10_000);
    let mut notice = unlock("aptos", 7);
    notice.body.labels.insert("1 strange-nàme".into(), nasty.clone());
    notice.body.labels.insert("token".into(), nasty.clone());
    notice.body.annotations.insert("summary".into(), nasty);
    // Decided long ago, its date gone meanwhile: it must still be an alert when it arrives.
    notice.at -= chrono::TimeDelta::days(30);
    notice.body.starts_at = notice.at;
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![notice])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(200)), "{}", attempt.answer);
    let body = until("it is told", || async { told.lock().unwrap().first().cloned() }).await;
    assert_eq!(body["status"], "firing");
    assert!(body["alerts"][0]["labels"]["_1_strange_n_me"].is_string(), "{body}");
}
