//! The parts of the app that the web server uses.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::{io, sync::Weak};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{App, reload_under_systemd};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use model::{BoxFuture, Clock, config::Secret};
use store::Store;

/// Serves pages and API on the listener until the token is cancelled. Fails if the listener fails for good. A function value, because
/// the `web` crate depends on this one.
pub type ServeWeb = fn(AppHandle, TcpListener, CancellationToken) -> BoxFuture<'static, io::Result<()>>;

/// The state of a daemon that waits for its database.
#[derive(Clone)]
pub struct WaitingHandle {
    pub readiness: Readiness,
    pub address: SocketAddr,
    /// `[http] external_url`.
    pub external_url: Option<Url>,
}

/// Like [`ServeWeb`], for a daemon that waits for its database.
pub type ServeWaiting = fn(WaitingHandle, TcpListener, CancellationToken) -> BoxFuture<'static, io::Result<()>>;

/// Reloads config and rules. Returns a line about the active rules, or every problem as text.
pub type ReloadNow = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Wakes the outbox workers.
pub type WakeOutbox = Arc<dyn Fn() + Send + Sync>;

/// The parts of the app that requests read and act on.
#[derive(Clone)]
pub struct AppHandle {
    pub store: Store,
    pub metrics: Arc<Metrics>,
    pub readiness: Readiness,
    pub clock: Clock,
    /// The bearer token that requests must carry.
    pub bearer: Secret,
    pub address: SocketAddr,
    /// The active config and rules.
    pub live: Arc<Live>,
    /// `[http] external_url`.
    pub external_url: Option<Url>,
    /// The directory that relative paths of the config start from.
    pub base_dir: Arc<Path>,
    pub reload: ReloadNow,
    pub wake: WakeOutbox,
}

impl App {
    /// Returns the parts of the app for the web server, which listens on `address` and requires the token `bearer`. The handle does not
    /// keep the app alive: once the app has stopped, a reload fails and a wake-up has no effect.
    pub(super) fn handle(self: &Arc<Self>, bearer: Secret, address: SocketAddr) -> AppHandle {
        // Weak: a request that is still open must not keep the app alive.
        let (app, outbox) = (Arc::downgrade(self), Arc::downgrade(&self.deps.outbox));
        // The web server has another runtime. What a reload starts belongs to the daemon, and a closed connection must not interrupt it.
        let runtime = tokio::runtime::Handle::current();
        let external_url = self.deps.setup().config.http.external_url.as_deref().and_then(|url| Url::parse(url).ok());
        AppHandle {
            store: self.deps.store.clone(),
            metrics: self.deps.metrics.clone(),
            readiness: self.readiness.clone(),
            clock: self.clock.clone(),
            bearer,
            address,
            live: self.deps.live.clone(),
            external_url,
            base_dir: self.base_dir.as_path().into(),
            reload: Arc::new(move || {
                let reloading = runtime.spawn(reload(app.clone()));
                Box::pin(async { reloading.await.unwrap_or_else(|_| Err("stopping".to_owned())) })
            }),
            wake: Arc::new(move || outbox.upgrade().into_iter().for_each(|outbox| outbox.wake())),
        }
    }
}

async fn reload(app: Weak<App>) -> Result<String, String> {
    match app.upgrade() {
        Some(app) => {
            let reloaded = reload_under_systemd(&app.role(), app.reload()).await;
            reloaded.map(|reloaded| reloaded.text).map_err(|problem| problem.full)
        }
        None => Err("stopping".to_owned()),
    }
}
