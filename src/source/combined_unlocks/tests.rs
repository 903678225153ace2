//! Splits random schedules into two responses and combines them again.

use chrono::{DateTime, NaiveDate, TimeDelta};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use model::{
    poll::{FailureKind, PollFailure, PollRequest, PollResponse},
    supply::{ContentHash, Endpoint},
};

/// Events at different dates, with cliff unlocks, linear unlocks, or both.
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

fn fetched(version: u8, outcome: PollOutcome) -> FetchedResponse {
    let (start, end) = (NaiveDate::MIN, NaiveDate::MAX);
    let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token: "aptos".into(), start, end };
    FetchedResponse::of_page(request, outcome, Some(version))
}

fn fresh(version: u8, events: Vec<UnlockEvent>) -> FetchedResponse {
    let (payload, hash) = (Payload::UnlockEvents(events), ContentHash(version.into()));
    let response = PollResponse::clean(payload, hash);
    fetched(version, PollOutcome::Fresh(response))
}

fn response(fetched: &FetchedResponse) -> (&[UnlockEvent], &PollResponse) {
    match &fetched.outcome {
        PollOutcome::Fresh(response) => match &response.payload {
            Payload::UnlockEvents(events) => (events, response),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Returns the schedule in the form of version 4 and newer.
fn cliffs_alone(schedule: &[UnlockEvent]) -> Vec<UnlockEvent> {
    let with_cliff = schedule.iter().filter(|event| event.cliff_unlocks.get().is_some()).cloned();
    with_cliff.map(|event| UnlockEvent { linear_unlocks: Maybe::Absent, ..event }).collect()
}

proptest! {
    #[test]
    fn combined_responses_are_the_schedule(schedule in schedules(), order in any::<bool>(), words in any::<bool>()) {
        // The older version has other names for the same cliff unlocks, and additional mining rewards.
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
        let combined = combined(fresh(5, cliffs_alone(&schedule)), fresh(3, older), false);
        let (events, response) = response(&combined);
        prop_assert_eq!(events, &schedule[..]);
        prop_assert_eq!(response.hash, ContentHash(5), "the hash of the newer version");
        prop_assert_eq!((combined.credits, combined.requests, combined.version, combined.shows_linear()), (2, 2, Some(5), Some(true)));
    }

    #[test]
    fn cliff_unlocks_are_kept_if_linear_unlocks_cannot_be_read(schedule in schedules()) {
        let cliffs = cliffs_alone(&schedule);
        let failure = PollFailure { kind: FailureKind::ServerError, message: "GET /v3/unlock/events: 500".into(), retry_at: None };
        let failed = FetchedResponse { credits: 0, ..fetched(3, PollOutcome::Failed(failure)) };
        for other in [Some(failed), (!cliffs.is_empty()).then(|| fresh(3, Vec::new()))].into_iter().flatten() {
            let spent = 1 + other.credits;
            let combined = combined(fresh(5, cliffs.clone()), other, false);
            let (events, response) = response(&combined);
            prop_assert_eq!(events, &cliffs[..]);
            prop_assert_eq!((combined.credits, combined.shows_linear(), response.parse_warnings_total), (spent, Some(false), 1));
        }
    }
}
