//! Plans and runs the polls of a cycle within the budget, and counts their outcomes.

use std::time::Instant;

use chrono::TimeDelta;

use super::lists::ListResponse;
use super::plan_log;
use super::response_batches::{self, IncompleteResponses, IncompleteSchedules, Responses};
use super::{Cycle, CycleError, CyclePolls, Deps, stored};
use crate::schedule::Job;
use engine::{
    ingest,
    pipeline::{CompleteResponse, Ingested, complete_response, feed_outcome},
    plan::{self, EndpointFeeds, PlanBasis, PlannedPoll, PollPlan, RetryPlan, priority::ListTrust},
};
use model::{
    BoxFuture, PlanTokens, UnreadableToken, Watch, config, phrase,
    poll::{FailureKind, FetchedResponse, PollFailure, PollOutcome},
    supply::{Endpoint, FeedId, FeedState, Timestamp},
};
use rules::RuleSet;
use store::{Store, StoreError};

/// Returns whether a rule reads what an endpoint reports. Without rules, and for the readers of a mirror, every endpoint counts.
pub fn is_subscribed(endpoint: Endpoint, rules: &RuleSet, mirror: &config::MirrorSettings) -> bool {
    let subscribes_to_all = rules.rules.is_empty() || mirror.listen.trim() != "off";
    subscribes_to_all || endpoint.resource().is_none_or(|resource| rules.subscribes_to(resource))
}

/// Returns the known feeds of an endpoint, without its slots. Without a store, no feed is known.
pub async fn endpoint_feeds(
    store: Option<&Store>,
    (rules, mirror, watch): (&RuleSet, &config::MirrorSettings, &Watch),
    endpoint: Endpoint,
    now: Timestamp,
) -> Result<EndpointFeeds, StoreError> {
    let is_subscribed = is_subscribed(endpoint, rules, mirror);
    let (mut whole, mut known) = (FeedState::default(), PlanTokens::default());
    match (store, endpoint.is_per_token()) {
        (Some(store), true) => known = store.plan_tokens(endpoint, now).await?,
        (Some(store), false) => whole = store.feed(FeedId::whole(endpoint)).await?,
        (None, _) => {}
    }
    let PlanTokens { mut tokens, mut unreadable } = known;
    if endpoint.is_per_token() {
        tokens = plan::watched(tokens, watch);
    }
    unreadable.retain(|token| watch.covers(&token.id));
    // `watched` takes a token that the config names for a new one, because it has no readable row.
    tokens.retain(|token| unreadable.iter().all(|other| other.id != token.id));
    Ok(EndpointFeeds { endpoint, is_subscribed, next_slot: None, slot_interval: TimeDelta::MAX, whole, tokens, unreadable })
}

fn with_slots(feeds: EndpointFeeds, slots: Option<(Timestamp, TimeDelta)>) -> EndpointFeeds {
    match slots {
        Some((first, slot_interval)) => EndpointFeeds { next_slot: Some(first), slot_interval, ..feeds },
        None => feeds,
    }
}

