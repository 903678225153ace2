//! Requests of web pages with another origin.

use super::*;
use crate::http::api::operations::OPERATIONS;

const ORIGINS: [&str; 2] = ["https://desk.example", "http://localhost:3000"];
/// The headers of the request that a browser sends before a POST request with a token, a JSON body, and a key.
const PREFLIGHT: &str = "Access-Control-Request-Method: POST\r\n\
     Access-Control-Request-Headers: authorization,content-type,idempotency-key\r\n";

async fn run_with_origins() -> TestServer {
    run_with_config(Some("t0ken"), |config| config.http.cors_origins = ORIGINS.map(str::to_owned).to_vec()).await
}

/// The values of a header of a response.
fn values<'a>(response: &'a str, name: &str) -> Vec<&'a str> {
    let head = response.split_once("\r\n\r\n").map_or(response, |(head, _)| head);
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

/// The items of all values of a header.
fn items<'a>(response: &'a str, name: &str) -> Vec<&'a str> {
    values(response, name).into_iter().flat_map(|value| value.split(',')).map(str::trim).collect()
}

fn is_free_of_cors(response: &str) -> bool {
    !response.to_lowercase().contains("\r\naccess-control-")
}

#[tokio::test]
async fn preflight_of_an_allowed_origin_needs_no_token() {
    let app = run_with_origins().await;
    for origin in ORIGINS {
        for operation in OPERATIONS.iter().filter(|operation| operation.path != "/-/reload") {
            let path = operation.path.replace("{id}", "arbitrum");
            let headers = format!("{LOCAL}Origin: {origin}\r\n{PREFLIGHT}");
            let (status, response) = app.request(&format!("OPTIONS {path}"), &headers).await;
            assert_eq!(status, 200, "{path}: {response}");
            assert_eq!(values(&response, "access-control-allow-origin"), [origin], "{path}");
            let methods = items(&response, "access-control-allow-methods");
            assert!(methods.contains(&operation.method.to_uppercase().as_str()), "{path}: {response}");
            let headers = items(&response, "access-control-allow-headers");
            for needed in ["authorization", "content-type", "idempotency-key", "last-event-id", "if-none-match"] {
                assert!(headers.contains(&needed), "{needed}: {response}");
            }
            assert_eq!(values(&response, "access-control-max-age"), ["600"], "{response}");
            assert!(!response.contains("allow-credentials"), "{response}");
        }
    }
}

#[tokio::test]
async fn responses_and_errors_are_readable_for_an_allowed_origin_only() {
    let app = run_with_origins().await;
    with_unlocks(&app).await;
    let large = "x".repeat(200_000);
    for (line, more, body, expected) in [
        ("GET /api/v1/upcoming", "", "", 200),
        ("HEAD /api/v1/upcoming", "", "", 200),
        ("GET /api/v1/nothing", "", "", 404),
        ("GET /api/v1/alerts?limit=x", "", "", 400),
        ("POST /api/v1/silences", "", "{}", 401),
        ("POST /api/v1/acks", "Authorization: Bearer t0ken\r\n", "{}", 415),
        ("POST /api/v1/acks", "Authorization: Bearer t0ken\r\nContent-Type: application/json\r\n", large.as_str(), 413),
        ("DELETE /api/v1/alerts", "Authorization: Bearer t0ken\r\n", "", 405),
        ("GET /calendar.ics", "", "", 200),
        ("GET /feed.atom", "", "", 200),
        ("GET /api/v2/alerts", "", "", 200),
    ] {
        for origin in ["https://desk.example", "https://desk.example.evil", "https://desk.example:8443", "null"] {
            let headers = format!("{LOCAL}Origin: {origin}\r\n{more}Content-Length: {}\r\n", body.len());
            let (status, response) = app.request_with(line, &headers, body).await;
            assert_eq!(status, expected, "{line}: {response}");
            let vary = values(&response, "vary").join(",").to_lowercase();
            assert!(vary.contains("origin"), "{line}: a cache could mix up the origins: {response}");
            if origin == ORIGINS[0] {
                assert_eq!(values(&response, "access-control-allow-origin"), [origin], "{line}");
                let exposed = items(&response, "access-control-expose-headers");
                for name in
                    ["etag", "link", "retry-after", "ratelimit-remaining", "cliffwatch-total", "idempotency-replayed", "allow"]
                {
                    assert!(exposed.contains(&name), "{line}: {name}: {response}");
                }
                assert!(!response.contains("allow-credentials"), "{line}: {response}");
            } else {
                assert!(is_free_of_cors(&response), "{line} {origin}: {response}");
            }
        }
    }
}

#[tokio::test]
async fn other_origins_and_pages_get_no_header() {
    let app = run_with_origins().await;
    let allowed = format!("{LOCAL}Origin: https://desk.example\r\n");
    for line in ["GET /", "GET /alerts", "GET /login", "GET /metrics", "GET /-/healthy", "GET /-/ready", "GET /assets/style.css"]
    {
        let (_, response) = app.request(line, &allowed).await;
        assert!(is_free_of_cors(&response), "{line}: {response}");
        let (status, response) = app.request(&line.replace("GET", "OPTIONS"), &format!("{allowed}{PREFLIGHT}")).await;
        assert!(status >= 400 && is_free_of_cors(&response), "{line}: {response}");
    }
    let other = format!("{LOCAL}Origin: https://evil.example\r\n{PREFLIGHT}");
    let (status, response) = app.request("OPTIONS /api/v1/silences", &other).await;
    assert!(status == 401 && is_free_of_cors(&response), "{response}");
    // Without the header of a preflight, it is a request like any other.
    let (status, response) = app.request("OPTIONS /api/v1/silences", &allowed).await;
    assert!(status == 401 && is_free_of_cors(&response), "{response}");
}

#[tokio::test]
async fn nothing_is_allowed_by_default() {
    let app = run(Some("t0ken"), None).await;
    for line in ["GET /api/v1/status", "OPTIONS /api/v1/status", "OPTIONS /api/v1/silences"] {
        let (_, response) = app.request(line, &format!("{LOCAL}Origin: https://desk.example\r\n{PREFLIGHT}")).await;
        assert!(is_free_of_cors(&response) && !values(&response, "vary").contains(&"origin"), "{line}: {response}");
    }
}
