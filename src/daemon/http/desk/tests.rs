//! The pages on which one acts, from outside: each act is a form of a page, posted as a browser posts it.

mod several;

use model::{
    Alert, AlertState, Attempt, AttemptOutcome, AttemptRecord, Commit, DeliveryState, Interval, Notification, Precision,
    Resolution, RuleId, TokenId,
};
use notify::samples;

use crate::http::tests::{LOCAL, Running, now, run, with_unlocks};

/// The alert that a notification tells of.
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
        told: Vec::new(),
        leads: vec!["7d".into()],
        members: Vec::new(),
        active_at: now(),
        starts_at: Some(now()),
        ends_at: (state == AlertState::Resolved).then(now),
        false_since: None,
        due: Interval::of(now(), Precision::Day),
        recheck_at: None,
        updated_at: now(),
    }
}

/// An alert that was decided to be told to `ops`.
async fn told(app: &Running, notification: Notification, state: AlertState) -> String {
    let alert = alert_of(&notification, state);
    let id = alert.id.to_string();
    let notification = Notification { at: now(), ..notification };
    let commit = Commit { at: now(), alerts: vec![alert], notifications: vec![notification], ..Commit::default() };
    app.store.commit(commit).await.expect("committed");
    id
}

/// The first delivery, given up.
async fn dead_letter(app: &Running) -> i64 {
    let due = app.store.due("ops".into(), now(), 9).await.expect("read").remove(0);
    let attempt = Attempt {
        at: now(),
        took_ms: 12,
        outcome: AttemptOutcome::Refused,
        status: Some(400),
        answer: "no <b>such</b> channel".into(),
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

/// Something of everything: an alert that is acknowledged and told in a dead letter, a change, tokens, silences. Answers the alert and
/// the delivery.
pub(in crate::http) async fn world() -> (Running, String, i64) {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut notification = samples::unlock();
    notification.body.rule = "BigCliff".into();
    notification.body.event = Some("unlock/arbitrum/2026-10-16T13:00:00Z".into());
    let change = samples::moved().body.change.expect("a change");
    let change = model::Change { token: Some("arbitrum".into()), ..change };
    app.store.commit(Commit { at: now(), changes: vec![change], ..Commit::default() }).await.expect("committed");
    let id = told(&app, notification, AlertState::Firing).await;
    let number = dead_letter(&app).await;
    app.store.acknowledge(id.clone(), "ann".into(), "known".into(), now()).await.expect("done");
    let request = model::SilenceRequest {
        matchers: model::read_matchers(["token=arbitrum"]).expect("a matcher"),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: None,
        ends_at: now() + chrono::TimeDelta::hours(1),
    };
    app.store.put_silence(request.grant(now()).expect("granted")).await.expect("made");
    (app, id, number)
}

/// The token of those who log in on this machine.
const TOKEN: &str = "t0ken";

/// A browser: it keeps a cookie, and knows what the pages told it.
struct Browser<'a> {
    app: &'a Running,
    headers: String,
    key: String,
}

impl<'a> Browser<'a> {
    fn new(app: &'a Running, headers: &str) -> Self {
        let accept = "Accept: text/html,application/xhtml+xml;q=0.9\r\n";
        Self { app, headers: format!("{headers}{accept}"), key: String::new() }
    }

    /// One on this machine, whose reader has logged in.
    async fn inside(app: &'a Running) -> Self {
        let (_, answer) = Browser::new(app, LOCAL).post("/login", &[("token", TOKEN)]).await;
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        Self::new(app, &format!("{LOCAL}Cookie: {}\r\n", cookie.split(';').next().expect("a pair")))
    }

    /// Loads a page and takes the key of its forms.
    async fn see(&mut self, path: &str) -> (u16, String) {
        let answer = self.app.ask(&format!("GET {path}"), &self.headers).await;
        let key = answer.1.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        if let Some(key) = key {
            self.key = key.to_owned();
        }
        answer
    }

    /// Posts a form as a browser does.
    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
        let key = [("csrf", self.key.as_str())];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(key.iter().chain(fields)).finish();
        self.raw(path, "Sec-Fetch-Site: same-origin\r\n", &body).await
    }

    async fn raw(&self, path: &str, more: &str, body: &str) -> (u16, String) {
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let headers = format!("{}{form}{more}Content-Length: {}\r\n", self.headers, body.len());
        self.app.ask_with(&format!("POST {path}"), &headers, body).await
    }
}

