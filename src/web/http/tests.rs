use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use notify::unsubscribe::Subscriber;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::*;
use daemon::config::{Environment, load_text};
use daemon::cycle::ActiveRules;
use daemon::live::{Live, LiveConfig};
use daemon::metrics::Metrics;
use daemon::readiness::{Phase, Readiness};
use model::config::Secret;
use model::{Clock, Commit, Endpoint, FeedId, FeedState, FeedUpdate, Put, Record, Timestamp, Watch, config};
use store::{Access, Opening, Store};
use testkit::rows::schedule;
use url::Url;

pub(super) fn now() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

fn bearer(token: Option<&str>) -> Secret {
    Secret { key: "http.token".into(), inline: token.map(|token| token.to_owned().into()), file: None, credentials: Vec::new() }
}

fn watch() -> Watch {
    let group = |name: &str, slugs: &str| (name.to_owned(), vec![slugs.to_owned()]);
    let groups = [group("portfolio", "arbitrum"), group("book", "book-*")].into();
    let positions = serde_json::from_value(serde_json::json!({"arbitrum": 271_828.0})).expect("positions");
    let settings = config::WatchSettings { tokens: vec!["*".to_owned()], groups, positions, positions_file: None };
    Watch::build(&settings).expect("valid")
}

/// A config with two rules, two receivers, and mail digests.
fn live(database: std::path::PathBuf) -> LiveConfig {
    let mut config = load_text(None, "", &Environment::default()).config.expect("the defaults");
    config.store.path = database;
    let live = LiveConfig::build_now(config.clone(), rules::RuleSet::default()).expect("builds");
    config.receivers = vec![config::ReceiverSettings { name: "ops".into(), ..Default::default() }];
    let digest = config::DigestSettings { at: "08:00".into(), ..Default::default() };
    let desk = config::ReceiverSettings { name: "desk".into(), digest: Some(digest), ..Default::default() };
    let policy = engine::pipeline::DispatchPolicy::of(&[desk], &config.delivery, config.source.stale_price).expect("a digest");
    LiveConfig {
        config: Arc::new(config),
        watch: watch(),
        active: Arc::new(active()),
        subscribers: subscribers(),
        policy,
        ..live
    }
}

fn active() -> ActiveRules {
    let text = r#"
        [[rule]]
        alert = "BigCliff"
        on = "unlock"
        within = ["7d"]
        when = "cliffValue >= 5000000"
        [[rule]]
        alert = "ReleaseChanges"
        on = "unlock"
        within = ["7d"]
        when = "rateChange >= 2 || rateChange <= 0.5"
        [[rule]]
        alert = "BigBurn"
        on = "burn"
        when = "value >= 1000000"
    "#;
    let source = model::diagnostic::SourceText { file: "rules/a.toml".into(), text: text.to_owned() };
    let groups = std::collections::BTreeMap::new();
    let context = rules::Surroundings { receivers: &["ops".to_owned()], groups: &groups, now: now() };
    let loaded = rules::load(&[source], &context);
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    ActiveRules { rules: loaded.set, routes: engine::route::RouteTree::default(), ..ActiveRules::default() }
}

fn subscribers() -> Vec<Subscriber> {
    let subscriber = |address: &str| Subscriber { receiver: "desk".into(), address: address.to_owned() };
    vec![subscriber("desk@example.com"), subscriber("risk@example.com")]
}

