//! Who may stay: so many connections at once, and when all places are taken, the one that has done nothing for longest makes room.
//!
//! What counts is a whole request: whoever sends or reads a byte at a time holds a place no longer than whoever is silent.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How long a connection may keep its place without a request while others wait.
const LEAST_STAY: Duration = Duration::from_secs(1);
/// Pause before places are looked at again where nobody can be asked to leave yet.
const PAUSE: Duration = Duration::from_millis(20);

/// The places of a listener. This machine's own connections have places of their own, so that a crowd outside does not hide us from
/// whoever looks after us.
#[derive(Debug)]
pub(super) struct Places {
    began: Instant,
    most: usize,
    own: Mutex<Vec<Weak<ConnectionPlace>>>,
    others: Mutex<Vec<Weak<ConnectionPlace>>>,
}

/// The place of one connection, free again when it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    began: Instant,
    /// When it last began a request, or connected: milliseconds since the listener began.
    busy_at: AtomicU64,
    /// It is to make room.
    pub left: CancellationToken,
}

impl ConnectionPlace {
    /// A whole request has come.
    pub fn is_busy(&self) {
        self.busy_at.store(millis_since(self.began), Ordering::Relaxed);
    }
}

impl Places {
    pub fn new(most: usize) -> Self {
        Self { began: Instant::now(), most: most.max(1), own: Mutex::default(), others: Mutex::default() }
    }

    /// A place for a connection from `peer`, once there is one.
    pub async fn take(&self, peer: IpAddr) -> Arc<ConnectionPlace> {
        let taken = if peer.to_canonical().is_loopback() { &self.own } else { &self.others };
        loop {
            match self.try_take(taken) {
                Some(place) => return place,
                None => sleep(PAUSE).await,
            }
        }
    }

    fn try_take(&self, taken: &Mutex<Vec<Weak<ConnectionPlace>>>) -> Option<Arc<ConnectionPlace>> {
        let mut taken = locked(taken);
        if taken.len() >= self.most {
            taken.retain(|place| place.strong_count() > 0);
        }
        if taken.len() >= self.most {
            let idle = taken.iter().enumerate().filter_map(|(at, place)| Some((at, place.upgrade()?)));
            let (at, idlest) = idle.min_by_key(|(_, place)| place.busy_at.load(Ordering::Relaxed))?;
            let idle_for = millis_since(self.began).saturating_sub(idlest.busy_at.load(Ordering::Relaxed));
            if u128::from(idle_for) < LEAST_STAY.as_millis() {
                return None;
            }
            idlest.left.cancel();
            taken.swap_remove(at);
        }
        let place =
            Arc::new(ConnectionPlace { began: self.began, busy_at: AtomicU64::default(), left: CancellationToken::new() });
        place.is_busy();
        taken.push(Arc::downgrade(&place));
        Some(place)
    }
}

fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn locked(taken: &Mutex<Vec<Weak<ConnectionPlace>>>) -> MutexGuard<'_, Vec<Weak<ConnectionPlace>>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}
