//! The response cache: answers that were made before. One that is asked for again goes out as it is cached, packed or not; one that is
//! asked for by many at once is made once, by a few workers that leave the processor to those who ask for what is cached.
//!
//! A page of a list is cut from the whole list, which is cached too: a walk over many pages makes the list once.

use std::{sync::Arc, thread::available_parallelism};

use chrono::NaiveDate;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter, sync};
use tokio::sync::Semaphore;

use crate::answer::{AnswerBody, AnswerContent, ListRows};
use crate::gzip::{MIN_PACKED, Packed};
use crate::http::blocking;
use crate::query::DataQuery;
use crate::refusal::Refusal;

/// Size of the cache, bytes. Beyond it goes what was not asked for again, or not lately.
const MAX_CACHED_BYTES: u64 = 64 << 20;
/// What an answer takes beside its payload, bytes.
const OVERHEAD: usize = 512;
/// Answers of a usual size that fit, for a table of the right size from the beginning.
const USUAL_ANSWERS: usize = 4096;
/// Answers that are made at once, where the machine has fewer processors.
const MIN_WORKERS: usize = 2;

/// What an answer is cached under: a query of the data as it was at one time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub generation: i64,
    /// The present day: defaults and `upcoming` depend on it.
    pub day: NaiveDate,
    pub query: DataQuery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CachedForm {
    Plain,
    Packed,
    /// All pages of a list.
    Whole,
}

/// An answer that can go out.
#[derive(Clone, Debug)]
pub struct CachedAnswer {
    /// It.
    pub answer: Arc<AnswerBody>,
    /// Its end packed, where that was asked for and is worth it.
    pub packed: Option<Arc<Packed>>,
}

#[derive(Clone, Debug)]
enum CacheEntry {
    Ready(CachedAnswer),
    Rows(Arc<ListRows>),
}

#[derive(Clone, Debug)]
struct ByteWeight;

impl Weighter<(CacheKey, CachedForm), CacheEntry> for ByteWeight {
    fn weight(&self, (_, form): &(CacheKey, CachedForm), cached: &CacheEntry) -> u64 {
        let bytes = match cached {
            CacheEntry::Rows(rows) => rows.len(),
            CacheEntry::Ready(CachedAnswer { packed: Some(packed), .. }) => packed.len(),
            // Cached once more under another form, which shares the bytes.
            CacheEntry::Ready(_) if *form == CachedForm::Packed => 0,
            CacheEntry::Ready(CachedAnswer { answer, .. }) => answer.tail.len(),
        };
        u64::try_from(bytes + OVERHEAD).unwrap_or(u64::MAX)
    }
}

/// The answers of one service that were made before, within [`MAX_CACHED_BYTES`].
#[derive(Debug)]
pub struct ResponseCache {
    cached: sync::Cache<(CacheKey, CachedForm), CacheEntry, ByteWeight>,
    workers: Arc<Semaphore>,
}

impl ResponseCache {
    pub fn new() -> Self {
        // One shard: the bound of a shard is that of its largest item, and a list of tokens is large.
        let options =
            OptionsBuilder::new().shards(1).estimated_items_capacity(USUAL_ANSWERS).weight_capacity(MAX_CACHED_BYTES).build();
        let cached = match options {
            Ok(options) => sync::Cache::with_options(options, ByteWeight, DefaultHashBuilder::default(), Default::default()),
            Err(_) => sync::Cache::with_weighter(USUAL_ANSWERS, MAX_CACHED_BYTES, ByteWeight),
        };
        let workers = available_parallelism().map_or(MIN_WORKERS, usize::from).max(MIN_WORKERS);
        Self { cached, workers: Arc::new(Semaphore::new(workers)) }
    }

    /// Forgets all: the data changed.
    pub fn clear(&self) {
        self.cached.clear();
    }

