//! Rules on a token or on a group as a whole: the same states as those of a record, over windows instead of a date.
//!
//! An alert of a token is about `token/arbitrum`, one of a group about `portfolio/desk`, one of all watched tokens about
//! `portfolio/*`. It fires while the condition holds, ends when it clears, and while something that the condition needs is unknown
//! (a feed that was never read, or fails now) it neither begins nor ends.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::TimeDelta;

use super::body::{plain_body, token_body};
use super::lifecycle::{AlertLifecycle, AlertSubject};
use super::transition::{Transitions, Urgency};
use super::{EvaluationContext, Limits, RuleEval as _, blank};
use model::{
    Alert, AlertBody, AlertState, AlertStatus, MAX_MEMBERS, MemberBody, NotificationKind, Resolution, Resource, RuleId,
    SourceBody, Timestamp, Token, TokenBody,
};
use rules::{
    On, Pool, Rule, Scope, Truth,
    aggregate::{Member, Totals},
};

/// Begin of the subject of an alert about a token as a whole.
const TOKEN: &str = "token/";

/// Begin of the subject of an alert about a group as a whole.
const PORTFOLIO: &str = "portfolio/";

#[derive(Clone, Copy, Debug)]
pub struct TokenTotals<'a> {
    pub token: &'a Token,
    /// Whether the config still watches it. Alerts of a token that is not watched end.
    pub is_watched: bool,
    /// What its windows hold now.
    pub totals: &'a Totals,
    /// All its alerts that are pending or firing.
    pub alerts: &'a [Alert],
    /// When the source last gave a complete answer about a resource.
    pub polled_at: &'a [(Resource, Timestamp)],
}

/// Evaluates tokens as a whole, at most one [`TokenTotals`] for each.
pub fn tokens(facts: &[TokenTotals<'_>], context: &EvaluationContext<'_>, limits: &mut Limits) -> Transitions {
    let mut wholes = WholeEvaluation::of(On::Token, context);
    for facts in facts {
        let name = format!("{TOKEN}{}", facts.token.id);
        let subject = WholeSubject {
            token: Some(facts.token),
            totals: Some(facts.totals),
            polled_at: facts.polled_at,
            ..WholeSubject::default()
        };
        let open = facts.alerts.iter().filter(|alert| is_whole(alert, TOKEN));
        let open: HashMap<&RuleId, &Alert> = open.map(|alert| (&alert.rule, alert)).collect();
        let gone = if facts.is_watched { Resolution::RuleGone } else { Resolution::Unwatched };
        wholes.all_rules(subject, &name, open, |rule| facts.is_watched && rule.lets_in(facts.token), gone);
    }
    wholes.finish(limits)
}

/// Evaluates groups as a whole. `of` gives the totals of what a rule looks at as one, and `open` are all alerts that are about no
/// token; those that are about something else are left alone.
pub fn portfolios(
    of: &mut dyn FnMut(&Rule, &Pool) -> Option<Arc<Totals>>,
    open: &[Alert],
    polled_at: &[(Resource, Timestamp)],
    context: &EvaluationContext<'_>,
    limits: &mut Limits,
) -> Transitions {
    let mut wholes = WholeEvaluation::of(On::Portfolio, context);
    let mut evaluated: BTreeSet<(&RuleId, String)> = BTreeSet::new();
    for rule in wholes.rules.clone() {
        for pool in &rule.pools {
            let name = format!("{PORTFOLIO}{}", pool.group().unwrap_or("*"));
            let before = open.iter().find(|alert| alert.rule == rule.id && alert.subject == name);
            // Without totals nothing can be told: what is open stays as it is.
            if let Some(totals) = of(rule, pool) {
                let subject = WholeSubject { totals: Some(&totals), polled_at, ..WholeSubject::default() };
                wholes.one_rule(rule, subject, &name, before);
            }
            evaluated.insert((&rule.id, name));
        }
    }
    for alert in open.iter().filter(|alert| is_whole(alert, PORTFOLIO)) {
        if !evaluated.contains(&(&alert.rule, alert.subject.clone())) {
            wholes.end_without_rule(alert, WholeSubject::default(), Resolution::RuleGone);
        }
    }
    wholes.finish(limits)
}

/// Whether an alert is about a token or a group as a whole.
fn is_whole(alert: &Alert, begin: &str) -> bool {
    alert.resource.is_none()
        && alert.key.is_none()
        && matches!(alert.state, AlertState::Pending | AlertState::Firing)
        && alert.subject.starts_with(begin)
}

/// A token or a group, with the rule that looks at it.
#[derive(Clone, Copy, Default)]
struct WholeSubject<'a> {
    /// None for a group.
    token: Option<&'a Token>,
    /// None for a group that no rule looks at any more.
    totals: Option<&'a Totals>,
    polled_at: &'a [(Resource, Timestamp)],
    /// None where the alert has lost its rule.
    rule: Option<&'a Rule>,
}

