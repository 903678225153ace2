//! When the dispatcher looks at the messages that wait.

use std::{sync::PoisonError, time::Duration};

use tokio::time::Instant;

use super::{MAX_SLEEP, MIN_SLEEP, STORE_PAUSE, orphans::dead_letter_orphans, shared::Shared};
use crate::dispatch::Dispatcher;

/// Waiting messages above which the dispatcher rests between two looks.
const MANY_WAITING: u32 = 1_000;

/// Dispatches whenever it is woken, when a wait is over, and now and then, since another process may have made a silence.
pub(super) async fn dispatch_until_stopped(shared: &Shared, dispatcher: &Dispatcher) {
    let mut is_first = true;
    let mut is_failing = false;
    while !shared.stop.is_cancelled() {
        let now = shared.deps.clock.now();
        let began = Instant::now();
        let looked = dispatcher.dispatch(now).await;
        // A table that cannot be read is told elsewhere; it is no reason to be killed.
        shared.dispatch_progress.mark();
        let (nap, pause) = match looked {
            Ok(done) => {
                *shared.dispatched_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                shared.wake(&done.receivers);
                if is_first || done.receivers.iter().any(|receiver| !shared.has_worker(receiver)) {
                    dead_letter_orphans(shared, now).await;
                }
                is_first = false;
                if std::mem::take(&mut is_failing) {
                    tracing::info!("messages that wait are dispatched again");
                }
                let wait = done.next_at.map_or(MAX_SLEEP, |at| (at - now).to_std().unwrap_or_default());
                // Many wait, as in a storm: each look costs, and others need the database too.
                let pause = if done.waiting > MANY_WAITING { (began.elapsed() * 2).min(MAX_SLEEP) } else { Duration::ZERO };
                (wait.clamp(MIN_SLEEP, MAX_SLEEP), pause)
            }
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::error!(%error, "messages that wait cannot be dispatched; it is tried again every second");
                }
                (STORE_PAUSE, Duration::ZERO)
            }
        };
        let woken = async {
            tokio::time::sleep(pause).await;
            tokio::select! {
                () = shared.dispatch_wake_up.notified() => {}
                () = tokio::time::sleep(nap) => {}
            }
        };
        tokio::select! {
            () = woken => {}
            () = shared.stop.cancelled() => {}
        }
    }
}
