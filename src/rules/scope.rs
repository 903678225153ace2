//! What a condition or a template looks at, and whether a condition holds of it.

use chrono::TimeDelta;

use crate::aggregate::Totals;
use model::{Change, Record, Timestamp, Token, Tracked};

/// What a condition or a template looks at.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The token; none for an incident of the whole source.
    pub token: Option<&'a Token>,
    /// The record, after the change where there is one.
    pub record: Option<&'a Tracked>,
    /// The change, for rules on changes.
    pub change: Option<&'a Change>,
    /// The incident, for rules on the source.
    pub source: Option<&'a SourceFacts>,
    /// What the windows of the token or of the group hold, for rules on `token` and `portfolio`.
    pub totals: Option<&'a Totals>,
    /// The smallest lead time that holds.
    pub lead: Option<&'a Lead>,
    /// The time of the tick.
    pub now: Timestamp,
}

impl<'a> Scope<'a> {
    /// The record that plain names such as `cliffValue` are about: of a change, the one after it; where that is gone, before it.
    pub fn record_in_view(&self) -> Option<&'a Record> {
        let side = |of: fn(&Change) -> Option<&Record>| self.change.and_then(of);
        self.record
            .map(|tracked| &tracked.record)
            .or_else(|| side(|change| change.new.as_ref()))
            .or_else(|| side(|change| change.old.as_ref()))
    }
}

/// An incident, as rules `on = "source"` and templates see it.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFacts {
    /// `unreachable`, `unauthorized`, `held`, `receiver`, …
    pub kind: String,
    pub endpoint: Option<String>,
    pub receiver: Option<String>,
    /// What failed, for people.
    pub message: String,
    /// Feeds or deliveries concerned.
    pub count: u32,
    pub since: Timestamp,
}

/// A lead time of `within`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// As the rule writes it: `7d`.
    pub text: String,
    pub span: TimeDelta,
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    /// Nothing can be said: these fields are missing.
    Missing(Vec<&'static str>),
}
