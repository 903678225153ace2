//! Periodic maintenance: refreshes gauges, prunes old rows, checks the database once, and feeds the watchdog while schedule and cycles
//! make progress.

use std::sync::atomic::Ordering;
use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use super::{App, setups::SetupWatch};
use crate::cycle::CycleError;
use crate::metrics::{self, OutboxLevel};
use crate::schedule::{Job, Scheduler};
use crate::systemd::{self, ProgressMarker};
use engine::budget;
use engine::self_monitor::SourceState;
use model::{DeliveryState, Pulse, Timestamp, digest, text::error_chain};
use store::{ErrorKind, StoreError};

/// The interval between refreshes of the gauges.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum age of the gauges of watched tokens if no data changes. They depend on the time as well.
const DOMAIN_REFRESH_INTERVAL: TimeDelta = TimeDelta::minutes(1);
const PRUNE_INTERVAL: TimeDelta = TimeDelta::hours(6);
/// The delay of a slot after which the scheduler counts as stuck.
const SLOT_TIMEOUT: TimeDelta = TimeDelta::seconds(60);
/// The time without a commit after which a batch counts as stuck.
const BATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The state of the clock at the last check.
#[derive(Debug, Default)]
pub struct ClockWatch {
    /// Whether the last check found a difference to the source's clock. `None` before the first check.
    is_ahead: Option<bool>,
    /// The time of the last check that left no recorded time in the future.
    repaired_at: Option<Timestamp>,
}

/// The slot that was overdue at the last check. After a pause of the process or a step of its clock, a check may come just before the
/// schedule ticks, so a slot counts as missed only at the second check.
#[derive(Debug, Default)]
struct OverdueSlot(Option<(Job, Timestamp)>);

