//! One run of a job: poll, ingest, evaluate, commit, and wake the dispatcher.
//!
//! A `Source` yields the batches of a job: responses as they arrive, or tokens whose evaluation is due. For each batch, the cycle
//! takes the batch lock, reads the known facts, lets [`engine::pipeline`] decide, and writes snapshot, changes, alerts, notifications,
//! poll log, and credits in one transaction.
//!
//! If the process is killed at any point, a response was either not requested, or is lost and polled again, or all its consequences are
//! stored. This module makes no decisions.

mod due;
mod held_events;
mod input;
mod investors;
mod isolation;
mod latest_evaluation;
mod listed_schedules;
mod lists;
mod plan_log;
mod poll_thread;
mod polling;
mod progress;
mod rejected_pages;
mod report;
mod response_batches;
mod retry;
mod source;
mod unreadable_tokens;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use self::isolation::SetAside;
use self::source::Source;
use crate::saved_clock::SavedClock;
use crate::{
    ledger::Ledger,
    live::{Live, LiveConfig},
    metrics::{Metrics, NotificationMetric},
    outbox::Outbox,
    reload,
    schedule::Job,
};
use ::source::Client;
pub use engine::pipeline::ActiveRules;
use engine::{
    diff,
    evaluate::{self, EvaluationContext, Limits, Transitions},
    pipeline::{self, Ingest, Work},
    plan::{PlannedPoll, PollPlan},
    removal::ProofPolicy,
    self_monitor::{self, FeedOutcome},
};
use held_events::RunningCycle;
pub use held_events::RunningCycles;
use input::Input;
pub use latest_evaluation::LatestEvaluation;
pub use listed_schedules::ListedSchedulesCache;
use model::corrections::CorrectionsByToken;
use model::{
    BoxFuture, Clock, config,
    poll::FetchedResponse,
    rows::{Commit, TokenSnapshot},
    supply::{Endpoint, Resource, Timestamp, TokenId},
};
pub use poll_thread::PollThread;
pub use polling::{PlannedPass, PlannedPolls, endpoint_feeds, is_subscribed, planned_pass};
pub use progress::{EndpointProgress, Progress};
pub use rejected_pages::RejectedPages;
pub use report::CycleReport;
use response_batches::IncompleteSchedules;
pub use retry::{RetryOutcome, run_retry};
use rules::{
    RuleSet,
    aggregate::{AggregateCache, ComputedTotals},
};
use store::{ErrorKind, Store, StoreError};
pub use unreadable_tokens::UnreadableTokens;

/// The number of tokens whose facts are in memory at once, except for responses of per-token endpoints.
const TOKENS_PER_INPUT: usize = 16;

/// The maximum time for which a long cycle holds alerts of rules with a `limit` to rank them.
const MAX_LIMIT_HOLD: Duration = Duration::from_secs(300);

/// The dependencies of a cycle.
pub struct Deps {
    /// The active config and rules. A reload swaps the value while it holds `batch_lock`.
    pub live: Arc<Live>,
    /// The settings of the API client, which only a restart changes.
    pub source: config::SourceSettings,
    pub store: Store,
    pub api: Client,
    /// The thread on which `api` sends the requests of polls.
    pub poll_thread: PollThread,
    pub ledger: Arc<Ledger>,
    pub outbox: Arc<Outbox>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    pub saved_clock: SavedClock,
    pub latest_evaluation: LatestEvaluation,
    pub listed_schedules: ListedSchedulesCache,
    /// Whether the next evaluation covers all tokens, because rules or groups may have changed.
    pub reevaluate: AtomicBool,
    /// The aggregates of all tokens, and when each of them changes by time alone.
    pub totals: Mutex<AggregateCache>,
    /// Cancelled when the daemon stops, so that no more requests are sent.
    pub stopping: CancellationToken,
    /// The number of inputs that were committed, as a sign of progress within a batch.
    pub committed_inputs: AtomicU64,
    /// Held while a batch is compared, evaluated, and committed. Polling continues meanwhile.
    pub batch_lock: tokio::sync::Mutex<()>,
    pub progress: Progress,
    /// The cycles that decide about their own held events.
    pub running_cycles: RunningCycles,
    pub rejected_pages: RejectedPages,
    pub unreadable_tokens: UnreadableTokens,
}

impl Deps {
    /// Returns the active rules and routes.
    #[must_use]
    pub fn active(&self) -> Arc<ActiveRules> {
        self.live.load().active.clone()
    }

