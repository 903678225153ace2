//! Rules: text of a file, to a spanned tree, to a [`RuleSet`] that cannot be wrong, to verdicts over records and changes.

mod advice;
pub mod builtin;
mod condition;
mod fields;
mod imply;
mod index;
mod lint;
mod load;
mod node;
mod places;
pub mod schema;
mod template;
mod words;

use std::{collections::BTreeMap, ops::Range, path::Path, sync::Arc};

use chrono::TimeDelta;
use globset::GlobSet;

use crate::{
    aggregate::{Flow, Totals, Window},
    alert::Labels,
    change::{Change, ChangeKind},
    supply::{ReceiverName, Record, Resource, RuleId, Timestamp, Token, TokenId, Tracked, span_of_days},
};

use builtin::{built_in_of_totals, built_in_summary};
use condition::{Condition, Edge, Reads};
use node::Env;
use template::Template;

pub use advice::{Known, advise};
pub use condition::clauses::{Clause, How};
pub use index::Index;
pub use load::{Loaded, RuleFiles, Surroundings, load, read_files};

/// What a rule listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// Records as they are: `unlock` with lead times; burns, buybacks and rounds as they appear.
    Record(Resource),
    /// A change of a record: this kind, or any.
    Change(Resource, Option<ChangeKind>),
    /// A token as a whole: windows over its unlocks, burns and buybacks.
    Token,
    /// A group of tokens, or all watched ones, as a whole.
    Portfolio,
    /// Trouble with the source, a receiver or this program.
    Source,
}

/// A lead time of `within`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// As the rule writes it: `7d`.
    pub text: String,
    /// How long.
    pub span: TimeDelta,
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It does.
    True,
    /// It does not.
    False,
    /// It cannot be told: these fields are missing.
    Missing(Vec<&'static str>),
}

/// Trouble, as rules `on = "source"` and templates see it.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFacts {
    /// `unreachable`, `unauthorized`, `held`, `receiver`, …
    pub kind: String,
    /// Endpoint, where it is about one.
    pub endpoint: Option<String>,
    /// Receiver, where it is about one.
    pub receiver: Option<String>,
    /// What failed, for people.
    pub message: String,
    /// Feeds or deliveries concerned.
    pub count: u32,
    /// Since when.
    pub since: Timestamp,
}

/// What a condition or a template looks at.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The token; none for trouble of the whole source.
    pub token: Option<&'a Token>,
    /// The record, after the change where there is one.
    pub record: Option<&'a Tracked>,
    /// The change, for rules on changes.
    pub change: Option<&'a Change>,
    /// The trouble, for rules on the source.
    pub source: Option<&'a SourceFacts>,
    /// What the windows of the token or of the group hold, for rules on `token` and `portfolio`.
    pub totals: Option<&'a Totals>,
    /// The smallest lead time that holds.
    pub lead: Option<&'a Lead>,
    /// The time of the tick.
    pub now: Timestamp,
}

/// Labels and annotations of one alert.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The rule's labels, level's included; `alertname` and `token` (slug, where there is one) are always there.
    pub labels: Labels,
    /// Annotations. `summary` is always there: a built-in one where the rule has none or its template failed.
    pub annotations: BTreeMap<String, String>,
    /// What a template failed with; the built-in text stands in its place.
    pub error: Option<String>,
}

/// A rule that has been checked. How its conditions and templates are held is this room's own.
#[derive(Debug)]
pub struct Rule {
    /// `id` where given, else the `alert` name.
    pub id: RuleId,
    /// The `alert` name.
    pub name: String,
    /// What it listens to.
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
    /// Who answers for it.
    pub owner: Option<String>,
    /// It rests from then on.
    pub expires: Option<Timestamp>,
    /// Whether a condition of it reads the time (`now`, `daysUntil * 2`) in such a way that it may turn at any instant.
    pub is_clock_dependent: bool,
    /// Days before a record's time (negative: after) at which its truth may turn, and not between: `daysUntil <= 7`.
    pub edges: Vec<f64>,
    /// The groups that a rule on `portfolio` looks at, one alert for each; empty for every other rule.
    pub pools: Vec<Pool>,
    /// Where it stands.
    pub place: Place,
    /// Conditions, templates, filters.
    pub(crate) body: RuleBody,
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
    /// The group, where it is one.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        match self {
            Pool::Watched => None,
            Pool::Group(name) => Some(name),
        }
    }
}

/// Where a rule stands in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as the operator knows it.
    pub file: Arc<Path>,
    /// Bytes of its name.
    pub span: Range<usize>,
}

