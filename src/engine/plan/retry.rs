//! When a feed that fails by itself is asked again. Pure.
//!
//! At the next slot; then, each time that fails too, after as long as it has failed by then: so waits double, up to a day. What fails
//! as a whole (no connection, no credits, a refused key) is no failure of the feed and moves no wait: see
//! [`ingest::failed`](crate::ingest::failed).

use chrono::TimeDelta;

use model::{FeedState, Timestamp};

/// The longest wait.
const LONGEST: TimeDelta = TimeDelta::days(1);

/// How long it had failed when it was last tried; none where it fails for the first time, or not at all.
fn failed_for(feed: &FeedState) -> Option<TimeDelta> {
    let span = feed.tried_at? - feed.failing_since?;
    (span > TimeDelta::zero()).then_some(span)
}

/// Whether it failed again when it was tried again.
pub(super) fn fails_again(feed: &FeedState) -> bool {
    failed_for(feed).is_some()
}

/// Whether it may be asked at `now`.
pub(super) fn is_due(feed: &FeedState, now: Timestamp) -> bool {
    let Some((tried_at, span)) = feed.tried_at.zip(failed_for(feed)) else { return true };
    // A clock that was set back makes nobody wait.
    now < tried_at || now - tried_at >= span.min(LONGEST)
}

#[cfg(test)]
mod tests;
