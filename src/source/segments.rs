//! One schedule from two answers: the cliffs of a newer version, and the linear segments of an older one, which the newer leaves out.
//! Pure.
//!
//! Each speaks for its own part alone. Of what both describe, the newer one is believed: names, categories and sources may be spelled
//! differently between versions, and must not seem to change with the answer that happened to bring them.

use std::collections::{HashMap, VecDeque};

use model::{
    poll::{FailureKind, FetchedAnswer, Payload, PollAnswer, PollOutcome, SegmentsFetch},
    supply::Timestamp,
    wire::{Maybe, ParseWarning, UnlockEvent},
};

/// The answer about cliffs, with the segments of the other one; without, where that one is none.
pub(super) fn joined(mut cliffs: FetchedAnswer, segments: FetchedAnswer) -> FetchedAnswer {
    cliffs.credits += segments.credits;
    cliffs.requests += segments.requests;
    cliffs.bytes += segments.bytes;
    cliffs.took += segments.took;
    cliffs.credit = segments.credit.or(cliffs.credit);
    let mut is_read = false;
    let is_absent = matches!(&segments.outcome, PollOutcome::Failed(failure) if failure.kind == FailureKind::NotFound);
    if let PollOutcome::Fresh(answer) = &mut cliffs.outcome {
        match add(answer, segments.outcome) {
            Ok(alone) => (is_read, cliffs.without_cliffs) = (true, alone),
            Err(why) => {
                let problem = format!("could not be read, the last known ones stay: {why}");
                answer.oddities.push(ParseWarning { path: "linearUnlocks".into(), problem });
                answer.oddities_total += 1;
            }
        }
    }
    cliffs.segments = Some(SegmentsFetch { is_read, is_absent, credits: segments.credits });
    cliffs
}

/// Adds what the other version says, and gives the instants that it alone names; else why that is nothing to go by.
fn add(answer: &mut PollAnswer, segments: PollOutcome) -> Result<Vec<Timestamp>, String> {
    let other = match segments {
        PollOutcome::Fresh(other) => other,
        PollOutcome::Failed(failure) => return Err(failure.message),
        PollOutcome::Unchanged => return Err("nothing was told".to_owned()),
    };
    let (Payload::UnlockEvents(events), Payload::UnlockEvents(segments)) = (&mut answer.payload, other.payload) else {
        return Err("the answer is about something else".to_owned());
    };
    // It shows cliffs too.
    if segments.is_empty() && !events.is_empty() {
        return Err("the answer is empty, where there are cliffs".to_owned());
    }
    let alone = join(events, segments);
    answer.oddities.extend(other.oddities);
    answer.oddities_total += other.oddities_total;
    answer.dropped += other.dropped;
    Ok(alone)
}

/// Puts segments beside the cliffs of their instant. What else the older version has at an instant of its own, such as rewards for
/// miners, is a cliff that the newer one leaves out. Gives those instants.
fn join(events: &mut Vec<UnlockEvent>, segments: Vec<UnlockEvent>) -> Vec<Timestamp> {
    let mut of: HashMap<Option<Timestamp>, VecDeque<UnlockEvent>> = HashMap::new();
    for event in segments {
        // A gap in the place of both may be that of segments: it is held by what is known.
        if event.linear_unlocks.get().is_some() || event.cliff_unlocks.get().is_none() {
            of.entry(event.unlock_date.copied()).or_default().push_back(event);
        }
    }
    for event in events.iter_mut() {
        let found = of.get_mut(&event.unlock_date.copied()).and_then(VecDeque::pop_front);
        event.linear_unlocks = found.map_or(Maybe::Null, |found| found.linear_unlocks);
    }
    let alone: Vec<UnlockEvent> = of.into_values().flatten().collect();
    let instants = alone.iter().filter_map(|event| event.unlock_date.copied()).collect();
    events.extend(alone.into_iter().map(|event| UnlockEvent { cliff_unlocks: Maybe::Null, ..event }));
    events.sort_by_key(|event| (event.unlock_date.is_absent(), event.unlock_date.copied()));
    instants
}

#[cfg(test)]
mod tests;