/// The rules at work.
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
    #[must_use]
    pub fn of(rules: Vec<Rule>) -> Self {
        let index = Index::of(&rules);
        let mut reads = Reads::default();
        for rule in &rules {
            reads.join(&rule.body.reads);
        }
        reads.windows.sort_unstable();
        let since = reads.edges.iter().filter_map(|edge| match edge {
            Edge::Since(flow, days) => Some((*flow, span_of_days(*days)?)),
            Edge::Until(_) => None,
        });
        Self { index, windows: reads.windows.into(), since: since.collect(), rules }
    }

    /// The rules that listen to `on`, in their order.
    pub fn on(&self, on: On) -> impl Iterator<Item = &Rule> {
        self.index.on(on).iter().filter_map(|place| self.rules.get(*place))
    }

    /// Whether any rule hears of emissions: of their records, their changes, or what was `emitted`.
    #[must_use]
    pub fn hears_emissions(&self) -> bool {
        !self.index.on(On::Record(Resource::Emission)).is_empty()
            || ChangeKind::ALL.iter().any(|kind| !self.index.hears(Resource::Emission, *kind).is_empty())
            || self.windows.iter().any(|window| window.flow == Flow::Emitted)
    }

    /// Whether any rule looks at tokens or groups as a whole.
    #[must_use]
    pub fn has_aggregates(&self) -> bool {
        !self.index.on(On::Token).is_empty() || !self.index.on(On::Portfolio).is_empty()
    }
}

/// Conditions, templates and filters of a rule.
#[derive(Debug, Default)]
pub(crate) struct RuleBody {
    when: Option<Condition>,
    clear_when: Option<Condition>,
    fires_on_missing: bool,
    filters: Filters,
    levels: Vec<Level>,
    /// What its conditions and templates read.
    reads: Reads,
    /// Names of all labels that it or a level of it may set, and of those that are always there.
    label_names: Vec<String>,
    labels: Vec<(String, Template)>,
    annotations: Vec<(String, Template)>,
}

/// A level: its condition and what it adds.
#[derive(Debug)]
struct Level {
    when: Condition,
    labels: Vec<(String, Template)>,
    annotations: Vec<(String, Template)>,
}

/// What a rule lets in. An empty filter lets everything in.
#[derive(Debug, Default)]
struct Filters {
    tokens: Option<GlobSet>,
    groups: Vec<String>,
    listed_methods: Option<GlobSet>,
    allocations: Option<GlobSet>,
}

impl Rule {
    /// Whether its filters (`tokens`, `listed_methods`, `allocations`) let this scope in.
    #[must_use]
    pub fn covers(&self, scope: &Scope<'_>) -> bool {
        if self.on == On::Portfolio {
            let group = scope.totals.map(|totals| totals.group.as_deref());
            return group.is_some_and(|group| self.pools.iter().any(|pool| pool.group() == group));
        }
        self.body.filters.cover(scope)
    }

    /// Whether its filters may let in anything of this token; of a rule on `portfolio`, whether the token is one of those that it
    /// looks at as one where no group is named.
    #[must_use]
    pub fn lets_in(&self, token: &Token) -> bool {
        self.body.filters.let_in(&token.id, &token.groups)
    }

    /// As [`Self::lets_in`], of a token of which no more than this is at hand.
    #[must_use]
    pub fn lets_in_named(&self, token: &TokenId, groups: &[String]) -> bool {
        self.body.filters.let_in(token, groups)
    }

    /// Groups of which it asks for a token's share.
    #[must_use]
    pub fn shares(&self) -> &[String] {
        &self.body.reads.groups
    }

    /// Windows that it asks for.
    #[must_use]
    pub fn windows(&self) -> &[Window] {
        &self.body.reads.windows
    }

    /// Whether `when` holds; true where the rule has none. `missing = "fire"` turns `Missing` into `True`.
    #[must_use]
    pub fn holds(&self, scope: &Scope<'_>) -> Truth {
        match self.body.when.as_ref().map(|when| when.test(scope)) {
            None => Truth::True,
            Some(Truth::Missing(_)) if self.body.fires_on_missing => Truth::True,
            Some(truth) => truth,
        }
    }

    /// Whether a firing alert has cleared: `clear_when` where given, else that `when` is false. `Missing` clears nothing.
    #[must_use]
    pub fn clears(&self, scope: &Scope<'_>) -> bool {
        match &self.body.clear_when {
            Some(clear) => clear.test(scope) == Truth::True,
            None => self.holds(scope) == Truth::False,
        }
    }

