//! The errors of the API, the names that it takes, and its former paths.

use std::collections::BTreeSet;

use super::*;
use crate::http::api::operations::{DocumentedBody, OPERATIONS, ROOT};
use crate::http::error_code::ErrorCode;
use crate::http::pages::tests::run_with_data;
use model::wire::TokenItem;

/// The header with the token, on loopback.
const AUTHORIZED: &str = "Host: localhost:9797\r\nAuthorization: Bearer t0ken\r\n";

/// Checks that a response is a problem, and returns it.
pub(super) fn problem(line: &str, status: u16, response: &str) -> serde_json::Value {
    let (head, body) = response.split_once("\r\n\r\n").expect("a body");
    let problem: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{line}: {error}: {response}"));
    assert!(
        head.contains("content-type: application/problem+json\r\n") || head.ends_with("application/problem+json"),
        "{line}: {head}"
    );
    let code = problem["code"].as_str().and_then(ErrorCode::parse).unwrap_or_else(|| panic!("{line}: {problem}"));
    assert_eq!(problem["status"], status, "{line}: {problem}");
    assert_eq!(code.status().as_u16(), status, "{line}: {problem}");
    assert_eq!(problem["type"], format!("urn:cliffwatch:problem:{code}"), "{line}");
    assert_eq!(problem["title"], code.title(), "{line}");
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(!detail.is_empty() && !detail.ends_with(['.', '\n']), "{line}: {problem}");
    for word in ["serde", "deserialize", "Deserialize", "invalid type", "expected value at", "axum", "hyper", "panicked"] {
        assert!(!detail.contains(word), "{line}: {problem}");
    }
    assert!(problem["suggestions"].is_array(), "{line}: {problem}");
    problem
}

/// Adds tokens with ambiguous and unique tickers.
async fn with_tickers(app: &TestServer) {
    with_unlocks(app).await;
    let token = |id: &str, symbol: &str, name: &str| TokenItem {
        id: id.to_owned().into(),
        symbol: symbol.to_owned().into(),
        name: name.to_owned().into(),
        ..TokenItem::default()
    };
    let tokens = vec![
        token("arbitrum", "ARB", "Arbitrum"),
        token("sui", "SUI", "Sui"),
        token("lend-a", "LEND", "Lend A"),
        token("lend-b", "LEND", "Lend B"),
    ];
    app.store.commit(Commit { at: now(), tokens, ..Commit::default() }).await.expect("committed");
}

