//! Pages: headers, errors, caching, and events.

use super::*;

#[tokio::test]
async fn pages_have_a_strict_content_security_policy() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    for path in [
        "/",
        "/?by=share",
        "/?by=nonsense",
        "/tokens",
        "/tokens?sort=nonsense&q=arb",
        "/tokens/arbitrum",
        "/changes",
        "/changes?token=ARBITRUM",
    ] {
        let (status, text) = app.request(&format!("GET {path}"), LOCAL).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(text.contains("content-type: text/html; charset=utf-8") && text.contains("</html>"), "{path}");
        assert!(text.contains("script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'"), "{path}: {text}");
        assert!(!text.contains("unsafe") && !text.contains(" style=") && !text.contains("<style"), "{path}");
    }
    let (_, text) = app.request("GET /", LOCAL).await;
    assert!(text.contains(">arbitrum</bdi>") && text.contains("$9.00M"), "the overview lists upcoming unlocks: {text}");
}

#[tokio::test]
async fn missing_pages_return_404_with_a_search() {
    let app = run(None, None).await;
    let (status, text) = app.request("GET /tokens/unknown", LOCAL).await;
    assert!(status == 404 && text.contains("value=\"unknown\"") && text.contains("type=\"search\""), "{text}");
    let (status, text) = app.request("GET /changes?kind=resised", LOCAL).await;
    assert!(status == 400 && text.contains("Did you mean resized?"), "{text}");
    let (_, text) = app.request("GET /changes?kind=moved", LOCAL).await;
    assert!(text.contains("Did you mean rescheduled?"), "{text}");
    let (_, text) = app.request("GET /api/v1/changes?kind=moved", LOCAL).await;
    assert!(text.contains("\"suggestions\":[\"rescheduled\"]"), "{text}");
    let (status, text) = app.request("GET /nothing", &format!("{LOCAL}Accept: text/html,*/*\r\n")).await;
    assert!(status == 404 && text.contains("<h1>Not found</h1>"), "{text}");
    let (status, text) = app.request("GET /nothing", LOCAL).await;
    assert!(status == 404 && text.contains("application/problem+json") && text.contains("\"not_found\""), "{text}");
}

#[tokio::test]
async fn assets_need_no_token_and_are_cached() {
    let app = run(Some("t0ken"), Some("0.0.0.0:9797")).await;
    let (status, text) = app.request(&format!("GET {}", crate::ui::asset::STYLE.href), "Host: any\r\n").await;
    assert!(status == 200 && text.contains("max-age=31536000, immutable") && text.contains("text/css"), "{status}");
    assert_eq!(app.request("GET /assets/style.css", "Host: any\r\n").await.0, 404);
    for path in ["/tokens", "/tokens/arbitrum", "/changes", "/events"] {
        assert_eq!(app.request(&format!("GET {path}"), "Host: any\r\n").await.0, 401, "{path}");
    }
    let (_, text) = app.request("GET /tokens", "Host: any\r\nAuthorization: Bearer t0ken\r\n").await;
    assert!(text.contains("cache-control: no-store"), "{text}");
}

#[tokio::test]
async fn overview_and_digests_show_new_supply_at_once() {
    let app = run(None, None).await;
    for page in ["/", "/digests", "/digests/desk/preview"] {
        let (_, text) = app.request(&format!("GET {page}"), LOCAL).await;
        assert!(!text.contains("arbitrum"), "{page}: {text}");
    }
    let feeds = vec![schedule("arbitrum", &[("2026-09-25T13:00:00Z", 9e6)], now())];
    app.store.commit(Commit { at: now(), feeds, ..Commit::default() }).await.expect("committed");
    for seconds in [0, 6, 70] {
        app.clock.pass(chrono::TimeDelta::seconds(seconds));
        for page in ["/", "/digests", "/digests/desk/preview"] {
            let (_, text) = app.request(&format!("GET {page}"), LOCAL).await;
            assert!(text.contains("arbitrum"), "{page}: {text}");
        }
    }
}

#[tokio::test]
async fn events_stream_starts_and_ends_with_the_daemon() {
    let app = run(None, None).await;
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    stream.write_all(format!("GET /events HTTP/1.1\r\n{LOCAL}\r\n").as_bytes()).await.expect("sent");
    let mut received = String::new();
    while !received.contains("retry: 5000") {
        let mut some = [0_u8; 1024];
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut some)).await.expect("in time").expect("read");
        assert!(read > 0, "{received}");
        received.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    assert!(received.contains("content-type: text/event-stream") && !received.contains("content-encoding"), "{received}");
    // An open stream does not delay the shutdown.
    app.stop.cancel();
    tokio::time::timeout(Duration::from_secs(3), app.served).await.expect("ends at once").expect("no panic").expect("no error");
}
