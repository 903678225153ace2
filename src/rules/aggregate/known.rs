//! Whether a flow is known. A flow that was never read is unknown, not zero.

use model::{Endpoint, FeedState, Resource, wire};

/// Returns `true` if a complete response for `resource` was read. Burns, buybacks, and emission become unknown while their feed
/// fails, because new ones may be missing. A schedule stays known. If the token list reports that there are no burns or buybacks,
/// they are known to be zero.
pub fn is_known(resource: Resource, feeds: &[(Endpoint, FeedState)], item: &wire::TokenItem) -> bool {
    let speaks = |endpoint: Endpoint| endpoint.resource() == Some(resource) && endpoint.is_per_token();
    let was_read =
        |state: &FeedState| state.baseline_at.is_some() && (resource == Resource::Unlock || state.failing_since.is_none());
    let mut own = feeds.iter().filter(|(endpoint, _)| speaks(*endpoint)).peekable();
    let is_absent = has_none(item, resource);
    if own.peek().is_none() && is_absent {
        return true;
    }
    own.any(|(_, state)| was_read(state) || (is_absent && state.baseline_at.is_none() && state.failing_since.is_none()))
}

/// Returns `true` if the token list reports that the token has no such records, so that the feed is not polled.
pub fn has_none(item: &wire::TokenItem, resource: Resource) -> bool {
    match resource {
        Resource::Burn => item.has_burn.copied() == Some(false),
        Resource::Buyback => item.has_buyback.copied() == Some(false),
        _ => false,
    }
}
