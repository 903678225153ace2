//! The path of the program: poll, diff, evaluate, commit, deliver. One file, read from the top.
//!
//! A cycle asks one endpoint within the budget, or nobody at all where only time has passed. Answers are taken in as they come, a
//! batch at a time: what was known is read, the answers are compared with it ([`crate::intake`], [`crate::diff`]), the rules judge
//! what came of it ([`crate::evaluate`]), and snapshot, changes, alerts, deliveries, poll log and credits are written in one
//! transaction. Then the outbox is woken. Killed at any point, the program has either not asked, or lost an answer that it will ask
//! for again, or written everything that follows from it.

mod asking;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use chrono::{NaiveTime, TimeDelta};
use tokio::sync::mpsc;

use crate::{
    aggregate::{self, Book, Flow, LONGEST_REST, Ledger, Rest, Totals, Worked},
    alert::Alert,
    api::{Client, Failure, FailureKind, Fetched, Outcome, Payload, Request},
    budget::{Allowance, Why},
    change::Change,
    config::{self, Config},
    diff,
    evaluate::{self, Draft, Limits, TokenFacts, TokenTotals, Verdict},
    intake,
    metrics::Metrics,
    outbox::Outbox,
    plan::{self, Ask, Basis, Plan},
    route::RouteTree,
    rules::{On, Pool, Rule, RuleSet},
    schedule::Job,
    slot::Slots,
    store::{
        Store, StoreError,
        model::{Commit, FeedUpdate, PollEntry, Reach, Saved, TokenSnapshot},
    },
    supply::{Endpoint, FeedId, FeedState, Record, Resource, Timestamp, Token, TokenId, Tracked},
    trouble::{self, FeedNews, FeedResult},
    upcoming,
    watch::Watch,
    wire,
};
use asking::{gather, is_fresh};

/// Tokens that are judged together where nothing was asked: all that is known of them is in memory at once.
const TICK_BATCH: usize = 16;
/// Tokens of failed feeds whose names are read for what is told of the source.
const MOST_NAMED: usize = 256;
/// Slots of one day that planning counts; more are many enough.
const MOST_SLOTS: u32 = 1_000;

/// What a cycle works with.
pub struct Deps {
    /// Config, tokens and times; swapped whole by a reload, while no batch is under way.
    pub setup: RwLock<Arc<Setup>>,
    /// How the API is asked; as the client, it stays until a restart.
    pub source: config::Source,
    /// The database.
    pub store: Store,
    /// The API.
    pub api: Client,
    /// Rules and routes; swapped whole by a reload.
    pub judgement: Arc<RwLock<Arc<Judgement>>>,
    /// Who delivers.
    pub outbox: Arc<Outbox>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The next evaluation looks at everything ahead: rules or groups may have changed.
    pub rejudge: Arc<AtomicBool>,
    /// What the windows of every token hold, and when time alone will change that.
    pub book: Mutex<Book>,
    /// One batch at a time is compared, judged and committed; asking goes on meanwhile.
    pub turn: tokio::sync::Mutex<()>,
}

/// What the config says of a cycle.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The configuration.
    pub config: Arc<Config>,
    /// Which tokens.
    pub watch: Watch,
    /// When each job is due, for spreading credits over the day.
    pub slots: Vec<(Job, Slots)>,
}

/// Rules with their routes.
#[derive(Debug)]
pub struct Judgement {
    /// The rules at work.
    pub rules: RuleSet,
    /// Who is told what.
    pub routes: RouteTree,
}

impl Judgement {
    /// What a judgement at `now` goes by.
    #[must_use]
    pub fn context(&self, now: Timestamp) -> evaluate::Context<'_> {
        evaluate::Context { rules: &self.rules, routes: &self.routes, now }
    }
}

impl Deps {
    /// The rules at work now.
    #[must_use]
    pub fn judgement(&self) -> Arc<Judgement> {
        self.judgement.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The config at work now.
    #[must_use]
    pub fn setup(&self) -> Arc<Setup> {
        self.setup.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> diff::Settings {
        let setup = self.setup();
        let store = &setup.config.store;
        diff::Settings { tolerance: store.tolerance, removal_confirmations: store.removal_confirmations }
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

/// What a cycle saw and did: the log line, the status page and the tests read this.
#[derive(Clone, Debug)]
pub struct CycleReport {
    /// Which job.
    pub job: Job,
    /// The time of the cycle.
    pub at: Timestamp,
    /// Things asked.
    pub asked: u32,
    /// Complete answers that differed from the last ones.
    pub fresh: u32,
    /// Complete answers that did not.
    pub unchanged: u32,
    /// What could not be read, and why.
    pub failed: Vec<(FeedId, Failure)>,
    /// Feeds whose answer is held, since most of it vanished at once.
    pub held: Vec<FeedId>,
    /// What the diff told.
    pub changes: Vec<Change>,
    /// Alerts that began, moved on or ended.
    pub alerts: u32,
    /// Messages put into the outbox.
    pub deliveries: u32,
    /// Credits spent.
    pub credits: u32,
    /// Feeds that wait for more credits.
    pub deferred: Vec<(Why, u32)>,
    /// Feeds that needed no look.
    pub resting: u32,
    /// Tokens that were judged.
    pub judged: u32,
}

impl CycleReport {
    fn new(job: Job, at: Timestamp) -> Self {
        Self {
            job,
            at,
            asked: 0,
            fresh: 0,
            unchanged: 0,
            failed: Vec::new(),
            held: Vec::new(),
            changes: Vec::new(),
            alerts: 0,
            deliveries: 0,
            credits: 0,
            deferred: Vec::new(),
            resting: 0,
            judged: 0,
        }
    }

    /// Whether nothing happened that anyone would want in a log.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.fresh == 0
            && self.failed.is_empty()
            && self.held.is_empty()
            && self.alerts == 0
            && self.deliveries == 0
            && self.deferred.is_empty()
    }
}

impl fmt::Display for CycleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.job.as_str())?;
        if self.job == Job::Evaluate {
            write!(f, "{} judged", plural(self.judged, "token"))?;
        } else {
            write!(f, "{} asked, {} fresh, {} unchanged", self.asked, self.fresh, self.unchanged)?;
            if !self.failed.is_empty() {
                write!(f, ", {} failed", self.failed.len())?;
            }
            if !self.held.is_empty() {
                write!(f, ", {} held", self.held.len())?;
            }
            write!(f, ", {}", plural(self.credits, "credit"))?;
        }
        if !self.changes.is_empty() {
            write!(f, "; {}", plural(u32::try_from(self.changes.len()).unwrap_or(u32::MAX), "change"))?;
        }
        if self.alerts > 0 || self.deliveries > 0 {
            write!(f, "; {}, {}", plural(self.alerts, "alert"), plural(self.deliveries, "message"))?;
        }
        for (why, count) in &self.deferred {
            write!(f, "; {count} deferred ({})", why.as_str())?;
        }
        Ok(())
    }
}

