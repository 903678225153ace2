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
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_fed_while_every_loop_moves() {
        let markers = [ProgressMarker::default(), ProgressMarker::default()];
        let mut watch = MarkerWatch::over(markers.to_vec());
        for _ in 0..3 {
            assert!(!watch.all_moved());
            markers.iter().for_each(ProgressMarker::mark);
            assert!(watch.all_moved());
        }
    }

    #[test]
    fn one_loop_that_hangs_starves_the_watchdog() {
        let markers = [ProgressMarker::default(), ProgressMarker::default()];
        let mut watch = MarkerWatch::over(markers.to_vec());
        for _ in 0..5 {
            markers[0].mark();
            assert!(!watch.all_moved());
        }
        markers[1].mark();
        assert!(watch.all_moved());
    }

    #[test]
    fn loops_that_a_reload_adds_or_ends_are_followed() {
        let (old, new, gone) = (ProgressMarker::default(), ProgressMarker::default(), ProgressMarker::default());
        let mut watch = MarkerWatch::over(vec![old.clone(), gone.clone()]);
        old.mark();
        watch.follow(vec![old.clone(), new.clone()]);
        assert!(!watch.all_moved(), "the new one must move too");
        new.mark();
        assert!(watch.all_moved(), "what is gone is not waited for, and what moved before counts");
        watch.follow(vec![new.clone()]);
        assert!(!watch.all_moved());
    }

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(one_line("a\nREADY=1"), "a READY=1");
        assert_eq!(one_line(&"x".repeat(500)).len(), MAX_STATUS_CHARS);
    }
}
