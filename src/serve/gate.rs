//! Who may ask: keys, their credits, their rate.
//!
//! A key is looked up by its hash and remembered for a second, so that a busy key costs no read a request. Credits are counted by one
//! thread, which takes all requests that wait and commits them together, under a crowd after a moment in which more of it arrive. The
//! file holds the truth at any time; nothing is counted in memory, and nobody is answered before the commit.
//!
//! So the death of the process loses no count and adds none, but for requests that were counted and not yet answered, at most one for
//! each open connection. A second thread brings the counts to disk within [`SYNC_EVERY`]: a loss of power may give away what was used in
//! that time, and never charges for more than was asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, mpsc},
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
/// So many in one batch are a crowd: the next batch is worth a wait.
const CROWD: usize = 4;
/// How long a crowd gathers before it is counted.
const GATHERING: Duration = Duration::from_micros(100);
/// How long counts may be in the hands of the system alone.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub struct Gate {
    keys: Option<Arc<Catalog>>,
    access: Access,
    requests_per_minute: Option<u32>,
    seen: RwLock<Seen>,
    rates: Mutex<HashMap<Hash, Rate>>,
    till: OnceLock<Option<mpsc::SyncSender<Order>>>,
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
            keys,
            access: options.access,
            requests_per_minute: options.requests_per_minute,
            seen: RwLock::default(),
            rates: Mutex::default(),
            till: OnceLock::new(),
        }
    }

    /// The database of keys.
    pub fn keys(&self) -> Result<&Catalog, ServiceError> {
        self.keys.as_deref().ok_or(ServiceError::Keyless)
    }

    /// Keys are looked up anew.
    pub fn forget(&self) {
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Seen::default();
    }

    /// Whether a key is required. Blocks.
    pub fn requires_key(&self) -> Result<bool, CatalogError> {
        match (&self.keys, self.access) {
            (None, _) | (_, Access::Open) => Ok(false),
            (Some(_), Access::Keys) => Ok(true),
            (Some(keys), Access::KeysIfAny) => keys.read(|view| view.has_keys()),
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
        let Some(keys) = &self.keys else { return Ok(open) };
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
        let row = keys.key(hash, now)?.ok_or_else(Refusal::keyless)?;
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
        let (Some(hash), Some(keys)) = (pass.hash, &self.keys) else { return Ok(None) };
        let till = self.till.get_or_init(|| open_till(keys.clone())).as_ref();
        let (reply, counted) = oneshot::channel();
        till.and_then(|till| till.try_send(Order { hash, now, reply }).ok()).ok_or_else(Refusal::busy)?;
        match counted.await {
            Ok(Ok(Some(usage))) => Ok(Some(usage)),
            // Spent, or revoked since it was let in.
            Ok(Ok(None)) => {
                let keys = keys.clone();
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

/// Starts the thread that counts, and the one that brings its counts to disk. They end with the last service that could send them
/// something.
fn open_till(keys: Arc<Catalog>) -> Option<mpsc::SyncSender<Order>> {
    let (till, orders) = mpsc::sync_channel::<Order>(MAX_WAITING);
    let (counted, counts) = mpsc::sync_channel::<()>(1);
    let synced = keys.clone();
    let syncing = move || {
        while counts.recv().is_ok() {
            std::thread::sleep(SYNC_EVERY);
            // Whatever was counted until here is synced below.
            let _ = counts.try_recv();
            if let Err(error) = synced.sync() {
                tracing::error!(error = &error as &dyn std::error::Error, "credits are counted, but not brought to disk");
            }
        }
    };
    let counting = move || {
        let mut is_crowded = false;
        while let Ok(first) = orders.recv() {
            if is_crowded {
                std::thread::sleep(GATHERING);
            }
            let mut batch = vec![first];
            batch.extend(orders.try_iter().take(MAX_BATCH - 1));
            is_crowded = batch.len() >= CROWD;
            let hashes: Vec<Hash> = batch.iter().map(|order| order.hash).collect();
            let now = batch.iter().map(|order| order.now).max().unwrap_or_default();
            let charged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| keys.charge(&hashes, now)));
            match charged {
                Ok(Ok(usages)) => {
                    for (order, usage) in batch.into_iter().zip(usages) {
                        // Whoever asked may be gone.
                        let _ = order.reply.send(Ok(usage));
                    }
                    // Full: the other thread knows already.
                    let _ = counted.try_send(());
                }
                Ok(Err(error)) => refuse(batch, &error),
                Err(_) => tracing::error!("counting credits failed; those who asked were told"),
            }
        }
    };
    let start = |name: &str, run: Box<dyn FnOnce() + Send>| std::thread::Builder::new().name(name.to_owned()).spawn(run);
    match start("cliffwatch-sync", Box::new(syncing)).and_then(|_| start("cliffwatch-till", Box::new(counting))) {
        Ok(_) => Some(till),
        Err(error) => {
            tracing::error!(%error, "cannot start the threads that count credits");
            None
        }
    }
}

fn refuse(batch: Vec<Order>, error: &CatalogError) {
    tracing::error!(error = error as &dyn std::error::Error, requests = batch.len(), "credits could not be counted");
    for order in batch {
        let _ = order.reply.send(Err(()));
    }
}
