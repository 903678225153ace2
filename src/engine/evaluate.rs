//! Evaluates the rules on token facts and computes the transitions of alerts, with their notifications. Pure.
//!
//! [`evaluate`] takes the records of tokens, the changes and new records of a poll, and the open alerts. It returns [`Transitions`]. The
//! caller reads the latest episode of each alert in [`Transitions::openings`] from the store, and [`Transitions::assign_episodes`] returns
//! the [`Evaluation`]. Its ids are the same each time the same facts are evaluated.
//!
//! `records`, `events`, and `aggregates` find the subjects of rules, and `lifecycle` moves their alerts through the states. `recheck`
//! computes when time alone may change an alert, and `limit` applies the `limit` of a rule. Incidents are in [`crate::self_monitor`].
//!
//! There are three kinds of rules on records. Rules on tokens and groups in `aggregates` use the same states.
//! - *States*: an upcoming unlock, an allocation, a daily emission. An alert fires while the condition is true, and is resolved later. An
//!   unlock has one reminder for each lead time, the end of linear unlocks counts as an unlock ([`model::LinearEnd`]), and `nominal`
//!   decides about one more before the nominal day of a month. After downtime, only the latest one is sent.
//! - *Arrivals*: a new burn, buyback, or funding round that is not older than `since`. It alerts once. If a fact that a rule needs is
//!   missing, the rule is evaluated when the fact arrives, up to `since` later.
//! - *Changes*: each alerts once.
//!
//! Evaluating the same facts twice creates no new notification. The order of rules, tokens, and records does not affect the result, except
//! for the order of notifications. A condition that cannot be evaluated, because a field is missing, neither fires nor resolves an alert.
//! Every alert is recorded, even if it has no receiver.

mod aggregates;
mod body;
mod current_body;
mod events;
mod lifecycle;
mod limit;
mod nominal;
mod outcome;
mod recheck;
mod records;
mod rule;
mod series;
mod subject;
#[cfg(test)]
mod tests;
mod transition;

use std::collections::{HashMap, HashSet};

use chrono::TimeDelta;

pub use aggregates::{TokenTotals, portfolios, tokens};
pub use body::{blank, plain_body, token_body};
pub use current_body::{current_body, current_text};
pub(crate) use events::{names_change, record_of};
pub use limit::Limits;
pub use nominal::NominalReminder;
pub use outcome::RENAMED_OUTCOME;
pub use recheck::{correction_windows, evaluation_time, states, windows};
pub use rule::{RuleEval, RuleTerms};
pub use transition::{Evaluation, NotificationDraft, Transitions};

use crate::{late::LateArrival, route::RouteTree};
use body::iso;
use lifecycle::AlertLifecycle;
use model::corrections::PastCorrection;
use model::{Alert, Change, ChangeKind, Fact, LinearEnd, LinearSupply, Resolution, Resource, RuleId, Timestamp, Token, Tracked};
pub use records::ends_of;
use records::{DatedRecord, OpenAlert, open_alerts};
use rules::{On, RecordBounds, RuleSet};
use subject::RecordSubject;

/// The facts about one token, with the results of a poll.
#[derive(Clone, Copy, Debug)]
pub struct TokenFacts<'a> {
    pub token: &'a Token,
    /// Whether the config watches the token. Alerts of an unwatched token are resolved.
    pub is_watched: bool,
    /// All records of `resources` after the poll.
    pub records: &'a [Tracked],
    /// The linear supply besides the records. `None` if it was not read, or if no rule reads it.
    pub linear: Option<&'a LinearSupply>,
    /// The corrections of the schedule before `changes`, by time. Empty if no rule reads them.
    pub corrections: &'a [PastCorrection],
    /// The resources that `records` covers completely. An open alert of such a resource without its record is resolved. Alerts of other
    /// resources stay unchanged.
    pub resources: &'a [Resource],
    /// The changes that the poll found, in diff order.
    pub changes: &'a [Change],
    /// New burns, buybacks, and funding rounds that are not part of a baseline.
    pub added: &'a [Tracked],
    /// Earlier burns, buybacks, and funding rounds with facts that arrived late.
    pub late: &'a [LateArrival],
    /// All pending and firing alerts of the token.
    pub alerts: &'a [Alert],
    /// The time of the last complete response for each resource.
    pub polled_at: &'a [(Resource, Timestamp)],
}