impl OverdueSlot {
    /// Records the slot that is overdue now. Returns it if it was overdue before.
    fn note(&mut self, overdue: Option<(Job, Timestamp)>) -> Option<(Job, Timestamp)> {
        let before = std::mem::replace(&mut self.0, overdue);
        overdue.filter(|slot| before == Some(*slot))
    }
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
        let (mut watch, mut domain, mut overdue) = (ClockWatch::default(), None, OverdueSlot::default());
        let mut setups = SetupWatch::default();
        let mut keeps_removed = self.deps.outbox.is_after_takeover();
        loop {
            self.check_clock(&mut watch).await;
            self.compare_setups(&mut setups).await;
            if keeps_removed && !self.deps.outbox.is_after_takeover() {
                keeps_removed = false;
                // From now on, alerts end whose rule or token left the config.
                self.deps.reevaluate.store(true, Ordering::SeqCst);
            }
            match self.refresh_gauges().await {
                Ok(()) => {
                    if self.is_progressing(&schedule, &mut overdue).await {
                        alive.mark();
                    }
                }
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "cannot read the gauges");
                    // A restart does not bring the server back. The lease decides whether this instance goes on.
                    if error.kind() == ErrorKind::ServerLost && self.is_progressing(&schedule, &mut overdue).await {
                        alive.mark();
                    }
                }
            }
            if let Err(error) = self.refresh_domain(&mut domain).await {
                tracing::error!(error = error_chain(&error), "cannot read the gauges of watched tokens");
            }
            for progress in self.deps.progress.due(std::time::Instant::now()) {
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
            // Pruning cannot be undone, so it waits until the time is confirmed.
            if self.clock.state().is_settled && pruned_at.is_none_or(|at| now < at || now - at >= PRUNE_INTERVAL) {
                pruned_at = Some(now);
                self.prune(now).await;
            }
            tokio::select! {
                () = tokio::time::sleep(REFRESH_INTERVAL) => {}
                () = ending.cancelled() => break,
            }
        }
        watchdog.abort();
    }

    /// Alerts about a wrong clock, and repairs times in the future that it recorded: once the time is confirmed, and whenever it was
    /// set back.
    #[doc(hidden)]
    pub async fn check_clock(&self, watch: &mut ClockWatch) {
        let (now, state) = (self.clock.now(), self.clock.state());
        if !state.is_settled {
            return;
        }
        if watch.is_ahead != Some(state.ahead.is_some()) {
            watch.is_ahead = Some(state.ahead.is_some());
            self.alerts.clock_checked(state).await;
        }
        if watch.repaired_at.is_none_or(|at| now < at) {
            match self.deps.store.repair_future_times(now).await {
                Ok(0) => {}
                Ok(rows) => {
                    tracing::warn!(rows, "recorded times in the future were set to now: the clock had been ahead");
                    self.deps.latest_evaluation.forget();
                    self.deps.reevaluate.store(true, Ordering::SeqCst);
                    self.deps.outbox.wake();
                }
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "cannot repair recorded times in the future");
                    return;
                }
            }
        }
        watch.repaired_at = Some(now);
        self.deps.saved_clock.save(&self.clock, &self.deps.store).await;
    }

    async fn prune(&self, now: Timestamp) {
        let live = self.deps.setup();
        let store = &live.config.store;
        if let Err(error) = self.deps.store.prune(now, store.retention.0, store.poll_log_retention.0).await {
            tracing::error!(error = error_chain(&error), "cannot prune old rows");
        }
    }

    /// Returns `true` if no slot is overdue, and the current batch ends in time or makes progress.
    async fn is_progressing(&self, schedule: &Scheduler, overdue: &mut OverdueSlot) -> bool {
        if let Some((job, slot)) = overdue.note(schedule.overdue(SLOT_TIMEOUT)) {
            tracing::error!(job = job.as_str(), %slot, "the scheduler missed a slot; the watchdog is not fed");
            return false;
        }
        let committed = || self.deps.committed_inputs.load(Ordering::Relaxed);
        let before = committed();
        // A token list with many tokens is one batch with many commits.
        let is_free = tokio::time::timeout(BATCH_TIMEOUT, self.deps.batch_lock.lock()).await.is_ok();
        let is_progressing = is_free || committed() != before;
        if !is_progressing {
            tracing::error!("a batch takes too long; the watchdog is not fed");
        }
        is_progressing
    }

    /// Refreshes the gauges of watched tokens if data changed or the last refresh is too old.
    async fn refresh_domain(&self, seen: &mut Option<(Pulse, Timestamp)>) -> Result<(), StoreError> {
        let (now, store) = (self.clock.now(), &self.deps.store);
        let pulse = store.pulse().await?;
        if seen.as_ref().is_some_and(|(last, at)| *last == pulse && (now - *at).abs() < DOMAIN_REFRESH_INTERVAL) {
            return Ok(());
        }
        let gauges = store.domain_gauges(now, metrics::windows(now), self.deps.setup().watch.clone()).await?;
        self.deps.metrics.set_domain(&gauges, now);
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
        let notifications = store.notification_overview(now, now - digest::SUPPRESSED_WINDOW).await?;
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
        metrics.set_source_state(state);
        metrics.set_incidents(&[open, self.readiness.store_incident().into_iter().collect()].concat());
        self.readiness.set_source(state);
        for (endpoint, at) in gauges.last_success {
            metrics.set_last_success(endpoint, at);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_is_missed_only_if_it_is_still_overdue_at_the_next_check() {
        let mut overdue = OverdueSlot::default();
        let slot = |secs| Some((Job::Evaluate, Timestamp::from_timestamp(secs, 0).expect("a time")));
        assert_eq!(overdue.note(slot(1)), None, "the clock has jumped, and the schedule ticks within a second");
        assert_eq!(overdue.note(slot(61)), None, "another slot");
        assert_eq!(overdue.note(slot(61)), slot(61), "the schedule does not tick");
        assert_eq!(overdue.note(None), None);
        assert_eq!(overdue.note(slot(61)), None);
    }
}
