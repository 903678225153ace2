//! A reload swapped: here it is decided whether what was read goes to work, and when.
//!
//! What can fail comes first (the files are read and tested, everything is built from them). Then, while no batch is under way, the
//! [live value](crate::live) is swapped, and those who keep a state of their own are told. Where anything fails, what was at work goes
//! on, and log, status, metric and an alert say why.

use std::sync::{Arc, atomic::Ordering};

use super::{GoodFiles, ReadFiles, ReloadProblem, WATCH, fingerprint, read};
use crate::app::{App, FilesAtWork, remember_good_rules, told_to_systemd};
use crate::live::LiveConfig;
use crate::outbox::ReceiverSender;
use crate::readiness::RuleLoad;
use model::{BoxFuture, format::count, text::error_chain};

impl App {
    /// Reads config and rule files again and puts them to work, all or nothing.
    /// Fails with every problem of every file, for people. What was at work before goes on working.
    pub fn reload(&self) -> BoxFuture<'_, Result<String, ReloadProblem>> {
        Box::pin(async move {
            let mut files = self.files.lock().await;
            self.reload_from(&mut files).await
        })
    }

    async fn reload_from(&self, files: &mut FilesAtWork) -> Result<String, ReloadProblem> {
        let now = self.clock.now();
        let at_work = self.deps.setup();
        let (origin, base_dir, mut good) = (self.origin.clone(), self.base_dir.clone(), files.good.clone());
        let reading = tokio::task::spawn_blocking(move || {
            // Before they are read: what changes meanwhile is read again.
            let fingerprint = fingerprint(&at_work.config, origin.as_ref(), &base_dir);
            let read = read(&at_work.config, &mut good, origin.as_ref(), &base_dir, now);
            (FilesAtWork { fingerprint, good }, read)
        });
        let ReadFiles { config, waits, set, texts, outcomes, problem, diagnostics } = match reading.await {
            Ok((as_read, read)) => {
                *files = as_read;
                read
            }
            Err(error) => {
                tracing::error!(%error, "the changed files could not be read: what was at work goes on");
                return Err(ReloadProblem::of_parts(None, &["the files could not be read: see the log".to_owned()]));
            }
        };
        let (rules, tests) = (set.rules.len(), outcomes.len());
        let load = RuleLoad { at: now, diagnostics, texts: texts.clone(), outcomes: Some(outcomes) };
        self.readiness.rules_read(load);
        let built = match problem {
            Some(problem) => Err(problem),
            None => LiveConfig::build(config, set)
                .await
                .map_err(|problems| ReloadProblem::of_parts(self.origin.as_ref().map(|origin| &*origin.path), &problems)),
        };
        let live = match built {
            Ok(live) => live,
            Err(problem) => {
                self.readiness.reload_failed(now, problem.full.clone());
                self.deps.metrics.set_reload(false);
                tracing::error!("the changed files have errors: what was at work goes on\n{}", problem.full);
                self.alerts.reload_failed(&problem).await;
                return Err(problem);
            }
        };
        self.readiness.texts_at_work(texts.clone());
        files.good = GoodFiles { paths: live.config.rules.paths.clone(), texts, ..GoodFiles::default() };
        remember_good_rules(&self.deps.store, &files.good).await;
        self.swap(live).await;
        self.alerts.receivers_removed().await;
        self.readiness.rules_loaded(now, rules);
        self.deps.metrics.set_reload(true);
        self.alerts.reload_worked().await;
        let mut text = format!("{} at work", count(rules, "rule"));
        if tests > 0 {
            text.push_str(&format!(", {} passed", count(tests, "test")));
        }
        if !waits.is_empty() {
            text.push_str(&format!("; changed, but only a restart puts it to work: {}", waits.join(", ")));
        }
        tracing::info!(rules, tests, "the rules were reloaded: {text}");
        Ok(text)
    }

    /// Puts a new value to work while no batch is under way: whatever is evaluated from now on is evaluated by the new rules and
    /// config alone. Then tells those who follow it.
    async fn swap(&self, live: LiveConfig) {
        let deps = &self.deps;
        let live = Arc::new(live);
        let before = {
            let _turn = deps.turn.lock().await;
            let before = deps.live.swap(live.clone());
            let sender = ReceiverSender { receivers: live.receivers.clone(), store: deps.store.clone() };
            deps.outbox.replace(Arc::new(sender), live.config.delivery.clone()).await;
            deps.reevaluate.store(true, Ordering::SeqCst);
            before
        };
        if let Some(reach) = self.reach.get() {
            reach.replace(live.endpoints(), live.watch.clone());
        }
        let times = |live: &LiveConfig| serde_json::to_value(&live.config.schedule).ok();
        if let Some(schedule) = self.schedule.get()
            && times(&before) != times(&live)
        {
            let last_runs = deps.store.job_slots().await.unwrap_or_else(|error| {
                tracing::error!(error = error_chain(&error), "cannot read when jobs last ran: those that are new begin at once");
                Vec::new()
            });
            schedule.replace(live.slots.clone(), &last_runs).await;
        }
    }

    /// Reloads where files changed, until nobody asks any more. A file that is being written is left alone: two readings in a row must
    /// be the same.
    pub(crate) async fn watch_files(&self) {
        let mut last: Option<u128> = None;
        loop {
            tokio::time::sleep(WATCH).await;
            let (live, origin, base_dir) = (self.deps.setup(), self.origin.clone(), self.base_dir.clone());
            let reading = tokio::task::spawn_blocking(move || fingerprint(&live.config, origin.as_ref(), &base_dir));
            let Ok(current) = reading.await else { continue };
            let is_settled = last.replace(current) == Some(current);
            let mut files = self.files.lock().await;
            let is_due = files.good.look_again_at.is_some_and(|at| at <= self.clock.now());
            if is_settled && (files.fingerprint != current || is_due) {
                tracing::info!("config or rule files changed");
                let _ = told_to_systemd(self.reload_from(&mut files)).await;
            }
        }
    }
}
