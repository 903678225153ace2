//! Rules: text of a file, to a spanned tree, to a [`RuleSet`] that cannot be wrong, to verdicts over records and changes.

pub mod builtin;
mod condition;
mod fields;
mod lint;
mod load;
mod node;
mod template;
mod words;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use globset::GlobSet;

use crate::{
    alert::Labels,
    change::{Change, ChangeKind},
    supply::{ReceiverName, Record, Resource, RuleId, Timestamp, Token, Tracked},
};

use builtin::built_in_summary;
use condition::Condition;
use node::Env;
use template::Template;

pub use load::{Loaded, RuleFiles, Surroundings, load, read_files};

/// What a rule listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// Records as they are: `unlock` with lead times; burns, buybacks and rounds as they appear.
    Record(Resource),
    /// A change of a record: this kind, or any.
    Change(Resource, Option<ChangeKind>),
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
    /// Whether a condition of it reads the time (`now`, `daysUntil`, `daysSince`), so that time alone can change its truth.
    pub is_clock_dependent: bool,
    /// Conditions, templates, filters.
    pub(crate) body: RuleBody,
}

/// The rules at work.
#[derive(Debug, Default)]
pub struct RuleSet {
    /// In the order of files and lines; disabled ones are left out.
    pub rules: Vec<Rule>,
}

/// Conditions, templates and filters of a rule.
#[derive(Debug, Default)]
pub(crate) struct RuleBody {
    when: Option<Condition>,
    clear_when: Option<Condition>,
    fires_on_missing: bool,
    filters: Filters,
    levels: Vec<Level>,
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
        self.body.filters.cover(scope)
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
            annotations.insert("summary".into(), built_in_summary(scope));
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
    fn cover(&self, scope: &Scope<'_>) -> bool {
        if self.tokens.is_some() || !self.groups.is_empty() {
            let Some(token) = scope.token else { return false };
            let by_name = self.tokens.as_ref().is_some_and(|globs| globs.is_match(token.id.as_str()));
            if !by_name && !token.groups.iter().any(|group| self.groups.contains(group)) {
                return false;
            }
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
