//! Rules on aggregates: sums over the time windows of a token (`on = "token"`) or of a group (`on = "portfolio"`).
//!
//! The subject of an alert is `token/arbitrum`, `portfolio/desk`, or `portfolio/*` for all watched tokens. An alert fires while the
//! condition is true. While a sum is unknown, because a feed was never read or fails, the alert neither fires nor resolves.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::body::{plain_body, token_body};
use super::lifecycle::{AlertLifecycle, AlertSubject};
use super::transition::Transitions;
use super::{EvaluationContext, Limits, RuleEval as _, blank};
use model::{
    Alert, AlertBody, AlertState, AlertStatus, GROUP_SUBJECT, MAX_MEMBERS, MemberBody, Resolution, Resource, RuleId, SourceBody,
    Timestamp, Token, TokenBody,
};
use rules::{
    On, Pool, Rendered, Rule, Scope, Truth,
    aggregate::{Member, Totals},
};

/// The subject prefix of alerts about a token.
const TOKEN: &str = "token/";

/// The aggregates of one token.
#[derive(Clone, Copy, Debug)]
pub struct TokenTotals<'a> {
    pub token: &'a Token,
    /// Whether the config watches the token. Alerts of an unwatched token are resolved.
    pub is_watched: bool,
    pub totals: &'a Totals,
    /// All pending and firing alerts of the token.
    pub alerts: &'a [Alert],
    /// The time of the last complete response for each resource.
    pub polled_at: &'a [(Resource, Timestamp)],
}

/// Evaluates the `token` rules, with at most one [`TokenTotals`] for each token.
pub fn tokens(facts: &[TokenTotals<'_>], context: &EvaluationContext<'_>, limits: &mut Limits) -> Transitions {
    let mut evaluation = AggregateEvaluation::new(On::Token, context);
    for facts in facts {
        let name = format!("{TOKEN}{}", facts.token.id);
        let subject = AggregateSubject {
            token: Some(facts.token),
            totals: Some(facts.totals),
            polled_at: facts.polled_at,
            ..AggregateSubject::default()
        };
        let open = facts.alerts.iter().filter(|alert| is_open_aggregate(alert, TOKEN));
        let open: HashMap<&RuleId, &Alert> = open.map(|alert| (&alert.rule, alert)).collect();
        let resolution = if facts.is_watched { Resolution::RuleGone } else { Resolution::Unwatched };
        evaluation.all_rules(subject, &name, open, |rule| facts.is_watched && rule.selects_token(facts.token), resolution);
    }
    evaluation.finish(limits)
}

/// Evaluates the `portfolio` rules. `of` returns the totals of a rule's group, and `open` contains all open alerts without a token. Alerts
/// about other subjects stay unchanged.
pub fn portfolios(
    of: &mut dyn FnMut(&Rule, &Pool) -> Option<Arc<Totals>>,
    open: &[Alert],
    polled_at: &[(Resource, Timestamp)],
    context: &EvaluationContext<'_>,
    limits: &mut Limits,
) -> Transitions {
    let mut evaluation = AggregateEvaluation::new(On::Portfolio, context);
    let mut evaluated: BTreeSet<(&RuleId, String)> = BTreeSet::new();
    for rule in evaluation.rules.clone() {
        for pool in &rule.pools {
            let name = format!("{GROUP_SUBJECT}{}", pool.group().unwrap_or("*"));
            let before = open.iter().find(|alert| alert.rule == rule.id && alert.subject == name);
            // Without totals, the condition is unknown and open alerts stay unchanged.
            if let Some(totals) = of(rule, pool) {
                let subject = AggregateSubject { totals: Some(&totals), polled_at, ..AggregateSubject::default() };
                evaluation.one_rule(rule, subject, &name, before);
            }
            evaluated.insert((&rule.id, name));
        }
    }
    for alert in open.iter().filter(|alert| is_open_aggregate(alert, GROUP_SUBJECT)) {
        if !evaluated.contains(&(&alert.rule, alert.subject.clone())) {
            evaluation.resolve_without_rule(alert, AggregateSubject::default(), Resolution::RuleGone);
        }
    }
    evaluation.finish(limits)
}

/// Renders the text of an alert about the totals of a token.
pub(super) fn current_text_of_totals(alert: &Alert, rule: &Rule, token: &Token, totals: &Totals, now: Timestamp) -> Rendered {
    rule.render(&Scope { token: Some(token), totals: Some(totals), ..Scope::at(now) }, alert.level)
}

/// Returns whether an alert is open and about an aggregate whose subject starts with `prefix`.
fn is_open_aggregate(alert: &Alert, prefix: &str) -> bool {
    alert.resource.is_none()
        && alert.key.is_none()
        && matches!(alert.state, AlertState::Pending | AlertState::Firing)
        && alert.subject.starts_with(prefix)
}

/// A token or a group, with the evaluated rule.
#[derive(Clone, Copy, Default)]
struct AggregateSubject<'a> {
    /// `None` for a group.
    token: Option<&'a Token>,
    /// `None` for a group that no rule uses any more.
    totals: Option<&'a Totals>,
    polled_at: &'a [(Resource, Timestamp)],
    /// `None` if the rule of the alert no longer exists.
    rule: Option<&'a Rule>,
}

