//! When linear segments are read beside the cliffs of a schedule, under `unlock_events = "auto"`. Pure.

use chrono::TimeDelta;

use super::PlanBasis;
use model::{Endpoint, FeedState, PlanToken, config::EndpointVersion};

/// How often they are read of a token whose list entry has no mark of change. A correction takes the source days to apply; a week costs
/// about four credits a month, beside the hundred and more of looking at the cliffs four times a day.
const WITHOUT_MARK: TimeDelta = TimeDelta::days(7);

/// At first sight, once for each mark of change, where something else said that the schedule moved, and to confirm a removal.
/// Everything else would cost credits for what did not move.
pub(super) fn are_needed(endpoint: Endpoint, token: &PlanToken, basis: &PlanBasis<'_>) -> bool {
    if endpoint != Endpoint::UnlockEvents || basis.source.unlock_events != EndpointVersion::Auto {
        return false;
    }
    let Some(read) = token.segments else { return true };
    let has_moved = match token.last_updated {
        Some(mark) => read.mark != Some(mark),
        // A clock that was set back must not put it off.
        None => (basis.now - read.at).abs() >= WITHOUT_MARK,
    };
    let awaits = |feed: &FeedState| feed.stale || !feed.missing.is_empty() || feed.held_since.is_some();
    has_moved || token.feed.as_ref().is_some_and(awaits)
}
