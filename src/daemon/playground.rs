//! A rule tried out beside the daemon: what is wrong with it, what it matches now, and what it would have sent over the last year.
//!
//! The text goes through the checker, the evaluator and the backtest that rule files go through, over what the database recorded. Nothing
//! is saved and nothing is sent. [`try_out`] reads from the store and then works on a thread beside the runtime; it is bounded in text,
//! in time and in what it keeps, and only one runs at once ([`Playground`]).
//!
//! A database is often younger than a year. What its first sight of a schedule was is then played as if it had been known all the year:
//! of unlocks and allocations that is what an operator wants to see. Burns, buybacks and rounds are played as they were recorded.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::live::LiveConfig;
use crate::reload::{self, ReadFiles};
use engine::diff;
use engine::route::RouteTree;
use model::config::StoreSettings;
use model::{Diagnostic, Endpoint, FeedState, Resource, SourceText, Timestamp, Token, TokenId, VersionRow, Watch};
use rules::{On, Rule, RuleSet};
use store::{Store, StoreError};
use tools::backtest::{self, BacktestNotification, BacktestRun, BacktestSetup, BacktestSummary, History};
use tools::simulate::{DeliverySetup, Pace};

/// Largest text, bytes.
pub const MAX_TEXT: usize = 32 * 1024;
/// Rules of one text.
const MAX_RULES: usize = 20;
/// What is played.
const SPAN: TimeDelta = TimeDelta::days(365);
/// For a whole request: what is not bounded by these two takes a part of it.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Notifications and messages that are kept of a run; more are counted.
const MAX_KEPT: usize = 5_000;
/// How often conditions that read the clock are looked at in the past.
const LOOK_EVERY: TimeDelta = TimeDelta::hours(6);
/// The longest `for` that is waited out to see what matches now.
const MAX_HOLD: TimeDelta = TimeDelta::days(30);

/// How long the database is read at most, and how long is played at most.
#[derive(Clone, Copy, Debug)]
pub struct TrialTime {
    pub read: Duration,
    pub play: Duration,
}

impl TrialTime {
    /// As long as somebody waits for a page.
    const OF_A_PAGE: Self = Self { read: Duration::from_secs(5), play: Duration::from_secs(10) };
}

/// What is around rules that are tried.
#[derive(Clone, Copy, Debug)]
pub struct TrialWorld<'a> {
    pub watch: &'a Watch,
    pub routes: &'a RouteTree,
    pub settings: &'a StoreSettings,
}

impl<'a> TrialWorld<'a> {
    fn setup(&self, rules: &'a RuleSet, delivery: &'a DeliverySetup) -> BacktestSetup<'a> {
        // What was recorded was proven when it was recorded.
        let tolerance = self.settings.tolerance;
        let diff = diff::Settings { tolerance, removal_confirmations: 1, hold: diff::Hold::Accepted };
        let pace = Pace { diff, look_every: LOOK_EVERY, poll_every: Some(TimeDelta::minutes(1)) };
        BacktestSetup { rules, routes: self.routes, delivery, watch: self.watch, pace }
    }
}

impl LiveConfig {
    fn trial_world(&self) -> TrialWorld<'_> {
        TrialWorld { watch: &self.watch, routes: &self.active.routes, settings: &self.config.store }
    }
}

/// Lets one rule be tried at once.
#[derive(Clone, Debug)]
pub struct Playground(Arc<Semaphore>);

