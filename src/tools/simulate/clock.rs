//! When the next thing may happen to a token by the passing of time alone: what the daemon finds by looking each minute, worked out.

use std::collections::{BTreeSet, HashMap};

use chrono::TimeDelta;

use model::{Resource, Timestamp, TokenId, TokenSnapshot, span_of_days};
use rules::{On, RuleSet};

use super::MINUTE;

/// When tokens are to be looked at.
#[derive(Debug)]
pub(super) struct Turns {
    /// Lead times of all rules on unlocks, each once.
    leads: Vec<TimeDelta>,
    /// Days before a record's time (negative: after) at which conditions of rules on unlocks turn, each once.
    edges: Vec<f64>,
    /// The farthest that a condition which reads the clock looks ahead; none where there is no such condition.
    clock_horizon: Option<TimeDelta>,
    /// How often such conditions are looked at.
    look_every: TimeDelta,
    wakes: BTreeSet<(Timestamp, TokenId)>,
    tokens: HashMap<TokenId, Turn>,
}

/// When a token is looked at, and when its records are.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    wake: Option<Timestamp>,
    /// As of when they were last evaluated; none: to be worked out.
    records: Option<Option<Timestamp>>,
}

impl Turns {
    pub fn of(rules: &RuleSet, look_every: TimeDelta) -> Self {
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
        Self { leads, edges, clock_horizon, look_every, wakes: BTreeSet::new(), tokens: HashMap::new() }
    }

    /// The first minute at which a token is to be looked at.
    pub fn next(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Has a token looked at at `at`, its records too.
    pub fn wake(&mut self, id: &TokenId, at: Timestamp) {
        self.set_wake(id, Some(minute(at)));
        self.tokens.entry(id.clone()).or_default().records = Some(Some(at));
    }

    /// Tokens that are to be looked at now; they are looked at.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<TokenId> {
        let mut due = Vec::new();
        while self.wakes.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, id)) = self.wakes.pop_first() else { break };
            if let Some(turn) = self.tokens.get_mut(&id) {
                turn.wake = None;
            }
            due.push(id);
        }
        due
    }

    /// Whether time may have changed what is to be told of the records of a token.
    pub fn is_turn(&self, id: &TokenId, now: Timestamp) -> bool {
        self.tokens.get(id).and_then(|turn| turn.records?).is_some_and(|at| at <= now)
    }

    /// Its records were evaluated, or are others: their next turn is to be worked out.
    pub fn forget(&mut self, id: &TokenId) {
        if let Some(turn) = self.tokens.get_mut(id) {
            turn.records = None;
        }
    }

    /// Notes when a token is to be looked at again, as it is known now.
    pub fn set(&mut self, known: &TokenSnapshot, now: Timestamp) {
        let id = &known.token.id;
        let before = self.tokens.get(id).copied().unwrap_or_default();
        // A turn that is due stays due until the unlocks are looked at.
        let records = before.records.unwrap_or_else(|| self.next_turn(known, now));
        let look = now + self.look_every;
        let alerts = known.alerts.iter().filter_map(|alert| alert.recheck_at);
        let waits = alerts.map(|at| if at > now { at } else { look });
        let next = waits.chain(records.map(|at| at.max(now))).min().map(minute);
        self.tokens.entry(id.clone()).or_default().records = Some(records);
        // A tick that is due at this very instant comes after the answers of it.
        if before.wake.is_none_or(|before| before > now) {
            self.set_wake(id, next);
        }
    }

    fn set_wake(&mut self, id: &TokenId, next: Option<Timestamp>) {
        let turn = self.tokens.entry(id.clone()).or_default();
        if turn.wake == next {
            return;
        }
        if let Some(before) = std::mem::replace(&mut turn.wake, next) {
            self.wakes.remove(&(before, id.clone()));
        }
        if let Some(next) = next {
            self.wakes.insert((next, id.clone()));
        }
    }

    /// The next instant at which the passing of time may change what is to be told of a token's records.
    fn next_turn(&self, known: &TokenSnapshot, now: Timestamp) -> Option<Timestamp> {
        let look = now + self.look_every;
        let mut next: Option<Timestamp> = None;
        let mut consider = |at: Timestamp| {
            if at > now && next.is_none_or(|next| at < next) {
                next = Some(at);
            }
        };
        for tracked in known.records_of(Resource::Unlock) {
            let Some(interval) = tracked.record.interval() else { continue };
            let is_ahead = !interval.has_passed(now);
            if is_ahead {
                self.leads.iter().filter_map(|lead| interval.start.checked_sub_signed(*lead)).for_each(&mut consider);
                // Before its horizon comes up, a condition on the clock need not be asked.
                if let Some(horizon) = self.clock_horizon {
                    consider(interval.start.checked_sub_signed(horizon).map_or(look, |seen| seen.max(look)));
                }
            }
            for days in &self.edges {
                let from = if *days > 0.0 { interval.start } else { interval.end };
                let turn = span_of_days(*days).and_then(|span| from.checked_sub_signed(span));
                // `<` turns just after `<=` does.
                for at in turn.into_iter().flat_map(|at| [Some(at), at.checked_add_signed(TimeDelta::seconds(1))]).flatten() {
                    consider(at);
                }
            }
        }
        next
    }
}

/// The full minute at or after an instant.
pub(super) fn minute(at: Timestamp) -> Timestamp {
    let over = at.timestamp_millis().rem_euclid(MINUTE.num_milliseconds());
    if over == 0 { at } else { at.checked_add_signed(MINUTE - TimeDelta::milliseconds(over)).unwrap_or(at) }
}
