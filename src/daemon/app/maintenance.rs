//! Maintenance: what is done beside the schedule. Gauges are read, what is old is pruned, the database is checked once, and the
//! watchdog is fed for as long as schedule and cycles go on.

use std::sync::atomic::Ordering;
use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use super::App;
use crate::cycle::CycleError;
use crate::metrics::{self, OutboxLevel};
use crate::schedule::Scheduler;
use crate::systemd::{self, ProgressMarker};
use engine::budget;
use engine::self_monitor::{self, SourceState};
use model::{DeliveryState, Pulse, Timestamp, digest, text::error_chain};
use store::StoreError;

/// How often the gauges are read from the database.
const REFRESH: Duration = Duration::from_secs(10);
/// How long the gauges of what is watched stand where nothing is new: they move with the time.
const DOMAIN_REST: TimeDelta = TimeDelta::minutes(1);
/// How often what is old is pruned.
const PRUNE: TimeDelta = TimeDelta::hours(6);
/// How late a slot may be taken before the ticker counts as standing still.
const SLOT_PATIENCE: TimeDelta = TimeDelta::seconds(60);
/// How long a batch may take to be compared, evaluated and committed before it counts as hung.
const TURN_PATIENCE: Duration = Duration::from_secs(10);

/// What was last seen of the clock.
#[derive(Debug, Default)]
pub struct ClockWatch {
    /// Whether it was last told that the clocks differ; none where nothing was said yet.
    told: Option<bool>,
    /// The time when nothing that had happened lay in the future.
    mended_at: Option<Timestamp>,
}

impl App {
    /// Maintains the daemon until `ending`.
    pub(super) async fn maintain(self: Arc<Self>, schedule: Arc<Scheduler>, ending: CancellationToken) {
        let alive = ProgressMarker::default();
        let markers = {
            let (alive, outbox) = (alive.clone(), self.deps.outbox.clone());
            move || [alive.clone()].into_iter().chain(outbox.progress()).collect()
        };
        let watchdog = tokio::spawn(systemd::feed_watchdog(markers));
        let checking = {
            let store = self.deps.store.clone();
            tokio::spawn(async move { store.integrity_check().await })
        };
        let mut checking = Some(checking);
        let mut pruned_at: Option<Timestamp> = None;
        let (mut watch, mut domain) = (ClockWatch::default(), None);
        loop {
            self.mind_clock(&mut watch).await;
            match self.refresh_gauges().await {
                Ok(()) => {
                    if self.moves(&schedule).await {
                        alive.mark();
                    }
                }
                Err(error) => tracing::error!(error = error_chain(&error), "cannot read the gauges"),
            }
            if let Err(error) = self.refresh_domain(&mut domain).await {
                tracing::error!(error = error_chain(&error), "cannot read the gauges of what is watched");
            }
            for progress in self.deps.reading.due(std::time::Instant::now()) {
                let sentence = progress.sentence();
                tracing::info!("{sentence}");
                systemd::status(&sentence);
            }
            if let Some(check) = checking.take_if(|check| check.is_finished())
                && let Ok(Err(source)) = check.await
            {
                self.alerts.store_failed(&CycleError::Store { doing: "check the database", source }).await;
            }
            let now = self.clock.now();
            // Not by a time that nobody has borne out yet: what is forgotten is gone.
            if self.clock.state().is_settled && pruned_at.is_none_or(|at| now < at || now - at >= PRUNE) {
                pruned_at = Some(now);
                self.prune(now).await;
            }
            tokio::select! {
                () = tokio::time::sleep(REFRESH) => {}
                () = ending.cancelled() => break,
            }
        }
        watchdog.abort();
    }

