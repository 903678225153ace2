//! Tests of rate limits, credit limits, concurrency, and the breaker.

use super::*;

#[tokio::test]
async fn fetch_waits_for_a_short_retry_after() {
    let fake =
        FakeServer::start(
            |number, _| {
                if number == 0 { reply("429 Too Many Requests", "retry-after: 1\r\n", "") } else { ok("", BURNS) }
            },
        )
        .await;
    let (client, _) = client(&fake);
    let began = std::time::Instant::now();
    let fetched = client.fetch(&burns(), None, None).await;
    fresh(&fetched);
    assert_eq!((fetched.credits, fetched.requests), (1, 2));
    assert!(began.elapsed() >= Duration::from_millis(900));
}

#[tokio::test]
async fn long_retry_after_ends_the_fetch_and_delays_the_next() {
    let date = (now() + TimeDelta::minutes(20)).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for (header, minutes) in [("1200".to_owned(), 20), (date, 20), ("999999".to_owned(), 60)] {
        let header = format!("retry-after: {header}\r\n");
        let fake =
            FakeServer::start(move |_, _| reply("429 Too Many Requests", &header, r#"{"errorMessage":"slow down"}"#)).await;
        let (client, clock) = client(&fake);
        let fetched = client.fetch(&burns(), None, None).await;
        let expected = Some(now() + TimeDelta::minutes(minutes));
        assert_eq!((failure(&fetched).kind, failure(&fetched).retry_at), (FailureKind::RateLimited, expected));
        let fetched = client.fetch(&events(), None, None).await;
        assert_eq!((failure(&fetched).kind, failure(&fetched).retry_at, fake.count()), (FailureKind::RateLimited, expected, 1));
        clock.set(now() + TimeDelta::minutes(minutes));
        client.fetch(&burns(), None, None).await;
        assert!(fake.count() > 1, "requests are sent again after the wait");
    }
}

#[tokio::test]
async fn a_429_after_the_last_credit_is_an_exhausted_quota() {
    let fake = FakeServer::start(|number, _| {
        if number == 0 {
            ok(r#","credit":{"used":1000,"limit":1000,"resetAt":"2026-04-01T00:00:00Z"}"#, BURNS)
        } else {
            reply("429 Too Many Requests", "", "")
        }
    })
    .await;
    let (client, _) = client(&fake);
    fresh(&client.fetch(&burns(), None, None).await);
    let fetched = client.fetch(&burns(), None, None).await;
    let resets = wire::parse_timestamp("2026-04-01T00:00:00Z");
    assert_eq!((failure(&fetched).kind, failure(&fetched).retry_at), (FailureKind::QuotaExhausted, resets));
    assert_eq!((fetched.requests, fetched.credits), (1, 0), "no retry");
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!((failure(&fetched).kind, fake.count()), (FailureKind::QuotaExhausted, 2), "no request is sent until the reset");
    let inside = |_: usize, _: &str| reply("200 OK", "", r#"{"status":false,"statusCode":429,"errorMessage":"Too many"}"#);
    assert_eq!(fails(inside, &burns()).await.0.kind, FailureKind::RateLimited);
}

#[tokio::test]
async fn fetch_stays_within_its_credits() {
    let fake =
        FakeServer::start(
            |_, target| {
                if target.contains("page=2&") { pages(2, 2, 3, &rows(&[3])) } else { pages(1, 2, 3, &rows(&[1, 2])) }
            },
        )
        .await;
    let (client, _) = client(&fake);
    let none = client.fetch(&events(), None, Some(0)).await;
    assert_eq!((failure(&none).kind, none.requests), (FailureKind::QuotaExhausted, 0));
    let one = client.fetch(&events(), None, Some(1)).await;
    assert_eq!((failure(&one).kind, one.credits), (FailureKind::Deferred, 1));
    let two = client.fetch(&events(), None, Some(2)).await;
    assert_eq!((event_days(&two).len(), two.credits), (3, 2));
    assert!(client.breaker().is_closed(), "the client's own limit does not open the breaker");
}

#[tokio::test]
async fn repeated_failures_open_the_breaker_and_a_probe_closes_it() {
    let down = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let switch = Arc::clone(&down);
    let fake =
        FakeServer::start(
            move |_, _| {
                if switch.load(Ordering::SeqCst) { reply("503 Service Unavailable", "", "") } else { ok("", BURNS) }
            },
        )
        .await;
    let (client, clock) = client(&fake);
    for _ in 0..5 {
        assert_eq!(failure(&client.fetch(&burns(), None, None).await).kind, FailureKind::ServerError);
    }
    assert_eq!(fake.count(), 15);
    let fetched = client.fetch(&burns(), None, None).await;
    assert_eq!((failure(&fetched).kind, fake.count()), (FailureKind::Suspended, 15));
    assert!(failure(&fetched).message.contains("503"), "the cause is missing: {}", failure(&fetched));
    clock.set(now() + TimeDelta::seconds(31));
    down.store(false, Ordering::SeqCst);
    fresh(&client.fetch(&burns(), None, None).await);
    assert!(client.breaker().is_closed());
}

#[tokio::test]
async fn concurrent_fetches_are_limited() {
    let busy = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&busy);
    let fake = FakeServer::start(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        FakeReply::Mute
    })
    .await;
    let mut source = source(&fake.address);
    source.concurrency = 2;
    let (client, _) = tuned(&source);
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.fetch(&burns(), None, None).await })
        })
        .collect();
    let deadline = std::time::Instant::now() + Duration::from_secs(5);
    while busy.load(Ordering::SeqCst) < 2 && std::time::Instant::now() < deadline {
        tokio::task::yield_now().await;
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(busy.load(Ordering::SeqCst), 2);
    for task in tasks {
        task.abort();
    }
}
