//! Why an alert was told, or was not: every step from the rule to the receiver, with the values that decided it. Pure.
//!
//! The cast: an [`ExplainCase`] is what an explanation is about (a record, a change, a token, a group, an incident) with all alerts that
//! the rule raised for it; `case` finds the cases that a rule has in what an [`ExplainTarget`] means. An [`ExplainQuery`] adds what
//! became of the messages and the [`ExplainWorld`] around; [`explain`] answers with an [`Explanation`], a tree of [`ExplainStep`]s that
//! ends in one sentence beginning with "so:".
//!
//! The path, a file for each step, in the order in which the daemon takes them: `rule`, `facts`, `window`, `totals`, `condition`,
//! `alerts`, `routes`, `answer`.
//!
//! Promise: the steps ask the rule, the routes and the silences themselves, never a copy of their logic, so that what is explained is
//! what happens. What became of each message is told by [`status`].

mod alerts;
mod answer;
mod case;
mod condition;
mod facts;
mod overview;
mod routes;
mod rule;
pub mod status;
#[cfg(test)]
mod tests;
mod totals;
mod window;
mod words;

use serde::Serialize;

use crate::{digest_schedule::DigestPlan, route::RouteTree};
use model::{FiringAlert, NotificationStatus, Resource, Timestamp, Watch};
use rules::{Lead, On, Rule, Scope};

pub use answer::{nothing, of_incident, unheard};
pub use case::{
    CaseOrNothing, ExplainCase, ExplainTarget, MAX_CASES, absent_record, change_case, change_cases, group_cases, incident_case,
    incidents, missing_record_case, record_cases, token_case,
};
pub use overview::{ExplainLine, Overview};
pub use status::StatusEvidence;
use words::one_line;

/// What is around, whatever is asked.
#[derive(Clone, Copy, Debug)]
pub struct ExplainWorld<'a> {
    pub watch: &'a Watch,
    pub routes: &'a RouteTree,
    /// Who gets a digest, and when.
    pub digests: &'a [DigestPlan],
    /// What fires now, as inhibitions see it.
    pub firing: &'a [FiringAlert],
    /// The time of the question.
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug)]
pub struct ExplainQuery<'a> {
    pub rule: &'a Rule,
    /// What it is asked about.
    pub case: &'a ExplainCase<'a>,
    /// What became of each message about the alerts of the case, in the order in which they were decided.
    pub statuses: &'a [NotificationStatus],
    /// What statuses are read with; its silences are also those that would suppress it now.
    pub records: StatusEvidence<'a>,
    pub world: &'a ExplainWorld<'a>,
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It lets the alert through.
    Yes,
    /// It keeps the alert back.
    No,
    /// It cannot be told.
    Unknown,
    /// It decides nothing.
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

/// A step, with what it is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainStep {
    pub mark: Mark,
    /// What it says, on one line.
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
    /// What it is about: `BigCliffAhead for ARB, unlock on 16 Mar 2026`.
    pub about: String,
    /// The steps, in the order in which the daemon takes them.
    pub steps: Vec<ExplainStep>,
    /// Whether it was told, or would be at the next evaluation.
    pub fired: bool,
    /// The sentence at the end, without the `so: `.
    pub so: String,
}

pub fn explain(query: &ExplainQuery<'_>) -> Explanation {
    let mut explainer = Explainer { query, steps: Vec::new(), because: None };
    explainer.at_work();
    explainer.facts();
    let lead = explainer.window();
    let scope = explainer.scope(lead);
    explainer.filters(&scope);
    explainer.totals();
    explainer.condition(&scope);
    let told = explainer.alerts();
    explainer.routes(lead, told.is_some());
    let ends = explainer.statuses();
    let Explainer { steps, because, .. } = explainer;
    let (fired, so) = match (told, because) {
        (Some(told), _) => (true, format!("{told}, {}", ends.unwrap_or_else(|| "told to nobody: no receiver was named for it".into()))),
        (None, Some(because)) => (false, format!("not fired, because {because}")),
        (None, None) if is_once(query.rule.on) => (
            false,
            "not fired, although all holds now: it is told only when it is first seen, and the rule did not hold or was not there then"
                .into(),
        ),
        (None, None) => (false, "not fired yet, although all holds: the next evaluation tells it, once the daemon runs with these rules".into()),
    };
    Explanation { about: answer::about(query.rule, query.case), steps, fired, so }
}

/// Burns, buybacks, rounds and changes happen once.
fn is_once(on: On) -> bool {
    matches!(on, On::Change(..) | On::Record(Resource::Burn | Resource::Buyback | Resource::Funding))
}

/// An explanation in the making.
struct Explainer<'a> {
    query: &'a ExplainQuery<'a>,
    steps: Vec<ExplainStep>,
    /// The first step that keeps the alert back.
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

    /// What the rule looks at.
    fn scope(&self, lead: Option<&'a Lead>) -> Scope<'a> {
        let ExplainCase { token, record, change, source, totals, .. } = self.query.case;
        Scope {
            token: *token,
            record: record.as_deref(),
            change: change.map(|(change, _)| change),
            source: source.as_ref(),
            totals: totals.as_deref(),
            lead,
            // A change was evaluated when it was seen.
            now: change.map_or(self.now(), |(_, at)| at),
        }
    }
}