    /// Index of the highest level that holds: the last in the file's order that is true.
    #[must_use]
    pub fn level(&self, scope: &Scope<'_>) -> Option<u32> {
        let highest = self.body.levels.iter().rposition(|level| level.when.test(scope) == Truth::True)?;
        u32::try_from(highest).ok()
    }

    /// Labels and annotations. Never fails: see [`Rendered::error`].
    #[must_use]
    pub fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered {
        let level = level.and_then(|level| self.body.levels.get(usize::try_from(level).ok()?));
        let mut rendered = Rendered::default();
        let mut fail = |what: &str, name: &str, problem: String| {
            rendered.error.get_or_insert_with(|| format!("rule {}: {what} `{name}`: {problem}", self.name));
        };
        let mut labels = Labels::new();
        let mut annotations = BTreeMap::new();
        let own = template::context(scope, None);
        for (name, template) in self.body.labels.iter().chain(level.map_or(&[][..], |level| &level.labels)) {
            match template.label(&own) {
                Ok(text) => _ = labels.insert(name.clone(), text),
                Err(problem) => fail("label", name, problem),
            }
        }
        labels.insert("alertname".into(), self.name.clone());
        if let Some(token) = scope.token {
            labels.insert("token".into(), token.id.as_str().to_owned());
        }
        if let Some(group) = scope.totals.and_then(|totals| totals.group.clone()) {
            labels.insert("group".into(), group);
        }
        let all = template::context(scope, Some((&self.body.label_names, &labels)));
        for (name, template) in self.body.annotations.iter().chain(level.map_or(&[][..], |level| &level.annotations)) {
            match template.annotation(&all) {
                Ok(text) => _ = annotations.insert(name.clone(), text),
                Err(problem) => {
                    // A level's broken text must not leave the rule's own in its place: it may say the opposite.
                    annotations.remove(name);
                    fail("annotation", name, problem);
                }
            }
        }
        // An alert without a line to read is no alert.
        if annotations.get("summary").is_none_or(|summary| summary.trim().is_empty()) {
            let summary = match scope.totals {
                Some(totals) => built_in_of_totals(scope, totals, &self.body.reads.windows),
                None => built_in_summary(scope),
            };
            annotations.insert("summary".into(), summary);
        }
        if let Some(error) = &rendered.error {
            annotations.insert("template_error".into(), error.clone());
        }
        rendered.labels = labels;
        rendered.annotations = annotations;
        rendered
    }
}

impl Filters {
    fn let_in(&self, token: &TokenId, groups: &[String]) -> bool {
        if self.tokens.is_none() && self.groups.is_empty() {
            return true;
        }
        let by_name = self.tokens.as_ref().is_some_and(|globs| globs.is_match(token.as_str()));
        by_name || groups.iter().any(|group| self.groups.contains(group))
    }

    fn cover(&self, scope: &Scope<'_>) -> bool {
        if (self.tokens.is_some() || !self.groups.is_empty())
            && !scope.token.is_some_and(|token| self.let_in(&token.id, &token.groups))
        {
            return false;
        }
        if let Some(globs) = &self.listed_methods {
            let own = match Env::of(scope, None).record() {
                Some(Record::Unlock(event)) => event.listed_method.as_str(),
                Some(Record::Emission(emission)) => emission.listed_method.as_str(),
                _ => None,
            };
            let method = own.or_else(|| scope.token.and_then(|token| token.item.listed_method.as_str()));
            if !method.is_some_and(|method| globs.is_match(method)) {
                return false;
            }
        }
        self.allocations.as_ref().is_none_or(|globs| {
            let mut found = false;
            let mut visit = |part: fields::Part<'_>| {
                let names = [fields::part_name(part), fields::part_standard_name(part)];
                found = names.into_iter().flatten().any(|name| globs.is_match(name));
                !found
            };
            // A change names those whom it concerns; their categories stand in the record. Where it names none, all recipients count.
            let concerned = scope.change.map_or(&[][..], |change| &change.allocations);
            if concerned.iter().all(|item| visit(fields::Part::Change(item)))
                && let Some(record) = Env::of(scope, None).record()
            {
                fields::recipients(record, &mut |part| {
                    let name = fields::part_name(part);
                    let counts = concerned.is_empty() || concerned.iter().any(|item| Some(item.name.as_str()) == name);
                    !counts || visit(part)
                });
            }
            found
        })
    }
}

#[cfg(test)]
mod tests;
