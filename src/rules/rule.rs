//! A rule that has been checked: what it listens to, what it lets in, whether it holds, whether it has cleared, at which level.

use std::{ops::Range, path::Path, sync::Arc};

use chrono::TimeDelta;

use crate::aggregate::Window;
use model::{ReceiverName, RuleId, Timestamp, Token, TokenId};

use super::condition::clauses::Clause;
use super::condition::{Condition, Dependencies};
use super::filters::Filters;
use super::on::On;
use super::scope::{Lead, Scope, Truth};
use super::template::Template;

/// A rule that has been checked. How its conditions and templates are held is this room's own.
#[derive(Debug)]
pub struct Rule {
    /// `id` where given, else the `alert` name.
    pub id: RuleId,
    /// The `alert` name.
    pub name: String,
    pub on: On,
    /// Lead times, the longest first. Empty: any time ahead (for upcoming records).
    pub within: Vec<Lead>,
    /// How old a newly seen burn, buyback or round may be.
    pub since: TimeDelta,
    /// `for`.
    pub hold: TimeDelta,
    /// `keep_firing_for`.
    pub keep_firing_for: TimeDelta,
    /// Most alerts from one evaluation.
    pub limit: Option<u32>,
    /// Named directly; empty: the routes decide.
    pub receivers: Vec<ReceiverName>,
    pub owner: Option<String>,
    /// It rests from then on.
    pub expires: Option<Timestamp>,
    /// Whether a condition of it reads the time (`now`, `daysUntil * 2`) in such a way that it may turn at any instant.
    pub is_clock_dependent: bool,
    /// Days before a record's time (negative: after) at which its truth may turn, and not between: `daysUntil <= 7`.
    pub edges: Vec<f64>,
    /// The groups that a rule on `portfolio` looks at, one alert for each; empty for every other rule.
    pub pools: Vec<Pool>,
    pub location: RuleLocation,
    /// Conditions, templates, filters.
    pub(crate) body: RuleBody,
}

/// Conditions, templates and filters of a rule.
#[derive(Debug, Default)]
pub struct RuleBody {
    pub when: Option<Condition>,
    pub clear_when: Option<Condition>,
    pub fires_on_missing: bool,
    pub filters: Filters,
    pub levels: Vec<Level>,
    /// What its conditions and templates read.
    pub dependencies: Dependencies,
    /// Names of all labels that it or a level of it may set, and of those that are always there.
    pub label_names: Vec<String>,
    pub labels: Vec<(String, Template)>,
    pub annotations: Vec<(String, Template)>,
}

impl RuleBody {
    /// What its conditions and templates read beside the record.
    pub fn gather_dependencies(&self) -> Dependencies {
        let mut all = Dependencies::default();
        for condition in self.when.iter().chain(&self.clear_when).chain(self.levels.iter().map(|level| &level.when)) {
            all.join(&condition.dependencies);
        }
        let texts = self.levels.iter().flat_map(|level| level.labels.iter().chain(&level.annotations));
        for (_, template) in texts.chain(&self.labels).chain(&self.annotations) {
            for window in &template.windows {
                all.add_window(*window);
            }
        }
        all
    }
}

/// A level: its condition and what it adds.
#[derive(Debug)]
pub struct Level {
    pub when: Condition,
    pub labels: Vec<(String, Template)>,
    pub annotations: Vec<(String, Template)>,
}

impl Rule {
    /// Whether its filters (`tokens`, `listed_methods`, `allocations`) let this scope in.
    pub fn covers(&self, scope: &Scope<'_>) -> bool {
        if self.on == On::Portfolio {
            let group = scope.totals.map(|totals| totals.group.as_deref());
            return group.is_some_and(|group| self.pools.iter().any(|pool| pool.group() == group));
        }
        self.body.filters.cover(scope)
    }

    /// Whether its filters may let in anything of this token; of a rule on `portfolio`, whether the token is one of those that it
    /// looks at as one where no group is named.
    pub fn lets_in(&self, token: &Token) -> bool {
        self.body.filters.let_in(&token.id, &token.groups)
    }

    /// As [`Self::lets_in`], of a token of which no more than this is at hand.
    pub fn lets_in_named(&self, token: &TokenId, groups: &[String]) -> bool {
        self.body.filters.let_in(token, groups)
    }

    /// Groups of which it asks for a token's share.
    pub fn shares(&self) -> &[String] {
        &self.body.dependencies.groups
    }

    pub fn windows(&self) -> &[Window] {
        &self.body.dependencies.windows
    }

    /// Whether `when` holds; true where the rule has none. `missing = "fire"` turns `Missing` into `True`.
    pub fn holds(&self, scope: &Scope<'_>) -> Truth {
        match self.body.when.as_ref().map(|when| when.test(scope)) {
            None => Truth::True,
            Some(Truth::Missing(_)) if self.body.fires_on_missing => Truth::True,
            Some(truth) => truth,
        }
    }

    /// Whether a firing alert has cleared: `clear_when` where given, else that `when` is false. `Missing` clears nothing.
    pub fn clears(&self, scope: &Scope<'_>) -> bool {
        match &self.body.clear_when {
            Some(clear) => clear.test(scope) == Truth::True,
            None => self.holds(scope) == Truth::False,
        }
    }

    /// Index of the highest level that holds: the last in the file's order that is true.
    pub fn level(&self, scope: &Scope<'_>) -> Option<u32> {
        let highest = self.body.levels.iter().rposition(|level| level.when.test(scope) == Truth::True)?;
        u32::try_from(highest).ok()
    }

    /// `when`, clause by clause; none where the rule has none.
    pub fn clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        self.body.when.as_ref()?.clauses(scope)
    }

    /// `clear_when`, clause by clause; none where the rule has none.
    pub fn clear_clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        self.body.clear_when.as_ref()?.clauses(scope)
    }

    /// The conditions of its levels, in the order of the file.
    pub fn level_clauses(&self, scope: &Scope<'_>) -> Vec<Clause> {
        self.body.levels.iter().filter_map(|level| level.when.clauses(scope)).collect()
    }
}

/// What a rule on `portfolio` looks at as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// All watched tokens that the rule lets in.
    Watched,
    /// A group of `[watch.groups]`.
    Group(String),
}

impl Pool {
    pub fn group(&self) -> Option<&str> {
        match self {
            Pool::Watched => None,
            Pool::Group(name) => Some(name),
        }
    }
}

/// Where a rule stands in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLocation {
    /// The file, as the operator knows it.
    pub file: Arc<Path>,
    /// Bytes of its name.
    pub span: Range<usize>,
}
