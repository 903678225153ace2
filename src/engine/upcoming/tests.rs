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

fn parted(value: serde_json::Value, price: serde_json::Value) -> serde_json::Value {
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
fn a_null_value_or_price_of_a_part_leaves_the_known_one_in_place() {
    let before = snapshot(&[parted(json!(3.0), json!(1.5))], true);
    let said = |event: serde_json::Value| reconcile(&before, &row(event), 1e-9, now());
    assert_eq!(said(parted(json!(null), json!(null))), Reconciled::default());
    let priced = said(parted(json!(null), json!(1.75)));
    let part = unlock(&priced.put[0]).cliff_unlocks.get().expect("cliffs").allocation_breakdown.items()[0].clone();
    assert_eq!((part.cliff_value.copied(), part.reference_price.copied()), (Some(3.0), Some(1.75)));
    // A part of another amount is a correction, though the total is the same.
    let mut other = parted(json!(2.0), json!(1.5));
    other["cliffUnlocks"]["allocationBreakdown"][0]["cliffAmount"] = json!(1.5);
    assert!(said(other).is_stale);
}

#[test]
fn a_token_never_read_keeps_what_its_next_row_leaves_out() {
    let known = parted(json!(3.0), json!(1.5));
    let before = snapshot(std::slice::from_ref(&known), false);
    let mut gaps = vec![parted(json!(null), json!(null)), known.clone(), known.clone(), known.clone()];
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
    // It moves, and says nothing else: it waits until more is known.
    let empty = json!({"unlockDate": "2026-12-20T00:00:00Z", "cliffUnlocks": null});
    assert_eq!(reconcile(&before, &row(empty), 1e-9, now()).put, []);
}