fn plural(count: u32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Runs one cycle of a job. `slot` is the slot that it runs for, `now` the time that everything in it goes by.
///
/// # Errors
/// Where the database fails. What was committed before stays; the next cycle goes on from there.
pub async fn run_cycle(deps: &Deps, job: Job, slot: Timestamp, now: Timestamp) -> Result<CycleReport, CycleError> {
    let mut cycle =
        Cycle { deps, now, report: CycleReport::new(job, now), seen: Vec::new(), spent: Vec::new(), limits: Limits::default() };
    match job {
        Job::Evaluate => cycle.judge_what_time_changed().await?,
        Job::Poll(Endpoint::TokenList) => cycle.token_list().await?,
        Job::Poll(Endpoint::Upcoming) => cycle.upcoming().await?,
        Job::Poll(Endpoint::Investors) => cycle.investors().await?,
        Job::Poll(endpoint) => cycle.each_token(endpoint).await?,
    }
    cycle.close(job, slot).await?;
    Ok(cycle.report)
}

/// A cycle under way.
struct Cycle<'a> {
    deps: &'a Deps,
    now: Timestamp,
    report: CycleReport,
    /// What became of each feed, for alerts about the source.
    seen: Vec<FeedNews>,
    /// What answers cost and reported since the last commit.
    spent: Vec<Spent>,
    /// What rules with a limit told and left out so far.
    limits: Limits,
}

/// What an answer says of the quota.
struct Spent {
    credits: u32,
    reported: Option<wire::Credit>,
    is_exhausted: bool,
}

/// What one batch brings to the judgement and the commit.
#[derive(Default)]
struct Batch {
    commit: Commit,
    tokens: Vec<Judged>,
}

/// A token to be judged, with what happened to it.
struct Judged {
    token: Token,
    is_watched: bool,
    records: Vec<Tracked>,
    resources: Vec<Resource>,
    changes: Vec<Change>,
    added: Vec<Tracked>,
    alerts: Vec<Alert>,
    polled_at: Vec<(Resource, Timestamp)>,
}

