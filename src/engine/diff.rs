//! What a complete answer changes in what was known: pure functions from records before and after to a [`Diff`].
//!
//! The cast: [`Settings`] and [`DateWindow`] (what was asked), the records under their keys, and a [`Diff`] that says what changed
//! ([`Diff::changes`]), what to write ([`Diff::put`]), what is proven gone ([`Diff::removed`]) and what only may be gone
//! ([`Diff::missing`]).
//!
//! The path for unlocks, the heart of it: `tranche` takes events apart, `rename` finds renamed allocations, `align` pairs the old and
//! new tranches of each series by the cheapest explanation of the whole series, `link` does so for a whole token, `conserve` finds
//! what keeps its total, `unlock` rolls them up to events that keep their keys, `changes` says what happened, each correction once,
//! and `unlock` withholds what needs proof. Burns, buybacks, emissions, allocations and rounds have simpler identities; they are in
//! `records`.
//!
//! The promises:
//! - Price drift, another order of rows, duplicates and missing fields are no changes.
//! - A record is gone only after complete answers left it out [`Settings::removal_confirmations`] times. What else belongs to such
//!   a removal waits with it, so that nothing is said twice; what does not belong to it is said at once.
//! - Where most of a token's coming records vanish at once, the answer is [held](Diff::held): nothing of it is applied until it was
//!   confirmed once more than a removal needs; then it is one change.
//! - An answer without any linear unlocks says nothing of linear segments where its cliffs are those that were known: another
//!   version of the endpoint answered. They are kept.
//!
//! ```
//! use cliffwatch_engine::diff::{Settings, UnlockPoll, diff_unlocks};
//! use model::{supply::{Record, Timestamp, Tracked}, wire::UnlockEvent};
//!
//! let event = |date: &str| {
//!     let parts = r#"[{"allocationName": "Team", "cliffAmount": 11310000}]"#;
//!     let json = format!(r#"{{"unlockDate": "{date}", "cliffUnlocks": {{"allocationBreakdown": {parts}}}}}"#);
//!     serde_json::from_str::<UnlockEvent>(&json)
//! };
//! let now: Timestamp = "2026-03-01T00:00:00Z".parse()?;
//! let known = Tracked { key: "2026-03-12".into(), record: Record::Unlock(std::sync::Arc::new(event("2026-03-12")?)) };
//! let (token, settings) = ("aptos".into(), Settings::default());
//! let poll = UnlockPoll { supply: Some(1_130_000_000.0), ..UnlockPoll::of(&token, &settings, now) };
//! let answer = |events: &[UnlockEvent]| diff_unlocks(&poll, &[known.clone()], &[], events);
//!
//! let diff = answer(&[event("2026-03-16")?]);
//! assert_eq!(diff.changes.len(), 1);
//! assert_eq!(diff.changes[0].summary, "11.31M of Team (1.00% of supply) moved from 12 to 16 Mar 2026 (+4 days)");
//! // An answer without anything proves nothing.
//! let diff = answer(&[]);
//! assert!(diff.held && diff.changes.is_empty() && diff.removed.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod align;
mod changes;
mod complete;
mod conserve;
mod link;
mod records;
mod rename;
#[cfg(test)]
mod tests;
mod tranche;
mod unlock;

use std::collections::{HashMap, HashSet};

use chrono::{NaiveDate, TimeDelta};

pub use complete::{AnswerView, CompletedAnswer, complete};
pub use records::{
    baseline_allocations, baseline_burns, baseline_buybacks, baseline_emissions, baseline_funding, diff_allocations, diff_burns,
    diff_buybacks, diff_emissions, diff_funding, max_supply_change,
};
pub use unlock::{UnlockPoll, baseline_unlocks, diff_unlocks, event_key, newly_visible, repriced};

use model::{
    change::Change,
    rows::Put,
    supply::{Record, RecordKey, Timestamp, Tracked},
};

/// Ratios that differ by less than this, relatively, are one ratio: sources round each amount.
const RATIO_TOLERANCE: f64 = 2e-4;

/// How exact a comparison is, and how much proof a removal needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Amounts that differ by less, relatively, are equal.
    pub tolerance: f64,
    /// Complete answers that must leave a record out before it is gone; at least one.
    pub removal_confirmations: u32,
    /// What holds an answer that leaves out most of what was known.
    pub hold: Hold,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tolerance: 1e-9, removal_confirmations: 2, hold: Hold::default() }
    }
}

/// Whether an answer that leaves out most of what was known is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Not yet: it came first less than [`HELD_FOR`] ago.
    #[default]
    Begun,
    /// Once [`HELD_ANSWERS`] complete answers say so.
    Lasted,
    /// At once: somebody accepted it, or it was proven before.
    Accepted,
}

/// How long an answer that leaves out most of what was known is held at least.
pub const HELD_FOR: TimeDelta = TimeDelta::hours(24);

/// Complete answers that must have left a record out before one that is held is believed by itself.
pub const HELD_ANSWERS: u32 = 4;

impl Hold {
    /// That of a feed whose answers are held `since`; the beginning of time stands for an answer that somebody accepted.
    pub fn of(since: Option<Timestamp>, now: Timestamp) -> Self {
        match since {
            Some(since) if since == Timestamp::UNIX_EPOCH => Self::Accepted,
            Some(since) if now - since >= HELD_FOR => Self::Lasted,
            _ => Self::Begun,
        }
    }
}

