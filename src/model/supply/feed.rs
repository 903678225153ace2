//! Feeds: the data of one endpoint about one token, and the stored state between polls.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    endpoint::Endpoint,
    id::{RecordKey, TokenId},
};
use crate::time::Timestamp;

/// The data of one endpoint about one token, or about all tokens if the endpoint is not polled per token. It is polled, compared,
/// and held as a unit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedId {
    pub endpoint: Endpoint,
    /// `None` for the token list, `upcoming`, and the investor list.
    pub token: Option<TokenId>,
}

impl FeedId {
    #[must_use]
    pub fn of(endpoint: Endpoint, token: &TokenId) -> Self {
        Self { endpoint, token: Some(token.clone()) }
    }

    /// Returns the feed of an endpoint that is not polled per token.
    #[must_use]
    pub fn whole(endpoint: Endpoint) -> Self {
        Self { endpoint, token: None }
    }
}

impl fmt::Display for FeedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.token {
            Some(token) => write!(f, "{}/{token}", self.endpoint),
            None => write!(f, "{}", self.endpoint),
        }
    }
}

/// A hash of the response's bytes. If it is unchanged, the response need not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentHash(pub u128);

/// The stored state of a feed between polls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedState {
    /// The time of the first complete poll. `None` before.
    pub baseline_at: Option<Timestamp>,
    /// The time of the last complete, valid response.
    pub read_at: Option<Timestamp>,
    /// The time of the last poll, including failed ones.
    pub tried_at: Option<Timestamp>,
    /// The hash of the last response.
    pub hash: Option<ContentHash>,
    /// The token's `lastUpdatedDate` at the last complete poll.
    pub mark: Option<Timestamp>,
    /// Whether to poll the feed again even if the mark is unchanged: `upcoming` disagrees, or a removal needs proof.
    pub stale: bool,
    /// The time from which polls fail. `None` while they succeed.
    pub failing_since: Option<Timestamp>,
    /// Missing records that are not proven removed, with the number of complete responses that lack them.
    pub missing: Vec<(RecordKey, u32)>,
    /// `None` if the last response was applied.
    pub hold: Option<Hold>,
    /// Credits that the last complete poll cost, one per page; zero before the first.
    pub cost: u32,
    /// Statistics since the baseline, which estimate the benefit of the next poll.
    pub findings: Findings,
}

/// A hold: responses of a feed are not applied, because most of its records are missing from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The time of the first held response.
    pub since: Timestamp,
    /// Whether an operator accepted the removals, so that the next response that lacks the records is applied.
    pub is_accepted: bool,
}

impl FeedState {
    /// Returns whether records are missing whose removal is not proven yet.
    #[must_use]
    pub fn awaits_proof(&self) -> bool {
        !self.missing.is_empty() || self.hold.is_some()
    }
}

/// Counts of polls after the baseline, by whether they found a correction and whether another feed had reported it. The token list
/// reports a correction by a new mark, and `upcoming` by a next event that differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// Corrections that the token list reported, before or after the poll.
    pub by_mark: u32,
    /// Corrections that only `upcoming` had reported. The token list did not report them at its next poll.
    pub by_upcoming: u32,
    /// Corrections that neither had reported. The token list did not report them at its next poll either.
    pub unreported: u32,
    /// Corrections that neither had reported, while the token list was not polled again since.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecided: u32,
    /// Corrections that only `upcoming` had reported, while the token list was not polled again since.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecided_upcoming: u32,
    /// The time of the last undecided correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided_at: Option<Timestamp>,
    /// The time of the last correction that neither had reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreported_at: Option<Timestamp>,
    /// The time of the last poll that found a correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_at: Option<Timestamp>,
    /// Polls that found no correction, although the token list had reported one.
    pub idle_marks: u32,
    /// Polls that found no correction, although `upcoming` had reported one.
    pub idle_upcoming: u32,
    /// Whether the last correction is counted but its linear unlocks were not read yet.
    #[serde(skip_serializing_if = "is_false")]
    pub awaits_segments: bool,
}

impl Findings {
    /// Adds the counts of another feed. The times and the state stay.
    pub fn add_counts(&mut self, other: &Self) {
        let add = |to: &mut u32, count: u32| *to = to.saturating_add(count);
        add(&mut self.by_mark, other.by_mark);
        add(&mut self.by_upcoming, other.by_upcoming);
        add(&mut self.unreported, other.unreported);
        add(&mut self.undecided, other.undecided);
        add(&mut self.undecided_upcoming, other.undecided_upcoming);
        add(&mut self.idle_marks, other.idle_marks);
        add(&mut self.idle_upcoming, other.idle_upcoming);
    }
}

/// The report of the token list about a correction that was found before the list was polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListReport {
    /// The list was not polled since.
    NotPolled,
    /// The list has the same mark as before.
    Silent,
    /// The list has a new mark.
    Reported,
}

impl Findings {
    /// Returns the number of corrections.
    #[must_use]
    pub fn found(&self) -> u32 {
        let decided = self.by_mark.saturating_add(self.by_upcoming).saturating_add(self.unreported);
        decided.saturating_add(self.undecided_count())
    }

    /// Returns the number of undecided corrections.
    #[must_use]
    pub fn undecided_count(&self) -> u32 {
        self.undecided.saturating_add(self.undecided_upcoming)
    }

    /// Decides the undecided corrections by the next poll of the token list.
    #[must_use]
    pub fn settled(mut self, report: ListReport) -> Self {
        match report {
            ListReport::NotPolled => return self,
            ListReport::Silent => {
                self.unreported = self.unreported.saturating_add(self.undecided);
                self.by_upcoming = self.by_upcoming.saturating_add(self.undecided_upcoming);
            }
            ListReport::Reported => self.by_mark = self.by_mark.saturating_add(self.undecided_count()),
        }
        (self.undecided, self.undecided_upcoming, self.undecided_at) = (0, 0, None);
        self
    }

    /// Adds a poll at `now`.
    #[must_use]
    pub fn with(mut self, has_found: bool, mark_moved: bool, upcoming_reported: bool, now: Timestamp) -> Self {
        self.found_at = if has_found { Some(now) } else { self.found_at };
        if has_found && !mark_moved {
            self.undecided_at = Some(now);
            self.unreported_at = if upcoming_reported { self.unreported_at } else { Some(now) };
        }
        let counted = match (has_found, mark_moved, upcoming_reported) {
            (true, true, _) => &mut self.by_mark,
            (true, false, true) => &mut self.undecided_upcoming,
            (true, false, false) => &mut self.undecided,
            (false, true, _) => &mut self.idle_marks,
            (false, false, true) => &mut self.idle_upcoming,
            (false, false, false) => return self,
        };
        *counted = counted.saturating_add(1);
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_false(flag: &bool) -> bool {
    !flag
}
