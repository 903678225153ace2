//! What the workers of the outbox share: the receivers as a reload last left them, and how each worker is woken.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{OutboxDeps, ports::DeliverySender};
use crate::systemd::ProgressMarker;
use model::{ReceiverName, Timestamp, config};

/// What all workers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) deps: OutboxDeps,
    /// The receivers as a reload last left them.
    pub(super) setup: RwLock<Arc<SendingSetup>>,
    /// Everyone who has a worker; those that the config no longer has keep theirs until what is under way has ended.
    pub(super) handles: RwLock<BTreeMap<ReceiverName, Arc<WorkerHandle>>>,
    pub(super) dispatch_wake_up: Notify,
    /// Marked by the dispatcher whenever it has looked.
    pub(super) dispatch_progress: ProgressMarker,
    /// When the dispatcher last began a look that went well.
    pub(super) dispatched_at: Mutex<Option<Timestamp>>,
    pub(super) stop: CancellationToken,
}

/// How deliveries are sent: swapped whole by a reload. An attempt under way ends by the setup that it began with.
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

/// How a worker is reached.
#[derive(Debug, Default)]
pub(super) struct WorkerHandle {
    pub(super) wake_up: Notify,
    /// Marked by the worker whenever it has looked at what is to be done.
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
            stop: CancellationToken::new(),
        }
    }

    /// Swaps the setup. Says who is new, and who is gone but keeps a worker until what is under way has ended.
    pub(super) fn replace(&self, setup: SendingSetup) -> (Vec<ReceiverName>, Vec<ReceiverName>) {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = setup.names.iter().filter(|name| !handles.contains_key(*name)).cloned().collect();
        let gone = handles.keys().filter(|name| !setup.names.contains(*name)).cloned().collect();
        handles.extend(new.iter().map(|name| (name.clone(), Arc::default())));
        *self.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
        (new, gone)
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

    /// Gives up the worker of a receiver that the config no longer has. False where it has it again by now.
    pub(super) fn retire_worker(&self, receiver: &ReceiverName) -> bool {
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        let is_closed = !self.sending().names.contains(receiver);
        if is_closed {
            handles.remove(receiver);
        }
        is_closed
    }

    /// Something was announced to them: it waits for the dispatcher, or is due.
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