    /// Returns the active config with everything built from it.
    #[must_use]
    pub fn setup(&self) -> Arc<LiveConfig> {
        self.live.load_full()
    }

    fn totals(&self) -> std::sync::MutexGuard<'_, AggregateCache> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn known(&self, ids: Vec<TokenId>, resources: Vec<Resource>) -> Result<HashMap<TokenId, TokenSnapshot>, CycleError> {
        Ok(by_token(stored("read the known facts", self.store.tokens(ids, resources)).await?))
    }

    /// Returns the known tokens, without their records. A token with a damaged row is left out.
    async fn readable(&self, ids: Vec<TokenId>) -> Result<HashMap<TokenId, TokenSnapshot>, CycleError> {
        match self.known(ids.clone(), Vec::new()).await {
            Err(error) if error.is_unreadable() => {}
            known => return known,
        }
        let mut readable = HashMap::new();
        for id in ids {
            match self.known(vec![id], Vec::new()).await {
                Err(error) if error.is_unreadable() => {}
                known => readable.extend(known?),
            }
        }
        Ok(readable)
    }
}

/// An error that ends a cycle. Only the database causes one; failed polls are part of the report.
#[derive(Debug, thiserror::Error)]
pub enum CycleError {
    #[error("cannot {doing}")]
    Store {
        /// The operation, such as `write a batch`.
        doing: &'static str,
        #[source]
        source: StoreError,
    },
}

impl CycleError {
    /// Returns whether the database rejected the data or a row is damaged, so that other data can be processed.
    fn is_about_data(&self) -> bool {
        let CycleError::Store { source, .. } = self;
        matches!(source.kind(), ErrorKind::Other | ErrorKind::Panicked | ErrorKind::Unreadable)
    }

    fn is_unreadable(&self) -> bool {
        let CycleError::Store { source, .. } = self;
        source.kind() == ErrorKind::Unreadable
    }
}

/// Runs one cycle of a job for its slot. Everything in it uses the time `now`, unless the source corrects the clock.
///
/// # Errors
///
/// Fails if the database fails. Batches that were committed before stay, and the next cycle continues from there.
pub fn run_cycle(deps: &Deps, job: Job, slot: Timestamp, now: Timestamp) -> BoxFuture<'_, Result<CycleReport, CycleError>> {
    Box::pin(async move { Cycle::new(deps, job, now, CyclePolls::Due).run(Some(slot)).await })
}

/// Runs one cycle with given responses instead of polls, for a replay.
///
/// # Errors
///
/// Fails like [`run_cycle`].
pub fn run_cycle_with(
    deps: &Deps,
    endpoint: Endpoint,
    responses: Vec<(PlannedPoll, FetchedResponse)>,
    now: Timestamp,
) -> BoxFuture<'_, Result<CycleReport, CycleError>> {
    Box::pin(async move { Cycle::new(deps, Job::Poll(endpoint), now, CyclePolls::Given(responses)).run(Some(now)).await })
}

/// The polls of a cycle.
#[derive(Default)]
enum CyclePolls<'a> {
    /// The polls that are due now.
    #[default]
    Due,
    /// Responses to use instead of polls.
    Given(Vec<(PlannedPoll, FetchedResponse)>),
    /// The polls of a plan. The guard is held until their credits are claimed.
    Planned(Box<PollPlan>, MutexGuard<'a, ()>),
}

struct Cycle<'a> {
    deps: &'a Deps,
    /// The time when the cycle began, with later corrections of the clock.
    began_at: Timestamp,
    /// The time by which everything is evaluated: `began_at`, but not before the latest evaluation.
    now: Timestamp,
    /// The total correction of the clock when `began_at` was read.
    total_correction: TimeDelta,
    polls: CyclePolls<'a>,
    report: CycleReport,
    /// The result of each poll, for incidents of the source.
    outcomes: Vec<FeedOutcome>,
    /// The alerts that rules with a limit hold, notified, and left out so far.
    limits: Limits,
    /// The cycle as the owner of stored events, which it decides about when it ends.
    running: RunningCycle<'a>,
    /// Schedules whose cliffs changed, to complete with their linear unlocks.
    incomplete: IncompleteSchedules,
    /// The number of known facts that the rows of the token list lack.
    gaps: u32,
    set_aside: SetAside,
}

