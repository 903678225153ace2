//! Runs the app: starts the listeners, then the schedule, and stops everything in reverse order.

use std::{net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{App, AppError, ServeWeb};
use crate::database_url::{database_of, key_database_of};
use crate::readiness::Phase;
use crate::reload::{ReloadProblem, Reloaded};
use crate::schedule::{RunJob, Scheduler};
use crate::{live, systemd};
use model::{BoxFuture, phrase::count};

// The sum stays below ten seconds, even if every part hangs.
/// The time that current runs may take after a stop request.
const STOP_RUNS_TIMEOUT: Duration = Duration::from_secs(4);
/// The time that current deliveries may take after a stop request.
const STOP_DELIVERIES_TIMEOUT: Duration = Duration::from_secs(3);
/// The time that web server, mirror, and maintenance may take to end.
const STOP_TASKS_TIMEOUT: Duration = Duration::from_secs(2);

/// A callback with the bound address.
type Started = Box<dyn FnOnce(Option<SocketAddr>) + Send>;

/// Calls the callback once.
struct StartedOnce(Option<Started>);

impl StartedOnce {
    fn started(&mut self, address: Option<SocketAddr>) {
        if let Some(started) = self.0.take() {
            started(address);
        }
    }
}

impl App {
    /// Runs until `stop` completes, then shuts down. Calls `started` once with the bound address when everything works, or, if instances
    /// share the database, before it waits for the lease.
    ///
    /// # Errors
    ///
    /// Fails if an address cannot be bound, the schedule does not start, the lease is lost, or the database cannot be closed.
    pub fn run(
        self,
        serve_web: ServeWeb,
        stop: impl Future<Output = ()> + Send + 'static,
        started: impl FnOnce(Option<SocketAddr>) + Send + 'static,
    ) -> BoxFuture<'static, Result<(), AppError>> {
        self.run_until(serve_web, Box::pin(stop), Box::new(started))
    }

    fn run_until(
        self,
        serve_web: ServeWeb,
        stop: BoxFuture<'static, ()>,
        started: Started,
    ) -> BoxFuture<'static, Result<(), AppError>> {
        Box::pin(async move {
            let mut started_once = StartedOnce(Some(started));
            let app = Arc::new(self);
            let tasks = TaskTracker::new();
            let ending = CancellationToken::new();
            let address = app.open_http(serve_web, &tasks, &ending).await?;
            app.open_mirror(&tasks, &ending)?;
            let mut stop = stop;
            if app.store().is_shared() {
                started_once.started(address);
                if !app.wait_for_lease(&mut stop).await? {
                    systemd::stopping("standby stopped");
                    ending.cancel();
                    return app.shut_down(tasks).await;
                }
            }
            let wait = systemd::LongWait::begin();
            let schedule = app.start_schedule().await?;
            tasks.spawn(app.clone().maintain(schedule.clone(), ending.clone()));
            app.readiness.set_phase(Phase::Running);
            let rules = app.deps.active().rules.rules.len();
            systemd::ready(&format!("watching; {}", count(rules, "active rule")));
            drop(wait);
            started_once.started(address);

            let reloads = app.clone();
            let mut is_lost = false;
            tokio::select! {
                () = &mut stop => {}
                () = app.maintain_lease(), if app.store().is_shared() => is_lost = true,
                () = async {
                    tokio::join!(reload_on_request(&reloads), reloads.watch_files(false), reloads.watch_key());
                } => {}
            }
            if is_lost {
                return Err(app.step_down().await);
            }
            tracing::info!("stopping: responses that arrived are processed; other polls are repeated after the next start");
            systemd::stopping("processing responses that arrived");
            app.deps.stopping.cancel();
            app.readiness.set_phase(Phase::Stopping);
            if !schedule.stop(STOP_RUNS_TIMEOUT).await {
                tracing::warn!("a run was cut off; its last batch is polled again after the next start");
            }
            let cut = app.deps.outbox.stop(STOP_DELIVERIES_TIMEOUT).await;
            if cut > 0 {
                tracing::warn!(
                    receivers = cut,
                    "deliveries were cut off; they are sent again after the next start with the same ids"
                );
            }
            ending.cancel();
            app.shut_down(tasks).await
        })
    }

    /// Ends the servers and closes the database.
    async fn shut_down(&self, tasks: TaskTracker) -> Result<(), AppError> {
        tasks.close();
        if tokio::time::timeout(STOP_TASKS_TIMEOUT, tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
        self.deps.store.close().await.map_err(|source| AppError::Store { doing: "close the database", source })?;
        tracing::info!("stopped");
        Ok(())
    }

    /// Closes the database of an app that was run by hand.
    pub fn close(self) -> BoxFuture<'static, Result<(), AppError>> {
        Box::pin(async move {
            self.deps.outbox.stop(STOP_DELIVERIES_TIMEOUT).await;
            self.deps.store.close().await.map_err(|source| AppError::Store { doing: "close the database", source })
        })
    }

    /// Starts the schedule. Each job continues after the slot for which it last ran.
    async fn start_schedule(self: &Arc<Self>) -> Result<Arc<Scheduler>, AppError> {
        let failed = |source| AppError::Store { doing: "index the coming supply", source };
        let filled = self.deps.store.fill_supply_index(self.clock.now()).await.map_err(failed)?;
        if filled > 0 {
            tracing::info!(rows = filled, "indexed the coming supply of the stored schedules");
        }
        let last_runs =
            self.deps.store.job_slots().await.map_err(|source| AppError::Store { doing: "read when jobs last ran", source })?;
        let run: RunJob = {
            let app = self.clone();
            Arc::new(move |job, reason| {
                let app = app.clone();
                Box::pin(async move {
                    let (is_ok, end) = app.run_job(job, reason).await;
                    if is_ok && app.switch.is_some() {
                        // In a separate task, because the schedule does not wait for the outbox to drain.
                        tokio::spawn(async move {
                            if let Some(switch) = &app.switch {
                                switch.ping(&app.deps, app.clock.now()).await;
                            }
                        });
                    }
                    end
                })
            })
        };
        let schedule = Scheduler::start(self.deps.setup().slots.clone(), &last_runs, self.clock.clone(), run)
            .await
            .map_err(|error| AppError::Schedule(error.to_string()))?;
        Ok(self.schedule.get_or_init(|| Arc::new(schedule)).clone())
    }

    /// Starts the web server, unless it is off.
    async fn open_http(
        self: &Arc<Self>,
        serve_web: ServeWeb,
        tasks: &TaskTracker,
        ending: &CancellationToken,
    ) -> Result<Option<SocketAddr>, AppError> {
        let live = self.deps.setup();
        let config = &live.config.http;
        if config.listen.trim() == "off" {
            return Ok(None);
        }
        let failed = |source| AppError::Listen { key: "[http] listen", address: config.listen.clone(), source };
        let listener = TcpListener::bind(config.listen.trim()).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let bearer = config.bearer();
        if !address.ip().is_loopback() && !live::resolve(bearer.clone()).await.is_ok_and(|token| token.is_some()) {
            return Err(AppError::Config(format!(
                "http.listen = {:?} is not loopback, so it needs a bearer token: set http.token_file, or listen on 127.0.0.1",
                config.listen
            )));
        }
        let served = serve_web(self.handle(bearer, address), listener, ending.clone());
        tasks.spawn(async move {
            if let Err(error) = served.await {
                tracing::error!(%error, "the web server failed");
            }
        });
        Ok(Some(address))
    }

    /// Starts the mirror, which serves the snapshot to other instances, unless it is off.
    fn open_mirror(&self, tasks: &TaskTracker, ending: &CancellationToken) -> Result<(), AppError> {
        let live = self.deps.setup();
        let config = &live.config.mirror;
        let address = config.listen.trim();
        if address == "off" {
            return Ok(());
        }
        let failed = |source| AppError::Listen { key: "[mirror] listen", address: address.to_owned(), source };
        let socket = address.parse().map_err(|_| {
            AppError::Config(format!("mirror.listen = {address:?} is not a valid address: expected one like \"127.0.0.1:9798\""))
        })?;
        let listener = service::bind(socket).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let keys = key_database_of(&live.config)?;
        if !bound.ip().is_loopback() && keys.is_none() {
            return Err(AppError::Config(format!(
                "mirror.listen = {address:?} is not loopback, so it needs keys: set mirror.keys or mirror.keys_url, or listen on 127.0.0.1"
            )));
        }
        let scope = self
            .mirror_scope
            .get_or_init(|| {
                let history = self.deps.source.history;
                service::MirrorScope::of(live.endpoints(), live.watch.clone()).reaching_back(history)
            })
            .clone();
        let options = service::Options {
            requests_per_minute: config.requests_per_minute,
            clock: self.clock.clone(),
            ..service::Options::default()
        };
        let tls = match (&config.tls_cert_file, &config.tls_key_file) {
            (Some(certificate), Some(key)) => Some(service::Tls::read(certificate, key).map_err(service::ServiceError::from)?),
            (None, None) => None,
            _ => {
                return Err(AppError::Config(
                    "mirror.tls_cert_file and mirror.tls_key_file belong together: set both".to_owned(),
                ));
            }
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mirror = service::Service::mirror_in(&database_of(&live.config.store)?, scope, keys.as_ref(), options)?;
        tracing::info!(address = %bound, "the mirror listens at {scheme}://{bound}");
        let stop = ending.clone().cancelled_owned();
        tasks.spawn(async move {
            // One router serves both base URLs, because their paths do not overlap.
            if let Err(error) = service::serve_tls(listener, mirror.legacy_router(), tls, stop).await {
                tracing::error!(%error, "the mirror failed");
            }
        });
        Ok(())
    }
}

