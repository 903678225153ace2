//! Several instances on one database: one is active, the others are standbys.
//!
//! A standby serves pages, API, calendars, and the mirror, and handles requests of users: silences, acknowledgements, manual retries.
//! These are separate transactions that make no decision of the active instance, so they need no lease. A standby polls nothing,
//! evaluates nothing, and sends nothing. Only the active instance delivers, because rate limits, outages, and message order are
//! tracked in the memory of each receiver's one worker.
//!
//! A takeover works like a restart: everything is read from the database. An instance that loses the lease stops at once and restarts
//! as a standby.

use std::time::Duration;

use super::{App, AppError, remember_good_rules};
use crate::database_url::instance_name;
use crate::readiness::Phase;
use crate::systemd::{self, ProgressMarker};
use model::{BoxFuture, Clock, lease, text::error_chain};
use store::{Access, DatabaseLocation, ErrorKind, LeaseStatus, Store, StoreError};

/// Opens the database, and waits for a server that cannot be reached: it may be starting as well.
pub(super) async fn open_when_reachable(location: DatabaseLocation, clock: &Clock) -> Result<Store, StoreError> {
    let mut is_failing = false;
    loop {
        match Store::open_in(location.clone(), Access::Own, clock.now()).await {
            Err(error) if error.kind() == ErrorKind::ServerLost => {
                if !std::mem::replace(&mut is_failing, true) {
                    let text = error_chain(&error);
                    systemd::status(&text);
                    tracing::warn!(error = text, "cannot open the database yet");
                }
                tokio::time::sleep(lease::CHECK_INTERVAL).await;
            }
            result => return result,
        }
    }
}

/// Takes the lease for a command that polls or delivers once, and renews it while the store is open.
///
/// # Errors
///
/// Fails if another instance is active.
pub(super) async fn take_lease(store: &Store) -> Result<(), AppError> {
    if !store.is_shared() {
        return Ok(());
    }
    let doing = "take the lease";
    match store.maintain_lease(&instance_name()).await.map_err(|source| AppError::Store { doing, source })? {
        LeaseStatus::Active => {}
        LeaseStatus::Standby { holder } => return Err(AppError::AnotherIsActive { other: holder }),
    }
    let store = store.clone();
    tokio::spawn(async move {
        while store.is_active() {
            tokio::time::sleep(lease::RENEWAL).await;
            let _ = store.maintain_lease(&instance_name()).await;
        }
    });
    Ok(())
}

/// The SIGHUP signals of this process.
struct Hangups(Option<tokio::signal::unix::Signal>);

/// Starts to listen for SIGHUP. If that fails, no signal ever arrives.
fn hangups() -> Hangups {
    use tokio::signal::unix::{SignalKind, signal};
    Hangups(signal(SignalKind::hangup()).ok())
}

impl Hangups {
    /// Waits for the next SIGHUP. Never completes if signals cannot be received.
    async fn next(&mut self) {
        let received = match &mut self.0 {
            Some(hangups) => hangups.recv().await,
            None => None,
        };
        if received.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl App {
    /// Waits until this instance holds the lease, and then takes over. Returns `false` if `stop` completes first. A database that cannot be
    /// read is recorded in the readiness, and the wait continues.
    ///
    /// # Errors
    ///
    /// Fails with [`AppError::LeaseLost`] on SIGHUP, so that a new process applies the reload, or if the takeover fails.
    pub(super) async fn wait_for_lease(&self, stop: &mut BoxFuture<'static, ()>) -> Result<bool, AppError> {
        let alive = ProgressMarker::default();
        let watchdog = {
            let alive = alive.clone();
            tokio::spawn(systemd::feed_watchdog(move || vec![alive.clone()]))
        };
        let name = instance_name();
        let mut hangups = hangups();
        let mut reported: Option<String> = None;
        let is_active = loop {
            alive.mark();
            match self.store().maintain_lease(&name).await {
                Ok(LeaseStatus::Active) => {
                    self.readiness.clear_store_failure();
                    break true;
                }
                Ok(LeaseStatus::Standby { holder }) => {
                    self.readiness.set_phase(Phase::Running);
                    self.readiness.clear_store_failure();
                    if reported.as_ref() != Some(&holder) {
                        let text = format!("standby: {holder} is active");
                        tracing::info!(%holder, "{text}");
                        systemd::ready(&text);
                        self.readiness.set_instance_role(&text);
                        reported = Some(holder);
                    }
                }
                Err(error) => {
                    let text = error_chain(&error);
                    if reported.take().is_some() {
                        tracing::warn!(error = text, "cannot read the lease");
                    }
                    self.readiness.set_store_failure(text);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(lease::CHECK_INTERVAL) => {}
                () = &mut *stop => break false,
                // A standby has no work in progress, so a new process may do the reload.
                () = hangups.next() => {
                    systemd::reloading();
                    return Err(AppError::LeaseLost);
                }
            }
        };
        watchdog.abort();
        if is_active {
            self.take_over().await?;
        }
        Ok(is_active)
    }

    /// Runs the part of the start that requires the lease.
    async fn take_over(&self) -> Result<(), AppError> {
        tracing::info!("this instance is now active");
        self.readiness.set_instance_role("active");
        self.deps.metrics.set_active(true);
        self.clock.require_confirmation();
        remember_good_rules(self.store(), &self.files.lock().await.good).await;
        self.alerts.receivers_removed().await;
        self.deps.outbox.begin().await;
        Ok(())
    }

    /// Renews the lease until this instance loses it.
    pub(super) async fn maintain_lease(&self) {
        let name = instance_name();
        let mut is_failing = false;
        loop {
            tokio::time::sleep(if is_failing { lease::CHECK_INTERVAL } else { lease::RENEWAL }).await;
            match self.store().maintain_lease(&name).await {
                Ok(LeaseStatus::Active) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!("the lease is renewed again");
                        self.readiness.clear_store_failure();
                    }
                }
                Ok(LeaseStatus::Standby { .. }) => return,
                Err(_) if !self.store().is_active() => return,
                Err(error) => {
                    let text = error_chain(&error);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(error = text, "cannot renew the lease");
                    }
                    self.readiness.set_store_failure(text);
                }
            }
        }
    }

    /// Stops everything at once. The new active instance finishes the work.
    pub(super) async fn step_down(&self) -> AppError {
        tracing::warn!("the lease is lost; all current work is dropped");
        self.deps.metrics.set_active(false);
        self.readiness.set_instance_role("standby");
        self.deps.stopping.cancel();
        self.deps.outbox.stop(Duration::ZERO).await;
        AppError::LeaseLost
    }
}
