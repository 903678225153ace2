//! The playground: checks a rule text, and shows what it matches now and what it would have sent over the last year.
//!
//! The text goes through the same checker, evaluator, and backtest as rule files, over the facts in the database. Nothing is saved and
//! nothing is sent. [`try_out`] works on a blocking thread with limits on text, time, and results. Only one trial runs at a time
//! ([`Playground`]).
//!
//! A database is often younger than a year. The baselines of unlocks and allocations are then replayed as if they had been known for
//! the whole year. Burns, buybacks, and rounds are replayed as they were recorded.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::live::LiveConfig;
use crate::reload::{self, ReadFiles};
use engine::route::RouteTree;
use engine::{diff, removal::ProofPolicy};
use model::config::StoreSettings;
use model::{Diagnostic, Endpoint, FeedState, Resource, SourceText, Timestamp, Token, TokenId, VersionRow, Watch};
use rules::{On, Rule, RuleSet};
use store::{Store, StoreError};
use tools::backtest::{self, BacktestNotification, BacktestRun, BacktestSetup, BacktestSummary, History};
use tools::simulate::{DeliverySetup, Pace};

pub const MAX_TEXT_BYTES: usize = 32 * 1024;
const MAX_RULES: usize = 20;
/// The time span of a replay.
const SPAN: TimeDelta = TimeDelta::days(365);
/// The timeout of a whole request. It includes parts that [`TrialTime`] does not limit.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of notifications and messages kept from a run. Further ones are only counted.
const MAX_KEPT: usize = 5_000;
/// The interval at which a replay evaluates conditions that depend on the time.
const CHECK_INTERVAL: TimeDelta = TimeDelta::hours(6);
/// The longest `for` that is replayed to find current matches.
const MAX_HOLD: TimeDelta = TimeDelta::days(30);

/// The time limits of a trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialTime {
    pub read: Duration,
    pub replay: Duration,
}

impl TrialTime {
    /// The limits for a web page.
    const FOR_PAGE: Self = Self { read: Duration::from_secs(5), replay: Duration::from_secs(10) };
}

/// The config that tried rules run with.
#[derive(Clone, Copy, Debug)]
pub struct TrialWorld<'a> {
    pub watch: &'a Watch,
    pub routes: &'a RouteTree,
    pub settings: &'a StoreSettings,
}

impl<'a> TrialWorld<'a> {
    fn setup(&self, rules: &'a RuleSet, delivery: &'a DeliverySetup) -> BacktestSetup<'a> {
        // Removals were proven before they were recorded.
        let tolerance = self.settings.tolerance;
        let diff = diff::Settings { tolerance, proof: ProofPolicy::Immediate };
        let pace = Pace { diff, evaluate_every: CHECK_INTERVAL, poll_every: Some(TimeDelta::minutes(1)) };
        BacktestSetup { rules, routes: self.routes, delivery, watch: self.watch, pace }
    }
}

impl LiveConfig {
    fn trial_world(&self) -> TrialWorld<'_> {
        TrialWorld { watch: &self.watch, routes: &self.active.routes, settings: &self.config.store }
    }
}

/// Limits trials to one at a time.
#[derive(Clone, Debug)]
pub struct Playground(Arc<Semaphore>);

