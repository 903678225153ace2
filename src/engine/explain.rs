//! Explains why an alert was sent or not: every step from the rule to the receiver, with the values that decided it. Pure.
//!
//! - [`ExplainCase`]: the subject (a record, change, token, group, or incident) and all alerts that the rule raised for it. Module `case`
//!   selects the cases that match an [`ExplainTarget`].
//! - [`ExplainQuery`]: a rule, a case, the status of each notification, and the [`ExplainContext`].
//! - [`explain`] returns an [`Explanation`]: a tree of [`ExplainStep`]s and a conclusion, shown after "result:".
//!
//! Each step has a file. In the order of the daemon: `rule`, `facts`, `window`, `totals`, `condition`, `alerts`, `routes`, `explanation`.
//!
//! The steps call the rule, the routes, and the silences themselves and copy no logic, so an explanation cannot differ from what the
//! daemon does. [`status`] describes the status of each notification.

mod alerts;
mod case;
mod condition;
mod explanation;
mod facts;
mod overview;
mod routes;
mod rule;
pub mod status;
#[cfg(test)]
mod tests;
mod totals;
mod window;

use serde::Serialize;

use crate::{digest_schedule::DigestPlan, route::RouteTree};
use model::corrections::PastCorrection;
use model::{FiringAlert, NotificationStatus, Resource, Timestamp, Watch};
use rules::{CorrectionScope, Lead, On, Rule, ScheduleScope, Scope};

pub use case::{
    CaseOrNothing, ExplainCase, ExplainTarget, MAX_CASES, absent_record, change_case, change_cases, group_cases, incident_case,
    incidents, missing_record_case, record_cases, token_case,
};
pub use explanation::{nothing, of_incident, other_changes, unsubscribed};
pub use overview::{ExplainLine, Overview};
pub use status::StatusEvidence;

/// The state of the daemon that all explanations share.
#[derive(Clone, Copy, Debug)]
pub struct ExplainContext<'a> {
    pub watch: &'a Watch,
    pub routes: &'a RouteTree,
    /// The receivers with a digest, and its schedule.
    pub digests: &'a [DigestPlan],
    /// The alerts that fire now, which can inhibit others.
    pub firing: &'a [FiringAlert],
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug)]
pub struct ExplainQuery<'a> {
    pub rule: &'a Rule,
    pub case: &'a ExplainCase<'a>,
    /// The status of each notification about the alerts of the case, in the order of evaluation.
    pub statuses: &'a [NotificationStatus],
    /// The rows that describe `statuses`. Its silences are also checked against the alert as it would be sent now.
    pub records: StatusEvidence<'a>,
    /// The corrections of the token's schedule, by time. Empty if the rule reads none.
    pub corrections: &'a [PastCorrection],
    pub world: &'a ExplainContext<'a>,
}

/// The effect of a step on the alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Lets the alert pass.
    Yes,
    /// Stops the alert, so that it does not fire or is not sent.
    No,
    /// The effect is not known, because a fact is missing or a delivery is not finished.
    Unknown,
    /// Information that does not affect the alert.
    Note,
}

impl Mark {
    pub fn sign(self) -> &'static str {
        match self {
            Mark::Yes => "✓",
            Mark::No => "✗",
            Mark::Unknown => "?",
            Mark::Note => "·",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainStep {
    pub mark: Mark,
    /// One line of text.
    pub text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ExplainStep>,
}

impl ExplainStep {
    fn new(mark: Mark, text: impl Into<String>) -> Self {
        Self { mark, text: text.into(), parts: Vec::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The rule and the subject, such as `BigCliffAhead for ARB, unlock on 16 Mar 2026`.
    pub about: String,
    /// The steps, in the order in which the daemon takes them.
    pub steps: Vec<ExplainStep>,
    /// Whether the alert fired, now or in the past.
    pub fired: bool,
    /// The conclusion, without the prefix `result: `.
    pub so: String,
}

pub fn explain(query: &ExplainQuery<'_>) -> Explanation {
    let mut explainer = Explainer { query, steps: Vec::new(), because: None };
    explainer.active_rule();
    explainer.facts();
    let lead = explainer.window();
    let scope = explainer.scope(lead);
    explainer.filters(&scope);
    explainer.totals();
    explainer.condition(&scope);
    let notified = explainer.alerts();
    explainer.routes(lead, notified.is_some());
    let ends = explainer.statuses();
    let Explainer { steps, because, .. } = explainer;
    let (fired, so) = match (notified, because) {
        (Some(notified), _) => (true, format!("{notified}, {}", ends.unwrap_or_else(|| "sent to no receiver: neither the rule nor a route names one".into()))),
        (None, Some(because)) => (false, format!("not fired, because {because}")),
        (None, None) if is_once(query.rule.on) && query.rule.limit.is_some() => (
            false,
            "not fired, although every condition is true now: it waits for the end of the cycle, which applies the `limit` of the rule, or it did not match when the subject was first seen"
                .into(),
        ),
        (None, None) if is_once(query.rule.on) => (
            false,
            "not fired, although every condition is true now: this rule fires only when the subject is first seen, and it did not match then"
                .into(),
        ),
        (None, None) => (false, "not fired yet, although every condition is true: it fires at the next evaluation, if the daemon runs with these rules".into()),
    };
    Explanation { about: explanation::about(query.rule, query.case), steps, fired, so }
}

/// Returns whether a subject fires once, as an event without an end.
fn is_once(on: On) -> bool {
    matches!(on, On::Change(..) | On::Record(Resource::Burn | Resource::Buyback | Resource::Funding))
}

/// An explanation under construction.
struct Explainer<'a> {
    query: &'a ExplainQuery<'a>,
    steps: Vec<ExplainStep>,
    /// The reason of the first step that stops the alert.
    because: Option<String>,
}

impl<'a> Explainer<'a> {
    fn now(&self) -> Timestamp {
        self.query.world.now
    }

    fn yes(&mut self, text: impl Into<String>) {
        self.steps.push(ExplainStep::new(Mark::Yes, text));
    }

    fn note(&mut self, text: impl Into<String>) {
        self.steps.push(ExplainStep::new(Mark::Note, text));
    }

    fn no(&mut self, text: impl Into<String>, because: impl Into<String>) {
        self.steps.push(ExplainStep::new(Mark::No, text));
        self.because.get_or_insert_with(|| because.into());
    }

    /// The corrections that the rule reads: for a change, those before it.
    fn corrections(&self) -> CorrectionScope<'a> {
        let all = self.query.corrections;
        let before = |at: Timestamp| all.partition_point(|correction| correction.at < at);
        let end = self.query.case.change.map_or(all.len(), |(_, at)| before(at));
        CorrectionScope { earlier: all.get(..end).unwrap_or_default(), current: &[] }
    }

    /// The facts that the rule reads.
    fn scope(&self, lead: Option<&'a Lead>) -> Scope<'a> {
        let ExplainCase { token, record, schedule, linear, change, source, totals, .. } = self.query.case;
        Scope {
            token: *token,
            record: record.as_deref(),
            schedule: ScheduleScope { records: schedule, linear: linear.as_ref(), corrections: Some(self.corrections()) },
            change: change.map(|(change, _)| change),
            source: source.as_ref(),
            totals: totals.as_deref(),
            lead,
            is_stored: false,
            // A change was evaluated when it was seen.
            now: change.map_or(self.now(), |(_, at)| at),
        }
    }
}
