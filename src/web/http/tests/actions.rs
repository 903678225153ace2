//! Actions by the API, requests that are repeated, and access keys.

use serde_json::{Value, json};

use super::*;
use crate::http::access::key_hash;
use crate::http::api::operations::OPERATIONS;
use crate::http::pages::tests::run_with_data;
use model::{AccessKey, AccessRole, AlertFilter, DeliveryState, FeedUpdate, Hold, OutboxFilter, SilenceView};

/// A response: the status, the head, and the JSON body.
struct TestResponse {
    status: u16,
    head: String,
    body: Value,
}

impl TestResponse {
    fn code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }

    fn is_replayed(&self) -> bool {
        self.head.contains("idempotency-replayed: true\r\n")
    }
}

async fn send(app: &TestServer, line: &str, headers: &[(&str, &str)], body: &str) -> TestResponse {
    let mut head = format!("{LOCAL}Content-Length: {}\r\n", body.len());
    if !body.is_empty() {
        head.push_str("Content-Type: application/json\r\n");
    }
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    let (status, response) = app.request_with(line, &head, body).await;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    TestResponse { status, head: format!("{head}\r\n"), body: serde_json::from_str(body).unwrap_or_default() }
}

const TOKEN: (&str, &str) = ("Authorization", "Bearer secret-of-ops");

/// Serves data, with an access key for actions and no token.
async fn acting() -> (TestServer, String, i64) {
    let (app, alert, delivery) = run_with_data().await;
    with_key(&app, "ops", AccessRole::Admin).await;
    (app, alert, delivery)
}

async fn act(app: &TestServer, line: &str, body: &str) -> TestResponse {
    send(app, line, &[TOKEN], body).await
}

async fn delivery_state(app: &TestServer) -> DeliveryState {
    app.store.outbox(OutboxFilter { limit: 9, ..OutboxFilter::default() }).await.expect("read").remove(0).state
}

#[tokio::test]
async fn delivery_is_retried_and_dropped() {
    let (app, _, delivery) = acting().await;
    let retry = format!("POST /api/v1/outbox/{delivery}/retry");
    let drop = format!("POST /api/v1/outbox/{delivery}/drop");
    let done = act(&app, &retry, "").await;
    assert_eq!((done.status, &done.body), (200, &json!({"delivery": delivery, "state": "due"})));
    assert_eq!(delivery_state(&app).await, DeliveryState::Due);
    assert_eq!(act(&app, &drop, "").await.body["state"], "dropped");
    assert_eq!(delivery_state(&app).await, DeliveryState::Dropped);
    let again = act(&app, &drop, "").await;
    assert_eq!(again.code(), (409, "wrong_state"));
    assert!(again.body["detail"].as_str().is_some_and(|detail| detail.contains("`dropped`")), "{}", again.body);
    assert_eq!(act(&app, &retry, "").await.status, 200, "a dropped delivery can be sent after all");
    for (line, code) in [
        ("POST /api/v1/outbox/999/retry", (404, "unknown_delivery")),
        ("POST /api/v1/outbox/999/drop", (404, "unknown_delivery")),
        ("POST /api/v1/outbox/x/drop", (400, "invalid_parameter")),
        ("GET /api/v1/outbox/1/drop", (405, "method_not_allowed")),
        ("POST /api/v1/outbox/1/drop?force=true", (400, "unknown_parameter")),
    ] {
        assert_eq!(act(&app, line, "").await.code(), code, "{line}");
    }
    assert_eq!(send(&app, &retry, &[], "").await.code(), (401, "unauthorized"));
}

#[tokio::test]
async fn acknowledgement_is_removed() {
    let (app, alert, _) = acting().await;
    let path = format!("DELETE /api/v1/acks/{alert}");
    act(&app, "POST /api/v1/acks", &json!({"alert": alert, "author": "ann"}).to_string()).await;
    assert_eq!(app.store.acks().await.expect("read").len(), 1);
    assert_eq!(send(&app, &path, &[], "").await.code(), (401, "unauthorized"));
    assert_eq!(act(&app, &path, "").await.status, 204);
    assert!(app.store.acks().await.expect("read").is_empty());
    assert_eq!(act(&app, &path, "").await.code(), (404, "unknown_acknowledgement"));
}

