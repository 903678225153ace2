//! Retries of failed polls between two slots.

use super::{Cycle, CycleError, CyclePolls, CycleReport, Deps, polling::retries_of};
use crate::schedule::Job;
use ::source::BreakerState;
use engine::plan::RetryPlan;
use model::{BoxFuture, Endpoint, Timestamp};

/// The outcome of the retries of an endpoint.
#[derive(Debug)]
pub enum RetryOutcome {
    /// Failed feeds were polled again.
    Polled {
        report: Box<CycleReport>,
        /// Whether only one feed was polled, because the source failed before, and others wait for its outcome.
        is_probe: bool,
    },
    /// Nothing was polled. `until` is when the next retry is due; `None` if no failed feed waits for one.
    Waits { until: Option<Timestamp> },
}

/// Polls the failed feeds of an endpoint whose retry is due. While the source as a whole fails, polls only one of them. If `is_urgent` is
/// set, no feed waits.
///
/// # Errors
///
/// Fails like [`run_cycle`](super::run_cycle).
pub fn run_retry(
    deps: &Deps,
    endpoint: Endpoint,
    is_urgent: bool,
    now: Timestamp,
) -> BoxFuture<'_, Result<RetryOutcome, CycleError>> {
    Box::pin(async move {
        let breaker = deps.api.breaker();
        if let BreakerState::Open { until, .. } = breaker
            && until > now
        {
            return Ok(RetryOutcome::Waits { until: Some(until) });
        }
        let planning = deps.ledger.planning.lock().await;
        let RetryPlan { mut polls, next_at } = retries_of(deps, endpoint, is_urgent, now).await?;
        if polls.polls.is_empty() {
            return Ok(RetryOutcome::Waits { until: next_at });
        }
        let is_probe = !breaker.is_closed() && polls.polls.len() > 1;
        if is_probe {
            polls.polls.truncate(1);
        }
        let polls = CyclePolls::Planned(Box::new(polls), planning);
        let report = Cycle::new(deps, Job::Poll(endpoint), now, polls).run(None).await?;
        Ok(RetryOutcome::Polled { report: Box::new(report), is_probe })
    })
}
