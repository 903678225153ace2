//! The single writer, on a separate thread that may block.
//!
//! Every write is one transaction on this thread, so that writes of one process never wait for each other and never
//! fail halfway because of a lock. A panic in an operation rolls back its transaction and is returned as an error; the
//! thread continues.

use std::any::Any;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::error::{ErrorKind, StoreError, StoreFault};
use super::sql::{Connection, Transaction};
use model::BoxFuture;

/// The maximum number of queued operations. Further callers wait.
const WRITER_QUEUE: usize = 64;

/// The type-erased result of an operation, so that the code below is compiled once.
pub(super) type AnyValue = Box<dyn Any + Send>;

type Write = Box<dyn FnOnce(&mut Connection) -> Result<AnyValue, StoreFault> + Send>;
type Job = Box<dyn FnOnce(&mut Connection) + Send>;

enum WriterCommand {
    Run(Job),
    Close(oneshot::Sender<Result<(), StoreFault>>),
}

#[derive(Debug)]
pub(super) struct Writer {
    commands: mpsc::Sender<WriterCommand>,
    /// Changes after each operation.
    done: Arc<watch::Sender<()>>,
    path: Arc<Path>,
}

impl Writer {
    /// Starts the thread. It keeps `lock` until the connection is closed.
    pub(super) fn start(connection: Connection, lock: Option<File>, path: Arc<Path>) -> Result<Self, StoreError> {
        let (commands, inbox) = mpsc::channel(WRITER_QUEUE);
        std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || write_loop(connection, lock, inbox))
            .map_err(|source| StoreError::new(ErrorKind::Other, "start the writer thread", &path, "").with_source(source))?;
        Ok(Self { commands, done: Arc::default(), path })
    }

    /// Returns a receiver that changes after each operation.
    pub(super) fn done(&self) -> watch::Receiver<()> {
        self.done.subscribe()
    }

    /// Runs `run` on the connection, outside of a transaction.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&mut Connection) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let value = self.run_any(doing, Box::new(move |connection| Ok(Box::new(run(connection)?)))).await?;
        value.downcast().map(|value| *value).map_err(|_| StoreError::closed(doing))
    }

    fn run_any(&self, doing: &'static str, run: Write) -> BoxFuture<'_, Result<AnyValue, StoreError>> {
        Box::pin(async move {
            let (reply, response) = oneshot::channel();
            let (path, done) = (self.path.clone(), self.done.clone());
            let job: Job = Box::new(move |connection| {
                let result = contain(doing, &path, || run(connection));
                connection.rollback_leftovers();
                done.send_replace(());
                // The caller may be gone; the write stays done.
                let _ = reply.send(result);
            });
            self.commands.send(WriterCommand::Run(job)).await.map_err(|_| StoreError::closed(doing))?;
            response.await.map_err(|_| StoreError::closed(doing))?
        })
    }

    /// Runs `run` in one write transaction, which is rolled back if it fails. For `is_fenced`, see
    /// [`Connection::write`].
    pub(super) async fn transact<T: Send + 'static>(
        &self,
        doing: &'static str,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(doing, move |connection| connection.write(is_fenced, run)).await
    }

    /// Finishes queued writes, checkpoints the WAL, and ends the thread.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let doing = "close the store";
        let (reply, response) = oneshot::channel();
        if self.commands.send(WriterCommand::Close(reply)).await.is_err() {
            return Ok(());
        }
        match response.await {
            Ok(result) => result.map_err(|fault| fault.during(doing, &self.path)),
            // Another call closed the writer first.
            Err(_) => Ok(()),
        }
    }
}

fn write_loop(mut connection: Connection, lock: Option<File>, mut inbox: mpsc::Receiver<WriterCommand>) {
    while let Some(command) = inbox.blocking_recv() {
        match command {
            WriterCommand::Run(job) => job(&mut connection),
            WriterCommand::Close(reply) => {
                let closed = close(connection);
                drop(lock);
                let _ = reply.send(closed);
                return;
            }
        }
    }
    // The last handle was dropped. Release the lock after closing the connection, so that a new owner cannot start too
    // early.
    drop(connection);
    drop(lock);
}

/// Checkpoints the WAL of a file and closes the connection. A process that reads can prevent the checkpoint; then the
/// WAL stays, and nothing is lost.
pub(super) fn close(connection: Connection) -> Result<(), StoreFault> {
    let Connection::Sqlite(connection) = connection else { return Ok(()) };
    let moved = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(StoreFault::from);
    let closed = connection.close().map_err(|(_, error)| StoreFault::from(error));
    moved.and(closed)
}

/// Runs an operation. Adds context to its error, and turns a panic into an error.
pub(super) fn contain<T>(doing: &'static str, path: &Path, run: impl FnOnce() -> Result<T, StoreFault>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|fault| fault.during(doing, path)),
        Err(payload) => {
            let message = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            let reason = format!("internal error ({message}); nothing was written");
            Err(StoreError::new(ErrorKind::Panicked, doing, path, reason))
        }
    }
}
