//! Connections that read: a pool of them, and the turns by which asynchronous callers come to one.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::error::{StoreError, StoreFault};
use super::sql::{Connection, SqlError, Transaction};
use super::writer::{AnyValue, contain};
use model::BoxFuture;

/// One read, with what comes of it.
type Read = Box<dyn FnOnce(&Transaction<'_>) -> Result<AnyValue, StoreFault> + Send>;

/// Opens one connection of a pool.
pub(super) type OpenReader<C, E> = Box<dyn Fn(&Path) -> Result<C, E> + Send + Sync>;

/// Read connections to one database. Those that nobody uses are kept for the next, up to a number; more are opened under load and
/// closed again, where their number has no bound.
pub(super) struct ReaderPool<C = Connection, E = SqlError> {
    path: Arc<Path>,
    open: OpenReader<C, E>,
    lending: Mutex<Lending<C>>,
    returned: Condvar,
    max_idle: usize,
    /// Connections at once; none where that does not matter.
    max_lent: Option<usize>,
}

/// What of a pool is there, and how much is out.
struct Lending<C> {
    idle: Vec<C>,
    lent: usize,
}

/// Counts a connection that is out, also when its user panics.
struct Lent<'p, C, E>(&'p ReaderPool<C, E>);

impl<C, E> Drop for Lent<'_, C, E> {
    fn drop(&mut self) {
        self.0.lending().lent -= 1;
        self.0.returned.notify_one();
    }
}

impl<C, E> std::fmt::Debug for ReaderPool<C, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReaderPool").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<C, E> ReaderPool<C, E> {
    /// A pool whose connections are opened when they are asked for.
    pub(super) fn new(path: &Path, open: impl Fn(&Path) -> Result<C, E> + Send + Sync + 'static, max_idle: usize) -> Self {
        let lending = Mutex::new(Lending { idle: Vec::new(), lent: 0 });
        Self { path: path.into(), open: Box::new(open), lending, returned: Condvar::new(), max_idle, max_lent: None }
    }

    /// A pool that has no more connections than it keeps: whoever comes then waits for one. A server has few for all, and whoever reads
    /// inside of a read could wait for itself.
    pub(super) fn bounded(self) -> Self {
        Self { max_lent: Some(self.max_idle), ..self }
    }

    /// A pool that holds `count` connections from the start, so that a file which cannot be read is refused at once.
    pub(super) fn filled(
        path: &Path,
        open: impl Fn(&Path) -> Result<C, E> + Send + Sync + 'static,
        count: usize,
    ) -> Result<Self, E> {
        let pool = Self::new(path, open, count);
        for _ in 0..count {
            let connection = (pool.open)(path)?;
            pool.lending().idle.push(connection);
        }
        Ok(pool)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `read` on a connection; an error says that none could be opened.
    pub(super) fn with<T>(&self, read: impl FnOnce(&mut C) -> T) -> Result<T, E> {
        let (_lent, idle) = self.lend();
        let mut connection = match idle {
            Some(connection) => connection,
            None => (self.open)(&self.path)?,
        };
        let value = read(&mut connection);
        self.take_back(connection);
        Ok(value)
    }

    fn take_back(&self, connection: C) {
        let mut lending = self.lending();
        if lending.idle.len() < self.max_idle {
            lending.idle.push(connection);
        }
    }

    /// A turn, with a connection where one lies there.
    fn lend(&self) -> (Lent<'_, C, E>, Option<C>) {
        let mut lending = self.lending();
        while self.max_lent.is_some_and(|max| lending.lent >= max) {
            lending = self.returned.wait(lending).unwrap_or_else(PoisonError::into_inner);
        }
        lending.lent += 1;
        (Lent(self), lending.idle.pop())
    }

    /// Closes the connections that nobody uses.
    fn clear(&self) {
        self.lending().idle.clear();
    }

    fn lending(&self) -> MutexGuard<'_, Lending<C>> {
        self.lending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reads of a [`Store`](crate::Store): as many at once as there are connections, each on a thread that may block.
#[derive(Debug)]
pub(super) struct Readers {
    pool: Arc<ReaderPool>,
    turns: Arc<Semaphore>,
}

impl Readers {
    /// Takes a pool that is filled.
    pub(super) fn new(pool: ReaderPool) -> Self {
        Self { turns: Arc::new(Semaphore::new(pool.max_idle)), pool: Arc::new(pool) }
    }

    /// Runs `run` in one read transaction: all that it reads is of one moment; `is_fenced` as in [`Connection::read`].
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let value = self.run_any(doing, is_fenced, Box::new(move |transaction| Ok(Box::new(run(transaction)?)))).await?;
        value.downcast().map(|value| *value).map_err(|_| StoreError::Closed { doing })
    }

    /// [`Self::run`] without its types, so that it is compiled once.
    fn run_any(&self, doing: &'static str, is_fenced: bool, run: Read) -> BoxFuture<'_, Result<AnyValue, StoreError>> {
        Box::pin(async move {
            let turn = self.turns.clone().acquire_owned().await.map_err(|_| StoreError::Closed { doing })?;
            let pool = self.pool.clone();
            let task = tokio::task::spawn_blocking(move || {
                // The turn is taken for as long as the connection is out, also if whoever asked goes away.
                let _turn = turn;
                let read = |connection: &mut Connection| contain(doing, pool.path(), || connection.read(is_fenced, run));
                pool.with(read).map_err(|error| StoreFault::from(error).during(doing, pool.path()))?
            });
            task.await.map_err(|_| StoreError::Closed { doing })?
        })
    }

    /// Closes the connections once nobody uses them.
    pub(super) async fn close(&self) {
        let all = u32::try_from(self.pool.max_idle).unwrap_or(u32::MAX);
        if let Ok(turns) = self.turns.acquire_many(all).await {
            self.turns.close();
            turns.forget();
        }
        self.pool.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_pool_with_a_bound_never_has_more_connections_and_lets_everybody_read() {
        let (open, most, reads) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0), AtomicUsize::new(0));
        let began = Instant::now();
        struct Counted(Arc<AtomicUsize>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let made = open.clone();
        let opened = move |_: &Path| -> Result<Counted, SqlError> {
            made.fetch_add(1, Ordering::SeqCst);
            Ok(Counted(made.clone()))
        };
        let pool = ReaderPool::new(Path::new("x"), opened, 3).bounded();
        std::thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| {
                    let _ = pool.with(|_| {
                        // Until as many read at once as may.
                        while most.fetch_max(open.load(Ordering::SeqCst), Ordering::SeqCst) < 3 && began.elapsed() < PATIENCE {
                            std::thread::yield_now();
                        }
                        reads.fetch_add(1, Ordering::SeqCst);
                    });
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 3);
        assert_eq!(reads.load(Ordering::SeqCst), 24);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.with(|_| panic!("a reader"))));
        assert!(panicked.is_err());
        for _ in 0..4 {
            assert!(pool.with(|_| ()).is_ok(), "its turn came back");
        }
    }
}