fn location(answer: &str) -> &str {
    answer.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_default().trim()
}

/// A page is a page: escaped, complete without scripts, with nothing inline that the policy would refuse.
fn is_sound(path: &str, page: &str) {
    assert!(page.contains("<!doctype html>") && !page.contains("cannot be rendered"), "{path}: {page}");
    for bad in [" style=\"", "<style", "onclick=", "<script>", "javascript:", "\u{202e}"] {
        assert!(!page.contains(bad), "{path} has {bad:?}: {page}");
    }
}

const OUTSIDE: &str = "Host: cliffwatch.example.com\r\n";

#[tokio::test]
async fn elsewhere_one_logs_in_acts_and_logs_out() {
    let app = run(Some("right-token"), Some("0.0.0.0:9797")).await;
    let id = told(&app, samples::unlock(), AlertState::Firing).await;
    let path = format!("/alerts/{id}");
    let mut browser = Browser::new(&app, OUTSIDE);
    let (status, answer) = browser.see(&path).await;
    assert_eq!((status, location(&answer)), (303, &*format!("/login?next=%2Falerts%2F{id}")));
    let (status, page) = browser.see(&format!("/login?next=%2Falerts%2F{id}")).await;
    assert!(status == 200 && page.contains("type=\"password\"") && !page.contains("/deliveries"), "{page}");
    is_sound("/login", &page);

    let (status, page) = browser.post("/login", &[("token", "wrong"), ("next", &path)]).await;
    assert!(status == 403 && page.contains("This is not the token.") && !page.contains("set-cookie"), "{page}");
    assert!(!page.contains("wrong\""), "what was typed is not shown");
    let from_elsewhere = browser.raw("/login", "Origin: https://evil.example\r\n", "token=right-token").await;
    assert_eq!(from_elsewhere.0, 403);
    let (status, answer) = browser.post("/login", &[("token", " right-token\n"), ("next", &path)]).await;
    assert_eq!((status, location(&answer)), (303, &*path));
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie").trim().to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let pair = cookie.split(';').next().expect("a pair");
    let mut inside = Browser::new(&app, &format!("{OUTSIDE}Cookie: other=1; {pair}\r\n"));
    let (status, page) = inside.see(&path).await;
    assert!(status == 200 && page.contains("$33.15M") && page.contains("Sign out") && !inside.key.is_empty(), "{page}");
    assert_eq!(app.ask("GET /api/alerts", &inside.headers).await.0, 200, "the session reads the API too");
    let ack = format!("{path}/acknowledge");
    assert_eq!(browser.post(&ack, &[("author", "ann")]).await.0, 401, "without a session");
    assert_eq!(inside.raw(&ack, "", "author=ann").await.0, 403, "without the key");
    let body = format!("csrf={}&author=ann", inside.key);
    assert_eq!(inside.raw(&ack, "Sec-Fetch-Site: cross-site\r\n", &body).await.0, 403);
    assert_eq!(inside.raw(&ack, "Origin: null\r\n", &body).await.0, 403);
    assert_eq!(app.store.acks().await.expect("read"), [], "nothing was done");
    assert_eq!(location(&inside.post(&ack, &[("author", "ann")]).await.1), format!("{path}?done=acknowledged"));
    assert_eq!(app.store.acks().await.expect("read").len(), 1);
    let json = format!("{}Content-Type: application/json\r\nContent-Length: 2\r\n", inside.headers);
    assert_eq!(app.ask_with("POST /api/acks", &json, "{}").await.0, 401, "a program needs the token itself");

    let (status, answer) = inside.post("/logout", &[]).await;
    assert!(status == 303 && answer.contains("Max-Age=0"), "{answer}");
    assert_eq!(inside.see(&path).await.0, 303, "the session is over here, whatever the browser keeps");
}

