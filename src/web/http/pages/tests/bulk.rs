//! Bulk actions, time ranges of lists, and test digests.

use super::*;

#[tokio::test]
async fn previews_and_runs_bulk_actions() {
    let app = run(Some(TOKEN), None).await;
    let for_token = |mut notification: Notification, token: &str| {
        notification.alert = format!("al_{token}").into();
        notification.id = model::notification_id(&notification.alert, "firing");
        notification.body.labels.insert("alertname".into(), notification.body.rule.clone());
        notification.body.labels.insert("token".into(), token.into());
        notification.body.event = Some(format!("unlock/{token}"));
        notification
    };
    let one = store_alert(&app, for_token(samples::unlock(), "arbitrum"), AlertState::Firing).await;
    let two = store_alert(&app, for_token(samples::unlock(), "aptos"), AlertState::Firing).await;
    let past = store_alert(&app, for_token(samples::unlock(), "sui"), AlertState::Resolved).await;
    let (_, page) = Browser::new(&app, LOCAL).get("/alerts").await;
    assert!(!page.contains("type=\"checkbox\" form="), "no selection without a session");
    let mut browser = Browser::logged_in(&app).await;
    let (_, page) = browser.get("/alerts?severity=warning").await;
    assert_valid_page("/alerts", &page);
    assert_eq!(page.matches("type=\"checkbox\" form=").count(), 2, "resolved alerts have no checkbox: {page}");
    let (_, page) = browser.get("/alerts?severity=warning&chosen=all").await;
    assert_eq!(page.matches(" checked").count(), 2, "{page}");

    let back = ("back", "/alerts?severity=warning");
    let (_, nothing) = browser.post("/alerts/chosen", &[back, ("act", "acknowledge")]).await;
    assert_eq!(location(&nothing), "/alerts?severity=warning&done=none-chosen");
    let chosen = [back, ("alert", one.as_str()), ("alert", &two), ("alert", &past), ("alert", "al_unknown"), ("alert", &one)];
    let with = |more: &[(&'static str, &'static str)]| [&chosen[..], more].concat();
    let (status, page) = browser.post("/alerts/chosen", &with(&[("act", "acknowledge")])).await;
    assert_valid_page("/alerts/chosen", &page);
    assert!(status == 200 && page.contains("Acknowledge 2 alerts") && page.contains("2 selected alerts have ended"), "{page}");
    assert_eq!(app.store.acks().await.expect("read"), [], "a preview changes nothing");
    let (_, page) = browser.post("/alerts/chosen/acknowledge", &with(&[("author", "")])).await;
    assert!(page.contains("Nothing was done.") && app.store.acks().await.expect("read").is_empty(), "{page}");
    let (_, done) = browser.post("/alerts/chosen/acknowledge", &with(&[("author", "ann"), ("comment", "hedged")])).await;
    assert_eq!(location(&done), "/alerts?severity=warning&done=acknowledged-some");
    let acks = app.store.acks().await.expect("read");
    assert!(acks.len() == 2 && acks.iter().all(|ack| ack.author == "ann" && ack.comment == "hedged"), "{acks:?}");

    let (_, page) = browser.post("/alerts/chosen", &with(&[("act", "silence")])).await;
    assert_valid_page("/alerts/chosen", &page);
    assert!(
        page.contains("2 silences for all alerts")
            && page.contains("token=&quot;aptos&quot;")
            && page.contains("it suppresses 2 of 2"),
        "{page}"
    );
    let fields = [("author", "ann"), ("comment", "known"), ("duration", "soon")];
    let (_, page) = browser.post("/alerts/chosen/silence", &with(&fields)).await;
    assert!(page.contains("the duration") && page.contains("value=\"known\""), "the form keeps its values: {page}");
    assert_eq!(app.store.silences(None).await.expect("read"), [], "one invalid silence prevents all");
    let fields = [("author", "ann"), ("comment", "known"), ("duration", "4h"), ("back", "https://example.org/")];
    let (_, done) = browser.post("/alerts/chosen/silence", &[&chosen[1..], &fields].concat()).await;
    assert_eq!(location(&done), "/alerts?done=silenced-all", "the redirect stays on this server");
    assert_eq!(app.store.silences(None).await.expect("read").len(), 2);

    let mut visitor = Browser::new(&app, LOCAL);
    visitor.get("/alerts").await;
    let (status, _) = visitor.post("/alerts/chosen/silence", &with(&fields)).await;
    assert_ne!(status, 200, "no change without a session");
    assert_eq!(app.store.silences(None).await.expect("read").len(), 2);
}