#[tokio::test]
async fn held_response_is_accepted() {
    let (app, ..) = acting().await;
    let accept = "POST /api/v1/tokens/arbitrum/accept";
    assert_eq!(act(&app, accept, "").await.code(), (409, "nothing_held"));
    assert_eq!(act(&app, "POST /api/v1/tokens/arbitrm/accept", "").await.code(), (404, "unknown_token"));
    let hold = Some(Hold { since: now(), is_accepted: false });
    let id = FeedId::of(Endpoint::UnlockEvents, &"arbitrum".into());
    let state = FeedState { hold, ..FeedState::default() };
    let feeds = vec![FeedUpdate { id, state, put: Vec::new(), removed: Vec::new(), header: None }];
    app.store.commit(Commit { at: now(), feeds, ..Commit::default() }).await.expect("committed");
    let done = act(&app, accept, "").await;
    assert_eq!((done.status, &done.body), (200, &json!({"token": "arbitrum"})));
    let held = app.store.tokens(vec!["arbitrum".into()], Vec::new()).await.expect("read").remove(0);
    let holds: Vec<bool> = held.feeds.iter().filter_map(|(_, feed)| feed.hold).map(|hold| hold.is_accepted).collect();
    assert_eq!(holds, [true]);
}

/// Returns the silences that a test created.
async fn silences(app: &TestServer) -> Vec<SilenceView> {
    let mut silences = app.store.silences(None).await.expect("read");
    silences.retain(|silence| silence.author == "bea");
    silences.into_iter().map(|silence| SilenceView::of(silence, app.clock.now())).collect()
}

#[tokio::test]
async fn silence_is_updated_in_place() {
    let app = run(Some("secret-of-ops"), None).await;
    let body = |rest: Value| {
        let mut body = json!({"matchers": ["token=arbitrum"], "author": "bea", "comment": "known", "duration": "2h"});
        rest.as_object().into_iter().flatten().for_each(|(name, value)| body[name] = value.clone());
        body.to_string()
    };
    let made = act(&app, "POST /api/v1/silences", &body(json!({}))).await;
    let id = made.body["id"].as_str().expect("an id").to_owned();
    let line = format!("PUT /api/v1/silences/{id}");
    app.clock.set(now() + chrono::TimeDelta::minutes(30));
    let updated = act(&app, &line, &body(json!({"matchers": ["token=sui"], "comment": "longer", "duration": "8h"}))).await;
    assert_eq!((updated.status, &updated.body["id"]), (200, &json!(id)), "{}", updated.body);
    let stored = silences(&app).await;
    assert_eq!(stored.len(), 1);
    let silence = &stored[0].silence;
    assert_eq!((silence.comment.as_str(), silence.matchers_line().as_str()), ("longer", "token=\"sui\""));
    assert_eq!((silence.starts_at, silence.created_at), (now(), now()), "it has begun");
    assert_eq!(silence.ends_at, now() + chrono::TimeDelta::minutes(30 + 480));
    let preview = act(&app, &line, &body(json!({"dryRun": true, "comment": "not stored"}))).await;
    assert_eq!((preview.status, silences(&app).await), (200, stored.clone()));
    for (body, code, expected) in [
        (body(json!({"startsAt": "2026-12-01"})), (400, "invalid_body"), "began at"),
        (body(json!({"matchers": []})), (400, "invalid_body"), "at least one matcher"),
        (body(json!({"duration": "400d"})), (400, "invalid_body"), "at most"),
        ("{}".to_owned(), (400, "invalid_body"), "`matchers` is missing"),
    ] {
        let response = act(&app, &line, &body).await;
        assert_eq!(response.code(), code, "{}", response.body);
        assert!(response.body["detail"].as_str().is_some_and(|detail| detail.contains(expected)), "{}", response.body);
    }
    assert_eq!(silences(&app).await, stored);
    assert_eq!(act(&app, "PUT /api/v1/silences/si_none", &body(json!({}))).await.code(), (404, "unknown_silence"));
    assert_eq!(act(&app, &format!("DELETE /api/v1/silences/{id}"), "").await.status, 204);
    assert_eq!(act(&app, &line, &body(json!({}))).await.code(), (404, "unknown_silence"), "it has expired");
}

