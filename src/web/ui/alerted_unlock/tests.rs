use super::*;
use model::{Change, ChangeKind, Record, Token, TokenId, Tracked};
use testkit::time;

const NOW: &str = "2026-03-09T12:00:00Z";

fn event(date: &str, parts: &[(&str, Option<f64>)]) -> UnlockEvent {
    let part = |(name, amount): &(&str, Option<f64>)| {
        serde_json::json!({"allocationName": name, "standardAllocationName": "Founder / Team", "unlockDate": date,
            "cliffAmount": amount, "cliffValue": amount.map(|amount| amount * 2.0)})
    };
    let total: f64 = parts.iter().filter_map(|(_, amount)| *amount).sum();
    let parts: Vec<_> = parts.iter().map(part).collect();
    let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": total, "cliffValue": total * 2.0,
        "valueToMarketCap": 2.5, "allocationBreakdown": parts}});
    serde_json::from_value(event).expect("an event")
}

fn snapshot(events: &[UnlockEvent]) -> TokenSnapshot {
    let tracked = |(number, event): (usize, &UnlockEvent)| Tracked {
        key: format!("k{number}").as_str().into(),
        record: Record::Unlock(event.clone().into()),
    };
    let records = events.iter().enumerate().map(tracked).collect();
    TokenSnapshot { records, ..TokenSnapshot::of(Token::unknown(TokenId::from("arb"))) }
}

#[test]
fn recipients_have_values_and_parts_and_unknown_ones_come_last() {
    let event = event("2026-03-16T13:00:00Z", &[("Seed", None), ("Investors", Some(1e6)), ("Team", Some(3e6))]);
    let unlock = AlertedUnlock::of(&event, None, None, &[], time(NOW)).expect("an unlock");
    let rows: Vec<_> = unlock.recipients.iter().map(|row| (row.name.as_str(), row.amount, row.value, row.percent)).collect();
    assert_eq!(
        rows,
        [("Team", Some(3e6), Some(6e6), Some(75.0)), ("Investors", Some(1e6), Some(2e6), Some(25.0)), ("Seed", None, None, None)]
    );
    assert_eq!((unlock.value, unlock.share, unlock.when.as_str()), (Some(8e6), Some(2.5), "on 16 Mar 2026, 13:00 UTC"));
    assert!(!unlock.time_until.is_empty() && unlock.plot.is_none());
}

#[test]
fn schedule_marks_this_unlock_and_shows_the_one_before() {
    let before = event("2026-03-16T13:00:00Z", &[("Team", Some(3e6))]);
    let (after, other) =
        (event("2026-09-20T13:00:00Z", &[("Team", Some(3e6))]), event("2027-03-16T13:00:00Z", &[("Team", Some(3e6))]));
    let snapshot = snapshot(&[after.clone(), other.clone()]);
    let unlock = AlertedUnlock::of(&after, Some(&snapshot), None, &[], time(NOW)).expect("an unlock");
    let chart = unlock.plot.expect("a chart").chart;
    assert!(
        chart.wide.contains("this unlock: $6.00M, on 20 Sep 2026") && !chart.wide.contains("class=\"ghost\""),
        "{}",
        chart.wide
    );
    let change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from("arb"));
    let row = ChangeRow {
        id: 1,
        at: time(NOW),
        token: "arb".into(),
        symbol: None,
        resource: Resource::Unlock,
        key: Some("k0".into()),
        change,
    };
    let version = |key: &str, at: &str, event: &UnlockEvent| VersionRow {
        resource: Resource::Unlock,
        key: key.into(),
        at: time(at),
        record: Some(Record::Unlock(event.clone().into())),
    };
    let versions = [version("k0", "2026-01-01", &before), version("k0", NOW, &after), version("k1", "2026-01-01", &other)];
    let unlock = AlertedUnlock::of(&after, Some(&snapshot), Some(&row), &versions, time(NOW)).expect("an unlock");
    assert!(unlock.has_former && unlock.plot.is_some_and(|plot| plot.chart.wide.contains("class=\"ghost\"")));
}

#[test]
fn event_without_cliff_has_no_part() {
    let part = serde_json::json!({"allocationName": "Team", "linearAmount": 5.0});
    let event = serde_json::json!({"unlockDate": "2026-03-16T13:00:00Z", "linearUnlocks": {"allocationBreakdown": [part]}});
    let linear: UnlockEvent = serde_json::from_value(event).expect("an event");
    assert!(AlertedUnlock::of(&linear, None, None, &[], time(NOW)).is_none());
}
