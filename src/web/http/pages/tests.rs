//! End-to-end tests of the pages and their forms, with requests as a browser sends them.

mod bulk;
mod calendar;
mod group;
mod new_rule;
mod people;
mod sessions;
mod supply;
mod texts;

use model::{
    Alert, AlertState, Attempt, AttemptOutcome, AttemptRecord, Commit, DeliveryState, Interval, Notification, Precision,
    Resolution, RuleId, TokenId,
};
use testkit::samples;

use crate::http::tests::{LOCAL, TestServer, now, run, with_unlocks};

/// Builds the alert of a notification.
fn alert_of(notification: &Notification, state: AlertState) -> Alert {
    let body = &notification.body;
    Alert {
        id: notification.alert.clone(),
        rule: RuleId::from(body.rule.as_str()),
        name: body.rule.clone(),
        subject: body.event.clone().unwrap_or_default(),
        episode: 1,
        state,
        resolution: (state == AlertState::Resolved).then_some(Resolution::Passed),
        token: body.token.as_ref().map(|token| TokenId::from(token.id.as_str())),
        resource: body.resource,
        key: None,
        level: None,
        labels: body.labels.clone(),
        former_labels: Vec::new(),
        annotations: body.annotations.clone(),
        notified: Vec::new(),
        leads: vec!["7d".into()],
        members: Vec::new(),
        active_at: now(),
        starts_at: Some(now()),
        ends_at: (state == AlertState::Resolved).then(now),
        false_since: None,
        due: Interval::of(now(), Precision::Day),
        recheck_at: None,
        text_at: None,
        updated_at: now(),
    }
}

/// Stores an alert with a notification to `ops`. Returns the id of the alert.
async fn store_alert(app: &TestServer, notification: Notification, state: AlertState) -> String {
    let alert = alert_of(&notification, state);
    let id = alert.id.to_string();
    let notification = Notification { at: now(), ..notification };
    let commit = Commit { at: now(), alerts: vec![alert], notifications: vec![notification], ..Commit::default() };
    app.store.commit(commit).await.expect("committed");
    id
}

/// Marks the first delivery as dead. Returns its id.
async fn dead_letter(app: &TestServer) -> i64 {
    let due = app.store.due("ops".into(), now(), 9).await.expect("read").remove(0);
    let attempt = Attempt {
        at: now(),
        took_ms: 12,
        outcome: AttemptOutcome::Refused,
        status: Some(400),
        response: "no <b>such</b> channel".into(),
    };
    let record = AttemptRecord {
        delivery: due.id,
        attempt,
        state: DeliveryState::Dead,
        next_attempt_at: None,
        alerts: Vec::new(),
        notifications: Vec::new(),
    };
    app.store.record_attempts(vec![record]).await.expect("recorded");
    due.id.0
}

/// Starts a server with an acknowledged alert in a dead letter, a change, tokens, and a silence. Returns the ids of the alert and of the
/// delivery.
pub(in crate::http) async fn run_with_data() -> (TestServer, String, i64) {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut notification = samples::unlock();
    notification.body.rule = "BigCliff".into();
    notification.body.event = Some("unlock/arbitrum/2026-10-16T13:00:00Z".into());
    let change = samples::moved().body.change.expect("a change");
    let change = model::Change { token: Some("arbitrum".into()), ..change };
    app.store.commit(Commit { at: now(), changes: vec![change], ..Commit::default() }).await.expect("committed");
    let id = store_alert(&app, notification, AlertState::Firing).await;
    let number = dead_letter(&app).await;
    let acting = app.store.acting_as(model::Actor { name: "ann".into(), via: model::ActorSource::Command });
    acting.acknowledge(id.clone(), "ann".into(), "known".into(), now()).await.expect("done");
    let note = model::note::NewNote { alert: id.as_str().into(), author: "ann".into(), text: "asked the team".into() };
    acting.perform(model::UserAction::AddNote(note), now()).await.expect("done");
    let request = model::SilenceRequest {
        matchers: model::read_matchers(["token=arbitrum"]).expect("a matcher"),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: None,
        ends_at: now() + chrono::TimeDelta::hours(1),
    };
    app.store.put_silence(request.into_silence(now()).expect("granted")).await.expect("made");
    (app, id, number)
}

const TOKEN: &str = "t0ken";

/// A browser that sends the CSRF token of the last loaded page.
struct Browser<'a> {
    app: &'a TestServer,
    headers: String,
    csrf_token: String,
}

