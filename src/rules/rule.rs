//! A checked rule: its target, filters, condition, and levels.

use std::{ops::Range, path::Path, sync::Arc};

use chrono::TimeDelta;

use crate::aggregate::Window;
use model::{ReceiverName, Resource, RuleId, Timestamp, Token, TokenId, wire::UnlockEvent};

use super::condition::clauses::{Clause, Mismatch};
use super::condition::{Condition, Dependencies, RateField, RecordBounds};
use super::filters::Filters;
use super::on::On;
use super::scope::{Lead, Scope, Truth};
use super::template::Template;

#[derive(Debug)]
pub struct Rule {
    /// `id` where given, else the `alert` name.
    pub id: RuleId,
    /// The `alert` name.
    pub name: String,
    pub on: On,
    /// Lead times, the longest first. If empty, any future record matches.
    pub within: Vec<Lead>,
    /// The maximum age of a new burn, buyback, or funding round.
    pub since: TimeDelta,
    /// The time for which `when` must be true before the alert fires (`for`).
    pub pending_for: TimeDelta,
    /// The time for which the alert still fires after `when` became false (`keep_firing_for`).
    pub keep_firing_for: TimeDelta,
    /// The maximum number of alerts from one evaluation.
    pub limit: Option<u32>,
    /// The receivers named in the rule. If empty, the routes decide.
    pub receivers: Vec<ReceiverName>,
    pub owner: Option<String>,
    /// The time from which the rule is inactive.
    pub expires: Option<Timestamp>,
    /// Whether a condition reads the time (`now`, `daysUntil * 2`) so that its result can change at any instant.
    pub is_clock_dependent: bool,
    /// The days before a record's time (negative: after it) at which the result can change, such as 7 for `daysUntil <= 7`.
    /// Between them it cannot.
    pub edges: Vec<f64>,
    /// The groups that a rule on `portfolio` evaluates, each with its own alert. Empty for other rules.
    pub pools: Vec<Pool>,
    pub location: RuleLocation,
    pub(crate) body: RuleBody,
}

#[derive(Debug, Default)]
pub struct RuleBody {
    pub when: Option<Condition>,
    pub clear_when: Option<Condition>,
    pub fires_on_missing: bool,
    pub filters: Filters,
    pub levels: Vec<Level>,
    pub dependencies: Dependencies,
    /// The names of the labels that the rule or a level sets, and of the automatic labels.
    pub label_names: Vec<String>,
    pub labels: Vec<(String, Template)>,
    pub annotations: Vec<(String, Template)>,
}

impl RuleBody {
    /// Returns everything but the record that the conditions and templates read.
    pub fn collect_dependencies(&self) -> Dependencies {
        let mut all = Dependencies::default();
        for condition in self.when.iter().chain(&self.clear_when).chain(self.levels.iter().map(|level| &level.when)) {
            all.join(&condition.dependencies);
        }
        let texts = self.levels.iter().flat_map(|level| level.labels.iter().chain(&level.annotations));
        for (_, template) in texts.chain(&self.labels).chain(&self.annotations) {
            for window in &template.windows {
                all.add_window(*window);
            }
            all.has_supply |= template.has_supply;
            all.has_rate_steps |= template.has_rate_steps;
        }
        all
    }
}

/// A level: a stricter condition, with the labels and annotations that it overrides.
#[derive(Debug)]
pub struct Level {
    pub when: Condition,
    pub labels: Vec<(String, Template)>,
    pub annotations: Vec<(String, Template)>,
}

impl Rule {
    /// Returns `true` if the filters (`tokens`, `listed_methods`, `allocations`) select this scope. For a rule on `portfolio`, returns
    /// whether the scope has the totals of one of its groups.
    pub fn covers(&self, scope: &Scope<'_>) -> bool {
        if self.on == On::Portfolio {
            let group = scope.totals.map(|totals| totals.group.as_deref());
            return group.is_some_and(|group| self.pools.iter().any(|pool| pool.group() == group));
        }
        self.body.filters.matches(scope)
    }

    /// Returns `true` if the filters can select records of this token. For a rule on `portfolio` without groups, returns whether
    /// the token belongs to the selection.
    pub fn selects_token(&self, token: &Token) -> bool {
        self.body.filters.selects_token(&token.id, &token.groups)
    }

    /// Like [`Self::selects_token`], for a token of which only the id and the groups are known.
    pub fn selects_token_named(&self, token: &TokenId, groups: &[String]) -> bool {
        self.body.filters.selects_token(token, groups)
    }

    /// Returns the groups for which the rule reads the token's share.
    pub fn shares(&self) -> &[String] {
        &self.body.dependencies.groups
    }

    pub fn windows(&self) -> &[Window] {
        &self.body.dependencies.windows
    }

    /// Returns the times before now within which the conditions count earlier corrections.
    pub fn correction_spans(&self) -> &[TimeDelta] {
        &self.body.dependencies.correction_spans
    }

