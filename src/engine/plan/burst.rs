//! Detects that the source is correcting many schedules at once. Pure.
//!
//! Sources correct schedules in batches: of the 71 corrections in `data/revisions`, 30 came within two hours. If no list reports
//! corrections, a poll finds the first one of a batch by chance, which is weak evidence: it belongs to a batch with probability [`PRIOR`].
//! Each later poll of a feed that was not polled since is a trial. A batch would have corrected that feed with probability [`SHARE`], an
//! independent correction with a much smaller one. A few polls that find nothing end the suspicion. A second find makes a batch nearly
//! certain, and every feed that was not polled since then counts as reported.

use chrono::TimeDelta;

use model::{FeedState, Timestamp};

/// The prior probability that an unreported correction belongs to a batch: 2 of about 45 in the data.
const PRIOR: f64 = 0.05;
/// The share of feeds that a batch corrects: 19 and 11 of 52 in the data.
const SHARE: f64 = 0.3;
/// The maximum duration of a batch.
const MAX_DURATION: TimeDelta = TimeDelta::days(2);
/// The bounds of the probability that a poll finds an independent correction.
const CHANCE: (f64, f64) = (1e-4, 0.25);

/// A suspected batch of corrections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    /// The time of the first find.
    since: Timestamp,
    /// The probability that there is a batch.
    probability: f64,
}

impl Burst {
    /// Detects a batch from the findings until `now`. `chance` is the probability that a poll finds an independent correction.
    pub(super) fn detect<'a>(feeds: impl Iterator<Item = &'a FeedState> + Clone, chance: f64, now: Timestamp) -> Option<Self> {
        let recent = |feed: &FeedState| feed.findings.unreported_at.filter(|at| *at <= now && now - *at <= MAX_DURATION);
        let since = feeds.clone().filter_map(recent).min()?;
        let chance = chance.clamp(CHANCE.0, CHANCE.1);
        // The first find raised the suspicion, so it is no evidence.
        let mut odds = PRIOR / (1.0 - PRIOR) * chance / SHARE;
        for feed in feeds.filter(|feed| feed.read_at.is_some_and(|at| at >= since)) {
            odds *= match recent(feed) {
                Some(_) => SHARE / chance,
                None => (1.0 - SHARE) / (1.0 - chance),
            };
        }
        let odds = odds.min(f64::MAX);
        Some(Self { since, probability: odds / (1.0 + odds) })
    }

    /// Returns the probability that the batch corrected a feed; zero if the feed was polled since the first find.
    pub(super) fn probability(&self, feed: &FeedState) -> f64 {
        if feed.read_at.is_some_and(|at| at < self.since) { self.probability * SHARE } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
