//! Two views of one random schedule, put together: what comes out is the schedule.

use chrono::{DateTime, NaiveDate, TimeDelta};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use model::{
    poll::{FailureKind, PollAnswer, PollFailure, PollRequest},
    supply::{ContentHash, Endpoint},
};

/// Events of different instants, each with a cliff, segments or both, as days and flags.
fn schedules() -> impl Strategy<Value = Vec<UnlockEvent>> {
    let parts = prop_oneof![Just((true, false)), Just((false, true)), Just((true, true))];
    prop::collection::btree_map(0_i64..60, (parts, 1_u32..1000), 0..12).prop_map(|days| {
        let event = |(day, ((has_cliff, has_linear), amount))| {
            let at = (DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + day)).to_rfc3339();
            let of = |kind: &str| json!([{"allocationName": "Team", format!("{kind}Amount"): amount}]);
            let cliffs = json!({"cliffAmount": amount, "allocationBreakdown": of("cliff")});
            let linears = json!({"linearAmount": amount, "allocationBreakdown": of("linear")});
            serde_json::from_value(json!({
                "unlockDate": at, "dataSource": "Whitepaper",
                "cliffUnlocks": if has_cliff { cliffs } else { json!(null) },
                "linearUnlocks": if has_linear { linears } else { json!(null) },
            }))
            .expect("an event")
        };
        days.into_iter().map(event).collect()
    })
}

fn fetched(version: u8, outcome: PollOutcome) -> FetchedAnswer {
    let (start, end) = (NaiveDate::MIN, NaiveDate::MAX);
    let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token: "aptos".into(), start, end };
    FetchedAnswer::of_page(request, outcome, Some(version))
}

fn fresh(version: u8, events: Vec<UnlockEvent>) -> FetchedAnswer {
    let (payload, hash) = (Payload::UnlockEvents(events), ContentHash(version.into()));
    let answer = PollAnswer::clean(payload, hash);
    fetched(version, PollOutcome::Fresh(answer))
}

fn answer(fetched: &FetchedAnswer) -> (&[UnlockEvent], &PollAnswer) {
    match &fetched.outcome {
        PollOutcome::Fresh(answer) => match &answer.payload {
            Payload::UnlockEvents(events) => (events, answer),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// As versions from the fourth on show it.
fn cliffs_alone(schedule: &[UnlockEvent]) -> Vec<UnlockEvent> {
    let with_cliff = schedule.iter().filter(|event| event.cliff_unlocks.get().is_some()).cloned();
    with_cliff.map(|event| UnlockEvent { linear_unlocks: Maybe::Absent, ..event }).collect()
}

proptest! {
    #[test]
    fn both_views_together_are_the_schedule(schedule in schedules(), order in any::<bool>(), words in any::<bool>()) {
        // The older version has other words for the same cliffs, and rewards for miners beside.
        let mut older = schedule.clone();
        for event in &mut older {
            if let (Some(cliffs), true) = (event.cliff_unlocks.get_mut(), words) {
                for part in cliffs.allocation_breakdown.get_mut().into_iter().flatten() {
                    part.standard_allocation_name = "Founder".to_owned().into();
                }
            }
        }
        let rewards = json!({"unlockDate": "2030-01-01T00:00:00Z", "linearUnlocks": null,
            "cliffUnlocks": {"cliffAmount": 5, "allocationBreakdown": [{"allocationName": "Mining", "cliffAmount": 5}]}});
        older.push(serde_json::from_value(rewards).expect("an event"));
        if order {
            older.reverse();
        }
        let joined = joined(fresh(5, cliffs_alone(&schedule)), fresh(3, older));
        let (events, answer) = answer(&joined);
        prop_assert_eq!(events, &schedule[..]);
        prop_assert_eq!(answer.hash, ContentHash(5), "what the next answer about cliffs is compared with");
        prop_assert_eq!((joined.credits, joined.requests, joined.version, joined.shows_linear()), (2, 2, Some(5), Some(true)));
    }

    #[test]
    fn cliffs_are_taken_where_segments_cannot_be_read(schedule in schedules()) {
        let cliffs = cliffs_alone(&schedule);
        let failure = PollFailure { kind: FailureKind::ServerError, message: "GET /v3/unlock/events: 500".into(), retry_at: None };
        let failed = FetchedAnswer { credits: 0, ..fetched(3, PollOutcome::Failed(failure)) };
        for other in [Some(failed), (!cliffs.is_empty()).then(|| fresh(3, Vec::new()))].into_iter().flatten() {
            let spent = 1 + other.credits;
            let joined = joined(fresh(5, cliffs.clone()), other);
            let (events, answer) = answer(&joined);
            prop_assert_eq!(events, &cliffs[..]);
            prop_assert_eq!((joined.credits, joined.shows_linear(), answer.oddities_total), (spent, Some(false), 1));
        }
    }
}
