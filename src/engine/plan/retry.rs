//! When to poll a failed feed again. Pure.
//!
//! The first retry of a token's feed or of a list is at the next slot. After that, each wait is as long as the feed has failed so far, at
//! most one day, so waits double.
//! A failure of the whole source (no connection, no credits, a rejected key) does not count: see
//! [`ingest::state_after_failure`](crate::ingest::state_after_failure).
//!
//! Two kinds of feeds do not wait for the next slot ([`is_early`]): feeds that were never read, and feeds that failed only because the
//! whole source did. They are retried after [`early_wait`].

use chrono::TimeDelta;

use model::{FeedState, Timestamp};

const MAX_WAIT: TimeDelta = TimeDelta::days(1);

/// The wait before the first retry that does not wait for a slot.
const FIRST_EARLY_WAIT: TimeDelta = TimeDelta::seconds(5);

/// The maximum wait between early retries that cost no credits.
const MAX_FREE_WAIT: TimeDelta = TimeDelta::minutes(5);

/// The maximum wait between early retries that may have cost credits.
const MAX_PAID_WAIT: TimeDelta = TimeDelta::hours(1);

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
#[must_use]
pub fn is_due(feed: &FeedState, now: Timestamp) -> bool {
    let Some((tried_at, due_at)) = feed.tried_at.zip(due_at(feed)) else { return true };
    // If the clock was set back, do not wait.
    now < tried_at || now >= due_at
}

/// Returns when a feed that failed more than once may be polled again.
pub(super) fn due_at(feed: &FeedState) -> Option<Timestamp> {
    feed.tried_at?.checked_add_signed(failed_for(feed)?.min(MAX_WAIT))
}

/// Returns whether a failed feed is retried before the next slot: it was never read, or only the whole source has failed since it was read.
pub(super) fn is_early(feed: &FeedState) -> bool {
    feed.failing_since.is_some_and(|since| feed.baseline_at.is_none() || feed.tried_at.is_none_or(|tried_at| tried_at < since))
}

/// Returns the wait after `failures` runs in a row in which polls failed. It doubles from five seconds to five minutes, or to an hour if
/// the failed polls may have cost credits.
#[must_use]
pub fn early_wait(failures: u32, is_paid: bool) -> TimeDelta {
    let longest = if is_paid { MAX_PAID_WAIT } else { MAX_FREE_WAIT };
    // The largest factor gives 5,120 s.
    (FIRST_EARLY_WAIT * (1 << failures.saturating_sub(1).min(10))).min(longest)
}

#[cfg(test)]
mod tests;
