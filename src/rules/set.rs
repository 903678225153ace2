//! A set of checked rules.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::aggregate::{Flow, Window};
use model::{Resource, span_of_days};

use super::condition::{Dependencies, Edge};
use super::index::Index;
use super::on::On;
use super::rule::Rule;

#[derive(Debug, Default)]
pub struct RuleSet {
    /// Sorted by file and line, without disabled rules.
    pub rules: Vec<Rule>,
    pub index: Index,
    /// The windows that rules on `token` and `portfolio` read, sorted.
    pub windows: Arc<[Window]>,
    /// The times since the latest burn or buyback at which the result of such a rule can change.
    pub since: Vec<(Flow, TimeDelta)>,
}

impl RuleSet {
    pub fn of(rules: Vec<Rule>) -> Self {
        let index = Index::of(&rules);
        let mut dependencies = Dependencies::default();
        for rule in &rules {
            dependencies.join(&rule.body.dependencies);
        }
        dependencies.windows.sort_unstable();
        let since = dependencies.edges.iter().filter_map(|edge| match edge {
            Edge::Since(flow, days) => Some((*flow, span_of_days(*days)?)),
            Edge::Until(_) => None,
        });
        Self { index, windows: dependencies.windows.into(), since: since.collect(), rules }
    }

    /// Returns the rules with exactly this `on`, in the order of the set.
    pub fn on(&self, on: On) -> impl Iterator<Item = &Rule> {
        self.index.on(on).iter().filter_map(|place| self.rules.get(*place))
    }

    /// Returns `true` if a rule subscribes to the resource: to its records, their changes, or windows over them.
    pub fn subscribes_to(&self, resource: Resource) -> bool {
        let is_of = |flow: Flow| flow.resource() == resource;
        self.rules.iter().any(|rule| rule.on.resource() == Some(resource))
            || self.windows.iter().any(|window| is_of(window.flow))
            || self.since.iter().any(|(flow, _)| is_of(*flow))
    }

    /// Returns `true` if a rule is on `token` or `portfolio`.
    pub fn has_aggregates(&self) -> bool {
        !self.index.on(On::Token).is_empty() || !self.index.on(On::Portfolio).is_empty()
    }
}
