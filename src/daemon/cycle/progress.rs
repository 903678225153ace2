//! The progress of polling, for the log, the status in systemd, and the progress bar of commands. The first poll of hundreds of tokens
//! takes many minutes.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use model::{phrase, supply::Endpoint};

/// The interval between progress reports. Faster polls are not reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The progress of all endpoints that are being polled.
#[derive(Debug, Default)]
pub struct Progress(Mutex<BTreeMap<Endpoint, EndpointRun>>);

#[derive(Debug)]
struct EndpointRun {
    progress: EndpointProgress,
    started: Instant,
    reported: Instant,
}

/// The progress of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointProgress {
    pub endpoint: Endpoint,
    /// The number of planned polls, which may grow.
    pub planned: usize,
    /// The number of ended polls, including failed ones.
    pub responded: usize,
    pub failed: usize,
    pub elapsed: Duration,
}

impl EndpointProgress {
    /// Formats the progress: `unlock_events: 120 of 640 read, 3 failed, about 4 min left`.
    pub fn sentence(&self) -> String {
        let Self { endpoint, planned, responded, failed, .. } = self;
        let mut text = format!("{endpoint}: {responded} of {planned} read");
        if *failed > 0 {
            text.push_str(&format!(", {failed} failed"));
        }
        if let Some(left) = self.left() {
            text.push_str(&format!(", about {} left", phrase::duration_std(left)));
        }
        text
    }

    /// Formats the progress in short: `unlock_events 120/640, 3 failed, 4 min`.
    pub fn brief(&self) -> String {
        let Self { endpoint, planned, responded, failed, .. } = self;
        let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
        let left = self.left().map(|left| format!(", {}", phrase::duration_std(left)));
        format!("{endpoint} {responded}/{planned}{failed}{}", left.unwrap_or_default())
    }

    /// Estimates the remaining time. `None` before the first response.
    fn left(&self) -> Option<Duration> {
        let responded = u32::try_from(self.responded).ok().filter(|responded| *responded > 0)?;
        let rest = u32::try_from(self.planned.saturating_sub(self.responded)).ok()?;
        self.elapsed.checked_mul(rest).map(|whole| whole / responded)
    }
}

impl Progress {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Endpoint, EndpointRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn plan(&self, endpoint: Endpoint, polls: usize, now: Instant) {
        let progress = EndpointProgress { endpoint, planned: 0, responded: 0, failed: 0, elapsed: Duration::ZERO };
        self.all().entry(endpoint).or_insert(EndpointRun { progress, started: now, reported: now }).progress.planned += polls;
    }

    /// Counts an ended poll.
    pub(super) fn responded(&self, endpoint: Endpoint, is_failed: bool) {
        if let Some(run) = self.all().get_mut(&endpoint) {
            run.progress.responded += 1;
            run.progress.failed += usize::from(is_failed);
        }
    }

    /// Removes the endpoint at the end of its cycle.
    pub(super) fn end(&self, endpoint: Endpoint) {
        self.all().remove(&endpoint);
    }

    /// Returns the progress of all running endpoints.
    pub fn now(&self, now: Instant) -> Vec<EndpointProgress> {
        self.all().values().map(|run| run.at(now)).collect()
    }

    /// Returns the endpoints whose next progress report is due, and marks them as reported.
    pub fn due(&self, now: Instant) -> Vec<EndpointProgress> {
        let mut all = self.all();
        let due = all.values_mut().filter(|run| now.saturating_duration_since(run.reported) >= REPORT_INTERVAL);
        due.map(|run| {
            run.reported = now;
            run.at(now)
        })
        .collect()
    }
}

impl EndpointRun {
    fn at(&self, now: Instant) -> EndpointProgress {
        EndpointProgress { elapsed: now.saturating_duration_since(self.started), ..self.progress.clone() }
    }
}

#[cfg(test)]
mod tests;