#[tokio::test]
async fn whoever_follows_a_link_from_elsewhere_is_not_asked_to_log_in_again() {
    let app = run(Some("t"), Some("0.0.0.0:9797")).await;
    let cross = format!("{OUTSIDE}Accept: text/html\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n");
    let (status, page) = app.ask("GET /alerts/al_%22x?y=1&z=2", &cross).await;
    assert!(status == 200 && page.replace("&#x2f;", "/").contains("url=/alerts/al_%22x?y=1&amp;z=2\""), "{page}");
}

#[tokio::test]
async fn wrong_tokens_cost_a_wait_that_holds_for_every_way_in() {
    let app = run(Some("right-token"), Some("0.0.0.0:9797")).await;
    let browser = Browser::new(&app, OUTSIDE);
    for _ in 0..11 {
        assert_eq!(browser.post("/login", &[("token", "wrong")]).await.0, 403);
    }
    let (status, page) = browser.post("/login", &[("token", "right-token")]).await;
    assert!(status == 429 && page.contains("retry-after: 1\r\n") && page.contains("Try again in 1 s"), "{page}");
    let bearer = |token: &str| format!("{OUTSIDE}Authorization: Bearer {token}\r\n");
    assert_eq!(app.ask("GET /api/status", &bearer("right-token")).await.0, 429);
    assert_eq!(app.ask("GET /-/healthy", OUTSIDE).await.0, 200);
}

#[tokio::test]
async fn on_loopback_without_a_token_everybody_looks_nobody_acts_and_the_way_to_a_token_is_told() {
    let app = run(None, None).await;
    let id = told(&app, samples::unlock(), AlertState::Firing).await;
    dead_letter(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (status, page) = browser.see(&format!("/alerts/{id}")).await;
    assert!(status == 200 && !page.contains("Sign out") && !page.contains(">Acknowledge<"), "{page}");
    assert!(
        page.contains(&format!("To acknowledge or silence it, <a href=\"/login?next=%2Falerts%2F{id}\">log in</a>")),
        "{page}"
    );
    browser.see("/silences").await;
    for (path, field) in
        [(format!("/alerts/{id}/acknowledge"), "author"), ("/silences".into(), "author"), ("/deliveries/1/drop".into(), "from")]
    {
        let (status, page) = browser.post(&path, &[(field, "ann")]).await;
        assert!(status == 401 && page.contains("before a token is set"), "{path}: {page}");
    }
    assert_eq!(app.store.acks().await.expect("read"), []);
    for path in ["/deliveries", "/deliveries?state=dead", "/deliveries/1", "/silences", "/"] {
        let (_, page) = browser.see(path).await;
        assert!(page.contains("href=\"/login?next="), "{path} has no way in: {page}");
        assert!(!page.contains("Send again<") && !page.contains(">Drop<") && !page.contains(">Silence<"), "{path}: {page}");
    }
    let (status, page) = browser.see("/login").await;
    assert!(status == 200 && page.contains("token_file = \"http-token\""), "{page}");
    is_sound("/login", &page);
}

#[tokio::test]
async fn on_loopback_a_form_that_changes_nothing_needs_no_login_but_a_page_of_ours() {
    let app = run(None, None).await;
    told(&app, samples::unlock(), AlertState::Firing).await;
    let mut browser = Browser::new(&app, LOCAL);
    browser.see("/silences").await;
    let matchers = "matchers=token%3D%22arbitrum%22&duration=4h";
    assert_eq!(browser.raw("/silences/preview", "", matchers).await.0, 403, "without the key");
    let body = format!("csrf={}&{matchers}", browser.key);
    assert_eq!(browser.raw("/silences/preview", "Origin: http://evil.example\r\n", &body).await.0, 403);
    assert_eq!(
        browser.raw("/silences/preview", "Origin: http://localhost:8080\r\n", &body).await.0,
        403,
        "another port is another site"
    );
    let (status, page) = browser.raw("/silences/preview", "Origin: http://localhost:9797\r\n", &body).await;
    assert!(status == 200 && page.contains("it hides 1 of 1 alert"), "{page}");
    let other = run(None, None).await;
    assert_eq!(Browser::new(&other, LOCAL).raw("/silences/preview", "", &body).await.0, 403, "the key of another process");
}

#[tokio::test]
async fn on_loopback_with_a_token_one_looks_freely_and_logs_in_to_act() {
    let app = run(Some(TOKEN), None).await;
    let id = told(&app, samples::unlock(), AlertState::Firing).await;
    let mut stranger = Browser::new(&app, LOCAL);
    let (status, page) = stranger.see(&format!("/alerts/{id}")).await;
    assert!(status == 200 && page.contains("href=\"/login?next="), "{page}");
    stranger.see("/silences").await;
    let ack = format!("/alerts/{id}/acknowledge");
    assert_eq!(stranger.post(&ack, &[("author", "ann")]).await.0, 401);
    let mut browser = Browser::inside(&app).await;
    let (_, page) = browser.see(&format!("/alerts/{id}")).await;
    assert!(page.contains(">Acknowledge<") && page.contains("Sign out"), "{page}");
    assert_eq!(browser.post(&ack, &[("author", "ann")]).await.0, 303);
}

#[tokio::test]
async fn alerts_have_a_page_while_they_fire_when_they_ended_and_when_they_happened_once() {
    let app = run(Some(TOKEN), None).await;
    let mut browser = Browser::inside(&app).await;
    let firing = told(&app, samples::unlock(), AlertState::Firing).await;
    let event = told(&app, samples::moved(), AlertState::Event).await;
    let (status, page) = browser.see(&format!("/alerts/{firing}")).await;
    assert!(status == 200 && page.contains(">Acknowledge<") && page.contains("due, to be sent to ops"), "{page}");
    assert!(page.contains("not at work any more") && page.contains("alertname=&quot;BigCliffAhead&quot;"), "{page}");
    is_sound("a firing alert", &page);
    let (status, page) = browser.see(&format!("/alerts/{event}")).await;
    assert!(status == 200 && page.contains("nothing to acknowledge") && page.contains("Happened"), "{page}");
    told(&app, samples::resolved(), AlertState::Resolved).await;
    let (status, page) = browser.see(&format!("/alerts/{firing}")).await;
    assert!(status == 200 && page.contains("passed") && page.contains("Ended"), "{page}");
    let (status, page) = browser.see("/alerts/al_unknown").await;
    assert!(status == 404 && page.contains("forgotten after 730 days"), "{page}");
    let (status, answer) = app.ask(&format!("GET /api/alerts/{event}"), LOCAL).await;
    let json: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap_or_default()).unwrap_or_default();
    assert_eq!(
        (status, json["state"].as_str(), json["messages"][0]["state"].as_str()),
        (200, Some("event"), Some("due")),
        "{json}"
    );
    assert_eq!(app.ask("GET /api/alerts/al_unknown", LOCAL).await.0, 404);
}

