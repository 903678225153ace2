//! The state that the workers of the outbox share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{OutboxDeps, ports::DeliverySender, takeover::Takeover};
use crate::systemd::ProgressMarker;
use model::{ReceiverName, Timestamp, config};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) deps: OutboxDeps,
    /// Replaced by a reload.
    pub(super) setup: RwLock<Arc<SendingSetup>>,
    /// The workers. A removed receiver keeps its worker until the attempts in flight have ended.
    pub(super) handles: RwLock<BTreeMap<ReceiverName, Arc<WorkerHandle>>>,
    pub(super) dispatch_wake_up: Notify,
    /// Marked after each dispatch pass.
    pub(super) dispatch_progress: ProgressMarker,
    /// The start of the last successful dispatch pass.
    pub(super) dispatched_at: Mutex<Option<Timestamp>>,
    pub(super) takeover: Takeover,
    pub(super) stop: CancellationToken,
}

/// The receivers and settings. A reload swaps the whole value; an attempt in flight keeps the value that it started with.
pub(super) struct SendingSetup {
    pub(super) sender: Arc<dyn DeliverySender>,
    pub(super) delivery: config::DeliverySettings,
    pub(super) names: BTreeSet<ReceiverName>,
}

impl SendingSetup {
    pub(super) fn of(sender: Arc<dyn DeliverySender>, delivery: config::DeliverySettings) -> Self {
        let names = sender.names().into_iter().collect();
        Self { sender, delivery, names }
    }
}

impl fmt::Debug for SendingSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendingSetup").field("receivers", &self.names).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(super) struct WorkerHandle {
    pub(super) wake_up: Notify,
    /// Marked after each pass of the worker.
    pub(super) progress: ProgressMarker,
}

impl Shared {
    pub(super) fn new(deps: OutboxDeps) -> Self {
        let setup = SendingSetup::of(deps.sender.clone(), deps.delivery.clone());
        let handles = setup.names.iter().map(|name| (name.clone(), Arc::default())).collect();
        Self {
            deps,
            setup: RwLock::new(Arc::new(setup)),
            handles: RwLock::new(handles),
            dispatch_wake_up: Notify::new(),
            dispatch_progress: ProgressMarker::default(),
            dispatched_at: Mutex::default(),
            takeover: Takeover::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Swaps the setup. Returns the new receivers and the removed ones, whose workers end after their attempts in flight.
    pub(super) fn replace(&self, setup: SendingSetup) -> (Vec<ReceiverName>, Vec<ReceiverName>) {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = setup.names.iter().filter(|name| !handles.contains_key(*name)).cloned().collect();
        let removed = handles.keys().filter(|name| !setup.names.contains(*name)).cloned().collect();
        handles.extend(new.iter().map(|name| (name.clone(), Arc::default())));
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
        (new, removed)
    }

    pub(super) fn sending(&self) -> Arc<SendingSetup> {
        self.setup.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn handle(&self, receiver: &ReceiverName) -> Option<Arc<WorkerHandle>> {
        self.handles.read().unwrap_or_else(PoisonError::into_inner).get(receiver).cloned()
    }

    pub(super) fn has_worker(&self, receiver: &ReceiverName) -> bool {
        self.handles.read().unwrap_or_else(PoisonError::into_inner).contains_key(receiver)
    }

    pub(super) fn wake(&self, receivers: &[ReceiverName]) {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        for receiver in receivers {
            if let Some(handle) = handles.get(receiver) {
                handle.wake_up.notify_one();
            }
        }
    }

    /// Removes the worker of a removed receiver. Returns `false` if the receiver was added again.
    pub(super) fn retire_worker(&self, receiver: &ReceiverName) -> bool {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        let is_removed = !self.sending().names.contains(receiver);
        if is_removed {
            handles.remove(receiver);
        }
        is_removed
    }

    /// Wakes the dispatcher for new alerts about deliveries to `receivers`, if any. Without a dispatcher, wakes the workers of these
    /// receivers.
    pub(super) fn wake_for_announcements(&self, receivers: &[ReceiverName]) {
        if receivers.is_empty() {
            return;
        }
        match &self.deps.dispatcher {
            Some(_) => self.dispatch_wake_up.notify_one(),
            None => self.wake(receivers),
        }
    }
}
