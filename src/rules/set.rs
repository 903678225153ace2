//! The rules at work, as one set that cannot be wrong.

use std::sync::Arc;

use chrono::TimeDelta;

use crate::aggregate::{Flow, Window};
use model::{ChangeKind, Resource, span_of_days};

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

    /// Whether any rule hears of emissions: of their records, their changes, or what was `emitted`.
    pub fn hears_emissions(&self) -> bool {
        !self.index.on(On::Record(Resource::Emission)).is_empty()
            || ChangeKind::ALL.iter().any(|kind| !self.index.hears(Resource::Emission, *kind).is_empty())
            || self.windows.iter().any(|window| window.flow == Flow::Emitted)
    }

    /// Whether any rule looks at tokens or groups as a whole.
    pub fn has_aggregates(&self) -> bool {
        !self.index.on(On::Token).is_empty() || !self.index.on(On::Portfolio).is_empty()
    }
}
