//! The interface between rules and the evaluation.

use chrono::TimeDelta;

use super::NominalReminder;
use crate::route::RouteTree;
use model::{Interval, Labels, ReceiverName, RuleId, Timestamp, Token};
use rules::{Lead, Mismatch, On, RecordBounds, Rendered, Rule, Scope, Truth};

/// A rule, as the evaluation uses it. Tests have their own implementation.
pub trait RuleEval {
    fn terms(&self) -> RuleTerms<'_>;
    fn covers(&self, scope: &Scope<'_>) -> bool;
    fn evaluate(&self, scope: &Scope<'_>) -> Truth;
    /// Returns whether [`Self::evaluate`] returns `True`.
    fn matches(&self, scope: &Scope<'_>) -> bool {
        self.evaluate(scope) == Truth::True
    }
    /// Returns `false` if the rule does not match any of the records.
    fn can_match(&self, _records: &mut RecordBounds<'_>) -> bool {
        true
    }
    fn clears(&self, scope: &Scope<'_>) -> bool;
    fn level(&self, scope: &Scope<'_>) -> Option<u32>;
    fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered;
    /// Returns the comparison that makes the condition false.
    fn mismatch(&self, _scope: &Scope<'_>) -> Option<Mismatch> {
        None
    }
    /// Returns `false` if the token filter excludes the token.
    fn selects_token(&self, _token: &Token) -> bool {
        true
    }
}

/// The parameters of a rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleTerms<'a> {
    pub id: &'a RuleId,
    pub name: &'a str,
    pub on: On,
    pub within: &'a [Lead],
    pub since: TimeDelta,
    pub pending_for: TimeDelta,
    pub keep_firing_for: TimeDelta,
    pub limit: Option<u32>,
    pub receivers: &'a [ReceiverName],
    pub expires: Option<Timestamp>,
    pub is_clock_dependent: bool,
    /// Days before a record's time at which the condition may change.
    pub edges: &'a [f64],
}

impl RuleTerms<'_> {
    /// Returns whether the rule has not expired.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|at| now < at)
    }

    /// Returns the receivers that the rule names and the config has, else the receivers of the matching routes.
    pub fn receivers_for(&self, routes: &RouteTree, labels: &Labels) -> Vec<ReceiverName> {
        let mut named = Vec::new();
        for receiver in self.receivers.iter().filter(|receiver| routes.has_receiver(receiver)) {
            if !named.contains(receiver) {
                named.push(receiver.clone());
            }
        }
        if named.is_empty() { routes.route(labels) } else { named }
    }

    /// Returns all lead times that a notification at `now` covers, as the rule spells them.
    pub(super) fn leads(&self, interval: Option<Interval>, now: Timestamp) -> Vec<String> {
        let Some(interval) = interval else { return Vec::new() };
        let leads = self.within.iter().filter(|lead| interval.is_within(now, lead.span)).map(|lead| lead.text.clone());
        let nominal = NominalReminder::of(self.within, interval).filter(|reminder| reminder.is_covered_at(now));
        leads.chain(nominal.map(|reminder| reminder.text())).collect()
    }
}

impl RuleEval for Rule {
    fn terms(&self) -> RuleTerms<'_> {
        RuleTerms {
            id: &self.id,
            name: &self.name,
            on: self.on,
            within: &self.within,
            since: self.since,
            pending_for: self.pending_for,
            keep_firing_for: self.keep_firing_for,
            limit: self.limit,
            receivers: &self.receivers,
            expires: self.expires,
            is_clock_dependent: self.is_clock_dependent,
            edges: &self.edges,
        }
    }
    fn selects_token(&self, token: &Token) -> bool {
        Rule::selects_token(self, token)
    }
    fn mismatch(&self, scope: &Scope<'_>) -> Option<Mismatch> {
        Rule::mismatch(self, scope)
    }
    fn covers(&self, scope: &Scope<'_>) -> bool {
        Rule::covers(self, scope)
    }
    fn evaluate(&self, scope: &Scope<'_>) -> Truth {
        Rule::evaluate(self, scope)
    }
    fn matches(&self, scope: &Scope<'_>) -> bool {
        Rule::matches(self, scope)
    }
    fn can_match(&self, records: &mut RecordBounds<'_>) -> bool {
        Rule::can_match(self, records)
    }
    fn clears(&self, scope: &Scope<'_>) -> bool {
        Rule::clears(self, scope)
    }
    fn level(&self, scope: &Scope<'_>) -> Option<u32> {
        Rule::level(self, scope)
    }
    fn render(&self, scope: &Scope<'_>, level: Option<u32>) -> Rendered {
        Rule::render(self, scope, level)
    }
}
