//! Whether the source is correcting many schedules at once, as seen from what reading them found. Pure.
//!
//! Who keeps the schedules mends them in batches: of the 71 corrections in `data/revisions`, 30 came in two hours. Where no list
//! tells, reads find the first of a batch by chance, and one find says little: it is a batch with [`PRIOR`]. Each read after it of a
//! feed that was not read since is a trial: a batch would have touched that feed with probability [`SHARE`], chance alone with that
//! of one correction since it was last read. A few reads that find nothing end the suspicion; a second find makes it nearly sure, and
//! then every feed that was not read since counts as told.

use chrono::TimeDelta;

use model::{FeedState, Timestamp};

/// How likely a correction that nothing told is one of a batch: 2 of about 45 occasions.
const PRIOR: f64 = 0.05;
/// Share of the feeds that a batch touches: 19 and 11 of 52.
const SHARE: f64 = 0.3;
/// A batch is over after as long.
const LASTS: TimeDelta = TimeDelta::days(2);
/// Least and most that chance alone is reckoned to find with one read.
const CHANCE: (f64, f64) = (1e-4, 0.25);

/// A batch that may be under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    /// When the first of it was found.
    since: Timestamp,
    likely: f64,
}

impl Burst {
    /// By what reads found until `now`, where a read finds a correction with probability `chance` otherwise.
    pub(super) fn of<'a>(feeds: impl Iterator<Item = &'a FeedState> + Clone, chance: f64, now: Timestamp) -> Option<Self> {
        let recent = |feed: &FeedState| feed.findings.untold_at.filter(|at| *at <= now && now - *at <= LASTS);
        let since = feeds.clone().filter_map(recent).min()?;
        let chance = chance.clamp(CHANCE.0, CHANCE.1);
        // The first find is what raised the question.
        let mut odds = PRIOR / (1.0 - PRIOR) * chance / SHARE;
        for feed in feeds.filter(|feed| feed.read_at.is_some_and(|at| at >= since)) {
            odds *= match recent(feed) {
                Some(_) => SHARE / chance,
                None => (1.0 - SHARE) / (1.0 - chance),
            };
        }
        let odds = odds.min(f64::MAX);
        Some(Self { since, likely: odds / (1.0 + odds) })
    }

    /// How likely it touched a feed that nobody has read since.
    pub(super) fn hits(&self, feed: &FeedState) -> f64 {
        if feed.read_at.is_some_and(|at| at < self.since) { self.likely * SHARE } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
