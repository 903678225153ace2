//! The texts of open alerts as time passes: every place that shows an alert states what is true then.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Browser, alert_of};
use crate::http::tests::{LOCAL, TestServer, now, run};
use chrono::TimeDelta;
use model::{
    Alert, AlertBody, AlertState, Commit, Endpoint, FeedId, FeedState, FeedUpdate, Interval, Notification, NotificationKind,
    Precision, Put, Record, Resource, TokenBody, TokenId, wire,
};

const SLUG: &str = "arbitrum";
const KEY: &str = "cliff";

/// The text that was stored and notified when the alert began to fire.
const STORED: &str = "ARB: $10M (1.00% of market cap) unlocks in 7 days";

/// Stores a token with a cliff in a week and its firing alert. Returns the id of the alert.
async fn store_alert(app: &TestServer) -> String {
    let date = now() + TimeDelta::days(7);
    let item: wire::TokenItem =
        serde_json::from_value(json!({"id": SLUG, "name": "Arbitrum", "symbol": "ARB", "marketCap": 1e9})).expect("a token");
    let event = json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1e7, "cliffValue": 1e7, "valueToMarketCap": 1.0,
        "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 1e7, "unlockPrecision": "second"}]}});
    let record = Record::Unlock(Arc::new(serde_json::from_value(event).expect("an event")));
    let feed = FeedUpdate {
        id: FeedId::of(Endpoint::UnlockEvents, &TokenId::from(SLUG)),
        state: FeedState { baseline_at: Some(now()), read_at: Some(now()), tried_at: Some(now()), ..FeedState::default() },
        put: vec![Put { key: KEY.into(), record, is_new_version: true }],
        removed: Vec::new(),
        header: None,
    };
    let body = AlertBody {
        annotations: [("summary".to_owned(), STORED.to_owned())].into(),
        token: Some(TokenBody { id: SLUG.into(), name: "Arbitrum".into(), symbol: "ARB".into() }),
        resource: Some(Resource::Unlock),
        ..AlertBody::firing("al_texts".into(), "BigCliff", "lead 7d", now())
    };
    let notification = Notification {
        id: "no_texts".into(),
        alert: body.id.clone(),
        kind: NotificationKind::Firing,
        at: now(),
        receivers: vec!["ops".into()],
        body,
    };
    let alert = Alert {
        key: Some(KEY.into()),
        due: Interval::of(date, Precision::Second),
        ..alert_of(&notification, AlertState::Firing)
    };
    let id = alert.id.to_string();
    let (alerts, notifications) = (vec![alert], vec![notification]);
    let commit = Commit { at: now(), tokens: vec![item], feeds: vec![feed], alerts, notifications, ..Commit::default() };
    app.store.commit(commit).await.expect("committed");
    id
}

#[tokio::test]
async fn relative_time_of_a_firing_alert_is_never_stale() {
    let app = run(None, None).await;
    let id = store_alert(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (hour, day) = (TimeDelta::hours(1), TimeDelta::days(1));
    for (passed, expected) in [
        (TimeDelta::zero(), "(in 7 days)"),
        (day * 3, "(in 4 days)"),
        (day * 6, "(in 1 day)"),
        (day * 6 + hour * 20, "(in 4 h)"),
        (day * 7 + hour, "unlocked on"),
        (day * 30, "unlocked on"),
    ] {
        app.clock.set(now() + passed);
        let detail = format!("/alerts/{id}");
        let token = format!("/tokens/{SLUG}");
        for path in ["/alerts", "/", detail.as_str(), token.as_str(), "/digests/desk/preview"] {
            let (status, page) = browser.get(path).await;
            assert_eq!(status, 200, "{path}");
            assert!(page.contains(expected), "{path} after {passed}: {expected} is missing\n{page}");
            // The page of the alert names the notified text as such.
            let claims = page.matches("unlocks in 7 days").count();
            assert_eq!(claims > 0, path == detail, "{path} after {passed}\n{page}");
        }
        for path in ["GET /api/v1/alerts", &format!("GET /api/v1/alerts/{id}")] {
            let (_, response) = app.request(path, LOCAL).await;
            let body = response.split("\r\n\r\n").nth(1).unwrap_or_default();
            let body: Value = serde_json::from_str(body).expect("JSON");
            let alert = body.get(0).unwrap_or(&body);
            assert!(alert["summary"].as_str().is_some_and(|text| text.contains(expected)), "{path} after {passed}: {body}");
        }
    }
    let stored = app.store.alert(id.as_str().into()).await.expect("read").expect("an alert");
    assert_eq!(stored.annotations["summary"], STORED, "showing an alert changes nothing");
}
