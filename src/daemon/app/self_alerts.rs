//! Alerts of the daemon about itself: a failed reload, a database that cannot be written, a wrong clock, and receiver outages.
//! [`engine::self_monitor`] builds them; this module stores and sends them.

use std::sync::Arc;

use crate::cycle::{self, CycleError};
use crate::readiness::Readiness;
use crate::reload;
use engine::{evaluate::EvaluationContext, self_monitor};
use model::text::error_chain;
use model::{Alert, Batch, Clock, ClockState, Commit, DeliveryId, DueDelivery, Notification, RuleId, SOURCE_TROUBLE, Timestamp};
use notify::Receivers;
use store::ErrorKind;

pub(crate) struct SelfAlerts {
    deps: Arc<cycle::Deps>,
    clock: Clock,
    readiness: Readiness,
}

impl SelfAlerts {
    pub(super) fn new(deps: Arc<cycle::Deps>, clock: Clock, readiness: Readiness) -> Self {
        Self { deps, clock, readiness }
    }

    /// Opens the alert about files with errors. [`Self::reload_succeeded`] resolves it.
    pub(crate) async fn reload_failed(&self, problem: &reload::ReloadProblem) {
        self.begin(self_monitor::RELOAD_SUBJECT, |episode, context| {
            self_monitor::reload_failed(problem.count, &problem.brief, &problem.owners, episode, context)
        })
        .await;
    }

    /// Resolves the alert of [`Self::reload_failed`].
    pub(crate) async fn reload_succeeded(&self) {
        self.end(self_monitor::RELOAD_SUBJECT).await;
    }

    /// Opens the alert about instances whose config or rules differ from the active instance's.
    pub(super) async fn instances_differ(&self, active: &str, others: &[String]) {
        self.begin(self_monitor::INSTANCES_SUBJECT, |episode, context| {
            self_monitor::instances_differ(active, others, episode, context)
        })
        .await;
    }

    /// Resolves the alert of [`Self::instances_differ`].
    pub(super) async fn instances_agree(&self) {
        self.end(self_monitor::INSTANCES_SUBJECT).await;
    }

    /// Opens the alert about a clock that differs from the source's, or resolves it.
    pub(super) async fn clock_checked(&self, state: ClockState) {
        match state.ahead {
            Some(ahead) => {
                self.begin(self_monitor::CLOCK_SUBJECT, |episode, context| {
                    self_monitor::clock_differs(ahead, state.is_by_source, episode, context)
                })
                .await;
            }
            None => self.end(self_monitor::CLOCK_SUBJECT).await,
        }
    }

