//! The rules at work, as one set that cannot be wrong.

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
    /// In the order of files and lines; disabled ones are left out.
    pub rules: Vec<Rule>,
    /// From what moves to the rules that may care.
    pub index: Index,
    /// All windows that rules on `token` and `portfolio` ask for, in order.
    pub windows: Arc<[Window]>,
    /// All distances from the latest burn or buyback at which such a rule may turn.
    pub since: Vec<(Flow, TimeDelta)>,
}

impl RuleSet {
    /// A set of rules, with what is worked out over all of them.
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

    /// The rules that listen to `on`, in their order.
    pub fn on(&self, on: On) -> impl Iterator<Item = &Rule> {
        self.index.on(on).iter().filter_map(|place| self.rules.get(*place))
    }

    /// Whether any rule hears of a resource: of its records, their changes, or of windows over them.
    pub fn hears(&self, resource: Resource) -> bool {
        let is_of = |flow: Flow| {
            let of = match flow {
                Flow::Ahead => Resource::Unlock,
                Flow::Emitted => Resource::Emission,
                Flow::Burned => Resource::Burn,
                Flow::BoughtBack => Resource::Buyback,
            };
            of == resource
        };
        self.rules.iter().any(|rule| rule.on.resource() == Some(resource))
            || self.windows.iter().any(|window| is_of(window.flow))
            || self.since.iter().any(|(flow, _)| is_of(*flow))
    }

    /// Whether any rule looks at tokens or groups as a whole.
    pub fn has_aggregates(&self) -> bool {
        !self.index.on(On::Token).is_empty() || !self.index.on(On::Portfolio).is_empty()
    }
}