    /// Tells of a clock that is wrong, and mends what was written by one: once the time has been borne out, and whenever it goes back.
    #[doc(hidden)]
    pub async fn mind_clock(&self, watch: &mut ClockWatch) {
        let (now, state) = (self.clock.now(), self.clock.state());
        if !state.is_settled {
            return;
        }
        if watch.told != Some(state.ahead.is_some()) {
            watch.told = Some(state.ahead.is_some());
            self.alerts.clock_is(state).await;
        }
        if watch.mended_at.is_none_or(|at| now < at) {
            match self.deps.store.pull_back(now).await {
                Ok(0) => {}
                Ok(rows) => {
                    tracing::warn!(rows, "times that lay in the future were pulled back to now: the clock had been ahead");
                    self.deps.reevaluate.store(true, Ordering::SeqCst);
                    self.deps.outbox.wake();
                }
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "cannot mend times that lie in the future");
                    return;
                }
            }
        }
        watch.mended_at = Some(now);
        self.deps.kept_clock.keep(&self.clock, &self.deps.store).await;
    }

    async fn prune(&self, now: Timestamp) {
        let live = self.deps.setup();
        let store = &live.config.store;
        if let Err(error) = self.deps.store.prune(now, store.retention.0, store.poll_log_retention.0).await {
            tracing::error!(error = error_chain(&error), "cannot clear away what is old");
        }
    }

    /// Whether schedule and cycles go on: no slot was passed over, and the batch in hand makes room for the next.
    async fn moves(&self, schedule: &Scheduler) -> bool {
        if let Some((job, slot)) = schedule.overdue(SLOT_PATIENCE) {
            tracing::error!(job = job.as_str(), %slot, "the ticker passed a slot over: the watchdog is not fed");
            return false;
        }
        let has_turn = tokio::time::timeout(TURN_PATIENCE, self.deps.turn.lock()).await.is_ok();
        if !has_turn {
            tracing::error!("a batch has been under way for too long: the watchdog is not fed");
        }
        has_turn
    }

    /// Reads what is watched for the metrics, where anything is new or the time has moved on.
    async fn refresh_domain(&self, seen: &mut Option<(Pulse, Timestamp)>) -> Result<(), StoreError> {
        let (now, store) = (self.clock.now(), &self.deps.store);
        let pulse = store.pulse().await?;
        if seen.as_ref().is_some_and(|(last, at)| *last == pulse && (now - *at).abs() < DOMAIN_REST) {
            return Ok(());
        }
        let until = now.checked_add_signed(metrics::FARTHEST).unwrap_or(now);
        let gauges = store.domain_gauges(now, until).await?;
        self.deps.metrics.set_domain(&gauges, &self.deps.setup().watch, now);
        *seen = Some((pulse, now));
        Ok(())
    }

    async fn refresh_gauges(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let (store, metrics) = (&self.deps.store, &self.deps.metrics);
        for _ in 0..self.deps.setup().receivers.take_template_failures() {
            metrics.template_fallback();
        }
        let gauges = store.gauges().await?;
        let credit = store.credit().await?;
        let open = store.source_alerts().await?;
        let notifications = store.notification_overview(now, now - digest::DAY).await?;
        metrics.set_notifications(&notifications, now);
        let levels: Vec<OutboxLevel> = gauges
            .outbox
            .iter()
            .map(|receiver| OutboxLevel {
                receiver: receiver.receiver.clone(),
                pending: receiver.pending(),
                oldest: receiver.oldest_pending.and_then(|at| (now - at).to_std().ok()),
                dead: receiver.of(DeliveryState::Dead),
            })
            .collect();
        metrics.set_outbox(&levels);
        let settings = &self.deps.setup().config.budget;
        let credit = budget::rolled(credit, settings, now);
        let left = budget::left(&credit, settings, now);
        metrics.set_credits(&credit, left, budget::ends_at(&credit, now));
        metrics.set_removals_held(gauges.removals_held);
        for (state, count) in gauges.alerts {
            metrics.set_alerts(state, count);
        }
        let state = SourceState::of(&open, !gauges.last_success.is_empty());
        metrics.set_source_state(state, open.iter().any(|alert| self_monitor::is_source_down(&alert.subject)));
        metrics.set_incidents(&open);
        self.readiness.source_is(state);
        for (endpoint, at) in gauges.last_success {
            metrics.set_last_success(endpoint, at);
        }
        Ok(())
    }
}
