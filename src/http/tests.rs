use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::store::{Access, Opening};

fn now() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

fn bearer(token: Option<&str>) -> Secret {
    Secret { key: "http.token".into(), inline: token.map(|token| token.to_owned().into()), file: None, credentials: Vec::new() }
}

struct Running {
    address: SocketAddr,
    health: Health,
    stop: CancellationToken,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// Serves on a free port of loopback; `pretend` is the address that the gate believes we listen on.
async fn run(token: Option<&str>, pretend: Option<&str>) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let directory = tempfile::tempdir().expect("a directory").keep();
    let path = directory.join("cliffwatch.db");
    let store = Store::open(Opening { path: path.clone(), access: Access::Own, now: now() }).await.expect("a store");
    let health = Health::starting(now());
    let deps = Deps {
        store,
        metrics: Arc::new(Metrics::new()),
        health: health.clone(),
        clock: Clock::manual(now()),
        bearer: bearer(token),
        address: pretend.map_or(address, |pretend| pretend.parse().expect("an address")),
        external_host: Some("cliffwatch.example.com".to_owned()),
        receivers: vec!["ops".into()],
        database: path,
        reload: Arc::new(|| Box::pin(async { Err("rules/a.toml: bad".to_owned()) })),
    };
    let stop = CancellationToken::new();
    let served = tokio::spawn(serve(listener, router(deps), stop.clone()));
    Running { address, health, stop, served }
}

impl Running {
    /// Status and text of a raw request.
    async fn ask(&self, line: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let request = format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer))
            .await
            .expect("in time")
            .expect("an answer");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, answer)
    }
}

const LOCAL: &str = "Host: localhost:9797\r\n";

#[tokio::test]
async fn readiness_says_why_not() {
    let app = run(None, None).await;
    assert_eq!(app.ask("GET /-/healthy", LOCAL).await.0, 200);
    let (status, text) = app.ask("GET /-/ready", LOCAL).await;
    assert!(status == 503 && text.ends_with("not ready: starting\n"), "{text}");
    app.health.set_ready();
    assert_eq!(app.ask("GET /-/ready", LOCAL).await.0, 200);
    app.health.set_not_ready("the database is full");
    assert!(app.ask("GET /-/ready", LOCAL).await.1.contains("the database is full"));
}

#[tokio::test]
async fn on_loopback_the_host_must_be_ours() {
    let app = run(None, None).await;
    for good in ["localhost", "127.0.0.1:9797", "[::1]:9797", "CLIFFWATCH.example.com"] {
        assert_eq!(app.ask("GET /api/status", &format!("Host: {good}\r\n")).await.0, 200, "{good}");
    }
    for bad in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:9797", "10.0.0.1"] {
        assert_eq!(app.ask("GET /api/status", &format!("Host: {bad}\r\n")).await.0, 403, "{bad}");
    }
    assert_eq!(app.ask("GET http://evil.example/api/status", LOCAL).await.0, 403);
}

#[tokio::test]
async fn off_loopback_everything_but_health_needs_the_token() {
    let app = run(Some("right-token"), Some("0.0.0.0:9797")).await;
    let host = "Host: anything\r\n";
    assert_eq!(app.ask("GET /-/healthy", host).await.0, 200);
    for path in ["/", "/-/ready", "/metrics", "/api/status", "/api/upcoming", "/api/changes", "/api/alerts", "/api/outbox"] {
        assert_eq!(app.ask(&format!("GET {path}"), host).await.0, 401, "{path}");
        let wrong = format!("{host}Authorization: Bearer right-tokeN\r\n");
        assert_eq!(app.ask(&format!("GET {path}"), &wrong).await.0, 401, "{path}");
    }
    let right = format!("{host}authorization: bearer right-token\r\n");
    assert_eq!(app.ask("GET /api/status", &right).await.0, 200);
}

#[tokio::test]
async fn a_reload_needs_the_token_always_and_tells_its_problems() {
    let without = run(None, None).await;
    let any = format!("{LOCAL}Authorization: Bearer \r\n");
    assert_eq!(without.ask("POST /-/reload", &any).await.0, 401);
    let app = run(Some("t0ken"), None).await;
    assert_eq!(app.ask("POST /-/reload", LOCAL).await.0, 401);
    let (status, text) = app.ask("POST /-/reload", &format!("{LOCAL}Authorization: Bearer t0ken\r\n")).await;
    assert!(status == 422 && text.contains("rules/a.toml: bad"), "{text}");
    assert_eq!(app.ask("GET /-/reload", &format!("{LOCAL}Authorization: Bearer t0ken\r\n")).await.0, 405);
}

#[tokio::test]
async fn every_page_answers() {
    let app = run(None, None).await;
    let (status, text) = app.ask("GET /", LOCAL).await;
    assert!(status == 200 && text.contains("<!doctype html>") && text.contains("content-security-policy"), "{text}");
    let (_, text) = app.ask("GET /metrics", LOCAL).await;
    assert!(text.contains("text/plain; version=0.0.4") && text.contains("# TYPE cliffwatch_build_info gauge"), "{text}");
    let open = "Accept: application/openmetrics-text; version=1.0.0,text/plain;version=0.0.4;q=0.3\r\n";
    let (_, text) = app.ask("GET /metrics", &format!("{LOCAL}{open}")).await;
    assert!(text.contains("application/openmetrics-text") && text.contains("# TYPE cliffwatch_build info"), "{text}");
    for list in [
        "/api/upcoming?within=30d&token=arbitrum,sui&min_value=5",
        "/api/changes?since=7d&kind=rescheduled",
        "/api/alerts?state=firing,pending",
        "/api/outbox?receiver=ops",
    ] {
        let (status, text) = app.ask(&format!("GET {list}"), LOCAL).await;
        assert!(status == 200 && text.ends_with("[]"), "{list}: {text}");
    }
    assert_eq!(app.ask("GET /nothing", LOCAL).await.0, 404);
}