impl<'a> Browser<'a> {
    fn new(app: &'a TestServer, headers: &str) -> Self {
        let accept = "Accept: text/html,application/xhtml+xml;q=0.9\r\n";
        Self { app, headers: format!("{headers}{accept}"), csrf_token: String::new() }
    }

    /// Logs in on loopback.
    async fn logged_in(app: &'a TestServer) -> Self {
        let (_, response) = Browser::new(app, LOCAL).post("/login", &[("token", TOKEN)]).await;
        Self::new(app, &format!("{LOCAL}Cookie: {}\r\n", set_cookie(&response).expect("a cookie")))
    }

    /// Loads a page and stores the CSRF token of its forms.
    async fn get(&mut self, path: &str) -> (u16, String) {
        let response = self.app.request(&format!("GET {path}"), &self.headers).await;
        let token = response.1.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        if let Some(token) = token {
            self.csrf_token = token.to_owned();
        }
        response
    }

    /// Posts a form with the CSRF token.
    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
        let token = [("csrf", self.csrf_token.as_str())];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(token.iter().chain(fields)).finish();
        self.post_raw(path, "Sec-Fetch-Site: same-origin\r\n", &body).await
    }

    async fn post_raw(&self, path: &str, more: &str, body: &str) -> (u16, String) {
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let headers = format!("{}{form}{more}Content-Length: {}\r\n", self.headers, body.len());
        self.app.request_with(&format!("POST {path}"), &headers, body).await
    }
}

fn location(response: &str) -> &str {
    response.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_default().trim()
}

/// Checks that a page is rendered and has no inline scripts, inline styles, or bidi characters.
fn assert_valid_page(path: &str, page: &str) {
    assert!(page.contains("<!doctype html>") && !page.contains("cannot be rendered"), "{path}: {page}");
    for bad in [" style=\"", "<style", "onclick=", "<script>", "javascript:", "\u{202e}"] {
        assert!(!page.contains(bad), "{path} has {bad:?}: {page}");
    }
}

/// Returns the pair of name and value that a response sets as a cookie.
fn set_cookie(response: &str) -> Option<String> {
    let cookie = response.lines().find_map(|line| line.strip_prefix("set-cookie: "))?;
    cookie.split(';').next().map(str::to_owned)
}

const OUTSIDE: &str = "Host: cliffwatch.example.com\r\n";

#[tokio::test]
async fn login_action_and_logout_off_loopback() {
    let app = run(Some("right-token"), Some("0.0.0.0:9797")).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let path = format!("/alerts/{id}");
    let mut browser = Browser::new(&app, OUTSIDE);
    let (status, response) = browser.get(&path).await;
    assert_eq!((status, location(&response)), (303, &*format!("/login?next=%2Falerts%2F{id}")));
    let (status, page) = browser.get(&format!("/login?next=%2Falerts%2F{id}")).await;
    assert!(status == 200 && page.contains("type=\"password\"") && !page.contains("/deliveries"), "{page}");
    assert_valid_page("/login", &page);

    let (status, page) = browser.post("/login", &[("token", "wrong"), ("next", &path)]).await;
    assert!(status == 403 && page.contains("Wrong access key.") && !page.contains("set-cookie"), "{page}");
    assert!(!page.contains("wrong\""), "the page does not show the token");
    let cross_site = browser.post_raw("/login", "Origin: https://evil.example\r\n", "token=right-token").await;
    assert_eq!(cross_site.0, 403);
    let (status, response) = browser.post("/login", &[("token", " right-token\n"), ("next", &path)]).await;
    assert_eq!((status, location(&response)), (303, &*path));
    let cookie = response.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie").trim().to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let pair = cookie.split(';').next().expect("a pair");
    let mut inside = Browser::new(&app, &format!("{OUTSIDE}Cookie: other=1; {pair}\r\n"));
    let (status, page) = inside.get(&path).await;
    assert!(status == 200 && page.contains("$33.15M") && page.contains("Log out") && !inside.csrf_token.is_empty(), "{page}");
    assert_eq!(app.request("GET /api/v1/alerts", &inside.headers).await.0, 200, "the session reads the API too");
    let ack = format!("{path}/acknowledge");
    assert_eq!(browser.post(&ack, &[("author", "ann")]).await.0, 401, "without a session");
    assert_eq!(inside.post_raw(&ack, "", "author=ann").await.0, 403, "without the CSRF token");
    let body = format!("csrf={}&author=ann", inside.csrf_token);
    assert_eq!(inside.post_raw(&ack, "Sec-Fetch-Site: cross-site\r\n", &body).await.0, 403);
    assert_eq!(inside.post_raw(&ack, "Origin: null\r\n", &body).await.0, 403);
    assert_eq!(app.store.acks().await.expect("read"), [], "nothing changed");
    assert_eq!(location(&inside.post(&ack, &[("author", "ann")]).await.1), format!("{path}?done=acknowledged"));
    assert_eq!(app.store.acks().await.expect("read").len(), 1);
    let json = format!("{}Content-Type: application/json\r\nContent-Length: 2\r\n", inside.headers);
    assert_eq!(app.request_with("POST /api/v1/acks", &json, "{}").await.0, 401, "API requests need the bearer token");

    let (status, response) = inside.post("/logout", &[]).await;
    assert!(status == 303 && response.contains("Max-Age=0"), "{response}");
    assert_eq!(inside.get(&path).await.0, 303, "the server deleted the session");
}

