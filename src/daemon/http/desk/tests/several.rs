//! Several alerts at once, lists of a time, and a digest that is sent as a test.

use super::*;

#[tokio::test]
async fn several_alerts_are_chosen_previewed_and_acknowledged_or_silenced_at_once() {
    let app = run(Some(TOKEN), None).await;
    let other = |mut notification: Notification, token: &str| {
        notification.alert = format!("al_{token}").into();
        notification.id = model::notification_id(&notification.alert, "firing");
        notification.body.labels.insert("alertname".into(), notification.body.rule.clone());
        notification.body.labels.insert("token".into(), token.into());
        notification.body.event = Some(format!("unlock/{token}"));
        notification
    };
    let one = told(&app, other(samples::unlock(), "arbitrum"), AlertState::Firing).await;
    let two = told(&app, other(samples::unlock(), "aptos"), AlertState::Firing).await;
    let past = told(&app, other(samples::unlock(), "sui"), AlertState::Resolved).await;
    let (_, page) = Browser::new(&app, LOCAL).see("/alerts").await;
    assert!(!page.contains("type=\"checkbox\" form="), "who cannot act chooses nothing");
    let mut browser = Browser::inside(&app).await;
    let (_, page) = browser.see("/alerts?severity=warning").await;
    is_sound("/alerts", &page);
    assert_eq!(page.matches("type=\"checkbox\" form=").count(), 2, "what is over cannot be chosen: {page}");
    let (_, page) = browser.see("/alerts?severity=warning&chosen=all").await;
    assert_eq!(page.matches(" checked").count(), 2, "{page}");

    let back = ("back", "/alerts?severity=warning");
    let (_, nothing) = browser.post("/alerts/chosen", &[back, ("act", "acknowledge")]).await;
    assert_eq!(location(&nothing), "/alerts?severity=warning&done=none-chosen");
    let chosen = [back, ("alert", one.as_str()), ("alert", &two), ("alert", &past), ("alert", "al_unknown"), ("alert", &one)];
    let with = |more: &[(&'static str, &'static str)]| [&chosen[..], more].concat();
    let (status, page) = browser.post("/alerts/chosen", &with(&[("act", "acknowledge")])).await;
    is_sound("/alerts/chosen", &page);
    assert!(
        status == 200 && page.contains("Acknowledge 2 alerts") && page.contains("2 of those that were chosen are over"),
        "{page}"
    );
    assert_eq!(app.store.acks().await.expect("read"), [], "a preview does nothing");
    let (_, page) = browser.post("/alerts/chosen/acknowledge", &with(&[("author", "")])).await;
    assert!(page.contains("Nothing was done.") && app.store.acks().await.expect("read").is_empty(), "{page}");
    let (_, done) = browser.post("/alerts/chosen/acknowledge", &with(&[("author", "ann"), ("comment", "hedged")])).await;
    assert_eq!(location(&done), "/alerts?severity=warning&done=acknowledged-some");
    let acks = app.store.acks().await.expect("read");
    assert!(acks.len() == 2 && acks.iter().all(|ack| ack.author == "ann" && ack.comment == "hedged"), "{acks:?}");

    let (_, page) = browser.post("/alerts/chosen", &with(&[("act", "silence")])).await;
    is_sound("/alerts/chosen", &page);
    assert!(
        page.contains("2 silences take them") && page.contains("token=&quot;aptos&quot;") && page.contains("it hides 2 of 2"),
        "{page}"
    );
    let words = [("author", "ann"), ("comment", "known"), ("duration", "soon")];
    let (_, page) = browser.post("/alerts/chosen/silence", &with(&words)).await;
    assert!(page.contains("the duration") && page.contains("value=\"known\""), "what was written stays: {page}");
    assert_eq!(app.store.silences(None).await.expect("read"), [], "all or none");
    let words = [("author", "ann"), ("comment", "known"), ("duration", "4h"), ("back", "https://example.org/")];
    let (_, done) = browser.post("/alerts/chosen/silence", &[&chosen[1..], &words].concat()).await;
    assert_eq!(location(&done), "/alerts?done=silenced-all", "no way leads elsewhere");
    assert_eq!(app.store.silences(None).await.expect("read").len(), 2);

    let mut stranger = Browser::new(&app, LOCAL);
    stranger.see("/alerts").await;
    let (status, _) = stranger.post("/alerts/chosen/silence", &with(&words)).await;
    assert_ne!(status, 200, "who has not logged in does nothing");
    assert_eq!(app.store.silences(None).await.expect("read").len(), 2);
}

