//! When to poll a failed feed again. Pure.
//!
//! The first retry is at the next slot. After that, each wait is as long as the feed has failed so far, at most one day, so waits double.
//! A failure of the whole source (no connection, no credits, a rejected key) does not count: see
//! [`ingest::state_after_failure`](crate::ingest::state_after_failure).

use chrono::TimeDelta;

use model::{FeedState, Timestamp};

const MAX_WAIT: TimeDelta = TimeDelta::days(1);

/// Returns the time between the first and the last failure; `None` if the feed failed at most once.
fn failed_for(feed: &FeedState) -> Option<TimeDelta> {
    let span = feed.tried_at? - feed.failing_since?;
    (span > TimeDelta::zero()).then_some(span)
}

/// Returns whether a retry of the feed failed too.
pub(super) fn fails_again(feed: &FeedState) -> bool {
    failed_for(feed).is_some()
}

/// Returns whether the feed may be polled at `now`.
pub(super) fn is_due(feed: &FeedState, now: Timestamp) -> bool {
    let Some((tried_at, span)) = feed.tried_at.zip(failed_for(feed)) else { return true };
    // If the clock was set back, do not wait.
    now < tried_at || now - tried_at >= span.min(MAX_WAIT)
}

#[cfg(test)]
mod tests;
