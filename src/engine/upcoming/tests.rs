use serde_json::json;

use super::*;
use model::{FeedState, Token, Tracked};

fn snapshot(events: &[serde_json::Value], has_schedule: bool) -> TokenSnapshot {
    let feed = FeedState { baseline_at: has_schedule.then(Timestamp::default), ..Default::default() };
    TokenSnapshot {
        token: Token::unknown("arbitrum".into()),
        feeds: vec![(Endpoint::UnlockEvents, feed)],
        headers: Vec::new(),
        records: events
            .iter()
            .map(|event| Tracked {
                key: event["unlockDate"].as_str().expect("dated").into(),
                record: Record::Unlock(serde_json::from_value(event.clone()).expect("an event")),
            })
            .collect(),
        alerts: Vec::new(),
    }
}

fn event(date: &str, amount: f64, value: f64) -> serde_json::Value {
    json!({"unlockDate": date, "latestUpdateDate": "2026-01-01T00:00:00Z",
           "cliffUnlocks": {"cliffAmount": amount, "cliffValue": value, "valueToMarketCap": 1.5}})
}

fn row(event: serde_json::Value) -> wire::UpcomingItem {
    serde_json::from_value(json!({"tokenId": "arbitrum", "upcomingEvent": event})).expect("a row")
}

fn now() -> Timestamp {
    wire::parse_timestamp("2026-12-01T00:00:00Z").expect("a timestamp")
}

#[test]
fn a_token_never_read_is_known_by_its_next_event_and_what_passed_stays() {
    let before = snapshot(&[event("2026-11-16T00:00:00Z", 1.0, 1.0)], false);
    let reconciled = reconcile(&before, &row(event("2026-12-16T00:00:00Z", 2.0, 2.0)), 1e-9, now());
    assert!(matches!(&reconciled.put[..], [put] if put.key.as_str() == "2026-12-16"));
    assert!(!reconciled.is_stale);
}

#[test]
fn the_next_event_of_a_token_never_read_stays_itself_when_it_moves() {
    let before = snapshot(&[event("2026-12-16T00:00:00Z", 1.0, 1.0)], false);
    let reconciled = reconcile(&before, &row(event("2026-12-20T00:00:00Z", 1.0, 1.0)), 1e-9, now());
    assert!(matches!(&reconciled.put[..], [put] if put.key.as_str() == "2026-12-16T00:00:00Z" && put.is_new_version));
}

#[test]
fn a_new_price_freshens_the_event_and_is_no_new_version() {
    let before = snapshot(&[event("2026-12-16T00:00:00Z", 2.0, 2.0)], true);
    let reconciled = reconcile(&before, &row(event("2026-12-16T00:00:00Z", 2.0, 3.0)), 1e-9, now());
    assert!(matches!(&reconciled.put[..], [put] if !put.is_new_version));
    assert!(!reconciled.is_stale);
}

#[test]
fn another_date_another_amount_or_a_newer_mark_asks_for_the_schedule_and_changes_nothing() {
    let before = snapshot(&[event("2026-12-16T00:00:00Z", 2.0, 2.0)], true);
    let mut marked = event("2026-12-16T00:00:00Z", 2.0, 2.0);
    marked["latestUpdateDate"] = json!("2026-02-01T00:00:00Z");
    for said in [event("2026-12-17T00:00:00Z", 2.0, 2.0), event("2026-12-16T00:00:00Z", 2.5, 2.5), marked] {
        let reconciled = reconcile(&before, &row(said), 1e-9, now());
        assert_eq!(reconciled, Reconciled { is_stale: true, ..Default::default() });
    }
}
