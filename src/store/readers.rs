//! Read connections: a blocking pool, and asynchronous access to it.
//!
//! The daemon and the web pages have connections of their own, so that no page can delay an alert. Within a kind, readers get a
//! connection in the order in which they arrive. A read whose caller is gone is interrupted.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::error::{StoreError, StoreFault};
use super::page_facts::FactsCache;
use super::read_stop::ReadStop;
use super::sql::{Connection, SqlResult, Transaction};
use super::writer::{AnyValue, contain};
use model::BoxFuture;

type Read = Box<dyn FnOnce(&Transaction<'_>) -> Result<AnyValue, StoreFault> + Send>;

pub(super) type OpenReader = Box<dyn Fn(&Path) -> SqlResult<Connection> + Send + Sync>;

/// A pool of read connections. Keeps up to `max_idle` connections open. Opens more under load, unless it is bounded.
pub(super) struct ReaderPool {
    path: Arc<Path>,
    open: OpenReader,
    checkouts: Mutex<Checkouts>,
    returned: Condvar,
    max_idle: usize,
    /// The maximum number of connections in use at once. `None` if unlimited.
    max_checked_out: Option<usize>,
}

/// The idle connections, and the number of connections in use.
struct Checkouts {
    idle: Vec<Connection>,
    checked_out: usize,
}

/// Counts a connection in use, even if its user panics.
struct Checkout<'p>(&'p ReaderPool);

impl Drop for Checkout<'_> {
    fn drop(&mut self) {
        self.0.checkouts().checked_out -= 1;
        self.0.returned.notify_one();
    }
}

impl std::fmt::Debug for ReaderPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReaderPool").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ReaderPool {
    /// Creates a pool that opens connections on demand.
    pub(super) fn new(path: &Path, open: OpenReader, max_idle: usize) -> Self {
        let checkouts = Mutex::new(Checkouts { idle: Vec::new(), checked_out: 0 });
        Self { path: path.into(), open, checkouts, returned: Condvar::new(), max_idle, max_checked_out: None }
    }

    /// Limits the pool to `max_idle` connections; other readers wait. For servers, whose connections are limited. A
    /// nested read could deadlock.
    pub(super) fn bounded(self) -> Self {
        Self { max_checked_out: Some(self.max_idle), ..self }
    }

    /// Creates a pool with `count` open connections, so that an unreadable file fails at once.
    pub(super) fn filled(path: &Path, open: OpenReader, count: usize) -> SqlResult<Self> {
        let pool = Self::new(path, open, count);
        for _ in 0..count {
            let connection = (pool.open)(path)?;
            pool.checkouts().idle.push(connection);
        }
        Ok(pool)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `read` on a connection. Fails if none can be opened.
    pub(super) fn with<T>(&self, read: impl FnOnce(&mut Connection) -> T) -> SqlResult<T> {
        let (_checkout, idle) = self.check_out();
        let mut connection = match idle {
            Some(connection) => connection,
            None => (self.open)(&self.path)?,
        };
        let value = read(&mut connection);
        self.put_back(connection);
        Ok(value)
    }

    fn put_back(&self, connection: Connection) {
        let mut checkouts = self.checkouts();
        if checkouts.idle.len() < self.max_idle {
            checkouts.idle.push(connection);
        }
    }

    /// Waits for a free slot, and returns an idle connection if there is one.
    fn check_out(&self) -> (Checkout<'_>, Option<Connection>) {
        let mut checkouts = self.checkouts();
        while self.max_checked_out.is_some_and(|max| checkouts.checked_out >= max) {
            checkouts = self.returned.wait(checkouts).unwrap_or_else(PoisonError::into_inner);
        }
        checkouts.checked_out += 1;
        (Checkout(self), checkouts.idle.pop())
    }

    fn clear(&self) {
        self.checkouts().idle.clear();
    }

    fn checkouts(&self) -> MutexGuard<'_, Checkouts> {
        self.checkouts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of connections for light reads of pages.
const PAGE_READERS: usize = 2;

/// The number of connections for heavy reads of pages, such as feeds and long lists. One, because each needs memory and a processor.
const HEAVY_PAGE_READERS: usize = 1;

/// The user of a read. Each kind has connections of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderKind {
    /// The daemon, or a command.
    Daemon,
    Pages,
    HeavyPages,
}

/// The readers of each kind.
#[derive(Debug)]
pub(super) struct ReadersByKind {
    daemon: Readers,
    pages: Readers,
    heavy_pages: Readers,
}

