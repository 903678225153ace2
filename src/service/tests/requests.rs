//! Tests of pages, invalid requests, keys, credits, and rate limits.

use super::*;

#[tokio::test]
async fn pages_cover_a_list_and_are_empty_after_its_end() {
    let server = started().await;
    let mut seen = Vec::new();
    for page in 1..=2 {
        let (_, body) = server.request(&format!("/v5/fundraising/investors/list?page={page}&pageSize=2")).await;
        let metadata = &body["metadata"];
        assert_eq!((&metadata["page"], &metadata["pageSize"]), (&page.into(), &2.into()));
        assert_eq!((&metadata["totalPages"], &metadata["total"]), (&2.into(), &3.into()));
        seen.extend(body["data"].as_array().unwrap().iter().map(|item| item["investorId"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen, ["two", "one", "three"]);
    let (status, body) = server.request("/v5/fundraising/investors/list?page=9").await;
    assert_eq!((status, &body["data"], &body["metadata"]["total"]), (200, &Value::Array(vec![]), &3.into()));
    let (_, body) = server.request("/v5/unlock/events/alpha?pageSize=999999").await;
    assert_eq!(body["metadata"]["pageSize"], 500);
    let (_, body) = server.request("/v1/fundraising/investors/list").await;
    assert!(body["metadata"].get("page").is_none());
    let filtered =
        server.data("/v5/fundraising/investors/list?startLatestFundingDate=2024-03-01&endLatestFundingDate=2024-03-01").await;
    assert_eq!(filtered.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn invalid_requests_are_rejected_with_the_reason() {
    let server = started().await;
    for (path, status, reason) in [
        ("/v5/burn/unknown", 404, "unknown token \"unknown\""),
        ("/v5/fundraising/investors/unknown", 404, "unknown investor \"unknown\""),
        ("/v1/unlock/events?tokenId=unknown", 404, "unknown token"),
        ("/v9/burn/alpha", 404, "unknown path"),
        ("/v1/unlock/events", 400, "tokenId is missing"),
        ("/v5/burn/alpha?start=2026-13-01", 400, "YYYY-MM-DD"),
        ("/v5/burn/alpha?start=20260101", 400, "YYYY-MM-DD"),
        ("/v5/burn/alpha?start=2026-01-02&end=2026-01-01", 400, "before the start"),
        ("/v5/burn/alpha?start=2026-01-01&start=2026-01-01", 400, "must not be repeated"),
        ("/v5/burn/alpha?from=2026-01-01", 400, "accepts start, end"),
        ("/v5/unlock/events/alpha?page=0", 400, "expected an integer from 1"),
        ("/v5/unlock/events/alpha?pageSize=-5", 400, "expected an integer from 1"),
        ("/v5/unlock/events/alpha?standardAllocation=team", 400, "founderTeam"),
        ("/v5/unlock/events/upcoming?minMarketCap=many", 400, "not a number"),
        ("/v5/fundraising/investors/one?isLeadInvestor=maybe", 400, "true or false"),
        ("/v5/burn/%FF", 400, "UTF-8"),
    ] {
        let (actual, body) = server.request(path).await;
        assert_eq!(actual, status, "{path}: {body}");
        assert_eq!((&body["status"], &body["statusCode"]), (&false.into(), &status.into()), "{path}");
        assert!(body["errorMessage"].as_str().unwrap().contains(reason), "{path}: {body}");
        assert_eq!(body.as_object().unwrap().len(), 3, "{path}");
    }
    let posted = server.http.post(format!("{}/v5/burn/alpha", server.base)).send().await.unwrap();
    assert_eq!(posted.status(), 405);
}

#[tokio::test]
async fn unknown_paths_and_methods_require_a_key_and_have_its_credits() {
    let service = small(options());
    let key = service.add_key("desk", 5).unwrap();
    let server = Server::start(service.router()).await;
    assert_eq!(server.request_with("/v5/burn/alpha", Some(&key)).await.1["metadata"]["credit"]["used"], 1);
    for method in [reqwest::Method::GET, reqwest::Method::POST] {
        for path in ["/v5/burn/alpha", "/v5/burns/alpha", "/v9/burn/alpha", "/v1/unlocks", "/v2/emission"] {
            if (method == reqwest::Method::GET) && path == "/v5/burn/alpha" {
                continue;
            }
            let status = if path == "/v5/burn/alpha" { 405 } else { 404 };
            let request = |key: &str| {
                let request = server.http.request(method.clone(), format!("{}{path}", server.base)).header(KEY_HEADER, key);
                async move {
                    let response = request.send().await.unwrap();
                    let status = response.status().as_u16();
                    (status, serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap())
                }
            };
            let (actual, body) = request(&key).await;
            assert_eq!((actual, &body["statusCode"]), (status, &status.into()), "{method} {path}: {body}");
            let credit = serde_json::json!({"used": 1, "limit": 5, "resetAt": "2026-02-01T00:00:00Z"});
            assert_eq!(body["metadata"]["credit"], credit, "{method} {path}");
            let (actual, body) = request("cw_wrong").await;
            assert_eq!((actual, &body["metadata"]), (401, &Value::Null), "{method} {path}: {body}");
        }
    }
    assert_eq!(server.request("/favicon.ico").await.0, 404);
    assert_eq!(service.keys().unwrap()[0].used, 1, "rejections are free");
}

#[tokio::test]
async fn old_versions_do_not_cover_ai_listed_tokens() {
    let server = Server::start(small(options()).legacy_router()).await;
    for path in ["/v1/unlock/events", "/v2/unlock/events", "/v1/daily-emission", "/v1/allocations"] {
        assert_eq!(server.request(&format!("{path}?tokenId=beta")).await.0, 404, "{path}");
        assert_eq!(server.request(&format!("{path}?tokenId=alpha")).await.0, 200, "{path}");
    }
    assert_eq!(server.request("/v3/unlock/events?tokenId=beta").await.0, 200);
}

#[tokio::test]
async fn requests_without_a_valid_key_are_rejected_and_free() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    assert_eq!(server.request("/v5/burn/alpha").await.0, 200, "no key exists yet");
    let key = service.add_key("desk", 2).unwrap();
    for wrong in [None, Some("cw_wrong"), Some("")] {
        let (status, body) = server.request_with("/v5/burn/alpha", wrong).await;
        let expected = serde_json::json!({"status": false, "statusCode": 401, "errorMessage": "x-api-key not found"});
        assert_eq!((status, body), (401, expected));
    }
    assert_eq!(server.request_with("/v5/burn/unknown", Some(&key)).await.0, 404);
    assert_eq!(server.request_with("/v5/burn/alpha?x=1", Some(&key)).await.0, 400);
    assert_eq!(service.keys().unwrap()[0].used, 0, "rejections are free");
    assert_eq!(server.request_with("/v5/burn/alpha", Some(&key)).await.1["metadata"]["credit"]["used"], 1);
    assert_eq!(server.request_with("/v5/burn/alpha", Some(&key)).await.1["metadata"]["credit"]["used"], 2);
    let spent = server.http.get(format!("{}/v5/burn/alpha", server.base)).header(KEY_HEADER, &key).send().await.unwrap();
    assert_eq!(spent.status(), 429);
    // The time from 2026-01-12 09:00 to the end of the month.
    assert_eq!(spent.headers()[header::RETRY_AFTER], (19 * 86_400 + 15 * 3_600).to_string());
    assert!(!format!("{service:?}").contains(&key), "the debug output contains the key");
    service.0.options.clock.set(parse_timestamp("2026-02-01T00:00:00Z").unwrap());
    let (status, body) = server.request_with("/v5/burn/alpha", Some(&key)).await;
    assert_eq!((status, &body["metadata"]["credit"]["used"]), (200, &1.into()), "a new month");
    assert!(service.revoke_key("desk").unwrap());
    assert_eq!(server.request_with("/v5/burn/alpha", Some(&key)).await.0, 401);
    assert_eq!(server.request("/v5/burn/alpha").await.0, 401, "keys are still required after the last one was revoked");
    assert!(!service.revoke_key("desk").unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_requests_use_exactly_the_quota() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let service = Service::open(&path, options()).unwrap();
    service.import(files(FILES), |_| {}).unwrap();
    let key = service.add_key("desk", 120).unwrap();
    let server = Arc::new(Server::start(service.router()).await);
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (server, key) = (Arc::clone(&server), key.clone());
        requests.spawn(async move { server.request_with("/v5/burn/alpha", Some(&key)).await });
    }
    let responses = requests.join_all().await;
    let mut used: Vec<i64> = responses
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, body)| body["metadata"]["credit"]["used"].as_i64().unwrap())
        .collect();
    used.sort_unstable();
    assert_eq!(used, (1..=120).collect::<Vec<_>>(), "each credit is counted once");
    assert_eq!(responses.iter().filter(|(status, _)| *status == 429).count(), 80);
    // Another process sees the same count.
    assert_eq!(Service::open(&path, options()).unwrap().keys().unwrap()[0].used, 120);
}

#[tokio::test]
async fn rate_limit_resets_every_minute() {
    let service = small(Options { requests_per_minute: Some(2), ..options() });
    let key = service.add_key("desk", 100).unwrap();
    let server = Server::start(service.router()).await;
    service.0.options.clock.set(parse_timestamp("2026-01-12T09:00:20Z").unwrap());
    for _ in 0..2 {
        assert_eq!(server.request_with("/v5/burn/alpha", Some(&key)).await.0, 200);
    }
    let fast = server.http.get(format!("{}/v5/burn/alpha", server.base)).header(KEY_HEADER, &key).send().await.unwrap();
    assert_eq!((fast.status().as_u16(), fast.headers()[header::RETRY_AFTER].to_str().unwrap()), (429, "40"));
    service.0.options.clock.set(parse_timestamp("2026-01-12T09:01:00Z").unwrap());
    assert_eq!(server.request_with("/v5/burn/alpha", Some(&key)).await.1["metadata"]["credit"]["used"], 3);
}
