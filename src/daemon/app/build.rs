//! Builds the app from a checked config.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use super::{ActiveFiles, App, AppError, DeadMansSwitch, Drive, SelfAlerts, ServeWaiting, database_outage, standby};
use crate::cycle;
use crate::database_url::database_of;
use crate::digest_positions::DigestPositions;
use crate::dispatch::Dispatcher;
use crate::ledger::Ledger;
use crate::live::{Live, LiveConfig};
use crate::metrics::Metrics;
use crate::outbox::{Outbox, OutboxDeps, ReceiverSender};
use crate::readiness::{Readiness, RuleLoad};
use crate::reload::{self, GoodFiles};
use crate::saved_clock::SavedClock;
use crate::systemd::LongWait;
use model::config::{Config, DeliverySettings};
use model::{BoxFuture, Clock, SourceText, Timestamp, text::error_chain};
use rules::RuleSet;
use source::{Client, Tuning};
use store::{Access, Store};

impl App {
    /// Builds the app from a checked config. Relative paths start from `base_dir`.
    ///
    /// # Errors
    ///
    /// Fails if a part cannot be built. Rule files with errors are fatal only if no valid rules are stored from before.
    pub fn open(config: Config, base_dir: &Path, clock: Clock, drive: Drive) -> BoxFuture<'_, Result<Self, AppError>> {
        Self::open_tuned(config, base_dir, clock, drive, Tuning::default(), None)
    }

    /// Like [`Self::open`] with a schedule. While the database server cannot be reached, `serve` responds to requests at the address of
    /// the web pages.
    pub fn open_daemon(
        config: Config,
        base_dir: &Path,
        clock: Clock,
        serve: ServeWaiting,
    ) -> BoxFuture<'_, Result<Self, AppError>> {
        Box::pin(async move {
            let store = database_outage::open_when_reachable(&config, base_dir, &clock, Some(serve)).await?;
            Self::build(store, config, base_dir, clock, Drive::Schedule, Tuning::default(), None).await
        })
    }

    /// Like [`Self::open`], but on a copy of the database, with the credits of the original, so that both together stay within
    /// the quota.
    pub fn open_copy(config: Config, base_dir: &Path, clock: Clock, quota: Store) -> BoxFuture<'_, Result<Self, AppError>> {
        Self::open_tuned(config, base_dir, clock, Drive::Manual, Tuning::default(), Some(quota))
    }

    /// Opens the app like [`Self::open`], or like [`Self::open_copy`] if `quota` is given, with the waits of the client shortened for
    /// tests.
    #[doc(hidden)]
    pub fn open_tuned(
        config: Config,
        base_dir: &Path,
        clock: Clock,
        drive: Drive,
        tuning: Tuning,
        quota: Option<Store>,
    ) -> BoxFuture<'_, Result<Self, AppError>> {
        Box::pin(async move {
            let store = open_store(&config, base_dir, &clock, drive).await?;
            Self::build(store, config, base_dir, clock, drive, tuning, quota).await
        })
    }

    fn build(
        store: Store,
        config: Config,
        base_dir: &Path,
        clock: Clock,
        drive: Drive,
        tuning: Tuning,
        quota: Option<Store>,
    ) -> BoxFuture<'_, Result<Self, AppError>> {
        Box::pin(async move {
            let _wait = (drive == Drive::Schedule).then(LongWait::begin);
            let now = resume_clock(&store, &clock).await?;
            if store.is_active() {
                standby::restart_future_waits(&store, &clock).await;
            }
            let source = config.source.clone();
            let delivery = config.delivery.clone();
            let switch = DeadMansSwitch::from_config(&config.http)?;

            let StartRules { config, rules, problem, files, load } = StartRules::read(config, base_dir, &store, now).await?;
            let metrics = Arc::new(Metrics::default());
            metrics.set_started(now);
            metrics.set_reload(problem.is_none());
            metrics.set_active(store.is_active());
            let readiness = readiness(now, load, &files, rules.rules.len(), problem);
            let live = LiveConfig::build(config, rules).await.map_err(|problems| AppError::Config(problems.join("; ")))?;
            if let Some(problem) = reload::start_positions(&live, &store).await {
                metrics.set_reload(false);
                readiness.set_reload_failed(now, problem);
            }
            let live = Arc::new(ArcSwap::from_pointee(live));
            let quota = quota.unwrap_or_else(|| store.clone());
            let ledger = Arc::new(Ledger::new(quota, source.key(), live.clone(), clock.clone()));
            let api = Client::with_tuning(&source, clock.clone(), tuning, ledger.clone())?;
            let outbox = Arc::new(outbox(&store, &live, &metrics, (&clock, delivery), drive));
            let deps = Arc::new(cycle::Deps {
                live,
                source,
                store,
                api,
                poll_thread: cycle::PollThread::start().map_err(AppError::PollThread)?,
                ledger,
                outbox,
                metrics,
                clock: clock.clone(),
                latest_evaluation: cycle::LatestEvaluation::default(),
                listed_schedules: cycle::ListedSchedulesCache::default(),
                reevaluate: AtomicBool::new(true),
                saved_clock: SavedClock::default(),
                totals: Mutex::default(),
                stopping: CancellationToken::new(),
                committed_inputs: AtomicU64::new(0),
                batch_lock: tokio::sync::Mutex::new(()),
                running_cycles: cycle::RunningCycles::default(),
                progress: cycle::Progress::default(),
                rejected_pages: cycle::RejectedPages::default(),
                unreadable_tokens: cycle::UnreadableTokens::default(),
            });
            let app = Self {
                alerts: SelfAlerts::new(deps.clone(), clock.clone(), readiness.clone()),
                deps,
                readiness,
                clock,
                base_dir: base_dir.to_owned(),
                schedule: OnceLock::new(),
                mirror_scope: OnceLock::new(),
                origin: None,
                files: tokio::sync::Mutex::new(files),
                switch,
            };
            app.receivers_changed().await;
            Ok(app)
        })
    }
}