async fn reload_on_request(app: &App) {
    let mut requests = ReloadRequests::listen();
    loop {
        requests.next().await;
        // The reload logs its result.
        let _ = reload_under_systemd(&app.role(), app.reload()).await;
    }
}

impl App {
    /// Returns what this instance does, as the start of the status line.
    pub(crate) fn role(&self) -> String {
        let role = self.readiness.instance_role().filter(|_| !self.store().is_active());
        role.unwrap_or_else(|| "watching".to_owned())
    }
}

/// Runs a reload between the two notifications that systemd expects. The reload reports its own result.
pub(crate) async fn reload_under_systemd<F>(role: &str, reload: F) -> Result<Reloaded, ReloadProblem>
where
    F: Future<Output = Result<Reloaded, ReloadProblem>>,
{
    systemd::reloading();
    let result = reload.await;
    match &result {
        Ok(reloaded) => systemd::ready(&format!("{role}; {}", reloaded.text)),
        Err(problem) => {
            let first = problem.brief.lines().next().unwrap_or_default();
            systemd::ready(&format!("{role}; the reload failed, the previous config and rules stay active: {first}"));
        }
    }
    result
}

/// The SIGHUP signals of this process, which request a reload.
#[derive(Debug)]
pub struct ReloadRequests(Option<tokio::signal::unix::Signal>);

impl ReloadRequests {
    /// Starts to listen. From now on, the signal does not end the process. If listening fails, no request ever arrives.
    #[must_use]
    pub fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(signal(SignalKind::hangup()).ok())
    }

    /// Waits for the next request. Never completes if signals cannot be received.
    pub async fn next(&mut self) {
        let received = match &mut self.0 {
            Some(hangups) => hangups.recv().await,
            None => None,
        };
        if received.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Returns a future that completes on SIGTERM or SIGINT. The signals are caught from this call on, so that a signal while the database
/// opens also leads to an orderly shutdown. Requires a Tokio runtime.
pub fn stop_requested() -> Pin<Box<dyn Future<Output = ()> + Send>> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    Box::pin(async {
        let (Ok(mut term), Ok(mut int)) = signals else {
            tracing::error!("cannot listen for signals; stop the process with SIGKILL");
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}
