//! Builds the app from a config that was checked.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use super::{App, AppError, DeadMansSwitch, Drive, FilesAtWork, SelfAlerts, standby};
use crate::cycle;
use crate::dispatch::Dispatcher;
use crate::kept_clock::KeptClock;
use crate::ledger::Ledger;
use crate::live::{Live, LiveConfig};
use crate::metrics::Metrics;
use crate::outbox::{Outbox, OutboxDeps, ReceiverSender};
use crate::place::place_of;
use crate::readiness::{Readiness, RuleLoad};
use crate::reload::{self, GoodFiles};
use crate::systemd;
use model::config::{Config, DeliverySettings};
use model::{BoxFuture, Clock, SourceText, Timestamp, text::error_chain};
use rules::RuleSet;
use source::{Client, Tuning};
use store::{Access, Store};

/// No step of bringing a database up to date takes longer than this.
const LONGEST_STEP: Duration = Duration::from_secs(300);

/// Tells how far a database of an older version is brought up to date: systemd at each hundredth, the log at each tenth.
fn tell_packing(done: usize, of: usize) {
    let parts = |done: usize, parts: usize| done * parts / of.max(1);
    if done > 0 && parts(done, 100) == parts(done - 1, 100) {
        return;
    }
    let percent = parts(done, 100);
    systemd::starting(&format!("packing the schedules of the database, once: {percent} %"), LONGEST_STEP);
    if percent % 10 == 0 {
        tracing::info!(done, of, "packing the schedules of the database: {percent} %");
    }
}

impl App {
    /// Builds everything from a config that was checked. `base_dir` is where its relative paths begin.
    /// Fails where something of it cannot be had. Rule files with errors do so only where no good rules are remembered from
    /// before.
    pub fn open(config: Config, base_dir: &Path, clock: Clock, drive: Drive) -> BoxFuture<'_, Result<Self, AppError>> {
        Self::open_tuned(config, base_dir, clock, drive, Tuning::default(), None)
    }

    /// As [`Self::open`] on a copy of the database, with the quota of the true one, so that both together keep within it.
    pub fn open_copy(config: Config, base_dir: &Path, clock: Clock, quota: Store) -> BoxFuture<'_, Result<Self, AppError>> {
        Self::open_tuned(config, base_dir, clock, Drive::Crank, Tuning::default(), Some(quota))
    }

    /// As both, with the waits of the client made short.
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
            let store = open_store(&config, &clock, drive).await?;
            let now = resume_clock(&store, &clock).await?;
            let source = config.source.clone();
            let delivery = config.delivery.clone();
            let switch = DeadMansSwitch::of(&config.http)?;

            let StartRules { config, rules, problem, files, load } = StartRules::read(config, base_dir, &store, now).await?;
            let metrics = Arc::new(Metrics::default());
            metrics.set_started(now);
            metrics.set_reload(problem.is_none());
            metrics.set_active(store.is_active());
            let readiness = readiness(now, load, &files, rules.rules.len(), problem);
            let live = LiveConfig::build(config, rules).await.map_err(|problems| AppError::Config(problems.join("; ")))?;
            let live = Arc::new(ArcSwap::from_pointee(live));
            let ledger = Arc::new(Ledger::new(quota.unwrap_or_else(|| store.clone()), live.clone(), clock.clone()));
            let api = Client::with_tuning(&source, clock.clone(), tuning, ledger.clone())?;
            let outbox = Arc::new(outbox(&store, &live, &metrics, (&clock, delivery), drive));
            let deps = Arc::new(cycle::Deps {
                live,
                source,
                store,
                api,
                ledger,
                outbox,
                metrics,
                clock: clock.clone(),
                reevaluate: AtomicBool::new(true),
                kept_clock: KeptClock::default(),
                totals: Mutex::default(),
                stopping: CancellationToken::new(),
                turn: tokio::sync::Mutex::new(()),
                reading: cycle::Reading::default(),
            });
            let app = Self {
                alerts: SelfAlerts::new(deps.clone(), clock.clone(), readiness.clone()),
                deps,
                readiness,
                clock,
                base_dir: base_dir.to_owned(),
                schedule: OnceLock::new(),
                reach: OnceLock::new(),
                origin: None,
                files: tokio::sync::Mutex::new(files),
                switch,
            };
            if app.store().is_active() {
                app.alerts.receivers_removed().await;
            }
            Ok(app)
        })
    }
}

/// Opens the database. A daemon waits for a server that is not there yet; whoever turns the crank takes the lease at once, or fails.
async fn open_store(config: &Config, clock: &Clock, drive: Drive) -> Result<Store, AppError> {
    let place = place_of(&config.store)?;
    let store = match drive {
        Drive::Itself => standby::open_patiently(place, clock, tell_packing).await,
        Drive::Crank => Store::open_telling(place, Access::Own, clock.now(), tell_packing).await,
    };
    let store = store.map_err(|source| AppError::Store { doing: "open the database", source })?;
    if drive == Drive::Crank {
        standby::take_at_once(&store).await?;
    }
    Ok(store)
}