#[tokio::test]
async fn repeated_request_has_its_effect_once_and_gets_the_same_response() {
    let (app, alert, delivery) = acting().await;
    let silence = json!({"matchers": ["token=arbitrum"], "author": "bea", "comment": "known", "duration": "2h"}).to_string();
    let ack = json!({"alert": alert, "author": "ann"}).to_string();
    let (retry, drop) = (format!("POST /api/v1/outbox/{delivery}/retry"), format!("POST /api/v1/outbox/{delivery}/drop"));
    for (key, line, body) in [
        ("k1", "POST /api/v1/silences", silence.as_str()),
        ("k2", "POST /api/v1/acks", ack.as_str()),
        ("\"k3\"", retry.as_str(), ""),
        ("k4", drop.as_str(), ""),
    ] {
        let headers = [TOKEN, ("Idempotency-Key", key)];
        let first = send(&app, line, &headers, body).await;
        assert!((200..202).contains(&first.status) && !first.is_replayed(), "{line}: {}", first.body);
        let events = app.store.last_event().await.expect("read");
        // Also a request that would be invalid by now.
        app.clock.set(app.clock.now() + chrono::TimeDelta::hours(3));
        let again = send(&app, line, &headers, body).await;
        assert!(again.is_replayed(), "{line}: {}", again.head);
        assert_eq!((again.status, again.body), (first.status, first.body), "{line}");
        assert_eq!(app.store.last_event().await.expect("read"), events, "{line} had its effect twice");
        app.clock.set(now());
        for (line, body) in [(line.to_owned(), format!("{body} ")), (format!("{line}?x=1"), body.to_owned())] {
            let other = send(&app, &line, &headers, &body).await;
            // The query is checked first.
            let expected = if line.ends_with("?x=1") { (400, "unknown_parameter") } else { (422, "idempotency_key_reused") };
            assert_eq!(other.code(), expected, "{line}");
        }
    }
    assert_eq!(silences(&app).await.len(), 1);
    // Quotes are not part of the key.
    assert!(send(&app, &retry, &[TOKEN, ("Idempotency-Key", "k3")], "").await.is_replayed());
    app.clock.set(now() + chrono::TimeDelta::hours(25));
    let late = send(&app, &retry, &[TOKEN, ("Idempotency-Key", "k3")], "").await;
    assert!(late.status == 200 && !late.is_replayed(), "a key is known for a day");
}

