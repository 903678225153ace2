//! Runs single jobs and logs their results.

use super::App;
use crate::cycle::{CycleError, CycleReport, RetryOutcome, run_cycle, run_retry};
use crate::outbox::DeliveryReport;
use crate::schedule::{Job, NextRetry, RunEnd, RunReason};
use crate::systemd;
use model::{BoxFuture, Endpoint, FailureKind, Timestamp};

/// The maximum number of failed feeds that the log lists for a cycle. The database has all of them.
const LOGGED_FAILURES: usize = 3;

/// The trigger of jobs and deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// The schedule, with a worker for each receiver.
    Schedule,
    /// Calls of [`App::tick`] and [`App::deliver`] only.
    Manual,
}

impl App {
    /// Runs a job now, as if its slot had come.
    pub fn tick(&self, job: Job) -> BoxFuture<'_, Result<CycleReport, CycleError>> {
        Box::pin(async move {
            let now = self.clock.now();
            run_cycle(&self.deps, job, now, now).await
        })
    }

    /// Attempts every delivery that is due now, once.
    pub fn deliver(&self) -> BoxFuture<'_, DeliveryReport> {
        Box::pin(async move { self.deps.outbox.deliver_due(self.clock.now()).await })
    }

    /// The jobs that are on, in the order in which a single pass runs them.
    pub fn jobs(&self) -> Vec<Job> {
        self.deps.setup().slots.iter().map(|(job, _)| *job).collect()
    }

    /// Retries the failed polls of an endpoint, as the schedule does between slots.
    #[doc(hidden)]
    pub fn retry(&self, endpoint: Endpoint, is_urgent: bool) -> BoxFuture<'_, Result<RetryOutcome, CycleError>> {
        Box::pin(async move { run_retry(&self.deps, endpoint, is_urgent, self.clock.now()).await })
    }

    /// Runs a job, and updates log, readiness, and alerts. The first value is `true` if the cycle completed and no poll failed; it is
    /// `false` if a retry polled nothing.
    pub(super) async fn run_job(&self, job: Job, reason: RunReason) -> (bool, RunEnd) {
        let now = self.clock.now();
        let ran = match (reason, job.endpoint()) {
            (RunReason::Retry { is_urgent }, Some(endpoint)) => run_retry(&self.deps, endpoint, is_urgent, now).await,
            (RunReason::Retry { .. }, None) => return (false, RunEnd::DONE),
            (RunReason::Slot(slot), _) => run_cycle(&self.deps, job, slot, now)
                .await
                .map(|report| RetryOutcome::Polled { report: Box::new(report), is_probe: false }),
        };
        match ran {
            Ok(RetryOutcome::Polled { report, is_probe }) => {
                self.readiness.set_last_cycle(now, report.to_string());
                log(&report);
                self.alerts.store_recovered().await;
                let retry = next_retry(&report, is_probe);
                (report.failed.is_empty(), RunEnd { retry, is_first_list: report.is_first_list })
            }
            Ok(RetryOutcome::Waits { until }) => {
                (false, RunEnd { retry: until.map_or(NextRetry::None, NextRetry::At), ..RunEnd::DONE })
            }
            Err(error) => {
                self.alerts.store_failed(&error).await;
                (false, RunEnd::DONE)
            }
        }
    }
}

/// Returns when to retry the failed polls of a cycle.
fn next_retry(report: &CycleReport, is_probe: bool) -> NextRetry {
    if report.failed.is_empty() {
        return if is_probe { NextRetry::Recovered } else { NextRetry::None };
    }
    // A response that cannot be stored or compared would cost credits again for nothing.
    if report.failed.iter().all(|(_, failure)| matches!(failure.kind, FailureKind::NotStored | FailureKind::Unreadable)) {
        return NextRetry::None;
    }
    let requested: Option<Vec<Timestamp>> = report.failed.iter().map(|(_, failure)| failure.retry_at).collect();
    NextRetry::Failed { not_before: requested.and_then(|times| times.into_iter().min()), is_paid: report.failed_credits > 0 }
}

fn log(report: &CycleReport) {
    let (job, cycle) = (report.job.as_str(), report.id());
    for (feed, failure) in report.failed.iter().take(LOGGED_FAILURES) {
        tracing::warn!(job, cycle, %feed, kind = failure.kind.as_str(), "{failure}");
    }
    for change in &report.changes {
        let token = change.token.as_ref().map_or("", |token| token.as_str());
        tracing::info!(job, cycle, token, kind = change.kind.as_str(), "{}", change.summary);
    }
    if report.is_quiet() {
        tracing::debug!(job, cycle, "{report}");
    } else {
        tracing::info!(
            job,
            cycle,
            requested = report.requested,
            fresh = report.fresh,
            failed = report.failed.len(),
            changes = report.changes.len(),
            alerts = report.alerts,
            messages = report.deliveries,
            credits = report.credits,
            "{report}"
        );
        systemd::status(&report.to_string());
    }
}
