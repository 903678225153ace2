//! Tests of versions and paths.

use super::*;

#[tokio::test]
async fn auto_uses_the_older_version_for_an_hour_if_the_newest_is_missing() {
    let fake = FakeServer::start(
        |_, target| if target.starts_with("/v5/") { reply("404 Not Found", "", "") } else { ok("", &rows(&[1])) },
    )
    .await;
    let (client, clock) = client(&fake);
    let first = client.fetch(&events(), None, None).await;
    assert_eq!((event_days(&first).len(), first.version, first.credits, first.requests), (1, Some(4), 1, 2));
    assert_eq!(client.fetch(&events(), None, None).await.requests, 1, "settled");
    clock.set(now() + TimeDelta::minutes(61));
    assert_eq!(client.fetch(&events(), None, None).await.requests, 2, "the newest is tried again after an hour");
    let first = "/v5/unlock/events/aptos?start=2026-01-01&end=2026-12-31&page=1&pageSize=2";
    let older = "/v4/unlock/events?tokenId=aptos&start=2026-01-01&end=2026-12-31";
    assert_eq!(fake.targets(), [first, older, older, first, older]);
}

#[tokio::test]
async fn unknown_token_does_not_change_the_version() {
    let fake = FakeServer::start(|_, target| match target {
        _ if target.contains("unknown") => reply("404 Not Found", "", r#"{"errorMessage":"unknown token"}"#),
        _ if target.starts_with("/v5/") => ok("", &rows(&[1])),
        _ => panic!("a request in another version than v5"),
    })
    .await;
    let (client, _) = client(&fake);
    let unknown = token_request(Endpoint::UnlockEvents, "unknown");
    let fetched = client.fetch(&unknown, None, None).await;
    assert_eq!((failure(&fetched).kind, fetched.requests), (FailureKind::NotFound, 2));
    assert!(
        failure(&fetched).message.starts_with("GET /v5/unlock/events/unknown returned 404 Not Found (\"unknown token\")"),
        "{}",
        failure(&fetched)
    );
    assert_eq!(client.fetch(&events(), None, None).await.version, Some(5));
    let again = client.fetch(&unknown, None, None).await;
    assert_eq!(
        (failure(&again).kind, again.credits),
        (FailureKind::NotFound, 0),
        "both versions are requested, since v5 may have been removed"
    );
    assert!(client.breaker().is_closed());
}

#[tokio::test]
async fn only_several_tokens_prove_that_a_version_is_missing() {
    let lacking = Arc::new(Mutex::new(vec!["a"]));
    let now_lacking = lacking.clone();
    let fake = FakeServer::start(move |_, target| {
        let path = target.split('?').next().unwrap_or_default();
        let is_lacking = now_lacking.lock().expect("a lock").iter().any(|token| path.ends_with(&format!("/{token}")));
        if target.starts_with("/v5/") && is_lacking { reply("404 Not Found", "", "") } else { ok("", &rows(&[1])) }
    })
    .await;
    let (client, clock) = client(&fake);
    let versions = async |tokens: [&str; 4]| {
        let mut seen = Vec::new();
        for token in tokens {
            let fetched = client.fetch(&token_request(Endpoint::UnlockEvents, token), None, None).await;
            seen.push((fetched.version.unwrap_or_default(), fetched.requests));
        }
        seen
    };
    assert_eq!(versions(["a", "b", "a", "c"]).await, [(4, 2), (5, 1), (4, 1), (5, 1)], "one token's 404 is its own");
    *lacking.lock().expect("a lock") = vec!["a", "b", "c", "d"];
    clock.set(now() + TimeDelta::minutes(61));
    assert_eq!(versions(["a", "b", "c", "d"]).await, [(4, 2), (4, 2), (4, 2), (4, 1)], "after three tokens, none tries v5");
    lacking.lock().expect("a lock").clear();
    clock.set(now() + TimeDelta::minutes(125));
    assert_eq!(versions(["d", "a", "b", "c"]).await, [(5, 1); 4], "v5 is back for all");
}

#[tokio::test]
async fn removed_version_is_replaced_at_once_and_retried_hourly() {
    let gone = Arc::new(Mutex::new(""));
    let now_gone = gone.clone();
    let fake = FakeServer::start(move |_, target| match *now_gone.lock().expect("a lock") {
        path if !path.is_empty() && target.starts_with(path) => reply("404 Not Found", "", ""),
        _ => ok("", &rows(&[1])),
    })
    .await;
    let (client, clock) = client(&fake);
    let versions = async |gone_now: &'static str, fetches: usize| {
        *gone.lock().expect("a lock") = gone_now;
        let mut seen = Vec::new();
        for _ in 0..fetches {
            let fetched = client.fetch(&events(), None, None).await;
            seen.push((fetched.version, fetched.requests));
        }
        seen
    };
    assert_eq!(versions("", 1).await, [(Some(5), 1)]);
    assert_eq!(versions("/v5/", 3).await, [(Some(4), 2), (Some(4), 1), (Some(4), 1)]);
    assert_eq!(versions("", 2).await, [(Some(4), 1), (Some(4), 1)], "not retried within an hour");
    clock.set(now() + TimeDelta::minutes(61));
    assert_eq!(versions("", 2).await, [(Some(5), 1), (Some(5), 1)]);
    assert_eq!(versions("/v5/", 1).await, [(Some(4), 2)]);
    assert_eq!(versions("/v4/", 2).await, [(Some(5), 2), (Some(5), 1)], "the older version can be removed too");
}

