//! From what is known and what happened to alerts and what is told of them.
//!
//! [`evaluate`] looks at tokens with their records after a poll (or, on a tick, as they stand), with the changes of the poll, the
//! records that are new in it, and the alerts that are open. It answers with [`Transitions`]: alerts that are new or moved on, and
//! notifications. Transitions name what they [open](Transitions::openings); the caller asks the store for the latest episode of each,
//! and [`Transitions::assign_episodes`] makes the [`Evaluation`], with ids that are the same whenever the same facts are evaluated
//! again.
//!
//! The cast: `lifecycle` moves an alert on, whatever it is about; `records`, `events` and `whole` find what rules are about and hand it
//! over; `recheck` says when time alone may change something; `limit` keeps a rule within its `limit`.
//!
//! Three kinds of rules are evaluated here, and rules on a token or a group as a whole in `whole`, with the same states; incidents of
//! the source are in [`crate::self_monitor`].
//! - *States*: an unlock ahead, a row of the allocation table, the emission of a day. They fire while their condition holds and
//!   have an end. An unlock is told again at each lead time, each once; after downtime only at the latest.
//! - *Arrivals*: a burn, a buyback or a round that is new and not older than `since`. Once, no end. A burn or a buyback that lacks a
//!   fact that a rule asks for is judged by it when that comes, up to `since` later.
//! - *Changes*: once, no end.
//!
//! Promises: evaluating the same facts twice tells nothing new; the order of rules, tokens and records changes nothing but the order
//! of what is told; a condition that cannot be told (a missing field) neither raises nor ends anything; every alert is recorded,
//! also where nobody is to be told. Pure: the time comes in as `now`.

mod body;
mod events;
mod lifecycle;
mod limit;
mod recheck;
mod records;
mod retell;
mod rule;
mod series;
mod subject;
#[cfg(test)]
mod tests;
mod transition;
mod whole;

use std::collections::{HashMap, HashSet};

pub use body::{blank, plain_body, token_body};
pub(crate) use events::record_of;
pub use limit::Limits;
pub use recheck::{states, windows};
pub use retell::retell;
pub use rule::{RuleEval, RuleTerms};
pub use transition::{Evaluation, NotificationDraft, Transitions};
pub use whole::{TokenTotals, portfolios, tokens};

use crate::{late::LateArrival, route::RouteTree};
use body::iso;
use lifecycle::AlertLifecycle;
use model::{Alert, Change, ChangeKind, Fact, Resolution, Resource, RuleId, Timestamp, Token, Tracked};
use records::{DatedRecord, OpenAlert, open_alerts};
use rules::{On, RuleSet};
use subject::RecordSubject;

/// What is known of one token, and what happened to it in this poll.
#[derive(Clone, Copy, Debug)]
pub struct TokenFacts<'a> {
    pub token: &'a Token,
    /// Whether the config still watches it. Alerts of a token that is not watched end.
    pub is_watched: bool,
    /// Its records after this poll, of `resources`.
    pub records: &'a [Tracked],
    /// Which resources `records` holds, all of each: an open alert of such a resource whose record is not among them has lost it
    /// for good. Alerts of other resources are left alone.
    pub resources: &'a [Resource],
    /// What the diff told in this poll, in its order.
    pub changes: &'a [Change],
    /// Burns, buybacks and rounds that are new in this poll and no baseline.
    pub added: &'a [Tracked],
    /// Burns and buybacks that came before, and of which more is known now.
    pub late: &'a [LateArrival],
    /// All its alerts that are pending or firing.
    pub alerts: &'a [Alert],
    /// When the source last gave a complete answer about a resource.
    pub polled_at: &'a [(Resource, Timestamp)],
}

impl TokenFacts<'_> {
    /// When the source last gave a complete answer about `resource`.
    fn polled_at(&self, resource: Resource) -> Option<Timestamp> {
        self.polled_at.iter().find(|(of, _)| *of == resource).map(|(_, at)| *at)
    }

    /// Whether its token goes on under another slug.
    fn has_another_slug(&self) -> bool {
        let own = Fact::Text(self.token.id.to_string());
        !self.is_watched
            && self.changes.iter().any(|change| change.kind == ChangeKind::Renamed && change.from.as_ref() == Some(&own))
    }

    /// Whether a rule on this could hear of these facts: records that are states, arrivals, changes.
    fn concern(&self, on: On) -> bool {
        match on {
            On::Record(Resource::Unlock | Resource::Allocation | Resource::Emission) => !self.records.is_empty(),
            On::Record(resource) => {
                let late = self.late.iter().map(|late| &late.tracked);
                self.added.iter().chain(late).any(|tracked| tracked.record.resource() == resource)
            }
            On::Change(resource, kind) => {
                let hears = |change: &Change| change.resource == Some(resource) && kind.is_none_or(|kind| kind == change.kind);
                self.changes.iter().any(hears)
            }
            On::Token | On::Portfolio | On::Source => false,
        }
    }
}

