//! The pages of investors that the database rejected. They are polled again after growing waits, like a feed: a page has no feed of its
//! own. A restart forgets them, which costs one poll each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::plan;
use model::{FeedState, Timestamp, poll::PollFailure};

#[derive(Debug, Default)]
pub struct RejectedPages(Mutex<HashMap<String, RejectedPage>>);

#[derive(Clone, Debug)]
struct RejectedPage {
    /// When it was first and last rejected.
    tries: FeedState,
    failure: PollFailure,
}

impl RejectedPages {
    fn pages(&self) -> MutexGuard<'_, HashMap<String, RejectedPage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the page of an investor was rejected.
    pub(super) fn note(&self, investor: &str, failure: PollFailure, now: Timestamp) {
        let mut pages = self.pages();
        let failing_since = pages.get(investor).and_then(|page| page.tries.failing_since).or(Some(now));
        let tries = FeedState { failing_since, tried_at: Some(now), ..FeedState::default() };
        pages.insert(investor.to_owned(), RejectedPage { tries, failure });
    }

    /// Records that the page of an investor was stored.
    pub(super) fn stored(&self, investor: &str) {
        self.pages().remove(investor);
    }

    /// Returns why the page was rejected, if it is not to be polled yet.
    pub(super) fn waiting(&self, investor: &str, now: Timestamp) -> Option<PollFailure> {
        self.pages().get(investor).filter(|page| !plan::is_due(&page.tries, now)).map(|page| page.failure.clone())
    }
}
