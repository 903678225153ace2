//! What a cycle asks, within the budget, and what it counts of the answers.

use std::time::Instant;

use super::asking::{self, Answers};
use super::{Cycle, CycleError, Deps, stored};
use crate::schedule::Job;
use engine::{
    ingest,
    pipeline::{Ingested, WholeAnswer, feed_news, whole_answer},
    plan::{self, EndpointFeeds, PlanBasis, PlannedPoll, PollPlan},
    self_monitor::{FeedNews, FeedResult},
};
use model::{
    BoxFuture, Watch, config,
    poll::{FailureKind, FetchedAnswer, PollFailure, PollOutcome},
    supply::{Endpoint, FeedId, FeedState, Timestamp},
};
use rules::RuleSet;
use store::{Store, StoreError};

/// What is known of what an endpoint may be asked for; nothing where there is no store yet. Where nobody listens to anything, and where
/// others are served what was read, all is heard.
pub async fn endpoint_feeds(
    store: Option<&Store>,
    (rules, mirror, watch): (&RuleSet, &config::MirrorSettings, &Watch),
    endpoint: Endpoint,
    now: Timestamp,
) -> Result<EndpointFeeds, StoreError> {
    let hears_all = rules.rules.is_empty() || mirror.listen.trim() != "off";
    let is_heard = hears_all || endpoint.resource().is_none_or(|resource| rules.hears(resource));
    let (mut whole, mut tokens) = (FeedState::default(), Vec::new());
    match (store, endpoint.is_per_token()) {
        (Some(store), true) => tokens = store.plan_tokens(endpoint, now).await?,
        (Some(store), false) => whole = store.feed(FeedId::whole(endpoint)).await?,
        (None, _) => {}
    }
    if endpoint.is_per_token() {
        tokens = plan::watched(tokens, watch);
    }
    Ok(EndpointFeeds { endpoint, is_heard, whole, tokens })
}

impl Cycle<'_> {
    /// Asks a per-token endpoint what this tick is to ask.
    pub(super) async fn ask_tokens(&mut self, endpoint: Endpoint) -> Result<Answers, CycleError> {
        if let Some(answers) = self.at_hand.take() {
            return Ok(asking::at_hand(answers));
        }
        let _planning = self.deps.ledger.planning.lock().await;
        let plan = self.plan(endpoint).await?;
        Ok(self.ask(plan))
    }

    /// Asks once more for schedules that moved where only their cliffs were asked for.
    pub(super) async fn ask_again(&mut self, endpoint: Endpoint, asks: Vec<PlannedPoll>) -> Result<Answers, CycleError> {
        let _planning = self.deps.ledger.planning.lock().await;
        let plan = plan::plan_again(asks, &self.basis(endpoint).await?);
        Ok(self.ask(plan))
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
                let plan = self.plan(endpoint).await?;
                self.ask(plan)
            }
        };
        let answer = answers.next().await;
        self.follow_clock().await;
        Ok(answer.map(|(ask, fetched)| (ask, fetched, known)))
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
    pub(super) fn ask(&mut self, mut plan: PollPlan) -> Answers {
        // Both stay for as long as it takes to ask for everything.
        plan.asks.shrink_to_fit();
        self.seen.reserve_exact(plan.asks.len());
        self.report.resting += plan.resting;
        if let Job::Poll(endpoint) = self.report.job {
            self.deps.reading.plan(endpoint, plan.asks.len(), Instant::now());
        }
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
        asking::ask(&self.deps.api, plan.asks, claim, in_flight, self.deps.stopping.clone())
    }

    async fn plan(&self, endpoint: Endpoint) -> Result<PollPlan, CycleError> {
        plan_of(self.deps, endpoint, self.now).await
    }

    /// What planning goes by now.
    pub(super) async fn basis(&self, endpoint: Endpoint) -> Result<PlanBasis<'_>, CycleError> {
        basis_of(self.deps, endpoint, self.now).await
    }

    /// Counts an answer.
    pub(super) fn note(&mut self, fetched: &FetchedAnswer, ingested: &Ingested) {
        let feed = fetched.request.feed();
        self.report.asked += 1;
        self.deps.reading.answered(fetched.request.endpoint(), ingested.failure.is_some());
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

/// What a slot of an endpoint is to ask, of all that the endpoints with a schedule may.
async fn plan_of(deps: &Deps, endpoint: Endpoint, now: Timestamp) -> Result<PollPlan, CycleError> {
    let setup = deps.setup();
    let mut endpoints = setup.endpoints();
    if !endpoints.contains(&endpoint) {
        endpoints.push(endpoint);
    }
    let mut feeds = Vec::with_capacity(endpoints.len());
    for of in endpoints {
        let by = (&setup.active.rules, &setup.config.mirror, &setup.watch);
        feeds.push(stored("read what planning needs", endpoint_feeds(Some(&deps.store), by, of, now)).await?);
    }
    Ok(plan::plan(endpoint, &feeds, &basis_of(deps, endpoint, now).await?))
}

/// What planning goes by now.
async fn basis_of(deps: &Deps, endpoint: Endpoint, now: Timestamp) -> Result<PlanBasis<'_>, CycleError> {
    let (allowance, spent_today) = stored("read the quota", deps.ledger.allowance()).await?;
    let setup = deps.setup();
    let slots = setup.slots.iter().find(|(job, _)| *job == Job::Poll(endpoint)).map(|(_, slots)| slots);
    Ok(PlanBasis {
        allowance,
        spent_today,
        next_slot: slots.and_then(|slots| slots.next(now)).unwrap_or(now),
        source: &deps.source,
        near: setup.config.budget.near.delta(),
        now,
    })
}

/// What one read of an endpoint is going to ask, as far as is known before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRead {
    pub endpoint: Endpoint,
    pub asks: usize,
    /// Credits, if every answer is as long as the last one.
    pub credits: u64,
}

/// What one pass over all endpoints is going to ask.
#[derive(Clone, Debug)]
pub struct PlannedPass {
    /// One for each endpoint with a schedule.
    pub reads: Vec<PlannedRead>,
    /// Credits that are left; none where no limit is known.
    pub credits_left: Option<u64>,
}

/// What every endpoint with a schedule would ask now. Nobody is asked for it.
pub fn planned_pass(deps: &Deps, now: Timestamp) -> BoxFuture<'_, Result<PlannedPass, CycleError>> {
    Box::pin(async move {
        let mut reads = Vec::new();
        for endpoint in deps.setup().endpoints() {
            let plan = plan_of(deps, endpoint, now).await?;
            reads.push(PlannedRead { endpoint, asks: plan.asks.len(), credits: plan.cost() });
        }
        let (allowance, _) = stored("read the quota", deps.ledger.allowance()).await?;
        Ok(PlannedPass { reads, credits_left: allowance.left })
    })
}
