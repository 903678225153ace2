//! Rules on a token or on a group as a whole: the same states as those of a record, over windows instead of a date.
//!
//! An alert of a token is about `token/arbitrum`, one of a group about `portfolio/desk`, one of all watched tokens about
//! `portfolio/*`. It fires while the condition holds, ends when it clears, and while something that the condition needs is unknown
//! (a feed that was never read, or fails now) it neither begins nor ends.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use chrono::TimeDelta;

use super::{
    Context, Judge, Limits, Terms, blank,
    draft::{Draft, Sketch, Tell, Urgency, remember},
    plain_body, token_body,
};
use crate::{
    aggregate::Totals,
    alert::{Alert, AlertState, NoticeKind, Resolution, SourceBody},
    rules::{On, Pool, Rule, Scope, Truth},
    supply::{Resource, RuleId, Timestamp, Token},
};

/// Begin of the subject of an alert about a token as a whole.
const TOKEN: &str = "token/";

/// Begin of the subject of an alert about a group as a whole.
const PORTFOLIO: &str = "portfolio/";

/// A token with its totals.
#[derive(Clone, Copy, Debug)]
pub struct TokenTotals<'a> {
    /// The token.
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

/// Judges tokens as a whole, at most one [`TokenTotals`] for each.
pub fn tokens(facts: &[TokenTotals<'_>], context: &Context<'_>, limits: &mut Limits) -> Draft {
    let mut wholes = Wholes::of(On::Token, context);
    for facts in facts {
        let subject = format!("{TOKEN}{}", facts.token.id);
        let whole = Whole { token: Some(facts.token), totals: facts.totals, subject: &subject, polled_at: facts.polled_at };
        let open = facts.alerts.iter().filter(|alert| is_whole(alert, TOKEN));
        let open: HashMap<&RuleId, &Alert> = open.map(|alert| (&alert.rule, alert)).collect();
        wholes.judge(&whole, &open, |rule| facts.is_watched && rule.lets_in(facts.token));
    }
    wholes.finish(limits)
}

/// Judges groups as a whole. `of` gives the totals of what a rule looks at as one, and `open` are all alerts that are about no
/// token; those that are about something else are left alone.
pub fn portfolios(
    of: &mut dyn FnMut(&Rule, &Pool) -> Option<Arc<Totals>>,
    open: &[Alert],
    polled_at: &[(Resource, Timestamp)],
    context: &Context<'_>,
    limits: &mut Limits,
) -> Draft {
    let mut wholes = Wholes::of(On::Portfolio, context);
    let mut judged: BTreeSet<(&RuleId, String)> = BTreeSet::new();
    for rule in std::mem::take(&mut wholes.rules) {
        for pool in &rule.pools {
            let subject = format!("{PORTFOLIO}{}", pool.group().unwrap_or("*"));
            let before = open.iter().find(|alert| alert.rule == rule.id && alert.subject == subject);
            // Without totals nothing can be told: what is open stays as it is.
            if let Some(totals) = of(rule, pool) {
                let whole = Whole { token: None, totals: &totals, subject: &subject, polled_at };
                wholes.one(rule, &whole, before);
            }
            judged.insert((&rule.id, subject));
        }
        wholes.rules.push(rule);
    }
    for alert in open.iter().filter(|alert| is_whole(alert, PORTFOLIO)) {
        if !judged.contains(&(&alert.rule, alert.subject.clone())) {
            wholes.end(alert.clone(), Resolution::RuleGone, None, None);
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

/// What one alert is about.
#[derive(Clone, Copy)]
struct Whole<'a> {
    token: Option<&'a Token>,
    totals: &'a Totals,
    subject: &'a str,
    polled_at: &'a [(Resource, Timestamp)],
}

impl<'a> Whole<'a> {
    fn scope(&self, now: Timestamp) -> Scope<'a> {
        Scope { token: self.token, record: None, change: None, source: None, totals: Some(self.totals), lead: None, now }
    }

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

struct Wholes<'a> {
    context: &'a Context<'a>,
    /// Those of one kind that are awake, in their order.
    rules: Vec<&'a Rule>,
    draft: Draft,
}

impl<'a> Wholes<'a> {
    fn of(on: On, context: &'a Context<'a>) -> Self {
        let mut ids: HashSet<&RuleId> = HashSet::new();
        let awake = |rule: &&Rule| rule.terms().is_awake(context.now);
        let rules = context.rules.on(on).filter(awake).filter(|rule| ids.insert(&rule.id)).collect();
        Self { context, rules, draft: Draft::default() }
    }

    /// Judges one whole by all rules, and ends the alerts of rules that are gone.
    fn judge(&mut self, whole: &Whole<'_>, open: &HashMap<&RuleId, &Alert>, lets_in: impl Fn(&Rule) -> bool) {
        let mut left = open.clone();
        for rule in std::mem::take(&mut self.rules) {
            if lets_in(rule) {
                self.one(rule, whole, left.remove(&rule.id));
            }
            self.rules.push(rule);
        }
        let mut left: Vec<_> = left.into_values().collect();
        left.sort_by(|a, b| a.rule.cmp(&b.rule));
        for alert in left {
            self.end(alert.clone(), Resolution::RuleGone, None, Some(whole));
        }
    }

    /// Judges one whole by one rule.
    fn one(&mut self, rule: &Rule, whole: &Whole<'_>, before: Option<&Alert>) {
        let now = self.context.now;
        let terms = rule.terms();
        let scope = whole.scope(now);
        if !rule.covers(&scope) {
            if let Some(before) = before {
                self.end(before.clone(), Resolution::RuleGone, None, Some(whole));
            }
            return;
        }
        let truth = rule.holds(&scope);
        if truth == Truth::True {
            self.draft.matched(&rule.id, now);
        }
        let Some(before) = before else {
            if truth == Truth::True {
                self.open(rule, whole);
            }
            return;
        };
        let mut alert = before.clone();
        alert.name.clone_from(&rule.name);
        if alert.state == AlertState::Pending {
            return match truth {
                Truth::False => self.end(alert, Resolution::Cleared, Some(rule), Some(whole)),
                Truth::True if now.signed_duration_since(alert.active_at) >= rule.hold => self.fire(rule, whole, alert, false),
                _ => self.keep(&terms, before, alert),
            };
        }
        if truth != Truth::True && rule.clears(&scope) {
            let since = *alert.false_since.get_or_insert(now);
            if now.signed_duration_since(since) >= rule.keep_firing_for {
                return self.end(alert, Resolution::Cleared, Some(rule), Some(whole));
            }
            return self.keep(&terms, before, alert);
        }
        if matches!(truth, Truth::Missing(_)) && alert.false_since.is_some() {
            // It had ceased to hold, and now cannot be told: it stays as it was.
            return self.keep(&terms, before, alert);
        }
        alert.false_since = None;
        if truth == Truth::True {
            alert.level = rule.level(&scope);
        }
        if alert.level > before.level {
            let word = format!("level {}", alert.level.map_or(0, |level| level.saturating_add(1)));
            self.render(rule, whole, &mut alert);
            return self.tell(rule, whole, alert, false, NoticeKind::Reminder, word.clone(), &word);
        }
        if alert.level != before.level {
            self.render(rule, whole, &mut alert);
        }
        self.keep(&terms, before, alert);
    }

    /// A condition begins to hold.
    fn open(&mut self, rule: &Rule, whole: &Whole<'_>) {
        let now = self.context.now;
        let mut alert = blank(rule.id.clone(), &rule.name, whole.subject.to_owned(), AlertState::Pending, now);
        alert.token = whole.token.map(|token| token.id.clone());
        if rule.hold > TimeDelta::zero() {
            alert.level = rule.level(&whole.scope(now));
            self.render(rule, whole, &mut alert);
            alert.recheck_at = recheck(&rule.terms(), &alert);
            self.draft.alerts.push(Sketch { alert, is_opening: true });
        } else {
            self.fire(rule, whole, alert, true);
        }
    }

    fn fire(&mut self, rule: &Rule, whole: &Whole<'_>, mut alert: Alert, is_opening: bool) {
        let now = self.context.now;
        alert.state = AlertState::Firing;
        alert.starts_at = Some(now);
        alert.level = rule.level(&whole.scope(now));
        self.render(rule, whole, &mut alert);
        alert.former_labels.clear();
        self.tell(rule, whole, alert, is_opening, NoticeKind::Firing, "firing".to_owned(), "firing");
    }

    /// An alert ends. Those who were told that it fires are told, with the text as it reads now and the labels they know.
    fn end(&mut self, mut alert: Alert, why: Resolution, rule: Option<&Rule>, whole: Option<&Whole<'_>>) {
        let now = self.context.now;
        let was_firing = alert.state == AlertState::Firing;
        if let (Some(rule), Some(whole)) = (rule, whole) {
            let rendered = rule.render(&whole.scope(now), alert.level);
            self.draft.template_failed(&alert.rule, rendered.error);
            alert.annotations = rendered.annotations;
        }
        alert.state = AlertState::Resolved;
        alert.resolution = Some(why);
        alert.ends_at = Some(now);
        alert.false_since = None;
        alert.recheck_at = None;
        alert.updated_at = now;
        let routes = self.context.routes;
        let receivers: Vec<_> = alert.told.iter().filter(|receiver| routes.tells_ends_to(receiver)).cloned().collect();
        if was_firing && !receivers.is_empty() {
            let mut body = plain_body(&alert, "resolved", why.as_str(), now);
            body.token = whole.and_then(|whole| whole.token).map(token_body);
            if let (Some(rule), Some(whole)) = (rule, whole) {
                body.source = whole.source(rule);
            }
            let (urgency, transition) = (urgency(None), "resolved".to_owned());
            let index = self.draft.alerts.len();
            self.draft.tells.push(Tell { alert: index, kind: NoticeKind::Resolved, transition, receivers, body, urgency });
        }
        self.draft.alerts.push(Sketch { alert, is_opening: false });
    }

    /// Nothing is told; what moved on silently is written.
    fn keep(&mut self, terms: &Terms<'_>, before: &Alert, mut alert: Alert) {
        alert.recheck_at = recheck(terms, &alert);
        if alert != *before {
            self.draft.alerts.push(Sketch { alert, is_opening: false });
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of it makes one notice, and each caller has all of it at hand")]
    fn tell(
        &mut self,
        rule: &Rule,
        whole: &Whole<'_>,
        mut alert: Alert,
        is_opening: bool,
        kind: NoticeKind,
        transition: String,
        reason: &str,
    ) {
        let terms = rule.terms();
        alert.recheck_at = recheck(&terms, &alert);
        let receivers = terms.audience(self.context.routes, &alert.labels);
        let mut body = plain_body(&alert, "firing", reason, self.context.now);
        body.token = whole.token.map(token_body);
        body.source = whole.source(rule);
        let urgency = urgency(Some((rule, whole)));
        self.draft.tells.push(Tell { alert: self.draft.alerts.len(), kind, transition, receivers, body, urgency });
        self.draft.alerts.push(Sketch { alert, is_opening });
    }

    fn render(&mut self, rule: &Rule, whole: &Whole<'_>, alert: &mut Alert) {
        let rendered = rule.render(&whole.scope(self.context.now), alert.level);
        self.draft.template_failed(&alert.rule, rendered.error);
        alert.relabel(rendered.labels);
        alert.annotations = rendered.annotations;
        alert.updated_at = self.context.now;
    }

    fn finish(mut self, limits: &mut Limits) -> Draft {
        for rule in &self.rules {
            limits.keep(&rule.terms(), &mut self.draft);
        }
        for tell in &self.draft.tells {
            if let Some(sketch) = self.draft.alerts.get_mut(tell.alert)
                && tell.kind != NoticeKind::Resolved
            {
                remember(&mut sketch.alert.told, &tell.receivers);
            }
        }
        self.draft
    }
}

/// What is told first: the greatest sum of the first window that the rule asks for.
fn urgency(of: Option<(&Rule, &Whole<'_>)>) -> Urgency {
    let size = of.and_then(|(rule, whole)| {
        let sum = whole.totals.sum(*rule.windows().first()?)?;
        sum.value.or(sum.amount)
    });
    Urgency { distance: TimeDelta::zero(), size: size.unwrap_or_default() }
}

/// The next instant at which time alone may move an open alert on, its windows left aside: those are watched by the book of
/// totals. An instant that is past says that every tick is to look.
fn recheck(terms: &Terms<'_>, alert: &Alert) -> Option<Timestamp> {
    if terms.is_clock_dependent {
        return Some(alert.active_at);
    }
    let fires = (alert.state == AlertState::Pending).then(|| alert.active_at.checked_add_signed(terms.hold)).flatten();
    let clears = alert.false_since.and_then(|since| since.checked_add_signed(terms.keep_firing_for));
    [fires, clears, terms.expires].into_iter().flatten().min()
}
