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

use super::database_outage::{DatabaseOutage, wait_for_upgrade};
use super::setups::SetupWatch;
use super::{App, AppError, ReloadRequests, reload_under_systemd, remember_good_rules};
use crate::database_url::instance_name;
use crate::readiness::Phase;
use crate::systemd::{self, LongWait, ProgressMarker};
use model::{BoxFuture, Clock, MAX_CLOCK_DIFFERENCE, lease, text::error_chain};
use store::{ErrorKind, LeaseStatus, Store};

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

/// Restarts the waits of the outbox whose begin lies in the future, because the clock of an earlier active instance was ahead. If this
/// fails, messages wait until this clock has caught up.
pub(super) async fn restart_future_waits(store: &Store, clock: &Clock) {
    if let Err(error) = store.restart_future_waits(clock.now()).await {
        tracing::warn!(error = error_chain(&error), "cannot restart the waits of an instance whose clock was ahead");
    }
}

impl App {
    /// Waits until this instance holds the lease, and then takes over. Returns `false` if `stop` completes first. A database that cannot be
    /// read is recorded in the readiness, and the wait continues. Meanwhile, changed files are reloaded.
    ///
    /// # Errors
    ///
    /// Fails with [`AppError::LeaseLost`] if a reload needs a restart, which ends no work of a standby, or if the takeover fails.
    pub(super) async fn wait_for_lease(&self, stop: &mut BoxFuture<'static, ()>) -> Result<bool, AppError> {
        let step = ProgressMarker::default();
        let wait = LongWait::in_loop(step.clone());
        let mut outage = DatabaseOutage::default();
        let name = instance_name();
        let (mut reported, mut setups): (Option<String>, _) = (None, SetupWatch::default());
        let is_active = {
            // Dropped before the takeover, which needs its lock.
            let mut restart_needed = std::pin::pin!(self.follow_files());
            loop {
                step.mark();
                let checked = self.store().maintain_lease(&name).await;
                step.mark();
                if checked.is_ok() {
                    self.readiness.clear_store_failure();
                    outage.end(Some(self.deps.setup()), self.clock.now());
                }
                match checked {
                    Ok(LeaseStatus::Active) => break true,
                    Ok(LeaseStatus::Standby { holder }) => {
                        self.readiness.set_phase(Phase::Running);
                        if reported.as_ref() != Some(&holder) {
                            let text = format!("standby: {holder} is active");
                            tracing::info!(%holder, "{text}");
                            systemd::ready(&text);
                            self.readiness.set_instance_role(&text);
                            reported = Some(holder);
                        }
                        self.compare_setups(&mut setups).await;
                    }
                    Err(error) if error.kind() == ErrorKind::Newer => {
                        outage.end(Some(self.deps.setup()), self.clock.now());
                        wait_for_upgrade(&self.readiness, &error_chain(&error));
                        reported = None;
                    }
                    Err(error) => {
                        let text = error_chain(&error);
                        reported = None;
                        outage.note_failure(&text, self.clock.now(), async || Some(self.deps.setup())).await;
                        if self.readiness.set_store_failure(text.clone()) {
                            tracing::warn!(error = text, "cannot read the lease; waiting for the server");
                            systemd::status(&format!("standby, waiting for the database: {text}"));
                        }
                    }
                }
                tokio::select! {
                    () = tokio::time::sleep(lease::CHECK_INTERVAL) => {}
                    () = &mut *stop => break false,
                    () = &mut restart_needed => return Err(AppError::LeaseLost),
                }
            }
        };
        drop(wait);
        if is_active {
            let _wait = LongWait::begin();
            tokio::select! {
                taken_over = self.take_over() => taken_over?,
                // Reading files may take longer than the term of the lease.
                () = self.maintain_lease() => return Err(self.step_down().await),
            }
        }
        Ok(is_active)
    }

    /// Reloads when files change or SIGHUP arrives. Completes if a restart is needed.
    async fn follow_files(&self) {
        let mut requests = ReloadRequests::listen();
        let reload_on_hangup = async {
            loop {
                requests.next().await;
                let reloaded = reload_under_systemd(&self.role(), self.reload()).await;
                if reloaded.is_ok_and(|reloaded| reloaded.needs_restart) {
                    return;
                }
            }
        };
        tokio::select! {
            () = reload_on_hangup => {}
            () = self.watch_files(true) => {}
        }
    }

    /// Runs the part of the start that requires the lease. Config and rules are read again before anything is evaluated or sent: those of
    /// this instance may be as old as its start. If they have errors, the last valid ones of this instance stay active.
    ///
    /// # Errors
    ///
    /// Fails with [`AppError::LeaseLost`], after giving up the lease, if the config needs a restart.
    async fn take_over(&self) -> Result<(), AppError> {
        tracing::info!("this instance is now active");
        self.readiness.set_instance_role("active");
        self.deps.metrics.set_active(true);
        self.require_time_confirmation().await;
        self.deps.outbox.begin_takeover();
        match self.reload().await {
            Ok(reloaded) if reloaded.needs_restart => {
                self.store().close().await.map_err(|source| AppError::Store { doing: "close the database", source })?;
                return Err(AppError::LeaseLost);
            }
            Ok(_) => {}
            Err(_) => {
                remember_good_rules(self.store(), &self.files.lock().await.good).await;
                self.receivers_changed().await;
            }
        }
        restart_future_waits(self.store(), &self.clock).await;
        self.deps.outbox.begin().await;
        Ok(())
    }

    /// Requires a new confirmation of the time. A standby polls nothing, so its clock may have been wrong since its start. If it is far
    /// ahead of the latest evaluation of any instance, nothing is decided by it until the source responds.
    #[doc(hidden)]
    pub async fn require_time_confirmation(&self) {
        self.clock.require_confirmation();
        let latest = self.store().evaluated_at().await.unwrap_or_default();
        if latest.is_some_and(|latest| self.clock.now().signed_duration_since(latest) > MAX_CLOCK_DIFFERENCE) {
            self.clock.contradict();
        }
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
                        systemd::status("active; the database responds again");
                        self.readiness.clear_store_failure();
                    }
                }
                Ok(LeaseStatus::Standby { .. }) => return,
                Err(_) if !self.store().is_active() => return,
                Err(error) => {
                    let text = error_chain(&error);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(error = text, "cannot renew the lease");
                        systemd::status(&format!("active, waiting for the database: {text}"));
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
