//! The path of the program: poll, diff, evaluate, commit, deliver. One file, read from the top.
//!
//! A cycle asks one endpoint within the budget, or nobody at all where only time has passed. Answers are ingested as they come, some at a
//! time: what was known is read, [`engine::pipeline`] decides what follows from both, and snapshot, changes, alerts, deliveries, poll log
//! and credits are written in one transaction. Then the outbox is woken. Killed at any point, the program has either not asked, or lost
//! an answer that it will ask for again, or written everything that follows from it. What is here reads, asks, writes and counts;
//! it decides nothing.

mod asking;
mod investors;
mod polling;
mod progress;
mod renamed;
mod report;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use chrono::{NaiveTime, TimeDelta};
use tokio_util::sync::CancellationToken;

use crate::kept_clock::KeptClock;
use crate::{
    ledger::Ledger,
    live::{Live, LiveConfig},
    metrics::{Metrics, ToldNotification},
    outbox::Outbox,
    schedule::Job,
};
use asking::{Answers, is_fresh};
pub use engine::pipeline::ActiveRules;
use engine::{
    diff,
    evaluate::{self, Limits, Transitions},
    pipeline::{self, Ingest, Step, TIMED, Work},
    plan::PlannedPoll,
    self_monitor::{self, FeedNews},
};
use model::{
    BoxFuture, Clock, config,
    poll::{FetchedAnswer, Payload, PollOutcome, PollRequest},
    rows::{Commit, CommitResult, TokenSnapshot},
    supply::{Endpoint, Resource, Timestamp, TokenId},
    wire,
};
pub use polling::{PlannedPass, PlannedRead, endpoint_feeds, planned_pass};
pub use progress::{ReadProgress, Reading};
pub use report::CycleReport;
use rules::{
    On, RuleSet,
    aggregate::{AggregateCache, ComputedTotals},
};
use source::Client;
use store::{Store, StoreError};

/// Tokens that are evaluated together where nothing was asked: all that is known of them is in memory at once.
const TICK_BATCH: usize = 16;

/// What a cycle works with.
pub struct Deps {
    /// Config and rules at work; swapped whole by a reload, while no batch is under way.
    pub live: Arc<Live>,
    /// How the API is asked; as the client, it stays until a restart.
    pub source: config::SourceSettings,
    /// The database.
    pub store: Store,
    /// The API.
    pub api: Client,
    /// What may be asked of it.
    pub ledger: Arc<Ledger>,
    /// Who delivers.
    pub outbox: Arc<Outbox>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What time it is, once the source has spoken.
    pub clock: Clock,
    /// That time, for the next start.
    pub kept_clock: KeptClock,
    /// The next evaluation looks at everything ahead: rules or groups may have changed.
    pub reevaluate: AtomicBool,
    /// What the windows of every token hold, and when time alone will change that.
    pub totals: Mutex<AggregateCache>,
    /// The daemon is asked to stop: nobody is asked for anything any more.
    pub stopping: CancellationToken,
    /// One batch at a time is compared, evaluated and committed; asking goes on meanwhile.
    pub turn: tokio::sync::Mutex<()>,
    /// How far what is asked now is.
    pub reading: Reading,
}

impl Deps {
    /// The rules at work now.
    #[must_use]
    pub fn active(&self) -> Arc<ActiveRules> {
        self.live.load().active.clone()
    }

    /// The config at work now, with what is built from it.
    #[must_use]
    pub fn setup(&self) -> Arc<LiveConfig> {
        self.live.load_full()
    }

    fn totals(&self) -> MutexGuard<'_, AggregateCache> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> diff::Settings {
        let setup = self.setup();
        let store = &setup.config.store;
        let (tolerance, removal_confirmations) = (store.tolerance, store.removal_confirmations);
        diff::Settings { tolerance, removal_confirmations, ..diff::Settings::default() }
    }

    /// Tokens by their slugs, as the database knows them.
    async fn known(&self, ids: Vec<TokenId>, resources: Vec<Resource>) -> Result<HashMap<TokenId, TokenSnapshot>, CycleError> {
        Ok(by_token(stored("read what was known", self.store.tokens(ids, resources)).await?))
    }
}

