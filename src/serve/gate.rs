//! Who may ask: keys, their credits, their rate.
//!
//! A key is looked up by its hash and remembered for a second, so that a busy key costs no read a request. Whoever is to be counted gets
//! in line, and whoever stands alone there counts for all who have come until the others that were ready had their turn: one commit for
//! each crowd, and no other thread to wake. The file holds the truth at any time; nothing is counted in memory, and nobody is answered
//! before the commit.
//!
//! So the death of the process loses no count and adds none, but for requests that were counted and not yet answered, at most one for
//! each open connection. A thread of its own brings the counts to disk within [`SYNC_EVERY`]: a loss of power may give away what was used
//! in that time, and never charges for more than was asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, mpsc},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{Access, GENERATION_CHECK, Hash, Options, Refusal, ServiceError, sha256};
use crate::{
    store::catalog::{Catalog, CatalogError, Usage},
    supply::Timestamp,
};

/// Longest key that is looked at, bytes.
const MAX_KEY: usize = 256;
/// Requests counted in one transaction.
const MAX_BATCH: usize = 256;
/// Requests that may wait to be counted; more are told to come again.
const MAX_WAITING: usize = 8192;
/// How long counts may be in the hands of the system alone.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub struct Gate {
    till: Option<Arc<Till>>,
    access: Access,
    requests_per_minute: Option<u32>,
    seen: RwLock<Seen>,
    rates: Mutex<HashMap<Hash, Rate>>,
}

/// Where credits are counted.
#[derive(Debug)]
struct Till {
    keys: Arc<Catalog>,
    line: Mutex<Line>,
    /// To the thread that brings counts to disk, once there is something to bring.
    syncer: OnceLock<Option<mpsc::SyncSender<()>>>,
}

/// Who waits to be counted.
#[derive(Debug, Default)]
struct Line {
    orders: Vec<Order>,
    /// Whether somebody counts already.
    is_counting: bool,
}

/// What was looked up within the last second.
#[derive(Debug, Default)]
struct Seen {
    checked: Option<Instant>,
    required: bool,
    names: HashMap<Hash, Arc<str>>,
}

/// Requests of one key in the current minute.
#[derive(Debug)]
struct Rate {
    minute: i64,
    requests: u32,
}

#[derive(Debug)]
struct Order {
    hash: Hash,
    now: Timestamp,
    reply: oneshot::Sender<Result<Option<Usage>, ()>>,
}

/// Whoever was let in.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Of the key; none where no key is asked for.
    pub hash: Option<Hash>,
    /// Of the key, for the log.
    pub name: Option<Arc<str>>,
}

/// Hash of a key as it was sent. The key itself goes no further than here.
pub fn hash_of(key: &[u8]) -> Hash {
    sha256(key.get(..MAX_KEY).unwrap_or(key))
}

impl Gate {
    pub fn new(keys: Option<Arc<Catalog>>, options: &Options) -> Self {
        Self {
            till: keys.map(|keys| Arc::new(Till { keys, line: Mutex::default(), syncer: OnceLock::new() })),
            access: options.access,
            requests_per_minute: options.requests_per_minute,
            seen: RwLock::default(),
            rates: Mutex::default(),
        }
    }

    /// The database of keys.
    pub fn keys(&self) -> Result<&Catalog, ServiceError> {
        self.till.as_ref().map(|till| &*till.keys).ok_or(ServiceError::Keyless)
    }

    /// Keys are looked up anew.
    pub fn forget(&self) {
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Seen::default();
    }

    /// Whether a key is required. Blocks.
    pub fn requires_key(&self) -> Result<bool, CatalogError> {
        match (&self.till, self.access) {
            (None, _) | (_, Access::Open) => Ok(false),
            (Some(_), Access::Keys) => Ok(true),
            (Some(till), Access::KeysIfAny) => till.keys.read(|view| view.has_keys()),
        }
    }

