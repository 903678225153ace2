//! Who may ask: keys, their credits, their rate.
//!
//! A key is looked up by its hash and remembered for a second, so that a busy key costs no read a request. What a request costs is
//! counted in [`credit_counter`](crate::credit_counter).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use ring::digest;

use crate::{AccessPolicy, Options, ServiceError, credit_counter::CreditCounter, refusal::Refusal, service::GENERATION_CHECK};
use model::Timestamp;
use store::catalog::{Catalog, CatalogError, KeyUsage};

/// Longest key that is looked at, bytes.
const MAX_KEY: usize = 256;

/// Lets requests in by their keys.
#[derive(Debug)]
pub struct KeyGate {
    counter: Option<Arc<CreditCounter>>,
    access: AccessPolicy,
    requests_per_minute: Option<u32>,
    seen: RwLock<KnownKeys>,
    rates: Mutex<HashMap<KeyHash, MinuteCount>>,
}

/// What was looked up within the last second.
#[derive(Debug, Default)]
struct KnownKeys {
    checked: Option<Instant>,
    required: bool,
    names: HashMap<KeyHash, Arc<str>>,
}

/// Requests of one key in the current minute.
#[derive(Debug)]
struct MinuteCount {
    minute: i64,
    requests: u32,
}

/// Whoever was let in.
#[derive(Clone, Debug)]
pub struct AdmittedKey {
    /// Of the key; none where no key is asked for.
    pub hash: Option<KeyHash>,
    /// Of the key, for the log.
    pub name: Option<Arc<str>>,
}

pub type KeyHash = [u8; digest::SHA256_OUTPUT_LEN];

/// Hash of a key as it was sent. The key itself goes no further than here.
pub fn hash_of(key: &[u8]) -> KeyHash {
    let mut hash = KeyHash::default();
    hash.copy_from_slice(digest::digest(&digest::SHA256, key.get(..MAX_KEY).unwrap_or(key)).as_ref());
    hash
}

impl KeyGate {
    pub fn new(keys: Option<Arc<Catalog>>, options: &Options) -> Self {
        Self {
            counter: keys.map(|keys| Arc::new(CreditCounter::new(keys))),
            access: options.access,
            requests_per_minute: options.requests_per_minute,
            seen: RwLock::default(),
            rates: Mutex::default(),
        }
    }

    pub fn keys(&self) -> Result<&Catalog, ServiceError> {
        self.counter.as_ref().map(|counter| counter.keys()).ok_or(ServiceError::Keyless)
    }

    /// Keys are looked up anew.
    pub fn forget(&self) {
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = KnownKeys::default();
    }

    /// Whether a key is required. Blocks.
    pub fn requires_key(&self) -> Result<bool, CatalogError> {
        match (&self.counter, self.access) {
            (None, _) | (_, AccessPolicy::Open) => Ok(false),
            (Some(_), AccessPolicy::Keys) => Ok(true),
            (Some(counter), AccessPolicy::KeysIfAny) => counter.keys().read(|view| view.has_keys()),
        }
    }

    /// Lets in whoever was let in within the last second; none where the database has to be asked.
    pub fn wave(&self, hash: Option<&KeyHash>) -> Option<Result<AdmittedKey, Refusal>> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        if seen.checked.is_none_or(|checked| checked.elapsed() >= GENERATION_CHECK) {
            return None;
        }
        if !seen.required {
            return Some(Ok(AdmittedKey { hash: None, name: None }));
        }
        let Some(hash) = hash else { return Some(Err(Refusal::keyless())) };
        seen.names.get(hash).map(|name| Ok(AdmittedKey { hash: Some(*hash), name: Some(name.clone()) }))
    }

    /// Lets in whoever has a key in use, where one is required. Blocks.
    pub fn admit(&self, hash: Option<&KeyHash>, now: Timestamp) -> Result<AdmittedKey, Refusal> {
        let open = AdmittedKey { hash: None, name: None };
        let Some(counter) = &self.counter else { return Ok(open) };
        let required = self.requires_key()?;
        {
            let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
            if seen.checked.is_none_or(|checked| checked.elapsed() >= GENERATION_CHECK) {
                *seen = KnownKeys { checked: Some(Instant::now()), required, names: HashMap::new() };
            }
        }
        if !required {
            return Ok(open);
        }
        let hash = hash.ok_or_else(Refusal::keyless)?;
        let row = counter.keys().key(hash, now)?.ok_or_else(Refusal::keyless)?;
        let name: Arc<str> = row.name.into();
        self.seen.write().unwrap_or_else(PoisonError::into_inner).names.insert(*hash, name.clone());
        Ok(AdmittedKey { hash: Some(*hash), name: Some(name) })
    }

    /// Counts a request towards the rate of its key. Only keys that exist are counted, so that the table stays as short as theirs.
    pub fn pace(&self, admitted: &AdmittedKey, now: Timestamp) -> Result<(), Refusal> {
        let (Some(limit), Some(hash)) = (self.requests_per_minute, admitted.hash) else { return Ok(()) };
        let minute = now.timestamp().div_euclid(60);
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = rates.entry(hash).or_insert(MinuteCount { minute, requests: 0 });
        if rate.minute != minute {
            *rate = MinuteCount { minute, requests: 0 };
        }
        if rate.requests >= limit {
            let wait = (minute + 1) * 60 - now.timestamp();
            return Err(Refusal::too_many(format!("more than {limit} requests in a minute"), wait));
        }
        rate.requests += 1;
        Ok(())
    }

    /// How the credits of a key stand; none where it is gone. Blocks.
    pub fn usage(&self, hash: &KeyHash, now: Timestamp) -> Result<Option<KeyUsage>, CatalogError> {
        let Some(counter) = &self.counter else { return Ok(None) };
        let row = counter.keys().key(hash, now)?;
        Ok(row.map(|row| KeyUsage { used: row.used, limit: row.monthly_limit, reset_at: row.reset_at }))
    }

    /// Uses up one credit of whoever was let in; none where nothing is counted. What comes back was committed.
    pub async fn charge(&self, admitted: &AdmittedKey, now: Timestamp) -> Result<Option<KeyUsage>, Refusal> {
        let (Some(hash), Some(counter)) = (admitted.hash, &self.counter) else { return Ok(None) };
        counter.use_credit(hash, now).await.map(Some)
    }
}
