//! What a cycle asks, within the budget, and what it counts of the answers.

use chrono::{NaiveTime, TimeDelta};
use tokio::sync::mpsc;

use super::{Cycle, CycleError, asking, stored};
use crate::schedule::Job;
use engine::{
    ingest,
    pipeline::{Ingested, WholeAnswer, feed_news, whole_answer},
    plan::{self, PlanBasis, PlannedPoll, PollPlan},
    self_monitor::{FeedNews, FeedResult},
};
use model::{
    poll::{FailureKind, FetchedAnswer, PollFailure, PollOutcome},
    supply::{Endpoint, FeedId, FeedState},
};

/// Slots of one day that planning counts; more are many enough.
const MOST_SLOTS: u32 = 1_000;

impl Cycle<'_> {
    /// Asks a per-token endpoint what this tick is to ask.
    pub(super) async fn ask_tokens(
        &mut self,
        endpoint: Endpoint,
    ) -> Result<mpsc::Receiver<(PlannedPoll, FetchedAnswer)>, CycleError> {
        if let Some(answers) = self.at_hand.take() {
            return Ok(asking::at_hand(answers));
        }
        let deps = self.deps;
        let known = stored("read what planning needs", deps.store.plan_tokens(endpoint, self.now)).await?;
        let tokens = plan::watched(known, &deps.setup().watch);
        let _planning = deps.ledger.planning.lock().await;
        let basis = self.basis().await?;
        Ok(self.ask(plan::plan_tokens(endpoint, &tokens, &basis)))
    }

    /// Asks an endpoint that is asked once for everything; none where the budget does not allow it.
    pub(super) async fn whole(
        &mut self,
        endpoint: Endpoint,
    ) -> Result<Option<(PlannedPoll, FetchedAnswer, FeedState)>, CycleError> {
        let known = stored("read the state of a feed", self.deps.store.feed(FeedId::whole(endpoint))).await?;
        let mut answers = match self.at_hand.take() {
            Some(answers) => asking::at_hand(answers),
            None => {
                let _planning = self.deps.ledger.planning.lock().await;
                let basis = self.basis().await?;
                let plan = plan::plan_whole(endpoint, &known, &basis);
                self.ask(plan)
            }
        };
        Ok(answers.recv().await.map(|(ask, fetched)| (ask, fetched, known)))
    }

    /// State and poll log of a feed that is asked once for everything. `expected`: rows that it must have, by what else is known.
    pub(super) fn whole_update(
        &mut self,
        ask: &PlannedPoll,
        fetched: &FetchedAnswer,
        known: FeedState,
        expected: usize,
    ) -> WholeAnswer {
        let whole = whole_answer(ask, fetched, known, expected, self.now);
        self.note(fetched, &whole.ingested);
        whole
    }

    /// Asks what was planned, several at a time, and hands the answers over as they come.
    pub(super) fn ask(&mut self, plan: PollPlan) -> mpsc::Receiver<(PlannedPoll, FetchedAnswer)> {
        self.report.resting += plan.resting;
        if let Some(until) = plan.spent_until {
            let feed = FeedId::whole(match self.report.job {
                Job::Poll(endpoint) => endpoint,
                Job::Evaluate => Endpoint::TokenList,
            });
            let failure = PollFailure {
                kind: FailureKind::QuotaExhausted,
                message: format!(
                    "{feed}: not asked, since the credits of this period are spent; they return on {}",
                    until.format("%-d %b %Y, %H:%M UTC")
                ),
                retry_at: Some(until),
            };
            self.report.failed.push((feed.clone(), failure.clone()));
            self.seen.push(FeedNews { feed, result: FeedResult::Failed(failure) });
        }
        let claim = self.deps.ledger.claim(plan.cost());
        self.report.deferred.extend(plan.deferred);
        let in_flight = usize::try_from(self.deps.source.concurrency.max(1)).unwrap_or(1);
        asking::ask(&self.deps.api, plan.asks, claim, in_flight)
    }

    /// What planning goes by now.
    pub(super) async fn basis(&self) -> Result<PlanBasis<'_>, CycleError> {
        let deps = self.deps;
        let allowance = stored("read the quota", deps.ledger.allowance()).await?;
        let setup = deps.setup();
        let (mut backbone_today, mut ticks_today) = (0, 1);
        let midnight = self.now.date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::days(1);
        for (job, slots) in &setup.slots {
            let Job::Poll(endpoint) = job else { continue };
            let left = slots.count(self.now, midnight, MOST_SLOTS);
            if endpoint.is_per_token() {
                ticks_today += left;
            } else {
                let feed = stored("read the state of a feed", deps.store.feed(FeedId::whole(*endpoint))).await?;
                backbone_today += u64::from(left) * u64::from(feed.cost.max(1));
            }
        }
        Ok(PlanBasis {
            allowance,
            backbone_today,
            ticks_today,
            source: &deps.source,
            near: setup.config.budget.near.delta(),
            now: self.now,
        })
    }

    /// Counts an answer.
    pub(super) fn note(&mut self, fetched: &FetchedAnswer, ingested: &Ingested) {
        let feed = fetched.request.feed();
        self.report.asked += 1;
        self.report.credits += fetched.credits;
        let outcome = ingest::entry_outcome(fetched, ingested.failure.as_ref());
        self.deps.metrics.poll(fetched.request.endpoint(), outcome, self.now);
        self.deps.metrics.oddities(fetched.request.endpoint(), ingested.oddities);
        let news = feed_news(feed.clone(), ingested);
        match (&ingested.failure, &fetched.outcome) {
            // It goes on in a slot that plans its cost; nothing is the matter with the source.
            (Some(failure), _) if failure.kind == FailureKind::Deferred => {
                tracing::info!(%feed, "{failure}");
                return;
            }
            (Some(failure), _) => self.report.failed.push((feed, failure.clone())),
            (None, _) if ingested.is_held => {
                self.report.fresh += 1;
                self.report.held.push(feed);
            }
            (None, PollOutcome::Unchanged) => self.report.unchanged += 1,
            (None, _) => self.report.fresh += 1,
        }
        self.seen.push(news);
    }
}