/// A cycle that could not go on: only the database can do that. Failed polls are in the report.
#[derive(Debug, thiserror::Error)]
pub enum CycleError {
    /// The store failed.
    #[error("cannot {doing}")]
    Store {
        /// What was attempted.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: StoreError,
    },
}

/// Runs one cycle of a job. `slot` is the slot that it runs for, `now` the time that everything in it goes by.
///
/// # Errors
/// Where the database fails. What was committed before stays; the next cycle goes on from there.
pub fn run_cycle(deps: &Deps, job: Job, slot: Timestamp, now: Timestamp) -> BoxFuture<'_, Result<CycleReport, CycleError>> {
    Box::pin(async move { run(deps, job, slot, now, None).await })
}

/// Runs one cycle over answers that are at hand: it asks nobody. For whoever replays what a source said.
///
/// # Errors
/// As [`run_cycle`].
pub fn run_cycle_over(
    deps: &Deps,
    endpoint: Endpoint,
    answers: Vec<(PlannedPoll, FetchedAnswer)>,
    now: Timestamp,
) -> BoxFuture<'_, Result<CycleReport, CycleError>> {
    Box::pin(async move { run(deps, Job::Poll(endpoint), now, now, Some(answers)).await })
}

async fn run(
    deps: &Deps,
    job: Job,
    slot: Timestamp,
    now: Timestamp,
    at_hand: Option<Vec<(PlannedPoll, FetchedAnswer)>>,
) -> Result<CycleReport, CycleError> {
    let (report, limits) = (CycleReport::new(job, now), Limits::default());
    let mut cycle = Cycle { deps, now, stepped: deps.clock.stepped(), at_hand, report, seen: Vec::new(), limits };
    let done = match job {
        Job::Evaluate => cycle.evaluate_what_time_changed().await,
        Job::Poll(Endpoint::TokenList) => cycle.token_list().await,
        Job::Poll(Endpoint::Upcoming) => cycle.upcoming().await,
        Job::Poll(Endpoint::Investors) => cycle.investors().await,
        Job::Poll(endpoint) => cycle.each_token(endpoint).await,
    };
    if let Job::Poll(endpoint) = job {
        deps.reading.end(endpoint);
    }
    done?;
    // A slot that was cut off did not run.
    if !deps.stopping.is_cancelled() {
        cycle.close(job, slot).await?;
    }
    Ok(cycle.report)
}

/// A cycle under way.
struct Cycle<'a> {
    deps: &'a Deps,
    now: Timestamp,
    /// How far the clock had been set when `now` was read.
    stepped: TimeDelta,
    /// Answers that are at hand, so that nobody is asked.
    at_hand: Option<Vec<(PlannedPoll, FetchedAnswer)>>,
    report: CycleReport,
    /// What became of each feed, for alerts about the source.
    seen: Vec<FeedNews>,
    /// What rules with a limit told and left out so far.
    limits: Limits,
}

