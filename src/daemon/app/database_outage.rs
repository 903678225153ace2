//! Waits for a database server that cannot be reached, however long it takes, and reports the outage.
//!
//! The outbox is in that database, so the incident is sent directly, to the receivers of the config. Meanwhile systemd is kept from ending
//! the process, and health and readiness respond.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::handle::{ServeWaiting, WaitingHandle};
use super::{AppError, self_alerts::send_past_outbox};
use crate::database_url::{database_of, instance_name};
use crate::live::LiveConfig;
use crate::readiness::Readiness;
use crate::reload::{self, GoodFiles};
use crate::systemd::{self, LongWait};
use engine::self_monitor;
use model::{Alert, Clock, Timestamp, config::Config, lease, text::error_chain};
use rules::RuleSet;
use store::{Access, DatabaseLocation, ErrorKind, Store};

/// The time after which an outage is reported. A restart or a failover of the server takes less.
const REPORT_AFTER: Duration = Duration::from_secs(60);

/// The time after which a daemon that still opens its database responds to requests with that reason. A server that is cut off does not
/// refuse a connection, so the first attempt can take seconds.
const SERVE_AFTER: Duration = Duration::from_millis(200);

/// The reason until the first attempt to open the database has ended.
const NOT_OPEN_YET: &str = "the database is not open yet";

/// The time that open requests get to finish before the web server starts.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// An outage of the database server, as one instance observes it.
#[derive(Debug, Default)]
pub(super) struct DatabaseOutage {
    /// The first failed attempt, by the monotonic clock and by the wall clock.
    began: Option<(Instant, Timestamp)>,
    reported: Option<Alert>,
}

impl DatabaseOutage {
    /// Records a failed attempt. Returns the time of the first one if the outage must be reported now.
    fn failed(&mut self, at: Instant, now: Timestamp) -> Option<Timestamp> {
        let (began, since) = *self.began.get_or_insert((at, now));
        (self.reported.is_none() && at.duration_since(began) >= REPORT_AFTER).then_some(since)
    }

    /// Records a failed attempt, and reports the outage if it lasts. `live` is called then.
    pub(super) async fn note_failure(
        &mut self,
        error: &str,
        now: Timestamp,
        live: impl AsyncFnOnce() -> Option<Arc<LiveConfig>>,
    ) {
        let Some(since) = self.failed(Instant::now(), now) else { return };
        let Some(live) = live().await else { return };
        let context = live.active.context(now);
        let (alert, notification) = self_monitor::store_unreachable(&instance_name(), error, since, &context);
        self.reported = Some(alert.clone());
        // In the background, because a receiver may be slow and the wait must go on.
        tokio::spawn(async move { send_past_outbox(&live.receivers, &alert, &notification, now).await });
    }

    /// Ends the outage, and reports the recovery if the outage was reported.
    pub(super) fn end(&mut self, live: Option<Arc<LiveConfig>>, now: Timestamp) {
        self.began = None;
        let (Some(alert), Some(live)) = (self.reported.take(), live) else { return };
        let (alert, notification) = self_monitor::recovered(&alert, &live.active.context(now));
        tokio::spawn(async move { send_past_outbox(&live.receivers, &alert, &notification, now).await });
    }
}