impl Default for Playground {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// A permit to run one trial. Dropping it allows the next.
#[derive(Debug)]
pub struct TrialPermit {
    _permit: OwnedSemaphorePermit,
}

impl Playground {
    /// Returns a permit for a trial, or `None` while another one runs.
    pub fn try_acquire(&self) -> Option<TrialPermit> {
        self.0.clone().try_acquire_owned().ok().map(|_permit| TrialPermit { _permit })
    }
}

/// The result of a trial.
#[derive(Debug)]
pub struct Trial {
    pub source: SourceText,
    pub diagnostics: Vec<Diagnostic>,
    /// The name of each rule, and its effect in one sentence. Empty if the text has errors.
    pub sentences: Vec<(String, String)>,
    /// `None` if the text has errors.
    pub outcome: Option<TrialOutcome>,
}

#[derive(Debug)]
pub struct TrialOutcome {
    /// The alerts that fire now, in the order in which they were decided.
    pub matches: Vec<Arc<BacktestNotification>>,
    /// Whether all rules report single changes, so that none can match at one moment.
    pub is_once: bool,
    pub run: BacktestRun,
    pub summary: BacktestSummary,
    /// The start of the recorded data, if it is younger than the replay.
    pub recorded_since: Option<Timestamp>,
    /// The number of tokens that could not be read in time, and the total.
    pub left_out: (usize, usize),
    /// The end of the replay, if it is not cut off.
    pub until: Timestamp,
}

/// The recorded history of one token.
#[derive(Debug)]
struct TokenHistory {
    token: Token,
    feeds: Vec<(Endpoint, FeedState)>,
    versions: Vec<VersionRow>,
}

/// Runs a trial of a text. `watch` is that of `live`, without positions if the reader must not see them.
pub async fn try_out(
    store: &Store,
    live: Arc<LiveConfig>,
    watch: Watch,
    text: String,
    now: Timestamp,
    permit: TrialPermit,
) -> Result<Trial, StoreError> {
    let compiling = (live.clone(), SourceText { file: "playground.toml".into(), text });
    let compiled = tokio::task::spawn_blocking(move || compile(&compiling.0, compiling.1, now)).await;
    let (source, diagnostics, set) = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            tracing::error!(%error, "a trial of a rule failed");
            let source = SourceText { file: "playground.toml".into(), text: String::new() };
            let problem = Diagnostic::error(&source.file, None, "the text could not be checked: see the log");
            return Ok(Trial { source, diagnostics: vec![problem], sentences: Vec::new(), outcome: None });
        }
    };
    let Some(set) = set else { return Ok(Trial { source, diagnostics, sentences: Vec::new(), outcome: None }) };
    let sentences = set.rules.iter().map(|rule| (rule.name.clone(), rule.sentence())).collect();
    let started = Instant::now();
    let world = TrialWorld { watch: &watch, ..live.trial_world() };
    let (histories, left_out) = read(store, &world, &set, TrialTime::FOR_PAGE).await?;
    let read_in = started.elapsed();
    let (silences, acks) = (store.silences(None).await?, store.acks().await?);
    let replaying = tokio::task::spawn_blocking(move || {
        // Held until the thread ends, even if the client disconnects.
        let _permit = permit;
        // Digests include more than the tried rules.
        let policy = engine::pipeline::DispatchPolicy { digests: Vec::new(), ..live.policy.clone() };
        let delivery = DeliverySetup { silences, acks, ..DeliverySetup::of(policy) };
        replay(&histories, &TrialWorld { watch: &watch, ..live.trial_world() }, &set, &delivery, left_out, now)
    });
    let outcome = replaying.await.map_err(|error| tracing::error!(%error, "a trial of a rule failed")).ok();
    tracing::debug!(read_ms = read_in.as_millis(), took_ms = started.elapsed().as_millis(), "trial of a rule ended");
    Ok(Trial { source, diagnostics, sentences, outcome })
}

/// Compiles a text. The rule set is `None` if there are errors.
fn compile(live: &LiveConfig, source: SourceText, now: Timestamp) -> (SourceText, Vec<Diagnostic>, Option<RuleSet>) {
    let ReadFiles { set, mut diagnostics, problem, .. } = reload::compile(&live.config, vec![source.clone()], Vec::new(), now);
    let is_valid = problem.is_none();
    if is_valid && set.rules.is_empty() {
        let message = "no rule is enabled";
        diagnostics.push(
            Diagnostic::error(&source.file, None, message).help("write `[[rule]]`, with `alert = …` and `on = …` below it"),
        );
    } else if set.rules.len() > MAX_RULES {
        let message = format!("the text has {} rules; the limit is {MAX_RULES}", set.rules.len());
        diagnostics.push(Diagnostic::error(&source.file, None, message));
    }
    let is_usable = is_valid && !set.rules.is_empty() && set.rules.len() <= MAX_RULES;
    (source, diagnostics, is_usable.then_some(set))
}

/// Reads the tokens that the rules apply to, until the time is over. Returns the number of tokens left out and the total as well.
async fn read(
    store: &Store,
    world: &TrialWorld<'_>,
    set: &RuleSet,
    time: TrialTime,
) -> Result<(Vec<TokenHistory>, (usize, usize)), StoreError> {
    let started = Instant::now();
    let resources = Resource::ALL.to_vec();
    // A rule on groups, or with a token's share of a group, reads all tokens.
    let is_wide = |rule: &Rule| rule.on == On::Portfolio || !rule.shares().is_empty();
    let mut histories = Vec::new();
    let ids: Vec<TokenId> = store.token_ids(false).await?.into_iter().filter(|id| world.watch.covers(id)).collect();
    for (index, id) in ids.iter().enumerate() {
        if started.elapsed() >= time.read {
            return Ok((histories, (ids.len() - index, ids.len())));
        }
        let Some(snapshot) = store.tokens(vec![id.clone()], Vec::new()).await?.into_iter().next() else { continue };
        let token = world.watch.placed(snapshot.token);
        if !set.rules.iter().any(|rule| is_wide(rule) || rule.selects_token(&token)) {
            continue;
        }
        let mut versions = store.versions(id.clone()).await?;
        versions.retain(|row| resources.iter().any(|resource| *resource == row.resource && set.subscribes_to(*resource)));
        histories.push(TokenHistory { token, feeds: snapshot.feeds, versions });
    }
    Ok((histories, (0, ids.len())))
}