/// What facts are evaluated by.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationContext<'a> {
    pub rules: &'a RuleSet,
    pub routes: &'a RouteTree,
    /// The time of the tick.
    pub now: Timestamp,
}

/// Evaluates a batch of tokens, at most one [`TokenFacts`] for each. `limits` is carried from batch to batch of one cycle, since a
/// rule's `limit` counts over all of them; [`Limits::summaries`] ends it.
pub fn evaluate(facts: &[TokenFacts<'_>], context: &EvaluationContext<'_>, limits: &mut Limits) -> Transitions {
    evaluate_by(facts, &context.rules.rules, context.routes, context.now, limits)
}

/// [`evaluate`], by any kind of rule.
fn evaluate_by<R: RuleEval>(
    facts: &[TokenFacts<'_>],
    rules: &[R],
    routes: &RouteTree,
    now: Timestamp,
    limits: &mut Limits,
) -> Transitions {
    let mut lifecycle = AlertLifecycle::new(routes, now);
    let mut open: Vec<Vec<OpenAlert<'_>>> = facts.iter().map(open_alerts).collect();
    let mut ids: HashSet<&RuleId> = HashSet::new();
    let awake: Vec<&R> = rules.iter().filter(|rule| rule.terms().is_awake(now) && ids.insert(rule.terms().id)).collect();
    // What moved is evaluated by the rules that hear of it, and by no others.
    let mut by_on: HashMap<On, Vec<&R>> = HashMap::new();
    for rule in &awake {
        by_on.entry(rule.terms().on).or_default().push(rule);
    }
    for (facts, open) in facts.iter().zip(&mut open).filter(|(facts, _)| facts.is_watched) {
        let records: Vec<_> = facts.records.iter().map(DatedRecord::of).collect();
        for (on, rules) in by_on.iter().filter(|(on, _)| facts.concern(**on)) {
            for rule in rules {
                let is_open = || open.iter().any(|open| open.alert.rule == *rule.terms().id);
                // Its filter by token is asked once, not for each record; an alert that it lets in no longer ends.
                if rule.lets_in(facts.token) || (matches!(on, On::Record(_)) && is_open()) {
                    evaluate_token(&mut lifecycle, *rule, facts, &records, open);
                }
            }
        }
    }
    for rule in &awake {
        limits.keep(&rule.terms(), &mut lifecycle.transitions);
    }
    end_the_unaccounted(&mut lifecycle, facts, &open, &awake);
    lifecycle.transitions.note_receivers();
    lifecycle.transitions
}

/// Evaluates one token by one rule, and marks the open alerts that the rule accounts for.
fn evaluate_token<R: RuleEval>(
    lifecycle: &mut AlertLifecycle<'_>,
    rule: &R,
    facts: &TokenFacts<'_>,
    records: &[DatedRecord<'_>],
    open: &mut [OpenAlert<'_>],
) {
    match rule.terms().on {
        On::Record(resource @ (Resource::Unlock | Resource::Allocation | Resource::Emission)) => {
            lifecycle.records(rule, facts, resource, records, open);
        }
        On::Record(resource) => lifecycle.arrivals(rule, facts, resource),
        On::Change(resource, kind) => lifecycle.changes(rule, facts, resource, kind),
        On::Token | On::Portfolio | On::Source => {}
    }
}

/// Ends the open alerts that no rule accounts for: they have lost their rule or their record.
fn end_the_unaccounted<R: RuleEval>(
    lifecycle: &mut AlertLifecycle<'_>,
    facts: &[TokenFacts<'_>],
    open: &[Vec<OpenAlert<'_>>],
    awake: &[&R],
) {
    for (facts, open) in facts.iter().zip(open) {
        for OpenAlert { alert, .. } in open.iter().filter(|open| !open.is_accounted_for) {
            let is_ruled = awake.iter().any(|rule| {
                let terms = rule.terms();
                *terms.id == alert.rule && alert.resource.is_some_and(|of| terms.on == On::Record(of))
            });
            let why = match alert.due {
                _ if facts.has_another_slug() => Resolution::Renamed,
                _ if !facts.is_watched => Resolution::Unwatched,
                _ if !is_ruled => Resolution::RuleGone,
                // What was over before its record went has not been called off.
                Some(due) if due.has_passed(lifecycle.now) => Resolution::Passed,
                _ => Resolution::Removed,
            };
            lifecycle.end((*alert).clone(), why, RecordSubject::of(facts, None), None::<&R>);
        }
    }
}
