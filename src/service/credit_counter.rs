//! Counts credits in the database.
//!
//! With a database file, a request is usually charged at once, on the thread of its connection. If that is not possible, or with a
//! database server, requests enter a queue. The first request in an empty queue starts a task that charges all queued requests together.
//! A response is sent only after its charge is stored. If the process dies, each open connection can have at most one request that is
//! counted but has no response.
//!
//! A thread syncs the charges to disk every [`SYNC_INTERVAL`]. A power failure can lose the credits counted in that time, but never
//! charges for requests that were not made.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::{http::blocking, key_gate::KeyHash, refusal::Refusal};
use model::Timestamp;
use store::catalog::{Catalog, CatalogError, ChargeOutcome, KeyUsage};

/// The maximum number of requests charged together.
const MAX_COUNTED: usize = 256;

/// The maximum length of the queue. Further requests are rejected with 503.
const MAX_WAITING: usize = 8192;

const SYNC_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct CreditCounter {
    keys: Arc<Catalog>,
    queue: Mutex<ChargeQueue>,
    /// Wakes the sync thread, which starts with the first request. `None` if the thread cannot start.
    syncer: OnceLock<Option<mpsc::SyncSender<()>>>,
}

#[derive(Debug, Default)]
struct ChargeQueue {
    requests: Vec<ChargeRequest>,
    /// Whether a counting task is running.
    is_counting: bool,
}

#[derive(Debug)]
struct ChargeRequest {
    hash: KeyHash,
    now: Timestamp,
    reply: oneshot::Sender<Result<Option<KeyUsage>, ()>>,
}

impl CreditCounter {
    pub fn new(keys: Arc<Catalog>) -> Self {
        Self { keys, queue: Mutex::default(), syncer: OnceLock::new() }
    }

    pub fn keys(&self) -> &Catalog {
        &self.keys
    }

    /// Charges one credit to a key. Returns after the charge is stored.
    pub async fn use_credit(self: &Arc<Self>, hash: KeyHash, now: Timestamp) -> Result<KeyUsage, Refusal> {
        let syncer = self.syncer.get_or_init(|| open_syncer(self.keys.clone())).as_ref().ok_or_else(Refusal::busy)?;
        match self.keys.charge_at_once(&hash, now) {
            Ok(ChargeOutcome::Charged(usage)) => {
                // Fails if a sync is already scheduled.
                let _ = syncer.try_send(());
                Ok(usage)
            }
            Ok(ChargeOutcome::Exhausted) => Box::pin(self.reject(hash, now)).await,
            Ok(ChargeOutcome::MustWait) => Box::pin(self.wait_for_credit(hash, now)).await,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, requests = 1, "cannot count credits");
                Err(uncounted())
            }
        }
    }

    async fn wait_for_credit(self: &Arc<Self>, hash: KeyHash, now: Timestamp) -> Result<KeyUsage, Refusal> {
        let (reply, counted) = oneshot::channel();
        if self.queue(ChargeRequest { hash, now, reply })? {
            // The counting task must go on if the client of this request disconnects.
            tokio::spawn(count(self.clone()));
        }
        match counted.await {
            Ok(Ok(Some(usage))) => Ok(usage),
            Ok(Ok(None)) => self.reject(hash, now).await,
            Ok(Err(())) | Err(_) => Err(uncounted()),
        }
    }

    /// Rejects a request whose key has no credits left, or was revoked in the meantime.
    async fn reject(&self, hash: KeyHash, now: Timestamp) -> Result<KeyUsage, Refusal> {
        let keys = self.keys.clone();
        let row = blocking(move || Ok(keys.key(&hash, now)?)).await?;
        Err(row.map_or_else(Refusal::invalid_key, |row| Refusal::quota_exhausted(row.reset_at, now)))
    }

    fn lock(&self) -> MutexGuard<'_, ChargeQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. Returns whether the caller must start a counting task.
    fn queue(&self, request: ChargeRequest) -> Result<bool, Refusal> {
        let mut queue = self.lock();
        if queue.requests.len() >= MAX_WAITING {
            return Err(Refusal::busy());
        }
        queue.requests.push(request);
        Ok(!std::mem::replace(&mut queue.is_counting, true))
    }

    /// Takes the next batch of requests. Returns `None` if the queue is empty, which ends the counting task.
    fn batch(&self) -> Option<Vec<ChargeRequest>> {
        let mut queue = self.lock();
        if queue.requests.is_empty() {
            queue.is_counting = false;
            return None;
        }
        let size = queue.requests.len().min(MAX_COUNTED);
        Some(queue.requests.drain(..size).collect())
    }

    /// Charges the keys of a batch. In memory, this takes only microseconds. A blocking thread waits for a file or a server.
    async fn charge(self: &Arc<Self>, hashes: Vec<KeyHash>, now: Timestamp) -> Result<Vec<Option<KeyUsage>>, ChargeError> {
        let at_once = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.keys.try_charge(&hashes, now)));
        if let Some(usages) = at_once.map_err(|_| ChargeError::Panicked)?? {
            return Ok(usages);
        }
        let keys = self.keys.clone();
        let later = tokio::task::spawn_blocking(move || keys.charge(&hashes, now)).await;
        Ok(later.map_err(|_| ChargeError::Panicked)??)
    }
}

