//! Removal proof: when a missing record counts as removed, and when a response is held.
//!
//! A missing record is removed once enough complete responses in a row lack it. A listed event that omits a form, cliffs or linear
//! unlocks, may have a gap, so the removal of a form needs more of them, and is counted under a key of its own. If most of the upcoming
//! records are missing at once, the whole response is held: none of it is applied. A hold ends when the records are back, when an
//! operator accepts the removals, or after [`MIN_HOLD`] and at least [`MIN_HELD_RESPONSES`] complete responses.
//!
//! [`RemovalProof`] decides both for unlocks and for all other records. [`next_hold`] decides what happens to the hold of a
//! feed, and [`Release`] is the reason why it ended.

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use chrono::TimeDelta;

use crate::diff::Diff;
use model::supply::{FeedState, Hold, RecordKey, Timestamp, Tracked};

/// The minimum duration of a hold that no operator accepted.
pub const MIN_HOLD: TimeDelta = TimeDelta::hours(24);

/// The minimum number of complete responses that a record must be missing from before a hold ends by itself.
pub const MIN_HELD_RESPONSES: u32 = 4;

/// The minimum number of records that must be missing at once for a hold. They must also be more than half of the records.
const MIN_MISSING_FOR_HOLD: usize = 2;

/// Additional confirmations if the last response had gaps: the missing record may be what a gap hides.
const GAPPY_CONFIRMATIONS: u32 = 4;

/// Additional confirmations if a response omits a form of most events that had both: that may be a defect of the source.
const MASS_OMISSION_CONFIRMATIONS: u32 = 8;

/// Returns whether a response omits a form of several events, and of most events that had both.
#[must_use]
pub fn is_mass_omission(omitting: usize, had_both: usize) -> bool {
    omitting > 1 && omitting * 2 > had_both
}

/// The confirmations that the settings demand for a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofPolicy {
    /// This many complete responses; zero counts as one.
    Confirmations(u32),
    /// One response, even if most records are missing from it. For recorded responses, whose removals were proven when recorded.
    Immediate,
}

impl Default for ProofPolicy {
    fn default() -> Self {
        Self::Confirmations(2)
    }
}

/// The reliability of a response as proof that a missing record was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseQuality {
    /// Every record was read in full.
    Complete,
    /// Facts are missing from some records.
    Gappy,
    /// Some records could not be read. Each of them may be one of the missing records.
    Unreadable,
    /// The response lists a selection of the records.
    Partial,
    /// An earlier response came from an endpoint version that shows other records.
    OtherView,
}

/// The proof that a response adds to the earlier responses of a feed.
#[derive(Clone, Debug)]
pub struct RemovalProof<'a> {
    earlier: &'a [(RecordKey, u32)],
    counts: HashMap<&'a RecordKey, u32>,
    quality: ResponseQuality,
    /// `None` if no number of confirmations proves a removal.
    required: Option<u32>,
    /// Like `required`, for a form that a listed event omits.
    required_for_form: Option<u32>,
    /// Whether a removal of most records needs no further proof.
    is_accepted: bool,
    has_lasted: bool,
}

impl<'a> RemovalProof<'a> {
    /// Creates the proof of one response. `earlier` counts the responses in a row that lack each record, without this one. `hold` is the
    /// hold of the feed before this response.
    #[must_use]
    pub fn new(
        policy: ProofPolicy,
        quality: ResponseQuality,
        earlier: &'a [(RecordKey, u32)],
        hold: Option<Hold>,
        now: Timestamp,
    ) -> Self {
        let is_accepted = quality == ResponseQuality::OtherView
            || policy == ProofPolicy::Immediate
            || hold.is_some_and(|hold| hold.is_accepted);
        let required_with = |gap_confirmations: u32| match (quality, policy) {
            (ResponseQuality::Unreadable | ResponseQuality::Partial, _) => None,
            _ if is_accepted => Some(1),
            (_, ProofPolicy::Confirmations(count)) => Some(count.saturating_add(gap_confirmations).max(1)),
            (_, ProofPolicy::Immediate) => Some(1),
        };
        Self {
            earlier,
            counts: earlier.iter().map(|(key, count)| (key, *count)).collect(),
            quality,
            required: required_with(if quality == ResponseQuality::Gappy { GAPPY_CONFIRMATIONS } else { 0 }),
            required_for_form: required_with(GAPPY_CONFIRMATIONS),
            is_accepted,
            has_lasted: hold.is_some_and(|hold| has_lasted(hold, now)),
        }
    }

    /// Returns the number of responses in a row, this one included, that a record is missing from.
    fn confirmations(&self, key: &RecordKey) -> u32 {
        self.counts.get(key).copied().unwrap_or(0).saturating_add(1)
    }

    /// Returns a missing record with its confirmations, for [`Diff::missing`].
    #[must_use]
    pub fn counted(&self, key: &RecordKey) -> (RecordKey, u32) {
        (key.clone(), self.confirmations(key))
    }

