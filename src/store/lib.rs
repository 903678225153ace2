//! The database: the only crate that contains SQL. Each operation is one transaction, expressed in domain types.
//!
//! [`Store`] is a cloneable handle to the daemon's database. Each file adds the operations of one subject, next to
//! their SQL: `commit` writes a step of a cycle, and `cycle` reads what the next step needs; `pending` groups,
//! suppresses, and repeats notifications; `outbox` and `status` track deliveries; `event_log` numbers what happened;
//! `query`, `alerts`, `pages`, and
//! `counts` serve the pages, lists, and commands; `prune`, `backup`, `restore`, `copy`, and `clock` are maintenance.
//! [`catalog`] is the database of the data service, and [`snapshot`] is the mirror's view of the daemon's database.
//! Both implement [`facts`].
//!
//! `open` takes the `lock`, checks and migrates the `schema`, and configures each `connection`. `writer` runs all
//! writes on one thread, and `readers` is the pool of read-only connections. `codec` converts between values and
//! columns, and `schedule` packs vesting schedules. The row types are in [`model::rows`].
//!
//! Guarantee: when `commit` or `record_attempts` returns `Ok`, all of it is durable on disk. When it returns an error,
//! none of it is stored, and the store remains usable.
//!
//! ```
//! # use cliffwatch_store as store;
//! use model::{rows::Commit, supply::{TokenId, Timestamp}, wire::TokenItem};
//! use store::{Access, Opening, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let now: Timestamp = "2026-03-09T00:00:00Z".parse()?;
//! let opening = Opening { path: folder.path().join("cliffwatch.db"), access: Access::Own, now };
//! let store = Store::open(opening.clone()).await?;
//!
//! let item: TokenItem = serde_json::from_str(r#"{"id": "arbitrum", "symbol": "ARB"}"#)?;
//! store.commit(Commit { at: now, tokens: vec![item], token_list_complete: true, ..Commit::default() }).await?;
//! store.close().await?;
//!
//! let store = Store::open(Opening { access: Access::Read, ..opening }).await?;
//! assert_eq!(store.token_ids(true).await?, [TokenId::from("arbitrum")]);
//! # Ok(())
//! # }
//! ```

mod access_keys;
mod ahead;
mod alerts;
mod audit;
mod backup;
mod calendar_linear;
mod calendar_rows;
pub mod catalog;
mod clock;
mod codec;
mod commit;
mod connection;
mod copy;
mod corrections;
mod counts;
mod credit;
mod cycle;
mod digest;
mod ended_sessions;
mod error;
mod event_log;
pub mod facts;
pub mod failpoint;
mod gauges;
mod instances;
mod keyed_request;
mod lease_keeper;
mod linear;
mod list_limits;
mod lock;
mod next_rates;
mod note;
mod open;
mod opt_out;
mod outbox;
mod owner;
mod page_facts;
mod pages;
mod past_polls;
mod pending;
mod prune;
mod query;
mod read_stop;
mod readers;
mod restore;
mod rows;
mod schedule;
mod schedule_reader;
mod schema;
mod series;
mod silence;
pub mod snapshot;
mod sql;
mod status;
mod supply;
mod supply_index;
mod supply_pieces;
mod unlock_month;
mod upcoming;
mod user_action;
mod windows;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::InterruptHandle;

pub use copy::{CopiedTable, CopyProgress};
use error::StoreFault;
pub use error::{ErrorKind, StoreError};
pub use lease_keeper::LeaseStatus;
pub use open::DatabaseLocation;
use readers::{ReaderKind, ReadersByKind};
pub use restore::Restored;
use sql::Transaction;
pub use sql::postgres::schema::DatabaseServer;
pub use sql::postgres::url::{PostgresUrl, PostgresUrlError};
use writer::Writer;

use model::{Actor, Timestamp};

#[derive(Clone, Debug)]
pub struct Opening {
    /// The database file. Created if it does not exist and `access` is [`Access::Own`].
    pub path: PathBuf,
    pub access: Access,
    /// The current time: the time of migrations and of [`Store::drop_deliveries`].
    pub now: Timestamp,
}

/// The kind of access to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The daemon or `poll`: the only process that polls and delivers. A second owner is rejected.
    Own,
    /// A command that runs while the daemon does, with small writes to the outbox.
    Write,
    /// A command that only reads.
    Read,
}

/// A cheaply cloneable handle to the database.
///
/// Times are stored in whole milliseconds, the resolution of [`model::clock::Clock`]. Records and changes keep the
/// source's data unchanged.
#[derive(Clone, Debug)]
pub struct Store {
    handle: Arc<StoreHandle>,
    readers: ReaderKind,
    /// The author of the actions of this handle. `None` if the daemon itself acts.
    actor: Option<Arc<Actor>>,
}

