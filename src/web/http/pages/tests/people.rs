//! Logins with access keys, users whom a reverse proxy names, and the audit log of what all of them do.

use model::config::HttpSettings;
use model::{AccessKey, AccessRole, AlertState};
use testkit::samples;

use super::{Browser, OUTSIDE, dead_letter, location, set_cookie, store_alert};
use crate::http::access::key_hash;
use crate::http::tests::{LOCAL, TestServer, now, run, run_with_config};

async fn with_key(app: &TestServer, name: &str, role: AccessRole) {
    let key = AccessKey { name: name.to_owned(), role, created_at: now() };
    assert!(app.store.add_access_key(key, key_hash(&format!("secret-of-{name}"))).await.expect("added"));
}

/// Logs in with an access key.
async fn logged_in<'a>(app: &'a TestServer, name: &str, host: &str) -> Browser<'a> {
    let (status, response) = Browser::new(app, host).post("/login", &[("token", &format!("secret-of-{name}"))]).await;
    assert_eq!(status, 303, "{response}");
    Browser::new(app, &format!("{host}Cookie: {}\r\n", set_cookie(&response).expect("a cookie")))
}

#[tokio::test]
async fn person_logs_in_with_an_access_key_until_it_is_revoked() {
    // Also without a token in the config.
    for token in [None, Some("t0ken")] {
        let app = run(token, Some("0.0.0.0:9797")).await;
        assert_eq!(Browser::new(&app, OUTSIDE).post("/login", &[("token", "secret-of-ann")]).await.0, 403);
        with_key(&app, "ann", AccessRole::Act).await;
        let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
        let mut ann = logged_in(&app, "ann", OUTSIDE).await;
        let (status, page) = ann.get(&format!("/alerts/{id}")).await;
        assert!(status == 200 && page.contains("Log out") && page.contains("<bdi>ann</bdi>"), "{page}");
        assert!(page.contains("name=\"author\" value=\"ann\""), "the name is filled in: {page}");
        let (_, response) = ann.post(&format!("/alerts/{id}/acknowledge"), &[("author", "ann")]).await;
        assert_eq!(location(&response), format!("/alerts/{id}?done=acknowledged"));

        assert!(app.store.revoke_access_key("ann".into(), now()).await.expect("revoked"));
        assert_eq!(ann.get(&format!("/alerts/{id}")).await.0, 303, "the session ended");
        // Another key with this name does not revive it.
        let key = AccessKey { name: "ann".into(), role: AccessRole::Admin, created_at: now() };
        assert!(app.store.add_access_key(key, key_hash("another")).await.expect("added"));
        assert_eq!(ann.get(&format!("/alerts/{id}")).await.0, 303);
    }
}

#[tokio::test]
async fn role_of_the_access_key_limits_the_forms() {
    let app = run(Some("t0ken"), None).await;
    for role in AccessRole::ALL {
        with_key(&app, role.as_str(), role).await;
    }
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let acknowledge = format!("/alerts/{id}/acknowledge");
    let mut viewer = logged_in(&app, "view", LOCAL).await;
    let (_, page) = viewer.get(&format!("/alerts/{id}")).await;
    assert!(page.contains("Log out") && !page.contains(">Acknowledge<") && page.contains("/login?next="), "{page}");
    let (status, page) = viewer.post(&acknowledge, &[("author", "view")]).await;
    assert!(status == 403 && page.contains("has the role `view`; this request needs the role `act`"), "{page}");
    assert_eq!(app.store.acks().await.expect("read"), []);
    assert_eq!(viewer.get("/login").await.0, 200, "to log in with another key");
    assert_eq!(viewer.post("/logout", &[]).await.0, 303);
    assert_eq!(viewer.post("/logout", &[]).await.0, 401);

    let mut operator = logged_in(&app, "act", LOCAL).await;
    let (_, page) = operator.get(&format!("/alerts/{id}")).await;
    assert!(page.contains(">Acknowledge<"), "{page}");
    assert_eq!(operator.get("/login").await.0, 303, "nothing to log in for");
    assert_eq!(operator.post(&acknowledge, &[("author", "act")]).await.0, 303);
    let (status, page) = operator.post("/rules/new", &[("author", "act")]).await;
    assert!(status == 403 && page.contains("admin"), "{page}");
    let mut admin = logged_in(&app, "admin", LOCAL).await;
    admin.get("/rules/new").await;
    assert_eq!(admin.post("/rules/new", &[("author", "admin")]).await.0, 404, "the config does not allow to save rules");
}

