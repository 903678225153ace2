//! Computes when a token must be evaluated without new data, where the daemon evaluates every minute.

use std::collections::{BTreeSet, HashMap};

use chrono::TimeDelta;

use engine::evaluate;
use model::corrections::PastCorrection;
use model::{Resource, Timestamp, TokenId, TokenSnapshot, span_of_days};
use rules::{On, Rule, RuleSet};

use super::MINUTE;

/// The evaluation times of all tokens.
#[derive(Debug)]
pub(super) struct EvaluationTimes {
    /// The distinct lead times of the rules on unlocks.
    leads: Vec<TimeDelta>,
    /// The distinct edges of conditions on unlocks: days before a record's time, negative after it.
    edges: Vec<f64>,
    /// The longest lead time of rules whose conditions read the clock. `None` if there are no such rules.
    clock_horizon: Option<TimeDelta>,
    /// The times before now within which rules on unlocks count earlier corrections.
    correction_spans: Vec<TimeDelta>,
    /// The interval between evaluations of such conditions.
    evaluate_every: TimeDelta,
    wakes: BTreeSet<(Timestamp, TokenId)>,
    tokens: HashMap<TokenId, TokenEvaluation>,
}

/// The evaluation times of a token and of its records.
#[derive(Clone, Copy, Debug, Default)]
struct TokenEvaluation {
    wake: Option<Timestamp>,
    /// The next evaluation of the records, or `Some(None)` for never. `None` if it must be computed again.
    records: Option<Option<Timestamp>>,
}

impl EvaluationTimes {
    pub fn of(rules: &RuleSet, evaluate_every: TimeDelta) -> Self {
        let on_unlocks = || rules.rules.iter().filter(|rule| rule.on == On::Record(Resource::Unlock));
        let mut leads: Vec<TimeDelta> = on_unlocks().flat_map(|rule| rule.within.iter().map(|lead| lead.span)).collect();
        leads.sort_unstable();
        leads.dedup();
        let clock_horizon = on_unlocks()
            .filter(|rule| rule.is_clock_dependent)
            .map(|rule| rule.within.iter().map(|lead| lead.span).max().unwrap_or(TimeDelta::MAX))
            .max();
        let mut edges: Vec<f64> = on_unlocks().flat_map(|rule| rule.edges.iter().copied()).collect();
        edges.sort_unstable_by(f64::total_cmp);
        edges.dedup();
        let correction_spans = on_unlocks().flat_map(Rule::correction_spans).copied().collect();
        let (wakes, tokens) = (BTreeSet::new(), HashMap::new());
        Self { leads, edges, clock_horizon, correction_spans, evaluate_every, wakes, tokens }
    }

    /// Returns the first minute at which a token is due.
    pub fn next(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Makes a token and its records due at `at`.
    pub fn wake(&mut self, id: &TokenId, at: Timestamp) {
        self.set_wake(id, Some(minute(at)));
        self.tokens.entry(id.clone()).or_default().records = Some(Some(at));
    }

    /// Removes and returns the tokens that are due.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<TokenId> {
        let mut due = Vec::new();
        while self.wakes.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, id)) = self.wakes.pop_first() else { break };
            if let Some(evaluation) = self.tokens.get_mut(&id) {
                evaluation.wake = None;
            }
            due.push(id);
        }
        due
    }

    /// Returns `true` if the records of a token are due.
    pub fn is_due(&self, id: &TokenId, now: Timestamp) -> bool {
        self.tokens.get(id).and_then(|evaluation| evaluation.records?).is_some_and(|at| at <= now)
    }

    /// Marks the next evaluation of a token's records as unknown, after they were evaluated or changed.
    pub fn forget(&mut self, id: &TokenId) {
        if let Some(evaluation) = self.tokens.get_mut(id) {
            evaluation.records = None;
        }
    }

    /// Schedules the next evaluation of a token from its current state.
    pub fn set(&mut self, known: &TokenSnapshot, corrections: &[PastCorrection], now: Timestamp) {
        let id = &known.token.id;
        let before = self.tokens.get(id).copied().unwrap_or_default();
        // Records that are due stay due until they are evaluated.
        let records = before.records.unwrap_or_else(|| self.next_evaluation(known, corrections, now));
        let check = now + self.evaluate_every;
        let alerts = known.alerts.iter().filter_map(|alert| alert.recheck_at);
        let waits = alerts.map(|at| if at > now { at } else { check });
        let next = waits.chain(records.map(|at| at.max(now))).min().map(minute);
        self.tokens.entry(id.clone()).or_default().records = Some(records);
        // Responses at the same instant come before an evaluation that is already due.
        if before.wake.is_none_or(|before| before > now) {
            self.set_wake(id, next);
        }
    }

    fn set_wake(&mut self, id: &TokenId, next: Option<Timestamp>) {
        let evaluation = self.tokens.entry(id.clone()).or_default();
        if evaluation.wake == next {
            return;
        }
        if let Some(before) = std::mem::replace(&mut evaluation.wake, next) {
            self.wakes.remove(&(before, id.clone()));
        }
        if let Some(next) = next {
            self.wakes.insert((next, id.clone()));
        }
    }

    /// Returns the next time at which the evaluation of a token's records can change without new data.
    fn next_evaluation(&self, known: &TokenSnapshot, corrections: &[PastCorrection], now: Timestamp) -> Option<Timestamp> {
        let check = now + self.evaluate_every;
        let mut next: Option<Timestamp> = None;
        let mut consider = |at: Timestamp| {
            if at > now && next.is_none_or(|next| at < next) {
                next = Some(at);
            }
        };
        for span in &self.correction_spans {
            corrections.iter().filter_map(|correction| correction.at.checked_add_signed(*span)).for_each(&mut consider);
        }
        // Without a rule on unlocks, nothing depends on their dates.
        let has_rules = !self.leads.is_empty() || !self.edges.is_empty() || self.clock_horizon.is_some();
        let ends = if has_rules { evaluate::ends_of(&known.records, now) } else { Vec::new() };
        for tracked in known.records_of(Resource::Unlock).chain(ends.iter().map(|end| &end.tracked)) {
            let Some(interval) = tracked.record.interval() else { continue };
            let is_ahead = !interval.has_passed(now);
            if is_ahead {
                self.leads.iter().filter_map(|lead| interval.start.checked_sub_signed(*lead)).for_each(&mut consider);
                // A condition on the clock has no effect before the lead time is reached.
                if let Some(horizon) = self.clock_horizon {
                    consider(interval.start.checked_sub_signed(horizon).map_or(check, |seen| seen.max(check)));
                }
            }
            for days in &self.edges {
                let from = if *days > 0.0 { interval.start } else { interval.end };
                let edge_at = span_of_days(*days).and_then(|span| from.checked_sub_signed(span));
                // `<` changes just after `<=`.
                for at in edge_at.into_iter().flat_map(|at| [Some(at), at.checked_add_signed(TimeDelta::seconds(1))]).flatten() {
                    consider(at);
                }
            }
        }
        next
    }
}

/// Returns the full minute at or after an instant.
pub(super) fn minute(at: Timestamp) -> Timestamp {
    let over = at.timestamp_millis().rem_euclid(MINUTE.num_milliseconds());
    if over == 0 { at } else { at.checked_add_signed(MINUTE - TimeDelta::milliseconds(over)).unwrap_or(at) }
}