#[tokio::test]
async fn repeated_replay_sends_messages_once() {
    let (app, ..) = acting().await;
    app.clock.set(now() + chrono::TimeDelta::hours(1));
    let replay = json!({"receiver": "ops", "since": now() - chrono::TimeDelta::days(9), "again": true}).to_string();
    let headers = [TOKEN, ("Idempotency-Key", "k")];
    let first = send(&app, "POST /api/v1/replays", &headers, &replay).await;
    assert_eq!((first.status, &first.body["deliveries"]), (201, &json!(1)), "{}", first.body);
    let events = app.store.last_event().await.expect("read");
    let again = send(&app, "POST /api/v1/replays", &headers, &replay).await;
    assert!(again.is_replayed(), "{}", again.head);
    assert_eq!((again.status, again.body), (first.status, first.body));
    assert_eq!(app.store.last_event().await.expect("read"), events, "it had its effect twice");
    let other = json!({"receiver": "ops", "since": now()}).to_string();
    let other = send(&app, "POST /api/v1/replays", &headers, &other).await;
    assert_eq!(other.code(), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn repeated_request_of_a_client_of_alertmanager_creates_one_silence() {
    let (app, ..) = acting().await;
    let mut body = json!({
        "matchers": [{"name": "token", "value": "arbitrum", "isRegex": false}], "createdBy": "bea", "comment": "known",
        "startsAt": now(), "endsAt": now() + chrono::TimeDelta::hours(2),
    });
    let post = async |key: &str, body: &Value| {
        send(&app, "POST /api/v2/silences", &[TOKEN, ("Idempotency-Key", key)], &body.to_string()).await
    };
    let first = post("k1", &body).await;
    let again = post("k1", &body).await;
    assert!(first.status == 200 && !first.is_replayed() && again.is_replayed(), "{} {}", first.body, again.head);
    assert_eq!((again.body, silences(&app).await.len()), (first.body.clone(), 1));
    (body["id"], body["comment"]) = (first.body["silenceID"].clone(), json!("longer"));
    let replaced = post("k2", &body).await;
    assert_eq!(post("k2", &body).await.body, replaced.body);
    let active = silences(&app).await.into_iter().filter(|view| view.silence.ends_at > now()).count();
    assert_eq!((silences(&app).await.len(), active), (2, 1), "it replaced the first one once");
    assert_eq!(post("k3", &body).await.status, 404, "that one is over");
}

#[tokio::test]
async fn every_post_request_takes_a_key() {
    let (app, ..) = acting().await;
    let document = send(&app, "GET /api/openapi.json", &[TOKEN], "").await.body;
    let paths = document["paths"].as_object().expect("paths");
    let posts: Vec<_> = paths.iter().filter(|(_, methods)| !methods["post"].is_null()).collect();
    assert!(posts.len() > 5, "{posts:?}");
    for (path, methods) in posts {
        assert!(methods["post"]["parameters"].to_string().contains("Idempotency-Key"), "{path}");
    }
}

#[tokio::test]
async fn request_that_fails_or_only_previews_uses_no_key() {
    let (app, ..) = acting().await;
    let key = [TOKEN, ("Idempotency-Key", "k")];
    let silence = |rest: &str| format!(r#"{{"matchers": ["token=arbitrum"], "author": "bea", "duration": "2h"{rest}}}"#);
    assert_eq!(send(&app, "POST /api/v1/silences", &key, &silence("")).await.code(), (400, "invalid_body"));
    assert_eq!(send(&app, "POST /api/v1/outbox/999/retry", &key, "").await.code(), (404, "unknown_delivery"));
    let preview = silence(r#", "comment": "c", "dryRun": true"#);
    assert_eq!(send(&app, "POST /api/v1/silences", &key, &preview).await.status, 200);
    assert_eq!(send(&app, "POST /-/reload", &key, "").await.status, 422);
    assert_eq!(send(&app, "POST /api/v1/silences", &key, &silence(r#", "comment": "c""#)).await.status, 201);
    for bad in ["", "\"\"", &"x".repeat(256), "ü"] {
        let headers = [TOKEN, ("Idempotency-Key", bad)];
        let response = send(&app, "POST /api/v1/silences", &headers, &silence(r#", "comment": "c""#)).await;
        assert_eq!(response.code(), (400, "invalid_request"), "{bad:?}");
    }
    let twice = [TOKEN, ("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    assert_eq!(send(&app, "POST /-/reload", &twice, "").await.code().0, 400);
    assert_eq!(silences(&app).await.len(), 1);
}

/// Requests with the same key at the same time: one has the effect, and all get its response.
#[tokio::test]
async fn simultaneous_requests_with_a_key_have_one_effect() {
    let (app, ..) = acting().await;
    let silence = json!({"matchers": ["token=arbitrum"], "author": "bea", "comment": "c", "duration": "2h"}).to_string();
    let headers = [TOKEN, ("Idempotency-Key", "k")];
    let send = || send(&app, "POST /api/v1/silences", &headers, &silence);
    let (a, b, c, d) = tokio::join!(send(), send(), send(), send());
    let responses = [a, b, c, d];
    assert!(responses.iter().all(|response| response.status == 201 && response.body == responses[0].body));
    assert_eq!(responses.iter().filter(|response| !response.is_replayed()).count(), 1);
    assert_eq!(silences(&app).await.len(), 1);
}

/// A key is valid after a restart, and keys of one client are not those of another.
#[tokio::test]
async fn keys_survive_a_restart_and_belong_to_a_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let silence = json!({"matchers": ["token=arbitrum"], "author": "bea", "comment": "c", "duration": "2h"}).to_string();
    let app = run_in(directory.path(), Some("secret-of-ops"), None).await;
    with_key(&app, "bot", AccessRole::Act).await;
    let headers = [TOKEN, ("Idempotency-Key", "k")];
    let first = send(&app, "POST /api/v1/silences", &headers, &silence).await;
    app.stop.cancel();
    app.store.close().await.expect("closed");
    let app = run_in(directory.path(), Some("secret-of-ops"), None).await;
    let again = send(&app, "POST /api/v1/silences", &headers, &silence).await;
    assert!(again.is_replayed() && again.body == first.body, "{}", again.body);
    let other = [("Authorization", "Bearer secret-of-bot"), ("Idempotency-Key", "k")];
    app.clock.set(now() + chrono::TimeDelta::minutes(1));
    let other = send(&app, "POST /api/v1/silences", &other, &silence).await;
    assert!(other.status == 201 && !other.is_replayed(), "{}", other.body);
    assert_eq!(silences(&app).await.len(), 2);
}

async fn with_key(app: &TestServer, name: &str, role: AccessRole) {
    let key = AccessKey { name: name.to_owned(), role, created_at: now() };
    let secret = format!("secret-of-{name}");
    assert!(app.store.add_access_key(key, key_hash(&secret)).await.expect("added"));
}

#[tokio::test]
async fn each_operation_needs_its_role() {
    // On another address, reading needs a key, too.
    let app = run(Some("secret-of-ops"), Some("10.0.0.5:9797")).await;
    for role in AccessRole::ALL {
        with_key(&app, role.as_str(), role).await;
    }
    let mut rejected = 0;
    for operation in OPERATIONS.iter().filter(|operation| operation.path != "/events") {
        for role in AccessRole::ALL {
            let line = format!("{} {}", operation.method.to_uppercase(), operation.path.replace("{id}", "1"));
            let secret = format!("Bearer secret-of-{role}");
            let response = send(&app, &line, &[("Authorization", &secret), ("Accept", "application/json")], "").await;
            let is_rejected = response.code() == (403, "insufficient_role");
            assert_eq!(is_rejected, role < operation.role(), "{line} with {role}: {} {}", response.status, response.body);
            assert_ne!(response.status, 401, "{line} with {role}");
            if is_rejected {
                rejected += 1;
                assert_eq!(response.body["requiredRole"], operation.role().as_str());
                let challenge = format!("error=\"insufficient_scope\", scope=\"{}\"\r\n", operation.role());
                assert!(response.head.contains(&challenge), "{}", response.head);
            }
        }
    }
    assert!(rejected > 8, "{rejected}");
    assert_eq!(app.store.alerts(AlertFilter { limit: 9, ..AlertFilter::default() }).await.expect("read").len(), 0);
}

#[tokio::test]
async fn revoked_and_unknown_keys_are_rejected_and_counted() {
    let app = run(None, Some("10.0.0.5:9797")).await;
    with_key(&app, "bot", AccessRole::View).await;
    let read = async |secret: &str| {
        let bearer = format!("Bearer {secret}");
        send(&app, "GET /api/v1/status", &[("Authorization", &bearer)], "").await
    };
    assert_eq!(read("secret-of-bot").await.status, 200, "without a token in the config");
    // `anyone:secret-of-bot`, as calendars send a password
    let basic = send(&app, "GET /calendar.ics", &[("Authorization", "Basic YW55b25lOnNlY3JldC1vZi1ib3Q=")], "").await;
    assert_eq!(basic.status, 200);
    assert!(
        !app.store
            .add_access_key(AccessKey { name: "bot".into(), role: AccessRole::Admin, created_at: now() }, key_hash("another"))
            .await
            .expect("read")
    );
    assert_eq!(read("another").await.code(), (401, "unauthorized"), "the name is taken");
    assert!(app.store.revoke_access_key("bot".into(), now()).await.expect("revoked"));
    let response = read("secret-of-bot").await;
    assert_eq!(response.code(), (401, "unauthorized"));
    let header = |response: &TestResponse, name: &str| {
        let line = response.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(|value| value.parse::<i64>().expect("a number"))
    };
    assert_eq!((header(&response, "ratelimit-limit"), header(&response, "ratelimit-remaining")), (Some(10), Some(8)));
    assert!(header(&response, "ratelimit-reset") > Some(0));
    for _ in 0..9 {
        read("wrong").await;
    }
    let blocked = read("wrong").await;
    assert_eq!(blocked.code(), (429, "too_many_failed_logins"));
    assert_eq!(
        (header(&blocked, "ratelimit-remaining"), header(&blocked, "ratelimit-reset")),
        (Some(0), header(&blocked, "retry-after"))
    );
}