impl AggregateSubject<'_> {
    /// Returns the origin of the facts, with the time of the oldest feed in the rule's sums.
    fn source(&self, rule: &Rule) -> SourceBody {
        let summed = rule.summed_resources();
        SourceBody {
            polled_at: self.polled_at.iter().filter(|(resource, _)| summed.contains(resource)).map(|(_, at)| *at).min(),
            listed_method: self.token.and_then(|token| token.item.listed_method.as_str().map(str::to_owned)),
            data_source: None,
            latest_update_date: self.token.and_then(|token| token.item.last_updated_date.copied()),
        }
    }

    /// Returns the value in the window of the rule's condition. If part of the supply has no value, returns the known part.
    fn value(&self) -> Option<f64> {
        let sum = self.totals?.sum(*self.rule?.windows().first()?)?;
        sum.value.or(sum.cliff.value).or(sum.linear.value)
    }

    /// Returns the tokens of a group, sorted by their value in the rule's first window, largest first.
    fn members(&self, now: Timestamp) -> Vec<MemberBody> {
        let Some(totals) = self.totals else { return Vec::new() };
        let window = self.rule.and_then(|rule| rule.windows().first().copied());
        let member = |member: &Member| {
            let sum = window.and_then(|window| member.totals.sum(window)).unwrap_or_default();
            let token =
                TokenBody { id: member.id.as_str().to_owned(), name: member.name.to_string(), symbol: member.symbol.to_string() };
            // Nothing known is not zero while linear unlocks can be missing.
            let is_complete = window.is_none_or(|window| member.totals.is_complete(window, now));
            let known = |number: Option<f64>| number.filter(|number| *number > 0.0 || is_complete);
            MemberBody { token, share: member.share, amount: known(sum.amount), value: known(sum.value) }
        };
        let mut members: Vec<MemberBody> = totals.members.iter().map(member).collect();
        members.sort_by(|a, b| {
            let key = |of: &MemberBody| of.value.unwrap_or_default();
            key(b).total_cmp(&key(a)).then_with(|| b.share.unwrap_or_default().total_cmp(&a.share.unwrap_or_default()))
        });
        members.truncate(MAX_MEMBERS);
        members
    }
}

impl AlertSubject for AggregateSubject<'_> {
    fn scope(&self, now: Timestamp) -> Scope<'_> {
        Scope { token: self.token, totals: self.totals, ..Scope::at(now) }
    }

    fn body(&self, alert: &Alert, status: AlertStatus, reason: &str, now: Timestamp) -> AlertBody {
        AlertBody {
            token: self.token.map(token_body),
            members: self.members(now),
            value: self.value(),
            source: self.rule.map(|rule| self.source(rule)).unwrap_or_default(),
            ..plain_body(alert, status, reason, now)
        }
    }

    fn price_at(&self) -> Option<Timestamp> {
        let windows = self.rule?.windows();
        self.totals.filter(|totals| totals.has_value_ahead(windows))?.price_at
    }

    fn for_resolution(self) -> Self {
        self
    }
}

/// The evaluation of the rules on tokens, or of the rules on groups.
struct AggregateEvaluation<'a> {
    /// Active rules, in file order.
    rules: Vec<&'a Rule>,
    lifecycle: AlertLifecycle<'a>,
}

impl<'a> AggregateEvaluation<'a> {
    fn new(on: On, context: &EvaluationContext<'a>) -> Self {
        let mut ids: HashSet<&RuleId> = HashSet::new();
        let is_active = |rule: &&Rule| rule.terms().is_active(context.now);
        let rules = context.rules.on(on).filter(is_active).filter(|rule| ids.insert(&rule.id)).collect();
        Self { rules, lifecycle: AlertLifecycle::of(context) }
    }

    /// Evaluates all rules on one subject, and resolves the alerts of rules that do not apply to it any more.
    fn all_rules(
        &mut self,
        subject: AggregateSubject<'_>,
        name: &str,
        mut open: HashMap<&RuleId, &Alert>,
        selects_token: impl Fn(&Rule) -> bool,
        resolution: Resolution,
    ) {
        for rule in self.rules.clone().into_iter().filter(|rule| selects_token(rule)) {
            self.one_rule(rule, subject, name, open.remove(&rule.id));
        }
        let mut left: Vec<_> = open.into_values().collect();
        left.sort_by(|a, b| a.rule.cmp(&b.rule));
        for alert in left {
            self.resolve_without_rule(alert, subject, resolution);
        }
    }

    /// Evaluates one rule on one subject.
    fn one_rule(&mut self, rule: &Rule, subject: AggregateSubject<'_>, name: &str, before: Option<&Alert>) {
        let now = self.lifecycle.now;
        let scope = subject.scope(now);
        if !rule.covers(&scope) {
            if let Some(before) = before {
                self.resolve_without_rule(before, subject, Resolution::RuleGone);
            }
            return;
        }
        let truth = rule.evaluate(&scope);
        if truth == Truth::True {
            self.lifecycle.transitions.matched(&rule.id, now);
        }
        let subject = AggregateSubject { rule: Some(rule), ..subject };
        match before {
            Some(before) => {
                let alert = Alert { name: rule.name.clone(), ..before.clone() };
                self.lifecycle.update(rule, subject, &truth, before, alert);
            }
            None if truth == Truth::True => {
                let alert = Alert {
                    token: subject.token.map(|token| token.id.clone()),
                    ..blank(rule.id.clone(), &rule.name, name.to_owned(), AlertState::Pending, now)
                };
                self.lifecycle.open(rule, subject, alert);
            }
            None => {}
        }
    }

    fn resolve_without_rule(&mut self, alert: &Alert, subject: AggregateSubject<'_>, resolution: Resolution) {
        self.lifecycle.resolve(alert.clone(), resolution, subject, None::<&Rule>);
    }

    fn finish(mut self, limits: &mut Limits) -> Transitions {
        for rule in &self.rules {
            limits.apply(&rule.terms(), &mut self.lifecycle.transitions);
        }
        self.lifecycle.transitions.record_receivers();
        self.lifecycle.transitions
    }
}
