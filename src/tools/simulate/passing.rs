//! Time that passes in a simulation: what falls due on the way happens at its own minute.

use std::{borrow::Cow, collections::BTreeMap};

use super::{Simulation, clock::minute, cycle::Owned};
use engine::pipeline::{TokenNews, Work};
use model::{Commit, Timestamp, TokenId};

impl Simulation<'_> {
    /// Lets time pass up to `until`, inclusive: what falls due on the way happens at its own minute.
    pub fn advance(&mut self, until: Timestamp) {
        self.advance_to(until, true);
    }

    /// Lets time pass up to `until`, exclusive: what falls due at that very instant waits for an answer that comes with it.
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
            let again = self.again.first_key_value().map(|((at, ..), _)| *at).filter(is_in);
            let delivery = self.next_delivery().filter(is_in);
            let groups = self.next_of_groups.filter(is_in);
            let Some(next) = [tick, again, delivery, groups].into_iter().flatten().min() else { break };
            self.now = self.now.max(next);
            if again == Some(next) {
                if let Some(((_, token, endpoint), payload)) = self.again.pop_first() {
                    self.answer(&token, endpoint, payload);
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

    /// The first full minute at which a token is to be looked at for what time alone changes.
    fn next_tick(&self) -> Option<Timestamp> {
        let totals = self.totals.next_recheck().filter(|_| self.rules.has_aggregates()).map(|at| minute(at.max(self.now)));
        [self.turns.next(), totals].into_iter().flatten().min()
    }

    /// Looks at tokens whose time has come, as one evaluation of the daemon does. Where no more than the windows of one moved, its
    /// records are left alone.
    fn tick(&mut self) {
        let mut due: BTreeMap<TokenId, bool> = BTreeMap::new();
        if self.rules.has_aggregates() {
            due.extend(self.totals.due(self.now).into_iter().map(|id| (id, false)));
        }
        for id in self.turns.take_due(self.now) {
            let alerts = self.memory.tokens.get(&id).map(|known| known.alerts.as_slice()).unwrap_or_default();
            let is_alert = alerts.iter().any(|alert| alert.recheck_at.is_some_and(|at| at <= self.now));
            due.insert(id.clone(), self.turns.is_turn(&id, self.now) || is_alert);
        }
        self.look_at(due);
    }

    /// Evaluates tokens as they are known; of those that say so, their records too.
    pub(super) fn look_at(&mut self, due: BTreeMap<TokenId, bool>) {
        let by = self.by();
        let news = due.iter().filter_map(|(id, is_turn)| {
            let known = by.as_known(self.memory.tokens.get(id)?);
            let (records, resources) = (Cow::Borrowed(&[][..]), Cow::Borrowed(&[][..]));
            Some(if *is_turn { known } else { TokenNews { records, resources, ..known } })
        });
        let work = Work { commit: Commit::default(), tokens: news.collect() };
        let evaluated = self.evaluate(&work);
        let looked_at: Vec<TokenId> = due.iter().filter(|(_, is_turn)| **is_turn).map(|(id, _)| id.clone()).collect();
        self.commit(Owned::unchanged(work), evaluated);
        looked_at.iter().for_each(|id| self.turns.forget(id));
        due.keys().for_each(|id| self.set_wake(id));
    }

    /// Notes when a token is to be looked at again.
    pub(super) fn set_wake(&mut self, id: &TokenId) {
        if let Some(known) = self.memory.tokens.get(id) {
            self.turns.set(known, self.now);
        }
    }
}