#[tokio::test]
async fn a_list_is_of_a_time_when_one_asks_for_it() {
    let app = run(Some(TOKEN), None).await;
    let id = told(&app, samples::unlock(), AlertState::Firing).await;
    let (_, page) = Browser::new(&app, LOCAL).see("/alerts?since=24h").await;
    is_sound("/alerts", &page);
    assert!(
        page.contains(&id) && page.contains("<a class=\"chip\" href=\"/alerts?since=24h\" aria-current=\"true\">24 h"),
        "{page}"
    );
    let day = (now() - chrono::TimeDelta::days(1)).format("%Y-%m-%d").to_string();
    for path in ["/alerts", "/deliveries", "/changes"] {
        let (status, page) = Browser::new(&app, LOCAL).see(&format!("{path}?since=7d&to={day}")).await;
        is_sound(path, &page);
        assert!(status == 200 && page.contains(" fits.") && page.contains(&format!("value=\"{day}\"")), "{path}: {page}");
        let (_, page) = Browser::new(&app, LOCAL).see(&format!("{path}?since=7d&from={day}")).await;
        assert!(!page.contains("name=\"since\""), "days that are chosen stand for the length: {page}");
        let (status, _) = Browser::new(&app, LOCAL).see(&format!("{path}?from=soon")).await;
        assert_eq!(status, 400);
    }
    let today = now().format("%Y-%m-%d").to_string();
    for (path, total) in [("alerts", "1"), ("outbox", "1"), ("changes", "0")] {
        let (_, answer) = app.ask(&format!("GET /api/{path}?paged=true&from={today}&to={today}"), LOCAL).await;
        assert!(answer.contains(&format!("\"total\":{total}")), "{path}: {answer}");
        let (status, answer) = app.ask(&format!("GET /api/{path}?from={today}&since=1d"), LOCAL).await;
        assert!(status == 400 && answer.contains("give one of them"), "{answer}");
    }
    app.store.close().await.expect("closes");
}

#[tokio::test]
async fn a_digest_is_sent_now_as_a_test_that_takes_no_slot() {
    let app = run(Some(TOKEN), None).await;
    with_unlocks(&app).await;
    let (_, page) = Browser::new(&app, LOCAL).see("/digests").await;
    assert!(!page.contains("/digests/desk/test"), "who cannot act sends nothing");
    let mut browser = Browser::inside(&app).await;
    let (_, page) = browser.see("/digests").await;
    assert!(page.contains("action=\"/digests/desk/test\""), "{page}");
    assert_eq!(location(&browser.post("/digests/desk/test", &[]).await.1), "/digests?done=digest-tested");
    assert_eq!(browser.post("/digests/nobody/test", &[]).await.0, 404);
    let row = app.store.outbox(model::OutboxFilter { limit: 9, ..Default::default() }).await.expect("read").remove(0);
    let told = row.alerts.first().expect("an alert");
    assert!(
        row.receiver.as_str() == "desk" && told.kind == model::NotificationKind::Test && told.summary.starts_with("Digest:"),
        "{row:?}"
    );
    assert_eq!(app.store.job_slots().await.expect("read"), [], "the real one comes at its time");
    let (_, page) = browser.see("/digests").await;
    assert!(page.contains("None was sent yet."), "{page}");
    let due = app.store.due("desk".into(), now(), 9).await.expect("read").remove(0);
    let mail = notify::compose(&notify::Brief { delivery: &due, external_url: None, now: now() }, None).expect("a mail");
    assert!(mail.subject.starts_with("[Test] Digest:"), "{}", mail.subject);
    assert!(
        mail.html.is_some_and(|html| html.contains("No unlock is known")) && mail.text.contains("This is a test"),
        "{}",
        mail.text
    );
}