impl Cycle<'_> {
    /// Polls the feeds of an endpoint that are planned for this slot.
    pub(super) async fn poll_endpoint(&mut self, endpoint: Endpoint) -> Result<Responses, CycleError> {
        match std::mem::take(&mut self.polls) {
            CyclePolls::Due => {}
            CyclePolls::Given(responses) => return Ok(response_batches::given(responses)),
            CyclePolls::Planned(plan, _planning) => return Ok(self.poll(*plan)),
        }
        let _planning = self.deps.ledger.planning.lock().await;
        let plan = plan_of(self.deps, endpoint, self.began_at).await?;
        Ok(self.poll(plan))
    }

    /// Fetches the linear unlocks of schedules whose cliffs changed, and the cliffs again if they are not kept.
    pub(super) async fn complete_schedules(&mut self, schedules: IncompleteSchedules) -> Result<Responses, CycleError> {
        let _planning = self.deps.ledger.planning.lock().await;
        let plan = plan::plan_with_segments(schedules.polls, &self.basis().await?);
        Ok(self.poll_and_complete(plan, schedules.cliffs))
    }

    /// Polls a list. Returns `None` if the budget does not allow it.
    pub(super) async fn poll_list(&mut self, endpoint: Endpoint) -> Result<Option<ListResponse>, CycleError> {
        let known = stored("read the state of a feed", self.deps.store.feed(FeedId::whole(endpoint))).await?;
        let response = self.poll_endpoint(endpoint).await?.next().await;
        self.follow_clock().await;
        Ok(response.map(|(poll, fetched)| ListResponse { poll, fetched, known }))
    }

    /// Checks and counts the response of a list. `expected` is the number of rows that `upcoming` should have.
    pub(super) fn check_list(
        &mut self,
        poll: &PlannedPoll,
        fetched: &FetchedResponse,
        known: FeedState,
        expected: usize,
    ) -> CompleteResponse {
        let checked = complete_response(poll, fetched, known, expected, self.now);
        self.count_poll(fetched, &checked.ingested);
        checked
    }

    /// Starts the planned polls in parallel. Returns their responses, which arrive in any order.
    pub(super) fn poll(&mut self, plan: PollPlan) -> Responses {
        self.poll_and_complete(plan, IncompleteResponses::default())
    }

    fn poll_and_complete(&mut self, mut plan: PollPlan, incomplete: IncompleteResponses) -> Responses {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let job = self.report.job.as_str();
            plan_log::lines(&plan).into_iter().for_each(|line| tracing::debug!(job, "plan: {line}"));
        }
        // Both vectors live as long as the polls, which may take many minutes.
        plan.polls.shrink_to_fit();
        self.outcomes.reserve_exact(plan.polls.len());
        self.report.resting += plan.not_due;
        if let Job::Poll(endpoint) = self.report.job {
            self.deps.progress.plan(endpoint, plan.polls.len(), Instant::now());
            for UnreadableToken { id, error } in std::mem::take(&mut plan.unreadable) {
                self.report_unreadable(FeedId { endpoint, token: Some(id) }, &error);
            }
        }
        if let Some(until) = plan.exhausted_until {
            let feed = FeedId::whole(match self.report.job {
                Job::Poll(endpoint) => endpoint,
                Job::Evaluate => Endpoint::TokenList,
            });
            let failure = PollFailure {
                kind: FailureKind::QuotaExhausted,
                message: format!(
                    "{feed}: not polled: the credits of this period are used up; the next period begins on {}",
                    phrase::instant_iso(until)
                ),
                retry_at: Some(until),
            };
            self.report_failure(feed, failure);
        }
        let claim = self.deps.ledger.claim(plan.cost());
        self.report.deferred.extend(plan.deferred);
        let concurrency = usize::try_from(self.deps.source.concurrency.max(1)).unwrap_or(1);
        let client = (&self.deps.api, &self.deps.poll_thread);
        response_batches::poll(client, (plan.polls, incomplete), claim, concurrency, self.deps.stopping.clone())
    }

    pub(super) async fn basis(&self) -> Result<PlanBasis<'_>, CycleError> {
        basis_of(self.deps, self.began_at).await
    }

    /// Counts a poll in report, metrics, and progress.
    pub(super) fn count_poll(&mut self, fetched: &FetchedResponse, ingested: &Ingested) {
        let feed = fetched.request.feed();
        self.report.requested += 1;
        self.deps.progress.responded(fetched.request.endpoint(), ingested.failure.is_some());
        self.report.credits += fetched.credits;
        let outcome = ingest::entry_outcome(fetched, ingested.failure.as_ref());
        self.deps.metrics.poll(fetched.request.endpoint(), outcome, self.now);
        self.deps.metrics.parse_warnings(fetched.request.endpoint(), ingested.parse_warnings);
        let outcome = feed_outcome(feed.clone(), ingested);
        match (&ingested.failure, &fetched.outcome) {
            // A later slot polls it with its full cost. This is not a problem of the source.
            (Some(failure), _) if failure.kind == FailureKind::Deferred => {
                tracing::info!(%feed, "{failure}");
                return;
            }
            (Some(failure), _) => {
                self.report.failed_credits += fetched.credits;
                self.report.failed.push((feed, failure.clone()));
            }
            (None, _) if ingested.is_held => {
                self.report.fresh += 1;
                self.report.held.push(feed);
            }
            (None, PollOutcome::Unchanged) => self.report.unchanged += 1,
            (None, _) => self.report.fresh += 1,
        }
        if ingested.failure.is_some() || !self.deps.unreadable_tokens.keep_open(&outcome.feed) {
            self.outcomes.push(outcome);
        }
    }
}