impl ReadersByKind {
    /// Takes the open pool of the daemon. `open_page` opens a connection for pages; none is opened before it is needed.
    pub(super) fn new(daemon: ReaderPool, open_page: impl Fn() -> OpenReader) -> Self {
        let facts: Arc<FactsCache> = Arc::default();
        let pages = |count| Readers::new(ReaderPool::new(&daemon.path, open_page(), count), Some(facts.clone()));
        Self { pages: pages(PAGE_READERS), heavy_pages: pages(HEAVY_PAGE_READERS), daemon: Readers::new(daemon, None) }
    }

    pub(super) fn of(&self, kind: ReaderKind) -> &Readers {
        match kind {
            ReaderKind::Daemon => &self.daemon,
            ReaderKind::Pages => &self.pages,
            ReaderKind::HeavyPages => &self.heavy_pages,
        }
    }

    /// Returns whether the readers of pages keep facts.
    #[cfg(test)]
    pub(super) fn keep_facts(&self) -> bool {
        self.pages.facts.as_ref().is_some_and(|facts| facts.is_filled())
    }

    #[cfg(test)]
    pub(super) fn each_pool(&self) -> [&ReaderPool; 3] {
        [&self.daemon.pool, &self.pages.pool, &self.heavy_pages.pool]
    }

    /// Closes all pools after running reads end.
    pub(super) async fn close(&self) {
        tokio::join!(self.daemon.close(), self.pages.close(), self.heavy_pages.close());
    }
}

/// The reads of a [`Store`](crate::Store): at most one per connection, on blocking threads.
#[derive(Debug)]
pub(super) struct Readers {
    pool: Arc<ReaderPool>,
    slots: Arc<Semaphore>,
    /// The facts that pages keep. `None` for other readers.
    facts: Option<Arc<FactsCache>>,
}

impl Readers {
    fn new(pool: ReaderPool, facts: Option<Arc<FactsCache>>) -> Self {
        Self { slots: Arc::new(Semaphore::new(pool.max_idle)), pool: Arc::new(pool), facts }
    }

    /// Runs `run` in one read transaction, which is interrupted if the caller is dropped. For `is_fenced`, see
    /// [`Connection::read`].
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let value = self.run_any(doing, is_fenced, Box::new(move |transaction| Ok(Box::new(run(transaction)?)))).await?;
        value.downcast().map(|value| *value).map_err(|_| StoreError::closed(doing))
    }

    /// [`Self::run`] without generics, to reduce compile time.
    fn run_any(&self, doing: &'static str, is_fenced: bool, run: Read) -> BoxFuture<'_, Result<AnyValue, StoreError>> {
        Box::pin(async move {
            let slot = self.slots.clone().acquire_owned().await.map_err(|_| StoreError::closed(doing))?;
            let (pool, stop, facts) = (self.pool.clone(), ReadStop::default(), self.facts.clone());
            let _stop = stop.on_drop();
            let task = tokio::task::spawn_blocking(move || {
                // Hold the slot while the connection is in use, even if the caller is dropped.
                let _slot = slot;
                let read = |connection: &mut Connection| {
                    let value = contain(doing, pool.path(), || connection.read_until(&stop, is_fenced, facts.as_deref(), run));
                    connection.rollback_leftovers();
                    value
                };
                pool.with(read).map_err(|error| StoreFault::from(error).during(doing, pool.path()))?
            });
            task.await.map_err(|_| StoreError::closed(doing))?
        })
    }

    /// Closes the pool after running reads end.
    async fn close(&self) {
        let all = u32::try_from(self.pool.max_idle).unwrap_or(u32::MAX);
        if let Ok(slots) = self.slots.acquire_many(all).await {
            self.slots.close();
            slots.forget();
        }
        self.pool.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn bounded_pool_never_exceeds_its_limit_and_serves_every_reader() {
        let (reading, most, reads) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let began = Instant::now();
        let open = |_: &Path| Ok(Connection::Sqlite(rusqlite::Connection::open_in_memory()?));
        let pool = ReaderPool::new(Path::new("x"), Box::new(open), 3).bounded();
        let read = |_: &mut Connection| {
            most.fetch_max(reading.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Hold the connection until the limit is reached.
            while most.load(Ordering::SeqCst) < 3 && began.elapsed() < WAIT_TIMEOUT {
                std::thread::yield_now();
            }
            reads.fetch_add(1, Ordering::SeqCst);
            reading.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| pool.with(read).expect("read"));
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 3);
        assert_eq!(reads.load(Ordering::SeqCst), 24);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.with(|_| panic!("a reader"))));
        assert!(panicked.is_err());
        for _ in 0..4 {
            assert!(pool.with(|_| ()).is_ok(), "the panicked reader returned its slot");
        }
    }
}
