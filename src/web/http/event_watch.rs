//! Waits for new events of the event log, for requests with `wait` and for live events.
//!
//! While clients wait, one task reads the number of the newest event for all of them: after each write of this process, and from time to
//! time, because commands and other instances write too.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::error::WebError;
use super::error_code::ErrorCode;
use model::{EventCursorProblem, EventLogFilter, EventLogPage, EventLogRange};
use store::Store;

/// The maximum number of clients that wait.
pub(super) const MAX_WAITING: usize = 48;
/// The time after which an event of another process is seen.
const FOREIGN_WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// The clients that wait. Clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct EventWatch(Arc<EventHub>);

#[derive(Debug)]
struct EventHub {
    /// The number of the newest event, as last read.
    newest: watch::Sender<i64>,
    slots: Arc<Semaphore>,
    connected: Notify,
    stop: CancellationToken,
}

/// A client that waits for events. It keeps a slot.
pub(super) struct EventWaiter {
    newest: watch::Receiver<i64>,
    stop: CancellationToken,
    _slot: OwnedSemaphorePermit,
}

impl EventWatch {
    /// Spawns the task that reads the database until `stop`.
    pub fn start(store: Store, stop: CancellationToken) -> Self {
        let hub = Arc::new(EventHub {
            newest: watch::Sender::new(0),
            slots: Arc::new(Semaphore::new(MAX_WAITING)),
            connected: Notify::new(),
            stop,
        });
        tokio::spawn(check(hub.clone(), store));
        Self(hub)
    }

    /// Returns a client that can wait. `None` if all slots are in use.
    pub(super) fn connect(&self) -> Option<EventWaiter> {
        let slot = self.0.slots.clone().try_acquire_owned().ok()?;
        let waiter = EventWaiter { newest: self.0.newest.subscribe(), stop: self.0.stop.clone(), _slot: slot };
        self.0.connected.notify_one();
        Some(waiter)
    }
}

impl EventWaiter {
    /// Waits until the log has an event after `cursor`. Returns `false` if the server stops.
    pub(super) async fn wait_for_event_after(&mut self, cursor: i64) -> bool {
        tokio::select! {
            newer = self.newest.wait_for(|newest| *newest > cursor) => newer.is_ok(),
            () = self.stop.cancelled() => false,
        }
    }
}

/// Reads the number of the newest event while clients wait.
async fn check(hub: Arc<EventHub>, store: Store) {
    let mut writes = store.writes().ok();
    let checking = async {
        loop {
            if hub.newest.receiver_count() == 0 {
                hub.connected.notified().await;
            }
            // A write from here on is seen by the next read.
            writes.as_mut().map(watch::Receiver::mark_unchanged);
            match store.last_event().await {
                Ok(last) => {
                    hub.newest.send_if_modified(|newest| std::mem::replace(newest, last) != last);
                }
                Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "cannot check for new events"),
            }
            wait_for_write(writes.as_mut()).await;
        }
    };
    tokio::select! {
        () = checking => {}
        () = hub.stop.cancelled() => {}
    }
}

/// Waits for a write of this process, but not longer than [`FOREIGN_WRITE_INTERVAL`].
async fn wait_for_write(writes: Option<&mut watch::Receiver<()>>) {
    let written = async {
        match writes {
            Some(writes) => writes.changed().await.is_ok(),
            None => false,
        }
    };
    if let Ok(false) = tokio::time::timeout(FOREIGN_WRITE_INTERVAL, written).await {
        tokio::time::sleep(FOREIGN_WRITE_INTERVAL).await;
    }
}

/// Reads a page of the event log.
///
/// # Errors
///
/// Fails if events after the cursor were deleted, or if the log has no such event.
pub(super) async fn read_events(store: &Store, filter: EventLogFilter) -> Result<EventLogPage, WebError> {
    let after = filter.after;
    let page = store.events(filter).await?;
    if let Some(after) = after {
        page.range.check(after).map_err(|problem| cursor_error(problem, after, page.range))?;
    }
    Ok(page)
}

fn cursor_error(problem: EventCursorProblem, after: i64, range: EventLogRange) -> WebError {
    let EventLogRange { first, last } = range;
    match problem {
        EventCursorProblem::Expired => {
            let text = format!(
                "events after {after} were deleted: the oldest event is {first}; read the lists again, then continue after {last}"
            );
            WebError::new(ErrorCode::EventsExpired, text).with_suggestions([last])
        }
        EventCursorProblem::Unknown => {
            let text = format!(
                "there is no event {after}: the newest event is {last}; the cursor is of another database, or of a time after the backup that was restored"
            );
            WebError::new(ErrorCode::UnknownEvent, text).with_suggestions([last])
        }
    }
}