/// The days that were asked for. A record outside of them proves nothing by its absence. None is without bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DateWindow {
    /// First day.
    pub first: Option<NaiveDate>,
    /// Last day, inclusive.
    pub last: Option<NaiveDate>,
}

impl DateWindow {
    /// All days.
    pub const ALL: DateWindow = DateWindow { first: None, last: None };

    /// From one day to another, both inclusive.
    #[must_use]
    pub fn of(first: NaiveDate, last: NaiveDate) -> Self {
        Self { first: Some(first), last: Some(last) }
    }

    /// The days of both windows.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let both = |a: Option<NaiveDate>, b: Option<NaiveDate>, pick: fn(NaiveDate, NaiveDate) -> NaiveDate| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (one, other) => one.or(other),
        };
        Self { first: both(self.first, other.first, NaiveDate::max), last: both(self.last, other.last, NaiveDate::min) }
    }

    /// Whether an instant lies within; what is undated does.
    #[must_use]
    pub fn contains(&self, at: Option<Timestamp>) -> bool {
        let Some(day) = at.map(|at| at.date_naive()) else {
            return true;
        };
        self.first.is_none_or(|first| first <= day) && self.last.is_none_or(|last| day <= last)
    }
}

/// What is unusual in an answer and harmless: only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowAnomalies {
    /// Rows that came twice, alike in every field, and were counted once.
    pub duplicates: u32,
    /// Rows out of the order of time.
    pub reordered: u32,
}

/// What one complete answer changes in what was known of a token's records of one resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    /// What changed, each thing once.
    pub changes: Vec<Change>,
    /// Records to write, each under the key that it has from now on. Those that are unchanged in every field are left out.
    pub put: Vec<Put>,
    /// Proven gone: to be taken out of the snapshot.
    pub removed: Vec<RecordKey>,
    /// Left out by this answer and by so many in a row, not yet proven gone. Replaces what was there; whoever came back is not in it.
    pub missing: Vec<(RecordKey, u32)>,
    /// Most of the token's coming records vanished at once: nothing of the answer is applied, `missing` counts on.
    pub held: bool,
    /// What was unusual.
    pub odd: RowAnomalies,
}

impl Diff {
    /// Whether the answer changes nothing at all, prices included.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.put.is_empty() && self.removed.is_empty() && self.missing.is_empty() && !self.held
    }
}

/// The snapshot after a diff.
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

/// Equality of amounts within a relative tolerance.
fn close(a: f64, b: f64, tolerance: f64) -> bool {
    // Exact equality first: it also covers zero.
    #[expect(clippy::float_cmp, reason = "the tolerance follows")]
    let equal = a == b;
    equal || ((a - b).is_finite() && (a - b).abs() <= tolerance * a.abs().max(b.abs()))
}

/// As [`close`], where both are known; two unknown amounts are equal.
fn close_or_none(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => close(a, b, tolerance),
        (None, None) => true,
        _ => false,
    }
}

/// A count for a change.
fn count_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The amount after by the amount before.
fn ratio_of(from: Option<f64>, to: Option<f64>) -> Option<f64> {
    let (from, to) = (from?, to?);
    (from != 0.0).then(|| to / from).filter(|ratio| ratio.is_finite())
}

/// The stem of a dated record's key.
fn date_key(at: Option<Timestamp>) -> String {
    match at {
        None => "undated".to_owned(),
        Some(at) if at.time() == chrono::NaiveTime::MIN => at.format("%Y-%m-%d").to_string(),
        Some(at) => at.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
    }
}

/// Hands out keys: the wanted text, else with `#2`, `#3`, … behind it.
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

/// Keeps count of records that complete answers leave out.
struct Absence<'a> {
    counts: HashMap<&'a RecordKey, u32>,
    needed: u32,
    hold: Hold,
}

impl<'a> Absence<'a> {
    fn new(missing: &'a [(RecordKey, u32)], settings: &Settings) -> Self {
        let Settings { removal_confirmations, hold, .. } = *settings;
        // What proves nothing at all is no proof of what somebody accepted either.
        let needed = if hold == Hold::Accepted && removal_confirmations < u32::MAX { 1 } else { removal_confirmations.max(1) };
        Self { counts: missing.iter().map(|(key, count)| (key, *count)).collect(), needed, hold }
    }

    /// Absences of a record, this one included.
    fn count(&self, key: &RecordKey) -> u32 {
        self.counts.get(key).copied().unwrap_or(0).saturating_add(1)
    }

    /// A record with its count, as [`Diff::missing`] holds it.
    fn counted(&self, key: &RecordKey) -> (RecordKey, u32) {
        (key.clone(), self.count(key))
    }

    /// Whether an answer that leaves out most of what was known, this record among it, is not believed yet.
    fn is_doubted(&self, key: &RecordKey) -> bool {
        let count = self.count(key);
        count < self.needed || self.hold == Hold::Begun || (self.hold == Hold::Lasted && count < HELD_ANSWERS)
    }

    fn is_proven(&self, key: &RecordKey) -> bool {
        self.count(key) >= self.needed
    }
}