/// Opens the database. A daemon waits for a server that is not reachable yet. A command takes the lease at once or fails.
async fn open_store(config: &Config, base_dir: &Path, clock: &Clock, drive: Drive) -> Result<Store, AppError> {
    if drive == Drive::Schedule {
        return database_outage::open_when_reachable(config, base_dir, clock, None).await;
    }
    let store = Store::open_in(database_of(&config.store)?, Access::Own, clock.now()).await;
    let store = store.map_err(|source| AppError::Store { doing: "open the database", source })?;
    standby::take_lease(&store).await?;
    Ok(store)
}

/// Returns the readiness after the first read of the rules. With a `problem`, the last valid rules are active.
fn readiness(now: Timestamp, load: RuleLoad, files: &ActiveFiles, rules: usize, problem: Option<String>) -> Readiness {
    let readiness = Readiness::starting(now);
    readiness.set_last_load(load);
    readiness.set_texts(files.good.texts.clone());
    match problem {
        None => readiness.set_rules_loaded(now, rules, &files.good.paths),
        Some(problem) => {
            tracing::error!("rule files have errors; keeping the last valid rules\n{problem}");
            readiness.set_reload_failed(now, problem);
        }
    }
    readiness
}

fn outbox(
    store: &Store,
    live: &Arc<Live>,
    metrics: &Arc<Metrics>,
    (clock, delivery): (&Clock, DeliverySettings),
    drive: Drive,
) -> Outbox {
    let active = live.load_full();
    let (receivers, positions) = (active.receivers.clone(), DigestPositions::of(&active.watch, &active.policy.digests));
    let deps = OutboxDeps {
        store: Arc::new(store.clone()),
        dispatcher: Some(Arc::new(Dispatcher::new(store.clone(), live.clone()))),
        sender: Arc::new(ReceiverSender { receivers, store: store.clone(), positions }),
        live: live.clone(),
        metrics: Some(metrics.clone()),
        clock: clock.clone(),
        delivery,
    };
    match drive {
        // If instances share the database, only the active one delivers: see `standby`.
        Drive::Schedule if store.is_shared() => Outbox::waiting(deps),
        Drive::Schedule => Outbox::start(deps),
        Drive::Manual => Outbox::idle(deps),
    }
}

