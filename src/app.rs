//! Builds everything from the config, starts it, turns it by hand where asked to, stops it in reverse order.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::TimeDelta;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    alert::{Alert, Notice, SOURCE_TROUBLE},
    api::{Client, ClientError, Tuning},
    clock::Clock,
    config::Config,
    cycle::{self, CycleError, CycleReport, Judgement, Setup, run_cycle},
    diagnostic::SourceText,
    digest,
    dispatch::{self, Dispatcher},
    evaluate::Context,
    http::{self, Audience, Health},
    metrics::{Metrics, OutboxLevel},
    notify::Receivers,
    outbox::{Announce, Carrier, DeliveryReport, Down, Meter, Outbox, OutboxDeps},
    reload::{self, Origin},
    route::{RouteTree, Sections},
    rules::RuleSet,
    schedule::{self, Job, Run, Schedule},
    serve,
    slot::Slots,
    store::{
        Access, Opening, Store, StoreError,
        model::{DeliveryState, DueDelivery},
    },
    supply::{DeliveryId, Endpoint, ReceiverName, RuleId, Timestamp},
    systemd::{self, Progress},
    trouble,
    watch::Watch,
};

/// How long runs in hand may take once we are to stop.
const STOP_RUNS: Duration = Duration::from_secs(60);
/// How long deliveries under way may take once we are to stop.
const STOP_DELIVERIES: Duration = Duration::from_secs(20);
/// How often the gauges are read from the database.
const REFRESH: Duration = Duration::from_secs(10);
/// How often what is old is cleared away.
const PRUNE: TimeDelta = TimeDelta::hours(6);
/// The dead man's switch is pinged no more often than this.
const PING_EVERY: TimeDelta = TimeDelta::seconds(30);

/// How long after a cycle the outbox may take to be drained, if the dead man's switch is to be pinged for it; and how often that is looked at.
const DRAIN_PATIENCE: Duration = Duration::from_secs(20);
const DRAIN_LOOK: Duration = Duration::from_millis(250);

/// How late a slot may be taken before the ticker counts as standing still.
const SLOT_PATIENCE: TimeDelta = TimeDelta::seconds(60);
/// How long a batch may take to be compared, judged and committed before it counts as hung.
const TURN_PATIENCE: Duration = Duration::from_secs(10);

