//! When a poll of a schedule also fetches linear unlocks, and from where, under `unlock_events = "auto"`. Pure.
//!
//! The oldest API version has all linear unlocks, but lacks the tokens that are listed by AI. A newer version has these tokens, but
//! omits linear unlocks that only change a rate. Daily emission ahead then completes them: one page for [`AHEAD_DAYS`] days.

use chrono::{Days, NaiveDate, TimeDelta};

use super::PlanBasis;
use model::{
    Endpoint, FeedState, LAST_WITH_SEGMENTS, LinearReads, LinearRequest, ListedMethod, PlanToken, Timestamp, WITH_RATE_CHANGES,
    config::{EndpointVersion, Reach},
};

/// The interval between polls of linear unlocks for a token without a mark in the token list. The source takes days to apply a
/// correction, and a weekly poll costs about 4 credits a month, compared with over 100 for polling the cliffs four times a day.
const INTERVAL_WITHOUT_MARK: TimeDelta = TimeDelta::days(7);

/// The number of days of daily emission to read ahead: one page of the default size.
pub(super) const AHEAD_DAYS: u32 = 99;
/// The interval between reads of daily emission ahead, so that at least 90 days are known.
pub(super) const AHEAD_INTERVAL: TimeDelta = TimeDelta::days(9);
/// The time until something that the source did not have is requested again.
const ABSENCE_RETRY_INTERVAL: TimeDelta = TimeDelta::days(30);

/// The requests for linear unlocks that a poll of a schedule may add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearPolls {
    /// The version from which linear unlocks are read.
    pub segments_version: u8,
    /// The daily emission to read whenever linear unlocks are read. `None` if the token does not need it.
    pub ahead: Option<AheadPoll>,
    /// Whether the poll reads the daily emission of `ahead`.
    pub with_ahead: bool,
}

/// A poll of daily emission ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AheadPoll {
    pub first: NaiveDate,
    pub last: NaiveDate,
    /// The expected number of credits.
    pub cost: u64,
}

impl LinearPolls {
    /// No daily emission ahead, and linear unlocks from the last version that has any.
    pub(super) const NONE: LinearPolls = LinearPolls { segments_version: LAST_WITH_SEGMENTS, ahead: None, with_ahead: false };

    /// Returns the expected credits of daily emission ahead.
    #[must_use]
    pub fn ahead_cost(&self) -> u64 {
        self.ahead.filter(|_| self.with_ahead).map_or(0, |ahead| ahead.cost)
    }

    pub(super) fn request(&self, with_segments: bool) -> LinearRequest {
        LinearRequest {
            segments: with_segments.then_some(self.segments_version),
            ahead: self.ahead.filter(|_| self.with_ahead).map(|ahead| (ahead.first, ahead.last)),
        }
    }
}

/// Returns whether to fetch linear unlocks, and the requests that complete them.
pub(super) fn linear_polls(endpoint: Endpoint, token: &PlanToken, basis: &PlanBasis<'_>) -> (bool, LinearPolls) {
    if endpoint != Endpoint::UnlockEvents || basis.source.unlock_events != EndpointVersion::Auto {
        return (false, LinearPolls::NONE);
    }
    let reads = token.linear.as_deref().copied().unwrap_or_default();
    let segments_version = segments_version(token, &reads, basis.now);
    let with_segments = are_needed(token, segments_version, basis);
    let is_complete = segments_version == WITH_RATE_CHANGES && basis.source.history == Reach::All;
    let is_needed = match reads.needs_ahead {
        Some(_) if with_segments && is_complete && token.segments.is_some_and(|read| read.version != Some(segments_version)) => {
            false
        }
        Some(needs) => needs,
        // A first read cannot know whether linear unlocks will be missing.
        None => !is_complete && token.segments.is_none_or(|read| read.version.is_none()),
    };
    let is_absent = reads.ahead_absent.is_some_and(|at| is_within(at, ABSENCE_RETRY_INTERVAL, basis.now));
    let ahead = (is_needed && !is_absent).then(|| ahead_poll(basis));
    let is_due = reads.ahead_at.is_none_or(|at| !is_within(at, AHEAD_INTERVAL, basis.now));
    (with_segments, LinearPolls { segments_version, ahead, with_ahead: ahead.is_some() && (with_segments || is_due) })
}

fn ahead_poll(basis: &PlanBasis<'_>) -> AheadPoll {
    let first = basis.now.date_naive();
    let last = first.checked_add_days(Days::new(u64::from(AHEAD_DAYS) - 1)).unwrap_or(first);
    AheadPoll { first, last, cost: u64::from(AHEAD_DAYS.div_ceil(basis.source.page_size.max(1))) }
}

/// Returns the number of times that a token's daily emission ahead is read in `span` from now.
pub(super) fn ahead_reads_within(token: &PlanToken, span: TimeDelta, now: Timestamp) -> u64 {
    reads_within(token.linear.as_deref().and_then(|reads| reads.ahead_at), AHEAD_INTERVAL, span, now)
}

/// Returns the number of times that the linear unlocks of a token without a mark are read in `span` from now.
pub(super) fn unmarked_reads_within(token: &PlanToken, span: TimeDelta, now: Timestamp) -> u64 {
    reads_within(token.segments.map(|read| read.at), INTERVAL_WITHOUT_MARK, span, now)
}

/// Returns the number of reads in `span` from now that are due `interval` after the previous one. The last one was `read_at`.
fn reads_within(read_at: Option<Timestamp>, interval: TimeDelta, span: TimeDelta, now: Timestamp) -> u64 {
    let age = read_at.map_or(interval, |at| (now - at).max(TimeDelta::zero()));
    let rest = span - (interval - age).max(TimeDelta::zero());
    if rest < TimeDelta::zero() {
        return 0;
    }
    u64::try_from(1 + rest.num_seconds() / interval.num_seconds()).unwrap_or_default()
}

/// Returns the version that shows the most linear unlocks of a token.
fn segments_version(token: &PlanToken, reads: &LinearReads, now: Timestamp) -> u8 {
    let is_absent = reads
        .rate_changes_absent
        .is_some_and(|absence| absence.method == token.listed_method && is_within(absence.at, ABSENCE_RETRY_INTERVAL, now));
    if is_absent || token.listed_method == Some(ListedMethod::Ai) { LAST_WITH_SEGMENTS } else { WITH_RATE_CHANGES }
}

/// Returns whether to fetch linear unlocks: at the baseline, once for each new mark, if another feed reported a correction, to prove a
/// removal, and if a version that shows more of them has become available.
fn are_needed(token: &PlanToken, version: u8, basis: &PlanBasis<'_>) -> bool {
    let Some(read) = token.segments else { return true };
    let has_moved = match token.last_updated {
        Some(mark) => read.mark != Some(mark),
        None => !is_within(read.at, INTERVAL_WITHOUT_MARK, basis.now),
    };
    let shows_more = read.version.is_none_or(|read| version < read);
    let awaits = |feed: &FeedState| feed.stale || feed.awaits_proof();
    has_moved || shows_more || token.feed.as_ref().is_some_and(awaits)
}

/// Returns whether an instant is less than `span` away. `abs`, so that a clock that was set back does not delay a poll.
fn is_within(at: Timestamp, span: TimeDelta, now: Timestamp) -> bool {
    (now - at).abs() < span
}
