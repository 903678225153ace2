//! The same rules for each path of the API: `HEAD` is like `GET` without a body, and each error is a problem with a code.

use super::problems::problem;
use super::*;
use crate::http::api::operations::{OPERATIONS, Operation};

const HOST: &str = "Host: cliffwatch.example.com\r\n";
const AUTHORIZED: &str = "Host: cliffwatch.example.com\r\nAuthorization: Bearer t0ken\r\n";
/// The methods that some path does not support.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];

/// The paths of the document, and the secret links. The reload has responses for people.
fn paths() -> Vec<String> {
    let of = |operation: &Operation| operation.path.replace("{id}", "arbitrum");
    let mut paths: Vec<String> = OPERATIONS.iter().filter(|operation| operation.id != "reload").map(of).collect();
    paths.sort();
    paths.dedup();
    paths
}

fn links() -> Vec<String> {
    let tag = notify::feed_link::tag("t0ken").expect("a tag");
    ["calendar.ics", "feed.atom"].map(|name| format!("/feeds/{tag}/{name}")).to_vec()
}

async fn run_with_token() -> TestServer {
    let app = run(Some("t0ken"), Some("0.0.0.0:9797")).await;
    with_unlocks(&app).await;
    app
}

/// The lines of the head of a response that do not depend on the time.
fn head(response: &str) -> Vec<String> {
    let head = response.split_once("\r\n\r\n").expect("a head").0;
    let mut lines: Vec<String> = head.lines().skip(1).map(str::to_lowercase).collect();
    // A response without a body has no use for its length, and may leave it out.
    lines.retain(|line| !["date:", "content-length:", "transfer-encoding:"].iter().any(|name| line.starts_with(name)));
    lines.sort();
    lines
}

#[tokio::test]
async fn each_path_without_a_token_is_unauthorized() {
    let app = run_with_token().await;
    for path in paths() {
        for method in METHODS {
            let line = format!("{method} {path}");
            let (status, response) = app.request(&line, HOST).await;
            assert_eq!(problem(&line, status, &response)["code"], "unauthorized", "{line}");
            assert!(response.to_lowercase().contains("www-authenticate: bearer"), "{line}: {response}");
        }
        let (status, response) = app.request(&format!("HEAD {path}"), HOST).await;
        assert!(status == 401 && response.ends_with("\r\n\r\n"), "{path}: {response}");
        assert!(response.contains("application/problem+json"), "{path}: {response}");
    }
}

#[tokio::test]
async fn head_is_like_get_without_a_body() {
    let app = run_with_token().await;
    let readable = OPERATIONS.iter().filter(|of| of.method == "get").filter(|of| of.path != "/events");
    let own = readable.map(|operation| operation.path.replace("{id}", "arbitrum"));
    let others = ["/api/v2/status", "/api/v2/alerts", "/api/v2/silences", "/metrics", "/-/ready", "/-/healthy", "/", "/alerts"];
    for path in own.chain(links()).chain(others.map(str::to_owned)) {
        let (status, response) = app.request(&format!("GET {path}"), AUTHORIZED).await;
        let (head_status, head_response) = app.request(&format!("HEAD {path}"), AUTHORIZED).await;
        assert_eq!(head_status, status, "{path}: {head_response}");
        assert!(head_response.ends_with("\r\n\r\n"), "{path}: a body: {head_response}");
        if path != "/metrics" {
            assert_eq!(head(&head_response), head(&response), "{path}");
        }
    }
    // The stream has no end, but its head has one.
    let (status, response) = app.request("HEAD /events", AUTHORIZED).await;
    assert!(status == 200 && response.contains("text/event-stream") && response.ends_with("\r\n\r\n"), "{response}");
    let (status, response) = app.request("HEAD /api/v1/events?after=999999", AUTHORIZED).await;
    assert!(status == 404 && response.contains("application/problem+json"), "{response}");
}

#[tokio::test]
async fn each_unsupported_method_is_a_problem_that_names_the_others() {
    let app = run_with_token().await;
    for path in paths().into_iter().chain(links()) {
        let supported =
            if path.starts_with("/feeds/") { vec!["GET".to_owned(), "HEAD".to_owned()] } else { Operation::methods_of(&path) };
        for method in METHODS.iter().filter(|method| !supported.iter().any(|known| known == *method)) {
            let line = format!("{method} {path}");
            let (status, response) = app.request(&line, AUTHORIZED).await;
            let problem = problem(&line, status, &response);
            assert_eq!(problem["code"], "method_not_allowed", "{line}");
            let allowed = head(&response).into_iter().find_map(|line| line.strip_prefix("allow: ").map(str::to_uppercase));
            let mut allowed: Vec<String> = allowed.unwrap_or_default().split(',').map(|name| name.trim().to_owned()).collect();
            let mut expected = supported.clone();
            allowed.sort();
            expected.sort();
            assert_eq!(allowed, expected, "{line}: {response}");
        }
    }
}

#[tokio::test]
async fn each_path_rejects_large_bodies_and_unknown_children() {
    let app = run_with_token().await;
    let body = "x".repeat(200_000);
    for path in paths().into_iter().chain(links()) {
        let method = Operation::methods_of(&path).first().cloned().unwrap_or_else(|| "GET".to_owned());
        let headers = format!("{AUTHORIZED}Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        let line = format!("{method} {path}");
        let (status, response) = app.request_with(&line, &headers, &body).await;
        assert_eq!(problem(&line, status, &response)["code"], "body_too_large", "{line}");
    }
    for operation in OPERATIONS.iter().filter(|operation| operation.path.starts_with("/api/")) {
        let line = format!("GET {}/nothing/here", operation.path.replace("{id}", "arbitrum"));
        let (status, response) = app.request(&line, AUTHORIZED).await;
        assert_eq!(problem(&line, status, &response)["code"], "not_found", "{line}");
    }
}

#[tokio::test]
async fn each_path_is_limited_after_failed_logins() {
    let app = run_with_token().await;
    for _ in 0..11 {
        app.request("GET /api/v1/status", &AUTHORIZED.replace("t0ken", "wrong")).await;
    }
    for operation in OPERATIONS.iter().filter(|operation| operation.id != "reload") {
        let line = format!("{} {}", operation.method.to_uppercase(), operation.path.replace("{id}", "arbitrum"));
        let (status, response) = app.request(&line, AUTHORIZED).await;
        assert_eq!(problem(&line, status, &response)["code"], "too_many_failed_logins", "{line}");
        let head = head(&response);
        for name in ["retry-after: ", "ratelimit-limit: ", "ratelimit-remaining: ", "ratelimit-reset: "] {
            assert!(head.iter().any(|line| line.starts_with(name)), "{line}: {name}: {response}");
        }
    }
}

/// The body may arrive after the daemon has rejected the head.
#[tokio::test]
async fn rejected_request_leaves_its_connection_usable() {
    let app = run_with_token().await;
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    let head = format!("POST /api/v1/acks HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    // A response to the head alone would come in this time.
    tokio::time::timeout(Duration::from_millis(300), stream.readable()).await.ok();
    let next = format!("{{}}GET /api/v1/status HTTP/1.1\r\nConnection: close\r\n{AUTHORIZED}\r\n");
    stream.write_all(next.as_bytes()).await.expect("sent");
    let mut responses = Vec::new();
    stream.read_to_end(&mut responses).await.expect("read");
    let responses = String::from_utf8_lossy(&responses);
    assert!(responses.starts_with("HTTP/1.1 401 ") && responses.contains("HTTP/1.1 200 "), "{responses}");
}
