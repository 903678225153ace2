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
fn next_event_becomes_a_new_record_and_passed_event_stays() {
    let before = snapshot(&[event("2026-11-16T00:00:00Z", 1.0, 1.0)], false);
    let reconciled = reconcile(&before, &row(event("2026-12-16T00:00:00Z", 2.0, 2.0)), 1e-9, now());
    assert!(matches!(&reconciled.put[..], [put] if put.key.as_str() == "2026-12-16"));
    assert!(!reconciled.is_stale);
}

#[test]
fn moved_next_event_keeps_its_key() {
    let before = snapshot(&[event("2026-12-16T00:00:00Z", 1.0, 1.0)], false);
    let reconciled = reconcile(&before, &row(event("2026-12-20T00:00:00Z", 1.0, 1.0)), 1e-9, now());
    assert!(matches!(&reconciled.put[..], [put] if put.key.as_str() == "2026-12-16T00:00:00Z" && put.is_new_version));
}

#[test]
fn price_change_updates_the_event_without_a_new_version() {
    let before = snapshot(&[event("2026-12-16T00:00:00Z", 2.0, 2.0)], true);
    let reconciled = reconcile(&before, &row(event("2026-12-16T00:00:00Z", 2.0, 3.0)), 1e-9, now());
    assert!(matches!(&reconciled.put[..], [put] if !put.is_new_version));
    assert!(!reconciled.is_stale);
}

#[test]
fn different_date_amount_or_mark_only_marks_the_schedule_stale() {
    let before = snapshot(&[event("2026-12-16T00:00:00Z", 2.0, 2.0)], true);
    let mut marked = event("2026-12-16T00:00:00Z", 2.0, 2.0);
    marked["latestUpdateDate"] = json!("2026-02-01T00:00:00Z");
    for different in [event("2026-12-17T00:00:00Z", 2.0, 2.0), event("2026-12-16T00:00:00Z", 2.5, 2.5), marked] {
        let reconciled = reconcile(&before, &row(different), 1e-9, now());
        assert_eq!(reconciled, Reconciled { is_stale: true, ..Default::default() });
    }
}

fn with_share(value: serde_json::Value, price: serde_json::Value) -> serde_json::Value {
    json!({"unlockDate": "2026-12-16T00:00:00Z", "latestUpdateDate": "2026-01-01T00:00:00Z",
        "cliffUnlocks": {"cliffAmount": 2.0, "cliffValue": 3.0, "valueToMarketCap": 1.5, "allocationBreakdown": [
            {"allocationName": "Team", "cliffAmount": 2.0, "cliffValue": value, "referencePrice": price,
             "referencePriceUpdatedTime": "2026-11-01T00:00:00Z"}]}})
}

fn unlock(put: &Put) -> wire::UnlockEvent {
    match &put.record {
        Record::Unlock(event) => (**event).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn null_value_or_price_keeps_the_known_one() {
    let before = snapshot(&[with_share(json!(3.0), json!(1.5))], true);
    let reconciled = |event: serde_json::Value| reconcile(&before, &row(event), 1e-9, now());
    assert_eq!(reconciled(with_share(json!(null), json!(null))), Reconciled::default());
    let priced = reconciled(with_share(json!(null), json!(1.75)));
    let share = unlock(&priced.put[0]).cliff_unlocks.get().expect("cliffs").allocation_breakdown.items()[0].clone();
    assert_eq!((share.cliff_value.copied(), share.reference_price.copied()), (Some(3.0), Some(1.75)));
    // A different amount of one share is a correction, even if the total is the same.
    let mut other = with_share(json!(2.0), json!(1.5));
    other["cliffUnlocks"]["allocationBreakdown"][0]["cliffAmount"] = json!(1.5);
    assert!(reconciled(other).is_stale);
}

#[test]
fn row_without_amounts_keeps_the_known_ones() {
    let known = with_share(json!(3.0), json!(1.5));
    let before = snapshot(std::slice::from_ref(&known), false);
    let mut gaps = vec![with_share(json!(null), json!(null)), known.clone(), known.clone(), known.clone()];
    gaps[1]["cliffUnlocks"] = json!(null);
    gaps[2]["cliffUnlocks"]["allocationBreakdown"] = json!(null);
    gaps[3]["cliffUnlocks"]["cliffAmount"] = json!(null);
    gaps[3]["cliffUnlocks"]["cliffValue"] = json!(null);
    for gap in gaps {
        for put in reconcile(&before, &row(gap.clone()), 1e-9, now()).put {
            let (is, was) = (
                unlock(&put),
                unlock(&Put { key: put.key.clone(), record: before.records[0].record.clone(), is_new_version: false }),
            );
            assert_eq!((is.cliff_amount(), is.cliff_value()), (was.cliff_amount(), was.cliff_value()), "{gap}");
            assert_eq!(is.cliff_unlocks, was.cliff_unlocks, "{gap}");
            assert!(!put.is_new_version, "{gap}");
        }
    }
    // A row that moves the event but leaves everything else out is not applied.
    let empty = json!({"unlockDate": "2026-12-20T00:00:00Z", "cliffUnlocks": null});
    assert_eq!(reconcile(&before, &row(empty), 1e-9, now()).put, []);
}
