//! Moves the clock of a simulation and runs everything that is due at its minute.

use std::{borrow::Cow, collections::BTreeMap};

use super::{Simulation, clock::minute, cycle::IngestedData};
use engine::pipeline::{TokenUpdate, Work};
use model::{Commit, Timestamp, TokenId};

impl Simulation<'_> {
    /// Moves the clock to `until` and runs everything that is due until then, inclusive.
    pub fn advance(&mut self, until: Timestamp) {
        self.advance_to(until, true);
    }

    /// Moves the clock to `until` and runs everything that is due before it. Work that is due exactly then waits for responses at
    /// that instant.
    pub fn advance_before(&mut self, until: Timestamp) {
        self.advance_to(until, false);
    }

    fn advance_to(&mut self, until: Timestamp, is_inclusive: bool) {
        let is_in = |at: &Timestamp| *at < until || is_inclusive && *at == until;
        if self.now < until {
            self.end_cycle();
        }
        loop {
            let tick = self.next_tick().filter(is_in);
            let repeats_due = self.repeats_due.first_key_value().map(|((at, ..), _)| *at).filter(is_in);
            let delivery = self.next_delivery().filter(is_in);
            let groups = self.next_group_evaluation.filter(is_in);
            let Some(next) = [tick, repeats_due, delivery, groups].into_iter().flatten().min() else { break };
            self.now = self.now.max(next);
            if repeats_due == Some(next) {
                if let Some(((_, token, endpoint), payload)) = self.repeats_due.pop_first() {
                    self.response(&token, endpoint, payload);
                }
            } else if tick == Some(next) {
                self.tick();
            }
            self.end_cycle();
        }
        if is_inclusive {
            self.end_cycle();
        }
        self.now = self.now.max(until);
    }

    /// Returns the first full minute at which a token is due.
    fn next_tick(&self) -> Option<Timestamp> {
        let totals = self.totals.next_recheck().filter(|_| self.rules.has_aggregates()).map(|at| minute(at.max(self.now)));
        [self.evaluations.next(), totals].into_iter().flatten().min()
    }

    /// Evaluates the tokens that are due, like one evaluation of the daemon. If only the windows of a token are due, its records
    /// are not evaluated.
    fn tick(&mut self) {
        let mut due: BTreeMap<TokenId, bool> = BTreeMap::new();
        if self.rules.has_aggregates() {
            due.extend(self.totals.due(self.now).into_iter().map(|id| (id, false)));
        }
        for id in self.evaluations.take_due(self.now) {
            let alerts = self.memory.tokens.get(&id).map(|known| known.alerts.as_slice()).unwrap_or_default();
            let is_alert = alerts.iter().any(|alert| alert.recheck_at.is_some_and(|at| at <= self.now));
            due.insert(id.clone(), self.evaluations.is_due(&id, self.now) || is_alert);
        }
        self.check_at(due);
    }

    /// Evaluates tokens in their current state, including their records if the value is `true`.
    pub(super) fn check_at(&mut self, due: BTreeMap<TokenId, bool>) {
        let by = self.ingestor();
        let updates = due.iter().filter_map(|(id, is_due)| {
            let known = by.as_known(self.memory.tokens.get(id)?);
            let (records, resources) = (Cow::Borrowed(&[][..]), Cow::Borrowed(&[][..]));
            Some(if *is_due { known } else { TokenUpdate { records, resources, ..known } })
        });
        let work = Work { commit: Commit::default(), tokens: updates.collect() };
        let evaluated = self.evaluate(&work);
        let checked: Vec<TokenId> = due.iter().filter(|(_, is_due)| **is_due).map(|(id, _)| id.clone()).collect();
        self.commit(IngestedData::unchanged(work), evaluated);
        checked.iter().for_each(|id| self.evaluations.forget(id));
        due.keys().for_each(|id| self.set_wake(id));
    }

    /// Schedules the next evaluation of a token.
    pub(super) fn set_wake(&mut self, id: &TokenId) {
        if let Some(known) = self.memory.tokens.get(id) {
            self.evaluations.set(known, self.memory.corrections_of(id), self.now);
        }
    }
}
