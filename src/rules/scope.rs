//! The input of conditions and templates, and the result of a condition.

use chrono::TimeDelta;

use crate::aggregate::Totals;
use model::{Change, Record, Timestamp, Token, Tracked};

/// The data that a condition or a template reads.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// `None` for an incident of the whole source.
    pub token: Option<&'a Token>,
    /// The record. For a change, the record after it.
    pub record: Option<&'a Tracked>,
    /// Set for rules on changes.
    pub change: Option<&'a Change>,
    /// Set for rules on the source.
    pub source: Option<&'a SourceFacts>,
    /// Set for rules on `token` and `portfolio`.
    pub totals: Option<&'a Totals>,
    /// The shortest lead time that was reached.
    pub lead: Option<&'a Lead>,
    /// The time of the evaluation.
    pub now: Timestamp,
}

impl<'a> Scope<'a> {
    /// Returns the record that plain names such as `cliffValue` refer to. For a change, the new record, or the old one if the
    /// record was removed.
    pub fn record_in_view(&self) -> Option<&'a Record> {
        let side = |of: fn(&Change) -> Option<&Record>| self.change.and_then(of);
        self.record
            .map(|tracked| &tracked.record)
            .or_else(|| side(|change| change.new.as_ref()))
            .or_else(|| side(|change| change.old.as_ref()))
    }
}

/// An incident, as rules with `on = "source"` and templates read it.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFacts {
    /// `unreachable`, `unauthorized`, `held`, `receiver`, …
    pub kind: String,
    pub endpoint: Option<String>,
    pub receiver: Option<String>,
    /// The failure, in text for people.
    pub message: String,
    /// The number of affected feeds or deliveries.
    pub count: u32,
    pub since: Timestamp,
}

/// A lead time of `within`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The text in the rule: `7d`.
    pub text: String,
    pub span: TimeDelta,
}

/// The result of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    /// Neither true nor false, because these fields have no value.
    Missing(Vec<&'static str>),
}
