//! The input of conditions and templates, and the result of a condition.

use chrono::TimeDelta;

use crate::aggregate::Totals;
use model::corrections::{Corrections, PastCorrection};
use model::{Change, LinearPiece, LinearSupply, RateStep, Record, Timestamp, Token, Tracked, wire::UnlockEvent};

/// The data that a condition or a template reads.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// `None` for an incident of the whole source.
    pub token: Option<&'a Token>,
    /// The record. For a change, the record after it.
    pub record: Option<&'a Tracked>,
    /// The schedule that the record belongs to. Empty if the caller does not have it; fields that need it are then missing.
    pub schedule: ScheduleScope<'a>,
    /// Set for rules on changes.
    pub change: Option<&'a Change>,
    /// Set for rules on the source.
    pub source: Option<&'a SourceFacts>,
    /// Set for rules on `token` and `portfolio`.
    pub totals: Option<&'a Totals>,
    /// The shortest lead time that was reached.
    pub lead: Option<&'a Lead>,
    /// Whether the text is stored and shown later, so that it must stay true as time passes: built-in texts then have no time until the
    /// date.
    pub is_stored: bool,
    /// The time of the evaluation.
    pub now: Timestamp,
}

/// The schedule of a token, for fields that compare an unlock with the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScheduleScope<'a> {
    /// All records of the token. Only unlocks are used.
    pub records: &'a [Tracked],
    /// The linear supply besides the records. `None` if the caller does not have it; the records then count as complete.
    pub linear: Option<&'a LinearSupply>,
    /// The corrections of the schedule. `None` if the caller does not have them.
    pub corrections: Option<CorrectionScope<'a>>,
}

/// The corrections of a token's schedule.
#[derive(Clone, Copy, Debug, Default)]
pub struct CorrectionScope<'a> {
    /// The stored corrections.
    pub earlier: &'a [PastCorrection],
    /// The changes that the current poll found. Empty for a rule on changes, which reads only the corrections before its change.
    pub current: &'a [Change],
}

impl CorrectionScope<'_> {
    /// Adds up the corrections that were detected less than `span` before `now`.
    pub fn within(&self, span: TimeDelta, now: Timestamp) -> Corrections {
        let current = self.current.iter().filter_map(|change| PastCorrection::of(change, now));
        Corrections::within(self.earlier.iter().copied().chain(current), span, now)
    }
}

impl ScheduleScope<'_> {
    /// Returns the change of the daily linear release at an instant. `None` if no linear unlock begins or ends then, or if the release is
    /// not known.
    pub fn rate_step(&self, at: Timestamp) -> Option<RateStep> {
        let until = self.linear.and_then(|linear| linear.coverage.linear_until);
        if until.is_some_and(|until| at >= until) {
            return None;
        }
        let of_records = self.records.iter().filter_map(|tracked| tracked.record.unlock()).flat_map(LinearPiece::of);
        let of_emission = self.linear.map_or(&[][..], |linear| &linear.emission);
        RateStep::at(of_records.chain(of_emission.iter().copied()), at)
    }

    /// Like [`Self::rate_step`], at the date of an unlock.
    pub fn rate_step_of(&self, event: &UnlockEvent) -> Option<RateStep> {
        self.rate_step(event.unlock_date.copied()?)
    }
}

impl<'a> Scope<'a> {
    /// Returns a scope with nothing but the time.
    pub fn at(now: Timestamp) -> Self {
        let schedule = ScheduleScope::default();
        Self { token: None, record: None, schedule, change: None, source: None, totals: None, lead: None, is_stored: false, now }
    }

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
