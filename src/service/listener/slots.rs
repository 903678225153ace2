//! The connection slots of a listener. If all are in use, a new connection replaces the longest idle one.
//!
//! Only a complete request counts as activity, so a client that sends or reads single bytes counts as idle.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The idle time before a connection can be replaced.
const MIN_IDLE_TIME: Duration = Duration::from_secs(1);
/// The pause between checks while no connection can be replaced yet.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The slots of a listener. Connections from this machine have separate slots, so that many remote clients cannot block local
/// monitoring.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    began: Instant,
    max: usize,
    local: Mutex<Vec<Weak<ConnectionSlot>>>,
    remote: Mutex<Vec<Weak<ConnectionSlot>>>,
}

/// The slot of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    began: Instant,
    /// The time of the last request or of the connect, in milliseconds since the listener began.
    busy_at: AtomicU64,
    /// Canceled when the connection must close for a new one.
    pub eviction: CancellationToken,
}

impl ConnectionSlot {
    /// Records a complete request.
    pub fn mark_busy(&self) {
        self.busy_at.store(millis_since(self.began), Ordering::Relaxed);
    }
}

impl ConnectionSlots {
    pub fn new(max: usize) -> Self {
        Self { began: Instant::now(), max: max.max(1), local: Mutex::default(), remote: Mutex::default() }
    }

    /// Waits for a free slot for a connection from `peer`.
    pub async fn take(&self, peer: IpAddr) -> Arc<ConnectionSlot> {
        let slots = if peer.to_canonical().is_loopback() { &self.local } else { &self.remote };
        loop {
            match self.try_take(slots) {
                Some(slot) => return slot,
                None => sleep(RETRY_INTERVAL).await,
            }
        }
    }

    fn try_take(&self, slots: &Mutex<Vec<Weak<ConnectionSlot>>>) -> Option<Arc<ConnectionSlot>> {
        let mut slots = locked(slots);
        if slots.len() >= self.max {
            slots.retain(|slot| slot.strong_count() > 0);
        }
        if slots.len() >= self.max {
            let idle = slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.upgrade()?)));
            let (at, idlest) = idle.min_by_key(|(_, slot)| slot.busy_at.load(Ordering::Relaxed))?;
            let idle_for = millis_since(self.began).saturating_sub(idlest.busy_at.load(Ordering::Relaxed));
            if u128::from(idle_for) < MIN_IDLE_TIME.as_millis() {
                return None;
            }
            idlest.eviction.cancel();
            slots.swap_remove(at);
        }
        let slot =
            Arc::new(ConnectionSlot { began: self.began, busy_at: AtomicU64::default(), eviction: CancellationToken::new() });
        slot.mark_busy();
        slots.push(Arc::downgrade(&slot));
        Some(slot)
    }
}

fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn locked(slots: &Mutex<Vec<Weak<ConnectionSlot>>>) -> MutexGuard<'_, Vec<Weak<ConnectionSlot>>> {
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}