/// Resumes the clock from the last time that this machine confirmed, and returns the current time.
async fn resume_clock(store: &Store, clock: &Clock) -> Result<Timestamp, AppError> {
    let saved = store.saved_clock().await.map_err(|source| AppError::Store { doing: "read the saved time", source })?;
    if let Some(saved) = saved {
        clock.resume(&saved);
    }
    Ok(clock.now())
}

/// The rules at the start of the daemon.
struct StartRules {
    config: Config,
    rules: RuleSet,
    /// The errors in the files. `None` if the files are valid; otherwise `rules` are the last valid ones.
    problem: Option<String>,
    files: ActiveFiles,
    /// The result of reading the files, valid or not.
    load: RuleLoad,
}

impl StartRules {
    /// Reads the rule files, or falls back to the last valid ones if the files have errors.
    async fn read(config: Config, base_dir: &Path, store: &Store, now: Timestamp) -> Result<Self, AppError> {
        let stored = store.good_rules().await.map_err(|source| AppError::Store { doing: "read the last valid rules", source })?;
        let mut good = stored.map(|json| good_files(&json, &config)).unwrap_or_default();
        let base_dir = base_dir.to_owned();
        let reading = tokio::task::spawn_blocking(move || {
            // Taken before reading, so that a change during the read triggers a reload.
            let fingerprint = reload::fingerprint(&config, None, &base_dir);
            let read = reload::read_files(&config, &mut good, &base_dir, now);
            (config, ActiveFiles { fingerprint, good }, read)
        });
        let (config, mut files, read) =
            reading.await.map_err(|error| AppError::Rules(format!("the files could not be read: {error}")))?;
        let load = RuleLoad { at: now, diagnostics: read.diagnostics.clone(), texts: read.texts.clone(), outcomes: None };
        let Some(problem) = read.problem else {
            for diagnostic in &read.diagnostics {
                tracing::warn!(file = %diagnostic.file.display(), "{}", diagnostic.message);
            }
            files.good = GoodFiles { paths: config.rules.paths.clone(), texts: read.texts, ..GoodFiles::default() };
            remember_good_rules(store, &files.good).await;
            return Ok(Self { config, rules: read.set, problem: None, files, load });
        };
        let problem = problem.full;
        let before = reload::compile(&config, files.good.texts.clone(), Vec::new(), now);
        if files.good.texts.is_empty() || before.problem.is_some() {
            return Err(AppError::Rules(problem));
        }
        Ok(Self { config, rules: before.set, problem: Some(problem), files, load })
    }
}

/// Parses the stored texts of the last valid rule files, with their patterns. Older versions stored no patterns.
fn good_files(json: &str, config: &Config) -> GoodFiles {
    type Texts = Vec<(PathBuf, String)>;
    let stored = serde_json::from_str::<(Vec<String>, Texts)>(json);
    let (paths, texts) = stored.unwrap_or_else(|_| (config.rules.paths.clone(), serde_json::from_str(json).unwrap_or_default()));
    let texts = texts.into_iter().map(|(file, text)| SourceText { file, text }).collect();
    GoodFiles { paths, texts, ..GoodFiles::default() }
}

/// Stores the texts of valid rule files, for a later start with files that have errors.
pub(crate) async fn remember_good_rules(store: &Store, good: &GoodFiles) {
    let pairs: Vec<(&PathBuf, &str)> = good.texts.iter().map(|source| (&source.file, source.text.as_str())).collect();
    let json = serde_json::to_string(&(&good.paths, pairs)).unwrap_or_default();
    // A standby leaves the rules of the active instance there.
    if !store.is_active() {
        return;
    }
    if let Err(error) = store.save_good_rules(json).await {
        tracing::warn!(error = error_chain(&error), "cannot store the valid rules for the next start");
    }
}
