//! What systemd is told: readiness, status, stopping, and a watchdog that is fed by progress alone.
//!
//! Outside of systemd (no `NOTIFY_SOCKET`) all of it does nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

/// Longest status line, characters.
const MAX_STATUS_CHARS: usize = 200;

/// A count that rises with each thing done: a tick, an attempt, a pass of the dispatcher. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct ProgressMarker(Arc<AtomicU64>);

impl ProgressMarker {
    /// Something was done.
    pub fn mark(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How much was done so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The daemon works; with what `status` shows.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// What `systemctl status` shows: one line, cut where it is long.
pub fn status(text: &str) {
    notify(&[NotifyState::Status(&one_line(text))]);
}

/// A start that takes its time: what it is at, and that `longer` more is nothing to worry about.
pub fn starting(text: &str, longer: Duration) {
    let micros = u32::try_from(longer.as_micros()).unwrap_or(u32::MAX);
    notify(&[NotifyState::ExtendTimeoutUsec(micros), NotifyState::Status(&one_line(text))]);
}

/// The daemon reads its files again; [`ready`] says when that is over, whatever came of it.
pub fn reloading() {
    // Without the time, systemd would not believe the first line either.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// The daemon is leaving.
pub fn stopping(status: &str) {
    notify(&[NotifyState::Stopping, NotifyState::Status(&one_line(status))]);
}

/// Feeds the watchdog for as long as every one of `markers` goes on rising; returns at once where systemd asked for no watchdog.
///
/// Each marker must rise at least once within the watchdog's time (`WatchdogSec`): the loops behind them wake at least every few
/// seconds for this. One loop that hangs starves the watchdog, and systemd restarts the daemon; the database makes that safe.
///
/// `markers` is asked each time: a reload may add loops and end others.
pub async fn feed_watchdog(markers: impl Fn() -> Vec<ProgressMarker>) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    // Asked four times within the limit, each loop may take half of it before it looks hung.
    let pause = (limit / 4).max(Duration::from_millis(100));
    let mut watch = MarkerWatch::over(markers());
    notify(&[NotifyState::Watchdog]);
    loop {
        tokio::time::sleep(pause).await;
        watch.follow(markers());
        if watch.all_moved() {
            notify(&[NotifyState::Watchdog]);
        }
    }
}

/// Markers with what they showed when all had last moved.
struct MarkerWatch {
    markers: Vec<(ProgressMarker, u64)>,
}

impl MarkerWatch {
    fn over(markers: Vec<ProgressMarker>) -> Self {
        Self { markers: markers.into_iter().map(|marker| (marker.clone(), marker.count())).collect() }
    }

    /// Follows these markers from now on; those that it knows go on from what they showed.
    fn follow(&mut self, markers: Vec<ProgressMarker>) {
        let seen = |marker: &ProgressMarker| {
            self.markers.iter().find(|(known, _)| Arc::ptr_eq(&known.0, &marker.0)).map_or(marker.count(), |(_, seen)| *seen)
        };
        self.markers = markers.into_iter().map(|marker| (marker.clone(), seen(&marker))).collect();
    }

    /// Whether every marker has risen since this was last true.
    fn all_moved(&mut self) -> bool {
        let all_moved = self.markers.iter().all(|(marker, seen)| marker.count() != *seen);
        if all_moved {
            self.markers.iter_mut().for_each(|(marker, seen)| *seen = marker.count());
        }
        all_moved
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}

/// A status must be one line: a line break would begin another assignment.
fn one_line(text: &str) -> String {
    model::text::harmless(text).chars().take(MAX_STATUS_CHARS).collect()
}

#[cfg(test)]
mod tests;