impl TokenFacts<'_> {
    fn polled_at(&self, resource: Resource) -> Option<Timestamp> {
        self.polled_at.iter().find(|(of, _)| *of == resource).map(|(_, at)| *at)
    }

    /// Returns whether the token is now listed under another slug.
    fn is_renamed(&self) -> bool {
        let own = Fact::Text(self.token.id.to_string());
        !self.is_watched
            && self.changes.iter().any(|change| change.kind == ChangeKind::Renamed && change.from.as_ref() == Some(&own))
    }

    /// Returns whether a rule on `on` could match any of these facts.
    fn has_subjects_of(&self, on: On) -> bool {
        match on {
            On::Record(Resource::Unlock | Resource::Allocation | Resource::Emission) => !self.records.is_empty(),
            On::Record(resource) => {
                let late = self.late.iter().map(|late| &late.tracked);
                self.added.iter().chain(late).any(|tracked| tracked.record.resource() == resource)
            }
            On::Change(resource, kind) => {
                let subscribes_to =
                    |change: &Change| change.resource == Some(resource) && kind.is_none_or(|kind| kind == change.kind);
                self.changes.iter().any(subscribes_to)
            }
            On::Token | On::Portfolio | On::Source => false,
        }
    }
}

/// The rules, routes, and time of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationContext<'a> {
    pub rules: &'a RuleSet,
    pub routes: &'a RouteTree,
    pub now: Timestamp,
    /// Whether alerts stay open although their rule or their token left the config, as in the first minutes after a takeover.
    pub keeps_removed: bool,
    /// The age from which a price is stale, and messages name its day.
    pub stale_price: TimeDelta,
}