impl Default for Playground {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// The leave to try one, as long as it is kept.
#[derive(Debug)]
pub struct TrialPermit {
    _permit: OwnedSemaphorePermit,
}

impl Playground {
    /// The leave to try a rule; none while another is tried.
    pub fn turn(&self) -> Option<TrialPermit> {
        self.0.clone().try_acquire_owned().ok().map(|_permit| TrialPermit { _permit })
    }
}

/// What came of a text.
#[derive(Debug)]
pub struct Trial {
    pub source: SourceText,
    /// Everything that is wrong with it, or odd.
    pub diagnostics: Vec<Diagnostic>,
    /// What the rules did; none where the text is wrong.
    pub outcome: Option<TrialOutcome>,
}

#[derive(Debug)]
pub struct TrialOutcome {
    /// What fires now, the nearest decided last.
    pub matches: Vec<Arc<BacktestNotification>>,
    /// Rules that can match nothing now, since they tell what happens, once.
    pub is_once: bool,
    /// What would have been sent.
    pub run: BacktestRun,
    pub summary: BacktestSummary,
    /// Since when the database knows any of it.
    pub recorded_since: Option<Timestamp>,
    /// Tokens that could not be read in time, of how many.
    pub left_out: (usize, usize),
    /// The end of what was to be played.
    pub until: Timestamp,
}

/// What a rule is tried against: one token as the database has it.
#[derive(Debug)]
struct TokenHistory {
    token: Token,
    feeds: Vec<(Endpoint, FeedState)>,
    versions: Vec<VersionRow>,
}

/// Tries a text. Fails where the database cannot be read.
pub async fn try_out(
    store: &Store,
    live: Arc<LiveConfig>,
    text: String,
    now: Timestamp,
    turn: TrialPermit,
) -> Result<Trial, StoreError> {
    let compiling = (live.clone(), SourceText { file: "playground.toml".into(), text });
    let compiled = tokio::task::spawn_blocking(move || compile(&compiling.0, compiling.1, now)).await;
    let (source, diagnostics, set) = match compiled {
        Ok(compiled) => compiled,
        Err(error) => {
            tracing::error!(%error, "a rule could not be tried");
            let source = SourceText { file: "playground.toml".into(), text: String::new() };
            let problem = Diagnostic::error(&source.file, None, "the text could not be checked; the log says why");
            return Ok(Trial { source, diagnostics: vec![problem], outcome: None });
        }
    };
    let Some(set) = set else { return Ok(Trial { source, diagnostics, outcome: None }) };
    let begun = Instant::now();
    let world = live.trial_world();
    let (histories, left_out) = read(store, &world, &set, TrialTime::OF_A_PAGE).await?;
    let read_in = begun.elapsed();
    let (silences, acks) = (store.silences(None).await?, store.acks().await?);
    let playing = tokio::task::spawn_blocking(move || {
        // Kept until the thread is done, also where whoever asked has gone.
        let _turn = turn;
        // Digests tell of more than these rules.
        let policy = engine::pipeline::DispatchPolicy { digests: Vec::new(), ..live.policy.clone() };
        let delivery = DeliverySetup { silences, acks, ..DeliverySetup::of(policy) };
        play(&histories, &live.trial_world(), &set, &delivery, left_out, now)
    });
    let outcome = playing.await.map_err(|error| tracing::error!(%error, "a rule could not be tried")).ok();
    tracing::debug!(read_ms = read_in.as_millis(), took_ms = begun.elapsed().as_millis(), "a rule was tried");
    Ok(Trial { source, diagnostics, outcome })
}

/// The rules of a text; none where it is wrong.
fn compile(live: &LiveConfig, source: SourceText, now: Timestamp) -> (SourceText, Vec<Diagnostic>, Option<RuleSet>) {
    let ReadFiles { set, mut diagnostics, problem, .. } = reload::compile(&live.config, vec![source.clone()], Vec::new(), now);
    let is_good = problem.is_none();
    if is_good && set.rules.is_empty() {
        let message = "there is no rule that is enabled";
        diagnostics
            .push(Diagnostic::error(&source.file, None, message).help("write `[[rule]]`, and below it `alert = …`, `on = …`"));
    } else if set.rules.len() > MAX_RULES {
        let message = format!("there are {} rules: at most {MAX_RULES} are tried at once", set.rules.len());
        diagnostics.push(Diagnostic::error(&source.file, None, message));
    }
    let is_usable = is_good && !set.rules.is_empty() && set.rules.len() <= MAX_RULES;
    (source, diagnostics, is_usable.then_some(set))
}

/// The tokens that the rules look at, as far as the time reaches, and how many were left out of how many.
async fn read(
    store: &Store,
    world: &TrialWorld<'_>,
    set: &RuleSet,
    time: TrialTime,
) -> Result<(Vec<TokenHistory>, (usize, usize)), StoreError> {
    let begun = Instant::now();
    let resources = Resource::ALL.to_vec();
    // A rule on a group, and one that asks for a share of one, looks at all tokens.
    let is_wide = |rule: &Rule| rule.on == On::Portfolio || !rule.shares().is_empty();
    let mut histories = Vec::new();
    let ids: Vec<TokenId> = store.token_ids(false).await?.into_iter().filter(|id| world.watch.covers(id)).collect();
    for (index, id) in ids.iter().enumerate() {
        if begun.elapsed() >= time.read {
            return Ok((histories, (ids.len() - index, ids.len())));
        }
        let Some(snapshot) = store.tokens(vec![id.clone()], Vec::new()).await?.into_iter().next() else { continue };
        let token = world.watch.placed(snapshot.token);
        if !set.rules.iter().any(|rule| is_wide(rule) || rule.lets_in(&token)) {
            continue;
        }
        let mut versions = store.versions(id.clone()).await?;
        versions.retain(|row| resources.iter().any(|resource| *resource == row.resource && set.hears(*resource)));
        histories.push(TokenHistory { token, feeds: snapshot.feeds, versions });
    }
    Ok((histories, (0, ids.len())))
}

fn play(
    histories: &[TokenHistory],
    world: &TrialWorld<'_>,
    set: &RuleSet,
    delivery: &DeliverySetup,
    left_out: (usize, usize),
    now: Timestamp,
) -> TrialOutcome {
    let setup = world.setup(set, delivery);
    let begun = Instant::now();
    let is_in_time =
        |_: f64| if begun.elapsed() < TrialTime::OF_A_PAGE.play { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };

    let hold = set.rules.iter().map(|rule| rule.hold).max().unwrap_or_default().clamp(TimeDelta::zero(), MAX_HOLD);
    let from = now - hold - TimeDelta::minutes(10);
    let present = backtest::run_within(&history(histories, Known::AsNow, from, now), &setup, (from, now), MAX_KEPT, is_in_time);
    let ended: HashSet<&str> =
        present.notifications.iter().filter(|told| told.is_end()).map(|told| told.alert.as_str()).collect();
    let mut seen = HashSet::new();
    let fires = present.notifications.iter().filter(|told| !ended.contains(told.alert.as_str()));
    let matches = fires.filter(|told| seen.insert(told.alert.clone())).cloned().collect();

    let from = now - SPAN;
    let run = of_last_year(histories, &setup, now, is_in_time);
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

fn of_last_year(
    histories: &[TokenHistory],
    setup: &BacktestSetup<'_>,
    now: Timestamp,
    is_in_time: impl FnMut(f64) -> ControlFlow<()>,
) -> BacktestRun {
    let from = now - SPAN;
    backtest::run_within(&history(histories, Known::FromTheStart, from, now), setup, (from, now), MAX_KEPT, is_in_time)
}

/// What rules would have sent over the last year, without what they match now.
#[derive(Debug)]
pub struct LastYear {
    pub run: BacktestRun,
    /// Tokens that could not be read in time, of how many.
    pub left_out: (usize, usize),
    /// Whether all of the year was played.
    pub is_whole: bool,
}

/// Plays rules over the last year as the database recorded it, with nothing silenced, for as long as `time` allows. Fails where the
/// database cannot be read.
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
    let begun = Instant::now();
    let is_in_time = |_: f64| if begun.elapsed() < time.play { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let run = of_last_year(&histories, &world.setup(set, &delivery), now, is_in_time);
    let is_whole = run.to >= now && run.uncounted == 0 && left_out.0 == 0;
    Ok(LastYear { run, left_out, is_whole })
}

/// Whether a rule tells what happens once, and so matches nothing at any one moment.
fn is_once(on: On) -> bool {
    matches!(on, On::Change(..) | On::Record(Resource::Burn | Resource::Buyback | Resource::Funding))
}

/// What of the past a run is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// What stands now, as if it had stood from the first instant.
    AsNow,
    /// What was recorded; and from the first instant what the first sight of a schedule brought.
    FromTheStart,
}

fn history(histories: &[TokenHistory], known: Known, from: Timestamp, to: Timestamp) -> History {
    let mut history = History::default();
    for TokenHistory { token, feeds, versions } in histories {
        let (feeds, rows) = as_if(feeds, versions, known, from);
        history.record(token, &feeds, rows, from, to);
    }
    history.sort();
    history
}

/// Feeds and versions with the times at which a run is to learn of them.
fn as_if(
    feeds: &[(Endpoint, FeedState)],
    versions: &[VersionRow],
    known: Known,
    from: Timestamp,
) -> (Vec<(Endpoint, FeedState)>, Vec<VersionRow>) {
    let is_moved = |resource: Option<Resource>| match known {
        Known::AsNow => true,
        Known::FromTheStart => matches!(resource, Some(Resource::Unlock | Resource::Allocation)),
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
        let is_first = known == Known::AsNow || baseline(row.resource).is_some_and(|at| row.at <= at);
        if is_moved(Some(row.resource)) && is_first {
            row.at = row.at.min(from);
        }
        row
    });
    (moved.collect(), rows.collect())
}

#[cfg(test)]
mod tests;
