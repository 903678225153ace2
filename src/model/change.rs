//! What a diff finds: one [`Change`] for each thing that happened, not one for each row that differs.

use serde::{Deserialize, Serialize};

use crate::supply::{Record, RecordKey, Resource, Timestamp, TokenId};

words! {
    /// What happened to a record, a series or a token.
    #[derive(PartialOrd, Ord)]
    ChangeKind {
        /// A record that was not there.
        Added = "added",
        /// A record that complete answers no longer have, proven often enough.
        Removed = "removed",
        /// The date of an unlock moved, or the begin or end of a linear segment.
        Rescheduled = "rescheduled",
        /// An amount changed.
        Resized = "resized",
        /// The same total, other recipients.
        Reallocated = "reallocated",
        /// One event became several.
        Split = "split",
        /// Several events became one.
        Merged = "merged",
        /// A series moved by one step.
        SeriesShifted = "series_shifted",
        /// All amounts of a series changed by one ratio.
        SeriesRescaled = "series_rescaled",
        /// The same tranches under another allocation name or category.
        Renamed = "renamed",
        /// The total is kept, the timing is another, and not by a shift.
        Restructured = "restructured",
        /// Nothing simpler explains it.
        Rewritten = "rewritten",
        /// A committed claim appeared or changed.
        Committed = "committed",
        /// Other facts changed: source, method, precision, label; a burn or buyback was restated.
        Revised = "revised",
        /// `maxSupply` or an allocation total changed.
        SupplyChanged = "supply_changed",
    }
}

impl ChangeKind {
    /// Whether it can happen to records of `resource`: the table of kinds.
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

/// A value before or after: a date, an amount, a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// Tokens (or, for other facts, the field's own unit).
    Amount(f64),
    /// An instant.
    Time(Timestamp),
    /// A name or another text.
    Text(String),
}

impl Fact {
    /// The amount, where it is one.
    #[must_use]
    pub fn amount(&self) -> Option<f64> {
        if let Fact::Amount(amount) = self { Some(*amount) } else { None }
    }

    /// The instant, where it is one.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        if let Fact::Time(at) = self { Some(*at) } else { None }
    }

    /// The text, where it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Fact::Text(text) = self { Some(text) } else { None }
    }
}

/// One recipient's part of a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocationChange {
    /// Allocation name (the new one where it was renamed).
    pub name: String,
    /// Before: date, amount or name, as the change's own `from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Fact>,
    /// After.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Fact>,
    /// Days it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift_days: Option<f64>,
    /// Amount after by amount before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Tranches concerned.
    pub count: u32,
}

/// One other fact that changed, for `revised`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Path on the wire, such as `dataSource`.
    pub field: String,
    /// Before; null where it was missing.
    pub from: serde_json::Value,
    /// After; null where it is missing.
    pub to: serde_json::Value,
}

/// A schedule in brief, for `rewritten`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleBrief {
    /// Tokens over all tranches.
    pub total: f64,
    /// Events.
    pub events: u32,
    /// Tranches.
    pub tranches: u32,
    /// The next events after the time of the poll: at most three dates with amounts.
    pub next: Vec<(Timestamp, f64)>,
    /// First date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<Timestamp>,
    /// Last date of the schedule.
    pub end: Option<Timestamp>,
}

/// One thing that happened. Serialized, it is the `change` of messages and of `changes --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// To what.
    #[serde(skip)]
    pub resource: Option<Resource>,
    /// Of which token.
    #[serde(skip)]
    pub token: Option<TokenId>,
    /// The record it happened to, under the key it has afterwards (before, if it is gone). None for a series or a token.
    #[serde(skip)]
    pub key: Option<RecordKey>,
    /// Before: of the whole event; of the first tranche for a series.
    pub from: Option<Fact>,
    /// After.
    pub to: Option<Fact>,
    /// Days by which it moved, positive for later; for a series the most common.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shift_days: Option<f64>,
    /// Least shift within a series.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shift_days_min: Option<f64>,
    /// Greatest shift within a series.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shift_days_max: Option<f64>,
    /// Amount after by amount before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ratio: Option<f64>,
    /// Tokens concerned: those that moved, vest otherwise, went to others, came or are gone; of a resize or rescale, what was added or
    /// taken.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub amount: Option<f64>,
    /// Tranches concerned.
    pub count: u32,
    /// The parts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allocations: Vec<AllocationChange>,
    /// Which other facts changed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldChange>,
    /// The schedule before, where it was rewritten.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<ScheduleBrief>,
    /// The schedule after, where it was rewritten.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<ScheduleBrief>,
    /// One sentence for people, in plain text: `moved from 16 Mar 2026 to 20 Mar 2026 (+4 days)`.
    pub summary: String,
    /// The record before, for rules (`old`).
    #[serde(skip)]
    pub old: Option<Record>,
    /// The record after, for rules (`new`).
    #[serde(skip)]
    pub new: Option<Record>,
}

impl Change {
    /// A change of which only the kind is known yet.
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