/// Trusts the address of this machine as a proxy.
async fn run_behind_proxy(role: AccessRole) -> TestServer {
    run_with_config(Some("t0ken"), |config| {
        config.http = HttpSettings {
            user_header: Some("X-Forwarded-User".into()),
            trusted_proxies: vec!["127.0.0.0/8".into()],
            user_role: role,
            ..config.http.clone()
        };
    })
    .await
}

#[tokio::test]
async fn user_of_a_proxy_acts_without_a_login() {
    let app = run_behind_proxy(AccessRole::Act).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let headers = |user: &str| format!("{OUTSIDE}X-Forwarded-User: {user}\r\n");
    let (mut ann, mut bob) = (Browser::new(&app, &headers("ann")), Browser::new(&app, &headers("bob")));
    let (status, page) = ann.get(&format!("/alerts/{id}")).await;
    assert!(status == 200 && page.contains(">Acknowledge<") && page.contains("<bdi>ann</bdi>"), "{page}");
    assert!(!page.contains("Log out"), "the proxy logs users out: {page}");
    bob.get("/silences").await;
    assert_ne!(ann.csrf_token, bob.csrf_token, "each user has a token of their own");
    let acknowledge = format!("/alerts/{id}/acknowledge");
    let stolen = format!("csrf={}&author=bob", ann.csrf_token);
    assert_eq!(bob.post_raw(&acknowledge, "Sec-Fetch-Site: same-origin\r\n", &stolen).await.0, 403);
    assert_eq!(ann.post(&acknowledge, &[("author", "ann")]).await.0, 303);
    let api = format!("{}Content-Type: application/json\r\nContent-Length: 2\r\n", headers("ann"));
    assert_eq!(app.request_with("POST /api/v1/acks", &api, "{}").await.0, 401, "programs need a key");

    // A request of the proxy without a user is not one of the own machine, although it comes from loopback.
    let mut unnamed = Browser::new(&app, OUTSIDE);
    assert_eq!(unnamed.get("/").await.0, 303);
    assert_eq!(app.request("GET /api/v1/status", OUTSIDE).await.0, 401);
    let twice = format!("{}X-Forwarded-User: admin\r\n", headers("ann"));
    assert_eq!(Browser::new(&app, &twice).get("/").await.0, 303, "one of the names comes from the client");
}

#[tokio::test]
async fn role_of_proxy_users_is_configured() {
    let app = run_behind_proxy(AccessRole::View).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let mut ann = Browser::new(&app, &format!("{OUTSIDE}X-Forwarded-User: ann\r\n"));
    let (status, page) = ann.get(&format!("/alerts/{id}")).await;
    assert!(status == 200 && !page.contains(">Acknowledge<"), "{page}");
    let (status, page) = ann.post(&format!("/alerts/{id}/acknowledge"), &[("author", "ann")]).await;
    assert!(status == 403 && page.contains("The user"), "{page}");
}

#[tokio::test]
async fn header_of_an_untrusted_address_is_ignored() {
    let app = run_with_config(Some("t0ken"), |config| {
        config.http.user_header = Some("X-Forwarded-User".into());
        config.http.trusted_proxies = vec!["10.0.0.0/8".into()];
    })
    .await;
    let mut visitor = Browser::new(&app, &format!("{LOCAL}X-Forwarded-User: admin\r\n"));
    let (status, page) = visitor.get("/silences").await;
    assert!(status == 200 && !page.contains("<bdi>admin</bdi>"), "{page}");
    assert_eq!(visitor.post("/silences", &[("author", "admin")]).await.0, 401);
}

