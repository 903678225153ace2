//! The pages, as they are asked for: what they are, what goes with them, and what they answer to what cannot be.

use super::*;

#[tokio::test]
async fn pages_come_with_a_policy_that_lets_in_nothing_else() {
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
        "/changes?token=ARB",
    ] {
        let (status, text) = app.ask(&format!("GET {path}"), LOCAL).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(text.contains("content-type: text/html; charset=utf-8") && text.contains("</html>"), "{path}");
        assert!(text.contains("script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'"), "{path}: {text}");
        assert!(!text.contains("unsafe") && !text.contains(" style=") && !text.contains("<style"), "{path}");
    }
    let (_, text) = app.ask("GET /", LOCAL).await;
    assert!(text.contains(">arbitrum</bdi>") && text.contains("$9.00M"), "the overview tells what is ahead: {text}");
}

#[tokio::test]
async fn what_there_is_not_is_404_with_a_way_on() {
    let app = run(None, None).await;
    let (status, text) = app.ask("GET /tokens/nobody", LOCAL).await;
    assert!(status == 404 && text.contains("value=\"nobody\"") && text.contains("type=\"search\""), "{text}");
    let (status, text) = app.ask("GET /changes?kind=resised", LOCAL).await;
    assert!(status == 400 && text.contains("Did you mean resized?"), "{text}");
    let (status, text) = app.ask("GET /nothing", &format!("{LOCAL}Accept: text/html,*/*\r\n")).await;
    assert!(status == 404 && text.contains("<h1>Nothing here</h1>"), "{text}");
    let (status, text) = app.ask("GET /nothing", LOCAL).await;
    assert!(status == 404 && text.ends_with("there is nothing here\n"), "{text}");
}

#[tokio::test]
async fn assets_are_open_and_kept_for_ever_and_pages_are_neither() {
    let app = run(Some("t0ken"), Some("0.0.0.0:9797")).await;
    let (status, text) = app.ask(&format!("GET {}", crate::ui::asset::STYLE.href), "Host: any\r\n").await;
    assert!(status == 200 && text.contains("max-age=31536000, immutable") && text.contains("text/css"), "{status}");
    assert_eq!(app.ask("GET /assets/style.css", "Host: any\r\n").await.0, 404);
    for path in ["/tokens", "/tokens/arbitrum", "/changes", "/events"] {
        assert_eq!(app.ask(&format!("GET {path}"), "Host: any\r\n").await.0, 401, "{path}");
    }
    let (_, text) = app.ask("GET /tokens", "Host: any\r\nAuthorization: Bearer t0ken\r\n").await;
    assert!(text.contains("cache-control: no-store"), "{text}");
}

#[tokio::test]
async fn the_overview_is_of_now_as_soon_as_something_is_new() {
    let app = run(None, None).await;
    let (_, text) = app.ask("GET /", LOCAL).await;
    assert!(!text.contains("arbitrum"), "{text}");
    with_unlocks(&app).await;
    // Without a row of the poll log nothing says so, and what was read a moment ago stands.
    let poll = model::PollEntry {
        endpoint: Endpoint::UnlockEvents,
        token: None,
        at: now(),
        took_ms: 1,
        outcome: model::PollEntryOutcome::Fresh,
        status: Some(200),
        requests: 1,
        credits: 1,
        bytes: 1,
        version: None,
        records: 1,
        error: None,
        oddities: Vec::new(),
        oddities_total: 0,
    };
    app.store.commit(Commit { at: now(), polls: vec![poll], ..Commit::default() }).await.expect("committed");
    let (_, text) = app.ask("GET /", LOCAL).await;
    assert!(text.contains("arbitrum"), "{text}");
}

#[tokio::test]
async fn news_are_told_as_events() {
    let app = run(None, None).await;
    let mut stream = TcpStream::connect(app.address).await.expect("a connection");
    stream.write_all(format!("GET /events HTTP/1.1\r\n{LOCAL}\r\n").as_bytes()).await.expect("sent");
    let mut heard = String::new();
    while !heard.contains("retry: 5000") {
        let mut some = [0_u8; 1024];
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut some)).await.expect("in time").expect("heard");
        assert!(read > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    assert!(heard.contains("content-type: text/event-stream") && !heard.contains("content-encoding"), "{heard}");
    // The daemon ends although somebody listens.
    app.stop.cancel();
    tokio::time::timeout(Duration::from_secs(3), app.served).await.expect("ends at once").expect("no panic").expect("no error");
}
