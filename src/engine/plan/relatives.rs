//! Corrections that another endpoint of the same token shows. Pure.
//!
//! Allocations and emissions follow from the schedule of a token. A poll that finds a correction in one of them is a sign that the
//! others changed too.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::EndpointFeeds;
use super::priority::follows;
use model::{Endpoint, FeedState, PlanToken, Timestamp, TokenId};

/// The time within which a correction that a feed shows is the one that its schedule showed before.
const SAME_CORRECTION_TIME: TimeDelta = TimeDelta::days(7);

/// The feeds that show the same corrections as those of an endpoint, by token.
pub(super) struct Relatives<'a> {
    is_schedule: bool,
    feeds: HashMap<&'a TokenId, Vec<&'a FeedState>>,
}

impl<'a> Relatives<'a> {
    pub(super) fn of(all: &'a [EndpointFeeds], endpoint: Endpoint) -> Self {
        let mut feeds: HashMap<&TokenId, Vec<&FeedState>> = HashMap::new();
        let is_relative =
            |other: &&EndpointFeeds| follows(other.endpoint) == Some(endpoint) || follows(endpoint) == Some(other.endpoint);
        for token in all.iter().filter(is_relative).flat_map(|other| &other.tokens) {
            if let Some(feed) = token.feed.as_ref().filter(|feed| feed.findings.found_at.is_some()) {
                feeds.entry(&token.id).or_default().push(feed);
            }
        }
        Self { is_schedule: follows(endpoint).is_none(), feeds }
    }

    /// Returns whether a related feed of the token shows a correction that the feed of `token` may not show yet.
    pub(super) fn show_correction(&self, token: &PlanToken, now: Timestamp) -> bool {
        let Some(feed) = token.feed.as_ref() else { return false };
        let found = self.feeds.get(&token.id).into_iter().flatten().filter_map(|related| related.findings.found_at);
        // What a feed shows shortly after its schedule is no new correction of the schedule.
        let is_known =
            |at: Timestamp| self.is_schedule && feed.findings.found_at.is_some_and(|own| at - own < SAME_CORRECTION_TIME);
        // A time in the future comes from a clock that was wrong.
        found.into_iter().filter(|at| *at <= now).any(|at| feed.read_at.is_some_and(|read| read < at) && !is_known(at))
    }
}