impl Cycle<'_> {
    /// By what answers are ingested.
    fn ingest<'s>(&self, setup: &'s LiveConfig) -> Ingest<'s> {
        Ingest { watch: &setup.watch, settings: self.deps.settings(), now: self.now }
    }

    /// Answers may have shown that this machine's clock is wrong: what is decided about them goes by the right time.
    async fn follow_clock(&mut self) {
        self.deps.kept_clock.keep(&self.deps.clock, &self.deps.store).await;
        let stepped = self.deps.clock.stepped();
        self.now = self.now.checked_add_signed(stepped - self.stepped).unwrap_or(self.now);
        self.stepped = stepped;
        self.report.at = self.now;
    }

    /// Asks a per-token endpoint: the path that most of the program is about.
    async fn each_token(&mut self, endpoint: Endpoint) -> Result<(), CycleError> {
        let Some(resource) = endpoint.resource() else { return Ok(()) };
        let mut answers = self.ask_tokens(endpoint).await?;
        loop {
            let moved = self.ingest_tokens(&mut answers, endpoint, resource).await?;
            if moved.is_empty() {
                return Ok(());
            }
            answers = self.ask_again(endpoint, moved).await?;
        }
    }

    /// Ingests answers as they come, and gives what is to be asked once more, with segments, before anything is told of it.
    async fn ingest_tokens(
        &mut self,
        answers: &mut Answers,
        endpoint: Endpoint,
        resource: Resource,
    ) -> Result<Vec<PlannedPoll>, CycleError> {
        let (mut batch, mut moved) = (Vec::new(), Vec::new());
        while answers.gather(&mut batch).await {
            self.follow_clock().await;
            // poll: what came, beside what was known
            let deps = self.deps;
            let _turn = deps.turn.lock().await;
            let setup = deps.setup();
            let known = self.known_of(&batch, endpoint, resource).await?;

            // diff
            let ingest = self.ingest(&setup);
            let mut work = Work::default();
            for (ask, fetched) in &batch {
                let Some(known) = fetched.request.token().and_then(|id| known.get(id)) else { continue };
                let ingested = ingest.answer(&mut work, known, ask, fetched);
                moved.extend(ingested.lacks_segments.then(|| ask.with_segments()));
                self.note(fetched, &ingested);
            }

            // evaluate, commit, deliver
            self.evaluate_and_commit(work).await?;
            batch.clear();
        }
        Ok(moved)
    }

    /// What was known of the tokens that answers are about. An answer that is unchanged, or none, is compared with nothing: of its token
    /// only the feed is read.
    async fn known_of(
        &self,
        batch: &[(PlannedPoll, FetchedAnswer)],
        endpoint: Endpoint,
        resource: Resource,
    ) -> Result<HashMap<TokenId, TokenSnapshot>, CycleError> {
        let (fresh, other): (Vec<_>, Vec<_>) = batch.iter().partition(|answer| is_fresh(answer));
        let ids = |of: Vec<&(PlannedPoll, FetchedAnswer)>| {
            of.iter().filter_map(|(_, fetched)| fetched.request.token().cloned()).collect()
        };
        let (fresh, other): (Vec<TokenId>, Vec<TokenId>) = (ids(fresh), ids(other));
        let store = &self.deps.store;
        let mut known = HashMap::with_capacity(batch.len());
        if !other.is_empty() {
            known.extend(by_token(stored("read what was known", store.tokens_with_feed(other, endpoint)).await?));
        }
        if !fresh.is_empty() {
            known.extend(self.deps.known(fresh, vec![resource]).await?);
        }
        Ok(known)
    }

    /// Asks for all tokens: who there is, when each last changed.
    async fn token_list(&mut self) -> Result<(), CycleError> {
        let Some((ask, fetched, known)) = self.whole(Endpoint::TokenList).await? else { return Ok(()) };
        let deps = self.deps;
        let _turn = deps.turn.lock().await;
        let setup = deps.setup();
        let mut last = self.whole_update(&ask, &fetched, known, 0);
        if let (Some(Payload::Tokens(items)), None) = (payload(&fetched), &last.ingested.failure) {
            let active = deps.active();
            let ingest = self.ingest(&setup);
            let named: Vec<(TokenId, &wire::TokenItem)> =
                items.iter().filter_map(|item| Some((TokenId::from(item.id.as_str()?), item))).collect();
            let renamed = if last.is_baseline { Vec::new() } else { self.renamed_tokens(&named).await? };
            for (old, item) in &renamed {
                self.go_on_under_another_slug(old, item).await?;
            }
            let mut gaps = 0;
            for items in named.chunks(TICK_BATCH) {
                let known = deps.known(items.iter().map(|(id, _)| id.clone()).collect(), Vec::new()).await?;
                // A market cap or a supply that a rule reads can turn it, though no schedule changed.
                let is_moved = |(id, item): &&(TokenId, &wire::TokenItem)| {
                    let is_another = |known: &TokenSnapshot| active.rules.index.is_moved(&known.token.item, item);
                    setup.watch.covers(id) && known.get(id).is_some_and(is_another)
                };
                let moved: Vec<TokenId> = items.iter().filter(is_moved).map(|(id, _)| id.clone()).collect();
                let moved = if moved.is_empty() { HashMap::new() } else { deps.known(moved, TIMED.to_vec()).await? };
                let mut work = Work::default();
                for (id, item) in items {
                    let Some(known) = known.get(id) else { continue };
                    if pipeline::is_renamed(known) {
                        ingest.relisted(&mut work, known);
                    }
                    gaps += ingest.token_row(&mut work, known, item, last.is_baseline);
                    if let Some(known) = moved.get(id) {
                        ingest.moved_row(&mut work, known, item);
                    }
                }
                self.evaluate_and_commit(work).await?;
            }
            last.commit.polls.iter_mut().for_each(|poll| poll.oddities_total += gaps);
            deps.metrics.oddities(Endpoint::TokenList, gaps);
            last.commit.token_list_complete = true;
            last.commit.listed = named.into_iter().map(|(id, _)| id).collect();
        }
        self.evaluate_and_commit(Work { commit: last.commit, tokens: Vec::new() }).await
    }

    /// Asks for the next event of each token: fresh valuations, and whose schedule should be read again.
    async fn upcoming(&mut self) -> Result<(), CycleError> {
        let Some((ask, fetched, known)) = self.whole(Endpoint::Upcoming).await? else { return Ok(()) };
        let deps = self.deps;
        let _turn = deps.turn.lock().await;
        let setup = deps.setup();
        let expected = match (&ask.request, payload(&fetched)) {
            (PollRequest::Upcoming { start, end }, Some(Payload::Upcoming(rows))) if rows.is_empty() => {
                let (from, until) =
                    (start.and_time(NaiveTime::MIN).and_utc().max(self.now), end.and_time(NaiveTime::MIN).and_utc());
                let ahead = deps.store.tokens_due(vec![(from, until)], Timestamp::default());
                stored("read what lies ahead", ahead).await?.iter().filter(|id| setup.watch.covers(id)).count()
            }
            _ => 0,
        };
        let last = self.whole_update(&ask, &fetched, known, expected);
        if let (Some(Payload::Upcoming(rows)), None) = (payload(&fetched), &last.ingested.failure) {
            let ingest = self.ingest(&setup);
            let watched: Vec<(TokenId, &wire::UpcomingItem)> = rows
                .iter()
                .filter_map(|row| Some((TokenId::from(row.token_id.as_str()?), row)))
                .filter(|(id, _)| setup.watch.covers(id))
                .collect();
            for rows in watched.chunks(TICK_BATCH) {
                let known = deps.known(rows.iter().map(|(id, _)| id.clone()).collect(), vec![Resource::Unlock]).await?;
                let mut work = Work::default();
                for (id, row) in rows {
                    if let Some(known) = known.get(id) {
                        ingest.upcoming_row(&mut work, known, row);
                    }
                }
                self.evaluate_and_commit(work).await?;
            }
        }
        self.evaluate_and_commit(Work { commit: last.commit, tokens: Vec::new() }).await
    }

    /// Evaluates what the passing of time changes, from the snapshot alone: also while the source is down.
    async fn evaluate_what_time_changed(&mut self) -> Result<(), CycleError> {
        // Put back where it fails: other rules must see everything once.
        let is_anew = self.deps.reevaluate.swap(false, Ordering::SeqCst);
        let evaluated = self.evaluate_due(is_anew).await;
        if is_anew && evaluated.is_err() {
            self.deps.reevaluate.store(true, Ordering::SeqCst);
        }
        evaluated
    }

    async fn evaluate_due(&mut self, is_anew: bool) -> Result<(), CycleError> {
        let deps = self.deps;
        let until = match is_anew {
            true => None,
            false => stored("read up to when rules were evaluated", deps.store.evaluated_until()).await?,
        };
        let active = deps.active();
        let windows = evaluate::windows(&active.rules, until, self.now);
        let mut due = stored("read whose time has come", deps.store.tokens_due(windows, self.now)).await?;
        let fills_totals = is_anew && active.rules.has_aggregates();
        if is_anew {
            let rules = &active.rules;
            let has_shares = rules.on(On::Token).any(|rule| !rule.shares().is_empty());
            deps.totals().reset(rules.windows.clone(), rules.since.clone(), has_shares);
        }
        if fills_totals {
            let known = stored("read whom rules may concern", deps.store.token_ids(false)).await?;
            let setup = deps.setup();
            due.extend(known.into_iter().filter(|id| setup.watch.covers(id)));
        }
        due.extend(deps.totals().due(self.now));
        if until.is_none() {
            let states = evaluate::states(&active.rules, self.now);
            due.extend(stored("read whom other rules may concern", deps.store.tokens_to_reevaluate(states)).await?);
        }
        due.sort();
        due.dedup();
        for ids in due.chunks(TICK_BATCH) {
            let _turn = deps.turn.lock().await;
            self.evaluate_as_known(ids.to_vec()).await?;
        }
        if fills_totals {
            // Only now are groups whole, and with them the share of each token.
            deps.totals().complete(self.now);
            let due = deps.totals().due(self.now);
            for ids in due.chunks(TICK_BATCH) {
                let _turn = deps.turn.lock().await;
                self.evaluate_as_known(ids.to_vec()).await?;
            }
        }
        let commit = Commit { evaluated_until: Some(self.now), ..Commit::default() };
        let _turn = deps.turn.lock().await;
        self.evaluate_and_commit(Work { commit, tokens: Vec::new() }).await
    }

    /// Evaluates tokens as the database knows them.
    async fn evaluate_as_known(&mut self, ids: Vec<TokenId>) -> Result<(), CycleError> {
        let known = stored("read what is known", self.deps.store.tokens(ids, TIMED.to_vec())).await?;
        let setup = self.deps.setup();
        let ingest = self.ingest(&setup);
        let tokens = known.iter().map(|known| ingest.as_known(known)).collect();
        self.evaluate_and_commit(Work { commit: Commit::default(), tokens }).await
    }

    /// evaluate, commit, deliver: what everything that was ingested ends in.
    async fn evaluate_and_commit(&mut self, work: Work<'_>) -> Result<(), CycleError> {
        let deps = self.deps;
        let active = deps.active();
        let totals = self.totals(&work, &active.rules).await?;
        let draft = pipeline::step(&work.tokens, &totals, &active.context(self.now), &mut self.limits);
        self.report.evaluated += u32::try_from(work.tokens.len()).unwrap_or(u32::MAX);
        self.report.changes.extend(work.commit.changes.iter().cloned());
        let is_evaluated = |id: &TokenId| work.tokens.iter().any(|news| news.token.id == *id);
        let moved = pipeline::moved_feeds(&deps.totals(), &work.commit.feeds, is_evaluated);
        let unwatched: Vec<TokenId> =
            work.tokens.iter().filter(|news| !news.is_watched).map(|news| news.token.id.clone()).collect();
        self.commit(work.commit, draft).await?;
        // Only what was written counts as evaluated.
        pipeline::keep_totals(&mut deps.totals(), totals, &moved, &unwatched, self.now);
        Ok(())
    }

    /// What the windows of tokens hold, with their news; nothing where no rule asks.
    async fn totals(&self, work: &Work<'_>, rules: &RuleSet) -> Result<Vec<ComputedTotals>, CycleError> {
        if !rules.has_aggregates() || work.tokens.is_empty() {
            return Ok(Vec::new());
        }
        let is_at_hand = |resource: Resource| work.tokens.iter().all(|news| news.resources.contains(&resource));
        let reaches = pipeline::reaches(rules, is_at_hand, self.now);
        let ids = work.tokens.iter().map(|news| news.token.id.clone()).collect();
        let known = stored("read what windows hold", self.deps.store.window_records(ids, reaches)).await?;
        let cache = self.deps.totals();
        let computed = work.tokens.iter().zip(known).map(|(news, known)| {
            let entries = pipeline::flow_entries(news, &known.feeds, &known.records, &work.commit.feeds);
            pipeline::compute_totals(&cache, rules, &news.token, &entries, self.now, self.now)
        });
        Ok(computed.collect())
    }

    /// Has every watched token counted in its groups, also one that was never read: its sums are unknown, and so are the group's.
    async fn meet_newcomers(&mut self, rules: &RuleSet) -> Result<(), CycleError> {
        let deps = self.deps;
        if !rules.has_aggregates() || !deps.totals().is_complete() {
            return Ok(());
        }
        let known = stored("read whom rules may concern", deps.store.token_ids(false)).await?;
        let setup = deps.setup();
        let mut new: Vec<TokenId> = known.into_iter().chain(setup.watch.named().iter().cloned()).collect();
        {
            let cache = deps.totals();
            new.retain(|id| setup.watch.covers(id) && !cache.has(id));
        }
        new.sort();
        new.dedup();
        for ids in new.chunks(TICK_BATCH) {
            self.evaluate_as_known(ids.to_vec()).await?;
        }
        Ok(())
    }

    /// Writes a step in one transaction, and wakes the outbox.
    async fn commit(&mut self, commit: Commit, draft: Transitions) -> Result<(), CycleError> {
        let deps = self.deps;
        let openings = draft.openings();
        let latest =
            if openings.is_empty() { Vec::new() } else { stored("read episodes", deps.store.episodes(openings)).await? };
        let mut step = pipeline::conclude(commit, draft, &latest, self.now);
        for (rule, error) in &step.template_errors {
            deps.metrics.template_fallback();
            tracing::error!(
                cycle = self.report.id(),
                rule = rule.as_str(),
                error,
                "a template failed: the built-in text was sent instead"
            );
        }
        step.tell_template_errors(&deps.active().context(self.now));
        let Step { commit, .. } = step;
        self.report.alerts += u32::try_from(commit.alerts.len()).unwrap_or(u32::MAX);
        let changes: Vec<_> = commit.changes.iter().map(|change| change.kind).collect();
        let (matches, told) = (commit.rule_matches.clone(), ToldNotification::of(&commit));
        let has_notices = !commit.notifications.is_empty();
        let saved: CommitResult = stored("write a batch", deps.store.commit(commit)).await?;
        self.report.deliveries += saved.deliveries;
        for kind in changes {
            deps.metrics.change(kind);
        }
        deps.metrics.told(&told);
        for (rule, at) in &matches {
            deps.metrics.rule_match(rule, *at);
        }
        if has_notices {
            deps.outbox.wake();
        }
        Ok(())
    }

    /// Ends the cycle: incidents of the source, groups as a whole, what limits left out, the slot that ran, the credits.
    async fn close(&mut self, job: Job, slot: Timestamp) -> Result<(), CycleError> {
        let deps = self.deps;
        let _turn = deps.turn.lock().await;
        let setup = deps.setup();
        let open = stored("read alerts about the source and about groups", deps.store.alerts_of_no_token()).await?;
        let active = deps.active();
        if matches!(job, Job::Poll(_)) {
            self.meet_newcomers(&active.rules).await?;
        }
        let seen = std::mem::take(&mut self.seen);
        if let Some(is_up) = self_monitor::has_answered(&seen) {
            deps.metrics.set_source_up(is_up);
        }
        let mut known = deps.known(pipeline::tokens_of_incidents(&seen, &open), Vec::new()).await?;
        for known in known.values_mut() {
            known.token.groups = setup.watch.groups_of(&known.token.id);
        }
        let draft = {
            let incidents = self_monitor::CycleNews {
                news: &seen,
                open: &open,
                is_watched: &|feed| pipeline::is_feed_watched(&setup.watch, feed) && setup.is_on(Job::Poll(feed.endpoint)),
                token: &|id| known.get(id).map(|known| &known.token),
            };
            let context = active.context(self.now);
            let groups = pipeline::groups(&mut deps.totals(), &open, &context, &mut self.limits);
            pipeline::close(&incidents, groups, std::mem::take(&mut self.limits), &context)
        };
        stored("write the quota", deps.ledger.settle_up()).await?;
        let commit = Commit { jobs: vec![(job.as_str().to_owned(), slot)], ..Commit::default() };
        self.commit(commit, draft).await
    }
}

fn by_token(known: Vec<TokenSnapshot>) -> HashMap<TokenId, TokenSnapshot> {
    known.into_iter().map(|snapshot| (snapshot.token.id.clone(), snapshot)).collect()
}

fn payload(fetched: &FetchedAnswer) -> Option<&Payload> {
    if let PollOutcome::Fresh(answer) = &fetched.outcome { Some(&answer.payload) } else { None }
}

async fn stored<T>(doing: &'static str, asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, CycleError> {
    asked.await.map_err(|source| CycleError::Store { doing, source })
}
