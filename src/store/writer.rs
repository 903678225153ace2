//! The one writer, on a thread of its own that may block.
//!
//! Every write is one transaction on the one writer, so that no write ever waits for another of this process and none
//! fails half way for a lock. A panic inside an operation undoes its transaction and is answered as an error; the thread lives on.

use std::any::Any;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::error::{StoreError, StoreFault};
use super::sql::{Connection, Transaction};
use model::BoxFuture;

/// Operations that may wait for the writer; whoever comes later waits outside, holding its own values.
const WRITER_QUEUE: usize = 64;

/// What an operation answers. Its type is put aside between the caller and the connection, so that what lies there is compiled once.
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
    path: Arc<Path>,
}

impl Writer {
    /// Takes the connection, and the lock that it keeps until the connection is closed.
    pub(super) fn start(connection: Connection, lock: Option<File>, path: Arc<Path>) -> Result<Self, StoreError> {
        let (commands, inbox) = mpsc::channel(WRITER_QUEUE);
        std::thread::Builder::new().name("store-writer".into()).spawn(move || write_loop(connection, lock, inbox)).map_err(
            |source| StoreError::Unreachable {
                doing: "start the writer thread",
                path: path.to_path_buf(),
                source: Box::new(source),
            },
        )?;
        Ok(Self { commands, path })
    }

    /// Runs `run` on the connection, outside any transaction.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&mut Connection) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let value = self.run_any(doing, Box::new(move |connection| Ok(Box::new(run(connection)?)))).await?;
        value.downcast().map(|value| *value).map_err(|_| StoreError::Closed { doing })
    }

    fn run_any(&self, doing: &'static str, run: Write) -> BoxFuture<'_, Result<AnyValue, StoreError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let path = self.path.clone();
            let job: Job = Box::new(move |connection| {
                let result = contain(doing, &path, || run(connection));
                connection.undo_leftovers();
                // Whoever asked may have gone; what was done stays done.
                let _ = reply.send(result);
            });
            self.commands.send(WriterCommand::Run(job)).await.map_err(|_| StoreError::Closed { doing })?;
            answer.await.map_err(|_| StoreError::Closed { doing })?
        })
    }

    /// Runs `run` in one transaction that writes, which is committed if it succeeds and undone if not; `is_fenced` as in
    /// [`Connection::write`].
    pub(super) async fn transact<T: Send + 'static>(
        &self,
        doing: &'static str,
        is_fenced: bool,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run(doing, move |connection| connection.write(is_fenced, run)).await
    }

    /// Ends the thread after what is queued, with the WAL moved into the database.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let doing = "close the store";
        let (reply, answer) = oneshot::channel();
        if self.commands.send(WriterCommand::Close(reply)).await.is_err() {
            return Ok(());
        }
        match answer.await {
            Ok(result) => result.map_err(|fault| fault.during(doing, &self.path)),
            // Somebody else's close was first.
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
    // Nobody asked to close: the last handle is gone. The lock goes after the connection, so that no second owner comes too early.
    drop(connection);
    drop(lock);
}

/// Closes a connection; that to a file after its WAL was moved into the database. Another process that reads may hinder that; then it
/// stays, and nothing is lost.
fn close(connection: Connection) -> Result<(), StoreFault> {
    let Connection::Sqlite(connection) = connection else { return Ok(()) };
    let moved = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(StoreFault::from);
    let closed = connection.close().map_err(|(_, error)| StoreFault::from(error));
    moved.and(closed)
}

/// Runs an operation, with its faults named and its panics answered.
pub(super) fn contain<T>(doing: &'static str, path: &Path, run: impl FnOnce() -> Result<T, StoreFault>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|fault| fault.during(doing, path)),
        Err(payload) => {
            let message = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            Err(StoreError::Panicked { doing, message })
        }
    }
}
