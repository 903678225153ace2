//! The feeds that a plan leaves out although they are watched, with the cause of each, for the log. Pure.

use super::{EndpointFeeds, PollCandidate, retry};
use crate::budget::PollReason;
use model::{FeedId, FeedState, Timestamp};

/// A feed that is not polled in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayedFeed {
    pub feed: FeedId,
    pub cause: DelayCause,
}

/// The cause of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayCause {
    /// The poll waits for more credits. `why` is the reason for the poll, and `cost` its credits.
    Credits { why: PollReason, cost: u64 },
    /// The feed failed more than once, and its next retry is not due yet.
    Failing { retry_at: Timestamp },
}

/// Returns the feeds of an endpoint that wait for a retry.
pub(super) fn failing_feeds(of: &EndpointFeeds, now: Timestamp) -> impl Iterator<Item = DelayedFeed> {
    let delayed = move |feed: FeedId, state: &FeedState| {
        let retry_at = retry::due_at(state).filter(|_| !retry::is_due(state, now))?;
        Some(DelayedFeed { feed, cause: DelayCause::Failing { retry_at } })
    };
    let whole = (!of.endpoint.is_per_token()).then(|| delayed(FeedId::whole(of.endpoint), &of.whole)).flatten();
    let tokens = of.tokens.iter().filter_map(move |token| delayed(FeedId::of(of.endpoint, &token.id), token.feed.as_ref()?));
    whole.into_iter().chain(tokens)
}

/// Returns the delay of a candidate that the credits do not allow.
pub(super) fn unpaid(of: &EndpointFeeds, candidate: &PollCandidate<'_>) -> DelayedFeed {
    let feed = match candidate.token {
        Some(token) => FeedId::of(of.endpoint, &token.id),
        None => FeedId::whole(of.endpoint),
    };
    DelayedFeed { feed, cause: DelayCause::Credits { why: candidate.why, cost: candidate.cost } }
}
