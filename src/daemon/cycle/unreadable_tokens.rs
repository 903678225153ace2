//! The tokens that cannot be evaluated, because a stored row of them is damaged. Each evaluation tries them again, and an incident stays
//! open until one succeeds. A restart forgets them, and evaluates all tokens.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Endpoint, FeedId, TokenId};

#[derive(Debug, Default)]
pub struct UnreadableTokens(Mutex<BTreeSet<TokenId>>);

impl UnreadableTokens {
    fn tokens(&self) -> MutexGuard<'_, BTreeSet<TokenId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, id: TokenId) {
        self.tokens().insert(id);
    }

    /// Records that a token was evaluated, and returns whether it could not be evaluated before.
    pub(super) fn evaluated(&self, id: &TokenId) -> bool {
        self.tokens().remove(id)
    }

    pub(super) fn all(&self) -> Vec<TokenId> {
        self.tokens().iter().cloned().collect()
    }

    pub(super) fn contains(&self, id: &TokenId) -> bool {
        self.tokens().contains(id)
    }

    /// Returns whether an incident of this feed stays open although its poll succeeded.
    pub(super) fn keep_open(&self, feed: &FeedId) -> bool {
        feed.token.as_ref().is_some_and(|id| *feed == feed_of(id) && self.contains(id))
    }
}

/// The feed whose incident reports that a token cannot be evaluated: rules on time read its schedule.
pub(super) fn feed_of(id: &TokenId) -> FeedId {
    FeedId { endpoint: Endpoint::UnlockEvents, token: Some(id.clone()) }
}