impl Running {
    /// Status and JSON of a request with a body.
    async fn post(&self, line: &str, token: &str, body: &str) -> (u16, serde_json::Value) {
        let headers = format!(
            "{LOCAL}Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.write_all(format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n{body}").as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer))
            .await
            .expect("in time")
            .expect("an answer");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}

#[tokio::test]
async fn a_silence_is_made_listed_and_ended_with_the_token_alone() {
    let app = run(Some("t0ken"), None).await;
    let silence = r#"{"matchers": ["token=arbitrum"], "author": "ann", "comment": "known", "duration": "2h"}"#;
    assert_eq!(app.post("POST /api/silences", "wrong", silence).await.0, 401);
    let (status, made) = app.post("POST /api/silences", "t0ken", silence).await;
    assert_eq!((status, &made["silence"]["state"]), (201, &"active".into()), "{made}");
    let id = made["id"].as_str().expect("an id").to_owned();
    // As Alertmanager's own clients send it.
    let theirs = r#"{"matchers": [{"name": "severity", "value": "info|warning", "isRegex": true, "isEqual": true}],
        "createdBy": "bob", "comment": "quiet", "startsAt": "2026-09-21T12:00:00Z", "endsAt": "2026-12-31T00:00:00Z"}"#;
    let (status, made) = app.post("POST /api/silences", "t0ken", theirs).await;
    assert_eq!((status, &made["silence"]["matchers"][0]), (201, &"severity=~\"info|warning\"".into()), "{made}");
    let (_, listed) = app.post("GET /api/silences", "", "").await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    assert_eq!(app.post(&format!("DELETE /api/silences/{id}"), "", "").await.0, 401);
    assert_eq!(app.post(&format!("DELETE /api/silences/{id}"), "t0ken", "").await.0, 204);
    assert_eq!(app.post(&format!("DELETE /api/silences/{id}"), "t0ken", "").await.0, 404);
}

#[tokio::test]
async fn a_silence_that_cannot_be_is_refused_with_the_reason() {
    let app = run(Some("t0ken"), None).await;
    for (bad, said) in [
        (r#"{"matchers": [], "author": "a", "comment": "c", "duration": "2h"}"#, "at least one matcher"),
        (r#"{"matchers": ["token"], "author": "a", "comment": "c", "duration": "2h"}"#, "compares nothing"),
        (r#"{"matchers": ["token!=x"], "author": "a", "comment": "c", "duration": "2h"}"#, "silence everything"),
        (r#"{"matchers": ["token=x"], "author": "a", "comment": "", "duration": "2h"}"#, "comment"),
        (r#"{"matchers": ["token=x"], "author": "a", "comment": "c"}"#, "endsAt"),
        (r#"{"matchers": ["token=x"], "author": "a", "comment": "c", "duration": "soon"}"#, "duration"),
        (r#"{"matchers": ["token=x"], "autor": "a", "comment": "c", "duration": "2h"}"#, "autor"),
        (r#"{"alert": "al_nothing"}"#, "matchers"),
    ] {
        let (status, answer) = app.post("POST /api/silences", "t0ken", bad).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && (error.contains(said) || said == "matchers"), "{bad}: {status} {answer}");
    }
    let (status, _) = app.post("POST /api/acks", "t0ken", r#"{"alert": "al_nothing", "author": "ann"}"#).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_misspelt_parameter_is_refused() {
    let app = run(None, None).await;
    for (bad, said) in [
        ("/api/upcoming?withn=30d", "withn"),
        ("/api/upcoming?within=30x", "within"),
        ("/api/upcoming?state=firing", "state"),
        ("/api/changes?kind=moved", "moved"),
        ("/api/alerts?state=fired", "fired"),
        ("/api/alerts?limit=many", "limit"),
    ] {
        let (status, text) = app.ask(&format!("GET {bad}"), LOCAL).await;
        assert!(status == 400 && text.contains(said), "{bad}: {text}");
    }
}

#[tokio::test]
async fn a_half_sent_request_does_not_hold_the_door() {
    let app = run(None, None).await;
    let mut half = TcpStream::connect(app.address).await.expect("a connection");
    half.write_all(b"GET / HTTP/1.1\r\nHost: local").await.expect("sent");
    app.stop.cancel();
    let ended = tokio::time::timeout(STOP_DEADLINE + Duration::from_secs(10), app.served).await;
    assert!(matches!(ended, Ok(Ok(Ok(())))), "{ended:?}");
}

#[test]
fn a_token_is_compared_whole() {
    let headers = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
        headers
    };
    let expected = bearer(Some("abc"));
    for (given, is_good) in [
        ("Bearer abc", true),
        ("Bearer ab", false),
        ("Bearer abcd", false),
        ("abc", false),
        ("Basic abc", false),
        ("Bearer ", false),
    ] {
        assert_eq!(has_token(&expected, &headers(given)).expect("readable"), is_good, "{given}");
    }
    assert!(!has_token(&bearer(None), &headers("Bearer ")).expect("readable"));
    assert!(!has_token(&bearer(Some("")), &headers("Bearer ")).expect("readable"));
}
