//! The daemon as a whole: [built](App::open) from the config, [run](App::run) by its schedule or [by hand](Drive), and stopped in
//! reverse order.
//!
//! `build` connects the parts, `run` starts and stops them, and `drive` runs one job and reports the result. `handle` is the part
//! that the web server uses. `maintenance` runs periodic tasks. `self_alerts` sends alerts about the daemon itself, and
//! `dead_mans_switch` is pinged after each successful cycle. [`crate::reload`] swaps in new config and rules;
//! [`crate::readiness`] reports whether the daemon is ready.

mod build;
mod database_outage;
mod dead_mans_switch;
mod drive;
mod handle;
mod key_watch;
mod maintenance;
mod run;
mod self_alerts;
mod setups;
mod standby;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::cycle::{self, CycleError};
use crate::database_url::DatabaseUrlError;
use crate::readiness::Readiness;
use crate::reload::{self, Origin};
use crate::schedule::Scheduler;
pub(crate) use build::remember_good_rules;
use dead_mans_switch::DeadMansSwitch;
pub use drive::Drive;
pub use handle::{AppHandle, ReloadNow, ServeWaiting, ServeWeb, WaitingHandle, WakeOutbox};
pub use maintenance::ClockWatch;
use model::Clock;
pub(crate) use run::reload_under_systemd;
pub use run::{ReloadRequests, stop_requested};
use self_alerts::SelfAlerts;
use source::ClientError;
use store::{ErrorKind, Store, StoreError};

/// An error that keeps the app from starting or running.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The rule files have errors, and there is no older valid version to use.
    #[error("the rules cannot be used:\n\n{0}")]
    Rules(String),
    /// An error in the config that only building the app can find.
    #[error("the config cannot be used: {0}")]
    Config(String),
    #[error(transparent)]
    DatabaseUrl(#[from] DatabaseUrlError),
    /// Another instance is, or may be, active by now. This process must restart as a standby.
    #[error("this instance is no longer the active one: it restarts as a standby")]
    LeaseLost,
    /// Another instance is active, and this command does not wait.
    #[error("another instance ({other}) is active: stop it first")]
    AnotherIsActive { other: String },
    #[error("cannot {doing}")]
    Store { doing: &'static str, source: StoreError },
    #[error("cannot create the API client")]
    Client(#[from] ClientError),
    #[error("cannot listen on {address}: set another address in `{key}`, or stop the program that listens there")]
    Listen {
        /// The config key, such as `[http] listen`.
        key: &'static str,
        address: String,
        source: std::io::Error,
    },
    #[error("cannot start the thread of polls")]
    PollThread(#[source] std::io::Error),
    #[error("cannot start the schedule: {0}")]
    Schedule(String),
    #[error("cannot open the mirror")]
    Mirror(#[from] service::ServiceError),
    /// A cycle that failed because of the database.
    #[error(transparent)]
    Cycle(#[from] CycleError),
}

impl AppError {
    /// Returns whether a new process can continue, as a standby or once the database server responds again.
    pub fn needs_restart(&self) -> bool {
        let source = match self {
            AppError::LeaseLost => return true,
            AppError::Store { source, .. } | AppError::Cycle(CycleError::Store { source, .. }) => source,
            _ => return false,
        };
        matches!(source.kind(), ErrorKind::ServerLost | ErrorKind::NotActive)
    }
}

/// The files of the active config and rules.
#[derive(Debug)]
pub(crate) struct ActiveFiles {
    /// The fingerprint of the files when they were last read.
    pub fingerprint: u128,
    pub good: reload::GoodFiles,
}

/// The daemon, built and connected.
pub struct App {
    pub(crate) deps: Arc<cycle::Deps>,
    pub(crate) readiness: Readiness,
    pub(crate) clock: Clock,
    pub(crate) base_dir: PathBuf,
    pub(crate) alerts: SelfAlerts,
    /// Set once the schedule runs. Follows a reload.
    pub(crate) schedule: OnceLock<Arc<Scheduler>>,
    /// The tokens and endpoints that the mirror serves. Set once it runs. Follows a reload.
    pub(crate) mirror_scope: OnceLock<service::MirrorScope>,
    /// The source of the config for reloads. `None` if the config has no file.
    pub(crate) origin: Option<Origin>,
    /// Locked during a reload, so that reloads run one at a time.
    pub(crate) files: tokio::sync::Mutex<ActiveFiles>,
    switch: Option<DeadMansSwitch>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("base_dir", &self.base_dir).finish_non_exhaustive()
    }
}

impl App {
    /// Makes a reload read the config from `origin` again, in addition to the rules.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        let live = self.deps.setup();
        self.files.get_mut().fingerprint = reload::fingerprint(&live.config, Some(&origin), &self.base_dir);
        self.origin = Some(origin);
        self
    }

    /// The dependencies of a cycle, for benches that commit in parallel.
    pub fn deps(&self) -> &cycle::Deps {
        &self.deps
    }

    pub fn store(&self) -> &Store {
        &self.deps.store
    }
}
