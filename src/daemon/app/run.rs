//! Runs the app: what listens begins first, the schedule after it; then everything stops in reverse order.

use std::{net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{App, AppError};
use crate::http::{self, HttpDeps};
use crate::place::{keys_of, place_of};
use crate::playground::Playground;
use crate::readiness::NotReady;
use crate::reload::ReloadProblem;
use crate::schedule::{RunJob, Scheduler};
use crate::{live, systemd};
use model::{BoxFuture, format::count};

// Together they stay below ten seconds, whatever hangs.
/// How long runs in hand may take once we are to stop.
const STOP_RUNS: Duration = Duration::from_secs(4);
/// How long deliveries under way may take once we are to stop.
const STOP_DELIVERIES: Duration = Duration::from_secs(3);
/// How long our own HTTP, the mirror and the maintenance may take to end.
const STOP_TASKS: Duration = Duration::from_secs(2);

/// Is told the address that was bound.
type Started = Box<dyn FnOnce(Option<SocketAddr>) + Send>;

/// Says once that everything that listens does.
struct StartedOnce(Option<Started>);

impl StartedOnce {
    fn started(&mut self, address: Option<SocketAddr>) {
        if let Some(started) = self.0.take() {
            started(address);
        }
    }
}

impl App {
    /// Runs until `stop`, then leaves in good order. `started` is told the address that was bound, once everything works.
    /// Fails where the address or the ticker cannot be had, or the database cannot be closed.
    pub fn run(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
        started: impl FnOnce(Option<SocketAddr>) + Send + 'static,
    ) -> BoxFuture<'static, Result<(), AppError>> {
        self.run_until(Box::pin(stop), Box::new(started))
    }

    fn run_until(self, stop: BoxFuture<'static, ()>, started: Started) -> BoxFuture<'static, Result<(), AppError>> {
        Box::pin(async move {
            let mut started_by = StartedOnce(Some(started));
            let app = Arc::new(self);
            let tasks = TaskTracker::new();
            let ending = CancellationToken::new();
            let address = app.open_http(&tasks, &ending).await?;
            app.open_mirror(&tasks, &ending)?;
            let mut stop = stop;
            if app.store().is_shared() {
                started_by.started(address);
                if !app.stand_by(&mut stop).await? {
                    systemd::stopping("standing by no longer");
                    ending.cancel();
                    return app.leave(tasks).await;
                }
            }
            let schedule = app.start_schedule().await?;
            tasks.spawn(app.clone().maintain(schedule.clone(), ending.clone()));
            app.readiness.set_ready();
            let rules = app.deps.active().rules.rules.len();
            systemd::ready(&format!("watching; {} at work", count(rules, "rule")));
            started_by.started(address);

            let reloads = app.clone();
            let mut is_lost = false;
            tokio::select! {
                () = &mut stop => {}
                () = app.keep_lease(), if app.store().is_shared() => is_lost = true,
                () = async { tokio::join!(reload_on_hangup(&reloads), reloads.watch_files()); } => {}
            }
            if is_lost {
                return Err(app.step_down().await);
            }
            tracing::info!("stopping: what has come is finished, what has not is asked for again after the next start");
            systemd::stopping("finishing what has come");
            app.deps.stopping.cancel();
            app.readiness.set_not_ready(NotReady::Stopping);
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
            app.leave(tasks).await
        })
    }

    /// Ends what serves others, and closes the database.
    async fn leave(&self, tasks: TaskTracker) -> Result<(), AppError> {
        tasks.close();
        if tokio::time::timeout(STOP_TASKS, tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
        self.deps.store.close().await.map_err(|source| AppError::Store { doing: "close the database", source })?;
        tracing::info!("stopped");
        Ok(())
    }

    /// Closes the database of an app that was turned by hand. Fails where it cannot be closed in good order.
    pub fn close(self) -> BoxFuture<'static, Result<(), AppError>> {
        Box::pin(async move {
            self.deps.outbox.stop(STOP_DELIVERIES).await;
            self.deps.store.close().await.map_err(|source| AppError::Store { doing: "close the database", source })
        })
    }

    /// The ticker, from the slots that jobs last ran for.
    async fn start_schedule(self: &Arc<Self>) -> Result<Arc<Scheduler>, AppError> {
        let last_runs =
            self.deps.store.job_slots().await.map_err(|source| AppError::Store { doing: "read when jobs last ran", source })?;
        let run: RunJob = {
            let app = self.clone();
            Arc::new(move |job, slot| {
                let app = app.clone();
                Box::pin(async move {
                    if app.run_job(job, slot).await && app.switch.is_some() {
                        // Beside the schedule, which does not wait until the outbox is drained.
                        tokio::spawn(async move {
                            if let Some(switch) = &app.switch {
                                switch.ping(&app.deps, app.clock.now()).await;
                            }
                        });
                    }
                })
            })
        };
        let schedule = Scheduler::start(self.deps.setup().slots.clone(), &last_runs, self.clock.clone(), run)
            .await
            .map_err(|error| AppError::Schedule(error.to_string()))?;
        Ok(self.schedule.get_or_init(|| Arc::new(schedule)).clone())
    }

    /// Our own HTTP, where the config says so.
    async fn open_http(
        self: &Arc<Self>,
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
        let reloads = Arc::downgrade(self);
        let deps = HttpDeps {
            news: http::News::start(self.deps.store.clone(), ending.clone()),
            overview: http::OverviewCache::default(),
            store: self.deps.store.clone(),
            metrics: self.deps.metrics.clone(),
            readiness: self.readiness.clone(),
            clock: self.clock.clone(),
            bearer,
            address,
            live: self.deps.live.clone(),
            wake: {
                let outbox = Arc::downgrade(&self.deps.outbox);
                Arc::new(move || outbox.upgrade().into_iter().for_each(|outbox| outbox.wake()))
            },
            access: Arc::default(),
            playground: Playground::default(),
            external_url: config.external_url.as_deref().and_then(|url| url::Url::parse(url).ok()),
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
        let (router, ending) = (http::router(deps), ending.clone());
        tasks.spawn(async move {
            if let Err(error) = http::serve(listener, router, ending).await {
                tracing::error!(%error, "our own HTTP ended");
            }
        });
        Ok(Some(address))
    }

    /// Serves the snapshot to others, where the config says so.
    fn open_mirror(&self, tasks: &TaskTracker, ending: &CancellationToken) -> Result<(), AppError> {
        let live = self.deps.setup();
        let config = &live.config.mirror;
        let address = config.listen.trim();
        if address == "off" {
            return Ok(());
        }
        let failed = |source| AppError::Listen { key: "[mirror] listen", address: address.to_owned(), source };
        let socket = address.parse().map_err(|_| {
            AppError::Config(format!("mirror.listen = {address:?} is no address: write it like \"127.0.0.1:9798\""))
        })?;
        let listener = service::bind(socket).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let keys = keys_of(&live.config)?;
        if !bound.ip().is_loopback() && keys.is_none() {
            return Err(AppError::Config(format!(
                "mirror.listen = {address:?} is not loopback, so it needs keys: set mirror.keys or mirror.keys_url, or listen on 127.0.0.1"
            )));
        }
        let reach = self
            .reach
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
        let mirror = service::Service::mirror_in(&place_of(&live.config.store)?, reach, keys.as_ref(), options)?;
        tracing::info!(address = %bound, "the mirror listens at {scheme}://{bound}");
        let stop = ending.clone().cancelled_owned();
        tasks.spawn(async move {
            // Both base addresses in one: their paths do not meet.
            if let Err(error) = service::serve_tls(listener, mirror.legacy_router(), tls, stop).await {
                tracing::error!(%error, "the mirror ended");
            }
        });
        Ok(())
    }
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
pub(crate) async fn told_to_systemd<F>(reload: F) -> Result<String, ReloadProblem>
where
    F: Future<Output = Result<String, ReloadProblem>>,
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