pub(super) struct TestServer {
    address: SocketAddr,
    pub(super) store: Store,
    readiness: Readiness,
    pub(super) clock: Clock,
    stop: CancellationToken,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// Serves on a free loopback port. `pretend` is the listen address that authorization sees.
pub(super) async fn run(token: Option<&str>, pretend: Option<&str>) -> TestServer {
    run_in(&tempfile::tempdir().expect("a directory").keep(), token, pretend).await
}

/// Like [`run`], with the database in a folder.
pub(super) async fn run_in(directory: &std::path::Path, token: Option<&str>, pretend: Option<&str>) -> TestServer {
    let path = directory.join("cliffwatch.db");
    let store = Store::open(Opening { path: path.clone(), access: Access::Own, now: now() }).await.expect("a store");
    run_on(store, path, token, pretend).await
}

pub(super) async fn run_on(store: Store, path: std::path::PathBuf, token: Option<&str>, pretend: Option<&str>) -> TestServer {
    serve_live(store, live(path), token, pretend).await
}

/// Like [`run`], on loopback, with other settings.
pub(super) async fn run_with_config(token: Option<&str>, change: impl FnOnce(&mut config::Config)) -> TestServer {
    let path = tempfile::tempdir().expect("a directory").keep().join("cliffwatch.db");
    let store = Store::open(Opening { path: path.clone(), access: Access::Own, now: now() }).await.expect("a store");
    let mut live = live(path);
    change(Arc::make_mut(&mut live.config));
    serve_live(store, live, token, None).await
}

async fn serve_live(store: Store, live: LiveConfig, token: Option<&str>, pretend: Option<&str>) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let readiness = Readiness::starting(now());
    let stop = CancellationToken::new();
    let clock = Clock::manual(now());
    let app = AppHandle {
        store: store.clone(),
        metrics: Arc::new(Metrics::default()),
        readiness: readiness.clone(),
        clock: clock.clone(),
        bearer: bearer(token),
        address: pretend.map_or(address, |pretend| pretend.parse().expect("an address")),
        live: Arc::new(Live::from_pointee(live)),
        wake: Arc::new(|| {}),
        external_url: Url::parse("https://cliffwatch.example.com").ok(),
        base_dir: std::env::temp_dir().as_path().into(),
        reload: Arc::new(|| Box::pin(async { Err("rules/a.toml: bad".to_owned()) })),
    };
    let served = tokio::spawn(serve(app, listener, stop.clone()));
    TestServer { address, store, readiness, clock, stop, served }
}

impl TestServer {
    /// Sends a raw request. Returns the status and the whole response.
    pub(super) async fn request(&self, line: &str, headers: &str) -> (u16, String) {
        self.request_with(line, headers, "").await
    }

    pub(super) async fn request_with(&self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let request = format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n{body}");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut response = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut response))
            .await
            .expect("in time")
            .expect("a response");
        let response = String::from_utf8_lossy(&response).into_owned();
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, response)
    }
}

pub(super) const LOCAL: &str = "Host: localhost:9797\r\n";

#[tokio::test]
async fn readiness_reports_the_reason() {
    let app = run(None, None).await;
    assert_eq!(app.request("GET /-/healthy", LOCAL).await.0, 200);
    let (status, text) = app.request("GET /-/ready", LOCAL).await;
    assert!(status == 503 && text.ends_with("not ready: starting\n"), "{text}");
    app.readiness.set_phase(Phase::Running);
    assert_eq!(app.request("GET /-/ready", LOCAL).await.0, 200);
    app.readiness.set_store_failure("the database is full".to_owned());
    assert!(app.request("GET /-/ready", LOCAL).await.1.contains("the database is full"));
}

#[tokio::test]
async fn loopback_rejects_foreign_host_names() {
    let app = run(None, None).await;
    for good in ["localhost", "127.0.0.1:9797", "[::1]:9797", "CLIFFWATCH.example.com"] {
        assert_eq!(app.request("GET /api/v1/status", &format!("Host: {good}\r\n")).await.0, 200, "{good}");
    }
    for bad in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:9797", "10.0.0.1"] {
        assert_eq!(app.request("GET /api/v1/status", &format!("Host: {bad}\r\n")).await.0, 403, "{bad}");
    }
    assert_eq!(app.request("GET http://evil.example/api/v1/status", LOCAL).await.0, 403);
}

