//! Alerts of this program about itself: a reload that failed, a database that cannot be written, receivers that nothing reaches.
//! [`engine::self_monitor`] words them; here they are written and told.

use std::sync::{Arc, Mutex, PoisonError};

use crate::cycle::{self, CycleError};
use crate::live::Live;
use crate::outbox::{Announce, DownReceiver};
use crate::readiness::{NotReady, Readiness};
use crate::reload;
use engine::{evaluate::EvaluationContext, self_monitor};
use model::text::error_chain;
use model::{
    Alert, Batch, Clock, ClockState, Commit, DeliveryId, DueDelivery, Notification, ReceiverName, RuleId, SOURCE_TROUBLE,
    Timestamp,
};

/// Writes and tells them.
pub(crate) struct SelfAlerts {
    deps: Arc<cycle::Deps>,
    clock: Clock,
    readiness: Readiness,
    /// The database cannot be written, and this was told.
    store_incident: Mutex<Option<Alert>>,
}

impl SelfAlerts {
    pub(super) fn new(deps: Arc<cycle::Deps>, clock: Clock, readiness: Readiness) -> Self {
        Self { deps, clock, readiness, store_incident: Mutex::default() }
    }

    /// The files have errors: told once, until [`Self::reload_worked`].
    pub(crate) async fn reload_failed(&self, problem: &reload::ReloadProblem) {
        self.begin(self_monitor::RELOAD_SUBJECT, |episode, context| {
            self_monitor::reload_failed(problem.count, &problem.brief, &problem.owners, episode, context)
        })
        .await;
    }

    /// The files are good: the end of what told that they were not.
    pub(crate) async fn reload_worked(&self) {
        self.end(self_monitor::RELOAD_SUBJECT).await;
    }

    /// How this machine's clock stands to the source's: told once, until they agree again.
    pub(super) async fn clock_is(&self, state: ClockState) {
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

    /// Tells of what goes on about `subject`, unless that was told already; `make` is given the last episode of it.
    async fn begin(&self, subject: &str, make: impl FnOnce(u32, &EvaluationContext<'_>) -> (Alert, Notification)) {
        if self.open(subject).await.is_some() {
            return;
        }
        let pair = (RuleId::from(SOURCE_TROUBLE), subject.to_owned());
        let episodes = self.deps.store.episodes(vec![pair]).await;
        let episode = episodes.ok().and_then(|found| found.first().copied()).unwrap_or_default();
        self.tell(|context| make(episode, context)).await;
    }

    /// Tells the end of what was told about `subject`.
    async fn end(&self, subject: &str) {
        if let Some(open) = self.open(subject).await {
            self.tell(|context| self_monitor::recovered(&open, context)).await;
        }
    }

    /// Ends what told of receivers that the config no longer has.
    pub(crate) async fn receivers_removed(&self) {
        let open = match self.deps.store.source_alerts().await {
            Ok(open) => open,
            Err(error) => return tracing::error!(error = error_chain(&error), "cannot read which receivers are in trouble"),
        };
        let known: Vec<String> = self.deps.setup().config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
        let is_removed = |alert: &&Alert| {
            let receiver = alert.subject.strip_prefix(self_monitor::RECEIVER_PREFIX);
            receiver.is_some_and(|receiver| known.iter().all(|name| name != receiver))
        };
        for alert in open.iter().filter(is_removed) {
            self.tell(|context| self_monitor::receiver_removed(alert, context)).await;
        }
    }

    async fn open(&self, subject: &str) -> Option<Alert> {
        let open = self.deps.store.source_alerts().await.ok()?;
        open.into_iter().find(|alert| alert.subject == subject)
    }

    /// Writes an alert with what is told of it.
    async fn tell(&self, make: impl FnOnce(&EvaluationContext<'_>) -> (Alert, Notification)) {
        let now = self.clock.now();
        let (alert, notification) = make(&self.deps.active().context(now));
        let commit = Commit { at: now, alerts: vec![alert], notifications: vec![notification], ..Commit::default() };
        match self.deps.store.commit(commit).await {
            Ok(_) => self.deps.outbox.wake(),
            Err(error) => tracing::error!(error = error_chain(&error), "cannot write down what is to be told"),
        }
    }

    /// A cycle could not use the database. One that cannot be written cannot hold the alert that says so: it is sent past the outbox,
    /// once.
    pub(super) async fn store_failed(&self, error: &CycleError) {
        tracing::error!(
            error = error_chain(error),
            "the cycle ended early; what was committed stays, the rest is asked for again"
        );
        let CycleError::Store { source, .. } = error;
        self.readiness.set_not_ready(NotReady::StoreFails(error_chain(error)));
        if !source.is_damaged() && !source.is_full() {
            return;
        }
        let now = self.clock.now();
        let active = self.deps.active();
        let (alert, notification) = {
            let mut told = self.store_incident.lock().unwrap_or_else(PoisonError::into_inner);
            if told.is_some() {
                return;
            }
            let context = active.context(now);
            // Numbered by the hour: the database cannot count for us now.
            let episode = u32::try_from(now.timestamp() / 3600).unwrap_or_default();
            let made = match source.is_full() {
                true => self_monitor::store_full(&error_chain(error), episode, &context),
                false => self_monitor::store_damaged(&error_chain(error), episode, &context),
            };
            *told = Some(made.0.clone());
            made
        };
        self.send_past_outbox(&alert, &notification, now).await;
    }

    /// A cycle used the database: the end of what told that it cannot be used.
    pub(super) async fn store_works(&self) {
        self.readiness.store_works();
        let told = self.store_incident.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(alert) = told {
            let now = self.clock.now();
            let (alert, notification) = self_monitor::recovered(&alert, &self.deps.active().context(now));
            self.send_past_outbox(&alert, &notification, now).await;
        }
    }

    async fn send_past_outbox(&self, alert: &Alert, notification: &Notification, now: Timestamp) {
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
                bundle: Batch::default(),
                over: Vec::new(),
            };
            let (outcome, attempt) = self.deps.setup().receivers.send(receiver, &delivery, now).await;
            tracing::warn!(%receiver, outcome = ?outcome, answer = attempt.answer, "sent past the outbox, since the database cannot be written");
        }
    }
}

/// Words what the outbox announces, by the rules at work.
pub(super) struct OutboxAnnouncer {
    pub(super) live: Arc<Live>,
}

impl Announce for OutboxAnnouncer {
    fn rule(&self) -> RuleId {
        RuleId::from(SOURCE_TROUBLE)
    }

    fn dead_letter(&self, delivery: &DueDelivery, reason: &str, now: Timestamp) -> Option<(Alert, Notification)> {
        let live = self.live.load();
        let context = live.active.context(now);
        self_monitor::dead_letter(delivery.id, &delivery.receiver, &delivery.notifications, reason, &context)
    }

    fn receiver_down(&self, down: &DownReceiver<'_>, now: Timestamp) -> Option<(Alert, Notification)> {
        let live = self.live.load();
        let context = live.active.context(now);
        let DownReceiver { receiver, since, answer, waiting, latest_episode } = *down;
        Some(self_monitor::receiver_dead(receiver, answer, waiting, since, latest_episode, &context))
    }

    fn receiver_back(&self, _: &ReceiverName, open: &Alert, now: Timestamp) -> Option<(Alert, Notification)> {
        Some(self_monitor::recovered(open, &self.live.load().active.context(now)))
    }
}