/// Evaluates a batch of tokens, with at most one [`TokenFacts`] for each token. Pass the same `limits` to all batches of a cycle, because
/// the `limit` of a rule applies to the whole cycle. At the end, evaluate the tokens of [`Limits::decide`], and call
/// [`Limits::summaries`].
pub fn evaluate(facts: &[TokenFacts<'_>], context: &EvaluationContext<'_>, limits: &mut Limits) -> Transitions {
    evaluate_by(facts, &context.rules.rules, AlertLifecycle::of(context), limits)
}

/// Like [`evaluate`], with any implementation of rules.
fn evaluate_by<R: RuleEval>(
    facts: &[TokenFacts<'_>],
    rules: &[R],
    mut lifecycle: AlertLifecycle<'_>,
    limits: &mut Limits,
) -> Transitions {
    let now = lifecycle.now;
    let mut open: Vec<Vec<OpenAlert<'_>>> = facts.iter().map(open_alerts).collect();
    let mut ids: HashSet<&RuleId> = HashSet::new();
    let active: Vec<&R> = rules.iter().filter(|rule| rule.terms().is_active(now) && ids.insert(rule.terms().id)).collect();
    // Each token is evaluated only by the rules that could match its facts.
    let mut by_on: HashMap<On, Vec<&R>> = HashMap::new();
    for rule in &active {
        by_on.entry(rule.terms().on).or_default().push(rule);
    }
    for (facts, open) in facts.iter().zip(&mut open).filter(|(facts, _)| facts.is_watched) {
        let records: Vec<_> = facts.records.iter().map(DatedRecord::of).collect();
        let has_unlock_rules = by_on.contains_key(&On::Record(Resource::Unlock));
        let ends = if has_unlock_rules { ends_of(facts.records, now) } else { Vec::new() };
        for (on, rules) in by_on.iter().filter(|(on, _)| facts.has_subjects_of(**on)) {
            let mut bounds = bounds_of(*on, facts.token, (&records, &ends), now);
            for rule in rules {
                let is_open = || open.iter().any(|open| open.alert.rule == *rule.terms().id);
                // Two checks per token, not per record. Open alerts must be updated or resolved, even if a rule no longer matches.
                let may_match = rule.selects_token(facts.token) && bounds.as_mut().is_none_or(|bounds| rule.can_match(bounds));
                if may_match || (matches!(on, On::Record(_)) && is_open()) {
                    evaluate_token(&mut lifecycle, *rule, facts, (&records, &ends), open);
                }
            }
        }
    }
    for rule in &active {
        limits.apply(&rule.terms(), &mut lifecycle.transitions);
    }
    resolve_unaccounted(&mut lifecycle, facts, &open, &active);
    lifecycle.transitions.record_receivers();
    lifecycle.transitions
}

/// Returns the bounds of the records that can open alerts of a rule on states. `None` for other rules.
fn bounds_of<'a>(
    on: On,
    token: &'a Token,
    (records, ends): (&[DatedRecord<'a>], &'a [LinearEnd]),
    now: Timestamp,
) -> Option<RecordBounds<'a>> {
    let On::Record(resource @ (Resource::Unlock | Resource::Allocation | Resource::Emission)) = on else { return None };
    let ends = ends.iter().filter(|_| resource == Resource::Unlock).map(|end| &end.tracked.record);
    let records = records.iter().filter(|record| record.can_open(resource, now)).map(DatedRecord::record).chain(ends);
    Some(RecordBounds::of(token, records.collect(), now))
}

/// Evaluates one rule on one token, and marks the open alerts that it accounts for.
fn evaluate_token<R: RuleEval>(
    lifecycle: &mut AlertLifecycle<'_>,
    rule: &R,
    facts: &TokenFacts<'_>,
    (records, ends): (&[DatedRecord<'_>], &[LinearEnd]),
    open: &mut [OpenAlert<'_>],
) {
    match rule.terms().on {
        On::Record(resource @ (Resource::Unlock | Resource::Allocation | Resource::Emission)) => {
            lifecycle.records(rule, facts, resource, records, open);
            if resource == Resource::Unlock {
                lifecycle.ends(rule, facts, ends, open);
            }
        }
        On::Record(resource) => lifecycle.arrivals(rule, facts, resource),
        On::Change(resource, kind) => lifecycle.changes(rule, facts, resource, kind),
        On::Token | On::Portfolio | On::Source => {}
    }
}

/// Resolves the open alerts whose rule or record no longer exists.
fn resolve_unaccounted<R: RuleEval>(
    lifecycle: &mut AlertLifecycle<'_>,
    facts: &[TokenFacts<'_>],
    open: &[Vec<OpenAlert<'_>>],
    active: &[&R],
) {
    for (facts, open) in facts.iter().zip(open) {
        for OpenAlert { alert, .. } in open.iter().filter(|open| !open.is_accounted_for) {
            let has_rule = active.iter().any(|rule| {
                let terms = rule.terms();
                *terms.id == alert.rule && alert.resource.is_some_and(|of| terms.on == On::Record(of))
            });
            let resolution = match alert.due {
                _ if facts.is_renamed() => Resolution::Renamed,
                _ if !facts.is_watched => Resolution::Unwatched,
                _ if !has_rule => Resolution::RuleGone,
                // The event took place before its record disappeared.
                Some(due) if due.has_passed(lifecycle.now) => Resolution::Passed,
                _ => Resolution::Removed,
            };
            let record = facts
                .records
                .iter()
                .find(|tracked| alert.key.as_ref() == Some(&tracked.key) && alert.resource == Some(tracked.record.resource()));
            lifecycle.resolve((*alert).clone(), resolution, RecordSubject::of(facts, record), None::<&R>);
        }
    }
}