#[derive(Debug, thiserror::Error)]
enum ChargeError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("counting panicked")]
    Panicked,
}

/// Rejects a request that cannot be counted.
fn uncounted() -> Refusal {
    Refusal { message: "the service cannot count this request right now: retry later".into(), ..Refusal::busy() }
}

/// Counts queued requests until the queue is empty.
async fn count(counter: Arc<CreditCounter>) {
    loop {
        // Lets other ready requests enter the queue first.
        tokio::task::yield_now().await;
        let Some(mut batch) = counter.batch() else { return };
        // Disconnected clients are not charged.
        batch.retain(|request| !request.reply.is_closed());
        if batch.is_empty() {
            continue;
        }
        let hashes: Vec<KeyHash> = batch.iter().map(|request| request.hash).collect();
        let now = batch.iter().map(|request| request.now).max().unwrap_or_default();
        match counter.charge(hashes, now).await {
            Ok(usages) => {
                for (request, usage) in batch.into_iter().zip(usages) {
                    // Fails if the client disconnected.
                    let _ = request.reply.send(Ok(usage));
                }
                if let Some(Some(syncer)) = counter.syncer.get() {
                    // Fails if a sync is already scheduled.
                    let _ = syncer.try_send(());
                }
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, requests = batch.len(), "cannot count credits");
                for request in batch {
                    let _ = request.reply.send(Err(()));
                }
            }
        }
    }
}

/// Starts the sync thread, which ends when the sender is dropped. Returns `None` if it cannot start.
fn open_syncer(keys: Arc<Catalog>) -> Option<mpsc::SyncSender<()>> {
    let (syncer, counted) = mpsc::sync_channel::<()>(1);
    let syncing = move || {
        let mut has_failed = false;
        while has_failed || counted.recv().is_ok() {
            std::thread::sleep(SYNC_INTERVAL);
            // The sync below covers everything counted so far.
            let ended = matches!(counted.try_recv(), Err(mpsc::TryRecvError::Disconnected));
            let synced = keys.sync();
            if let Err(error) = &synced {
                tracing::error!(error = error as &dyn std::error::Error, "cannot sync counted credits to disk");
            }
            has_failed = synced.is_err() && !ended;
        }
    };
    match std::thread::Builder::new().name("cliffwatch-sync".into()).spawn(syncing) {
        Ok(_) => Some(syncer),
        Err(error) => {
            tracing::error!(%error, "cannot start the thread that syncs credits to disk");
            None
        }
    }
}