#[tokio::test]
async fn pinned_version_has_no_fallback() {
    let fake = FakeServer::start(|_, _| reply("404 Not Found", "", "")).await;
    let mut source = source(&fake.address);
    source.burn = EndpointVersion::V(1);
    let (client, _) = tuned(&source);
    assert_eq!(failure(&client.fetch(&burns(), None, None).await).kind, FailureKind::NotFound);
    assert_eq!(fake.targets(), ["/v1/burn/aptos?start=2026-01-01&end=2026-12-31"]);
}

#[tokio::test]
async fn linear_unlocks_are_fetched_in_an_older_version() {
    let fake = FakeServer::start(|_, _| ok("", &rows(&[1]))).await;
    let (client, _) = client(&fake);
    let linear = LinearRequest { segments: Some(3), ahead: None };
    let both = client.fetch_with_linear(&events(), linear, Some(2)).await;
    assert_eq!((both.version, both.credits, both.shows_linear()), (Some(5), 2, Some(true)));
    assert_eq!(client.fetch(&events(), None, None).await.version, Some(5));
    let cut = client.fetch_with_linear(&events(), linear, Some(1)).await;
    assert_eq!(
        (event_days(&cut).len(), cut.credits, cut.shows_linear()),
        (1, 1, Some(false)),
        "only the cliff unlocks fit the limit"
    );
    let versions: Vec<String> = fake.targets().iter().map(|target| target[..3].to_owned()).collect();
    assert_eq!(versions, ["/v5", "/v3", "/v5", "/v5"]);
}

#[tokio::test]
async fn response_with_cliffs_is_completed_by_one_more_request() {
    let fake = FakeServer::start(|_, _| ok("", &rows(&[1]))).await;
    let (client, _) = client(&fake);
    let cliffs = client.fetch(&events(), None, None).await;
    assert_eq!((cliffs.credits, cliffs.shows_linear()), (1, Some(false)));
    let linear = LinearRequest { segments: Some(1), ahead: None };
    let both = client.complete_linear(cliffs.clone().without_cost(), linear, Some(2)).await;
    assert_eq!((both.version, both.shows_linear(), event_days(&both)), (Some(5), Some(true), event_days(&cliffs)));
    assert_eq!((both.credits, both.requests), (1, 1), "the cost of the first response is counted already");
    let versions: Vec<String> = fake.targets().iter().map(|target| target[..3].to_owned()).collect();
    assert_eq!(versions, ["/v5", "/v1"]);
}

