use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;

use super::*;

#[test]
fn feeds_previews_and_long_lists_are_heavy() {
    for heavy in [
        "/calendar.ics",
        "/feed.atom?limit=1",
        "/feeds/0123/calendar.ics",
        "/feeds/0123/feed.atom",
        "/digests",
        "/digests/desk/preview",
        "/silences/preview",
        "/api/v1/silences/preview?matcher=a%3Db",
        "/api/v1/changes?limit=201",
        "/api/v1/alerts?state=firing&limit=10000",
        "/api/v1/upcoming?rule=BigCliff",
        "/api/v1/tokens/arbitrum",
    ] {
        assert!(is_heavy(&heavy.parse().expect("a path")), "{heavy}");
    }
    for light in [
        "/",
        "/tokens/arbitrum",
        "/changes?limit=10000",
        "/alerts",
        "/api/v1/status",
        "/api/v1/changes",
        "/api/v1/changes?limit=200",
        "/api/v1/changes?rule=x",
        "/api/v1/upcoming?limit=many",
        "/-/ready",
        "/metrics",
    ] {
        assert!(!is_heavy(&light.parse().expect("a path")), "{light}");
    }
}

#[tokio::test]
async fn slow_response_becomes_a_clear_error() {
    let response = limit_time_to(Duration::from_millis(1), std::future::pending()).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key(RETRY_AFTER));
    let fast = limit_time_to(Duration::from_secs(60), async { "ok".into_response() }).await;
    assert_eq!(fast.status(), StatusCode::OK);
}

#[tokio::test]
async fn body_keeps_its_slot_until_it_is_read() {
    let slots = Arc::new(Semaphore::new(1));
    let text = "x".repeat(PART_BYTES * 2 + 7);
    let slot = ResponseSlot(Arc::new(slots.clone().acquire_owned().await.expect("a slot")));
    let mut body = HeavyBody::new(Body::from(text.clone()), slot);
    assert_eq!(body.size_hint().exact(), Some(text.len() as u64), "clients see the length");
    let mut read = Vec::new();
    while !body.is_end_stream() {
        assert_eq!(slots.available_permits(), 0);
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let part = frame.expect("a part").expect("no error").into_data().expect("data");
        assert!(part.len() <= PART_BYTES);
        read.extend_from_slice(&part);
        assert_eq!(body.size_hint().exact(), Some((text.len() - read.len()) as u64));
    }
    assert_eq!(read, text.as_bytes());
    drop(body);
    assert_eq!(slots.available_permits(), 1);
}