impl WholeSubject<'_> {
    /// Where the facts come from: as old as the oldest of the feeds that the rule adds up.
    fn source(&self, rule: &Rule) -> SourceBody {
        let used = |resource: Resource| rule.windows().iter().any(|window| window.flow.resource() == resource);
        SourceBody {
            polled_at: self.polled_at.iter().filter(|(resource, _)| used(*resource)).map(|(_, at)| *at).min(),
            listed_method: self.token.and_then(|token| token.item.listed_method.as_str().map(str::to_owned)),
            data_source: None,
            latest_update_date: self.token.and_then(|token| token.item.last_updated_date.copied()),
        }
    }
}

impl WholeSubject<'_> {
    /// The tokens of a group, by what the first window that the rule asks for holds of each.
    fn members(&self) -> Vec<MemberBody> {
        let Some(totals) = self.totals else { return Vec::new() };
        let window = self.rule.and_then(|rule| rule.windows().first().copied());
        let member = |member: &Member| {
            let sum = window.and_then(|window| member.totals.sum(window)).unwrap_or_default();
            let token =
                TokenBody { id: member.id.as_str().to_owned(), name: member.name.to_string(), symbol: member.symbol.to_string() };
            MemberBody { token, share: member.share, amount: sum.amount, value: sum.value }
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

impl AlertSubject for WholeSubject<'_> {
    fn scope(&self, now: Timestamp) -> Scope<'_> {
        Scope { token: self.token, record: None, change: None, source: None, totals: self.totals, lead: None, now }
    }

    fn body(&self, alert: &Alert, status: AlertStatus, reason: &str, now: Timestamp) -> AlertBody {
        AlertBody {
            token: self.token.map(token_body),
            members: self.members(),
            source: self.rule.map(|rule| self.source(rule)).unwrap_or_default(),
            ..plain_body(alert, status, reason, now)
        }
    }

    fn at_its_end(self) -> Self {
        self
    }

    /// The greatest sum of the first window that the rule asks for; an end has no size.
    fn urgency(&self, kind: NotificationKind, _now: Timestamp) -> Urgency {
        let of = self.rule.zip(self.totals).filter(|_| kind != NotificationKind::Resolved);
        let size = of.and_then(|(rule, totals)| {
            let sum = totals.sum(*rule.windows().first()?)?;
            sum.value.or(sum.amount)
        });
        Urgency { distance: TimeDelta::zero(), size: size.unwrap_or_default() }
    }
}

/// Wholes by the rules of one kind.
struct WholeEvaluation<'a> {
    /// Those that are awake, in their order.
    rules: Vec<&'a Rule>,
    lifecycle: AlertLifecycle<'a>,
}

impl<'a> WholeEvaluation<'a> {
    fn of(on: On, context: &EvaluationContext<'a>) -> Self {
        let mut ids: HashSet<&RuleId> = HashSet::new();
        let awake = |rule: &&Rule| rule.terms().is_awake(context.now);
        let rules = context.rules.on(on).filter(awake).filter(|rule| ids.insert(&rule.id)).collect();
        Self { rules, lifecycle: AlertLifecycle::new(context.routes, context.now) }
    }

    /// Evaluates one whole by all rules, and ends the alerts of rules that are gone.
    fn all_rules(
        &mut self,
        subject: WholeSubject<'_>,
        name: &str,
        mut open: HashMap<&RuleId, &Alert>,
        lets_in: impl Fn(&Rule) -> bool,
        gone: Resolution,
    ) {
        for rule in self.rules.clone().into_iter().filter(|rule| lets_in(rule)) {
            self.one_rule(rule, subject, name, open.remove(&rule.id));
        }
        let mut left: Vec<_> = open.into_values().collect();
        left.sort_by(|a, b| a.rule.cmp(&b.rule));
        for alert in left {
            self.end_without_rule(alert, subject, gone);
        }
    }

    /// Evaluates one whole by one rule.
    fn one_rule(&mut self, rule: &Rule, subject: WholeSubject<'_>, name: &str, before: Option<&Alert>) {
        let now = self.lifecycle.now;
        let scope = subject.scope(now);
        if !rule.covers(&scope) {
            if let Some(before) = before {
                self.end_without_rule(before, subject, Resolution::RuleGone);
            }
            return;
        }
        let truth = rule.holds(&scope);
        if truth == Truth::True {
            self.lifecycle.transitions.matched(&rule.id, now);
        }
        let subject = WholeSubject { rule: Some(rule), ..subject };
        match before {
            Some(before) => {
                let alert = Alert { name: rule.name.clone(), ..before.clone() };
                self.lifecycle.follow(rule, subject, &truth, before, alert);
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

    fn end_without_rule(&mut self, alert: &Alert, subject: WholeSubject<'_>, why: Resolution) {
        self.lifecycle.end(alert.clone(), why, subject, None::<&Rule>);
    }

    fn finish(mut self, limits: &mut Limits) -> Transitions {
        for rule in &self.rules {
            limits.keep(&rule.terms(), &mut self.lifecycle.transitions);
        }
        self.lifecycle.transitions.note_receivers();
        self.lifecycle.transitions
    }
}