#[tokio::test]
async fn audit_page_lists_each_action_with_its_author() {
    let app = run(Some("t0ken"), None).await;
    with_key(&app, "ann", AccessRole::Admin).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let number = dead_letter(&app).await;
    let (_, page) = Browser::new(&app, LOCAL).get("/audit").await;
    assert!(page.contains("No actions yet."), "{page}");

    let mut shared = Browser::logged_in(&app).await;
    shared.get("/silences").await;
    shared.post(&format!("/alerts/{id}/acknowledge"), &[("author", "<b>eve"), ("comment", "known & planned")]).await;
    let mut ann = logged_in(&app, "ann", LOCAL).await;
    ann.get("/deliveries").await;
    ann.post(&format!("/deliveries/{number}/retry"), &[]).await;
    ann.post("/digests/desk/test", &[]).await;
    let bearer = format!("{LOCAL}Authorization: Bearer secret-of-ann\r\n");
    app.request("POST /-/reload", &bearer).await;
    let silence = r#"{"matchers": ["token=arbitrum"], "author": "ann", "duration": "1h", "comment": "x"}"#;
    let json = format!("{bearer}Content-Type: application/json\r\nContent-Length: {}\r\n", silence.len());
    assert_eq!(app.request_with("POST /api/v1/silences", &json, silence).await.0, 201);

    let (status, page) = ann.get("/audit").await;
    assert_eq!(status, 200);
    super::assert_valid_page("/audit", &page);
    let texts = ["&lt;b&gt;eve", "shared token", "acknowledged", "known &amp; planned", "retried the delivery", "access key"];
    for text in texts.into_iter().chain(["requested a test message to", "requested a reload", "created the silence", "5 actions"])
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    let (_, page) = ann.get("/audit?author=ann").await;
    assert!(page.contains("4 matching actions") && !page.contains("eve</bdi>"), "{page}");
    let (_, page) = ann.get("/audit?type=silence.created").await;
    assert!(page.contains("1 matching action ") && page.contains("created the silence"), "{page}");

    let (status, list) = app.request("GET /api/v1/audit?author=ann&type=delivery.retried", &bearer).await;
    let body = list.split("\r\n\r\n").nth(1).expect("a body");
    let rows: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(status, 200);
    let row = &rows[0];
    assert_eq!(
        (&row["author"], &row["via"], &row["type"], &row["subject"], &row["facts"]["receiver"]),
        (&"ann".into(), &"key".into(), &"delivery.retried".into(), &number.to_string().into(), &"ops".into())
    );
    let (status, problem) = app.request("GET /api/v1/audit?type=delivery.retry", &bearer).await;
    assert!(status == 400 && problem.contains("delivery.retried"), "{problem}");
}

#[tokio::test]
async fn alert_has_notes_and_an_assignee() {
    let app = run(Some("t0ken"), None).await;
    with_key(&app, "ann", AccessRole::Act).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let path = format!("/alerts/{id}");
    let mut ann = logged_in(&app, "ann", LOCAL).await;
    ann.get(&path).await;
    let (_, response) = ann.post(&format!("{path}/notes"), &[("author", "ann"), ("text", "asked the <b>team\nno answer")]).await;
    assert_eq!(location(&response), format!("{path}?done=noted"));
    let (_, response) = ann.post(&format!("{path}/notes"), &[("author", "ann"), ("text", "  ")]).await;
    assert_eq!(location(&response), format!("{path}?done=no-note"));
    let (_, response) = ann.post(&format!("{path}/assign"), &[("assignee", "bob & co")]).await;
    assert_eq!(location(&response), format!("{path}?done=assigned"));
    let (_, page) = ann.get(&path).await;
    super::assert_valid_page(&path, &page);
    assert!(
        page.contains("asked the &lt;b&gt;team") && page.contains("1 note<") && page.contains("value=\"bob &amp; co\""),
        "{page}"
    );
    let (_, list) = ann.get("/alerts?assignee=bob+%26+co").await;
    assert!(list.contains("bob &amp; co</bdi>") && list.contains("1 matching alert"), "{list}");
    let (_, list) = ann.get("/alerts?assignee=ann").await;
    assert!(list.contains("No alerts match these filters."), "{list}");

    let bearer = format!("{LOCAL}Authorization: Bearer secret-of-ann\r\nContent-Type: application/json\r\n");
    let post = async |path: &str, body: &str| {
        let headers = format!("{bearer}Content-Length: {}\r\n", body.len());
        app.request_with(&format!("POST /api/v1/alerts/{path}"), &headers, body).await
    };
    assert_eq!(post(&format!("{id}/notes"), r#"{"author": "bot", "text": "second"}"#).await.0, 201);
    assert_eq!(post(&format!("{id}/assign"), r#"{"author": "bot"}"#).await.0, 200);
    let (status, problem) = post("al_nothing/notes", r#"{"author": "bot", "text": "x"}"#).await;
    assert!(status == 404 && problem.contains("unknown_alert"), "{problem}");
    let (status, problem) = post(&format!("{id}/assign"), r#"{"assignee": "bob"}"#).await;
    assert!(status == 400 && problem.contains("`author` is missing"), "{problem}");
    let (_, story) = app.request(&format!("GET /api/v1/alerts/{id}"), &bearer).await;
    let story: serde_json::Value = serde_json::from_str(story.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!(story["notes"][1]["text"], "second");
    assert_eq!((&story["assignment"], &story["assignee"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let (_, page) = ann.get("/audit").await;
    assert!(page.contains("added a note to") && page.contains("to bob &amp; co") && page.contains("to no one"), "{page}");
}
