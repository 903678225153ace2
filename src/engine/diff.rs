//! Compares a complete response with the known records: pure functions that return a [`Diff`].
//!
//! [`complete`] fills the gaps of a schedule with known facts. [`diff_unlocks`] then takes three steps, each of which returns a value:
//!
//! 1. `timeline` takes the old and the new events apart into tranches, under the new names of their allocations (`allocation_renames`,
//!    `relisted`).
//! 2. `link` decides what happened to every tranche. `align` pairs the tranches of each series by the cheapest explanation of the whole
//!    series, and `conserved_totals` finds allocations that keep their total.
//! 3. `changes` explains the links as few changes, each correction once.
//!
//! `unlock` rolls the tranches up to events that keep their keys, and withholds changes that need removal proof. Burns, buybacks,
//! emissions, allocations, and funding rounds have simpler identities; `records` compares them. `tolerances` holds every tolerance.
//!
//! Guarantees:
//! - A different price, another order of rows, a duplicate, or a missing field is not a change.
//! - A record is removed only after [proof](crate::removal). Changes that belong to an unproven removal wait with it; all others are
//!   reported at once.
//! - If most of a token's upcoming records are missing at once, the response is [held](Diff::held): it is not applied.
//! - A response without any linear unlocks, but with the known cliffs, comes from another endpoint version. Its linear segments stay.
//!
//! ```
//! use cliffwatch_engine::{
//!     diff::{UnlockPoll, diff_unlocks},
//!     removal::{ProofPolicy, RemovalProof, ResponseQuality},
//! };
//! use model::{supply::{Record, Timestamp, Tracked}, wire::UnlockEvent};
//!
//! let event = |date: &str| {
//!     let parts = r#"[{"allocationName": "Team", "cliffAmount": 11310000}]"#;
//!     let json = format!(r#"{{"unlockDate": "{date}", "cliffUnlocks": {{"allocationBreakdown": {parts}}}}}"#);
//!     serde_json::from_str::<UnlockEvent>(&json)
//! };
//! let now: Timestamp = "2026-03-01T00:00:00Z".parse()?;
//! let known = Tracked { key: "2026-03-12".into(), record: Record::Unlock(std::sync::Arc::new(event("2026-03-12")?)) };
//! let token = "aptos".into();
//! let poll = UnlockPoll { supply: Some(1_130_000_000.0), ..UnlockPoll::of(&token, now) };
//! let proof = RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, &[], None, now);
//! let response = |events: &[UnlockEvent]| diff_unlocks(&poll, &[known.clone()], &proof, events);
//!
//! let diff = response(&[event("2026-03-16")?]);
//! assert_eq!(diff.changes.len(), 1);
//! assert_eq!(diff.changes[0].summary, "11.31M tokens of Team (1.00% of max supply) moved from 12 to 16 Mar 2026 (+4 days)");
//! // An empty response removes nothing.
//! let diff = response(&[]);
//! assert!(diff.held && diff.changes.is_empty() && diff.removed.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod align;
mod allocation_renames;
mod changes;
mod complete;
mod conserved_totals;
mod index;
mod link;
mod records;
mod relisted;
mod rounding;
#[cfg(test)]
mod tests;
mod timeline;
mod tolerances;
mod tranche;
mod unlock;

use std::collections::{HashMap, HashSet};

use chrono::NaiveDate;

pub use complete::{CompletedResponse, FormOmission, ResponseView, complete};
pub use records::{
    RecordPoll, baseline_allocations, baseline_burns, baseline_buybacks, baseline_emissions, baseline_funding, diff_allocations,
    diff_burns, diff_buybacks, diff_emissions, diff_funding, max_supply_change,
};
pub(crate) use tolerances::same_total;
pub use unlock::{UnlockPoll, baseline_unlocks, diff_unlocks, event_key, newly_visible, repriced};

use crate::removal::ProofPolicy;
use model::{
    change::Change,
    rows::Put,
    supply::{Record, RecordKey, Timestamp, Tracked},
};

/// The precision of comparisons, and the proof that removals need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The relative difference below which two amounts are equal.
    pub tolerance: f64,
    pub proof: ProofPolicy,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tolerance: tolerances::DEFAULT_AMOUNT, proof: ProofPolicy::default() }
    }
}

/// A range of days, both ends inclusive. `None` is unbounded. A record outside the range does not count as missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateWindow {
    pub first: Option<NaiveDate>,
    pub last: Option<NaiveDate>,
}