    /// Lets in whoever was let in within the last second; none where the database has to be asked.
    pub fn wave(&self, hash: Option<&Hash>) -> Option<Result<Pass, Refusal>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        if seen.checked.is_none_or(|checked| checked.elapsed() >= GENERATION_CHECK) {
            return None;
        }
        if !seen.required {
            return Some(Ok(Pass { hash: None, name: None }));
        }
        let Some(hash) = hash else { return Some(Err(Refusal::keyless())) };
        seen.names.get(hash).map(|name| Ok(Pass { hash: Some(*hash), name: Some(name.clone()) }))
    }

    /// Lets in whoever has a key in use, where one is required. Blocks.
    pub fn admit(&self, hash: Option<&Hash>, now: Timestamp) -> Result<Pass, Refusal> {
        let open = Pass { hash: None, name: None };
        let Some(till) = &self.till else { return Ok(open) };
        let required = self.requires_key()?;
        {
            let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
            if seen.checked.is_none_or(|checked| checked.elapsed() >= GENERATION_CHECK) {
                *seen = Seen { checked: Some(Instant::now()), required, names: HashMap::new() };
            }
        }
        if !required {
            return Ok(open);
        }
        let hash = hash.ok_or_else(Refusal::keyless)?;
        let row = till.keys.key(hash, now)?.ok_or_else(Refusal::keyless)?;
        let name: Arc<str> = row.name.into();
        self.seen.write().unwrap_or_else(PoisonError::into_inner).names.insert(*hash, name.clone());
        Ok(Pass { hash: Some(*hash), name: Some(name) })
    }

    /// Counts a request towards the rate of its key. Only keys that exist are counted, so that the table stays as short as theirs.
    pub fn pace(&self, pass: &Pass, now: Timestamp) -> Result<(), Refusal> {
        let (Some(limit), Some(hash)) = (self.requests_per_minute, pass.hash) else { return Ok(()) };
        let minute = now.timestamp().div_euclid(60);
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = rates.entry(hash).or_insert(Rate { minute, requests: 0 });
        if rate.minute != minute {
            *rate = Rate { minute, requests: 0 };
        }
        if rate.requests >= limit {
            let wait = (minute + 1) * 60 - now.timestamp();
            return Err(Refusal::too_many(format!("more than {limit} requests in a minute"), wait));
        }
        rate.requests += 1;
        Ok(())
    }

    /// Uses up one credit of whoever was let in; none where nothing is counted. What comes back was committed.
    pub async fn charge(&self, pass: &Pass, now: Timestamp) -> Result<Option<Usage>, Refusal> {
        let (Some(hash), Some(till)) = (pass.hash, &self.till) else { return Ok(None) };
        let (reply, counted) = oneshot::channel();
        if till.queue(Order { hash, now, reply })? {
            // A task of its own: this request may be given up while it waits.
            tokio::spawn(count(till.clone()));
        }
        match counted.await {
            Ok(Ok(Some(usage))) => Ok(Some(usage)),
            // Spent, or revoked since it was let in.
            Ok(Ok(None)) => {
                let keys = till.keys.clone();
                let row = tokio::task::spawn_blocking(move || keys.key(&hash, now)).await;
                let row = row.map_err(|_| Refusal::internal("the service failed on this request"))??;
                Err(row.map_or_else(Refusal::keyless, |row| Refusal::spent(row.reset_at, now)))
            }
            Ok(Err(())) | Err(_) => {
                Err(Refusal { message: "the service cannot count this request now: ask again later".into(), ..Refusal::busy() })
            }
        }
    }
}

impl Till {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request in line. Answers whether somebody has to count now.
    fn queue(&self, order: Order) -> Result<bool, Refusal> {
        self.syncer.get_or_init(|| open_syncer(self.keys.clone())).as_ref().ok_or_else(Refusal::busy)?;
        let mut line = self.line();
        if line.orders.len() >= MAX_WAITING {
            return Err(Refusal::busy());
        }
        line.orders.push(order);
        Ok(!std::mem::replace(&mut line.is_counting, true))
    }

    /// The next to be counted together; none where nobody waits, and then somebody else will count next.
    fn batch(&self) -> Option<Vec<Order>> {
        let mut line = self.line();
        if line.orders.is_empty() {
            line.is_counting = false;
            return None;
        }
        let size = line.orders.len().min(MAX_BATCH);
        Some(line.orders.drain(..size).collect())
    }

    /// Counts, without a wait where nobody else writes. Such a commit takes some microseconds, less than a thread takes to wake; where
    /// another process holds the database, a thread waits for it.
    async fn charge(self: &Arc<Self>, hashes: Vec<Hash>, now: Timestamp) -> Result<Vec<Option<Usage>>, Uncounted> {
        let at_once = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.keys.try_charge(&hashes, now)));
        if let Some(usages) = at_once.map_err(|_| Uncounted::Panicked)?? {
            return Ok(usages);
        }
        let keys = self.keys.clone();
        let later = tokio::task::spawn_blocking(move || keys.charge(&hashes, now)).await;
        Ok(later.map_err(|_| Uncounted::Panicked)??)
    }
}

/// Why a batch was not counted.
#[derive(Debug, thiserror::Error)]
enum Uncounted {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("counting panicked")]
    Panicked,
}

/// Counts all who are in line, until nobody is.
async fn count(till: Arc<Till>) {
    loop {
        // Those that are ready to be counted too get in line meanwhile.
        tokio::task::yield_now().await;
        let Some(mut batch) = till.batch() else { return };
        // Whoever is gone pays nothing.
        batch.retain(|order| !order.reply.is_closed());
        if batch.is_empty() {
            continue;
        }
        let hashes: Vec<Hash> = batch.iter().map(|order| order.hash).collect();
        let now = batch.iter().map(|order| order.now).max().unwrap_or_default();
        match till.charge(hashes, now).await {
            Ok(usages) => {
                for (order, usage) in batch.into_iter().zip(usages) {
                    // Whoever asked may be gone.
                    let _ = order.reply.send(Ok(usage));
                }
                if let Some(Some(syncer)) = till.syncer.get() {
                    // Full: it knows already.
                    let _ = syncer.try_send(());
                }
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, requests = batch.len(), "credits could not be counted");
                for order in batch {
                    let _ = order.reply.send(Err(()));
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