    /// Returns whether the rule reads the daily release of a token or group, its next change, or the age of the price.
    pub fn reads_supply(&self) -> bool {
        self.body.dependencies.has_supply
    }

    /// Returns the kinds of records that the aggregates of the rule read, sorted and without duplicates.
    pub fn summed_resources(&self) -> Vec<Resource> {
        let supply = self.reads_supply().then_some(Resource::Unlock);
        let mut resources: Vec<Resource> = self.windows().iter().map(|window| window.flow.resource()).chain(supply).collect();
        resources.sort_unstable();
        resources.dedup();
        resources
    }

    /// Returns whether `when` reads the change of the daily release at an unlock, so that the rule decides which changes matter.
    pub fn reads_rate_step(&self) -> bool {
        self.body.when.as_ref().is_some_and(|when| when.dependencies.has_rate_steps)
    }

    /// Returns whether the end of linear unlocks is large enough for a rule that does not say which changes of the daily release matter.
    /// `None` if the rule says it, or if the record is not such an end.
    #[inline]
    pub fn follows_end(&self, scope: &Scope<'_>) -> Option<Truth> {
        // Most events have no linear unlocks.
        let event = scope.record_in_view()?.unlock().filter(|event| event.linear_unlocks.get().is_some())?;
        self.follows_linear_end(event, scope)
    }

    fn follows_linear_end(&self, event: &UnlockEvent, scope: &Scope<'_>) -> Option<Truth> {
        if !event.is_linear_end() || self.reads_rate_step() {
            return None;
        }
        // Without a lead time, all ends of a schedule would fire, however far ahead.
        if self.within.is_empty() {
            return Some(Truth::False);
        }
        Some(match scope.schedule.rate_step_of(event) {
            None => Truth::Missing(vec![RateField::Change.as_str()]),
            Some(step) if step.is_large() => Truth::True,
            Some(_) => Truth::False,
        })
    }

    /// Evaluates `when`. `True` if the rule has no `when`, or if fields are missing and the rule has `missing = "fire"`. An end of linear
    /// unlocks must be large enough, too.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Truth {
        if let Some(truth @ (Truth::False | Truth::Missing(_))) = self.follows_end(scope) {
            return truth;
        }
        match self.body.when.as_ref().map(|when| when.test(scope)) {
            None => Truth::True,
            Some(Truth::Missing(_)) if self.body.fires_on_missing => Truth::True,
            Some(truth) => truth,
        }
    }

    /// Returns whether [`Self::evaluate`] returns `True`. It is faster, because it does not collect the names of missing fields, and looks
    /// for the end of linear unlocks only if the condition is true.
    pub fn matches(&self, scope: &Scope<'_>) -> bool {
        let holds = self.body.when.as_ref().is_none_or(|when| when.holds(scope).unwrap_or(self.body.fires_on_missing));
        holds && self.follows_end(scope).is_none_or(|truth| truth == Truth::True)
    }

    /// Returns `false` if the rule does not match any of the records.
    pub fn can_match(&self, records: &mut RecordBounds<'_>) -> bool {
        self.body.fires_on_missing || self.body.when.as_ref().is_none_or(|when| when.can_hold(records))
    }

    /// Returns `true` if a firing alert clears: `clear_when` is true, or without it, `when` is false. `Missing` does not clear.
    pub fn clears(&self, scope: &Scope<'_>) -> bool {
        match &self.body.clear_when {
            Some(clear) => clear.holds(scope) == Some(true),
            None => self.evaluate(scope) == Truth::False,
        }
    }

    /// Returns the index of the last level, in the order of the file, whose condition is true. `None` if there is no such level.
    pub fn level(&self, scope: &Scope<'_>) -> Option<u32> {
        let highest = self.body.levels.iter().rposition(|level| level.when.holds(scope) == Some(true))?;
        u32::try_from(highest).ok()
    }

    /// Explains `when` clause by clause. `None` if the rule has no `when`.
    pub fn clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        self.body.when.as_ref()?.clauses(scope)
    }

    /// Returns the first comparison that makes `when` false. `None` if `when` is not false.
    pub fn mismatch(&self, scope: &Scope<'_>) -> Option<Mismatch> {
        self.body.when.as_ref()?.mismatch(scope)
    }

    /// Explains `clear_when` clause by clause. `None` if the rule has no `clear_when`.
    pub fn clear_clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        self.body.clear_when.as_ref()?.clauses(scope)
    }

    /// Explains the conditions of the levels, in the order of the file.
    pub fn level_clauses(&self, scope: &Scope<'_>) -> Vec<Clause> {
        self.body.levels.iter().filter_map(|level| level.when.clauses(scope)).collect()
    }
}

/// A selection of tokens that a rule on `portfolio` evaluates as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// All watched tokens that the rule selects.
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

/// The position of a rule in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLocation {
    /// The path as configured.
    pub file: Arc<Path>,
    /// The byte range of its name.
    pub span: Range<usize>,
}
