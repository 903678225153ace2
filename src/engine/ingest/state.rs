//! The state of a feed after a poll.

use crate::plan::{PlannedPoll, priority};
use model::{
    poll::{FailureKind, FetchedResponse},
    supply::{FeedState, Findings, ListReport, Timestamp},
};

/// Returns the state of a feed after a failed poll.
#[must_use]
pub fn state_after_failure(known: FeedState, fetched: &FetchedResponse, kind: FailureKind, now: Timestamp) -> FeedState {
    // Even an interrupted walk shows its cost.
    let cost = if fetched.pages > 0 { fetched.pages } else { known.cost };
    match kind {
        FailureKind::Deferred => FeedState { tried_at: Some(now), cost, ..known },
        // A failure of the whole source is not a failure of this feed, which is polled again as soon as the source responds.
        kind if kind.is_source_wide() => {
            FeedState { tried_at: known.tried_at.or(Some(now)), failing_since: known.failing_since.or(Some(now)), ..known }
        }
        _ => FeedState { tried_at: Some(now), failing_since: known.failing_since.or(Some(now)), cost, ..known },
    }
}

/// Returns the state of a feed after a complete response.
#[must_use]
pub fn state_after_poll(known: FeedState, poll: &PlannedPoll, fetched: &FetchedResponse, now: Timestamp) -> FeedState {
    FeedState {
        read_at: Some(now),
        tried_at: Some(now),
        mark: poll.mark.or(known.mark),
        stale: false,
        failing_since: None,
        // A repeated walk cost more than the next one will.
        cost: if fetched.pages > 0 { fetched.pages } else { known.cost },
        ..known
    }
}

/// Returns the findings of a feed after one more complete response. Neither the baseline nor the proof of an earlier find counts.
#[must_use]
pub fn findings(known: &FeedState, poll: &PlannedPoll, has_found: bool, now: Timestamp) -> Findings {
    let report = priority::list_report(known, poll.mark, poll.listed_at);
    let before = Findings { awaits_segments: false, ..known.findings.settled(report) };
    let is_known = known.findings.awaits_segments || known.awaits_proof();
    // A mark that reports an earlier find is not idle if there is nothing new.
    let is_of_earlier_find = report == ListReport::Reported && known.findings.undecided_count() > 0 && !has_found;
    if known.baseline_at.is_none() || is_known || is_of_earlier_find {
        return before;
    }
    before.with(has_found, priority::mark_moved(known, poll.mark), known.stale, now)
}