#[tokio::test]
async fn other_addresses_need_the_token_except_for_health() {
    let app = run(Some("right-token"), Some("0.0.0.0:9797")).await;
    let host = "Host: anything\r\n";
    assert_eq!(app.request("GET /-/healthy", host).await.0, 200);
    for path in [
        "/",
        "/-/ready",
        "/metrics",
        "/calendar.ics",
        "/api/v1/status",
        "/api/v1/upcoming",
        "/api/v1/changes",
        "/api/v1/alerts",
        "/api/v1/outbox",
    ] {
        assert_eq!(app.request(&format!("GET {path}"), host).await.0, 401, "{path}");
        let wrong = format!("{host}Authorization: Bearer right-tokeN\r\n");
        assert_eq!(app.request(&format!("GET {path}"), &wrong).await.0, 401, "{path}");
    }
    for path in ["/calendar.ics", "/"] {
        // `anyone:right-token`, as browsers and calendars send a password
        let basic = format!("{host}Authorization: Basic YW55b25lOnJpZ2h0LXRva2Vu\r\n");
        assert_eq!(app.request(&format!("GET {path}"), &basic).await.0, 200, "{path}");
        assert_eq!(app.request("POST /-/reload", &basic).await.0, 401, "a password gives read access only");
        let (status, text) = app.request(&format!("GET {path}"), host).await;
        assert!(status == 401 && text.contains("www-authenticate: Bearer") && text.contains("www-authenticate: Basic"), "{text}");
    }
    let right = format!("{host}authorization: bearer right-token\r\n");
    assert_eq!(app.request("GET /api/v1/status", &right).await.0, 200);
}

#[tokio::test]
async fn reload_needs_the_token_and_reports_problems() {
    let without = run(None, None).await;
    let any = format!("{LOCAL}Authorization: Bearer \r\n");
    assert_eq!(without.request("POST /-/reload", &any).await.0, 401);
    let app = run(Some("t0ken"), None).await;
    assert_eq!(app.request("POST /-/reload", LOCAL).await.0, 401);
    let (status, text) = app.request("POST /-/reload", &format!("{LOCAL}Authorization: Bearer t0ken\r\n")).await;
    assert!(status == 422 && text.contains("rules/a.toml: bad"), "{text}");
    let (status, text) = app.request("GET /-/reload", &format!("{LOCAL}Authorization: Bearer t0ken\r\n")).await;
    assert!(status == 405 && text.ends_with("/-/reload does not support GET; it supports POST\n"), "{text}");
}

#[tokio::test]
async fn all_routes_respond() {
    let app = run(None, None).await;
    let (status, text) = app.request("GET /", LOCAL).await;
    assert!(status == 200 && text.contains("<!doctype html>") && text.contains("content-security-policy"), "{text}");
    let (_, text) = app.request("GET /metrics", LOCAL).await;
    assert!(text.contains("text/plain; version=0.0.4") && text.contains("# TYPE cliffwatch_build_info gauge"), "{text}");
    let open = "Accept: application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.3\r\n";
    let (_, text) = app.request("GET /metrics", &format!("{LOCAL}{open}")).await;
    assert!(text.contains("application/openmetrics-text") && text.contains("# TYPE cliffwatch_build info"), "{text}");
    for list in [
        "/api/v1/upcoming?within=30d&min_value=5",
        "/api/v1/changes?since=7d&kind=rescheduled",
        "/api/v1/alerts?state=firing,pending",
        "/api/v1/outbox?receiver=ops",
    ] {
        let (status, text) = app.request(&format!("GET {list}"), LOCAL).await;
        assert!(status == 200 && text.ends_with("[]"), "{list}: {text}");
    }
    assert_eq!(app.request("GET /nothing", LOCAL).await.0, 404);
}

impl TestServer {
    /// Sends a request with a JSON body. Returns the status and the JSON response.
    async fn post(&self, line: &str, token: &str, body: &str) -> (u16, serde_json::Value) {
        let headers = format!(
            "{LOCAL}Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.write_all(format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n{body}").as_bytes()).await.expect("sent");
        let mut response = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut response))
            .await
            .expect("in time")
            .expect("a response");
        let response = String::from_utf8_lossy(&response).into_owned();
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}

