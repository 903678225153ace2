//! Feeds: what one endpoint says of one token, and what is remembered of it between reads.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    endpoint::Endpoint,
    id::{RecordKey, TokenId},
};
use crate::time::Timestamp;

/// What one endpoint says of one token, or of everything where it is not asked per token: the unit that is read, compared, held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedId {
    /// Who is asked.
    pub endpoint: Endpoint,
    /// About whom; none for the token list, `upcoming` and the investor list.
    pub token: Option<TokenId>,
}

impl FeedId {
    /// The feed of one token.
    #[must_use]
    pub fn of(endpoint: Endpoint, token: &TokenId) -> Self {
        Self { endpoint, token: Some(token.clone()) }
    }

    /// The feed of an endpoint that is not asked per token.
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

/// Hash of the payload's bytes: equal hashes need no parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentHash(pub u128);

/// What is remembered of a feed between reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedState {
    /// When it was first read whole: the baseline. None before.
    pub baseline_at: Option<Timestamp>,
    /// Last complete, valid answer.
    pub read_at: Option<Timestamp>,
    /// Last try, whatever came of it.
    pub tried_at: Option<Timestamp>,
    /// Hash of the last answer.
    pub hash: Option<ContentHash>,
    /// The token's `lastUpdatedDate` when it was last read.
    pub mark: Option<Timestamp>,
    /// Something said that it should be read again, whatever its mark: `upcoming` disagrees, a removal awaits proof.
    pub stale: bool,
    /// Since when it fails; none while it does not.
    pub failing_since: Option<Timestamp>,
    /// Records that complete answers left out, with how many times: not yet proven gone.
    pub missing: Vec<(RecordKey, u32)>,
    /// Since when an answer is held because most of the token's records vanished at once.
    pub held_since: Option<Timestamp>,
    /// Credits that the last complete read cost (one a page); zero before the first.
    pub cost: u32,
    /// What reading it found since the baseline: what the next look is worth is learned from it.
    pub findings: Findings,
}

/// Reads of a feed after its baseline, by what they found and what had told it before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Findings {
    /// Found something that the token list's mark told, before or after.
    pub by_mark: u32,
    /// Found something that only `upcoming` had told; the token list, asked afterwards, did not.
    pub by_upcoming: u32,
    /// Found something that nothing had told, and the token list, asked afterwards, did not tell either.
    pub untold: u32,
    /// Found something that nothing had told, and the token list was not asked since: it says nothing of the list.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecided: u32,
    /// The same where `upcoming` had told.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecided_upcoming: u32,
    /// When the last thing was found that is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided_at: Option<Timestamp>,
    /// When the last thing was found that nothing had told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold_at: Option<Timestamp>,
    /// Found nothing, though the mark had moved.
    pub idle_marks: u32,
    /// Found nothing, though `upcoming` had told.
    pub idle_upcoming: u32,
    /// What was found last is counted, and waits for its linear segments to be told.
    #[serde(skip_serializing_if = "is_false")]
    pub awaits_segments: bool,
}

/// What the token list says of what was found before it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListWord {
    /// It was not asked since.
    NotAsked,
    /// It was asked, and its mark is what it was.
    Silent,
    /// Its mark moved.
    Told,
}

impl Findings {
    /// Reads that found something.
    #[must_use]
    pub fn found(&self) -> u32 {
        let decided = self.by_mark.saturating_add(self.by_upcoming).saturating_add(self.untold);
        decided.saturating_add(self.open())
    }

    /// Of these, those of which the token list was not asked since.
    #[must_use]
    pub fn open(&self) -> u32 {
        self.undecided.saturating_add(self.undecided_upcoming)
    }

    /// With what the token list says of what is undecided.
    #[must_use]
    pub fn settled(mut self, word: ListWord) -> Self {
        match word {
            ListWord::NotAsked => return self,
            ListWord::Silent => {
                self.untold = self.untold.saturating_add(self.undecided);
                self.by_upcoming = self.by_upcoming.saturating_add(self.undecided_upcoming);
            }
            ListWord::Told => self.by_mark = self.by_mark.saturating_add(self.open()),
        }
        (self.undecided, self.undecided_upcoming, self.undecided_at) = (0, 0, None);
        self
    }

    /// With one more read, at `now`.
    #[must_use]
    pub fn with(mut self, has_found: bool, mark_moved: bool, upcoming_told: bool, now: Timestamp) -> Self {
        if has_found && !mark_moved {
            self.undecided_at = Some(now);
            self.untold_at = if upcoming_told { self.untold_at } else { Some(now) };
        }
        let counted = match (has_found, mark_moved, upcoming_told) {
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
