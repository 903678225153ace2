//! Counts credits. Whoever is to be counted joins a queue, and whoever finds it empty counts for all who have come until the others
//! that were ready had their turn: one commit for each crowd, and no other thread to wake. The file holds the truth at any time; nothing
//! is counted in memory, and nobody is answered before the commit.
//!
//! So the death of the process loses no count and adds none, but for requests that were counted and not yet answered, at most one for
//! each open connection. A thread of its own brings the counts to disk within [`SYNC_EVERY`]: a loss of power may give away what was used
//! in that time, and never charges for more than was asked.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::{http::blocking, key_gate::KeyHash, refusal::Refusal};
use model::Timestamp;
use store::catalog::{Catalog, CatalogError, KeyUsage};

/// Requests counted in one transaction.
const MAX_BATCH: usize = 256;

/// Requests that may wait to be counted; more are told to come again.
const MAX_WAITING: usize = 8192;

/// How long counts may be in the hands of the system alone.
const SYNC_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct CreditCounter {
    keys: Arc<Catalog>,
    queue: Mutex<ChargeQueue>,
    /// To the thread that brings counts to disk, once there is something to bring.
    syncer: OnceLock<Option<mpsc::SyncSender<()>>>,
}

/// Who waits to be counted.
#[derive(Debug, Default)]
struct ChargeQueue {
    requests: Vec<ChargeRequest>,
    /// Whether somebody counts already.
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

    /// Uses up one credit of a key. What comes back was committed.
    pub async fn use_credit(self: &Arc<Self>, hash: KeyHash, now: Timestamp) -> Result<KeyUsage, Refusal> {
        let (reply, counted) = oneshot::channel();
        if self.queue(ChargeRequest { hash, now, reply })? {
            // A task of its own: this request may be given up while it waits.
            tokio::spawn(count(self.clone()));
        }
        match counted.await {
            Ok(Ok(Some(usage))) => Ok(usage),
            // Spent, or revoked since it was let in.
            Ok(Ok(None)) => {
                let keys = self.keys.clone();
                let row = blocking(move || Ok(keys.key(&hash, now)?)).await?;
                Err(row.map_or_else(Refusal::keyless, |row| Refusal::spent(row.reset_at, now)))
            }
            Ok(Err(())) | Err(_) => {
                Err(Refusal { message: "the service cannot count this request now: ask again later".into(), ..Refusal::busy() })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ChargeQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request into the queue. Answers whether somebody has to count now.
    fn queue(&self, request: ChargeRequest) -> Result<bool, Refusal> {
        self.syncer.get_or_init(|| open_syncer(self.keys.clone())).as_ref().ok_or_else(Refusal::busy)?;
        let mut queue = self.lock();
        if queue.requests.len() >= MAX_WAITING {
            return Err(Refusal::busy());
        }
        queue.requests.push(request);
        Ok(!std::mem::replace(&mut queue.is_counting, true))
    }

    /// The next to be counted together; none where nobody waits, and then somebody else will count next.
    fn batch(&self) -> Option<Vec<ChargeRequest>> {
        let mut queue = self.lock();
        if queue.requests.is_empty() {
            queue.is_counting = false;
            return None;
        }
        let size = queue.requests.len().min(MAX_BATCH);
        Some(queue.requests.drain(..size).collect())
    }

    /// Counts, without a wait where nobody else writes. Such a commit takes some microseconds, less than a thread takes to wake; where
    /// another process holds the database, a thread waits for it.
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

/// Why a batch was not counted.
#[derive(Debug, thiserror::Error)]
enum ChargeError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("counting panicked")]
    Panicked,
}

/// Counts all who are in line, until nobody is.
async fn count(counter: Arc<CreditCounter>) {
    loop {
        // Those that are ready to be counted too get in line meanwhile.
        tokio::task::yield_now().await;
        let Some(mut batch) = counter.batch() else { return };
        // Whoever is gone pays nothing.
        batch.retain(|request| !request.reply.is_closed());
        if batch.is_empty() {
            continue;
        }
        let hashes: Vec<KeyHash> = batch.iter().map(|request| request.hash).collect();
        let now = batch.iter().map(|request| request.now).max().unwrap_or_default();
        match counter.charge(hashes, now).await {
            Ok(usages) => {
                for (request, usage) in batch.into_iter().zip(usages) {
                    // Whoever asked may be gone.
                    let _ = request.reply.send(Ok(usage));
                }
                if let Some(Some(syncer)) = counter.syncer.get() {
                    // Full: it knows already.
                    let _ = syncer.try_send(());
                }
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, requests = batch.len(), "credits could not be counted");
                for request in batch {
                    let _ = request.reply.send(Err(()));
                }
            }
        }
    }
}

/// Starts the thread that brings counts to disk. It ends with the last service that could tell it something.
fn open_syncer(keys: Arc<Catalog>) -> Option<mpsc::SyncSender<()>> {
    let (syncer, counted) = mpsc::sync_channel::<()>(1);
    let syncing = move || {
        while counted.recv().is_ok() {
            std::thread::sleep(SYNC_EVERY);
            // Whatever was counted until here is synced below.
            let _ = counted.try_recv();
            if let Err(error) = keys.sync() {
                tracing::error!(error = &error as &dyn std::error::Error, "credits are counted, but not brought to disk");
            }
        }
    };
    match std::thread::Builder::new().name("cliffwatch-sync".into()).spawn(syncing) {
        Ok(_) => Some(syncer),
        Err(error) => {
            tracing::error!(%error, "cannot start the thread that brings credits to disk");
            None
        }
    }
}