#[tokio::test]
async fn silence_api_needs_the_token() {
    let app = run(Some("t0ken"), None).await;
    let silence = r#"{"matchers": ["token=arbitrum"], "author": "ann", "comment": "known", "duration": "2h"}"#;
    assert_eq!(app.post("POST /api/v1/silences", "wrong", silence).await.0, 401);
    let (status, made) = app.post("POST /api/v1/silences", "t0ken", silence).await;
    assert_eq!((status, &made["silence"]["state"]), (201, &"active".into()), "{made}");
    let id = made["id"].as_str().expect("an id").to_owned();
    // The format of Alertmanager clients.
    let alertmanager = r#"{"matchers": [{"name": "severity", "value": "info|warning", "isRegex": true, "isEqual": true}],
        "createdBy": "bob", "comment": "quiet", "startsAt": "2026-09-21T12:00:00Z", "endsAt": "2026-12-31T00:00:00Z"}"#;
    let (status, made) = app.post("POST /api/v1/silences", "t0ken", alertmanager).await;
    assert_eq!((status, &made["silence"]["matchers"][0]), (201, &"severity=~\"info|warning\"".into()), "{made}");
    let (_, listed) = app.post("GET /api/v1/silences", "", "").await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    assert_eq!(app.post(&format!("DELETE /api/v1/silences/{id}"), "", "").await.0, 401);
    assert_eq!(app.post(&format!("DELETE /api/v1/silences/{id}"), "t0ken", "").await.0, 204);
    assert_eq!(app.post(&format!("DELETE /api/v1/silences/{id}"), "t0ken", "").await.0, 404);
}

