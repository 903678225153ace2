use serde_json::{Value, json};

use crate::http::tests::{LOCAL, TestServer, now, run};
use model::{Alert, Commit, Labels};

async fn get(app: &TestServer, path: &str) -> (u16, Value) {
    let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or_default())
}

async fn send(app: &TestServer, line: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers =
        format!("{LOCAL}Authorization: Bearer t0ken\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let (status, text) = app.request_with(line, &headers, &body).await;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// Two firing alerts with the same labels except for `team`, and a pending and a resolved one.
async fn with_alerts(app: &TestServer) -> Vec<Alert> {
    let alert = |subject: &str, team: &str| {
        let mut alert = testkit::rows::firing(&format!("al_{subject}"), now());
        alert.subject = subject.to_owned();
        alert.labels = Labels::from(
            [("alertname", "BigCliff"), ("severity", "warning"), ("token", "arbitrum"), ("team", team)]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        alert
    };
    let mut alerts = vec![alert("a", "desk"), alert("b", "risk"), alert("c", "desk"), alert("d", "desk")];
    alerts[2].state = model::AlertState::Pending;
    alerts[3].state = model::AlertState::Resolved;
    app.store.commit(Commit { at: now(), alerts: alerts.clone(), ..Commit::default() }).await.expect("committed");
    alerts
}

fn silence(more: &Value) -> Value {
    let mut silence = json!({
        "matchers": [{"name": "team", "value": "desk", "isRegex": false, "isEqual": true}],
        "startsAt": now(), "endsAt": now() + chrono::TimeDelta::hours(1), "createdBy": "ann", "comment": "known",
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        silence[name] = value.clone();
    }
    silence
}

#[tokio::test]
async fn only_firing_alerts_are_listed_with_their_silences() {
    let app = run(Some("t0ken"), None).await;
    let alerts = with_alerts(&app).await;
    let (status, listed) = get(&app, "/api/v2/alerts").await;
    assert_eq!((status, listed.as_array().map(Vec::len)), (200, Some(2)), "{listed:#}");
    let one = listed.as_array().expect("a list").iter().find(|alert| alert["labels"]["team"] == "desk").expect("it").clone();
    assert_eq!(one["annotations"]["alert_id"], alerts[0].id.as_str());
    assert_eq!((&one["status"]["state"], &one["endsAt"]), (&json!("active"), &json!(now() + chrono::TimeDelta::minutes(5))));
    assert_eq!(one["generatorURL"], format!("https://cliffwatch.example.com/alerts/{}", alerts[0].id));
    assert_eq!(one["fingerprint"].as_str().map(str::len), Some(16));

    let (status, made) = send(&app, "POST /api/v2/silences", &silence(&Value::Null)).await;
    assert_eq!(status, 200, "{made}");
    let id = &made["silenceID"];
    for (query, teams) in [
        ("", vec!["desk", "risk"]),
        ("?silenced=false", vec!["risk"]),
        ("?active=false", vec!["desk"]),
        ("?active=false&silenced=false", vec![]),
        ("?filter=team%3D%22risk%22", vec!["risk"]),
        ("?filter=team!%3D%22risk%22&filter=severity%3D~%22w.*%22", vec!["desk"]),
        ("?filter=colour!%3D%22red%22&inhibited=false&unprocessed=true", vec!["desk", "risk"]),
    ] {
        let (status, listed) = get(&app, &format!("/api/v2/alerts{query}")).await;
        assert_eq!(status, 200, "{query}: {listed}");
        let rows = listed.as_array().expect("a list");
        let mut found: Vec<&str> = rows.iter().filter_map(|alert| alert["labels"]["team"].as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, teams, "{query}");
        let silenced = rows.iter().find(|alert| alert["labels"]["team"] == "desk");
        assert!(silenced.is_none_or(|alert| alert["status"]["silencedBy"] == json!([id])), "{listed:#}");
    }
}

#[tokio::test]
async fn alert_without_a_group_is_alone_in_the_groups() {
    let app = run(Some("t0ken"), None).await;
    with_alerts(&app).await;
    let (status, groups) = get(&app, "/api/v2/alerts/groups").await;
    assert_eq!(status, 200, "{groups}");
    for group in groups.as_array().expect("groups") {
        assert_eq!(group["alerts"].as_array().map(Vec::len), Some(1), "{group:#}");
        assert_eq!(group["labels"], group["alerts"][0]["labels"]);
    }
}

#[tokio::test]
async fn silence_is_created_shown_replaced_and_expired() {
    let app = run(Some("t0ken"), None).await;
    let (_, made) = send(&app, "POST /api/v2/silences", &silence(&Value::Null)).await;
    let first = made["silenceID"].as_str().expect("an id").to_owned();
    let (status, shown) = get(&app, &format!("/api/v2/silence/{first}")).await;
    assert_eq!((status, &shown["status"]["state"], &shown["createdBy"]), (200, &json!("active"), &json!("ann")), "{shown}");
    assert_eq!(shown["matchers"], silence(&Value::Null)["matchers"]);
    let (_, made) = send(&app, "POST /api/v2/silences", &silence(&json!({"id": first, "comment": "longer"}))).await;
    let second = made["silenceID"].as_str().expect("an id").to_owned();
    assert_ne!(first, second);
    let state = async |id: &str| get(&app, &format!("/api/v2/silence/{id}")).await.1["status"]["state"].clone();
    assert_eq!((state(&first).await, state(&second).await), (json!("expired"), json!("active")));
    assert_eq!(send(&app, &format!("DELETE /api/v2/silence/{second}"), &Value::Null).await.0, 200);
    assert_eq!(state(&second).await, json!("expired"));
    for line in [format!("DELETE /api/v2/silence/{second}"), "DELETE /api/v2/silence/si_unknown".to_owned()] {
        assert_eq!(send(&app, &line, &Value::Null).await, (404, json!("no active or pending silence has this id")), "{line}");
    }
    let (_, listed) = get(&app, "/api/v2/silences?filter=team%3D%22desk%22").await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "expired ones are listed: {listed:#}");
    let (_, listed) = get(&app, "/api/v2/silences?filter=team%3D%22other%22").await;
    assert_eq!(listed, json!([]));
}

#[tokio::test]
async fn errors_are_texts_and_changes_need_the_token() {
    let app = run(Some("t0ken"), None).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (more, said) in [
        (json!({"matchers": []}), "at least one matcher"),
        (json!({"matchers": [{"name": "team", "value": "desk", "isEqual": false}]}), "suppress everything"),
        (json!({"matchers": [{"name": "team", "value": "(", "isRegex": true}]}), "invalid pattern"),
        (json!({"matchers": [{"name": "te am", "value": "desk"}]}), "not a label name"),
        (json!({"endsAt": now()}), "in the past"),
        (json!({"endsAt": now() + chrono::TimeDelta::days(400)}), "at most 366 days"),
        (json!({"endsAt": null}), "`endsAt` is missing"),
        (json!({"comment": ""}), "needs a comment"),
        (json!({"annotations": {}}), "unknown field `annotations`"),
    ] {
        let (status, error) = send(&app, "POST /api/v2/silences", &silence(&more)).await;
        assert!(status == 400 && text(&error).contains(said), "{more}: {status} {error}");
    }
    let (status, error) = send(&app, "POST /api/v2/silences", &silence(&json!({"id": "si_unknown"}))).await;
    assert!(status == 404 && text(&error).contains("no active or pending silence"), "{error}");
    for (path, status) in [("/api/v2/alerts?filter=x", 400), ("/api/v2/alerts?receiver=(", 400), ("/api/v2/nothing", 404)] {
        let (found, error) = get(&app, path).await;
        assert!(found == status && error.is_string(), "{path}: {error}");
    }
    let (status, error) = send(&app, "POST /api/v2/alerts", &json!([])).await;
    assert!(status == 405 && error.is_string(), "{error}");
    let body = silence(&Value::Null).to_string();
    let headers = format!("{LOCAL}Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    let (status, error) = app.request_with("POST /api/v2/silences", &headers, &body).await;
    assert!(status == 401 && error.ends_with("the value of `token` in [http], or an access key\""), "{error}");
}

#[tokio::test]
async fn status_and_receivers_have_the_fields_that_clients_read() {
    let app = run(None, None).await;
    let (_, status) = get(&app, "/api/v2/status").await;
    for field in ["/cluster/status", "/cluster/peers", "/versionInfo/version", "/config/original", "/uptime"] {
        assert!(status.pointer(field).is_some(), "{field}: {status}");
    }
    assert_eq!(get(&app, "/api/v2/receivers").await.1, json!([{"name": "ops"}]));
}