#[tokio::test]
async fn a_rule_at_work_explains_its_alert_clause_by_clause() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut notification = samples::unlock();
    notification.body.rule = "BigCliff".into();
    notification.body.event = Some("unlock/arbitrum/2026-10-16T13:00:00Z".into());
    let id = told(&app, notification, AlertState::Firing).await;
    let (_, page) = Browser::new(&app, LOCAL).see(&format!("/alerts/{id}")).await;
    assert!(page.contains("cliffValue") && page.contains("mark-yes") && page.contains("<b>So:</b>"), "{page}");
}

#[tokio::test]
async fn an_acknowledgement_is_made_and_withdrawn_and_its_words_are_ours_alone() {
    let app = run(Some(TOKEN), None).await;
    let id = told(&app, samples::unlock(), AlertState::Firing).await;
    let mut browser = Browser::inside(&app).await;
    browser.see(&format!("/alerts/{id}")).await;
    let (_, nobody) = browser.post(&format!("/alerts/{id}/acknowledge"), &[("author", " ")]).await;
    assert_eq!(location(&nobody), format!("/alerts/{id}?done=author"));
    browser.post(&format!("/alerts/{id}/acknowledge"), &[("author", "ann"), ("comment", "<i>hedged</i>")]).await;
    let (_, page) = browser.see(&format!("/alerts/{id}?done=acknowledged")).await;
    assert!(
        page.contains("ann acknowledged it") && page.contains("&lt;i&gt;hedged") && page.contains("Acknowledged. Nobody"),
        "{page}"
    );
    let (_, page) = browser.see("/alerts?acknowledged=yes&state=&rule=").await;
    assert!(page.contains("1 alert that fit") && page.contains(&id), "{page}");
    let (_, page) = browser.see("/alerts?acknowledged=no").await;
    assert!(page.contains("No alert fits."), "{page}");
    browser.post(&format!("/alerts/{id}/unacknowledge"), &[]).await;
    assert_eq!(app.store.acks().await.expect("read"), []);
    let (_, page) = browser.see(&format!("/alerts/{id}?done=%3Cb%3Eyou+won%3C/b%3E")).await;
    assert!(!page.contains("you won"), "no text of an address is shown");
}

