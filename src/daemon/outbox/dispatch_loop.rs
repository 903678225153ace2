//! Runs the dispatcher.

use std::{sync::PoisonError, time::Duration};

use tokio::time::Instant;

use super::{MAX_SLEEP, MIN_SLEEP, STORE_PAUSE, orphans::dead_letter_orphans, shared::Shared};
use crate::dispatch::Dispatcher;

/// The number of pending notifications above which the dispatcher pauses after each pass.
const MANY_PENDING: u32 = 1_000;

/// Runs a dispatch pass on each wake-up, when a wait ends, and every few seconds, because another process may have added a
/// silence.
pub(super) async fn dispatch_until_stopped(shared: &Shared, dispatcher: &Dispatcher) {
    let mut is_first = true;
    let mut is_failing = false;
    while !shared.stop.is_cancelled() {
        let now = shared.deps.clock.now();
        let began = Instant::now();
        let dispatched = dispatcher.dispatch(now).await;
        // A failing database is reported elsewhere and must not trigger the watchdog.
        shared.dispatch_progress.mark();
        let (nap, pause) = match dispatched {
            Ok(done) => {
                *shared.dispatched_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                shared.wake(&done.receivers);
                let keeps_orphans = shared.takeover.is_recent();
                if is_first || done.receivers.iter().any(|receiver| !shared.has_worker(receiver)) {
                    dead_letter_orphans(shared, now).await;
                }
                // The first pass after that time handles the orphans that were kept.
                is_first = keeps_orphans;
                if std::mem::take(&mut is_failing) {
                    tracing::info!("dispatching works again");
                }
                let wait = done.next_at.map_or(MAX_SLEEP, |at| (at - now).to_std().unwrap_or_default());
                // During a storm, each pass is expensive and would keep others from the database.
                let pause = if done.waiting > MANY_PENDING { (began.elapsed() * 2).min(MAX_SLEEP) } else { Duration::ZERO };
                (wait.clamp(MIN_SLEEP, MAX_SLEEP), pause)
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::error!(%error, "dispatching failed, will retry every second");
                }
                (STORE_PAUSE, Duration::ZERO)
            }
        };
        let wake_up = async {
            tokio::time::sleep(pause).await;
            tokio::select! {
                () = shared.dispatch_wake_up.notified() => {}
                () = tokio::time::sleep(nap) => {}
            }
        };
        tokio::select! {
            () = wake_up => {}
            () = shared.stop.cancelled() => {}
        }
    }
}
