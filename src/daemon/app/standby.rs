//! Several instances on one database: one is active, the others stand by.
//!
//! One that stands by serves pages, API, calendars and the mirror, and does what people ask for by them: silences, acknowledgements,
//! retries by hand. Those are transactions of their own that decide nothing which the active one decides too, so they need no lease.
//! It asks no source, evaluates nothing and sends nothing. Deliveries are the active one's alone: what a receiver may get in an hour,
//! whether it is down, and which message waits for which are known to its worker, and two workers of one receiver would each know half.
//!
//! Whoever takes over begins as after a death: everything is read from the database anew. Whoever loses the lease ends what it does at
//! once and begins anew, as one that stands by.

use std::time::Duration;

use super::build::resume_clock;
use super::{App, AppError, remember_good_rules};
use crate::place::instance_name;
use crate::readiness::NotReady;
use crate::systemd::{self, ProgressMarker};
use model::{BoxFuture, Clock, lease, text::error_chain};
use store::{Access, Place, Standing, Store, StoreError};

/// Opens the database of a daemon. A server that cannot be reached is waited for: it may be starting as well.
pub(super) async fn open_patiently(place: Place, clock: &Clock, progress: fn(usize, usize)) -> Result<Store, StoreError> {
    let mut is_failing = false;
    loop {
        match Store::open_telling(place.clone(), Access::Own, clock.now(), progress).await {
            Err(error) if error.is_lost() => {
                if !std::mem::replace(&mut is_failing, true) {
                    let text = error_chain(&error);
                    systemd::status(&text);
                    tracing::warn!(error = text, "the database cannot be opened yet");
                }
                tokio::time::sleep(lease::LOOK).await;
            }
            result => return result,
        }
    }
}

/// Takes the lease for a command that polls or delivers once, and keeps it while the store is open. Fails where another is active.
pub(super) async fn take_at_once(store: &Store) -> Result<(), AppError> {
    if !store.is_shared() {
        return Ok(());
    }
    let doing = "take the lease";
    match store.keep_lease(&instance_name()).await.map_err(|source| AppError::Store { doing, source })? {
        Standing::Active => {}
        Standing::StandingBy { holder } => return Err(AppError::AnotherIsActive { holder }),
    }
    let store = store.clone();
    tokio::spawn(async move {
        while store.is_active() {
            tokio::time::sleep(lease::RENEWAL).await;
            let _ = store.keep_lease(&instance_name()).await;
        }
    });
    Ok(())
}

/// Being asked to reload.
struct Hangups(Option<tokio::signal::unix::Signal>);

/// Listens from this call on; where it cannot, nobody is heard.
fn hangups() -> Hangups {
    use tokio::signal::unix::{SignalKind, signal};
    Hangups(signal(SignalKind::hangup()).ok())
}

impl Hangups {
    async fn next(&mut self) {
        let heard = match &mut self.0 {
            Some(hangups) => hangups.recv().await,
            None => None,
        };
        if heard.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl App {
    /// Stands by until this instance is the active one; false where it is asked to stop before.
    pub(super) async fn stand_by(&self, stop: &mut BoxFuture<'static, ()>) -> Result<bool, AppError> {
        let alive = ProgressMarker::default();
        let watchdog = {
            let alive = alive.clone();
            tokio::spawn(systemd::feed_watchdog(move || vec![alive.clone()]))
        };
        let name = instance_name();
        let mut hangups = hangups();
        let mut told: Option<String> = None;
        let is_active = loop {
            alive.mark();
            match self.store().keep_lease(&name).await {
                Ok(Standing::Active) => break true,
                Ok(Standing::StandingBy { holder }) => {
                    self.readiness.set_ready();
                    self.readiness.store_works();
                    if told.as_ref() != Some(&holder) {
                        let text = format!("standing by: {holder} is active");
                        tracing::info!(%holder, "{text}");
                        systemd::ready(&text);
                        self.readiness.stands(&text);
                        told = Some(holder);
                    }
                }
                Err(error) => {
                    let text = error_chain(&error);
                    if told.take().is_some() {
                        tracing::warn!(error = text, "the lease cannot be looked at");
                    }
                    self.readiness.set_not_ready(NotReady::StoreFails(text));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(lease::LOOK) => {}
                () = &mut *stop => break false,
                // Nothing is under way: a fresh process reads everything again.
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

    /// What a start does that must wait for the lease.
    async fn take_over(&self) -> Result<(), AppError> {
        tracing::info!("this instance is the active one now");
        self.readiness.stands("active");
        self.deps.metrics.set_active(true);
        resume_clock(self.store(), &self.clock).await?;
        remember_good_rules(self.store(), &self.files.lock().await.good).await;
        self.alerts.receivers_removed().await;
        self.deps.outbox.begin().await;
        Ok(())
    }

    /// Renews the lease for as long as it is this instance's.
    pub(super) async fn keep_lease(&self) {
        let name = instance_name();
        let mut is_failing = false;
        loop {
            tokio::time::sleep(if is_failing { lease::LOOK } else { lease::RENEWAL }).await;
            match self.store().keep_lease(&name).await {
                Ok(Standing::Active) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!("the lease is renewed again");
                        self.readiness.store_works();
                    }
                }
                Ok(Standing::StandingBy { .. }) => return,
                Err(_) if !self.store().is_active() => return,
                Err(error) => {
                    let text = error_chain(&error);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(error = text, "the lease cannot be renewed");
                    }
                    self.readiness.set_not_ready(NotReady::StoreFails(text));
                }
            }
        }
    }

    /// Ends everything at once, without waiting for anybody: what was under way is another's to finish.
    pub(super) async fn step_down(&self) -> AppError {
        tracing::warn!("the lease is lost: everything under way is dropped");
        self.deps.metrics.set_active(false);
        self.readiness.stands("standing by");
        self.deps.stopping.cancel();
        self.deps.outbox.stop(Duration::ZERO).await;
        AppError::LeaseLost
    }
}
