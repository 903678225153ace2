//! Digests: at a wall-clock time of a zone, what is ahead, what changed since the last one, what is silenced, and how the source is.
//!
//! [`Schedule`] says when the next is due; [`Digest`] is what it holds, and [`Digest::notice`] makes the message of it. Pure: what is
//! known and the time come in. That each slot is told once, also across restarts, is the store's doing: the slot is written with
//! the message in one transaction.

use serde::{Deserialize, Serialize};

use crate::supply::Timestamp;

/// What a digest tells: `record` of its notice's body, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    /// The slot of the digest before, or the look-back of the first one.
    pub since: Timestamp,
    /// The slot of this one.
    pub at: Timestamp,
    /// Where the look-ahead ends.
    pub until: Timestamp,
    /// Unlocks ahead, the next first.
    pub ahead: Vec<Ahead>,
    /// Unlocks ahead that are not listed, for want of room.
    pub ahead_left_out: u32,
    /// What changed since the last digest, the latest first.
    pub changes: Vec<Changed>,
    /// Changes that are not listed.
    pub changes_left_out: u32,
    /// Messages that silences, inhibitions and acknowledgements held back since the last digest.
    pub held_back: Vec<HeldBack>,
    /// Of these, not listed.
    pub held_back_left_out: u32,
    /// Alerts that fire now.
    pub firing: u32,
    /// What is the matter with source, receivers and database, in sentences; empty where all is well.
    pub trouble: Vec<String>,
}

/// An unlock ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    /// Slug.
    pub token: String,
    /// Ticker.
    pub symbol: String,
    /// Its time, or the begin of the interval that it stands for.
    pub at: Timestamp,
    /// Its time in words: `on 12 Mar 2026, 09:00 UTC`, `in March 2026`.
    pub when: String,
    /// USD.
    pub value: Option<f64>,
    /// Token units.
    pub amount: Option<f64>,
    /// Percent of the market cap.
    pub share: Option<f64>,
}

/// A change since the last digest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// When it was seen.
    pub at: Timestamp,
    /// Slug.
    pub token: String,
    /// Ticker.
    pub symbol: String,
    /// What happened, in words.
    pub text: String,
}

/// A message that was held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBack {
    /// `silenced`, `inhibited` or `acknowledged`.
    pub state: String,
    /// Name of the rule.
    pub rule: String,
    /// First line of the message.
    pub summary: String,
}