/// The body accepts the options of `cliffwatch silence` and the API names.
#[tokio::test]
async fn silence_accepts_command_line_and_api_names() {
    let app = run(Some("t0ken"), None).await;
    let rest = r#""matchers": ["token=arbitrum"], "author": "ann", "comment": "known""#;
    for (times, begins, ends) in [
        (r#""for": "2h", "from": "2026-12-01""#, "2026-12-01T00:00:00Z", "2026-12-01T02:00:00Z"),
        (r#""duration": "2h", "startsAt": "2026-12-01T00:00:00Z""#, "2026-12-01T00:00:00Z", "2026-12-01T02:00:00Z"),
        (r#""until": "2026-12-02", "from": "2026-12-01T06:00:00Z""#, "2026-12-01T06:00:00Z", "2026-12-02T00:00:00Z"),
        (r#""endsAt": "2026-12-02T00:00:00Z", "startsAt": "2026-12-01""#, "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"),
    ] {
        let (status, made) = app.post("POST /api/v1/silences", "t0ken", &format!("{{{times}, {rest}}}")).await;
        assert_eq!(status, 201, "{times}: {made}");
        assert_eq!((&made["silence"]["startsAt"], &made["silence"]["endsAt"]), (&begins.into(), &ends.into()), "{times}");
    }
    let (status, response) = app.post("POST /api/v1/silences", "t0ken", &format!("{{\"until\": \"soon\", {rest}}}")).await;
    assert!(status == 400 && response["detail"].as_str().is_some_and(|error| error.contains("2026-03-09")), "{response}");
}

#[tokio::test]
async fn rejects_invalid_silences() {
    let app = run(Some("t0ken"), None).await;
    for (bad, expected) in [
        (r#"{"matchers": [], "author": "a", "comment": "c", "duration": "2h"}"#, "at least one matcher"),
        (r#"{"matchers": ["token"], "author": "a", "comment": "c", "duration": "2h"}"#, "has no operator"),
        (r#"{"matchers": ["token!=x"], "author": "a", "comment": "c", "duration": "2h"}"#, "suppress everything"),
        (r#"{"matchers": ["token=x"], "author": "a", "comment": "", "duration": "2h"}"#, "comment"),
        (r#"{"matchers": ["token=x"], "author": "a", "comment": "c"}"#, "endsAt"),
        (r#"{"matchers": ["token=x"], "author": "a", "comment": "c", "duration": "soon"}"#, "duration"),
        (r#"{"matchers": ["token=x"], "autor": "a", "comment": "c", "duration": "2h"}"#, "autor"),
        (r#"{"alert": "al_nothing"}"#, "matchers"),
    ] {
        let (status, response) = app.post("POST /api/v1/silences", "t0ken", bad).await;
        let error = response["detail"].as_str().unwrap_or_default();
        assert!(status == 400 && (error.contains(expected) || expected == "matchers"), "{bad}: {status} {response}");
    }
    for (name, value, expected) in
        [("token", "x".repeat(5_000), "longer than"), ("1token", "x".to_owned(), "is not a label name")]
    {
        let matcher = serde_json::json!({ "name": name, "value": value, "isRegex": false });
        let silence = serde_json::json!({ "matchers": [matcher], "author": "a", "comment": "c", "duration": "2h" });
        let (status, response) = app.post("POST /api/v1/silences", "t0ken", &silence.to_string()).await;
        assert!(status == 400 && response["detail"].as_str().is_some_and(|error| error.contains(expected)), "{name}: {response}");
    }
    let (status, _) = app.post("POST /api/v1/acks", "t0ken", r#"{"alert": "al_nothing", "author": "ann"}"#).await;
    assert_eq!(status, 404);
}

/// Stores two unlocks of a token in the group and one of another token, polled one hour ago.
pub(super) async fn with_unlocks(app: &TestServer) {
    let at = now() - chrono::TimeDelta::hours(1);
    let feed = |token: &str, events: &[(&str, f64)]| schedule(token, events, at);
    // `now` is 21 Sep 2026.
    let feeds = vec![
        feed("arbitrum", &[("2026-10-16T13:00:00Z", 9e6), ("2028-10-16T13:00:00Z", 9e6)]),
        feed("sui", &[("2026-10-01T00:00:00Z", 2e6)]),
    ];
    app.store.commit(Commit { at, feeds, ..Commit::default() }).await.expect("committed");
}

#[tokio::test]
async fn calendar_applies_filters() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    for (query, dates) in [
        ("", &["20261001", "20261016T130000Z"][..]),
        ("?within=1000d", &["20261001", "20261016T130000Z", "20281016T130000Z"]),
        ("?token=sui", &["20261001"]),
        ("?group=portfolio", &["20261016T130000Z"]),
        ("?group=%40portfolio&token=sui", &[]),
        ("?rule=BigCliff", &["20261016T130000Z"]),
        ("?min_value=1000000&limit=1", &["20261001"]),
    ] {
        let (status, text) = app.request(&format!("GET /calendar.ics{query}"), LOCAL).await;
        assert!(status == 200 && text.contains("content-type: text/calendar; charset=utf-8"), "{query}: {text}");
        let starts =
            text.lines().filter_map(|line| line.strip_prefix("DTSTART")).map(|rest| rest.rsplit(':').next().unwrap_or(""));
        assert_eq!(starts.collect::<Vec<_>>(), dates, "{query}");
    }
    let (_, list) = app.request("GET /api/v1/upcoming?rule=BigCliff&limit=1", LOCAL).await;
    assert!(list.contains("\"tokenId\":\"arbitrum\"") && !list.contains("sui"), "{list}");
}

#[tokio::test]
async fn unchanged_calendar_returns_304() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let (_, text) = app.request("GET /calendar.ics", LOCAL).await;
    let tag = text.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").to_owned();
    let again = format!("{LOCAL}If-None-Match: \"other\", {tag}\r\n");
    assert_eq!(app.request("GET /calendar.ics", &again).await.0, 304);
    assert_eq!(app.request("GET /calendar.ics?token=sui", &again).await.0, 200);
}

#[tokio::test]
async fn rejects_unknown_and_invalid_parameters() {
    let app = run(None, None).await;
    for (bad, expected) in [
        ("/api/v1/upcoming?withn=30d", "unknown parameter `withn`: did you mean `within`?"),
        ("/api/v1/rules?state=firing", "expected one of rule, limit, after, paged"),
        ("/api/v1/alerts?limit=1&limit=2", "more than once"),
        ("/api/v1/alerts?after=x", "not a valid cursor"),
        ("/api/v1/alerts?acknowledged=yes", "expected true or false"),
        ("/changes?offset=x", "expected a whole number"),
        ("/api/v1/upcoming?within=30x", "within"),
        ("/api/v1/upcoming?state=firing", "state"),
        ("/api/v1/changes?kind=moved", "moved"),
        ("/calendar.ics?spans=week", "week"),
        ("/calendar.ics?alarm=soon", "alarm"),
        ("/feed.atom?kind=moved", "moved"),
        ("/feed.atom?rule=BigCliff", "does not subscribe to changes"),
        ("/calendar.ics?rule=BigBurn", "does not have"),
        ("/api/v1/alerts?state=fired", "fired"),
        ("/api/v1/alerts?limit=many", "limit"),
    ] {
        let (status, text) = app.request(&format!("GET {bad}"), LOCAL).await;
        assert!(status == 400 && text.contains(expected), "{bad}: {text}");
    }
}

#[tokio::test]
async fn unknown_names_return_404() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    for (path, expected) in [
        ("/calendar.ics?group=portfolioo", "portfolioo"),
        ("/calendar.ics?rule=BigClif", "did you mean \\\"BigCliff\\\"?"),
        ("/calendar.ics?token=sui,suii", "suii"),
        ("/feed.atom?token=suii", "suii"),
        ("/feed.atom?group=portfolioo", "portfolioo"),
    ] {
        let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
        assert!(status == 404 && text.contains(expected), "{path}: {text}");
    }
}

#[tokio::test]
async fn page_errors_are_pages() {
    let app = run(None, None).await;
    for (path, status, expected) in [
        ("/deliveries/999", 404, "No such delivery"),
        ("/alerts/al_x", 404, "No such alert"),
        ("/tokens/nope", 404, "No such token"),
        ("/alerts?state=fired", 400, "fired"),
        ("/changes?since=soon", 400, "soon"),
    ] {
        let (found, text) = app.request(&format!("GET {path}"), LOCAL).await;
        assert!(found == status && text.contains("<!doctype html>") && text.contains(expected), "{path}: {text}");
    }
}

#[tokio::test]
async fn secret_link_opens_only_the_feeds_until_the_token_changes() {
    let app = run(Some("t0ken"), Some("0.0.0.0:9797")).await;
    with_unlocks(&app).await;
    let host = "Host: cliffwatch.example.com\r\n";
    let tag = notify::feed_link::tag("t0ken").expect("a tag");
    let (status, text) = app.request(&format!("GET /feeds/{tag}/calendar.ics?token=sui"), host).await;
    assert!(status == 200 && text.contains("DTSTART;VALUE=DATE:20261001"), "{text}");
    let (status, text) = app.request(&format!("GET /feeds/{tag}/feed.atom"), host).await;
    assert!(status == 200 && text.contains("application/atom+xml") && text.contains("<feed xmlns"), "{text}");
    let other = notify::feed_link::tag("another").expect("a tag");
    for bad in [format!("/feeds/{other}/calendar.ics"), format!("/feeds/{tag}x/feed.atom"), "/feeds//calendar.ics".to_owned()] {
        assert_eq!(app.request(&format!("GET {bad}"), host).await.0, 404, "{bad}");
    }
    for closed in ["/calendar.ics", "/feed.atom", "/api/v1/status"] {
        assert_eq!(app.request(&format!("GET {closed}"), host).await.0, 401, "{closed}");
    }
    let open = run(None, None).await;
    assert_eq!(open.request(&format!("GET /feeds/{tag}/calendar.ics"), LOCAL).await.0, 404, "no link without a token");
}

#[tokio::test]
async fn incomplete_request_does_not_block_shutdown() {
    let app = run(None, None).await;
    let mut half = TcpStream::connect(app.address).await.expect("a connection");
    half.write_all(b"GET / HTTP/1.1\r\nHost: local").await.expect("sent");
    app.stop.cancel();
    let ended = tokio::time::timeout(STOP_DEADLINE + Duration::from_secs(10), app.served).await;
    assert!(matches!(ended, Ok(Ok(Ok(())))), "{ended:?}");
}

/// Returns the path of a subscriber's unsubscribe link.
async fn link(app: &TestServer, subscriber: &Subscriber) -> String {
    let key = app.store.ensure_link_key(model::rows::LinkKey::new([3; 32])).await.expect("a key");
    let link = notify::unsubscribe::link("https://cliffwatch.example.com", &key, subscriber).expect("a link");
    link.strip_prefix("https://cliffwatch.example.com").expect("ours").to_owned()
}

#[tokio::test]
async fn only_a_post_to_the_link_unsubscribes() {
    // Like behind a proxy: no login, any host name, and no loopback address.
    let app = run(Some("t0ken"), Some("0.0.0.0:9797")).await;
    let host = "Host: cliffwatch.example.com\r\n";
    assert_eq!(app.request("GET /unsubscribe/AAAAAAAAAAAAAAAAAAAAAA", host).await.0, 404, "no key exists");
    let (desk, risk) = (&subscribers()[0], &subscribers()[1]);
    let path = link(&app, desk).await;
    let stopped = async || {
        let opt_outs = app.store.opt_outs(None).await.expect("read");
        opt_outs.into_iter().map(|opt_out| (opt_out.address, opt_out.via.as_str())).collect::<Vec<_>>()
    };

    let (status, page) = app.request(&format!("GET {path}"), host).await;
    assert!(status == 200 && page.contains("desk@example.com") && page.contains("<form method=\"post\">"), "{page}");
    assert!(page.contains("form-action 'self'") && page.contains("no-referrer"), "{page}");
    assert_eq!(app.request(&format!("HEAD {path}"), host).await.0, 200);
    assert_eq!(stopped().await, [], "a GET changes nothing");
    for bad in [format!("{path}A"), "/unsubscribe/AAAAAAAAAAAAAAAAAAAAAA".to_owned(), "/unsubscribe/%00".to_owned()] {
        assert_eq!(app.request(&format!("POST {bad}"), host).await.0, 404, "{bad}");
    }
    assert_eq!(app.request(&format!("DELETE {path}"), host).await.0, 405);
    assert_eq!(stopped().await, []);

    let body = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 26\r\n";
    for _ in 0..2 {
        let (status, page) =
            app.request_with(&format!("POST {path}"), &format!("{host}{body}"), "List-Unsubscribe=One-Click").await;
        assert!(status == 200 && page.contains("gets no more digests"), "{page}");
        assert_eq!(stopped().await, [("desk@example.com".to_owned(), "link")]);
    }
    let (_, page) = app.request(&format!("GET {path}"), host).await;
    assert!(page.contains("You are already unsubscribed") && !page.contains("<form"), "{page}");
    let (_, page) = app.request(&format!("GET {}", link(&app, risk).await), host).await;
    assert!(page.contains("risk@example.com") && page.contains("<form"), "the other recipient stays subscribed: {page}");
    assert_eq!(app.request("GET /api/v1/status", host).await.0, 401, "the link gives no other access");
    app.stop.cancel();
    app.served.await.expect("no panic").expect("served");
}

mod actions;
mod audit;
mod cors;
mod events;
mod load;
mod pages;
mod problems;
mod scale;
mod statements;
mod upcoming;
