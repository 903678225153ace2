//! Notifications to systemd: readiness, status, stopping, and a watchdog that is only fed while there is progress.
//!
//! Without systemd (no `NOTIFY_SOCKET`), they have no effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

const MAX_STATUS_CHARS: usize = 200;

/// The time by which each notification extends the start timeout.
const START_EXTENSION: Duration = Duration::from_secs(60);

/// A counter that rises with each step of a loop. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub struct ProgressMarker(Arc<AtomicU64>);

impl ProgressMarker {
    pub fn mark(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Notifies systemd that the daemon is ready, with a status.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// Sets the status that `systemctl status` shows.
pub fn status(text: &str) {
    notify(&[NotifyState::Status(&one_line(text))]);
}

/// Notifies systemd that a reload began. Must be followed by [`ready`], even if the reload fails.
pub fn reloading() {
    // systemd requires the time together with the state.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// Notifies systemd that the daemon is stopping.
pub fn stopping(status: &str) {
    notify(&[NotifyState::Stopping, NotifyState::Status(&one_line(status))]);
}

/// Feeds the watchdog while every marker rises. Returns at once if the unit has no watchdog. Each marker must rise at least once per
/// `WatchdogSec`, so the loops wake every few seconds. If one loop hangs, systemd restarts the daemon, which is always safe. `markers`
/// is called each time, because a reload may add or end loops.
pub async fn feed_watchdog(markers: impl Fn() -> Vec<ProgressMarker>) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    // With four checks per limit, a loop may take half of the limit before it counts as hung.
    let pause = (limit / 4).max(Duration::from_millis(100));
    let mut watch = MarkerWatch::new(markers());
    notify(&[NotifyState::Watchdog]);
    loop {
        tokio::time::sleep(pause).await;
        watch.set_markers(markers());
        if watch.all_risen() {
            notify(&[NotifyState::Watchdog]);
        }
    }
}

/// Keeps systemd from ending the process during a wait that may take any time: extends the start timeout and feeds the watchdog, until it
/// is dropped.
#[derive(Debug)]
pub struct LongWait(tokio::task::JoinHandle<()>);

impl LongWait {
    /// Begins a wait whose steps all have timeouts of their own. Requires a Tokio runtime.
    pub fn begin() -> Self {
        Self::with(|| true)
    }

    /// Begins a wait in a loop that marks each of its steps.
    pub fn in_loop(step: ProgressMarker) -> Self {
        let mut watch = MarkerWatch::new(vec![step]);
        Self::with(move || watch.all_risen())
    }

    fn with(mut is_alive: impl FnMut() -> bool + Send + 'static) -> Self {
        let limit = sd_notify::watchdog_enabled().unwrap_or(START_EXTENSION).min(START_EXTENSION);
        let pause = (limit / 4).max(Duration::from_millis(100));
        Self(tokio::spawn(async move {
            extend();
            loop {
                tokio::time::sleep(pause).await;
                if is_alive() {
                    extend();
                }
            }
        }))
    }
}

impl Drop for LongWait {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn extend() {
    let micros = u32::try_from(START_EXTENSION.as_micros()).unwrap_or(u32::MAX);
    notify(&[NotifyState::Watchdog, NotifyState::ExtendTimeoutUsec(micros)]);
}

/// Markers with their counts when all had last risen.
struct MarkerWatch {
    markers: Vec<(ProgressMarker, u64)>,
}

impl MarkerWatch {
    fn new(markers: Vec<ProgressMarker>) -> Self {
        Self { markers: markers.into_iter().map(|marker| (marker.clone(), marker.count())).collect() }
    }

    /// Replaces the markers. Known markers keep their last count.
    fn set_markers(&mut self, markers: Vec<ProgressMarker>) {
        let seen = |marker: &ProgressMarker| {
            self.markers.iter().find(|(known, _)| Arc::ptr_eq(&known.0, &marker.0)).map_or(marker.count(), |(_, seen)| *seen)
        };
        self.markers = markers.into_iter().map(|marker| (marker.clone(), seen(&marker))).collect();
    }

    /// Returns `true` if every marker has risen since the last `true`.
    fn all_risen(&mut self) -> bool {
        let all_risen = self.markers.iter().all(|(marker, seen)| marker.count() != *seen);
        if all_risen {
            self.markers.iter_mut().for_each(|(marker, seen)| *seen = marker.count());
        }
        all_risen
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "cannot notify systemd");
    }
}

/// Makes a status one line of limited length, because a line break would start another assignment.
fn one_line(text: &str) -> String {
    model::text::harmless(text).chars().take(MAX_STATUS_CHARS).collect()
}

#[cfg(test)]
mod tests;