/// Returns the polls for a slot of an endpoint. The other scheduled endpoints compete for the same credits.
async fn plan_of(deps: &Deps, endpoint: Endpoint, now: Timestamp) -> Result<PollPlan, CycleError> {
    let setup = deps.setup();
    let mut endpoints = setup.endpoints();
    if !endpoints.contains(&endpoint) {
        endpoints.push(endpoint);
    }
    let mut feeds = Vec::with_capacity(endpoints.len());
    for candidate in endpoints {
        let scope = (&setup.active.rules, &setup.config.mirror, &setup.watch);
        let of = stored("read the feeds of an endpoint", endpoint_feeds(Some(&deps.store), scope, candidate, now)).await?;
        feeds.push(with_slots(of, setup.next_slot(candidate, now)));
    }
    Ok(plan::plan(endpoint, &feeds, &basis_of(deps, now).await?))
}

/// Returns the retries of an endpoint that are due before its next slot.
pub(super) async fn retries_of(
    deps: &Deps,
    endpoint: Endpoint,
    is_urgent: bool,
    now: Timestamp,
) -> Result<RetryPlan, CycleError> {
    let setup = deps.setup();
    let scope = (&setup.active.rules, &setup.config.mirror, &setup.watch);
    let feeds = async |of| {
        let feeds = stored("read the feeds of an endpoint", endpoint_feeds(Some(&deps.store), scope, of, now)).await?;
        Ok::<_, CycleError>(with_slots(feeds, setup.next_slot(of, now)))
    };
    let own = feeds(endpoint).await?;
    let mut others = Vec::new();
    for other in setup.endpoints().into_iter().filter(|other| *other != endpoint) {
        others.push(feeds(other).await?);
    }
    Ok(plan::plan_retries(own, others, is_urgent, &basis_of(deps, now).await?))
}

async fn basis_of(deps: &Deps, now: Timestamp) -> Result<PlanBasis<'_>, CycleError> {
    let (allowance, spent_today) = stored("read the credits", deps.ledger.allowance()).await?;
    let setup = deps.setup();
    Ok(PlanBasis {
        allowance,
        spent_today,
        source: &deps.source,
        near: setup.config.budget.near.delta(),
        now,
        trust: ListTrust::Learned,
    })
}

/// The planned polls of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedPolls {
    pub endpoint: Endpoint,
    pub polls: usize,
    /// The cost in credits, if every response has as many pages as the last one.
    pub credits: u64,
}

/// The planned polls of all endpoints.
#[derive(Clone, Debug)]
pub struct PlannedPass {
    /// One entry for each scheduled endpoint.
    pub polls: Vec<PlannedPolls>,
    /// The remaining credits. `None` if no limit is known.
    pub credits_left: Option<u64>,
}

/// Plans the polls of all scheduled endpoints for now, without sending a request.
pub fn planned_pass(deps: &Deps, now: Timestamp) -> BoxFuture<'_, Result<PlannedPass, CycleError>> {
    Box::pin(async move {
        let mut polls = Vec::new();
        for endpoint in deps.setup().endpoints() {
            let plan = plan_of(deps, endpoint, now).await?;
            polls.push(PlannedPolls { endpoint, polls: plan.polls.len(), credits: plan.cost() });
        }
        let (allowance, _) = stored("read the credits", deps.ledger.allowance()).await?;
        Ok(PlannedPass { polls, credits_left: allowance.left })
    })
}
