//! How completely the linear unlocks of a schedule are known, and the daily emission ahead that completes them.
//!
//! Newer API versions omit linear unlocks, and v2 and v3 omit changes of a rate. v1 has all of them, but not for every
//! token. For the others, daily emission ahead shows how many tokens are released on each day, and [`LinearAhead`] holds the part of it
//! that the known unlocks do not explain. It is not a record and has no changes. [`LinearNotes`] are stored with the feed of the schedule.

use chrono::{NaiveDate, NaiveTime};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::feed::FeedState;
use crate::time::Timestamp;

/// The maximum number of runs per token.
pub const MAX_LINEAR_RUNS: usize = 400;

words! {
    /// The kinds of supply that are known of a token.
    KnownSupply {
        /// Cliff and linear unlocks.
        All = "all",
        /// Cliff unlocks only: linear unlocks were never read.
        Cliffs = "cliffs",
        /// Nothing: the schedule was never read.
        None = "none",
    }
}

/// The extent to which the supply of a token is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupplyCoverage {
    pub known: KnownSupply,
    /// The instant until which linear supply is known completely. Later supply can be missing. `None` if it is known for the whole
    /// schedule.
    pub linear_until: Option<Timestamp>,
}

words! {
    /// The method by which the source lists a token.
    ListedMethod {
        Internal = "INTERNAL",
        /// Older API versions do not have these tokens.
        Ai = "AI",
        External = "EXTERNAL",
        Other = "other",
    }
}

impl ListedMethod {
    /// Returns the method for a `listedMethod` of the source.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::parse(text).unwrap_or(Self::Other)
    }
}

/// The last read of a schedule's linear unlocks, which another API version returns. Stored with the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SegmentsRead {
    pub at: Timestamp,
    /// The token's `lastUpdatedDate` at that time; `None` if the list has none.
    pub mark: Option<Timestamp>,
    /// The API version. `None` if a program stored it that read only v3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u8>,
}

/// A response that the source has no schedule of the token in the version with all linear unlocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct VersionAbsence {
    pub at: Timestamp,
    /// The token's listing method at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<ListedMethod>,
}

/// A known linear unlock that changes a rate, and that the endpoint version of the last response does not show.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct OmittedRate {
    pub allocation: String,
    pub begin: Timestamp,
}

/// A linear unlock that ended earlier in a response without changes of a rate. It may continue at another rate, which such a response
/// omits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ShortenedUnlock {
    pub allocation: String,
    /// The end before it was shortened.
    pub end: Timestamp,
}

/// The amount that an allocation releases on each of several days, in addition to the known unlocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinearRun {
    /// The allocation; empty if the source does not name it.
    pub allocation: String,
    /// The category of the allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The first day, in UTC.
    pub start: NaiveDate,
    /// The day after the last one.
    pub end: NaiveDate,
    /// The amount in tokens per day; positive.
    pub per_day: f64,
}

impl LinearRun {
    /// Returns the first instant.
    #[must_use]
    pub fn starts_at(&self) -> Timestamp {
        midnight(self.start)
    }

    /// Returns the instant after the last one.
    #[must_use]
    pub fn ends_at(&self) -> Timestamp {
        midnight(self.end)
    }

    /// Returns the amount, in tokens, that is released between two instants.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "seconds of a few thousand years fit a double")]
    pub fn amount_between(&self, from: Timestamp, until: Timestamp) -> f64 {
        let (from, until) = (from.max(self.starts_at()), until.min(self.ends_at()));
        self.per_day * ((until - from).num_seconds().max(0) as f64 / 86_400.0)
    }
}

fn midnight(day: NaiveDate) -> Timestamp {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// The daily emission ahead of a token, without the part that the known unlocks explain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinearAhead {
    pub read_at: Timestamp,
    /// The instant until which the emission is known.
    pub until: Timestamp,
    /// The runs, by start and allocation; at most [`MAX_LINEAR_RUNS`].
    #[serde(default, deserialize_with = "valid_runs")]
    pub runs: Vec<LinearRun>,
    /// Whether several days of a run were averaged to limit the number of runs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_averaged: bool,
    /// The amount, in tokens, by which the known unlocks exceed the emission until [`Self::until`]. `None` if it is negligible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<f64>,
}

impl LinearAhead {
    /// Returns the daily emission ahead that is stored in the header of a schedule's feed.
    #[must_use]
    pub fn of_header(header: &Value) -> Option<Self> {
        Self::deserialize(header.get("linearAhead")?).ok()
    }
}

/// The facts about a schedule's linear unlocks that are stored in the header of its feed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinearNotes {
    /// Whether any response showed linear unlocks. `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_linear: Option<bool>,
    /// The last time that linear unlocks were read in addition to the cliffs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_read: Option<SegmentsRead>,
    /// The last time that the source had no version with linear unlocks, so that polling it each time would be useless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_absent: Option<SegmentsRead>,
    /// The last time that the source did not have the token in the version with all linear unlocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_changes_absent: Option<VersionAbsence>,
    /// Whether the records include linear unlocks that only change a rate.
    #[serde(skip_serializing_if = "is_false")]
    pub has_rate_changes: bool,
    /// Changes of a rate that the last response omitted. Only responses that show them are compared with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted_rates: Vec<OmittedRate>,
    /// Linear unlocks that ended earlier while no response showed changes of a rate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<ShortenedUnlock>,
    /// Whether linear unlocks can be missing, so that daily emission ahead completes them. `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_ahead: Option<bool>,
    /// The last time that the source had no daily emission of the token, or none for this API plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead_absent: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "valid_ahead")]
    pub linear_ahead: Option<LinearAhead>,
}

/// Returns how completely the supply of a token is known, from the feed of its schedule and the header of this feed.
#[must_use]
pub fn supply_coverage(feed: Option<&FeedState>, header: Option<&Value>) -> SupplyCoverage {
    let is_read = feed.is_some_and(|feed| feed.baseline_at.is_some() && feed.read_at.is_some());
    if !is_read {
        return SupplyCoverage { known: KnownSupply::None, linear_until: None };
    }
    header.and_then(|header| LinearNotes::deserialize(header).ok()).unwrap_or_default().coverage()
}

impl LinearNotes {
    /// Returns how completely the supply of a token with a read schedule is known.
    fn coverage(&self) -> SupplyCoverage {
        if self.shown_linear == Some(false) {
            return SupplyCoverage { known: KnownSupply::Cliffs, linear_until: None };
        }
        let read_at = self.segments_read.map(|read| read.at);
        let linear_until = match (self.needs_ahead, self.segments_read) {
            (Some(true), _) => self.linear_ahead.as_ref().map(|ahead| ahead.until).or(read_at),
            // v3 was read, and whether it shows everything was not decided then.
            (None, Some(SegmentsRead { version: None, .. })) => read_at,
            _ => None,
        };
        SupplyCoverage { known: KnownSupply::All, linear_until }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Reads the valid runs, at most [`MAX_LINEAR_RUNS`].
fn valid_runs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<LinearRun>, D::Error> {
    let mut runs = Vec::<LinearRun>::deserialize(from)?;
    runs.retain(|run| run.start < run.end && run.per_day.is_finite() && run.per_day > 0.0);
    runs.truncate(MAX_LINEAR_RUNS);
    Ok(runs)
}

/// Reads a daily emission ahead. An invalid one counts as absent.
fn valid_ahead<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LinearAhead>, D::Error> {
    Ok(Value::deserialize(from).ok().and_then(|value| LinearAhead::deserialize(value).ok()))
}

#[cfg(test)]
mod tests;
