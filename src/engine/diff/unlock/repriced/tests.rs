use super::*;
use crate::{
    diff::{UnlockPoll, apply, baseline_unlocks, diff_unlocks},
    removal::{ProofPolicy, RemovalProof, ResponseQuality},
};
use model::supply::TokenId;

/// Real schedules, each with the known records after its first response.
fn schedules() -> Vec<(Vec<Tracked>, Vec<UnlockEvent>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/unlock-events");
    let read = |file: Result<std::fs::DirEntry, std::io::Error>| {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let events: Vec<UnlockEvent> = serde_json::from_str(&text).unwrap();
        let put = baseline_unlocks(&[], &events, now());
        (apply(&[], &Diff { put, ..Diff::default() }), events)
    };
    std::fs::read_dir(folder).unwrap().map(read).collect()
}

fn now() -> Timestamp {
    "2026-03-09T00:00:00Z".parse().unwrap()
}

fn unproven() -> RemovalProof<'static> {
    RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, &[], None, now())
}

fn reprice(events: &mut [UnlockEvent], by: f64) {
    let times = |number: &mut Maybe<f64>| {
        if let Some(number) = number.get_mut() {
            *number *= by;
        }
    };
    for event in events {
        if let Some(cliffs) = event.cliff_unlocks.get_mut() {
            times(&mut cliffs.cliff_value);
            times(&mut cliffs.value_to_market_cap);
            for part in cliffs.allocation_breakdown.get_mut().into_iter().flatten() {
                times(&mut part.cliff_value);
                times(&mut part.reference_price);
            }
        }
        if let Some(linears) = event.linear_unlocks.get_mut() {
            times(&mut linears.linear_value);
            times(&mut linears.daily_value);
            for part in linears.allocation_breakdown.get_mut().into_iter().flatten() {
                times(&mut part.daily_value);
            }
        }
    }
}

/// The name of an alteration, whether it changes only prices, and the function that makes it.
type Alteration = (&'static str, bool, fn(&mut Vec<UnlockEvent>));

fn alterations() -> Vec<Alteration> {
    vec![
        ("nothing", true, |_| {}),
        ("backwards", true, |events| events.reverse()),
        ("one removed", false, |events| drop(events.remove(events.len() / 2))),
        ("one duplicated", false, |events| events.push(events[0].clone())),
        ("one added", false, |events| {
            let mut event = events[0].clone();
            event.unlock_date = now().into();
            events.push(event);
        }),
        ("renamed", false, |events| events[0].token_name = "Another".to_owned().into()),
        ("one day later", false, |events| {
            let at = events[0].unlock_date.copied().unwrap();
            events[0].unlock_date = (at + chrono::TimeDelta::days(1)).into();
        }),
        ("a missing price", false, |events| {
            for event in events {
                event.latest_update_date = Maybe::Absent;
            }
        }),
        ("an amount", false, |events| {
            for event in events {
                let cliffs = event.cliff_unlocks.get_mut().map(|cliffs| &mut cliffs.cliff_amount);
                let linears = event.linear_unlocks.get_mut().map(|linears| &mut linears.linear_amount);
                for number in [cliffs, linears].into_iter().flatten() {
                    *number = number.copied().map_or(5.0, |number| number * 1.5 + 1.0).into();
                }
            }
        }),
        ("something unknown", false, |events| drop(events[0].extra.insert("new".into(), 1.into()))),
    ]
}

#[test]
fn repriced_equals_the_whole_comparison_or_returns_none() {
    let token = TokenId::from("arbitrum");
    let mut notified = 0;
    for (before, events) in schedules() {
        for (what, is_prices_alone, alter) in alterations() {
            for by in [1.0, 1.01] {
                let mut after = events.clone();
                reprice(&mut after, by);
                alter(&mut after);
                let shows_linear = Some(true);
                let Some(diff) = repriced(&before, &after, &DateWindow::ALL, shows_linear) else {
                    // Two events at one instant need the whole comparison.
                    let dates: std::collections::HashSet<_> = events.iter().map(|event| event.unlock_date.copied()).collect();
                    assert!(!is_prices_alone || dates.len() < events.len(), "{what}");
                    continue;
                };
                notified += 1;
                assert!(is_prices_alone, "{what}");
                let poll = UnlockPoll { shows_linear, knew_linear: Some(true), ..UnlockPoll::of(&token, now()) };
                let whole = diff_unlocks(&poll, &before, &unproven(), &after);
                let sorted = |mut put: Vec<Put>| {
                    put.sort_by(|a, b| a.key.cmp(&b.key));
                    put
                };
                assert_eq!((whole.changes, whole.removed, whole.missing, whole.held), Default::default(), "{what}");
                assert_eq!(sorted(diff.put), sorted(whole.put), "{what}");
                assert_eq!(diff.anomalies, whole.anomalies, "{what}");
            }
        }
    }
    assert!(notified > 200, "{notified}");
}

#[test]
fn version_without_segments_keeps_known_segments() {
    let token = TokenId::from("arbitrum");
    let mut with_segments = 0;
    for (before, events) in schedules() {
        let mut after: Vec<UnlockEvent> = events.into_iter().filter(|event| event.cliff_unlocks.get().is_some()).collect();
        with_segments += after.iter().filter(|event| event.linear_unlocks.get().is_some()).count();
        after.iter_mut().for_each(|event| event.linear_unlocks = Maybe::Absent);
        reprice(&mut after, 1.01);
        let Some(diff) = repriced(&before, &after, &DateWindow::ALL, Some(false)) else { continue };
        let poll = UnlockPoll { shows_linear: Some(false), knew_linear: Some(true), ..UnlockPoll::of(&token, now()) };
        let whole = diff_unlocks(&poll, &before, &unproven(), &after);
        assert_eq!((whole.changes, whole.removed, whole.missing, whole.held), Default::default());
        assert_eq!(apply(&before, &diff), apply(&before, &Diff { put: whole.put, ..Diff::default() }));
    }
    assert!(with_segments > 0);
}

#[test]
fn events_outside_the_requested_days_are_not_missing() {
    let (before, events) = schedules().into_iter().find(|(_, events)| events.len() > 4).unwrap();
    let first = events[2].unlock_date.copied().unwrap().date_naive();
    let window = DateWindow { first: Some(first), last: None };
    let after: Vec<UnlockEvent> = events.into_iter().filter(|event| window.contains(event.unlock_date.copied())).collect();
    let diff = repriced(&before, &after, &window, Some(true)).unwrap();
    assert_eq!(diff.put, Vec::new());
    assert!(repriced(&before, &after, &DateWindow::ALL, Some(true)).is_none());
}