/// How ready an app is that has just read its rules: those of the last good files go on where there is a `problem` with them.
fn readiness(now: Timestamp, load: RuleLoad, files: &FilesAtWork, rules: usize, problem: Option<String>) -> Readiness {
    let readiness = Readiness::starting(now);
    readiness.rules_read(load);
    readiness.texts_at_work(files.good.texts.clone());
    match problem {
        None => readiness.rules_loaded(now, rules),
        Some(problem) => {
            tracing::error!("the rule files have errors: the rules of the last good files go on working\n{problem}");
            readiness.reload_failed(now, problem);
        }
    }
    readiness
}

/// Who delivers.
fn outbox(
    store: &Store,
    live: &Arc<Live>,
    metrics: &Arc<Metrics>,
    (clock, delivery): (&Clock, DeliverySettings),
    drive: Drive,
) -> Outbox {
    let receivers = live.load().receivers.clone();
    let deps = OutboxDeps {
        store: Arc::new(store.clone()),
        dispatcher: Some(Arc::new(Dispatcher::new(store.clone(), live.clone()))),
        sender: Arc::new(ReceiverSender { receivers, store: store.clone() }),
        announce: Arc::new(super::self_alerts::OutboxAnnouncer { live: live.clone() }),
        metrics: Some(metrics.clone()),
        clock: clock.clone(),
        delivery,
    };
    match drive {
        // Of several instances only the active one delivers: see `standby`.
        Drive::Itself if store.is_shared() => Outbox::waiting(deps),
        Drive::Itself => Outbox::start(deps),
        Drive::Crank => Outbox::idle(deps),
    }
}

/// Has the clock go on from the time that was last borne out. Gives the time now.
pub(super) async fn resume_clock(store: &Store, clock: &Clock) -> Result<Timestamp, AppError> {
    let kept = store.kept_clock().await.map_err(|source| AppError::Store { doing: "read the time that was kept", source })?;
    if let Some(kept) = kept {
        clock.resume(&kept);
    }
    Ok(clock.now())
}

/// The rules to begin with.
struct StartRules {
    config: Config,
    rules: RuleSet,
    /// What is wrong with the files, where the rules are those of the last good ones.
    problem: Option<String>,
    files: FilesAtWork,
    /// The files as they are.
    load: RuleLoad,
}

impl StartRules {
    /// The rules of the files; where those have errors, the rules of the last good files, with the problem.
    async fn read(config: Config, base_dir: &Path, store: &Store, now: Timestamp) -> Result<Self, AppError> {
        let remembered =
            store.good_rules().await.map_err(|source| AppError::Store { doing: "read the last good rules", source })?;
        let mut good = remembered.map(|json| good_files(&json, &config)).unwrap_or_default();
        let base_dir = base_dir.to_owned();
        let reading = tokio::task::spawn_blocking(move || {
            // Before they are read: what changes meanwhile is read again.
            let fingerprint = reload::fingerprint(&config, None, &base_dir);
            let read = reload::read_files(&config, &mut good, &base_dir, now);
            (config, FilesAtWork { fingerprint, good }, read)
        });
        let (config, mut files, read) =
            reading.await.map_err(|error| AppError::Rules(format!("the files could not be read: {error}")))?;
        let load = RuleLoad { at: now, diagnostics: read.diagnostics.clone(), texts: read.texts.clone(), outcomes: None };
        let Some(problem) = read.problem else {
            for diagnostic in &read.diagnostics {
                tracing::warn!(file = %diagnostic.file.display(), "{}", diagnostic.message);
            }
            files.good = GoodFiles { paths: config.rules.paths.clone(), texts: read.texts, ..GoodFiles::default() };
            if store.is_active() {
                remember_good_rules(store, &files.good).await;
            }
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

/// The rule files that were good when they were last read, with the patterns that named them; an older version kept no patterns.
fn good_files(json: &str, config: &Config) -> GoodFiles {
    type Texts = Vec<(PathBuf, String)>;
    let kept = serde_json::from_str::<(Vec<String>, Texts)>(json);
    let (paths, texts) = kept.unwrap_or_else(|_| (config.rules.paths.clone(), serde_json::from_str(json).unwrap_or_default()));
    let texts = texts.into_iter().map(|(file, text)| SourceText { file, text }).collect();
    GoodFiles { paths, texts, ..GoodFiles::default() }
}

/// Keeps the texts of rules that are good, for a start at which the files are not.
pub(crate) async fn remember_good_rules(store: &Store, good: &GoodFiles) {
    let pairs: Vec<(&PathBuf, &str)> = good.texts.iter().map(|source| (&source.file, source.text.as_str())).collect();
    let json = serde_json::to_string(&(&good.paths, pairs)).unwrap_or_default();
    if let Err(error) = store.keep_good_rules(json).await {
        tracing::warn!(error = error_chain(&error), "cannot remember the good rules for the next start");
    }
}
