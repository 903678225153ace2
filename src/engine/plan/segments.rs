//! When a poll of a schedule also fetches linear unlocks, under `unlock_events = "auto"`. Pure.

use chrono::TimeDelta;

use super::PlanBasis;
use model::{Endpoint, FeedState, PlanToken, config::EndpointVersion};

/// The interval between polls of linear unlocks for a token without a mark in the token list. The source takes days to apply a
/// correction, and a weekly poll costs about 4 credits a month, compared with over 100 for polling the cliffs four times a day.
const INTERVAL_WITHOUT_MARK: TimeDelta = TimeDelta::days(7);

/// Returns whether to fetch linear unlocks: at the baseline, once for each new mark, if another feed reported a correction, and to
/// prove a removal.
pub(super) fn are_needed(endpoint: Endpoint, token: &PlanToken, basis: &PlanBasis<'_>) -> bool {
    if endpoint != Endpoint::UnlockEvents || basis.source.unlock_events != EndpointVersion::Auto {
        return false;
    }
    let Some(read) = token.segments else { return true };
    let has_moved = match token.last_updated {
        Some(mark) => read.mark != Some(mark),
        // `abs`, so that a clock that was set back does not delay the poll.
        None => (basis.now - read.at).abs() >= INTERVAL_WITHOUT_MARK,
    };
    let awaits = |feed: &FeedState| feed.stale || feed.awaits_proof();
    has_moved || token.feed.as_ref().is_some_and(awaits)
}