#[tokio::test]
async fn link_from_another_site_reloads_with_the_session() {
    let app = run(Some("t"), Some("0.0.0.0:9797")).await;
    let cross = format!("{OUTSIDE}Accept: text/html\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n");
    let (status, page) = app.request("GET /alerts/al_%22x?y=1&z=2", &cross).await;
    assert!(status == 200 && page.replace("&#x2f;", "/").contains("url=/alerts/al_%22x?y=1&amp;z=2\""), "{page}");
}

#[tokio::test]
async fn failed_logins_also_block_bearer_tokens() {
    let app = run(Some("right-token"), Some("0.0.0.0:9797")).await;
    let browser = Browser::new(&app, OUTSIDE);
    for _ in 0..11 {
        assert_eq!(browser.post("/login", &[("token", "wrong")]).await.0, 403);
    }
    let (status, page) = browser.post("/login", &[("token", "right-token")]).await;
    assert!(status == 429 && page.contains("retry-after: 1\r\n") && page.contains("Try again in 1 s"), "{page}");
    let bearer = |token: &str| format!("{OUTSIDE}Authorization: Bearer {token}\r\n");
    assert_eq!(app.request("GET /api/v1/status", &bearer("right-token")).await.0, 429);
    assert_eq!(app.request("GET /-/healthy", OUTSIDE).await.0, 200);
}

