//! Runs a reload and activates the result.
//!
//! Everything that can fail comes first: files are read and tested, and everything is built from them. Then, while no batch is being
//! processed, the [live value](crate::live) is swapped and the dependent parts are updated. If anything fails, the previous value
//! stays active, and log, status, metric, and an alert report the reason.

use std::sync::{Arc, atomic::Ordering};

use chrono::TimeDelta;

use super::{GoodFiles, ReadFiles, ReloadProblem, WATCH_INTERVAL, fingerprint, read, resolve_positions};
use crate::app::{ActiveFiles, App, reload_under_systemd, remember_good_rules};
use crate::digest_positions::DigestPositions;
use crate::live::LiveConfig;
use crate::outbox::ReceiverSender;
use crate::readiness::RuleLoad;
use model::{BoxFuture, LoggedReload, Timestamp, phrase::count, text::error_chain};

/// The maximum age of a dead letter that is sent when its receiver returns to the config. Older ones are of no use.
const MAX_ORPHAN_AGE: TimeDelta = TimeDelta::days(7);

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// A line about the active rules.
    pub text: String,
    /// Whether keys changed that only a restart applies.
    pub needs_restart: bool,
}

impl App {
    /// Reads config and rule files again and activates them, all or nothing. A standby writes nothing to the database.
    ///
    /// # Errors
    ///
    /// Fails with all errors of all files. The previous config and rules stay active.
    pub fn reload(&self) -> BoxFuture<'_, Result<Reloaded, ReloadProblem>> {
        Box::pin(async move {
            let mut files = self.files.lock().await;
            self.reload_from(&mut files).await
        })
    }

    async fn reload_from(&self, files: &mut ActiveFiles) -> Result<Reloaded, ReloadProblem> {
        let now = self.clock.now();
        let active = self.deps.setup();
        let (origin, base_dir, mut good) = (self.origin.clone(), self.base_dir.clone(), files.good.clone());
        let reading = tokio::task::spawn_blocking(move || {
            // Taken before reading, so that a change during the read triggers another reload.
            let fingerprint = fingerprint(&active.config, origin.as_ref(), &base_dir);
            let read = read(&active.config, &mut good, origin.as_ref(), &base_dir, now);
            (ActiveFiles { fingerprint, good }, read)
        });
        let ReadFiles { config, needs_restart, set, texts, outcomes, problem, diagnostics } = match reading.await {
            Ok((as_read, read)) => {
                *files = as_read;
                read
            }
            Err(error) => {
                tracing::error!(%error, "cannot read the changed files; the previous config and rules stay active");
                return Err(ReloadProblem::of_parts(None, &["the files could not be read: see the log".to_owned()]));
            }
        };
        let (rules, tests) = (set.rules.len(), outcomes.len());
        let load = RuleLoad { at: now, diagnostics, texts: texts.clone(), outcomes: Some(outcomes) };
        self.readiness.set_last_load(load);
        let built = match problem {
            Some(problem) => Err(problem),
            None => LiveConfig::build(config, set)
                .await
                .map_err(|problems| ReloadProblem::of_parts(self.origin.as_ref().map(|origin| &*origin.path), &problems)),
        };
        let built = match built {
            Ok(live) => match resolve_positions(&live, &self.deps.store).await {
                Ok(None) => Ok(live),
                Ok(Some(problem)) => Err(problem),
                Err(error) => Err(ReloadProblem::of_parts(None, &[error_chain(&error)])),
            },
            failed => failed,
        };
        let live = match built {
            Ok(live) => live,
            Err(problem) => {
                self.readiness.set_reload_failed(now, problem.full.clone());
                self.deps.metrics.set_reload(false);
                tracing::error!("the changed files have errors; the previous config and rules stay active\n{}", problem.full);
                self.alerts.reload_failed(&problem).await;
                self.log_reload(LoggedReload { rules: None, problem: Some(problem.brief.clone()) }, now).await;
                return Err(problem);
            }
        };
        self.readiness.set_texts(texts.clone());
        files.good = GoodFiles { paths: live.config.rules.paths.clone(), texts, ..GoodFiles::default() };
        remember_good_rules(&self.deps.store, &files.good).await;
        self.swap(live).await;
        self.receivers_changed().await;
        self.readiness.set_rules_loaded(now, rules, &files.good.paths);
        self.deps.metrics.set_reload(true);
        self.alerts.reload_succeeded().await;
        self.log_reload(LoggedReload { rules: u32::try_from(rules).ok(), problem: None }, now).await;
        let mut text = count(rules, "active rule");
        if tests > 0 {
            text.push_str(&format!(", {} passed", count(tests, "test")));
        }
        if !needs_restart.is_empty() {
            text.push_str(&format!("; changed keys that need a restart: {}", needs_restart.join(", ")));
        }
        tracing::info!(rules, tests, "reloaded config and rules: {text}");
        Ok(Reloaded { text, needs_restart: !needs_restart.is_empty() })
    }

    /// Adds a reload to the event log. A standby writes nothing.
    async fn log_reload(&self, reload: LoggedReload, now: Timestamp) {
        let store = &self.deps.store;
        if store.is_active()
            && let Err(error) = store.log_reload(reload, now).await
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot add the reload to the event log");
        }
    }

    /// Resolves the incidents of receivers that left the config, and sends the deliveries that became dead letters while a receiver of the
    /// config was missing.
    pub(crate) async fn receivers_changed(&self) {
        let (store, now) = (&self.deps.store, self.clock.now());
        if !store.is_active() {
            return;
        }
        self.alerts.receivers_removed().await;
        for receiver in self.deps.setup().receivers.names() {
            match store.revive_orphans(receiver.clone(), now - MAX_ORPHAN_AGE, now).await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(%receiver, count, "the receiver is in the config again; its dead letters are sent");
                    self.deps.outbox.wake();
                }
                Err(error) => {
                    tracing::error!(%receiver, error = error_chain(&error), "cannot resend the dead letters of a receiver that is in the config")
                }
            }
        }
    }

    /// Activates a new value while no batch is being processed, so that every batch uses one value. Then updates outbox, mirror, and
    /// schedule.
    async fn swap(&self, live: LiveConfig) {
        let deps = &self.deps;
        let live = Arc::new(live);
        live.receivers.continue_from(&deps.setup().receivers);
        let before = {
            let _batch = deps.batch_lock.lock().await;
            let before = deps.live.swap(live.clone());
            let positions = DigestPositions::of(&live.watch, &live.policy.digests);
            let sender = ReceiverSender { receivers: live.receivers.clone(), store: deps.store.clone(), positions };
            deps.outbox.replace(Arc::new(sender), live.config.delivery.clone()).await;
            deps.reevaluate.store(true, Ordering::SeqCst);
            before
        };
        if let Some(scope) = self.mirror_scope.get() {
            scope.replace(live.endpoints(), live.watch.clone());
        }
        let times = |live: &LiveConfig| serde_json::to_value(&live.config.schedule).ok();
        if let Some(schedule) = self.schedule.get()
            && times(&before) != times(&live)
        {
            let last_runs = deps.store.job_slots().await.unwrap_or_else(|error| {
                tracing::error!(error = error_chain(&error), "cannot read when jobs last ran; new jobs run at once");
                Vec::new()
            });
            schedule.replace(live.slots.clone(), &last_runs);
        }
        self.retry_failed_polls();
    }

    /// Reloads when files change. Ignores a file that is still being written: two fingerprints in a row must be equal. Ends after a reload
    /// that needs a restart if `ends_for_restart` is set.
    pub(crate) async fn watch_files(&self, ends_for_restart: bool) {
        let mut last: Option<u128> = None;
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let (live, origin, base_dir) = (self.deps.setup(), self.origin.clone(), self.base_dir.clone());
            let reading = tokio::task::spawn_blocking(move || fingerprint(&live.config, origin.as_ref(), &base_dir));
            let Ok(current) = reading.await else { continue };
            let is_settled = last.replace(current) == Some(current);
            let mut files = self.files.lock().await;
            let is_due = files.good.recheck_at.is_some_and(|at| at <= self.clock.now());
            if is_settled && (files.fingerprint != current || is_due) {
                tracing::info!("config or rule files changed");
                let reloaded = reload_under_systemd(&self.role(), self.reload_from(&mut files)).await;
                if ends_for_restart && reloaded.is_ok_and(|reloaded| reloaded.needs_restart) {
                    return;
                }
            }
        }
    }
}