impl<'a> Cycle<'a> {
    fn new(deps: &'a Deps, job: Job, now: Timestamp, polls: CyclePolls<'a>) -> Self {
        let (report, limits) = (CycleReport::new(job, now), Limits::default());
        let (outcomes, incomplete) = (Vec::new(), IncompleteSchedules::default());
        Self {
            deps,
            began_at: now,
            now,
            total_correction: deps.clock.total_correction(),
            polls,
            report,
            outcomes,
            limits,
            running: deps.running_cycles.begin(now),
            incomplete,
            gaps: 0,
            set_aside: SetAside::default(),
        }
    }

    /// Runs the cycle. `slot` is stored as the last slot of the job; `None` for a retry between slots.
    async fn run(mut self, slot: Option<Timestamp>) -> Result<CycleReport, CycleError> {
        let (deps, job) = (self.deps, self.report.job);
        let is_forced = job == Job::Evaluate && deps.reevaluate.swap(false, Ordering::SeqCst);
        let mut done = self.process_all(job, is_forced).await;
        if let Job::Poll(endpoint) = job {
            deps.progress.end(endpoint);
        }
        if job == Job::Poll(Endpoint::TokenList) && reload::follow_token_list(&deps.setup(), &deps.store).await {
            deps.reevaluate.store(true, Ordering::SeqCst);
        }
        // A run that was cut off is repeated after the next start.
        if done.is_ok() && !deps.stopping.is_cancelled() {
            done = self.close(job, slot).await;
        }
        if done.is_err() && (is_forced || self.limits.is_holding()) {
            // New rules must evaluate every token once, and so must alerts that were held for a limit.
            deps.reevaluate.store(true, Ordering::SeqCst);
        }
        done.map(|()| self.report)
    }