fn replay(
    histories: &[TokenHistory],
    world: &TrialWorld<'_>,
    set: &RuleSet,
    delivery: &DeliverySetup,
    left_out: (usize, usize),
    now: Timestamp,
) -> TrialOutcome {
    let setup = world.setup(set, delivery);
    let started = Instant::now();
    let is_in_time =
        |_: f64| if started.elapsed() < TrialTime::FOR_PAGE.replay { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };

    let hold = set.rules.iter().map(|rule| rule.pending_for).max().unwrap_or_default().clamp(TimeDelta::zero(), MAX_HOLD);
    let from = now - hold - TimeDelta::minutes(10);
    let present = backtest::run_within(
        &history(histories, InitialFacts::CurrentFacts, from, now),
        &setup,
        (from, now),
        MAX_KEPT,
        is_in_time,
    );
    let ended: HashSet<&str> =
        present.notifications.iter().filter(|notified| notified.is_end()).map(|notified| notified.alert.as_str()).collect();
    let mut seen = HashSet::new();
    let fires = present.notifications.iter().filter(|notified| !ended.contains(notified.alert.as_str()));
    let matches = fires.filter(|notified| seen.insert(notified.alert.clone())).cloned().collect();

    let from = now - SPAN;
    let run = replay_year(histories, &setup, now, is_in_time);
    let began = histories.iter().flat_map(|history| &history.feeds).filter_map(|(_, feed)| feed.baseline_at).min();
    TrialOutcome {
        matches,
        is_once: set.rules.iter().all(|rule| is_once(rule.on)),
        summary: BacktestSummary::of(&run),
        run,
        recorded_since: began.filter(|began| *began > from),
        left_out,
        until: now,
    }
}

fn replay_year(
    histories: &[TokenHistory],
    setup: &BacktestSetup<'_>,
    now: Timestamp,
    is_in_time: impl FnMut(f64) -> ControlFlow<()>,
) -> BacktestRun {
    let from = now - SPAN;
    backtest::run_within(
        &history(histories, InitialFacts::BaselinesFromStart, from, now),
        setup,
        (from, now),
        MAX_KEPT,
        is_in_time,
    )
}

/// The result of replaying rules over the last year.
#[derive(Debug)]
pub struct LastYear {
    pub run: BacktestRun,
    /// The number of tokens that could not be read in time, and the total.
    pub left_out: (usize, usize),
    /// Whether the replay covers the whole year and all tokens.
    pub is_complete: bool,
}

/// Replays rules over the recorded facts of the last year, without silences and acknowledgements, within the limits of `time`.
pub async fn last_year(
    store: &Store,
    world: &TrialWorld<'_>,
    set: &RuleSet,
    policy: &engine::pipeline::DispatchPolicy,
    time: TrialTime,
    now: Timestamp,
) -> Result<LastYear, StoreError> {
    let (histories, left_out) = read(store, world, set, time).await?;
    let policy = engine::pipeline::DispatchPolicy { digests: Vec::new(), ..policy.clone() };
    let delivery = DeliverySetup::of(policy);
    let started = Instant::now();
    let is_in_time = |_: f64| if started.elapsed() < time.replay { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let run = replay_year(&histories, &world.setup(set, &delivery), now, is_in_time);
    let is_complete = run.to >= now && run.not_stored == 0 && left_out.0 == 0;
    Ok(LastYear { run, left_out, is_complete })
}

/// Returns whether a rule on this target reports single changes, which match at no later moment.
fn is_once(on: On) -> bool {
    matches!(on, On::Change(..) | On::Record(Resource::Burn | Resource::Buyback | Resource::Funding))
}

/// The facts that a replay treats as known from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InitialFacts {
    /// All current facts count as known from the start.
    CurrentFacts,
    /// Facts count from when they were recorded, except baselines of schedules, which count from the start.
    BaselinesFromStart,
}

fn history(histories: &[TokenHistory], known: InitialFacts, from: Timestamp, to: Timestamp) -> History {
    let mut history = History::default();
    for TokenHistory { token, feeds, versions } in histories {
        let (feeds, rows) = shift_times(feeds, versions, known, from);
        history.record(token, &feeds, rows, from, to);
    }
    history.sort();
    history
}

/// Returns feeds and versions with the times at which the replay reads them.
fn shift_times(
    feeds: &[(Endpoint, FeedState)],
    versions: &[VersionRow],
    known: InitialFacts,
    from: Timestamp,
) -> (Vec<(Endpoint, FeedState)>, Vec<VersionRow>) {
    let is_moved = |resource: Option<Resource>| match known {
        InitialFacts::CurrentFacts => true,
        InitialFacts::BaselinesFromStart => matches!(resource, Some(Resource::Unlock | Resource::Allocation)),
    };
    let baseline = |resource: Resource| {
        let own = feeds.iter().filter(|(endpoint, _)| endpoint.is_per_token() && endpoint.resource() == Some(resource));
        own.filter_map(|(_, feed)| feed.baseline_at).min()
    };
    let moved = feeds.iter().map(|(endpoint, feed)| {
        let mut feed = feed.clone();
        if is_moved(endpoint.resource()) {
            feed.baseline_at = feed.baseline_at.map(|at| at.min(from));
        }
        (*endpoint, feed)
    });
    let rows = versions.iter().cloned().map(|mut row| {
        let is_first = known == InitialFacts::CurrentFacts || baseline(row.resource).is_some_and(|at| row.at <= at);
        if is_moved(Some(row.resource)) && is_first {
            row.at = row.at.min(from);
        }
        row
    });
    (moved.collect(), rows.collect())
}

#[cfg(test)]
mod tests;