#[tokio::test]
async fn each_status_is_a_problem_with_a_code() {
    let app = run(Some("t0ken"), None).await;
    with_tickers(&app).await;
    let json = "Content-Type: application/json\r\n";
    let mut seen = BTreeSet::new();
    for (line, headers, body, code, expected) in [
        ("GET /api/v1/outbox/999", LOCAL, "", "unknown_delivery", "no delivery"),
        ("GET /api/v1/outbox/x", LOCAL, "", "invalid_parameter", "whole number"),
        ("GET /api/v1/outbox/%ff", LOCAL, "", "invalid_request", "UTF-8"),
        ("GET /api/v1/alerts/al_x", LOCAL, "", "unknown_alert", "no alert"),
        ("GET /api/v1/tokens/arbitrm", LOCAL, "", "unknown_token", "did you mean arbitrum?"),
        ("GET /api/v1/tokens/lend", LOCAL, "", "ambiguous_token", "lend-a, lend-b"),
        ("GET /api/v1/supply?group=portfolo", LOCAL, "", "unknown_group", "did you mean \"portfolio\"?"),
        ("GET /api/v1/rules?rule=BigClif", LOCAL, "", "unknown_rule", "did you mean \"BigCliff\"?"),
        ("GET /api/v1/outbox?receiver=opps", LOCAL, "", "unknown_receiver", "did you mean \"ops\"?"),
        ("GET /api/v1/alerts?limit=many", LOCAL, "", "invalid_parameter", "a whole number from 1 to 10000"),
        ("GET /api/v1/status?limit=1", LOCAL, "", "unknown_parameter", "has no parameters"),
        ("DELETE /api/v1/silences/si_1?x=1", AUTHORIZED, "", "unknown_parameter", "`x`"),
        ("GET /api/nothing", LOCAL, "", "not_found", "/api/openapi.json lists all paths"),
        ("GET /api/v1/alert", LOCAL, "", "not_found", "did you mean /api/v1/alerts?"),
        ("GET /api/v3/alerts", LOCAL, "", "not_found", "/api/v1/alerts"),
        ("GET /api", LOCAL, "", "not_found", "/api"),
        ("DELETE /api/v1/alerts", LOCAL, "", "unauthorized", "token"),
        ("PATCH /api/v1/acks", LOCAL, "", "unauthorized", "token"),
        ("DELETE /api/v1/alerts", AUTHORIZED, "", "method_not_allowed", "does not support DELETE; it supports GET, HEAD"),
        ("GET /api/v1/status", "Host: evil.example\r\n", "", "wrong_host", "Host"),
        ("GET /feed.atom?token=suii", LOCAL, "", "unknown_token", "did you mean sui?"),
        ("GET /calendar.ics?group=portfolo", LOCAL, "", "unknown_group", "portfolio"),
        ("POST /api/v1/acks", AUTHORIZED, "{}", "unsupported_media_type", "Content-Type: application/json"),
        ("POST /api/v1/acks", json, "{}", "invalid_body", "the field `alert` is missing"),
        ("POST /api/v1/acks", json, "{\"alert\": 1, \"author\": \"a\"}", "invalid_body", "`alert` is not valid: expected a text"),
        ("POST /api/v1/acks", json, "{\"alert\"", "invalid_body", "not valid JSON: see line 1"),
        (
            "POST /api/v1/acks",
            json,
            "{\"alert\": \"al_1\", \"author\": \"\"}",
            "invalid_body",
            "`author` has 1 to 200 characters",
        ),
        ("POST /api/v1/acks", json, "{\"alert\": \"al_1\", \"author\": \"ann\"}", "unknown_alert", "no pending or firing alert"),
        ("POST /api/v1/silences", json, "[]", "invalid_body", "must be a JSON object"),
        ("DELETE /api/v1/silences/si_1", AUTHORIZED, "", "unknown_silence", "no active or pending silence"),
    ] {
        let headers = if headers == json { format!("{AUTHORIZED}{json}") } else { headers.to_owned() };
        let headers = format!("{headers}Content-Length: {}\r\n", body.len());
        let (status, response) = app.request_with(line, &headers, body).await;
        let problem = problem(line, status, &response);
        assert_eq!(problem["code"], code, "{line}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(expected)), "{line}: {problem}");
        seen.insert(code);
    }
    let large = format!("{{\"alert\": \"{}\"}}", "x".repeat(200_000));
    let headers = format!("{AUTHORIZED}{json}Content-Length: {}\r\n", large.len());
    let (status, response) = app.request_with("POST /api/v1/acks", &headers, &large).await;
    assert_eq!(problem("a large body", status, &response)["code"], "body_too_large");
    for _ in 0..11 {
        app.request("GET /api/v1/status", "Host: localhost\r\n").await;
        app.request("POST /api/v1/acks", &AUTHORIZED.replace("t0ken", "wrong")).await;
    }
    let (status, response) = app.request("POST /api/v1/acks", AUTHORIZED).await;
    assert_eq!(problem("failed logins", status, &response)["code"], "too_many_failed_logins");
    assert!(response.contains("retry-after: "), "{response}");
    assert!(seen.len() > 15, "{seen:?}");
}

#[tokio::test]
async fn reload_returns_text_or_a_problem() {
    let app = run(Some("t0ken"), None).await;
    let (status, response) = app.request("POST /-/reload", AUTHORIZED).await;
    assert!(status == 422 && response.contains("text/plain") && response.ends_with("rules/a.toml: bad\n"), "{response}");
    let (status, response) = app.request("POST /-/reload", &format!("{AUTHORIZED}Idempotency-Key: \r\n")).await;
    assert!(status == 400 && response.contains("text/plain") && response.contains("Idempotency-Key is not valid"), "{response}");
    let (status, response) = app.request("POST /-/reload", &format!("{AUTHORIZED}Accept: application/json\r\n")).await;
    assert_eq!(problem("reload", status, &response)["code"], "invalid_config");
    let (status, response) =
        app.request("GET /deliveries/999", &format!("{AUTHORIZED}Accept: application/problem+json\r\n")).await;
    assert_eq!(problem("a page", status, &response)["code"], "unknown_delivery");
}

/// Each parameter of each operation rejects wrong values with a problem that names it, instead of bending them.
#[tokio::test]
async fn unusable_parameters_are_rejected() {
    use crate::http::parameters::ParameterKind;
    let (app, ..) = run_with_data().await;
    let mut checked = 0;
    for operation in OPERATIONS.iter().filter(|of| of.method == "get" && of.path != "/events") {
        let path = operation.path.replace("{id}", "arbitrum");
        for parameter in operation.query_parameters() {
            let wrong: &[&str] = match parameter.kind {
                ParameterKind::Text | ParameterKind::Texts => &["", "%20"],
                ParameterKind::Cursor => &["", "%20", "x", "1.5"],
                ParameterKind::Names => &["", ",", "a,,b", "arbitrum,"],
                ParameterKind::Word(_) | ParameterKind::Words(_) => &["", "Nothing", ",", "cliff,x"],
                ParameterKind::Number => &["", "x", "NaN", "inf", "-1", "1e999"],
                ParameterKind::Integer(..) => &["", "x", "-1", "1.5", "99999999999"],
                ParameterKind::Boolean => &["", "yes", "1", "TRUE"],
                ParameterKind::Duration => &["", "x", "7", "-7d", "99999999999999d"],
            };
            let mut wrong: Vec<String> = wrong.iter().map(|value| format!("{}={value}", parameter.name)).collect();
            if let ParameterKind::Integer(min, max) = parameter.kind {
                wrong.extend(min.checked_sub(1).map(|below| format!("{}={below}", parameter.name)));
                wrong.extend(max.checked_add(1).map(|above| format!("{}={above}", parameter.name)));
            }
            if !parameter.kind.is_repeatable() {
                let valid = match parameter.kind {
                    ParameterKind::Word(words) => words[0],
                    ParameterKind::Boolean => "true",
                    ParameterKind::Duration => "7d",
                    _ => "1",
                };
                wrong.push(format!("{0}={valid}&{0}={valid}", parameter.name));
            }
            for query in wrong {
                let line = format!("GET {path}?{query}");
                let (status, response) = app.request(&line, LOCAL).await;
                let problem = problem(&line, status, &response);
                assert_eq!(problem["code"], "invalid_parameter", "{line}: {problem}");
                let detail = problem["detail"].as_str().unwrap_or_default();
                assert!(detail.contains(parameter.name), "{line}: {problem}");
                checked += 1;
            }
        }
        let line = format!("GET {path}?no_such_parameter=1");
        let (status, response) = app.request(&line, LOCAL).await;
        assert_eq!(problem(&line, status, &response)["code"], "unknown_parameter", "{line}");
    }
    assert!(checked > 100, "{checked}");
}

#[tokio::test]
async fn words_can_be_separated_or_repeated() {
    let (app, alert, _) = run_with_data().await;
    for query in ["state=firing,pending", "state=firing&state=pending", "state=resolved&state=firing"] {
        let (status, response) = app.request(&format!("GET /api/v1/alerts?{query}"), LOCAL).await;
        assert!(status == 200 && response.contains(&alert), "{query}: {response}");
    }
}

#[tokio::test]
async fn tickers_name_tokens_everywhere() {
    let (app, alert, _) = run_with_data().await;
    with_tickers(&app).await;
    let body = async |path: &str| {
        let (status, response) = app.request(&format!("GET {path}"), LOCAL).await;
        assert_eq!(status, 200, "{path}: {response}");
        let body = response.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        // The head of a feed has the filter as it was given.
        body.split_once("<entry>").map_or(body, |(_, entries)| entries).to_owned()
    };
    for (ticker, slug) in [
        ("/api/v1/alerts?token=ARB", "/api/v1/alerts?token=arbitrum"),
        ("/api/v1/changes?token=arb", "/api/v1/changes?token=arbitrum"),
        ("/api/v1/upcoming?token=ARB,SUI", "/api/v1/upcoming?token=arbitrum&token=sui"),
        ("/api/v1/tokens/ARB", "/api/v1/tokens/arbitrum"),
        ("/calendar.ics?token=SUI", "/calendar.ics?token=sui"),
        ("/feed.atom?token=Arbitrum", "/feed.atom?token=arbitrum"),
        ("/api/v1/silences/preview?matcher=token%3DARB", "/api/v1/silences/preview?matcher=token%3Darbitrum"),
    ] {
        assert_eq!(body(ticker).await, body(slug).await, "{ticker}");
    }
    assert!(body("/api/v1/alerts?token=ARB").await.contains(&alert), "the list is not empty");
    assert!(body("/alerts?token=ARB").await.contains(&alert), "the page is not empty");
    assert!(body("/changes?token=ARB").await.contains("arbitrum"));
    let (status, response) = app.request("GET /tokens/ARB", LOCAL).await;
    assert!(status == 307 && response.contains("location: /tokens/arbitrum\r\n"), "{response}");
    for (path, status, expected) in [
        ("/tokens/LEND", 409, "lend-a, lend-b"),
        ("/tokens/arbitrm", 404, "did you mean arbitrum?"),
        ("/alerts?token=arbitrm", 404, "did you mean arbitrum?"),
        ("/changes?token=LEND", 409, "lend-a, lend-b"),
        ("/deliveries?receiver=opps", 404, "opps"),
        ("/alerts?rule=BigClif", 404, "BigCliff"),
    ] {
        let (found, page) = app.request(&format!("GET {path}"), &format!("{LOCAL}Accept: text/html\r\n")).await;
        assert!(found == status && page.contains("<!doctype html>") && page.contains(expected), "{path}: {page}");
    }
}

#[tokio::test]
async fn silence_stores_the_slug_of_a_ticker() {
    let app = run(Some("t0ken"), None).await;
    let silence = |matcher: &str| {
        serde_json::json!({"matchers": [matcher], "author": "ann", "comment": "known", "duration": "2h"}).to_string()
    };
    let (status, made) = app.post("POST /api/v1/silences", "t0ken", &silence("token=anything")).await;
    assert_eq!(status, 201, "no token is known yet: {made}");
    with_tickers(&app).await;
    for (matcher, expected) in
        [("token=ARB", "token=\"arbitrum\""), ("token!=Sui", "token!=\"sui\""), ("token=~\"ARB|x\"", "token=~\"ARB|x\"")]
    {
        let matchers = format!("[{}, \"alertname=A\"]", serde_json::Value::from(matcher));
        let body = format!("{{\"matchers\": {matchers}, \"author\": \"ann\", \"comment\": \"c\", \"duration\": \"2h\"}}");
        let (status, made) = app.post("POST /api/v1/silences", "t0ken", &body).await;
        assert_eq!((status, made["silence"]["matchers"][0].as_str()), (201, Some(expected)), "{made}");
    }
    let (status, error) = app.post("POST /api/v1/silences", "t0ken", &silence("token=LEND")).await;
    assert_eq!((status, &error["code"], &error["suggestions"][0]), (409, &"ambiguous_token".into(), &"lend-a".into()));
    let (status, error) = app.post("POST /api/v1/silences", "t0ken", &silence("token=arbitrm")).await;
    assert_eq!((status, &error["code"], &error["suggestions"][0]), (404, &"unknown_token".into(), &"arbitrum".into()));
}

#[tokio::test]
async fn names_that_left_the_config_are_known_while_they_have_data() {
    let (app, ..) = run_with_data().await;
    let (_, all) = app.request("GET /api/v1/alerts", LOCAL).await;
    assert!(all.contains("\"rule\":\"BigCliff\""), "{all}");
    // A rule without alerts is known if it is active.
    for (query, rows) in [("rule=BigBurn", "[]"), ("rule=SourceTrouble", "[]"), ("receiver=ops", "[]")] {
        let (status, response) = app.request(&format!("GET /api/v1/alerts?{query}"), LOCAL).await;
        assert!(status == 200 && response.contains(rows), "{query}: {response}");
    }
}

/// Former paths keep working until 1.0: with their method, query, and escapes.
#[tokio::test]
async fn former_paths_redirect_with_the_query() {
    let app = run(Some("t0ken"), None).await;
    for operation in OPERATIONS.iter().filter(|of| of.path.starts_with(ROOT)) {
        let path = operation.path.replace("{id}", "a%20b");
        let former = path.replace(ROOT, "/api/");
        let line = format!("{} {former}?x=%41&y=1", operation.method.to_uppercase());
        let (status, response) = app.request(&line, AUTHORIZED).await;
        assert!(status == 308 && response.contains(&format!("location: {path}?x=%41&y=1\r\n")), "{line}: {response}");
    }
    assert_eq!(app.request("POST /api/acks", LOCAL).await.0, 401, "a redirect needs the same rights");
    assert_eq!(app.request("GET /api/openapi.json", LOCAL).await.0, 200);
}

#[tokio::test]
async fn each_operation_documents_the_statuses_that_it_returns() {
    let (app, ..) = run_with_data().await;
    let (_, response) = app.request("GET /api/openapi.json", LOCAL).await;
    let document: serde_json::Value = serde_json::from_str(response.split_once("\r\n\r\n").expect("a body").1).expect("JSON");
    for operation in OPERATIONS.iter().filter(|of| of.path != "/events") {
        let responses = &document["paths"][operation.path][operation.method]["responses"];
        let path = operation.path.replace("{id}", "nothing");
        for query in ["", "?x=1", "?token=nothing", "?token=arbitrum", "?limit=0", "?matcher=token%3Dnothing"] {
            let line = format!("{} {path}{query}", operation.method.to_uppercase());
            for headers in [LOCAL, "Host: evil.example\r\n"] {
                let (status, response) = app.request(&line, headers).await;
                let documented = &responses[status.to_string()];
                assert!(documented.is_object(), "{line}: {status} is not documented: {response}");
            }
        }
        if let DocumentedBody::Text(kind) = operation.response {
            let content = &responses["200"]["content"];
            assert!(content[kind].is_object(), "{}: {content}", operation.path);
        }
    }
}

#[tokio::test]
async fn head_returns_the_headers_of_get() {
    let (app, alert, delivery) = run_with_data().await;
    let silence = app.store.silences(None).await.expect("read").first().expect("a silence").id.clone();
    for operation in OPERATIONS.iter().filter(|of| of.method == "get" && of.path != "/events") {
        let id = match operation.id {
            "getToken" => "arbitrum".to_owned(),
            "getAlert" => alert.clone(),
            "getSilence" => silence.clone(),
            _ => delivery.to_string(),
        };
        let query = if operation.id == "previewSilence" { "?matcher=token%3Darbitrum" } else { "" };
        let path = format!("{}{query}", operation.path.replace("{id}", &id));
        let header = |response: &str, name: &str| {
            response.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
        };
        let (status, head) = app.request(&format!("HEAD {path}"), LOCAL).await;
        let (_, get) = app.request(&format!("GET {path}"), LOCAL).await;
        assert!(status == 200 && head.ends_with("\r\n\r\n"), "{path}: {head}");
        for name in ["etag: ", "content-type: ", "content-length: "] {
            assert_eq!(header(&head, name), header(&get, name), "{path}: {head}");
        }
        let tag = header(&head, "etag: ").unwrap_or_default();
        assert!(tag.starts_with("W/"), "{path}: {head}");
        let (status, _) = app.request(&format!("HEAD {path}"), &format!("{LOCAL}If-None-Match: {tag}\r\n")).await;
        assert_eq!(status, 304, "{path}");
    }
}

/// `next` and `previous` of lists in the order of the commits lead through all rows in both directions, and `sort` keeps the former order.
#[tokio::test]
async fn pages_lead_through_a_list_in_both_directions() {
    let (app, ..) = run_with_data().await;
    let get = async |path: &str| {
        let (status, response) = app.request(&format!("GET {path}"), LOCAL).await;
        assert_eq!(status, 200, "{path}: {response}");
        serde_json::from_str::<serde_json::Value>(response.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
    };
    for list in ["changes", "alerts", "outbox"] {
        let all = get(&format!("/api/v1/{list}")).await;
        let all = all.as_array().expect("a list");
        let (mut down, mut next) = (Vec::new(), Some(format!("/api/v1/{list}?paged=true&limit=1")));
        while let Some(path) = next {
            let page = get(&path).await;
            down.extend(page["items"].as_array().expect("rows").clone());
            next = page["next"].as_str().map(str::to_owned);
        }
        let (mut up, mut path) = (Vec::new(), format!("/api/v1/{list}?paged=true&limit=1&before=-100"));
        loop {
            let page = get(&path).await;
            let rows = page["items"].as_array().expect("rows");
            path = page["previous"].as_str().expect("a place for new rows").to_owned();
            if rows.is_empty() {
                break;
            }
            up.extend(rows.clone());
        }
        up.reverse();
        assert!(down == *all && up == *all && !all.is_empty(), "{list}: {down:#?} {up:#?}");
        let line = format!("GET /api/v1/{list}?after=1&before=2");
        let (status, response) = app.request(&line, LOCAL).await;
        let problem = problem(&line, status, &response);
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("exclude each other")), "{problem}");
    }
    assert!(!get("/api/v1/alerts?sort=updated").await.as_array().expect("a list").is_empty());
    let (status, response) = app.request("GET /api/v1/alerts?sort=updated&before=1", LOCAL).await;
    assert!(status == 400 && response.contains("excludes `sort=updated`"), "{response}");
}

#[tokio::test]
async fn programs_get_problems_for_pages_and_browsers_get_pages() {
    let app = run(Some("t0ken"), Some("0.0.0.0:9797")).await;
    for (line, accept, expected) in [
        ("GET /metrics", "*/*", "application/problem+json"),
        ("GET /alerts", "*/*", "application/problem+json"),
        ("GET /events", "text/event-stream", "application/problem+json"),
        ("GET /-/ready", "*/*", "text/plain"),
        ("GET /nothing", "text/html", "text/html"),
    ] {
        let (status, response) = app.request(line, &format!("{LOCAL}Accept: {accept}\r\n")).await;
        assert!(status >= 400 && response.contains(&format!("content-type: {expected}")), "{line}: {response}");
    }
}