impl DateWindow {
    pub const ALL: DateWindow = DateWindow { first: None, last: None };

    /// Returns the days from `first` to `last`, both inclusive.
    #[must_use]
    pub fn of(first: NaiveDate, last: NaiveDate) -> Self {
        Self { first: Some(first), last: Some(last) }
    }

    /// Returns the days that both windows contain.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let both = |a: Option<NaiveDate>, b: Option<NaiveDate>, pick: fn(NaiveDate, NaiveDate) -> NaiveDate| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (one, other) => one.or(other),
        };
        Self { first: both(self.first, other.first, NaiveDate::max), last: both(self.last, other.last, NaiveDate::min) }
    }

    /// Returns whether the window contains an instant. It contains undated records.
    #[must_use]
    pub fn contains(&self, at: Option<Timestamp>) -> bool {
        let Some(day) = at.map(|at| at.date_naive()) else {
            return true;
        };
        self.first.is_none_or(|first| first <= day) && self.last.is_none_or(|last| day <= last)
    }
}

/// Harmless defects of a response, which are only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowAnomalies {
    /// The number of rows that repeat another one in every field.
    pub duplicates: u32,
    /// The number of rows that are not in the order of their dates.
    pub reordered: u32,
}

/// The changes of a token's records of one resource by a complete response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    pub changes: Vec<Change>,
    /// Records to write, under their keys. Records without any changed field are not included.
    pub put: Vec<Put>,
    /// Records whose removal is proven.
    pub removed: Vec<RecordKey>,
    /// Records whose removal is not proven, with the number of responses in a row that lack them. Replaces the previous list.
    pub missing: Vec<(RecordKey, u32)>,
    /// Whether the response is held. Then only `missing` is set.
    pub held: bool,
    pub anomalies: RowAnomalies,
}

impl Diff {
    /// Returns whether nothing changed, prices included.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.put.is_empty() && self.removed.is_empty() && self.missing.is_empty() && !self.held
    }
}

/// Returns the snapshot after a diff.
#[must_use]
pub fn apply(before: &[Tracked], diff: &Diff) -> Vec<Tracked> {
    let removed: HashSet<&RecordKey> = diff.removed.iter().collect();
    let mut written: HashMap<&RecordKey, &Record> = diff.put.iter().map(|put| (&put.key, &put.record)).collect();
    let mut after: Vec<Tracked> = before
        .iter()
        .filter(|tracked| !removed.contains(&tracked.key))
        .map(|tracked| match written.remove(&tracked.key) {
            Some(record) => Tracked { key: tracked.key.clone(), record: record.clone() },
            None => tracked.clone(),
        })
        .collect();
    for put in &diff.put {
        if written.remove(&put.key).is_some() {
            after.push(Tracked { key: put.key.clone(), record: put.record.clone() });
        }
    }
    after
}

pub(crate) fn count_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the amount after by the amount before, if both are known and the ratio is finite.
fn ratio_of(from: Option<f64>, to: Option<f64>) -> Option<f64> {
    let (from, to) = (from?, to?);
    (from != 0.0).then(|| to / from).filter(|ratio| ratio.is_finite())
}

/// Returns the key of a record that is alone on its date.
fn date_key(at: Option<Timestamp>) -> String {
    match at {
        None => "undated".to_owned(),
        Some(at) if at.time() == chrono::NaiveTime::MIN => at.format("%Y-%m-%d").to_string(),
        Some(at) => at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
    }
}

/// Allocates unique keys: the wanted text, or the text with `#2`, `#3`, …
#[derive(Default)]
struct KeyAllocator {
    taken: HashSet<String>,
    next: HashMap<String, u32>,
}

impl KeyAllocator {
    fn taken<'a>(keys: impl IntoIterator<Item = &'a RecordKey>) -> Self {
        Self { taken: keys.into_iter().map(|key| key.as_str().to_owned()).collect(), next: HashMap::new() }
    }

    fn fresh(&mut self, wanted: &str) -> RecordKey {
        if self.taken.insert(wanted.to_owned()) {
            return wanted.into();
        }
        let ordinal = self.next.entry(wanted.to_owned()).or_insert(1);
        loop {
            *ordinal += 1;
            let key = format!("{wanted}#{ordinal}");
            if self.taken.insert(key.clone()) {
                return key.into();
            }
        }
    }
}