#[tokio::test]
async fn older_version_is_read_if_the_first_one_lacks_the_token() {
    let fake = FakeServer::start(
        |_, target| {
            if target.starts_with("/v1/") { reply("404 Not Found", "", "") } else { ok("", &rows(&[1])) }
        },
    )
    .await;
    let (client, _) = client(&fake);
    let linear = |version| LinearRequest { segments: Some(version), ahead: None };
    let fetched = client.fetch_with_linear(&events(), linear(1), None).await;
    let segments = fetched.segments.expect("requested");
    assert_eq!((segments.is_read, segments.lacks_rate_changes, segments.version), (true, true, 3));
    assert_eq!((fetched.credits, fetched.requests, fetched.version), (2, 3, Some(5)));
    assert!(!client.fetch_with_linear(&events(), linear(3), None).await.segments.expect("requested").lacks_rate_changes);
    let versions: Vec<String> = fake.targets().iter().map(|target| target[..3].to_owned()).collect();
    assert_eq!(versions, ["/v5", "/v1", "/v3", "/v5", "/v3"]);
}

#[tokio::test]
async fn daily_emission_ahead_is_read_in_addition_or_reported_as_missing() {
    let day = r#"{"startDate": "2026-11-26T00:00:00Z", "endDate": "2026-11-27T00:00:00Z", "unlockAmount": 5, "allocations": []}"#;
    let fake = FakeServer::start(move |_, target| match target {
        _ if target.contains("daily-emission/bitcoin") => reply("404 Not Found", "", ""),
        _ if target.contains("daily-emission") && target.contains("=bitcoin") => reply("404 Not Found", "", ""),
        _ if target.contains("daily-emission") => ok("", &format!("[{day}]")),
        _ => ok("", &rows(&[1])),
    })
    .await;
    let (client, _) = client(&fake);
    let days = (NaiveDate::from_ymd_opt(2026, 11, 26).expect("a day"), NaiveDate::from_ymd_opt(2027, 3, 4).expect("a day"));
    let linear = LinearRequest { segments: Some(3), ahead: Some(days) };
    let fetched = client.fetch_with_linear(&events(), linear, Some(3)).await;
    let ahead = fetched.ahead.expect("requested");
    assert_eq!((ahead.days.map(|days| days.len()), ahead.is_absent, ahead.credits, fetched.credits), (Some(1), false, 1, 3));
    assert!(fake.targets()[2].starts_with("/v5/daily-emission/aptos?start=2026-11-26&end=2027-03-04"), "{:?}", fake.targets());
    let unknown = token_request(Endpoint::UnlockEvents, "bitcoin");
    let fetched = client.fetch_with_linear(&unknown, LinearRequest { segments: None, ahead: Some(days) }, None).await;
    let ahead = fetched.ahead.expect("requested");
    assert_eq!((ahead.days, ahead.is_absent, ahead.credits, fetched.credits), (None, true, 0, 1));
    let PollOutcome::Fresh(response) = fetched.outcome else { panic!("the schedule is read") };
    assert_eq!(response.parse_warnings_total, 1);
    assert!(response.parse_warnings[0].problem.starts_with("cannot be read, so linear unlocks may be missing: GET /v5"));
}

#[tokio::test]
async fn slug_that_would_change_the_path_is_not_sent() {
    let fake = FakeServer::start(|_, _| ok("", "[]")).await;
    let (client, _) = client(&fake);
    for slug in ["..", "a/../../admin", "upcoming", ""] {
        let fetched = client.fetch(&token_request(Endpoint::UnlockEvents, slug), None, None).await;
        assert_eq!(failure(&fetched).kind, FailureKind::NotFound);
    }
    client.fetch(&token_request(Endpoint::UnlockEvents, "a?b#c é%2f"), None, None).await;
    assert_eq!(
        fake.targets().first().and_then(|target| target.split('?').next()),
        Some("/v5/unlock/events/a%3Fb%23c%20%C3%A9%252f")
    );
}

#[test]
fn unknown_version_is_rejected() {
    let mut source = source("http://127.0.0.1:1");
    source.burn = EndpointVersion::V(3);
    let error = Client::new(&source, Clock::manual(now())).expect_err("no v3 of burn").to_string();
    assert_eq!(error, "source.burn = \"v3\" does not exist: use \"auto\" or one of \"v1\", \"v5\"");
}