/// What keeps the app from starting.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Rule files with errors, and no older rules to work with.
    #[error("the rules cannot be used:\n\n{0}")]
    Rules(String),
    /// The config, as far as it can only be found out by building from it.
    #[error("the config cannot be used: {0}")]
    Config(String),
    /// The database.
    #[error("cannot {doing}")]
    Store {
        /// What was attempted.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: StoreError,
    },
    /// The API client.
    #[error("cannot make the client of the API")]
    Client(#[from] ClientError),
    /// Our own address.
    #[error("cannot listen on {address}")]
    Listen {
        /// As configured.
        address: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The ticker.
    #[error("cannot start the schedule: {0}")]
    Schedule(String),
    /// The mirror.
    #[error("cannot open the mirror")]
    Mirror(#[from] serve::ServiceError),
    /// A cycle that the database ended.
    #[error(transparent)]
    Cycle(#[from] CycleError),
}

/// How the app moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// By its schedule, with a worker for each receiver.
    Itself,
    /// Only when [`App::tick`] and [`App::deliver`] turn it.
    Crank,
}

/// Everything, built and connected.
pub struct App {
    deps: Arc<cycle::Deps>,
    receivers: RwLock<Arc<Receivers>>,
    dispatcher: Arc<Dispatcher>,
    /// The ticker, once it runs, and what the mirror tells of; both follow a reload.
    schedule: OnceLock<Arc<Schedule>>,
    reach: OnceLock<serve::Reach>,
    /// Where the config is read from again; none where it came from no file.
    origin: Option<Origin>,
    health: Health,
    clock: Clock,
    base_dir: PathBuf,
    /// The next evaluation looks at everything: rules or groups may have changed.
    rejudge: Arc<AtomicBool>,
    /// The store cannot be written, and this was told.
    store_trouble: Mutex<Option<Alert>>,
    pinged_at: Mutex<Option<Timestamp>>,
    pinger: Option<reqwest::Client>,
    /// One reload at a time; with the fingerprint of the files as they were last read.
    files: tokio::sync::Mutex<u128>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("base_dir", &self.base_dir).finish_non_exhaustive()
    }
}

impl App {
    /// Builds everything from a config that was checked. `base_dir` is where its relative paths begin.
    ///
    /// # Errors
    /// Where something of it cannot be had. Rule files with errors do so only where no good rules are remembered from before.
    pub async fn open(config: Config, base_dir: &Path, clock: Clock, drive: Drive) -> Result<Self, AppError> {
        Self::open_tuned(config, base_dir, clock, drive, Tuning::default()).await
    }

    /// As [`Self::open`], with the waits of the client made short.
    ///
    /// # Errors
    /// As [`Self::open`].
    #[doc(hidden)]
    pub async fn open_tuned(
        config: Config,
        base_dir: &Path,
        clock: Clock,
        drive: Drive,
        tuning: Tuning,
    ) -> Result<Self, AppError> {
        let now = clock.now();
        let config = Arc::new(config);
        let store = Store::open(Opening { path: config.store.path.clone(), access: Access::Own, now })
            .await
            .map_err(|source| AppError::Store { doing: "open the database", source })?;
        let health = Health::starting(now);
        let metrics = Arc::new(Metrics::new());
        let Built { routes, receivers, terms, watch, slots } =
            Built::of(&config).map_err(|problems| AppError::Config(problems.join("; ")))?;
        let api = Client::with_tuning(&config.source, clock.clone(), tuning)?;

        // Before they are read: what changes meanwhile is read again.
        let files = reload::fingerprint(&config, None, base_dir);
        let (rules, problem) = usable_rules(&config, base_dir, &store, now).await?;
        match &problem {
            None => health.rules_loaded(now, u32::try_from(rules.rules.len()).unwrap_or(u32::MAX)),
            Some(problem) => health.reload_failed(now, problem.clone()),
        }
        metrics.set_reload(problem.is_none());
        if let Some(problem) = &problem {
            tracing::error!("the rule files have errors: the rules of the last good files go on working\n{problem}");
        }
        let judgement = Arc::new(RwLock::new(Arc::new(Judgement { rules, routes })));
        let dispatcher = Arc::new(Dispatcher::new(store.clone(), judgement.clone(), terms));
        let outbox_deps = OutboxDeps {
            ledger: Arc::new(store.clone()),
            dispatch: Some(dispatcher.clone()),
            transport: Arc::new(Carrier { receivers: receivers.clone(), store: store.clone() }),
            announce: Arc::new(Announcer { judgement: judgement.clone() }),
            meter: Arc::new(Counter { metrics: metrics.clone() }),
            clock: clock.clone(),
            delivery: config.delivery.clone(),
        };
        let outbox = Arc::new(match drive {
            Drive::Itself => Outbox::start(outbox_deps),
            Drive::Crank => Outbox::idle(outbox_deps),
        });
        let pinger = match config.http.dead_mans_switch.is_some() || config.http.dead_mans_switch_file.is_some() {
            true => Some(ping_client().map_err(|error| AppError::Config(format!("http.dead_mans_switch: {error}")))?),
            false => None,
        };
        let rejudge = Arc::new(AtomicBool::new(true));
        let source = config.source.clone();
        let deps = cycle::Deps {
            setup: RwLock::new(Arc::new(Setup { config, watch, slots })),
            source,
            store,
            api,
            judgement,
            outbox,
            metrics,
            rejudge: rejudge.clone(),
            book: Mutex::default(),
            turn: tokio::sync::Mutex::new(()),
        };
        Ok(Self {
            deps: Arc::new(deps),
            receivers: RwLock::new(receivers),
            dispatcher,
            schedule: OnceLock::new(),
            reach: OnceLock::new(),
            origin: None,
            health,
            clock,
            base_dir: base_dir.to_owned(),
            rejudge,
            store_trouble: Mutex::new(None),
            pinged_at: Mutex::new(None),
            pinger,
            files: tokio::sync::Mutex::new(files),
        })
    }

    /// Has a reload read the config again too, from where it came from.
    #[must_use]
    pub fn reading_again(mut self, origin: Origin) -> Self {
        let setup = self.deps.setup();
        *self.files.get_mut() = reload::fingerprint(&setup.config, Some(&origin), &self.base_dir);
        self.origin = Some(origin);
        self
    }

    /// The database.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.deps.store
    }

    /// Who is told.
    #[must_use]
    pub fn receivers(&self) -> Arc<Receivers> {
        self.receivers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a cycle works with.
    #[must_use]
    pub fn deps(&self) -> &Arc<cycle::Deps> {
        &self.deps
    }

    /// Runs a job now, as if its slot had come.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn tick(&self, job: Job) -> Result<CycleReport, CycleError> {
        let now = self.clock.now();
        run_cycle(&self.deps, job, now, now).await
    }

    /// Attempts every delivery that is due now, once.
    pub async fn deliver(&self) -> DeliveryReport {
        self.deps.outbox.deliver_due(self.clock.now()).await
    }

    /// The jobs that are on, in the order in which a single pass runs them.
    #[must_use]
    pub fn jobs(&self) -> Vec<Job> {
        self.deps.setup().slots.iter().map(|(job, _)| *job).collect()
    }

    /// Reads config and rule files again and puts them to work, all or nothing.
    ///
    /// # Errors
    /// Every problem of every file, for people. What was at work before goes on working.
    pub async fn reload(&self) -> Result<String, reload::Problem> {
        let mut files = self.files.lock().await;
        self.reload_from(&mut files).await
    }

    async fn reload_from(&self, files: &mut u128) -> Result<String, reload::Problem> {
        let now = self.clock.now();
        let at_work = self.deps.setup();
        let (origin, base_dir) = (self.origin.clone(), self.base_dir.clone());
        let read = tokio::task::spawn_blocking(move || {
            // Before they are read: what changes meanwhile is read again.
            let fingerprint = reload::fingerprint(&at_work.config, origin.as_ref(), &base_dir);
            (fingerprint, reload::read(&at_work.config, origin.as_ref(), &base_dir, now))
        });
        let mut read = match read.await {
            Ok((fingerprint, read)) => {
                *files = fingerprint;
                read
            }
            Err(error) => {
                tracing::error!(%error, "the changed files could not be read: what was at work goes on");
                return Err(reload::Problem::of_parts(None, &["the files could not be read: see the log".to_owned()]));
            }
        };
        let built = match read.problem.take() {
            Some(problem) => Err(problem),
            None => Built::of(&read.config)
                .map_err(|problems| reload::Problem::of_parts(self.origin.as_ref().map(|origin| &*origin.path), &problems)),
        };
        let open = self.open_trouble(trouble::RELOAD_SUBJECT).await;
        let built = match built {
            Ok(built) => built,
            Err(problem) => {
                self.health.reload_failed(now, problem.full.clone());
                self.deps.metrics.set_reload(false);
                tracing::error!("the changed files have errors: what was at work goes on\n{}", problem.full);
                if open.is_none() {
                    let episode = self.episode(trouble::RELOAD_SUBJECT).await;
                    let make = |context: &Context<'_>| {
                        trouble::reload_failed(problem.count, &problem.brief, &problem.owners, episode, context)
                    };
                    self.announce(make).await;
                }
                return Err(problem);
            }
        };
        let count = read.set.rules.len();
        if let Err(error) = self.deps.store.keep_good_rules(texts_json(&read.texts)).await {
            tracing::warn!(error = chain(&error), "cannot remember the good rules for the next start");
        }
        self.put_to_work(read.config, read.set, built).await;
        self.health.rules_loaded(now, u32::try_from(count).unwrap_or(u32::MAX));
        self.deps.metrics.set_reload(true);
        if let Some(open) = open {
            self.announce(|context| trouble::recovered(&open, context)).await;
        }
        let mut text = match read.tests {
            0 => format!("{count} rules at work"),
            1 => format!("{count} rules at work, 1 test passed"),
            tests => format!("{count} rules at work, {tests} tests passed"),
        };
        if !read.waits.is_empty() {
            text.push_str(&format!("; changed, but only a restart puts it to work: {}", read.waits.join(", ")));
        }
        tracing::info!(rules = count, tests = read.tests, "the rules were reloaded: {text}");
        Ok(text)
    }

    /// Swaps everything while no batch is under way: whatever is judged from now on is judged by the new rules and config alone.
    async fn put_to_work(&self, config: Config, rules: RuleSet, built: Built) {
        let deps = &self.deps;
        let Built { routes, receivers, terms, watch, slots } = built;
        let before = deps.setup();
        let config = Arc::new(config);
        {
            let _turn = deps.turn.lock().await;
            *deps.judgement.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Judgement { rules, routes });
            let setup = Setup { config: config.clone(), watch: watch.clone(), slots: slots.clone() };
            *deps.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
            *self.receivers.write().unwrap_or_else(PoisonError::into_inner) = receivers.clone();
            self.dispatcher.replace(terms);
            let carrier = Carrier { receivers, store: deps.store.clone() };
            deps.outbox.replace(Arc::new(carrier), config.delivery.clone()).await;
            self.rejudge.store(true, Ordering::SeqCst);
        }
        if let Some(reach) = self.reach.get() {
            reach.replace(slots.iter().filter_map(|(job, _)| endpoint_of(*job)).collect(), watch);
        }
        let is_same = serde_json::to_value(&before.config.schedule).ok() == serde_json::to_value(&config.schedule).ok();
        if let (Some(schedule), false) = (self.schedule.get(), is_same) {
            match deps.store.job_slots().await {
                Ok(last_runs) => schedule.replace(slots, &last_runs).await,
                Err(error) => {
                    tracing::error!(error = chain(&error), "cannot read when jobs last ran: those that are new begin at once");
                    schedule.replace(slots, &[]).await;
                }
            }
        }
    }

    /// Reads config and rules again where their files changed, until nobody asks any more. A file that is being written is left alone: two
    /// looks must see the same.
    async fn watch_files(&self) {
        let mut seen: Option<u128> = None;
        loop {
            tokio::time::sleep(reload::WATCH).await;
            let (setup, origin, base_dir) = (self.deps.setup(), self.origin.clone(), self.base_dir.clone());
            let look = tokio::task::spawn_blocking(move || reload::fingerprint(&setup.config, origin.as_ref(), &base_dir));
            let Ok(now_is) = look.await else { continue };
            let is_settled = seen.replace(now_is) == Some(now_is);
            let mut files = self.files.lock().await;
            if is_settled && *files != now_is {
                tracing::info!("config or rule files changed");
                let _ = told_to_systemd(self.reload_from(&mut files)).await;
            }
        }
    }

    async fn open_trouble(&self, subject: &str) -> Option<Alert> {
        let open = self.deps.store.source_alerts().await.ok()?;
        open.into_iter().find(|alert| alert.subject == subject)
    }

    async fn episode(&self, subject: &str) -> u32 {
        let pair = (RuleId::from(SOURCE_TROUBLE), subject.to_owned());
        self.deps.store.episodes(vec![pair]).await.ok().and_then(|found| found.first().copied()).unwrap_or_default()
    }

    /// Writes and tells trouble of our own.
    async fn announce(&self, make: impl FnOnce(&Context<'_>) -> (Alert, Notice)) {
        let now = self.clock.now();
        let judgement = self.deps.judgement();
        let (alert, notice) = make(&judgement.context(now));
        let commit = crate::store::model::Commit { at: now, alerts: vec![alert], notices: vec![notice], ..Default::default() };
        match self.deps.store.commit(commit).await {
            Ok(_) => self.deps.outbox.wake(),
            Err(error) => tracing::error!(error = chain(&error), "cannot write down what is to be told"),
        }
    }

    /// Runs a job for its slot and says what came of it: log, health, metrics. True where all of it went well.
    async fn run_job(&self, job: Job, slot: Timestamp) -> bool {
        let now = self.clock.now();
        match run_cycle(&self.deps, job, slot, now).await {
            Ok(report) => {
                self.health.cycle_ended(now, report.to_string());
                self.log(&report);
                self.is_store_well_again().await && report.failed.is_empty()
            }
            Err(error) => {
                self.store_failed(&error).await;
                false
            }
        }
    }

    fn log(&self, report: &CycleReport) {
        let job = report.job.as_str();
        for (feed, failure) in report.failed.iter().take(3) {
            tracing::warn!(job, %feed, kind = failure.kind.as_str(), "{failure}");
        }
        for change in &report.changes {
            let token = change.token.as_ref().map_or("", |token| token.as_str());
            tracing::info!(job, token, kind = change.kind.as_str(), "{}", change.summary);
        }
        if report.is_quiet() {
            tracing::debug!(job, "{report}");
        } else {
            tracing::info!(
                job,
                asked = report.asked,
                fresh = report.fresh,
                failed = report.failed.len(),
                changes = report.changes.len(),
                alerts = report.alerts,
                messages = report.deliveries,
                credits = report.credits,
                "{report}"
            );
            systemd::status(&report.to_string());
        }
    }

    /// A database that cannot be written cannot hold the alert that says so: it is sent past the outbox, once.
    async fn store_failed(&self, error: &CycleError) {
        tracing::error!(error = chain(error), "the cycle ended early; what was committed stays, the rest is asked for again");
        let CycleError::Store { source, .. } = error;
        self.health.set_not_ready(chain(error));
        if !source.is_damaged() && !source.is_full() {
            return;
        }
        let now = self.clock.now();
        let judgement = self.deps.judgement();
        let (alert, notice) = {
            let mut told = self.store_trouble.lock().unwrap_or_else(PoisonError::into_inner);
            if told.is_some() {
                return;
            }
            let context = judgement.context(now);
            // Numbered by the hour: the database cannot count for us now.
            let episode = u32::try_from(now.timestamp() / 3600).unwrap_or_default();
            let made = match source.is_full() {
                true => trouble::store_full(&chain(error), episode, &context),
                false => trouble::store_damaged(&chain(error), episode, &context),
            };
            *told = Some(made.0.clone());
            made
        };
        self.send_past_outbox(&alert, notice, now).await;
    }

    async fn is_store_well_again(&self) -> bool {
        let told = self.store_trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(alert) = told {
            self.health.set_ready();
            let now = self.clock.now();
            let judgement = self.deps.judgement();
            let (alert, notice) = trouble::recovered(&alert, &judgement.context(now));
            self.send_past_outbox(&alert, notice, now).await;
        } else if self.health.not_ready().is_some_and(|reason| reason.starts_with("cannot ")) {
            self.health.set_ready();
        }
        true
    }

    async fn send_past_outbox(&self, alert: &Alert, notice: Notice, now: Timestamp) {
        for receiver in notice.receivers.clone() {
            let delivery = DueDelivery {
                id: DeliveryId(0),
                webhook_id: format!("msg_{}_{receiver}", alert.id),
                receiver: receiver.clone(),
                attempts: 0,
                tries: 0,
                created_at: now,
                due_at: now,
                notices: vec![notice.clone()],
                bundle: crate::store::model::Bundle::default(),
            };
            let (outcome, attempt) = self.receivers().send(&receiver, &delivery, now).await;
            tracing::warn!(%receiver, outcome = ?outcome, answer = attempt.answer, "sent past the outbox, since the database cannot be written");
        }
    }

    /// Tells the dead man's switch that a full loop went well: polled, evaluated, committed, nothing left in the outbox.
    async fn ping(&self) {
        let Some(client) = &self.pinger else { return };
        let now = self.clock.now();
        {
            let mut pinged_at = self.pinged_at.lock().unwrap_or_else(PoisonError::into_inner);
            if pinged_at.is_some_and(|at| now - at < PING_EVERY) {
                return;
            }
            *pinged_at = Some(now);
        }
        if !self.is_drained(now).await || !self.deps.store.source_alerts().await.is_ok_and(|open| open.is_empty()) {
            return;
        }
        match self.deps.setup().config.http.switch().resolve() {
            Ok(Some(address)) => {
                // The address is a secret: neither it nor an error that might hold it is logged.
                let answer = client.get(address.expose()).send().await;
                if !answer.is_ok_and(|answer| answer.status().is_success()) {
                    tracing::warn!("the dead man's switch did not take the ping");
                }
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(error = chain(&error), "cannot read the address of the dead man's switch"),
        }
    }

    /// Whether everything that was decided before `since` is delivered, given up, or held back on purpose; it has a while to come so far.
    async fn is_drained(&self, since: Timestamp) -> bool {
        let drained = async {
            loop {
                let is_dispatched = self.deps.outbox.dispatched_at().is_some_and(|at| at >= since);
                let pending = self.deps.store.pending_receivers().await;
                if is_dispatched && pending.is_ok_and(|pending| pending.is_empty()) {
                    return;
                }
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        self.deps.outbox.wake();
        tokio::time::timeout(DRAIN_PATIENCE, drained).await.is_ok()
    }

    /// Reads the gauges.
    async fn refresh(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        for _ in 0..self.receivers().take_template_failures() {
            self.deps.metrics.template_fallback();
        }
        let gauges = self.deps.store.gauges().await?;
        let credit = self.deps.store.credit().await?;
        let open = self.deps.store.source_alerts().await?;
        let telling = self.deps.store.telling(now, now - digest::DAY).await?;
        self.deps.metrics.set_telling(&telling, now);
        let levels: Vec<OutboxLevel> = gauges
            .outbox
            .iter()
            .map(|receiver| OutboxLevel {
                receiver: receiver.receiver.clone(),
                pending: receiver.pending(),
                oldest: receiver.oldest_pending.and_then(|at| (now - at).to_std().ok()),
                dead: receiver.of(DeliveryState::Dead),
            })
            .collect();
        self.deps.metrics.set_outbox(&levels);
        self.deps.metrics.set_credits(&credit);
        self.deps.metrics.set_removals_held(gauges.removals_held);
        for (state, count) in gauges.alerts {
            self.deps.metrics.set_alerts(state, count);
        }
        self.deps.metrics.set_source_up(!open.iter().any(|alert| alert.subject.starts_with("source")));
        for (endpoint, at) in gauges.last_success {
            self.deps.metrics.set_last_success(endpoint, at);
        }
        Ok(())
    }

    /// Runs until `stop`, then leaves in good order. `started` is told the address that was bound, once everything works.
    ///
    /// # Errors
    /// Where the address or the ticker cannot be had, or the database cannot be closed.
    pub async fn run(self, stop: impl Future<Output = ()>, started: impl FnOnce(Option<SocketAddr>)) -> Result<(), AppError> {
        let app = Arc::new(self);
        let tasks = TaskTracker::new();
        let ending = CancellationToken::new();
        let address = app.listen(&tasks, &ending).await?;
        app.open_mirror(&tasks, &ending).await?;

        let last_runs =
            app.deps.store.job_slots().await.map_err(|source| AppError::Store { doing: "read when jobs last ran", source })?;
        let run: Run = {
            let app = app.clone();
            Arc::new(move |job, slot| {
                let app = app.clone();
                Box::pin(async move {
                    if app.run_job(job, slot).await && app.pinger.is_some() {
                        // Beside the schedule, which does not wait until the outbox is drained.
                        tokio::spawn(async move { app.ping().await });
                    }
                })
            })
        };
        let schedule = Schedule::start(app.deps.setup().slots.clone(), &last_runs, app.clock.clone(), run)
            .await
            .map_err(|error| AppError::Schedule(error.to_string()))?;
        let schedule = app.schedule.get_or_init(|| Arc::new(schedule)).clone();
        tasks.spawn(app.clone().tend(schedule.clone(), ending.clone()));
        app.health.set_ready();
        let rules = app.deps.judgement().rules.rules.len();
        systemd::ready(&format!("watching; {rules} rules at work"));
        started(address);

        let reloads = app.clone();
        tokio::select! {
            () = stop => {}
            () = async { tokio::join!(reload_on_hangup(&reloads), reloads.watch_files()); } => {}
        }
        tracing::info!("stopping: the runs in hand are finished first");
        systemd::stopping("finishing the runs in hand");
        app.health.set_not_ready("stopping");
        if !schedule.stop(STOP_RUNS).await {
            tracing::warn!("a run was cut off; its last batch is asked for again after the next start");
        }
        let cut = app.deps.outbox.stop(STOP_DELIVERIES).await;
        if cut > 0 {
            tracing::warn!(
                receivers = cut,
                "deliveries were cut off; they are sent again after the next start, under the same ids"
            );
        }
        ending.cancel();
        tasks.close();
        if tokio::time::timeout(Duration::from_secs(10), tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
        app.deps.store.close().await.map_err(|source| AppError::Store { doing: "close the database", source })?;
        tracing::info!("stopped");
        Ok(())
    }

    /// Closes the database of an app that was turned by hand.
    ///
    /// # Errors
    /// Where it cannot be closed in good order.
    pub async fn close(self) -> Result<(), AppError> {
        self.deps.outbox.stop(STOP_DELIVERIES).await;
        self.deps.store.close().await.map_err(|source| AppError::Store { doing: "close the database", source })
    }

    async fn listen(self: &Arc<Self>, tasks: &TaskTracker, ending: &CancellationToken) -> Result<Option<SocketAddr>, AppError> {
        let setup = self.deps.setup();
        let config = &setup.config;
        if config.http.listen.trim() == "off" {
            return Ok(None);
        }
        let failed = |source| AppError::Listen { address: config.http.listen.clone(), source };
        let listener = TcpListener::bind(config.http.listen.trim()).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let bearer = config.http.bearer();
        if !address.ip().is_loopback() && !bearer.resolve().is_ok_and(|token| token.is_some()) {
            return Err(AppError::Config(format!(
                "http.listen = {:?} is not loopback, so it needs a bearer token: set http.token_file, or listen on 127.0.0.1",
                config.http.listen
            )));
        }
        let reloads = Arc::downgrade(self);
        let http = http::Deps {
            store: self.deps.store.clone(),
            metrics: self.deps.metrics.clone(),
            health: self.health.clone(),
            clock: self.clock.clone(),
            bearer,
            address,
            judgement: Arc::new({
                let deps = Arc::clone(&self.deps);
                move || deps.judgement()
            }),
            watch: Arc::new({
                let deps = Arc::clone(&self.deps);
                move || deps.setup().watch.clone()
            }),
            external_url: config.http.external_url.as_deref().and_then(|url| url::Url::parse(url).ok()),
            audience: Arc::new({
                let deps = Arc::clone(&self.deps);
                move || Audience::of(&deps.setup().config.receivers)
            }),
            database: config.store.path.clone(),
            reload: Arc::new(move || {
                let app = reloads.upgrade();
                Box::pin(async move {
                    match app {
                        Some(app) => told_to_systemd(app.reload()).await.map_err(|problem| problem.full),
                        None => Err("stopping".to_owned()),
                    }
                })
            }),
        };
        let (router, ending) = (http::router(http), ending.clone());
        tasks.spawn(async move {
            if let Err(error) = http::serve(listener, router, ending).await {
                tracing::error!(%error, "our own HTTP ended");
            }
        });
        Ok(Some(address))
    }

    /// Whether schedule and cycles go on: no slot was passed over, and the batch in hand makes room for the next.
    async fn moves(&self, schedule: &Schedule) -> bool {
        if let Some((job, slot)) = schedule.overdue(SLOT_PATIENCE) {
            tracing::error!(job = job.as_str(), %slot, "the ticker passed a slot over: the watchdog is not fed");
            return false;
        }
        let has_turn = tokio::time::timeout(TURN_PATIENCE, self.deps.turn.lock()).await.is_ok();
        if !has_turn {
            tracing::error!("a batch has been under way for too long: the watchdog is not fed");
        }
        has_turn
    }

    /// Serves the snapshot to others, where the config says so.
    async fn open_mirror(&self, tasks: &TaskTracker, ending: &CancellationToken) -> Result<(), AppError> {
        let setup = self.deps.setup();
        let config = &setup.config;
        let address = config.mirror.listen.trim();
        if address == "off" {
            return Ok(());
        }
        let failed = |source| AppError::Listen { address: address.to_owned(), source };
        let socket = address.parse().map_err(|_| {
            AppError::Config(format!("mirror.listen = {address:?} is no address: write it like \"127.0.0.1:9798\""))
        })?;
        let listener = serve::bind(socket).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        if !bound.ip().is_loopback() && config.mirror.keys.is_none() {
            return Err(AppError::Config(format!(
                "mirror.listen = {address:?} is not loopback, so it needs keys: set mirror.keys, or listen on 127.0.0.1"
            )));
        }
        let asked = setup.slots.iter().filter_map(|(job, _)| endpoint_of(*job)).collect();
        let reach = serve::Reach::of(asked, setup.watch.clone());
        let reach = self.reach.get_or_init(|| reach).clone();
        let options = serve::Options {
            requests_per_minute: config.mirror.requests_per_minute,
            clock: self.clock.clone(),
            ..serve::Options::default()
        };
        let mirror = serve::Service::mirror(&config.store.path, reach, config.mirror.keys.as_deref(), options)?;
        tracing::info!(address = %bound, "the mirror listens at http://{bound}");
        let stop = ending.clone().cancelled_owned();
        tasks.spawn(async move {
            // Both base addresses in one: their paths do not meet.
            if let Err(error) = serve::serve(listener, mirror.legacy_router(), stop).await {
                tracing::error!(%error, "the mirror ended");
            }
        });
        Ok(())
    }

    /// What is done beside the schedule: gauges, clearing away, the check of the database, the watchdog.
    async fn tend(self: Arc<Self>, schedule: Arc<Schedule>, ending: CancellationToken) {
        let alive = Progress::default();
        let markers = {
            let (alive, outbox) = (alive.clone(), self.deps.outbox.clone());
            move || [alive.clone()].into_iter().chain(outbox.progress()).collect()
        };
        let watchdog = tokio::spawn(systemd::feed_watchdog(markers));
        let checking = {
            let store = self.deps.store.clone();
            tokio::spawn(async move { store.integrity_check().await })
        };
        let mut checking = Some(checking);
        let mut pruned_at: Option<Timestamp> = None;
        loop {
            match self.refresh().await {
                Ok(()) => {
                    if self.moves(&schedule).await {
                        alive.mark();
                    }
                }
                Err(error) => tracing::error!(error = chain(&error), "cannot read the gauges"),
            }
            if let Some(check) = checking.take_if(|check| check.is_finished()) {
                match check.await {
                    Ok(Ok(())) | Err(_) => {}
                    Ok(Err(source)) => self.store_failed(&CycleError::Store { doing: "check the database", source }).await,
                }
            }
            let now = self.clock.now();
            if pruned_at.is_none_or(|at| now - at >= PRUNE) {
                pruned_at = Some(now);
                let setup = self.deps.setup();
                let store = &setup.config.store;
                match self.deps.store.prune(now, store.retention.0, store.poll_log_retention.0).await {
                    Ok(_) => {}
                    Err(error) => tracing::error!(error = chain(&error), "cannot clear away what is old"),
                }
            }
            tokio::select! {
                () = tokio::time::sleep(REFRESH) => {}
                () = ending.cancelled() => break,
            }
        }
        watchdog.abort();
    }
}

/// What is built from a config, each part of which can fail.
struct Built {
    routes: RouteTree,
    receivers: Arc<Receivers>,
    terms: dispatch::Terms,
    watch: Watch,
    slots: Vec<(Job, Slots)>,
}

impl Built {
    /// # Errors
    /// Everything that cannot be built.
    fn of(config: &Config) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let routes = RouteTree::of(&Sections::from(config));
        let routes = routes.map_err(|found| problems.extend(found.iter().map(|p| format!("{}: {}", p.path, p.message))));
        let receivers = Receivers::build(&config.receivers, &config.delivery, config.http.external_url.as_deref());
        let receivers = receivers.map_err(|found| problems.extend(found.iter().map(ToString::to_string)));
        let watch = Watch::build(&config.watch).map_err(|found| problems.extend(found.iter().map(ToString::to_string)));
        let terms = watch.clone().and_then(|watch| {
            dispatch::Terms::of(&config.receivers, &config.delivery, watch).map_err(|found| problems.push(found))
        });
        let slots = schedule::jobs(&config.schedule).map_err(|(key, error)| problems.push(format!("schedule.{key}: {error}")));
        match (routes, receivers, terms, watch, slots) {
            (Ok(routes), Ok(receivers), Ok(terms), Ok(watch), Ok(slots)) => {
                Ok(Self { routes, receivers: Arc::new(receivers), terms, watch, slots })
            }
            _ => Err(problems),
        }
    }
}

/// The rules of the files; where those have errors, the rules of the last good files, with the problem.
async fn usable_rules(
    config: &Config,
    base_dir: &Path,
    store: &Store,
    now: Timestamp,
) -> Result<(RuleSet, Option<String>), AppError> {
    let read = reload::read_files(config, base_dir, now);
    let Some(problem) = read.problem else {
        for diagnostic in &read.diagnostics {
            tracing::warn!(file = %diagnostic.file.display(), "{}", diagnostic.message);
        }
        if let Err(error) = store.keep_good_rules(texts_json(&read.texts)).await {
            tracing::warn!(error = chain(&error), "cannot remember the good rules for the next start");
        }
        return Ok((read.set, None));
    };
    let problem = problem.full;
    let remembered = store.good_rules().await.map_err(|source| AppError::Store { doing: "read the last good rules", source })?;
    let texts = remembered.and_then(|json| serde_json::from_str::<Vec<(PathBuf, String)>>(&json).ok());
    let Some(texts) = texts else { return Err(AppError::Rules(problem)) };
    let texts = texts.into_iter().map(|(file, text)| SourceText { file, text }).collect();
    let before = reload::compile(config, texts, Vec::new(), now);
    if before.problem.is_some() {
        return Err(AppError::Rules(problem));
    }
    Ok((before.set, Some(problem)))
}

fn texts_json(texts: &[SourceText]) -> String {
    let pairs: Vec<(&PathBuf, &str)> = texts.iter().map(|source| (&source.file, source.text.as_str())).collect();
    serde_json::to_string(&pairs).unwrap_or_default()
}

/// What pings the dead man's switch: bounded, and never redirected.
fn ping_client() -> Result<reqwest::Client, reqwest::Error> {
    crate::api::install_crypto_provider();
    reqwest::Client::builder().timeout(Duration::from_secs(10)).redirect(reqwest::redirect::Policy::none()).build()
}

/// An error with its causes, in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}

async fn reload_on_hangup(app: &App) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangups) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    while hangups.recv().await.is_some() {
        // What came of it is in the log.
        let _ = told_to_systemd(app.reload()).await;
    }
}

/// A reload between the words that systemd waits for. What came of it is in log, status and metric, and where it failed in an alert.
async fn told_to_systemd<F>(reload: F) -> Result<String, reload::Problem>
where
    F: Future<Output = Result<String, reload::Problem>>,
{
    systemd::reloading();
    let result = reload.await;
    match &result {
        Ok(text) => systemd::ready(&format!("watching; {text}")),
        Err(problem) => {
            let first = problem.brief.lines().next().unwrap_or_default();
            systemd::ready(&format!("watching; what was changed is not at work, what was before is: {first}"));
        }
    }
    result
}

/// Words what the outbox announces.
struct Announcer {
    judgement: Arc<RwLock<Arc<Judgement>>>,
}

impl Announcer {
    fn with<T>(&self, now: Timestamp, make: impl FnOnce(&Context<'_>) -> T) -> T {
        let judgement = self.judgement.read().unwrap_or_else(PoisonError::into_inner).clone();
        make(&judgement.context(now))
    }
}

impl Announce for Announcer {
    fn rule(&self) -> RuleId {
        RuleId::from(SOURCE_TROUBLE)
    }

    fn dead_letter(&self, delivery: &DueDelivery, reason: &str, now: Timestamp) -> Option<(Alert, Notice)> {
        self.with(now, |context| trouble::dead_letter(delivery.id, &delivery.receiver, &delivery.notices, reason, context))
    }

    fn receiver_down(&self, down: &Down<'_>, now: Timestamp) -> Option<(Alert, Notice)> {
        let dead = |context: &Context<'_>| {
            trouble::receiver_dead(down.receiver, down.answer, down.waiting, down.since, down.latest_episode, context)
        };
        Some(self.with(now, dead))
    }

    fn receiver_back(&self, _: &ReceiverName, open: &Alert, now: Timestamp) -> Option<(Alert, Notice)> {
        Some(self.with(now, |context| trouble::recovered(open, context)))
    }
}

/// Counts attempts.
struct Counter {
    metrics: Arc<Metrics>,
}

impl Meter for Counter {
    fn attempt(&self, receiver: &ReceiverName, outcome: &'static str, _took: Duration, since_created: TimeDelta) {
        self.metrics.attempt(receiver, outcome, since_created.to_std().unwrap_or_default());
    }
}

/// A future that ends when the process is asked to: SIGTERM or SIGINT. It listens from this call on, so that being asked while the
/// database is still opened ends in good order too. Needs the runtime.
pub fn asked_to_stop() -> Pin<Box<dyn Future<Output = ()> + Send>> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    Box::pin(async {
        let (Ok(mut term), Ok(mut int)) = signals else {
            tracing::error!("cannot listen for signals: stop the process by force");
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// Whether a job asks an endpoint.
#[must_use]
pub fn endpoint_of(job: Job) -> Option<Endpoint> {
    if let Job::Poll(endpoint) = job { Some(endpoint) } else { None }
}