#[tokio::test]
async fn without_a_token_loopback_is_read_only() {
    let app = run(None, None).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    dead_letter(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (status, page) = browser.get(&format!("/alerts/{id}")).await;
    assert!(status == 200 && !page.contains("Log out") && !page.contains(">Acknowledge<"), "{page}");
    assert!(
        page.contains(&format!("To acknowledge or silence this alert, <a href=\"/login?next=%2Falerts%2F{id}\">log in</a>")),
        "{page}"
    );
    browser.get("/silences").await;
    for (path, field) in
        [(format!("/alerts/{id}/acknowledge"), "author"), ("/silences".into(), "author"), ("/deliveries/1/drop".into(), "from")]
    {
        let (status, page) = browser.post(&path, &[(field, "ann")]).await;
        assert!(status == 401 && page.contains("Changes need a token"), "{path}: {page}");
    }
    assert_eq!(app.store.acks().await.expect("read"), []);
    for path in ["/deliveries", "/deliveries?state=dead", "/deliveries/1", "/silences", "/"] {
        let (_, page) = browser.get(path).await;
        assert!(page.contains("href=\"/login?next="), "{path} has no login link: {page}");
        assert!(!page.contains("Retry now<") && !page.contains(">Drop<") && !page.contains(">Silence<"), "{path}: {page}");
    }
    let (status, page) = browser.get("/login").await;
    assert!(status == 200 && page.contains("token_file = \"http-token\""), "{page}");
    assert_valid_page("/login", &page);
}

#[tokio::test]
async fn preview_forms_on_loopback_need_only_the_csrf_token() {
    let app = run(None, None).await;
    store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let mut browser = Browser::new(&app, LOCAL);
    browser.get("/silences").await;
    let matchers = "matchers=token%3D%22arbitrum%22&duration=4h";
    assert_eq!(browser.post_raw("/silences/preview", "", matchers).await.0, 403, "without the CSRF token");
    let body = format!("csrf={}&{matchers}", browser.csrf_token);
    assert_eq!(browser.post_raw("/silences/preview", "Origin: http://evil.example\r\n", &body).await.0, 403);
    assert_eq!(
        browser.post_raw("/silences/preview", "Origin: http://localhost:8080\r\n", &body).await.0,
        403,
        "another port is another origin"
    );
    let (status, page) = browser.post_raw("/silences/preview", "Origin: http://localhost:9797\r\n", &body).await;
    assert!(status == 200 && page.contains("it suppresses 1 of 1 open alert"), "{page}");
    let other = run(None, None).await;
    assert_eq!(
        Browser::new(&other, LOCAL).post_raw("/silences/preview", "", &body).await.0,
        403,
        "the CSRF token of another process"
    );
}

#[tokio::test]
async fn with_a_token_loopback_needs_a_login_for_changes() {
    let app = run(Some(TOKEN), None).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let mut visitor = Browser::new(&app, LOCAL);
    let (status, page) = visitor.get(&format!("/alerts/{id}")).await;
    assert!(status == 200 && page.contains("href=\"/login?next="), "{page}");
    visitor.get("/silences").await;
    let ack = format!("/alerts/{id}/acknowledge");
    assert_eq!(visitor.post(&ack, &[("author", "ann")]).await.0, 401);
    let mut browser = Browser::logged_in(&app).await;
    let (_, page) = browser.get(&format!("/alerts/{id}")).await;
    assert!(page.contains(">Acknowledge<") && page.contains("Log out"), "{page}");
    assert_eq!(browser.post(&ack, &[("author", "ann")]).await.0, 303);
}

#[tokio::test]
async fn firing_resolved_and_event_alerts_have_a_page() {
    let app = run(Some(TOKEN), None).await;
    let mut browser = Browser::logged_in(&app).await;
    let firing = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let event = store_alert(&app, samples::moved(), AlertState::Event).await;
    let (status, page) = browser.get(&format!("/alerts/{firing}")).await;
    assert!(status == 200 && page.contains(">Acknowledge<") && page.contains("due for ops"), "{page}");
    assert!(page.contains("is no longer active") && page.contains("alertname=&quot;BigCliffAhead&quot;"), "{page}");
    assert_valid_page("a firing alert", &page);
    let (status, page) = browser.get(&format!("/alerts/{event}")).await;
    assert!(status == 200 && page.contains("cannot be acknowledged") && page.contains("Occurred"), "{page}");
    store_alert(&app, samples::resolved(), AlertState::Resolved).await;
    let (status, page) = browser.get(&format!("/alerts/{firing}")).await;
    assert!(status == 200 && page.contains("passed") && page.contains("<dt>Resolved</dt>"), "{page}");
    let (status, page) = browser.get("/alerts/al_unknown").await;
    assert!(status == 404 && page.contains("deleted after 730 days"), "{page}");
    let (status, response) = app.request(&format!("GET /api/v1/alerts/{event}"), LOCAL).await;
    let json: serde_json::Value = serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap_or_default()).unwrap_or_default();
    assert_eq!(
        (status, json["state"].as_str(), json["messages"][0]["state"].as_str()),
        (200, Some("event"), Some("due")),
        "{json}"
    );
    assert_eq!(app.request("GET /api/v1/alerts/al_unknown", LOCAL).await.0, 404);
}

#[tokio::test]
async fn alert_page_explains_each_clause_of_the_rule() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut notification = samples::unlock();
    notification.body.rule = "BigCliff".into();
    notification.body.event = Some("unlock/arbitrum/2026-10-16T13:00:00Z".into());
    let id = store_alert(&app, notification, AlertState::Firing).await;
    let (_, page) = Browser::new(&app, LOCAL).get(&format!("/alerts/{id}")).await;
    assert!(page.contains("cliffValue") && page.contains("mark-yes") && page.contains("<b>Result:</b>"), "{page}");
}

#[tokio::test]
async fn acknowledges_and_unacknowledges_an_alert() {
    let app = run(Some(TOKEN), None).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let mut browser = Browser::logged_in(&app).await;
    browser.get(&format!("/alerts/{id}")).await;
    let (_, without_author) = browser.post(&format!("/alerts/{id}/acknowledge"), &[("author", " ")]).await;
    assert_eq!(location(&without_author), format!("/alerts/{id}?done=author"));
    browser.post(&format!("/alerts/{id}/acknowledge"), &[("author", "ann"), ("comment", "<i>hedged</i>")]).await;
    let (_, page) = browser.get(&format!("/alerts/{id}?done=acknowledged")).await;
    assert!(
        page.contains("Acknowledged by ann") && page.contains("&lt;i&gt;hedged") && page.contains("Acknowledged. No reminders"),
        "{page}"
    );
    let (_, page) = browser.get("/alerts?acknowledged=yes&state=&rule=").await;
    assert!(page.contains("1 matching alert") && page.contains(&id), "{page}");
    let (_, page) = browser.get("/alerts?acknowledged=no").await;
    assert!(page.contains("No alerts match these filters."), "{page}");
    browser.post(&format!("/alerts/{id}/unacknowledge"), &[]).await;
    assert_eq!(app.store.acks().await.expect("read"), []);
    let (_, page) = browser.get(&format!("/alerts/{id}?done=%3Cb%3Eyou+won%3C/b%3E")).await;
    assert!(!page.contains("you won"), "the page shows no text of the URL");
}

