//! Changes of a token's records. A [`Change`] is one thing that happened, which can affect many records.

use serde::{Deserialize, Serialize};

use crate::supply::{Precision, Record, RecordKey, Resource, Timestamp, TokenId};

words! {
    /// The kind of a change: of a record, a series, or a token.
    #[derive(PartialOrd, Ord)]
    ChangeKind {
        /// A new record.
        Added = "added",
        /// A record whose removal is proven: enough complete responses lack it.
        Removed = "removed",
        /// The date of an unlock moved, or the start or end of a linear unlock.
        Rescheduled = "rescheduled",
        Resized = "resized",
        /// The same total goes to other recipients.
        Reallocated = "reallocated",
        /// One event became several.
        Split = "split",
        /// Several events became one.
        Merged = "merged",
        /// All tranches of a series moved by the same time.
        SeriesShifted = "series_shifted",
        /// All amounts of a series changed by the same ratio.
        SeriesRescaled = "series_rescaled",
        /// The same tranches have another allocation name or category.
        Renamed = "renamed",
        /// The total is unchanged, but the tranches have other dates, and not by one common shift.
        Restructured = "restructured",
        /// The schedule changed in too many ways to list them.
        Rewritten = "rewritten",
        /// A committed claim appeared or changed.
        Committed = "committed",
        /// Other facts changed: source, method, precision, or label. Also a restated burn or buyback.
        Revised = "revised",
        /// `maxSupply` or an allocation total changed.
        SupplyChanged = "supply_changed",
    }
}

impl ChangeKind {
    /// Returns whether this kind of change can happen to records of `resource`.
    #[must_use]
    pub fn can_happen_to(self, resource: Resource) -> bool {
        match self {
            ChangeKind::Added | ChangeKind::Removed | ChangeKind::Revised => true,
            ChangeKind::Rescheduled
            | ChangeKind::Reallocated
            | ChangeKind::Split
            | ChangeKind::Merged
            | ChangeKind::SeriesShifted
            | ChangeKind::SeriesRescaled
            | ChangeKind::Restructured
            | ChangeKind::Rewritten
            | ChangeKind::Committed => resource == Resource::Unlock,
            ChangeKind::Resized | ChangeKind::Renamed => matches!(resource, Resource::Unlock | Resource::Allocation),
            ChangeKind::SupplyChanged => resource == Resource::Allocation,
        }
    }
}

/// A value before or after a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// Tokens, or the unit of the field that changed.
    Amount(f64),
    Time(Timestamp),
    Text(String),
}

impl Fact {
    #[must_use]
    pub fn amount(&self) -> Option<f64> {
        if let Fact::Amount(amount) = self { Some(*amount) } else { None }
    }

    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        if let Fact::Time(at) = self { Some(*at) } else { None }
    }

    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Fact::Text(text) = self { Some(text) } else { None }
    }
}

/// The part of a change that concerns one allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocationChange {
    /// The allocation name; the new one if it changed.
    pub name: String,
    /// The value before: a date, an amount, or a name, as in [`Change::from`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Fact>,
    /// The value after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Fact>,
    /// Days by which the dates moved, positive for later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift_days: Option<f64>,
    /// The amount after, divided by the amount before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The number of affected tranches.
    pub count: u32,
    /// The affected tranches before, for a change of an unlock schedule other than a new name. `None` if the allocation is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<AllocationSchedule>,
    /// The affected tranches after, like `before`. `None` if all of them were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<AllocationSchedule>,
}

/// Total, dates, and pattern of some tranches of one allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocationSchedule {
    /// Tokens. `None` if no amount is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// The first date. `None` if all tranches are undated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// The last date, or the end of the last linear unlock if that is later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// The number of dates with cliff unlocks. `None` if an earlier version stored the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Tokens of each cliff unlock, if all are equal. `None` if they differ or are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<f64>,
    /// Tokens of the smallest cliff unlock, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Tokens of the largest cliff unlock, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// The regular interval of the cliff unlocks: `day`, `week`, `month`, `quarter`, `half-year`, or `year`. `None` if it is irregular.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// The linear unlocks. `None` if all unlocks are cliffs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear: Option<LinearSchedule>,
    /// The common precision of the dates. `None` if their precisions differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
}

/// The linear unlocks of an [`AllocationSchedule`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinearSchedule {
    /// The number of different spans.
    pub count: u32,
    /// Tokens. `None` if no amount is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Tokens per day, if all linear unlocks have one span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<f64>,
}

/// A field that changed, for [`ChangeKind::Revised`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// The path in the API's JSON, such as `dataSource`.
    pub field: String,
    /// The value before; null if it was missing.
    pub from: serde_json::Value,
    /// The value after; null if it is missing.
    pub to: serde_json::Value,
}

/// A summary of a schedule, for [`ChangeKind::Rewritten`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleBrief {
    /// Tokens of all tranches.
    pub total: f64,
    /// The number of events.
    pub events: u32,
    /// The number of tranches.
    pub tranches: u32,
    /// The next dates after the poll with their tokens, at most three.
    pub next: Vec<(Timestamp, f64)>,
    /// The date of the first event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// The date of the last event, or the end of the last linear unlock if that is later.
    pub end: Option<Timestamp>,
}

/// One thing that happened to a token's records. Its JSON form is the `change` of messages and of `changes --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub kind: ChangeKind,
    /// The kind of the affected records.
    #[serde(skip)]
    pub resource: Option<Resource>,
    #[serde(skip)]
    pub token: Option<TokenId>,
    /// The key that the record has after the change, or had before its removal. `None` if the change affects a series or the token.
    #[serde(skip)]
    pub key: Option<RecordKey>,
    /// The value before: of the whole event, or of the first tranche of a series.
    pub from: Option<Fact>,
    /// The value after.
    pub to: Option<Fact>,
    /// Days by which the dates moved, positive for later. For a series, the most common shift.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shift_days: Option<f64>,
    /// The smallest shift within a series, in days.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shift_days_min: Option<f64>,
    /// The largest shift within a series, in days.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shift_days_max: Option<f64>,
    /// The amount after, divided by the amount before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ratio: Option<f64>,
    /// Affected tokens that moved, changed recipients, were added, or were removed. For a change of amounts, the difference.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub amount: Option<f64>,
    /// The number of affected tranches.
    pub count: u32,
    /// The change by allocation.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allocations: Vec<AllocationChange>,
    /// Other fields that changed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldChange>,
    /// The schedule before it was rewritten.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<ScheduleBrief>,
    /// The schedule after it was rewritten.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<ScheduleBrief>,
    /// A sentence for people, in plain text: `11.31M ARB of Team moved from 16 to 20 Mar 2026 (+4 days)`.
    pub summary: String,
    /// The record before, which rules read as `old`.
    #[serde(skip)]
    pub old: Option<Record>,
    /// The record after, which rules read as `new`.
    #[serde(skip)]
    pub new: Option<Record>,
}

impl Change {
    /// Returns a change without facts, for callers that set them.
    #[must_use]
    pub fn of(kind: ChangeKind, resource: Resource, token: &TokenId) -> Self {
        Self {
            kind,
            resource: Some(resource),
            token: Some(token.clone()),
            key: None,
            from: None,
            to: None,
            shift_days: None,
            shift_days_min: None,
            shift_days_max: None,
            ratio: None,
            amount: None,
            count: 1,
            allocations: Vec::new(),
            fields: Vec::new(),
            before: None,
            after: None,
            summary: String::new(),
            old: None,
            new: None,
        }
    }
}