/// Opens the database of a daemon. Waits for a server that cannot be reached: it may be starting as well. Any other error ends the wait.
pub(super) async fn open_when_reachable(
    config: &Config,
    base_dir: &Path,
    clock: &Clock,
    serve: Option<ServeWaiting>,
) -> Result<Store, AppError> {
    let location = database_of(&config.store)?;
    let is_on_server = matches!(location, DatabaseLocation::Server(_));
    let _wait = LongWait::begin();
    let readiness = Readiness::starting(clock.now());
    let (mut outage, mut live) = (DatabaseOutage::default(), None);
    let mut server: Option<WaitingServer> = None;
    loop {
        let mut opening = std::pin::pin!(Store::open_in(location.clone(), Access::Own, clock.now()));
        let opened = tokio::select! {
            opened = &mut opening => opened,
            () = tokio::time::sleep(SERVE_AFTER), if is_on_server && server.is_none() => {
                if let Some(serve) = serve {
                    readiness.set_store_failure(NOT_OPEN_YET.to_owned());
                    server = WaitingServer::start(config, &readiness, serve).await;
                }
                opening.await
            }
        };
        let text = match opened {
            Err(error) if error.kind() == ErrorKind::ServerLost => error_chain(&error),
            // Another instance runs a newer version. This one waits for its upgrade, which restarts it.
            Err(error) if is_on_server && error.kind() == ErrorKind::Newer => {
                outage.end(live.take(), clock.now());
                wait_for_upgrade(&readiness, &error_chain(&error));
                if let (None, Some(serve)) = (&server, serve) {
                    server = WaitingServer::start(config, &readiness, serve).await;
                }
                tokio::time::sleep(lease::CHECK_INTERVAL).await;
                continue;
            }
            opened => {
                if let Some(server) = server {
                    server.stop().await;
                }
                if opened.is_ok() {
                    outage.end(live, clock.now());
                }
                return opened.map_err(|source| AppError::Store { doing: "open the database", source });
            }
        };
        if readiness.set_store_failure(text.clone()) {
            systemd::status(&format!("waiting for the database: {text}"));
            tracing::warn!(error = text, "cannot open the database yet; waiting for the server");
        }
        if let (None, Some(serve)) = (&server, serve) {
            server = WaitingServer::start(config, &readiness, serve).await;
        }
        outage
            .note_failure(&text, clock.now(), async || {
                live = live_config(config, base_dir, clock.now()).await;
                live.clone()
            })
            .await;
        tokio::time::sleep(lease::CHECK_INTERVAL).await;
    }
}

/// Reports that a newer program has migrated the database, to systemd as a started service: the start of an older package must not wait.
pub(super) fn wait_for_upgrade(readiness: &Readiness, error: &str) {
    if readiness.set_store_failure(error.to_owned()) {
        tracing::error!(error, "this version is too old for the database; waiting for an upgrade");
        systemd::ready(&format!("waiting for an upgrade: {error}"));
    }
}

/// Serves health and readiness at the address of the web pages.
struct WaitingServer {
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

impl WaitingServer {
    /// Returns `None` if the pages are off or the address cannot be bound, which the start reports later.
    async fn start(config: &Config, readiness: &Readiness, serve: ServeWaiting) -> Option<Self> {
        let listener = TcpListener::bind(config.http.listen.trim()).await.ok()?;
        let address = listener.local_addr().ok()?;
        let external_url = config.http.external_url.as_deref().and_then(|url| Url::parse(url).ok());
        let stop = CancellationToken::new();
        let handle = WaitingHandle { readiness: readiness.clone(), address, external_url };
        let served = tokio::spawn(serve(handle, listener, stop.clone()));
        Some(Self { stop, served })
    }

    /// Stops the server, so that the web server can bind the address.
    async fn stop(self) {
        self.stop.cancel();
        let aborting = self.served.abort_handle();
        if tokio::time::timeout(STOP_TIMEOUT, self.served).await.is_err() {
            aborting.abort();
        }
    }
}

/// Builds the receivers and routes of the config, for the report of an outage. Rule files with errors are left out.
async fn live_config(config: &Config, base_dir: &Path, now: Timestamp) -> Option<Arc<LiveConfig>> {
    let (config, base_dir) = (config.clone(), base_dir.to_owned());
    let reading = tokio::task::spawn_blocking(move || {
        let read = reload::read_files(&config, &mut GoodFiles::default(), &base_dir, now);
        LiveConfig::build_now(config, if read.problem.is_none() { read.set } else { RuleSet::default() })
    });
    match reading.await {
        Ok(Ok(live)) => Some(Arc::new(live)),
        Ok(Err(problems)) => {
            tracing::error!("cannot report the outage of the database: {}", problems.join("; "));
            None
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outage_is_reported_once_after_a_minute() {
        let mut outage = DatabaseOutage::default();
        let (at, now) = (Instant::now(), Timestamp::default());
        assert_eq!(outage.failed(at, now), None);
        outage.end(None, now);
        let later = now + chrono::TimeDelta::minutes(1);
        assert_eq!(outage.failed(at + REPORT_AFTER, later), None, "a new outage");
        assert_eq!(outage.failed(at + REPORT_AFTER * 2, later), Some(later));
        let active = engine::pipeline::ActiveRules::default();
        outage.reported = Some(self_monitor::store_unreachable("one:7", "refused", now, &active.context(now)).0);
        assert_eq!(outage.failed(at + REPORT_AFTER * 3, later), None);
    }
}