#[tokio::test]
async fn previews_creates_and_expires_a_silence() {
    let app = run(Some(TOKEN), None).await;
    store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let mut browser = Browser::logged_in(&app).await;
    let (_, page) = browser.get("/silences?matcher=token%3D%22arbitrum%22").await;
    assert!(page.contains("token=&quot;arbitrum&quot;</textarea>") && page.contains("it suppresses 1 of 1 open alert"), "{page}");
    let draft = [
        ("matchers", "token=\"arbitrum\"\nseverity=~\"warning|info\""),
        ("duration", "4h"),
        ("author", "ann"),
        ("comment", "known"),
    ];
    let (status, page) = browser.post("/silences/preview", &draft).await;
    assert!(status == 200 && page.contains("$33.15M") && page.contains("value=\"known\""), "the form keeps its values: {page}");
    assert_valid_page("/silences/preview", &page);
    assert_eq!(app.store.silences(None).await.expect("read"), [], "a preview stores nothing");
    for (field, value, expected) in [
        ("matchers", "token", "has no operator"),
        ("matchers", "", "at least one matcher"),
        ("duration", "soon", "duration"),
        ("comment", "", "comment"),
    ] {
        let draft: Vec<_> = draft.iter().map(|(name, valid)| (*name, if *name == field { value } else { *valid })).collect();
        let (status, page) = browser.post("/silences", &draft).await;
        assert!(status == 400 && page.contains(expected) && page.contains("role=\"alert\""), "{field}: {page}");
    }
    assert_eq!(location(&browser.post("/silences", &draft).await.1), "/silences?done=silenced");
    let made = app.store.silences(None).await.expect("read").remove(0);
    let (_, page) = browser.get("/silences").await;
    assert!(page.contains("<td data-name=\"Suppressed now\">1</td>"), "{page}");
    assert_eq!(location(&browser.post(&format!("/silences/{}/expire", made.id), &[]).await.1), "/silences?done=expired");
    assert_eq!(location(&browser.post(&format!("/silences/{}/expire", made.id), &[]).await.1), "/silences?done=gone");
}

#[tokio::test]
async fn retries_and_drops_dead_letters() {
    let app = run(Some(TOKEN), None).await;
    store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let number = dead_letter(&app).await;
    let mut browser = Browser::logged_in(&app).await;
    let (_, page) = browser.get("/deliveries?state=dead").await;
    assert!(page.contains("1 dead letter.") && page.contains("no &lt;b&gt;such"), "{page}");
    assert_valid_page("/deliveries", &page);
    let (_, response) = browser.post(&format!("/deliveries/{number}/retry"), &[("from", "list")]).await;
    assert_eq!(location(&response), "/deliveries?state=dead&done=retried");
    let state = async || app.store.outbox_one(model::DeliveryId(number)).await.expect("read").expect("a row").row.state;
    assert_eq!(state().await, DeliveryState::Due);
    dead_letter(&app).await;
    browser.post("/deliveries/retry-dead", &[("receiver", "")]).await;
    assert_eq!(state().await, DeliveryState::Due);
    let (_, response) = browser.post(&format!("/deliveries/{number}/drop"), &[]).await;
    assert_eq!(location(&response), format!("/deliveries/{number}?done=dropped"));
    assert_eq!(state().await, DeliveryState::Dropped);
    let (status, page) = browser.get(&format!("/deliveries/{number}")).await;
    assert!(status == 200 && page.contains("no &lt;b&gt;such&lt;/b&gt; channel"), "{page}");
    for unknown in ["/deliveries/999", "/deliveries/x"] {
        assert_eq!(browser.get(unknown).await.0, 404, "{unknown}");
    }
}