    /// Returns the counts of known records that this response does not cover: they stay as they were.
    pub fn uncovered<'k>(
        &'k self,
        known: &'k [Tracked],
        covered: &'k HashSet<&RecordKey>,
    ) -> impl Iterator<Item = (RecordKey, u32)> + 'k {
        let known: HashSet<&RecordKey> = known.iter().map(|tracked| &tracked.key).collect();
        self.earlier.iter().filter(move |(key, _)| known.contains(key) && !covered.contains(key)).cloned()
    }

    /// Returns whether a missing record counts as removed.
    #[must_use]
    pub fn is_proven(&self, key: &RecordKey) -> bool {
        self.required.is_some_and(|required| self.confirmations(key) >= required)
    }

    /// Returns the omission of a form of a listed event with its confirmations, for [`Diff::missing`].
    #[must_use]
    pub fn counted_form(&self, event: &RecordKey) -> (RecordKey, u32) {
        self.counted(&form_key(event))
    }

    /// Returns whether a form that a listed event omits counts as removed. `is_mass_omission` states whether the response omits a form of
    /// most events.
    #[must_use]
    pub fn is_form_proven(&self, event: &RecordKey, is_mass_omission: bool) -> bool {
        let more = if is_mass_omission && !self.is_accepted { MASS_OMISSION_CONFIRMATIONS } else { 0 };
        self.required_for_form.is_some_and(|required| self.confirmations(&form_key(event)) >= required.saturating_add(more))
    }

    /// Returns whether the response must be held, because `missing` are most of `count` records and not all of them are proven.
    #[must_use]
    pub fn must_hold(&self, missing: &[&RecordKey], count: usize) -> bool {
        self.quality != ResponseQuality::Partial
            && missing.len() >= MIN_MISSING_FOR_HOLD
            && missing.len() * 2 > count
            && !missing.iter().all(|key| self.is_proven_for_most(key))
    }

    /// Returns whether a missing record counts as removed although most others are missing too.
    fn is_proven_for_most(&self, key: &RecordKey) -> bool {
        let has_lasted = self.has_lasted && self.confirmations(key) >= MIN_HELD_RESPONSES;
        self.is_proven(key) && (self.is_accepted || has_lasted)
    }

    /// Returns the confirmations to store after the response. A response with unreadable records confirms nothing.
    #[must_use]
    pub fn settle(&self, missing: Vec<(RecordKey, u32)>) -> Vec<(RecordKey, u32)> {
        if self.quality == ResponseQuality::Unreadable { self.earlier.to_vec() } else { missing }
    }
}

/// Returns the key under which the omissions of a form are counted. The event itself is not missing.
fn form_key(event: &RecordKey) -> RecordKey {
    format!("{event} form").as_str().into()
}

fn has_lasted(hold: Hold, now: Timestamp) -> bool {
    now - hold.since >= MIN_HOLD
}

/// The reason why a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The missing records are back.
    Returned,
    /// An operator accepted the removals.
    Accepted,
    /// Enough responses over enough time lack the records.
    Confirmed { responses: u32, held_for: TimeDelta },
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned => write!(f, "the missing records are back"),
            Self::Accepted => {
                write!(f, "the missing records count as removed: their removal was accepted with `cliffwatch accept`")
            }
            Self::Confirmed { responses, held_for } => {
                let hours = held_for.num_hours();
                write!(f, "the missing records count as removed: {responses} complete responses over {hours} h lack them")
            }
        }
    }
}

/// Returns the hold of a feed after a response, and the reason if an earlier hold ended. `feed` is the state before the response.
#[must_use]
pub fn next_hold(feed: &FeedState, diff: &Diff, now: Timestamp) -> (Option<Hold>, Option<Release>) {
    // Removals that still wait for proof after a release belong to that release: they start no new hold.
    let is_released = feed.hold.is_some_and(|hold| hold.is_accepted || has_lasted(hold, now));
    if diff.held || (is_released && !diff.missing.is_empty()) {
        return (Some(feed.hold.unwrap_or(Hold { since: now, is_accepted: false })), None);
    }
    (None, feed.hold.map(|hold| release(hold, diff, &feed.missing, now)))
}

fn release(hold: Hold, diff: &Diff, missing: &[(RecordKey, u32)], now: Timestamp) -> Release {
    let is_removed =
        |key: &RecordKey| diff.removed.contains(key) || diff.put.iter().any(|put| put.key == *key && put.is_new_version);
    if !missing.iter().any(|(key, _)| is_removed(key)) {
        return Release::Returned;
    }
    if hold.is_accepted {
        return Release::Accepted;
    }
    let responses = missing.iter().map(|(_, count)| count.saturating_add(1)).max().unwrap_or_default();
    Release::Confirmed { responses, held_for: now - hold.since }
}

/// Describes a hold and what ends it.
#[must_use]
pub fn describe_hold() -> String {
    format!(
        "A complete response lacks more than half of the coming records, so it is not applied yet, and none of its changes is reported; \
         it is applied once at least {MIN_HELD_RESPONSES} responses over {} h lack them, or once you accept it with `cliffwatch accept` \
         and the token",
        MIN_HOLD.num_hours()
    )
}
