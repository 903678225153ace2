//! The response cache, with compressed and uncompressed bodies.
//!
//! Simultaneous requests for the same response build it once. The number of workers that build responses is limited, so that cached
//! responses remain fast. A page is cut from the complete list, which is cached too, so that reading all pages builds the list once.

use std::{sync::Arc, thread::available_parallelism};

use chrono::NaiveDate;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter, sync};
use tokio::sync::Semaphore;

use crate::gzip::{MIN_PACKED, Packed};
use crate::http::blocking;
use crate::payload::{ResponseBody, ResponseData};
use crate::query::DataQuery;
use crate::refusal::Refusal;

/// The size limit of the cache.
const MAX_CACHED_BYTES: u64 = 64 << 20;
/// The memory of an entry in addition to its payload, in bytes.
const ENTRY_OVERHEAD_BYTES: usize = 512;
/// The estimated number of entries, for the initial size of the table.
const USUAL_RESPONSES: usize = 4096;
/// The minimum number of workers, on machines with fewer processors.
const MIN_WORKERS: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub generation: i64,
    /// The current day, which defaults and `upcoming` depend on.
    pub day: NaiveDate,
    pub query: DataQuery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CachedForm {
    Plain,
    Packed,
    /// A list with all its pages.
    Whole,
}

#[derive(Clone, Debug)]
pub struct CachedResponse {
    pub body: Arc<ResponseBody>,
    /// The compressed end of the body. `None` if the client does not accept gzip or the body is small.
    pub packed: Option<Arc<Packed>>,
}

#[derive(Clone, Debug)]
enum CacheEntry {
    Ready(CachedResponse),
    List(Arc<ResponseData>),
}

#[derive(Clone, Debug)]
struct ByteWeight;

impl Weighter<(CacheKey, CachedForm), CacheEntry> for ByteWeight {
    fn weight(&self, (_, form): &(CacheKey, CachedForm), cached: &CacheEntry) -> u64 {
        let bytes = match cached {
            CacheEntry::List(list) => list.len(),
            CacheEntry::Ready(CachedResponse { packed: Some(packed), .. }) => packed.len(),
            // A small body shares its bytes with the uncompressed entry.
            CacheEntry::Ready(_) if *form == CachedForm::Packed => 0,
            CacheEntry::Ready(CachedResponse { body, .. }) => body.tail.len(),
        };
        u64::try_from(bytes + ENTRY_OVERHEAD_BYTES).unwrap_or(u64::MAX)
    }
}

#[derive(Debug)]
pub struct ResponseCache {
    cached: sync::Cache<(CacheKey, CachedForm), CacheEntry, ByteWeight>,
    workers: Arc<Semaphore>,
}

impl ResponseCache {
    pub fn new() -> Self {
        // The size of an item is limited by its shard, and a token list is large, so there is only one shard.
        let options =
            OptionsBuilder::new().shards(1).estimated_items_capacity(USUAL_RESPONSES).weight_capacity(MAX_CACHED_BYTES).build();
        let cached = match options {
            Ok(options) => sync::Cache::with_options(options, ByteWeight, DefaultHashBuilder::default(), Default::default()),
            Err(_) => sync::Cache::with_weighter(USUAL_RESPONSES, MAX_CACHED_BYTES, ByteWeight),
        };
        let workers = available_parallelism().map_or(MIN_WORKERS, usize::from).max(MIN_WORKERS);
        Self { cached, workers: Arc::new(Semaphore::new(workers)) }
    }

    pub fn clear(&self) {
        self.cached.clear();
    }

    /// Returns the cached response, or the key if it is not cached.
    pub fn find(&self, cache_key: CacheKey, wants_packed: bool) -> Result<CachedResponse, CacheKey> {
        let key = (cache_key, if wants_packed { CachedForm::Packed } else { CachedForm::Plain });
        match self.cached.get(&key) {
            Some(CacheEntry::Ready(ready)) => Ok(ready),
            _ => Err(key.0),
        }
    }

    /// Returns the response, and builds it by `make` if it is not cached. `make` runs on a blocking thread, once for simultaneous requests.
    /// Its errors are not cached.
    pub async fn get<M>(&self, cache_key: CacheKey, wants_packed: bool, make: M) -> Result<CachedResponse, Refusal>
    where
        M: FnOnce(&DataQuery) -> Result<ResponseData, Refusal> + Send + 'static,
    {
        if !wants_packed {
            return self.plain(cache_key, make).await;
        }
        let key = (cache_key.clone(), CachedForm::Packed);
        let packing = async {
            let ready = self.plain(cache_key, make).await?;
            if ready.body.tail.len() < MIN_PACKED {
                return Ok::<_, Refusal>(CacheEntry::Ready(ready));
            }
            let tail = ready.body.tail.clone();
            let packed = self.work(move || Packed::of(&tail).map_err(|_| Refusal::internal("cannot compress the response")));
            Ok(CacheEntry::Ready(CachedResponse { packed: Some(Arc::new(packed.await?)), ..ready }))
        };
        ready(self.cached.get_or_insert_async(&key, packing).await?)
    }

    async fn plain<M>(&self, cache_key: CacheKey, make: M) -> Result<CachedResponse, Refusal>
    where
        M: FnOnce(&DataQuery) -> Result<ResponseData, Refusal> + Send + 'static,
    {
        let key = (cache_key, CachedForm::Plain);
        let making = async {
            let cache_key = key.0.clone();
            let body = match cache_key.query.page {
                None => self.work(move || Ok(make(&cache_key.query)?.whole())).await?,
                // A page copies at most a few hundred items, which needs no worker.
                Some(page) => self.list(cache_key, make).await?.page(page),
            };
            Ok::<_, Refusal>(CacheEntry::Ready(CachedResponse { body: Arc::new(body), packed: None }))
        };
        ready(self.cached.get_or_insert_async(&key, making).await?)
    }

    async fn list<M>(&self, cache_key: CacheKey, make: M) -> Result<Arc<ResponseData>, Refusal>
    where
        M: FnOnce(&DataQuery) -> Result<ResponseData, Refusal> + Send + 'static,
    {
        // All pages share this key.
        let key =
            (CacheKey { query: DataQuery { page: None, ..cache_key.query.clone() }, ..cache_key.clone() }, CachedForm::Whole);
        let making = async {
            let list = self.work(move || make(&cache_key.query)).await?;
            Ok::<_, Refusal>(CacheEntry::List(Arc::new(list)))
        };
        match self.cached.get_or_insert_async(&key, making).await? {
            CacheEntry::List(list) => Ok(list),
            CacheEntry::Ready(_) => Err(Refusal::internal("missing pages in the response")),
        }
    }

    /// Runs blocking work on a worker. The work keeps its permit even if the client disconnects.
    async fn work<T: Send + 'static>(&self, run: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.workers).acquire_owned().await.ok();
        blocking(move || {
            let _permit = permit;
            run()
        })
        .await
    }
}

fn ready(cached: CacheEntry) -> Result<CachedResponse, Refusal> {
    match cached {
        CacheEntry::Ready(ready) => Ok(ready),
        CacheEntry::List(_) => Err(Refusal::internal("unexpected pages in the response")),
    }
}

#[cfg(test)]
mod tests;