    /// Processes all batches of a job, each under the batch lock.
    async fn process_all(&mut self, job: Job, is_forced: bool) -> Result<(), CycleError> {
        self.follow_evaluations().await?;
        let mut source = Source::new(self, job, is_forced).await?;
        let mut held_since: Option<Instant> = None;
        while let Some(batch) = source.next(self).await? {
            let _batch = self.deps.batch_lock.lock().await;
            self.follow_evaluations().await?;
            let setup = self.deps.setup();
            for input in self.inputs(batch, &setup).await? {
                self.process(input, &setup).await?;
            }
            match held_since {
                Some(since) if since.elapsed() >= MAX_LIMIT_HOLD => {
                    self.decide_held(&setup).await?;
                    held_since = None;
                }
                None if self.limits.is_holding() || self.limits.has_held_events() => held_since = Some(Instant::now()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Processes an input. If the database rejects it, processes its parts one by one.
    async fn process(&mut self, mut input: Input, setup: &LiveConfig) -> Result<(), CycleError> {
        self.adapt(&mut input);
        match self.attempt(&mut input, setup).await {
            Err(error) if error.is_about_data() => self.process_parts(input, &error, setup).await,
            result => result,
        }
    }

    /// Evaluates the tokens once more whose alerts are held for the `limit` of a rule, and notifies or leaves out each. Then decides about
    /// the held events.
    async fn decide_held(&mut self, setup: &LiveConfig) -> Result<(), CycleError> {
        for ids in self.limits.decide().chunks(TOKENS_PER_INPUT) {
            self.process(Input::Tokens(ids.to_vec()), setup).await?;
        }
        self.limits.collect();
        self.decide_held_events().await
    }

    /// Reads the known facts of an input, compares it with them, and evaluates and commits the result in one transaction.
    async fn attempt(&mut self, input: &mut Input, setup: &LiveConfig) -> Result<(), CycleError> {
        let known = input.read_known(self.deps, setup, self.now).await?;
        let (limits, gaps) = (self.limits.clone(), self.gaps);
        let listed = self.deps.listed_schedules.get(&self.deps.store).await?;
        let (work, ingested) = self.ingest(input, &known, (setup, &listed));
        drop(listed);
        self.deps.listed_schedules.apply(&work.commit.feeds);
        let committed = self.evaluate_and_commit(work).await;
        if committed.is_err() {
            (self.limits, self.gaps) = (limits, gaps);
        }
        committed?;
        self.count_polls(input, &ingested);
        self.count_evaluations(input);
        self.deps.committed_inputs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn ingest_settings<'s>(&self, setup: &'s LiveConfig) -> Ingest<'s> {
        let store = &setup.config.store;
        let proof = ProofPolicy::Confirmations(store.removal_confirmations);
        Ingest { watch: &setup.watch, settings: diff::Settings { tolerance: store.tolerance, proof }, now: self.now }
    }

    fn context<'c>(&self, active: &'c ActiveRules) -> EvaluationContext<'c> {
        EvaluationContext { keeps_removed: self.deps.outbox.is_after_takeover(), ..active.context(self.now) }
    }

    /// Applies corrections of the clock that responses caused, so that their evaluation uses the right time.
    async fn follow_clock(&mut self) {
        self.deps.saved_clock.save(&self.deps.clock, &self.deps.store).await;
        let total_correction = self.deps.clock.total_correction();
        let correction = total_correction - self.total_correction;
        self.began_at = self.began_at.checked_add_signed(correction).unwrap_or(self.began_at);
        self.total_correction = total_correction;
        self.report.at = self.began_at;
    }

    /// Moves the time of the cycle to the latest evaluation, if that is later: another job may have evaluated since the cycle began, and
    /// the clock of an earlier active instance may have been ahead.
    async fn follow_evaluations(&mut self) -> Result<(), CycleError> {
        let latest = self.deps.latest_evaluation.get(&self.deps.store).await?;
        let clock = &self.deps.clock;
        self.now = evaluate::evaluation_time(self.began_at, latest, (clock.now(), clock.state()));
        Ok(())
    }

    async fn evaluate_and_commit(&mut self, work: Work<'_>) -> Result<(), CycleError> {
        let deps = self.deps;
        let active = deps.active();
        let totals = self.compute_totals(&work, &active.rules).await?;
        let corrections = self.corrections(&work, &active.rules).await?;
        let transitions = pipeline::step(&work.tokens, &totals, &corrections, &self.context(&active), &mut self.limits);
        self.report.evaluated += u32::try_from(work.tokens.len()).unwrap_or(u32::MAX);
        let is_evaluated = |id: &TokenId| work.tokens.iter().any(|update| update.token.id == *id);
        let moved = pipeline::moved_feeds(&deps.totals(), &work.commit.feeds, is_evaluated);
        let unwatched: Vec<TokenId> =
            work.tokens.iter().filter(|update| !update.is_watched).map(|update| update.token.id.clone()).collect();
        self.commit(work.commit, transitions).await?;
        // The cache only keeps aggregates of committed facts.
        pipeline::keep_totals(&mut deps.totals(), totals, &moved, &unwatched, self.now);
        Ok(())
    }

    /// Reads the corrections that rules count. Empty if no rule counts any.
    async fn corrections(&self, work: &Work<'_>, rules: &RuleSet) -> Result<CorrectionsByToken, CycleError> {
        let Some(longest) = rules.correction_spans.last().filter(|_| !work.tokens.is_empty()) else {
            return Ok(CorrectionsByToken::new());
        };
        let since = self.now.checked_sub_signed(*longest).unwrap_or(Timestamp::MIN_UTC);
        let ids = work.tokens.iter().map(|update| update.token.id.clone()).collect();
        stored("read the corrections of schedules", self.deps.store.corrections(ids, since)).await
    }

    /// Computes the aggregates of tokens with their new records. Empty if no rule uses aggregates.
    async fn compute_totals(&self, work: &Work<'_>, rules: &RuleSet) -> Result<Vec<ComputedTotals>, CycleError> {
        if !rules.has_aggregates() || work.tokens.is_empty() {
            return Ok(Vec::new());
        }
        let has_records = |resource: Resource| work.tokens.iter().all(|update| update.resources.contains(&resource));
        let reaches = pipeline::reaches(rules, has_records, self.now);
        let ids = work.tokens.iter().map(|update| update.token.id.clone()).collect();
        let known = stored("read the records of time windows", self.deps.store.window_records(ids, reaches)).await?;
        let cache = self.deps.totals();
        let computed = work.tokens.iter().zip(known).map(|(update, known)| {
            let entries = pipeline::flow_entries(update, (&known).into(), &work.commit.feeds);
            pipeline::compute_totals(&cache, rules, &update.token, &entries, self.now, self.now)
        });
        Ok(computed.collect())
    }

    /// Adds watched tokens that are not in the aggregate cache yet. A token that was never polled has unknown sums, and so do its groups.
    async fn register_new_tokens(&mut self, setup: &LiveConfig) -> Result<(), CycleError> {
        let deps = self.deps;
        if !setup.active.rules.has_aggregates() || !deps.totals().is_complete() {
            return Ok(());
        }
        let known = stored("read the tokens", deps.store.token_ids(false)).await?;
        let mut new: Vec<TokenId> = known.into_iter().chain(setup.watch.named().iter().cloned()).collect();
        {
            let cache = deps.totals();
            new.retain(|id| setup.watch.covers(id) && !cache.has(id));
        }
        new.sort();
        new.dedup();
        for ids in new.chunks(TOKENS_PER_INPUT) {
            self.process(Input::Tokens(ids.to_vec()), setup).await?;
        }
        Ok(())
    }

    /// Writes a step in one transaction, counts it, and wakes the outbox.
    async fn commit(&mut self, commit: Commit, transitions: Transitions) -> Result<(), CycleError> {
        let deps = self.deps;
        let openings = transitions.openings();
        let latest =
            if openings.is_empty() { Vec::new() } else { stored("read episodes", deps.store.episodes(openings)).await? };
        let commit = Commit { cycle: self.running.key().to_owned(), ..commit };
        let mut step = pipeline::conclude(commit, transitions, &latest, self.now);
        step.report_template_errors(&deps.active().context(self.now));
        for (rule, error) in &step.template_errors {
            deps.metrics.template_fallback();
            tracing::error!(
                cycle = self.report.id(),
                rule = rule.as_str(),
                error,
                "a template failed; the built-in text was sent"
            );
        }
        step.commit.waits_from = Some(deps.clock.now().min(self.now));
        let notified = NotificationMetric::of(&step.commit);
        let (changes, matches) = (step.commit.changes.clone(), step.commit.rule_matches.clone());
        let (alerts, has_notifications) = (step.commit.alerts.len(), !step.commit.notifications.is_empty());
        let saved = stored("write a batch", deps.store.commit(step.commit)).await?;
        deps.latest_evaluation.stored(self.now);
        deps.metrics.committed(changes.iter().map(|change| change.kind), &notified, &matches);
        self.report.alerts += u32::try_from(alerts).unwrap_or(u32::MAX);
        self.report.deliveries += saved.deliveries;
        self.report.changes.extend(changes);
        if has_notifications {
            deps.outbox.wake();
        }
        Ok(())
    }

    /// Ends the cycle: evaluates incidents of the source and rules on groups, and writes limits, the slot, and the credits.
    async fn close(&mut self, job: Job, slot: Option<Timestamp>) -> Result<(), CycleError> {
        let deps = self.deps;
        let _batch = deps.batch_lock.lock().await;
        self.follow_evaluations().await?;
        let setup = deps.setup();
        let open = stored("read the open alerts about source and groups", deps.store.global_alerts()).await?;
        if matches!(job, Job::Poll(_)) {
            self.register_new_tokens(&setup).await?;
        }
        self.decide_held(&setup).await?;
        let outcomes = std::mem::take(&mut self.outcomes);
        if matches!(job, Job::Poll(_))
            && let Some(is_up) = self_monitor::has_responded(&outcomes)
        {
            deps.metrics.set_source_up(is_up);
        }
        let mut known = deps.readable(pipeline::tokens_of_incidents(&outcomes, &open)).await?;
        for known in known.values_mut() {
            setup.watch.place(&mut known.token);
        }
        let transitions = {
            let incidents = self_monitor::CycleOutcome {
                outcomes: &outcomes,
                open: &open,
                is_watched: &|feed| pipeline::is_feed_watched(&setup.watch, feed) && setup.is_on(Job::Poll(feed.endpoint)),
                token: &|id| known.get(id).map(|known| &known.token),
            };
            let context = self.context(&setup.active);
            let groups = pipeline::groups(&mut deps.totals(), &open, &context, &mut self.limits);
            pipeline::close(&incidents, groups, std::mem::take(&mut self.limits), &context)
        };
        stored("write the credits", deps.ledger.flush()).await?;
        let jobs = slot.map(|slot| (job.as_str().to_owned(), slot)).into_iter().collect();
        let commit = Commit { jobs, ..Commit::default() };
        self.commit(commit, transitions).await?;
        // The last evaluations may have been rejected as well.
        std::mem::take(&mut self.set_aside).into_result()
    }
}

fn by_token(known: Vec<TokenSnapshot>) -> HashMap<TokenId, TokenSnapshot> {
    known.into_iter().map(|snapshot| (snapshot.token.id.clone(), snapshot)).collect()
}

async fn stored<T>(doing: &'static str, query: impl Future<Output = Result<T, StoreError>>) -> Result<T, CycleError> {
    query.await.map_err(|source| CycleError::Store { doing, source })
}