#[tokio::test]
async fn a_silence_is_previewed_made_and_ended() {
    let app = run(Some(TOKEN), None).await;
    told(&app, samples::unlock(), AlertState::Firing).await;
    let mut browser = Browser::inside(&app).await;
    let (_, page) = browser.see("/silences?matcher=token%3D%22arbitrum%22").await;
    assert!(page.contains("token=&quot;arbitrum&quot;</textarea>") && page.contains("it hides 1 of 1 alert"), "{page}");
    let draft = [
        ("matchers", "token=\"arbitrum\"\nseverity=~\"warning|info\""),
        ("duration", "4h"),
        ("author", "ann"),
        ("comment", "known"),
    ];
    let (status, page) = browser.post("/silences/preview", &draft).await;
    assert!(status == 200 && page.contains("$33.15M") && page.contains("value=\"known\""), "what was written stays: {page}");
    is_sound("/silences/preview", &page);
    assert_eq!(app.store.silences(None).await.expect("read"), [], "a preview makes nothing");
    for (field, value, said) in [
        ("matchers", "token", "compares nothing"),
        ("matchers", "", "at least one matcher"),
        ("duration", "soon", "duration"),
        ("comment", "", "comment"),
    ] {
        let draft: Vec<_> = draft.iter().map(|(name, own)| (*name, if *name == field { value } else { *own })).collect();
        let (status, page) = browser.post("/silences", &draft).await;
        assert!(status == 400 && page.contains(said) && page.contains("role=\"alert\""), "{field}: {page}");
    }
    assert_eq!(location(&browser.post("/silences", &draft).await.1), "/silences?done=silenced");
    let made = app.store.silences(None).await.expect("read").remove(0);
    let (_, page) = browser.see("/silences").await;
    assert!(page.contains("<td data-name=\"Hides\">1</td>"), "{page}");
    assert_eq!(location(&browser.post(&format!("/silences/{}/expire", made.id), &[]).await.1), "/silences?done=expired");
    assert_eq!(location(&browser.post(&format!("/silences/{}/expire", made.id), &[]).await.1), "/silences?done=gone");
}

#[tokio::test]
async fn a_dead_letter_is_sent_again_or_dropped() {
    let app = run(Some(TOKEN), None).await;
    told(&app, samples::unlock(), AlertState::Firing).await;
    let number = dead_letter(&app).await;
    let mut browser = Browser::inside(&app).await;
    let (_, page) = browser.see("/deliveries?state=dead").await;
    assert!(page.contains("1 dead letter.") && page.contains("no &lt;b&gt;such"), "{page}");
    is_sound("/deliveries", &page);
    let (_, answer) = browser.post(&format!("/deliveries/{number}/retry"), &[("from", "list")]).await;
    assert_eq!(location(&answer), "/deliveries?state=dead&done=retried");
    let state = async || app.store.outbox_one(model::DeliveryId(number)).await.expect("read").expect("a row").row.state;
    assert_eq!(state().await, DeliveryState::Due);
    dead_letter(&app).await;
    browser.post("/deliveries/retry-dead", &[("receiver", "")]).await;
    assert_eq!(state().await, DeliveryState::Due);
    let (_, answer) = browser.post(&format!("/deliveries/{number}/drop"), &[]).await;
    assert_eq!(location(&answer), format!("/deliveries/{number}?done=dropped"));
    assert_eq!(state().await, DeliveryState::Dropped);
    let (status, page) = browser.see(&format!("/deliveries/{number}")).await;
    assert!(status == 200 && page.contains("no &lt;b&gt;such&lt;/b&gt; channel"), "{page}");
    for unknown in ["/deliveries/999", "/deliveries/x"] {
        assert_eq!(browser.see(unknown).await.0, 404, "{unknown}");
    }
}

