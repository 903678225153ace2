//! Runs single jobs and logs their results.

use super::App;
use crate::cycle::{CycleError, CycleReport, run_cycle};
use crate::outbox::DeliveryReport;
use crate::schedule::Job;
use crate::systemd;
use model::{BoxFuture, Timestamp};

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

    /// Runs a job for its slot, and updates log, readiness, and alerts. Returns `true` if nothing failed.
    pub(super) async fn run_job(&self, job: Job, slot: Timestamp) -> bool {
        let now = self.clock.now();
        match run_cycle(&self.deps, job, slot, now).await {
            Ok(report) => {
                self.readiness.set_last_cycle(now, report.to_string());
                log(&report);
                self.alerts.store_recovered().await;
                report.failed.is_empty()
            }
            Err(error) => {
                self.alerts.store_failed(&error).await;
                false
            }
        }
    }
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
