//! The cycle of a simulation: evaluates and commits ingested data, then reports incidents and evaluates groups.

use std::borrow::Cow;

use super::{MINUTE, Simulation, clock::minute, memory::TokenRecords};
use engine::evaluate::{EvaluationContext, Limits, Transitions};
use engine::pipeline::{self, Ingest, TokenUpdate, Work};
use engine::self_monitor;
use model::{Commit, Resource, Timestamp, Token, TokenId, TokenSnapshot};
use rules::On;
use rules::aggregate::{ComputedTotals, FlowEntries};

impl<'a> Simulation<'a> {
    pub(super) fn ingestor(&self) -> Ingest<'a> {
        Ingest { watch: self.watch, settings: self.pace.diff, now: self.now }
    }

    pub(super) fn context(&self) -> EvaluationContext<'a> {
        let (rules, routes, now, stale_price) = (self.rules, self.routes, self.now, self.stale_price);
        EvaluationContext { rules, routes, now, keeps_removed: false, stale_price }
    }

    /// Evaluates the rules on ingested data.
    pub(super) fn evaluate(&self, work: &Work<'_>) -> Evaluated {
        let mut evaluated = Evaluated { limits: self.limits.clone(), ..Evaluated::default() };
        if self.rules.has_aggregates() {
            let check_at = self.now + self.pace.evaluate_every.max(MINUTE);
            for update in &work.tokens {
                let id = &update.token.id;
                let is_same = work.commit.feeds.is_empty() && work.commit.tokens.is_empty();
                let entries = match self.flow_entries.get(id).filter(|_| is_same) {
                    Some(entries) => Cow::Borrowed(entries),
                    None => {
                        let nothing = TokenSnapshot::of(Token::unknown(id.clone()));
                        let known = self.memory.tokens.get(id).unwrap_or(&nothing);
                        Cow::Owned(pipeline::flow_entries(update, known.into(), &work.commit.feeds))
                    }
                };
                evaluated.computed.push(pipeline::compute_totals(
                    &self.totals,
                    self.rules,
                    &update.token,
                    &entries,
                    check_at,
                    self.now,
                ));
                if let Cow::Owned(entries) = entries {
                    evaluated.flow_entries.push((id.clone(), entries));
                }
            }
        }
        let is_evaluated = |id: &TokenId| work.tokens.iter().any(|update| update.token.id == *id);
        evaluated.moved = pipeline::moved_feeds(&self.totals, &work.commit.feeds, is_evaluated);
        evaluated.draft =
            pipeline::step(&work.tokens, &evaluated.computed, &self.memory.corrections, &self.context(), &mut evaluated.limits);
        evaluated
    }

    /// Stores ingested data and the results of its evaluation.
    pub(super) fn commit(&mut self, work: IngestedData, evaluated: Evaluated) {
        let Evaluated { draft, limits, computed, flow_entries, moved } = evaluated;
        self.limits = limits;
        let now = self.now;
        self.changes.extend(work.commit.changes.iter().map(|change| (now, change.clone())));
        for id in work.commit.feeds.iter().filter_map(|update| update.id.token.as_ref()) {
            self.flow_entries.remove(id);
        }
        for (id, resources, _) in &work.records {
            if resources.contains(&Resource::Unlock) {
                self.evaluations.forget(id);
            }
        }
        self.flow_entries.extend(flow_entries);
        self.is_recomputed |= !computed.is_empty();
        work.commit.feeds.iter().for_each(|update| self.listed.apply(update));
        let touched: Vec<TokenId> = work.records.iter().map(|(id, ..)| id.clone()).collect();
        self.write(work.commit, work.records, draft);
        pipeline::keep_totals(&mut self.totals, computed, &moved, &[], now);
        touched.iter().for_each(|id| self.set_wake(id));
    }

    fn write(&mut self, commit: Commit, records: Vec<TokenRecords>, draft: Transitions) {
        let latest = self.memory.episodes(draft.openings());
        let mut step = pipeline::conclude(commit, draft, &latest, self.now);
        if self.monitors {
            step.report_template_errors(&self.context());
        }
        for (rule, error) in step.template_errors {
            self.template_errors.entry(rule).or_insert(error);
        }
        self.memory.add_known(step.commit.left_out.iter().map(|notification| notification.id.clone()));
        self.left_out.append(&mut step.commit.left_out);
        for event in std::mem::take(&mut step.commit.held) {
            let id = &event.notification.id;
            if !self.memory.has_notification(id) && self.held.iter().all(|held| held.notification.id != *id) {
                self.held.push(event);
            }
        }
        self.notified.extend(self.memory.commit(step.commit, records, self.watch));
    }

    /// Ends a cycle and dispatches pending notifications. All responses at one instant belong to one cycle, unless this is called
    /// between them, like daemon jobs that run at the same time.
    pub fn end_cycle(&mut self) {
        self.close();
        self.dispatch();
    }

    /// Reports incidents, evaluates groups, and reports notifications above limits.
    fn close(&mut self) {
        let held = self.limits.decide();
        if !held.is_empty() {
            self.check_at(held.into_iter().map(|id| (id, true)).collect());
        }
        self.limits.collect();
        self.decide_held_events();
        let context = self.context();
        let open = self.memory.global_alerts.clone();
        let groups = if self.are_groups_due() {
            self.is_recomputed = false;
            if !self.totals.is_complete() {
                self.totals.complete(self.now);
            }
            pipeline::groups(&mut self.totals, &open, &context, &mut self.limits)
        } else {
            Transitions::default()
        };
        let outcomes = std::mem::take(&mut self.seen);
        let (outcomes, watched) = if self.monitors { (outcomes.as_slice(), open.as_slice()) } else { (&[][..], &[][..]) };
        let (memory, watch) = (&self.memory, self.watch);
        let incidents = self_monitor::CycleOutcome {
            outcomes,
            open: watched,
            is_watched: &|feed| pipeline::is_feed_watched(watch, feed),
            token: &|id| memory.tokens.get(id).map(|known| &known.token),
        };
        let draft = pipeline::close(&incidents, groups, std::mem::take(&mut self.limits), &context);
        self.write(Commit::default(), Vec::new(), draft);
        self.set_groups_wake();
    }

    fn decide_held_events(&mut self) {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        self.limits.rank(&held);
        for commit in [self.limits.leave_out(held.clone()), self.limits.release(held)] {
            self.write(commit, Vec::new(), Transitions::default());
        }
        self.limits.end_events();
    }

    fn are_groups_due(&self) -> bool {
        let concerns = self.rules.on(On::Portfolio).next().is_some() || !self.memory.global_alerts.is_empty();
        concerns && (self.is_recomputed || self.next_group_evaluation.is_some_and(|at| at <= self.now))
    }

    fn set_groups_wake(&mut self) {
        let check = self.now + self.pace.evaluate_every.max(MINUTE);
        let later = |at: Timestamp| minute(if at > self.now { at } else { check });
        let reads_clock = self.rules.on(On::Portfolio).any(|rule| rule.is_clock_dependent).then_some(check);
        let alerts = self.memory.global_alerts.iter().filter_map(|alert| alert.recheck_at);
        self.next_group_evaluation = alerts.chain(reads_clock).map(later).min();
    }
}

/// The results of an evaluation, with the computed inputs to store.
#[derive(Default)]
pub(super) struct Evaluated {
    draft: Transitions,
    limits: Limits,
    computed: Vec<ComputedTotals>,
    flow_entries: Vec<(TokenId, FlowEntries)>,
    moved: Vec<TokenId>,
}

/// Ingested data without references to the memory.
pub(super) struct IngestedData {
    commit: Commit,
    records: Vec<TokenRecords>,
}

impl IngestedData {
    pub(super) fn of(work: Work<'_>) -> Self {
        let own =
            |update: TokenUpdate<'_>| (update.token.into_owned().id, update.resources.into_owned(), update.records.into_owned());
        Self { commit: work.commit, records: work.tokens.into_iter().map(own).collect() }
    }

    /// Takes the commit of an evaluation that changed no records.
    pub(super) fn unchanged(work: Work<'_>) -> Self {
        Self { commit: work.commit, records: Vec::new() }
    }
}