#[tokio::test]
async fn rules_are_listed_and_one_is_tried() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (_, page) = browser.see("/rules").await;
    assert!(page.contains("BigCliff") && page.contains("never matched") && page.contains("2 at work"), "{page}");
    is_sound("/rules", &page);
    let (_, page) = browser.see("/rules/playground").await;
    assert!(page.contains("BigCliffAhead") && page.contains("maxlength=\"32768\""), "{page}");
    let good = "[[rule]]\r\nalert = \"Near\"\r\non = \"unlock\"\r\nwithin = [\"30d\"]\r\n[rule.annotations]\r\nsummary = \"<u>{{ token.symbol }}</u>\"\r\n";
    let (status, page) = browser.post("/rules/playground", &[("text", good)]).await;
    assert!(status == 200 && page.contains("&lt;u&gt;") && page.contains("What it would have sent"), "{page}");
    is_sound("/rules/playground", &page);
    let bad = good.replace("within", "whithin");
    let (_, page) = browser.post("/rules/playground", &[("text", &bad)]).await;
    assert!(page.contains("1 error") && page.contains("did you mean `within`?") && !page.contains("would have sent"), "{page}");
    let long = "#".repeat(40_000);
    assert_eq!(browser.post("/rules/playground", &[("text", &long)]).await.0, 413);
    assert_eq!(browser.raw("/rules/playground", "", &"x=".repeat(100_000)).await.0, 413);
}

#[tokio::test]
async fn the_next_digest_is_shown_as_it_would_be_sent() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (status, page) = browser.see("/digests").await;
    assert!(status == 200 && page.contains("08:00 UTC") && page.contains("2 recipients"), "{page}");
    assert!(page.contains("src=\"/digests/desk/preview\" sandbox") && page.contains("; frame-src 'self'"), "{page}");
    is_sound("/digests", &page);
    let (status, mail) = browser.see("/digests/desk/preview").await;
    assert!(status == 200 && mail.contains("; sandbox") && mail.contains("frame-ancestors 'self'"), "{mail}");
    assert_eq!(browser.see("/digests/nobody/preview").await.0, 404);
    assert_eq!(
        app.store.outbox(model::OutboxFilter { limit: 9, ..Default::default() }).await.expect("read"),
        [],
        "nothing is sent"
    );
}

#[tokio::test]
async fn hostile_names_harm_no_page() {
    let app = run(None, None).await;
    let id = told(&app, samples::hostile(), AlertState::Firing).await;
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
        let (status, page) = browser.see(&path).await;
        assert_eq!(status, 200, "{path}");
        is_sound(&path, &page);
        assert!(!page.contains("Bcc: thief") || !page.contains("\r\nBcc"), "{path}");
    }
}

#[tokio::test]
async fn lists_are_gone_through_part_by_part_and_not_sent_twice() {
    let app = run(None, None).await;
    told(&app, samples::unlock(), AlertState::Firing).await;
    told(&app, samples::moved(), AlertState::Event).await;
    let (_, answer) = app.ask("GET /api/alerts?limit=1", LOCAL).await;
    assert!(answer.contains("cliffwatch-total: 2") && answer.contains("cliffwatch-has-more: true"), "{answer}");
    assert!(answer.split("\r\n\r\n").nth(1).is_some_and(|body| body.starts_with('[')), "bare, as ever: {answer}");
    let (_, answer) = app.ask("GET /api/alerts?limit=1&paged=true", LOCAL).await;
    let part: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap_or_default()).expect("JSON");
    assert_eq!((part["total"].as_u64(), part["items"].as_array().map(Vec::len)), (Some(2), Some(1)), "{part}");
    let next = part["next"].as_str().expect("a next part").to_owned();
    let (_, answer) = app.ask(&format!("GET {next}"), LOCAL).await;
    let last: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap_or_default()).expect("JSON");
    assert!(last["next"].is_null() && last["items"][0]["id"] != part["items"][0]["id"], "{last}");
    let tag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").trim().to_owned();
    assert_eq!(app.ask(&format!("GET {next}"), &format!("{LOCAL}If-None-Match: {tag}\r\n")).await.0, 304);
    assert_eq!(app.ask("GET /api/alerts?after=nonsense", LOCAL).await.0, 400);
}