struct StoreHandle {
    path: Arc<Path>,
    opened_at: Timestamp,
    writer: Option<Writer>,
    readers: ReadersByKind,
    is_on_server: bool,
    /// The lease of a database on a server. `None` for a file, where the lock decides who owns it.
    lease: Option<lease_keeper::LeaseKeeper>,
    /// Whether a dispatcher groups notifications. If not, each notification becomes its own delivery.
    is_dispatched: AtomicBool,
    /// Interrupts a running integrity check when the store closes.
    check: Mutex<Option<InterruptHandle>>,
}

impl std::fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreHandle").field("path", &self.path).field("writes", &self.writer.is_some()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a database file. An owner also creates it and migrates its schema.
    ///
    /// # Errors
    ///
    /// Fails if the file is missing, is not a Cliffwatch database, has another schema, has another owner, or cannot be
    /// reached.
    pub async fn open(opening: Opening) -> Result<Store, StoreError> {
        Self::open_in(DatabaseLocation::File(opening.path), opening.access, opening.now).await
    }

    /// Opens a database file or a database on a server. A server database can have several owners, of which only the
    /// active instance may write. [`Self::maintain_lease`] makes an instance active.
    pub async fn open_in(place: DatabaseLocation, access: Access, now: Timestamp) -> Result<Store, StoreError> {
        let doing = error::OPENING;
        let task = tokio::task::spawn_blocking(move || {
            let fence = Arc::default();
            let opened = match &place {
                DatabaseLocation::File(path) => open::open(&Opening { path: path.clone(), access, now })?,
                DatabaseLocation::Server(place) => open::open_server(place, access, &fence)?,
            };
            let is_on_server = matches!(place, DatabaseLocation::Server(_));
            let lease = match place {
                DatabaseLocation::Server(place) if access == Access::Own => Some(lease_keeper::LeaseKeeper::new(place, fence)),
                _ => None,
            };
            let path: Arc<Path> = opened.path.into();
            let writer = opened.writer.map(|connection| Writer::start(connection, opened.lock, path.clone())).transpose()?;
            let readers = opened.readers;
            let (is_dispatched, check) = (AtomicBool::new(false), Mutex::new(None));
            let handle = StoreHandle { path, opened_at: now, writer, readers, is_on_server, lease, is_dispatched, check };
            Ok(Store { handle: Arc::new(handle), readers: ReaderKind::Daemon, actor: None })
        });
        task.await.map_err(|_| StoreError::closed(doing))?
    }

    /// Finishes queued writes, checkpoints the WAL, and releases the lock. Later calls return [`ErrorKind::Closed`].
    ///
    /// # Errors
    ///
    /// Fails if the WAL cannot be checkpointed; no data is lost.
    pub async fn close(&self) -> Result<(), StoreError> {
        if let Some(check) = self.handle.check.lock().unwrap_or_else(PoisonError::into_inner).take() {
            check.interrupt();
        }
        self.handle.readers.close().await;
        let closed = match &self.handle.writer {
            Some(writer) => writer.close().await,
            None => Ok(()),
        };
        // Last, because queued writes need the lease.
        if let Some(lease) = &self.handle.lease {
            lease.release().await;
        }
        closed
    }

    pub fn path(&self) -> &Path {
        &self.handle.path
    }

    /// Returns a handle whose reads use the connections of the web pages, and never those of the daemon.
    #[must_use]
    pub fn for_pages(&self) -> Self {
        Self { readers: ReaderKind::Pages, ..self.clone() }
    }

    /// Like [`Self::for_pages`], for reads that take long or return much: one runs at a time.
    #[must_use]
    pub fn for_heavy_pages(&self) -> Self {
        Self { readers: ReaderKind::HeavyPages, ..self.clone() }
    }

    fn writer(&self, doing: &'static str) -> Result<&Writer, StoreError> {
        let rejected =
            || StoreError::new(ErrorKind::ReadOnly, doing, &self.handle.path, "the database was opened for reading only");
        self.handle.writer.as_ref().ok_or_else(rejected)
    }

    /// Runs `run` in one transaction, which is rolled back if it fails. Only the active instance may write.
    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer(doing)?.transact(doing, true, run).await
    }

    /// Like [`Self::write`], but any instance may write. For user actions and for facts about the instance itself, which no other
    /// instance writes.
    async fn act<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(actor) = self.actor.clone() else { return self.writer(doing)?.transact(doing, false, run).await };
        let run_and_record = move |to: &Transaction<'_>| {
            let newest = audit::newest_event(to)?;
            let done = run(to)?;
            audit::record(to, &actor, newest)?;
            Ok(done)
        };
        self.writer(doing)?.transact(doing, false, run_and_record).await
    }

    /// Like [`Self::read`], but fails unless this instance is active in that transaction.
    async fn read_as_active<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.handle.readers.of(self.readers).run(doing, true, run).await
    }

    /// Runs `run` in one read transaction, which is interrupted if the caller is dropped.
    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.handle.readers.of(self.readers).run(doing, false, run).await
    }
}