    /// The answer, where it was made before.
    pub fn find(&self, cache_key: CacheKey, wants_packed: bool) -> Result<CachedAnswer, CacheKey> {
        let key = (cache_key, if wants_packed { CachedForm::Packed } else { CachedForm::Plain });
        match self.cached.get(&key) {
            Some(CacheEntry::Ready(ready)) => Ok(ready),
            _ => Err(key.0),
        }
    }

    /// The answer; `make` makes it where nobody did. It blocks, and is called at most once at a time for a question.
    /// Fails with what `make` answers. Nothing is cached of that.
    pub async fn get<M>(&self, cache_key: CacheKey, wants_packed: bool, make: M) -> Result<CachedAnswer, Refusal>
    where
        M: FnOnce(&DataQuery) -> Result<AnswerContent, Refusal> + Send + 'static,
    {
        if !wants_packed {
            return self.plain(cache_key, make).await;
        }
        let key = (cache_key.clone(), CachedForm::Packed);
        let packing = async {
            let ready = self.plain(cache_key, make).await?;
            if ready.answer.tail.len() < MIN_PACKED {
                return Ok::<_, Refusal>(CacheEntry::Ready(ready));
            }
            let tail = ready.answer.tail.clone();
            let packed = self.work(move || Packed::of(&tail).map_err(|_| Refusal::internal("an answer cannot be packed")));
            Ok(CacheEntry::Ready(CachedAnswer { packed: Some(Arc::new(packed.await?)), ..ready }))
        };
        ready(self.cached.get_or_insert_async(&key, packing).await?)
    }

    async fn plain<M>(&self, cache_key: CacheKey, make: M) -> Result<CachedAnswer, Refusal>
    where
        M: FnOnce(&DataQuery) -> Result<AnswerContent, Refusal> + Send + 'static,
    {
        let key = (cache_key, CachedForm::Plain);
        let making = async {
            let cache_key = key.0.clone();
            let answer = match cache_key.query.page {
                None => match self.work(move || make(&cache_key.query)).await? {
                    AnswerContent::Whole(answer) => answer,
                    AnswerContent::Rows(_) => return Err(Refusal::internal("an answer without pages came in pages")),
                },
                Some(page) => {
                    let rows = self.rows(cache_key, make).await?;
                    // A page is at most a copy of some hundred rows.
                    rows.page(page)
                }
            };
            Ok::<_, Refusal>(CacheEntry::Ready(CachedAnswer { answer: Arc::new(answer), packed: None }))
        };
        ready(self.cached.get_or_insert_async(&key, making).await?)
    }

    async fn rows<M>(&self, cache_key: CacheKey, make: M) -> Result<Arc<ListRows>, Refusal>
    where
        M: FnOnce(&DataQuery) -> Result<AnswerContent, Refusal> + Send + 'static,
    {
        // The same for every page.
        let key =
            (CacheKey { query: DataQuery { page: None, ..cache_key.query.clone() }, ..cache_key.clone() }, CachedForm::Whole);
        let making = async {
            match self.work(move || make(&cache_key.query)).await? {
                AnswerContent::Rows(rows) => Ok(CacheEntry::Rows(Arc::new(rows))),
                AnswerContent::Whole(_) => Err(Refusal::internal("an answer with pages came without")),
            }
        };
        match self.cached.get_or_insert_async(&key, making).await? {
            CacheEntry::Rows(rows) => Ok(rows),
            CacheEntry::Ready(_) => Err(Refusal::internal("an answer with pages came without")),
        }
    }

    /// Runs what takes a while beside those who serve. Whoever asked may go meanwhile; the work keeps its permit until it is done.
    async fn work<T: Send + 'static>(&self, run: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
        // It is never closed; were it to be, workers would only be uncounted.
        let permit = Arc::clone(&self.workers).acquire_owned().await.ok();
        blocking(move || {
            let _permit = permit;
            run()
        })
        .await
    }
}

fn ready(cached: CacheEntry) -> Result<CachedAnswer, Refusal> {
    match cached {
        CacheEntry::Ready(ready) => Ok(ready),
        CacheEntry::Rows(_) => Err(Refusal::internal("an answer came in pages")),
    }
}

#[cfg(test)]
mod tests;
