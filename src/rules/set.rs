//! A set of checked rules.

use crate::aggregate::{AggregateReads, Flow};
use chrono::TimeDelta;
use model::Resource;

use super::condition::Dependencies;
use super::index::Index;
use super::on::On;
use super::rule::Rule;

#[derive(Debug, Default)]
pub struct RuleSet {
    /// Sorted by file and line, without disabled rules.
    pub rules: Vec<Rule>,
    pub index: Index,
    /// The parts of the aggregates that rules on `token` and `portfolio` read.
    pub reads: AggregateReads,
    /// Whether a rule follows the change of the daily release at unlocks.
    pub reads_rate_steps: bool,
    /// The times before now within which conditions count earlier corrections, sorted.
    pub correction_spans: Vec<TimeDelta>,
}

impl RuleSet {
    pub fn of(rules: Vec<Rule>) -> Self {
        let index = Index::of(&rules);
        let mut dependencies = Dependencies::default();
        for rule in &rules {
            dependencies.join(&rule.body.dependencies);
        }
        let reads = AggregateReads::of(&dependencies);
        let reads_rate_steps = dependencies.has_rate_steps || !index.on(On::Record(Resource::Unlock)).is_empty();
        let mut correction_spans = dependencies.correction_spans;
        correction_spans.sort_unstable();
        Self { index, reads, reads_rate_steps, correction_spans, rules }
    }

    /// Returns the rules with exactly this `on`, in the order of the set.
    pub fn on(&self, on: On) -> impl Iterator<Item = &Rule> {
        self.index.on(on).iter().filter_map(|place| self.rules.get(*place))
    }

    /// Returns `true` if a rule subscribes to the resource: to its records, their changes, or windows over them.
    pub fn subscribes_to(&self, resource: Resource) -> bool {
        let is_of = |flow: Flow| flow.resource() == resource;
        self.rules.iter().any(|rule| rule.on.resource() == Some(resource))
            || self.reads.windows.iter().any(|window| is_of(window.flow))
            || self.reads.since.iter().any(|(flow, _)| is_of(*flow))
            || (self.reads.has_supply && is_of(Flow::Ahead))
    }

    /// Returns `true` if a rule is on `token` or `portfolio`.
    pub fn has_aggregates(&self) -> bool {
        !self.index.on(On::Token).is_empty() || !self.index.on(On::Portfolio).is_empty()
    }
}
