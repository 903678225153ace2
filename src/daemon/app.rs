//! The daemon as a whole: [built](App::open) from the config, [run](App::run) by its schedule or [driven](Drive) by hand, stopped in
//! reverse order.
//!
//! The cast: `build` connects everything; `run` starts it and stops it; `drive` runs a job and says what came of it; `maintenance` is
//! what is done beside the schedule; `self_alerts` tells of incidents of this program; `dead_mans_switch` is pinged while all goes
//! well. How a reload is swapped in lies in [`crate::reload`], whether the daemon is ready in [`crate::readiness`].

mod build;
mod dead_mans_switch;
mod drive;
mod maintenance;
mod run;
mod self_alerts;
mod standby;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::cycle::{self, CycleError};
use crate::place::PlaceProblem;
use crate::readiness::Readiness;
use crate::reload::{self, Origin};
use crate::schedule::Scheduler;
pub(crate) use build::remember_good_rules;
use dead_mans_switch::DeadMansSwitch;
pub use drive::Drive;
pub use maintenance::ClockWatch;
use model::Clock;
pub use run::asked_to_stop;
pub(crate) use run::told_to_systemd;
use self_alerts::SelfAlerts;
use source::ClientError;
use store::{Store, StoreError};

/// What keeps the app from starting.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Rule files with errors, and no older rules to work with.
    #[error("the rules cannot be used:\n\n{0}")]
    Rules(String),
    /// The config, as far as it can only be found out by building from it.
    #[error("the config cannot be used: {0}")]
    Config(String),
    #[error(transparent)]
    Place(#[from] PlaceProblem),
    /// Another instance is, or may be, the active one by now: whoever was must begin anew.
    #[error("this instance is not the active one any more: it begins anew, as one that stands by")]
    LeaseLost,
    /// Another instance is the active one, and this command cannot wait.
    #[error("another instance is the active one ({holder}): stop it first")]
    AnotherIsActive { holder: String },
    #[error("cannot {doing}")]
    Store { doing: &'static str, source: StoreError },
    #[error("cannot make the client of the API")]
    Client(#[from] ClientError),
    #[error("cannot listen on {address}: name another address in `{key}`, or stop what listens there")]
    Listen {
        /// Of the config: `[http] listen`.
        key: &'static str,
        address: String,
        source: std::io::Error,
    },
    #[error("cannot start the schedule: {0}")]
    Schedule(String),
    #[error("cannot open the mirror")]
    Mirror(#[from] service::ServiceError),
    /// A cycle that the database ended.
    #[error(transparent)]
    Cycle(#[from] CycleError),
}

/// The files that config and rules came from.
#[derive(Debug)]
pub(crate) struct FilesAtWork {
    /// As they were last read.
    pub fingerprint: u128,
    pub good: reload::GoodFiles,
}

/// Everything, built and connected.
pub struct App {
    pub(crate) deps: Arc<cycle::Deps>,
    pub(crate) readiness: Readiness,
    pub(crate) clock: Clock,
    pub(crate) base_dir: PathBuf,
    pub(crate) alerts: SelfAlerts,
    /// The ticker, once it runs, and what the mirror tells of; both follow a reload.
    pub(crate) schedule: OnceLock<Arc<Scheduler>>,
    pub(crate) reach: OnceLock<service::MirrorScope>,
    /// Where the config is read from again; none where it came from no file.
    pub(crate) origin: Option<Origin>,
    /// One reload at a time.
    pub(crate) files: tokio::sync::Mutex<FilesAtWork>,
    switch: Option<DeadMansSwitch>,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("base_dir", &self.base_dir).finish_non_exhaustive()
    }
}

impl App {
    /// Has a reload read the config again too, from where it came from.
    #[must_use]
    pub fn reading_again(mut self, origin: Origin) -> Self {
        let live = self.deps.setup();
        self.files.get_mut().fingerprint = reload::fingerprint(&live.config, Some(&origin), &self.base_dir);
        self.origin = Some(origin);
        self
    }

    /// What a cycle works with: for benches that commit beside it.
    pub fn deps(&self) -> &cycle::Deps {
        &self.deps
    }

    pub fn store(&self) -> &Store {
        &self.deps.store
    }
}
