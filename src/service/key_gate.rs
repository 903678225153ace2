//! Checks keys, their credits, and their request rate.
//!
//! A valid key is cached by its hash for a second, so that not every request reads the database. The
//! [`credit_counter`](crate::credit_counter) counts credits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use ring::digest;

use crate::{
    AccessPolicy, Options, ServiceError, credit_counter::CreditCounter, refusal::Refusal, service::GENERATION_CHECK_INTERVAL,
};
use model::Timestamp;
use store::catalog::{Catalog, CatalogError, KeyUsage};

const MAX_KEY: usize = 256;

#[derive(Debug)]
pub struct KeyGate {
    counter: Option<Arc<CreditCounter>>,
    access: AccessPolicy,
    requests_per_minute: Option<u32>,
    known: RwLock<KnownKeys>,
    rates: Mutex<HashMap<KeyHash, MinuteCount>>,
}

/// The keys found in the database within the last second.
#[derive(Debug, Default)]
struct KnownKeys {
    checked: Option<Instant>,
    required: bool,
    names: HashMap<KeyHash, Arc<str>>,
}

#[derive(Debug)]
struct MinuteCount {
    minute: i64,
    requests: u32,
}

#[derive(Clone, Debug)]
pub struct AdmittedKey {
    /// `None` if no key is required.
    pub hash: Option<KeyHash>,
    /// The name of the key, for the log.
    pub name: Option<Arc<str>>,
}

pub type KeyHash = [u8; digest::SHA256_OUTPUT_LEN];

/// Hashes a key. The key itself is not stored or passed on.
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
            known: RwLock::default(),
            rates: Mutex::default(),
        }
    }

    pub fn keys(&self) -> Result<&Catalog, ServiceError> {
        self.counter.as_ref().map(|counter| counter.keys()).ok_or(ServiceError::Keyless)
    }

    /// Clears the cached keys.
    pub fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = KnownKeys::default();
    }

    /// Returns whether a key is required. Blocks.
    pub fn requires_key(&self) -> Result<bool, CatalogError> {
        match (&self.counter, self.access) {
            (None, _) | (_, AccessPolicy::Open) => Ok(false),
            (Some(_), AccessPolicy::Keys) => Ok(true),
            (Some(counter), AccessPolicy::KeysIfAny) => counter.keys().read(|view| view.has_keys()),
        }
    }

    /// Checks a key against the cache. Returns `None` if the database must be queried.
    pub fn admit_cached(&self, hash: Option<&KeyHash>) -> Option<Result<AdmittedKey, Refusal>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if known.checked.is_none_or(|checked| checked.elapsed() >= GENERATION_CHECK_INTERVAL) {
            return None;
        }
        if !known.required {
            return Some(Ok(AdmittedKey { hash: None, name: None }));
        }
        let Some(hash) = hash else { return Some(Err(Refusal::invalid_key())) };
        known.names.get(hash).map(|name| Ok(AdmittedKey { hash: Some(*hash), name: Some(name.clone()) }))
    }

    /// Checks a key against the database, if one is required. Blocks.
    pub fn admit(&self, hash: Option<&KeyHash>, now: Timestamp) -> Result<AdmittedKey, Refusal> {
        let open = AdmittedKey { hash: None, name: None };
        let Some(counter) = &self.counter else { return Ok(open) };
        let required = self.requires_key()?;
        {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if known.checked.is_none_or(|checked| checked.elapsed() >= GENERATION_CHECK_INTERVAL) {
                *known = KnownKeys { checked: Some(Instant::now()), required, names: HashMap::new() };
            }
        }
        if !required {
            return Ok(open);
        }
        let hash = hash.ok_or_else(Refusal::invalid_key)?;
        let row = counter.keys().key(hash, now)?.ok_or_else(Refusal::invalid_key)?;
        let name: Arc<str> = row.name.into();
        self.known.write().unwrap_or_else(PoisonError::into_inner).names.insert(*hash, name.clone());
        Ok(AdmittedKey { hash: Some(*hash), name: Some(name) })
    }

    /// Counts a request toward the rate limit of its key. Only existing keys are counted, which bounds the size of the table.
    pub fn check_rate(&self, admitted: &AdmittedKey, now: Timestamp) -> Result<(), Refusal> {
        let (Some(limit), Some(hash)) = (self.requests_per_minute, admitted.hash) else { return Ok(()) };
        let minute = now.timestamp().div_euclid(60);
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = rates.entry(hash).or_insert(MinuteCount { minute, requests: 0 });
        if rate.minute != minute {
            *rate = MinuteCount { minute, requests: 0 };
        }
        if rate.requests >= limit {
            let wait = (minute + 1) * 60 - now.timestamp();
            return Err(Refusal::rate_limited(format!("rate limit exceeded: {limit} requests per minute"), wait));
        }
        rate.requests += 1;
        Ok(())
    }

    /// Returns the credits of a key, or `None` if it was revoked. Blocks.
    pub fn usage(&self, hash: &KeyHash, now: Timestamp) -> Result<Option<KeyUsage>, CatalogError> {
        let Some(counter) = &self.counter else { return Ok(None) };
        let row = counter.keys().key(hash, now)?;
        Ok(row.map(|row| KeyUsage { used: row.used, limit: row.monthly_limit, reset_at: row.reset_at }))
    }

    /// Copies counted credits to the database before the service stops. Blocks.
    pub fn finish(&self) -> Result<(), CatalogError> {
        self.counter.as_ref().map_or(Ok(()), |counter| counter.keys().finish())
    }

    /// Charges one credit to a key. Returns `None` if credits are not counted, else after the charge is stored.
    pub async fn charge(&self, admitted: &AdmittedKey, now: Timestamp) -> Result<Option<KeyUsage>, Refusal> {
        let (Some(hash), Some(counter)) = (admitted.hash, &self.counter) else { return Ok(None) };
        counter.use_credit(hash, now).await.map(Some)
    }
}