#[tokio::test]
async fn lists_filter_by_time_range() {
    let app = run(Some(TOKEN), None).await;
    let id = store_alert(&app, samples::unlock(), AlertState::Firing).await;
    let (_, page) = Browser::new(&app, LOCAL).get("/alerts?since=24h").await;
    assert_valid_page("/alerts", &page);
    assert!(
        page.contains(&id) && page.contains("<a class=\"chip\" href=\"/alerts?since=24h\" aria-current=\"true\">24 h"),
        "{page}"
    );
    let day = (now() - chrono::TimeDelta::days(1)).format("%Y-%m-%d").to_string();
    for path in ["/alerts", "/deliveries", "/changes"] {
        let (status, page) = Browser::new(&app, LOCAL).get(&format!("{path}?since=7d&to={day}")).await;
        assert_valid_page(path, &page);
        assert!(
            status == 200 && page.contains(" match these filters.") && page.contains(&format!("value=\"{day}\"")),
            "{path}: {page}"
        );
        let (_, page) = Browser::new(&app, LOCAL).get(&format!("{path}?since=7d&from={day}")).await;
        assert!(!page.contains("name=\"since\""), "`from` replaces `since`: {page}");
        let (status, _) = Browser::new(&app, LOCAL).get(&format!("{path}?from=soon")).await;
        assert_eq!(status, 400);
    }
    let today = now().format("%Y-%m-%d").to_string();
    for (path, total) in [("alerts", "1"), ("outbox", "1"), ("changes", "0")] {
        let (_, response) = app.request(&format!("GET /api/v1/{path}?paged=true&from={today}&to={today}"), LOCAL).await;
        assert!(response.contains(&format!("\"total\":{total}")), "{path}: {response}");
        let (status, response) = app.request(&format!("GET /api/v1/{path}?from={today}&since=1d"), LOCAL).await;
        assert!(status == 400 && response.contains("use one of them"), "{response}");
    }
    app.store.close().await.expect("closes");
}

#[tokio::test]
async fn test_digest_does_not_use_the_slot() {
    let app = run(Some(TOKEN), None).await;
    with_unlocks(&app).await;
    let (_, page) = Browser::new(&app, LOCAL).get("/digests").await;
    assert!(!page.contains("/digests/desk/test"), "no form without a session");
    let mut browser = Browser::logged_in(&app).await;
    let (_, page) = browser.get("/digests").await;
    assert!(page.contains("action=\"/digests/desk/test\""), "{page}");
    assert_eq!(location(&browser.post("/digests/desk/test", &[]).await.1), "/digests?done=digest-tested");
    assert_eq!(browser.post("/digests/unknown/test", &[]).await.0, 404);
    let row = app.store.outbox(model::OutboxFilter { limit: 9, ..Default::default() }).await.expect("read").remove(0);
    let notified = row.alerts.first().expect("an alert");
    assert!(
        row.receiver.as_str() == "desk"
            && notified.kind == model::NotificationKind::Test
            && notified.summary.starts_with("Digest:"),
        "{row:?}"
    );
    assert_eq!(app.store.job_slots().await.expect("read"), [], "the regular digest is still scheduled");
    let (_, page) = browser.get("/digests").await;
    assert!(page.contains("Not sent yet."), "{page}");
    let due = app.store.due("desk".into(), now(), 9).await.expect("read").remove(0);
    let mail = notify::compose(&notify::Brief { delivery: &due, external_url: None, now: now() }, None).expect("a mail");
    assert!(mail.subject.starts_with("[Test] Digest:"), "{}", mail.subject);
    assert!(
        mail.html.is_some_and(|html| html.contains("No known unlocks")) && mail.text.contains("This is a test"),
        "{}",
        mail.text
    );
}