impl Cycle<'_> {
    /// Asks a per-token endpoint: the path that most of the program is about.
    async fn each_token(&mut self, endpoint: Endpoint) -> Result<(), CycleError> {
        let Some(resource) = endpoint.resource() else { return Ok(()) };
        let plan = self.plan_tokens(endpoint).await?;
        let mut answers = self.ask(plan);
        let mut batch = Vec::new();
        while gather(&mut answers, &mut batch).await {
            // poll: what came, beside what was known
            let deps = self.deps;
            let _turn = deps.turn.lock().await;
            // An answer that is unchanged, or none, is compared with nothing: of its token only the feed is read.
            batch.sort_by_key(|answer| !is_fresh(answer));
            let (fresh, other) = batch.split_at(batch.partition_point(is_fresh));
            let ids = |of: &[(Ask, Fetched)]| of.iter().filter_map(|(_, fetched)| fetched.request.token().cloned()).collect();
            let (fresh, other): (Vec<TokenId>, Vec<TokenId>) = (ids(fresh), ids(other));
            let mut before = Vec::with_capacity(batch.len());
            if !fresh.is_empty() {
                before.extend(stored("read what was known", deps.store.tokens(fresh, vec![resource])).await?);
            }
            if !other.is_empty() {
                before.extend(stored("read what was known", deps.store.tokens_with_feed(other, endpoint)).await?);
            }

            // diff
            let mut work = Batch::default();
            for (snapshot, (ask, fetched)) in before.into_iter().zip(batch.drain(..)) {
                self.take_in(&mut work, snapshot, resource, &ask, &fetched);
            }

            // evaluate, commit, deliver
            self.judge_and_commit(work).await?;
        }
        Ok(())
    }

    /// Compares one answer with what was known.
    fn take_in(&mut self, work: &mut Batch, snapshot: TokenSnapshot, resource: Resource, ask: &Ask, fetched: &Fetched) {
        let taken = intake::take_in(&snapshot, ask, fetched, &self.deps.settings(), self.now);
        let entry = intake::poll_entry(fetched, taken.failure.as_ref(), self.now);
        self.note(fetched, &entry, taken.failure.as_ref(), taken.is_held);
        work.commit.polls.push(entry);

        let is_read = taken.failure.is_none();
        let polled_at = taken.update.state.read_at.map(|at| (resource, at)).into_iter().collect();
        work.commit.changes.extend(taken.changes.iter().cloned());
        work.commit.feeds.push(taken.update);
        if is_read && !matches!(fetched.outcome, Outcome::Unchanged) {
            let watch = &self.deps.setup().watch;
            let mut token = watch.placed(snapshot.token);
            if let (Some((name, symbol)), true) = (taken.named, token.item.name.is_absent()) {
                token.item.name = name.into();
                token.item.symbol = symbol.into();
                work.commit.tokens.push(token.item.clone());
            }
            work.tokens.push(Judged {
                // Not any more, where a reload came between the question and the answer.
                is_watched: watch.covers(&token.id),
                token,
                records: taken.after,
                resources: vec![resource],
                changes: taken.changes,
                added: taken.added,
                alerts: snapshot.alerts,
                polled_at,
            });
        }
    }

    /// Asks for all tokens: who there is, when each last changed.
    async fn token_list(&mut self) -> Result<(), CycleError> {
        let Some((ask, fetched, known)) = self.whole(Endpoint::TokenList).await? else { return Ok(()) };
        let deps = self.deps;
        let _turn = deps.turn.lock().await;
        let setup = deps.setup();
        let mut last = self.whole_update(&ask, &fetched, known);
        if let (Some(Payload::Tokens(items)), None) = (payload(&fetched), &last.failure) {
            let is_baseline = last.is_baseline;
            let judgement = deps.judgement();
            for items in items.chunks(TICK_BATCH) {
                let ids: Vec<TokenId> = items.iter().filter_map(|item| item.id.as_str()).map(TokenId::from).collect();
                let before = stored("read what was known", deps.store.tokens(ids, Vec::new())).await?;
                let mut work = Batch::default();
                let mut moved = Vec::new();
                for (snapshot, item) in before.into_iter().zip(items.iter().filter(|item| item.id.as_str().is_some())) {
                    // A market cap or a supply that a rule reads can turn it, though no schedule changed.
                    let id = &snapshot.token.id;
                    if setup.watch.covers(id) && judgement.rules.index.is_moved(&snapshot.token.item, item) {
                        moved.push(id.clone());
                    }
                    self.take_in_token(&mut work, snapshot, item, is_baseline);
                }
                self.judge_and_commit(work).await?;
                if !moved.is_empty() {
                    self.judge_as_known(moved).await?;
                }
            }
            last.commit.token_list_complete = true;
            last.commit.listed = items.iter().filter_map(|item| item.id.as_str()).map(TokenId::from).collect();
        }
        self.judge_and_commit(Batch { commit: last.commit, tokens: Vec::new() }).await
    }

    /// Compares a row of the token list: only the supply is a fact that changes are told of.
    fn take_in_token(&mut self, work: &mut Batch, snapshot: TokenSnapshot, item: &wire::TokenItem, is_baseline: bool) {
        if snapshot.token.item != *item {
            work.commit.tokens.push(item.clone());
        }
        let setup = self.deps.setup();
        let token = setup.watch.placed(Token { item: item.clone(), ..snapshot.token.clone() });
        if is_baseline || !setup.watch.covers(&token.id) {
            return;
        }
        let told = snapshot.headers.iter().find(|(endpoint, _)| *endpoint == Endpoint::Allocations);
        let told = told.and_then(|(_, header)| header.get("maxSupply")).and_then(serde_json::Value::as_f64);
        let (from, to) = (snapshot.token.item.max_supply.copied(), item.max_supply.copied());
        let change = diff::max_supply_change(&token.id, from, to, &self.deps.settings());
        if let Some(change) = change.filter(|_| told != to) {
            work.commit.changes.push(change.clone());
            work.tokens.push(Judged {
                is_watched: true,
                token,
                records: Vec::new(),
                resources: Vec::new(),
                changes: vec![change],
                added: Vec::new(),
                alerts: snapshot.alerts,
                polled_at: vec![(Resource::Allocation, self.now)],
            });
        }
    }

    /// Asks for the next event of each token: fresh valuations, and whose schedule should be read again.
    async fn upcoming(&mut self) -> Result<(), CycleError> {
        let Some((ask, fetched, known)) = self.whole(Endpoint::Upcoming).await? else { return Ok(()) };
        let deps = self.deps;
        let _turn = deps.turn.lock().await;
        let setup = deps.setup();
        let last = self.whole_update(&ask, &fetched, known);
        if let (Some(Payload::Upcoming(rows)), None) = (payload(&fetched), &last.failure) {
            let watched: Vec<(TokenId, &wire::UpcomingItem)> = rows
                .iter()
                .filter_map(|row| Some((TokenId::from(row.token_id.as_str()?), row)))
                .filter(|(id, _)| setup.watch.covers(id))
                .collect();
            for rows in watched.chunks(TICK_BATCH) {
                let ids = rows.iter().map(|(id, _)| id.clone()).collect();
                let before = stored("read what was known", deps.store.tokens(ids, vec![Resource::Unlock])).await?;
                let mut work = Batch::default();
                for (snapshot, (_, row)) in before.into_iter().zip(rows) {
                    self.take_in_upcoming(&mut work, snapshot, row);
                }
                self.judge_and_commit(work).await?;
            }
        }
        self.judge_and_commit(Batch { commit: last.commit, tokens: Vec::new() }).await
    }

    fn take_in_upcoming(&mut self, work: &mut Batch, snapshot: TokenSnapshot, row: &wire::UpcomingItem) {
        let reconciled = upcoming::reconcile(&snapshot, row, self.deps.settings().tolerance, self.now);
        if reconciled == upcoming::Reconciled::default() {
            return;
        }
        let mut token = self.deps.setup().watch.placed(snapshot.token.clone());
        if token.item.name.is_absent() {
            token.item.name = row.token_name.clone();
            token.item.symbol = row.token_symbol.clone();
            token.item.market_cap = row.market_cap;
            work.commit.tokens.push(token.item.clone());
        }
        let id = FeedId::of(Endpoint::UnlockEvents, &token.id);
        let mut state = snapshot.feed(Endpoint::UnlockEvents).cloned().unwrap_or_default();
        state.stale |= reconciled.is_stale;
        let diff = diff::Diff { put: reconciled.put, ..Default::default() };
        let records = diff::apply(&snapshot.records, &diff);
        if !diff.put.is_empty() {
            work.tokens.push(Judged {
                is_watched: true,
                token,
                records,
                resources: vec![Resource::Unlock],
                changes: Vec::new(),
                added: Vec::new(),
                alerts: snapshot.alerts,
                polled_at: vec![(Resource::Unlock, self.now)],
            });
        }
        work.commit.feeds.push(FeedUpdate { id, state, put: diff.put, removed: Vec::new(), header: None });
    }

    /// Asks for the investor list, then for the rounds of those whose latest one is new. The first list is a baseline.
    async fn investors(&mut self) -> Result<(), CycleError> {
        let Some((ask, fetched, known)) = self.whole(Endpoint::Investors).await? else { return Ok(()) };
        let deps = self.deps;
        let last = self.whole_update(&ask, &fetched, known);
        let is_baseline = last.is_baseline;
        let mut listed = Vec::new();
        if let (Some(Payload::Investors(items)), None) = (payload(&fetched), &last.failure) {
            listed.clone_from(items);
        }
        let before = stored("read the investors", deps.store.investors()).await?;
        let latest: HashMap<&str, Option<Timestamp>> =
            before.iter().filter_map(|item| Some((item.investor_id.as_str()?, item.latest_funding_date.copied()))).collect();
        let is_new = |item: &&wire::InvestorItem| {
            item.investor_id
                .as_str()
                .is_some_and(|id| latest.get(id).is_none_or(|date| *date != item.latest_funding_date.copied()))
        };
        let news: Vec<wire::InvestorItem> = listed.iter().filter(is_new).cloned().collect();
        {
            let _turn = deps.turn.lock().await;
            let investors = if is_baseline { news.clone() } else { Vec::new() };
            self.judge_and_commit(Batch { commit: Commit { investors, ..last.commit }, tokens: Vec::new() }).await?;
        }
        if is_baseline {
            return Ok(());
        }
        let basis = self.basis().await?;
        let plan = plan::plan_investors(news.iter().filter_map(|item| item.investor_id.as_str().map(str::to_owned)), &basis);
        let mut answers = self.ask(plan);
        while let Some((ask, fetched)) = answers.recv().await {
            let _turn = deps.turn.lock().await;
            let Request::Investor { id } = &ask.request else { continue };
            let since = latest.get(id.as_str()).copied().flatten();
            let item = news.iter().find(|item| item.investor_id.as_str() == Some(id));
            self.take_in_rounds(&fetched, item, since).await?;
        }
        Ok(())
    }

    /// Takes in the rounds of one investor for the tokens that are watched. Rounds that are older than what the list knew are
    /// history: they are kept, and told to nobody.
    async fn take_in_rounds(
        &mut self,
        fetched: &Fetched,
        item: Option<&wire::InvestorItem>,
        since: Option<Timestamp>,
    ) -> Result<(), CycleError> {
        let failure = match &fetched.outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            _ => None,
        };
        let entry = intake::poll_entry(fetched, failure.as_ref(), self.now);
        self.note(fetched, &entry, failure.as_ref(), false);
        let mut work = Batch { commit: Commit { polls: vec![entry], ..Commit::default() }, tokens: Vec::new() };
        if let Some(Payload::Investor(detail)) = payload(fetched) {
            work.commit.investors.extend(item.cloned());
            let mut rounds: HashMap<TokenId, Vec<wire::FundingRound>> = HashMap::new();
            for round in detail.funding_rounds.items() {
                let Some(token) = round.token_id.as_str().map(TokenId::from) else { continue };
                if self.deps.setup().watch.covers(&token) {
                    let mut round = round.clone();
                    round.investor_id = detail.investor_id.clone();
                    round.investor_name = detail.investor_name.clone();
                    rounds.entry(token).or_default().push(round);
                }
            }
            let ids: Vec<TokenId> = rounds.keys().cloned().collect();
            let before = stored("read what was known", self.deps.store.tokens(ids, vec![Resource::Funding])).await?;
            for snapshot in before {
                let Some(rounds) = rounds.remove(&snapshot.token.id) else { continue };
                let of_investor: Vec<Tracked> = snapshot
                    .records
                    .iter()
                    .filter(
                        |tracked| matches!(&tracked.record, Record::Funding(round) if round.investor_id == detail.investor_id),
                    )
                    .cloned()
                    .collect();
                let token = self.deps.setup().watch.placed(snapshot.token.clone());
                let mut diff =
                    diff::diff_funding(&token.id, &of_investor, &[], &rounds, &self.deps.settings(), &diff::Window::ALL);
                // Absence is no proof here: one investor's page speaks for itself alone.
                diff.removed.clear();
                let is_news = |tracked: &Record| since.is_none_or(|since| tracked.interval().is_some_and(|at| at.start > since));
                diff.changes.retain(|change| change.new.as_ref().is_none_or(is_news));
                let known: Vec<_> = of_investor.iter().map(|tracked| &tracked.key).collect();
                let added = diff
                    .put
                    .iter()
                    .filter(|put| !known.contains(&&put.key) && is_news(&put.record))
                    .map(|put| Tracked { key: put.key.clone(), record: put.record.clone() })
                    .collect();
                let records = diff::apply(&snapshot.records, &diff);
                work.commit.changes.extend(diff.changes.iter().cloned());
                let id = FeedId::of(Endpoint::Investors, &token.id);
                let mut state = snapshot.feed(Endpoint::Investors).cloned().unwrap_or_default();
                state.baseline_at.get_or_insert(self.now);
                (state.read_at, state.tried_at) = (Some(self.now), Some(self.now));
                work.commit.feeds.push(FeedUpdate { id, state, put: diff.put, removed: Vec::new(), header: None });
                work.tokens.push(Judged {
                    is_watched: true,
                    token,
                    records,
                    resources: vec![Resource::Funding],
                    changes: diff.changes,
                    added,
                    alerts: snapshot.alerts,
                    polled_at: vec![(Resource::Funding, self.now)],
                });
            }
        }
        self.judge_and_commit(work).await
    }

    /// Judges what the passing of time changes, from the snapshot alone: also while the source is down.
    async fn judge_what_time_changed(&mut self) -> Result<(), CycleError> {
        // Taken back where it fails: other rules must see everything once.
        let rejudges = self.deps.rejudge.swap(false, Ordering::SeqCst);
        let judged = self.judge_due(rejudges).await;
        if rejudges && judged.is_err() {
            self.deps.rejudge.store(true, Ordering::SeqCst);
        }
        judged
    }

    async fn judge_due(&mut self, rejudges: bool) -> Result<(), CycleError> {
        let deps = self.deps;
        let until = match rejudges {
            true => None,
            false => stored("read up to when rules were evaluated", deps.store.evaluated_until()).await?,
        };
        let judgement = deps.judgement();
        let windows = evaluate::windows(&judgement.rules, until, self.now);
        let mut due = stored("read whose time has come", deps.store.tokens_due(windows, self.now)).await?;
        let fills_book = rejudges && judgement.rules.has_aggregates();
        if rejudges {
            let rules = &judgement.rules;
            let has_shares = rules.on(On::Token).any(|rule| !rule.shares().is_empty());
            deps.book().reset(rules.windows.clone(), rules.since.clone(), has_shares);
        }
        if fills_book {
            let known = stored("read whom rules may concern", deps.store.token_ids(false)).await?;
            let setup = deps.setup();
            due.extend(known.into_iter().filter(|id| setup.watch.covers(id)));
        }
        due.extend(deps.book().due(self.now));
        due.sort();
        due.dedup();
        if until.is_none() {
            let states = evaluate::states(&judgement.rules, self.now);
            due.extend(stored("read whom other rules may concern", deps.store.tokens_to_rejudge(states)).await?);
            due.sort();
            due.dedup();
        }
        for ids in due.chunks(TICK_BATCH) {
            let _turn = deps.turn.lock().await;
            self.judge_as_known(ids.to_vec()).await?;
        }
        if fills_book {
            // Only now are groups whole, and with them the share of each token.
            deps.book().complete(self.now);
            let due = deps.book().due(self.now);
            for ids in due.chunks(TICK_BATCH) {
                let _turn = deps.turn.lock().await;
                self.judge_as_known(ids.to_vec()).await?;
            }
        }
        let commit = Commit { evaluated_until: Some(self.now), ..Commit::default() };
        let _turn = deps.turn.lock().await;
        self.judge_and_commit(Batch { commit, tokens: Vec::new() }).await
    }

    /// Judges tokens as the database knows them.
    async fn judge_as_known(&mut self, ids: Vec<TokenId>) -> Result<(), CycleError> {
        let resources = vec![Resource::Unlock, Resource::Allocation, Resource::Emission];
        let before = stored("read what is known", self.deps.store.tokens(ids, resources.clone())).await?;
        let setup = self.deps.setup();
        let tokens = before
            .into_iter()
            .map(|snapshot| Judged {
                polled_at: resources
                    .iter()
                    .filter_map(|resource| {
                        let feeds = snapshot.feeds.iter().filter(|(endpoint, _)| endpoint.resource() == Some(*resource));
                        Some((*resource, feeds.filter_map(|(_, state)| state.read_at).max()?))
                    })
                    .collect(),
                is_watched: setup.watch.covers(&snapshot.token.id),
                token: setup.watch.placed(snapshot.token),
                records: snapshot.records,
                resources: resources.clone(),
                changes: Vec::new(),
                added: Vec::new(),
                alerts: snapshot.alerts,
            })
            .collect();
        self.judge_and_commit(Batch { commit: Commit::default(), tokens }).await
    }

    /// evaluate, commit, deliver: what every batch ends in.
    async fn judge_and_commit(&mut self, work: Batch) -> Result<(), CycleError> {
        let facts: Vec<TokenFacts<'_>> = work
            .tokens
            .iter()
            .map(|judged| TokenFacts {
                token: &judged.token,
                is_watched: judged.is_watched,
                records: &judged.records,
                resources: &judged.resources,
                changes: &judged.changes,
                added: &judged.added,
                alerts: &judged.alerts,
                polled_at: &judged.polled_at,
            })
            .collect();
        let judgement = self.deps.judgement();
        let context = judgement.context(self.now);
        let worked = self.work_out(&work, &judgement.rules).await?;
        let nothing = Totals::default();
        let wholes: Vec<TokenTotals<'_>> = work
            .tokens
            .iter()
            .enumerate()
            .map(|(place, judged)| TokenTotals {
                token: &judged.token,
                is_watched: judged.is_watched,
                totals: worked.get(place).map_or(&nothing, Worked::totals),
                alerts: &judged.alerts,
                polled_at: &judged.polled_at,
            })
            .collect();
        let draft = evaluate::evaluate(&facts, &context, &mut self.limits);
        let draft = draft.join(evaluate::tokens(&wholes, &context, &mut self.limits));
        let verdict = self.number(draft).await?;
        self.report.judged += u32::try_from(work.tokens.len()).unwrap_or(u32::MAX);
        self.report.changes.extend(work.commit.changes.iter().cloned());
        let moved = self.moved_feeds(&work);
        let unwatched: Vec<TokenId> =
            work.tokens.iter().filter(|judged| !judged.is_watched).map(|judged| judged.token.id.clone()).collect();
        self.commit(work.commit, verdict).await?;
        // Only what was written counts as judged.
        let mut book = self.deps.book();
        worked.into_iter().for_each(|worked| book.keep(worked));
        moved.iter().for_each(|id| book.wake(id, self.now));
        unwatched.iter().for_each(|id| book.forget(id));
        Ok(())
    }

    /// What the windows of the tokens of a batch hold, with what the batch brings; nothing where no rule asks.
    async fn work_out(&self, work: &Batch, rules: &RuleSet) -> Result<Vec<Worked>, CycleError> {
        if !rules.has_aggregates() || work.tokens.is_empty() {
            return Ok(Vec::new());
        }
        let longest = |flow: Flow| {
            let asked = rules.windows.iter().filter(|window| window.flow == flow).map(|window| window.span);
            asked.chain(rules.since.iter().filter(|(of, _)| *of == flow).map(|(_, span)| *span)).max()
        };
        let is_at_hand = |resource: Resource| work.tokens.iter().all(|judged| judged.resources.contains(&resource));
        let reaches = Flow::ALL.into_iter().filter(|flow| !is_at_hand(flow.resource())).filter_map(|flow| {
            // The latest burn and buyback are asked for without any window.
            let is_last = matches!(flow, Flow::Burned | Flow::BoughtBack);
            let span = longest(flow).or(is_last.then(TimeDelta::zero))? + LONGEST_REST + TimeDelta::days(1);
            let (before, after) = (self.now.checked_sub_signed(span), self.now.checked_add_signed(span));
            Some(match flow {
                Flow::Ahead => Reach { resource: Resource::Unlock, since: self.now, until: after.unwrap_or(self.now) },
                _ => Reach { resource: flow.resource(), since: before.unwrap_or(self.now), until: after.unwrap_or(self.now) },
            })
        });
        let reaches: Vec<Reach> = reaches.collect();
        let ids = work.tokens.iter().map(|judged| judged.token.id.clone()).collect();
        let known = stored("read what windows hold", self.deps.store.entries(ids, reaches)).await?;
        let rest = |token: &Token| {
            let mut concerned = rules.on(On::Token).chain(rules.on(On::Portfolio)).filter(|rule| rule.lets_in(token)).peekable();
            match (concerned.peek().is_some(), concerned.any(|rule| rule.is_clock_dependent)) {
                (false, _) => Rest::Longest,
                (true, false) => Rest::UntilChange,
                (true, true) => Rest::None,
            }
        };
        let book = self.deps.book();
        let worked = work.tokens.iter().zip(known).map(|(judged, entries)| {
            let mut feeds = entries.feeds;
            for update in work.commit.feeds.iter().filter(|update| update.id.token.as_ref() == Some(&judged.token.id)) {
                feeds.retain(|(endpoint, _)| *endpoint != update.id.endpoint);
                feeds.push((update.id.endpoint, update.state.clone()));
            }
            let older = entries.records.iter().filter(|tracked| !judged.resources.contains(&tracked.record.resource()));
            let ledger =
                Ledger::of(older.chain(&judged.records), |resource| aggregate::is_known(resource, &feeds, &judged.token.item));
            book.work_out(&judged.token, &ledger, rest(&judged.token), self.now)
        });
        Ok(worked.collect())
    }

    /// Tokens of a batch whose feeds begin or cease to be trusted, without being judged in it: an answer that failed, or one that is
    /// the same as before after a failure.
    fn moved_feeds(&self, work: &Batch) -> Vec<TokenId> {
        let book = self.deps.book();
        let is_judged = |id: &TokenId| work.tokens.iter().any(|judged| judged.token.id == *id);
        let moved = work.commit.feeds.iter().filter_map(|update| {
            let id = update.id.token.as_ref().filter(|id| !is_judged(id))?;
            let flow = Flow::ALL.into_iter().find(|flow| Some(flow.resource()) == update.id.endpoint.resource())?;
            let is_trusted = update.state.baseline_at.is_some() && (flow == Flow::Ahead || update.state.failing_since.is_none());
            (book.knew(id, flow)? != is_trusted).then(|| id.clone())
        });
        moved.collect()
    }

    /// Has every watched token counted in its groups, also one that was never read: its sums are unknown, and so are the group's.
    async fn meet_newcomers(&mut self, rules: &RuleSet) -> Result<(), CycleError> {
        let deps = self.deps;
        if !rules.has_aggregates() || !deps.book().is_complete() {
            return Ok(());
        }
        let known = stored("read whom rules may concern", deps.store.token_ids(false)).await?;
        let setup = deps.setup();
        let mut new: Vec<TokenId> = known.into_iter().chain(setup.watch.named().iter().cloned()).collect();
        {
            let book = deps.book();
            new.retain(|id| setup.watch.covers(id) && !book.has(id));
        }
        new.sort();
        new.dedup();
        for ids in new.chunks(TICK_BATCH) {
            self.judge_as_known(ids.to_vec()).await?;
        }
        Ok(())
    }

    /// Judges groups as a whole, from what is remembered of their tokens.
    fn judge_groups(&mut self, open: &[Alert], judgement: &Judgement) -> Draft {
        let deps = self.deps;
        let mut of = |rule: &Rule, pool: &Pool| match pool {
            Pool::Group(name) => deps.book().group(&format!("@{name}"), Some(name), |_, _| false),
            Pool::Watched => deps.book().group(rule.id.as_str(), None, |id, groups| rule.lets_in_named(id, groups)),
        };
        evaluate::portfolios(&mut of, open, &[], &judgement.context(self.now), &mut self.limits)
    }

    /// Gives the alerts that a draft opens their episodes.
    async fn number(&mut self, draft: Draft) -> Result<Verdict, CycleError> {
        let openings = draft.openings();
        let latest =
            if openings.is_empty() { Vec::new() } else { stored("read episodes", self.deps.store.episodes(openings)).await? };
        let verdict = draft.number(&latest);
        Ok(verdict)
    }

    /// Writes a batch with its verdict in one transaction, and wakes the outbox.
    async fn commit(&mut self, commit: Commit, verdict: Verdict) -> Result<(), CycleError> {
        let deps = self.deps;
        let mut commit = Commit { at: self.now, ..commit };
        if !self.spent.is_empty() {
            let mut credit = stored("read the quota", deps.store.credit()).await?;
            for spent in self.spent.drain(..) {
                self.report.credits += spent.credits;
                credit = credit.after(spent.credits, spent.reported.as_ref(), self.now);
                credit.exhausted |= spent.is_exhausted;
            }
            commit.credit = Some(credit);
        }
        commit.alerts.extend(verdict.alerts);
        commit.notices.extend(verdict.notices);
        commit.rule_matches.extend(verdict.rule_matches);
        for (rule, error) in &verdict.template_errors {
            deps.metrics.template_fallback();
            tracing::error!(rule = rule.as_str(), error, "a template failed: the built-in text was sent instead");
            let judgement = deps.judgement();
            let owner = judgement.rules.rules.iter().find(|known| known.id == *rule).and_then(|known| known.owner.as_deref());
            let (alert, notice) = trouble::template_failed(rule, owner, error, &judgement.context(self.now));
            commit.alerts.push(alert);
            commit.notices.push(notice);
        }
        self.report.alerts += u32::try_from(commit.alerts.len()).unwrap_or(u32::MAX);
        let changes: Vec<_> = commit.changes.iter().map(|change| change.kind).collect();
        let matches = commit.rule_matches.clone();
        let has_notices = !commit.notices.is_empty();
        let saved: Saved = stored("write a batch", deps.store.commit(commit)).await?;
        self.report.deliveries += saved.deliveries;
        for kind in changes {
            deps.metrics.change(kind);
        }
        for (rule, at) in &matches {
            deps.metrics.rule_match(rule, *at);
        }
        if has_notices {
            deps.outbox.wake();
        }
        Ok(())
    }

    /// Ends the cycle: alerts about the source, what limits left out, the slot that ran, the credits.
    async fn close(&mut self, job: Job, slot: Timestamp) -> Result<(), CycleError> {
        let deps = self.deps;
        let _turn = deps.turn.lock().await;
        let setup = deps.setup();
        let open = stored("read alerts about the source and about groups", deps.store.alerts_of_no_token()).await?;
        let judgement = deps.judgement();
        let seen = std::mem::take(&mut self.seen);
        let troubled = seen.iter().filter(|news| !matches!(news.result, FeedResult::Fine));
        let mut ids: Vec<TokenId> = troubled.filter_map(|news| news.feed.token.clone()).collect();
        ids.extend(open.iter().flat_map(|alert| &alert.members).filter_map(|member| trouble::feed_of(member)?.token));
        ids.sort();
        ids.dedup();
        ids.truncate(MOST_NAMED);
        let named: HashMap<TokenId, Token> = stored("read the names of tokens", deps.store.tokens(ids, Vec::new()))
            .await?
            .into_iter()
            .map(|snapshot| (snapshot.token.id.clone(), setup.watch.placed(snapshot.token)))
            .collect();
        let is_watched = |feed: &FeedId| feed.token.as_ref().is_none_or(|token| setup.watch.covers(token));
        let draft = {
            let news = trouble::Cycle { news: &seen, open: &open, is_watched: &is_watched, token: &|id| named.get(id) };
            trouble::watch(&news, &judgement.context(self.now))
        };
        if matches!(job, Job::Poll(_)) {
            self.meet_newcomers(&judgement.rules).await?;
        }
        let draft = draft.join(self.judge_groups(&open, &judgement));
        let draft = draft.join(std::mem::take(&mut self.limits).summaries(self.now));
        let verdict = self.number(draft).await?;
        let commit = Commit { jobs: vec![(job.as_str().to_owned(), slot)], ..Commit::default() };
        self.commit(commit, verdict).await
    }

    // ---- asking ----

    /// What a per-token endpoint asks in this tick.
    async fn plan_tokens(&mut self, endpoint: Endpoint) -> Result<Plan, CycleError> {
        let deps = self.deps;
        let known = stored("read what planning needs", deps.store.plan_tokens(endpoint, self.now)).await?;
        let tokens = plan::watched(known, &deps.setup().watch);
        let basis = self.basis().await?;
        Ok(plan::plan_tokens(endpoint, &tokens, &basis))
    }

    /// Asks an endpoint that is asked once for everything; none where the budget does not allow it.
    async fn whole(&mut self, endpoint: Endpoint) -> Result<Option<(Ask, Fetched, FeedState)>, CycleError> {
        let known = stored("read the state of a feed", self.deps.store.feed(FeedId::whole(endpoint))).await?;
        let basis = self.basis().await?;
        let plan = plan::plan_whole(endpoint, &known, &basis);
        let mut answers = self.ask(plan);
        Ok(answers.recv().await.map(|(ask, fetched)| (ask, fetched, known)))
    }

    /// State and poll log of a feed that is asked once for everything.
    fn whole_update(&mut self, ask: &Ask, fetched: &Fetched, known: FeedState) -> WholeUpdate {
        let id = fetched.request.feed();
        let is_baseline = known.baseline_at.is_none();
        let failure = match &fetched.outcome {
            Outcome::Failed(failure) => Some(failure.clone()),
            Outcome::Fresh(answer) if intake::rows(&answer.payload) == 0 && id.endpoint != Endpoint::Upcoming && !is_baseline => {
                Some(Failure {
                    kind: FailureKind::Emptied,
                    message: format!(
                        "{id}: the answer is complete but empty, where there was a list before; nothing of it is believed"
                    ),
                    retry_at: None,
                })
            }
            _ => None,
        };
        let entry = intake::poll_entry(fetched, failure.as_ref(), self.now);
        self.note(fetched, &entry, failure.as_ref(), false);
        let mut state =
            if failure.is_some() { intake::failed(known, self.now) } else { intake::read(known, ask, fetched, self.now) };
        if let (Outcome::Fresh(answer), None) = (&fetched.outcome, &failure) {
            state.hash = Some(answer.hash);
            state.baseline_at.get_or_insert(self.now);
        }
        let feed = FeedUpdate { id, state, put: Vec::new(), removed: Vec::new(), header: None };
        let commit = Commit { polls: vec![entry], feeds: vec![feed], ..Commit::default() };
        WholeUpdate { commit, failure, is_baseline }
    }

    /// Asks what was planned, several at a time, and hands the answers over as they come.
    fn ask(&mut self, plan: Plan) -> mpsc::Receiver<(Ask, Fetched)> {
        self.report.resting += plan.resting;
        if let Some(until) = plan.spent_until {
            let feed = FeedId::whole(match self.report.job {
                Job::Poll(endpoint) => endpoint,
                Job::Evaluate => Endpoint::TokenList,
            });
            let failure = Failure {
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
        self.report.deferred.extend(plan.deferred);
        let in_flight = usize::try_from(self.deps.source.concurrency.max(1)).unwrap_or(1);
        asking::ask(&self.deps.api, plan.asks, in_flight)
    }

    /// What planning goes by now.
    async fn basis(&self) -> Result<Basis<'_>, CycleError> {
        let deps = self.deps;
        let credit = stored("read the quota", deps.store.credit()).await?;
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
        Ok(Basis {
            allowance: Allowance::at(&credit, &setup.config.budget, self.now),
            backbone_today,
            ticks_today,
            source: &deps.source,
            near: setup.config.budget.near.delta(),
            now: self.now,
        })
    }

    /// Counts an answer.
    fn note(&mut self, fetched: &Fetched, entry: &PollEntry, failure: Option<&Failure>, is_held: bool) {
        let feed = fetched.request.feed();
        self.report.asked += 1;
        let is_exhausted = failure.is_some_and(|failure| failure.kind == FailureKind::QuotaExhausted);
        if fetched.credits > 0 || fetched.credit.is_some() || is_exhausted {
            self.spent.push(Spent { credits: fetched.credits, reported: fetched.credit.clone(), is_exhausted });
        }
        self.deps.metrics.poll(entry.endpoint, &entry.outcome, self.now);
        match (failure, &fetched.outcome) {
            (Some(failure), _) => {
                self.seen.push(FeedNews { feed: feed.clone(), result: FeedResult::Failed(failure.clone()) });
                self.report.failed.push((feed, failure.clone()));
            }
            (None, _) if is_held => {
                self.report.fresh += 1;
                let what = "more than half of what lies ahead is missing from a complete answer; nothing is taken out until it is confirmed";
                self.seen.push(FeedNews { feed: feed.clone(), result: FeedResult::Held(what.to_owned()) });
                self.report.held.push(feed);
            }
            (None, Outcome::Unchanged) => {
                self.report.unchanged += 1;
                self.seen.push(FeedNews { feed, result: FeedResult::Fine });
            }
            (None, _) => {
                self.report.fresh += 1;
                self.seen.push(FeedNews { feed, result: FeedResult::Fine });
            }
        }
    }
}

struct WholeUpdate {
    commit: Commit,
    failure: Option<Failure>,
    is_baseline: bool,
}

fn payload(fetched: &Fetched) -> Option<&Payload> {
    if let Outcome::Fresh(answer) = &fetched.outcome { Some(&answer.payload) } else { None }
}

async fn stored<T>(doing: &'static str, asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, CycleError> {
    asked.await.map_err(|source| CycleError::Store { doing, source })
}