    /// Opens an alert about `subject` unless one is open, and stores its notification. `make` gets the number of the last episode, 0 if
    /// there was none. If the database cannot be read, no alert counts as open and the number is 0.
    async fn begin(&self, subject: &str, make: impl FnOnce(u32, &EvaluationContext<'_>) -> (Alert, Notification)) {
        if self.open(subject).await.is_some() {
            return;
        }
        let pair = (RuleId::from(SOURCE_TROUBLE), subject.to_owned());
        let episodes = self.deps.store.episodes(vec![pair]).await;
        let episode = episodes.ok().and_then(|found| found.first().copied()).unwrap_or_default();
        self.notify(|context| make(episode, context)).await;
    }

    /// Resolves the open alert about `subject`, if any.
    async fn end(&self, subject: &str) {
        if let Some(open) = self.open(subject).await {
            self.notify(|context| self_monitor::recovered(&open, context)).await;
        }
    }

    /// Resolves the alerts about receivers that were removed from the config.
    pub(crate) async fn receivers_removed(&self) {
        let open = match self.deps.store.source_alerts().await {
            Ok(open) => open,
            Err(error) => return tracing::error!(error = error_chain(&error), "cannot read the open incidents of receivers"),
        };
        let known: Vec<String> = self.deps.setup().config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
        let is_removed = |alert: &&Alert| {
            let receiver = alert.subject.strip_prefix(self_monitor::RECEIVER_PREFIX);
            receiver.is_some_and(|receiver| known.iter().all(|name| name != receiver))
        };
        for alert in open.iter().filter(is_removed) {
            self.notify(|context| self_monitor::receiver_removed(alert, context)).await;
        }
    }

    async fn open(&self, subject: &str) -> Option<Alert> {
        let open = self.deps.store.source_alerts().await.ok()?;
        open.into_iter().find(|alert| alert.subject == subject)
    }

    /// Stores an alert and its notification, and wakes the outbox. Does nothing on a standby.
    async fn notify(&self, make: impl FnOnce(&EvaluationContext<'_>) -> (Alert, Notification)) {
        if !self.deps.store.is_active() {
            return;
        }
        let now = self.clock.now();
        let (alert, notification) = make(&self.deps.active().context(now));
        let commit = Commit { at: now, alerts: vec![alert], notifications: vec![notification], ..Commit::default() };
        match self.deps.store.commit(commit).await {
            Ok(_) => self.deps.outbox.wake(),
            Err(error) => tracing::error!(error = error_chain(&error), "cannot store the notifications of an incident"),
        }
    }

    /// Handles a cycle that failed because of the database. If the database cannot be written, the alert cannot be stored there
    /// either, so it is sent once without the outbox.
    pub(super) async fn store_failed(&self, error: &CycleError) {
        tracing::error!(error = error_chain(error), "the cycle ended early; committed batches stay, the rest is polled again");
        let CycleError::Store { source, .. } = error;
        self.readiness.set_store_failure(error_chain(error));
        if !matches!(source.kind(), ErrorKind::Damaged | ErrorKind::Unreadable | ErrorKind::Full) {
            return;
        }
        let now = self.clock.now();
        let active = self.deps.active();
        let context = active.context(now);
        // The hour serves as the number, because the database cannot count episodes now.
        let episode = u32::try_from(now.timestamp() / 3600).unwrap_or_default();
        let (alert, notification) = match source.kind() {
            ErrorKind::Full => self_monitor::store_full(&error_chain(error), episode, &context),
            _ => self_monitor::store_damaged(&error_chain(error), episode, &context),
        };
        if !self.readiness.open_store_incident(&alert) {
            return;
        }
        // At once, because the gauges may not be readable either.
        self.deps.metrics.add_incident(&alert);
        send_past_outbox(&self.deps.setup().receivers, &alert, &notification, now).await;
    }

    /// Resolves the alert of [`Self::store_failed`] after a cycle that used the database, if it can be written.
    pub(super) async fn store_recovered(&self) {
        // The cycle may have written nothing.
        if self.readiness.store_incident().is_some() && self.deps.store.decide_credit(|credit| (credit, ())).await.is_err() {
            return;
        }
        self.readiness.clear_store_failure();
        if let Some(alert) = self.readiness.close_store_incident() {
            let now = self.clock.now();
            let (alert, notification) = self_monitor::recovered(&alert, &self.deps.active().context(now));
            send_past_outbox(&self.deps.setup().receivers, &alert, &notification, now).await;
        }
    }
}

/// Sends a notification to its receivers without storing it.
pub(super) async fn send_past_outbox(receivers: &Receivers, alert: &Alert, notification: &Notification, now: Timestamp) {
    for receiver in &notification.receivers {
        let delivery = DueDelivery {
            id: DeliveryId(0),
            webhook_id: format!("msg_{}_{receiver}", alert.id),
            receiver: receiver.clone(),
            attempts: 0,
            tries: 0,
            created_at: now,
            due_at: now,
            notifications: vec![notification.clone()],
            batch: Batch::default(),
            over: Vec::new(),
            replay: None,
        };
        let (outcome, attempt) = receivers.send(receiver, &delivery, now).await;
        tracing::warn!(%receiver, outcome = ?outcome, response = attempt.response, "sent without the outbox, because the database cannot be written");
    }
}