#[tokio::test]
async fn lists_rules_and_runs_a_trial() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (_, page) = browser.get("/rules").await;
    assert!(page.contains("BigCliff") && page.contains("never matched") && page.contains("3 active rules"), "{page}");
    assert_valid_page("/rules", &page);
    let (_, page) = browser.get("/rules/playground").await;
    assert!(page.contains("BigCliffAhead") && page.contains("maxlength=\"32768\""), "{page}");
    let good = "[[rule]]\r\nalert = \"Near\"\r\non = \"unlock\"\r\nwithin = [\"30d\"]\r\n[rule.annotations]\r\nsummary = \"<u>{{ token.symbol }}</u>\"\r\n";
    let (status, page) = browser.post("/rules/playground", &[("text", good)]).await;
    assert!(status == 200 && page.contains("&lt;u&gt;") && page.contains("<h2>Backtest</h2>"), "{page}");
    assert_valid_page("/rules/playground", &page);
    let bad = good.replace("within", "whithin");
    let (_, page) = browser.post("/rules/playground", &[("text", &bad)]).await;
    assert!(page.contains("1 error") && page.contains("did you mean `within`?") && !page.contains("<h2>Backtest</h2>"), "{page}");
    let long = "#".repeat(40_000);
    assert_eq!(browser.post("/rules/playground", &[("text", &long)]).await.0, 413);
    assert_eq!(browser.post_raw("/rules/playground", "", &"x=".repeat(100_000)).await.0, 413);
}

#[tokio::test]
async fn shows_a_preview_of_the_next_digest() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (status, page) = browser.get("/digests").await;
    assert!(status == 200 && page.contains("08:00 UTC") && page.contains("2 recipients"), "{page}");
    assert!(page.contains("src=\"/digests/desk/preview\" sandbox") && page.contains("; frame-src 'self'"), "{page}");
    assert_valid_page("/digests", &page);
    let (status, mail) = browser.get("/digests/desk/preview").await;
    assert!(status == 200 && mail.contains("; sandbox") && mail.contains("frame-ancestors 'self'"), "{mail}");
    assert_eq!(browser.get("/digests/unknown/preview").await.0, 404);
    assert_eq!(
        app.store.outbox(model::OutboxFilter { limit: 9, ..Default::default() }).await.expect("read"),
        [],
        "nothing is sent"
    );
}

#[tokio::test]
async fn escapes_hostile_names_on_all_pages() {
    let app = run(None, None).await;
    let id = store_alert(&app, samples::hostile(), AlertState::Firing).await;
    dead_letter(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let paths = [
        format!("/alerts/{id}"),
        "/alerts".into(),
        "/deliveries".into(),
        "/silences?matcher=token%3D~%22.%2B%22".into(),
        "/digests".into(),
    ];
    for path in paths {
        let (status, page) = browser.get(&path).await;
        assert_eq!(status, 200, "{path}");
        assert_valid_page(&path, &page);
        assert!(!page.contains("Bcc: thief") || !page.contains("\r\nBcc"), "{path}");
    }
}

#[tokio::test]
async fn lists_have_pages_and_etags() {
    let app = run(None, None).await;
    store_alert(&app, samples::unlock(), AlertState::Firing).await;
    store_alert(&app, samples::moved(), AlertState::Event).await;
    let (_, response) = app.request("GET /api/v1/alerts?limit=1", LOCAL).await;
    assert!(response.contains("cliffwatch-total: 2") && response.contains("cliffwatch-has-more: true"), "{response}");
    assert!(response.split("\r\n\r\n").nth(1).is_some_and(|body| body.starts_with('[')), "the body is a bare array: {response}");
    let (_, response) = app.request("GET /api/v1/alerts?limit=1&paged=true", LOCAL).await;
    let page: serde_json::Value = serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap_or_default()).expect("JSON");
    assert_eq!((page["total"].as_u64(), page["items"].as_array().map(Vec::len)), (Some(2), Some(1)), "{page}");
    let next = page["next"].as_str().expect("a next page").to_owned();
    let (_, response) = app.request(&format!("GET {next}"), LOCAL).await;
    let last: serde_json::Value = serde_json::from_str(response.split("\r\n\r\n").nth(1).unwrap_or_default()).expect("JSON");
    assert!(last["next"].is_null() && last["items"][0]["id"] != page["items"][0]["id"], "{last}");
    let tag = response.lines().find_map(|line| line.strip_prefix("etag: ")).expect("an ETag").trim().to_owned();
    assert_eq!(app.request(&format!("GET {next}"), &format!("{LOCAL}If-None-Match: {tag}\r\n")).await.0, 304);
    assert_eq!(app.request("GET /api/v1/alerts?after=nonsense", LOCAL).await.0, 400);
}
