//! Combines responses about a schedule: the cliff unlocks of a newer version, the linear unlocks of an older version, which the newer
//! one omits, and daily emission ahead. Pure.
//!
//! Names, categories, and sources can differ between versions. They always come from the newer version, so that they do not seem to
//! change.

use std::collections::{HashMap, VecDeque};

use chrono::NaiveDate;

use model::{
    poll::{
        AheadFetch, FailureKind, FetchedResponse, LAST_WITH_SEGMENTS, Payload, PollFailure, PollOutcome, PollResponse,
        SegmentsFetch,
    },
    supply::Timestamp,
    wire::{Maybe, ParseWarning, UnlockEvent},
};

/// Adds the linear unlocks of `segments` (the older version) to `cliffs` (the newer version) if `cliffs` is a fresh response. If `segments`
/// failed or cannot be used, adds a parse warning instead. The costs of both are summed in any case.
/// `lacks_rate_changes` is whether the source lacks the token in the version with all linear unlocks.
pub(super) fn combined(cliffs: FetchedResponse, segments: FetchedResponse, lacks_rate_changes: bool) -> FetchedResponse {
    let mut cliffs = with_cost_of(cliffs, &segments);
    let mut is_read = false;
    let is_absent = matches!(&segments.outcome, PollOutcome::Failed(failure) if failure.kind == FailureKind::NotFound);
    if let PollOutcome::Fresh(response) = &mut cliffs.outcome {
        match add(response, segments.outcome) {
            Ok(without_cliffs) => (is_read, cliffs.without_cliffs) = (true, without_cliffs),
            Err(why) => {
                let problem = format!("cannot be read, so the last known ones are kept: {why}");
                response.parse_warnings.push(ParseWarning { path: "linearUnlocks".into(), problem });
                response.parse_warnings_total += 1;
            }
        }
    }
    let version = segments.version.unwrap_or(LAST_WITH_SEGMENTS);
    cliffs.segments = Some(SegmentsFetch { is_read, is_absent, lacks_rate_changes, version, credits: segments.credits });
    cliffs
}

/// Adds the daily emission of `days` (first and last, inclusive) to a fresh response about a schedule. If it cannot be read, adds a parse
/// warning instead. The costs of both are summed.
pub(super) fn with_ahead(
    schedule: FetchedResponse,
    ahead: FetchedResponse,
    (first, last): (NaiveDate, NaiveDate),
) -> FetchedResponse {
    let mut schedule = with_cost_of(schedule, &ahead);
    let absence = |failure: &PollFailure| matches!(failure.kind, FailureKind::NotFound | FailureKind::Forbidden);
    let is_absent = matches!(&ahead.outcome, PollOutcome::Failed(failure) if absence(failure));
    let (days, problem) = match ahead.outcome {
        // Days that cannot be read would seem to release nothing.
        PollOutcome::Fresh(PollResponse { dropped: 1.., .. }) => (None, Some("some of its days cannot be read".to_owned())),
        PollOutcome::Fresh(PollResponse { payload: Payload::Emissions(days), .. }) => (Some(days), None),
        PollOutcome::Fresh(_) => (None, Some("the response is about something else".to_owned())),
        PollOutcome::Unchanged => (None, Some("the response has no data".to_owned())),
        PollOutcome::Failed(failure) => (None, Some(failure.message)),
    };
    if let (PollOutcome::Fresh(response), Some(problem)) = (&mut schedule.outcome, problem) {
        let problem = format!("cannot be read, so linear unlocks may be missing: {problem}");
        response.parse_warnings.push(ParseWarning { path: "dailyEmission".into(), problem });
        response.parse_warnings_total += 1;
    }
    schedule.ahead = Some(AheadFetch { first, last, days, is_absent, credits: ahead.credits });
    schedule
}

/// Adds the cost of another fetch to a response.
pub(super) fn with_cost_of(mut response: FetchedResponse, other: &FetchedResponse) -> FetchedResponse {
    response.credits += other.credits;
    response.requests += other.requests;
    response.bytes += other.bytes;
    response.took += other.took;
    response.credit = other.credit.clone().or(response.credit);
    response
}

/// Adds the linear unlocks of the older version. Returns the dates of events that only the older version has, or why the response
/// cannot be used.
fn add(response: &mut PollResponse, segments: PollOutcome) -> Result<Vec<Timestamp>, String> {
    let other = match segments {
        PollOutcome::Fresh(other) => other,
        PollOutcome::Failed(failure) => return Err(failure.message),
        PollOutcome::Unchanged => return Err("the response has no data".to_owned()),
    };
    let (Payload::UnlockEvents(events), Payload::UnlockEvents(segments)) = (&mut response.payload, other.payload) else {
        return Err("the response is about something else".to_owned());
    };
    // The older version has the cliff unlocks too, so it cannot be empty.
    if segments.is_empty() && !events.is_empty() {
        return Err("the response is empty, although there are cliff unlocks".to_owned());
    }
    let without_cliffs = merge_events(events, segments);
    response.parse_warnings.extend(other.parse_warnings);
    response.parse_warnings_total += other.parse_warnings_total;
    response.dropped += other.dropped;
    Ok(without_cliffs)
}

/// Adds linear unlocks to the events with the same date. Events that only the older version has, such as mining rewards, are added
/// without their cliff unlocks, which the newer version omits on purpose. Returns their dates.
fn merge_events(events: &mut Vec<UnlockEvent>, segments: Vec<UnlockEvent>) -> Vec<Timestamp> {
    let mut by_date: HashMap<Option<Timestamp>, VecDeque<UnlockEvent>> = HashMap::new();
    for event in segments {
        // An event without any unlocks may lack its linear unlocks, so it is kept.
        if event.linear_unlocks.get().is_some() || event.cliff_unlocks.get().is_none() {
            by_date.entry(event.unlock_date.copied()).or_default().push_back(event);
        }
    }
    for event in events.iter_mut() {
        let found = by_date.get_mut(&event.unlock_date.copied()).and_then(VecDeque::pop_front);
        event.linear_unlocks = found.map_or(Maybe::Null, |found| found.linear_unlocks);
    }
    let without_cliffs: Vec<UnlockEvent> = by_date.into_values().flatten().collect();
    let instants = without_cliffs.iter().filter_map(|event| event.unlock_date.copied()).collect();
    events.extend(without_cliffs.into_iter().map(|event| UnlockEvent { cliff_unlocks: Maybe::Null, ..event }));
    events.sort_by_key(|event| (event.unlock_date.is_absent(), event.unlock_date.copied()));
    instants
}

#[cfg(test)]
mod tests;
