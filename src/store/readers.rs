//! Connections that read: a pool of them, and the turns by which asynchronous callers come to one.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
/// closed again.
pub(super) struct ReaderPool<C = Connection, E = SqlError> {
    path: Arc<Path>,
    open: OpenReader<C, E>,
    idle: Mutex<Vec<C>>,
    max_idle: usize,
}

impl<C, E> std::fmt::Debug for ReaderPool<C, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReaderPool").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<C, E> ReaderPool<C, E> {
    /// A pool whose connections are opened when they are asked for.
    pub(super) fn new(path: &Path, open: impl Fn(&Path) -> Result<C, E> + Send + Sync + 'static, max_idle: usize) -> Self {
        Self { path: path.into(), open: Box::new(open), idle: Mutex::default(), max_idle }
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
            pool.idle().push(connection);
        }
        Ok(pool)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `read` on a connection; an error says that none could be opened.
    pub(super) fn with<T>(&self, read: impl FnOnce(&mut C) -> T) -> Result<T, E> {
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => (self.open)(&self.path)?,
        };
        let value = read(&mut connection);
        let mut idle = self.idle();
        if idle.len() < self.max_idle {
            idle.push(connection);
        }
        Ok(value)
    }

    /// Closes the connections that nobody uses.
    fn clear(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Runs `run` in one read transaction: all that it reads is of one moment.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let value = self.run_any(doing, Box::new(move |transaction| Ok(Box::new(run(transaction)?)))).await?;
        value.downcast().map(|value| *value).map_err(|_| StoreError::Closed { doing })
    }

    /// [`Self::run`] without its types, so that it is compiled once.
    fn run_any(&self, doing: &'static str, run: Read) -> BoxFuture<'_, Result<AnyValue, StoreError>> {
        Box::pin(async move {
            let turn = self.turns.clone().acquire_owned().await.map_err(|_| StoreError::Closed { doing })?;
            let pool = self.pool.clone();
            let task = tokio::task::spawn_blocking(move || {
                // The turn is taken for as long as the connection is out, also if whoever asked goes away.
                let _turn = turn;
                let read = |connection: &mut Connection| contain(doing, pool.path(), || connection.read(run));
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
