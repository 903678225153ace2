//! Whether a flow is known at all: nothing read is never nothing there.

use model::{Endpoint, FeedState, Resource, wire};

/// Whether what a feed would tell of `resource` is known: a complete answer was read. What happened is unknown again while the feed
/// fails, since nothing says that nothing happened meanwhile; a schedule stays what it was. Where the token list says that there are
/// no burns or buybacks at all, none is known to be none.
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

/// Whether the token list says that a token has none of these records, so that nobody asks for them.
pub fn has_none(item: &wire::TokenItem, resource: Resource) -> bool {
    match resource {
        Resource::Burn => item.has_burn.copied() == Some(false),
        Resource::Buyback => item.has_buyback.copied() == Some(false),
        _ => false,
    }
}
