//! The one room with SQL. Its operations are whole transactions in the words of the domain.
//!
//! Cast: [`Store`] is the daemon's database, a handle that everybody clones; what it can do stands in the file of each subject,
//! beside the SQL. `commit` writes a step of a cycle and `cycle` reads what the next one needs, `windows` what sums over time are
//! made of; `credit` is the ledger of the quota; `pending` holds what waits between a decision and its delivery, `silence` what a person
//! does not want to hear, `status` what became of each notification, `outbox` what is to be delivered, `opt_out` who wants
//! no digests; `query`, `alerts`, `pages` and `counts` answer people, `feed_rows` their calendars; `prune` forgets, `backup` copies,
//! `restore` puts a copy back, `copy` moves everything into a database of another engine, and `clock` mends what a wrong clock wrote.
//! [`catalog`] is the database of the data service, [`snapshot`] the daemon's database as the mirror reads it; both answer as
//! [`facts`].
//!
//! Path: `open` takes the `lock`, has `schema` say what the file is and bring it up to date (`rebuild` where that takes a new file),
//! and gets from `connection` the connections with every setting that a promise rests on. `writer` owns the one that writes, on a
//! thread of its own; `readers` lends the others. `codec` stands between columns and values, `schedule` between a packed schedule and
//! its events. The values themselves are in [`model::rows`].
//!
//! Promise: what `commit` or `record_attempts` answered with `Ok` is on the disk, whole; what they answered with an error is not
//! there at all, and the store goes on. A write is never half done, whatever fails: the disk, the program, the power.
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

mod ahead;
mod alerts;
mod backup;
pub mod catalog;
mod clock;
mod codec;
mod commit;
mod connection;
mod copy;
mod counts;
mod credit;
mod cycle;
mod digest;
mod error;
pub mod facts;
pub mod failpoint;
mod feed_rows;
mod gauges;
mod lease;
mod lock;
mod open;
mod opt_out;
mod outbox;
mod pages;
mod past_polls;
mod pending;
mod prune;
mod query;
mod readers;
mod rebuild;
mod restore;
mod rows;
mod schedule;
mod schema;
mod series;
mod silence;
pub mod snapshot;
mod sql;
mod status;
mod windows;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::InterruptHandle;

pub use copy::{CopiedTable, CopyProgress};
pub use error::StoreError;
use error::StoreFault;
pub use lease::Standing;
pub use open::Place;
use readers::Readers;
pub use restore::Restored;
use sql::Transaction;
pub use sql::postgres::place::{PlaceError, PostgresPlace};
pub use sql::postgres::schema::DatabaseServer;
use writer::Writer;

use model::Timestamp;

#[derive(Clone, Debug)]
pub struct Opening {
    /// The file; made if it is not there and `access` is [`Access::Own`].
    pub path: PathBuf,
    /// Who else may have it.
    pub access: Access,
    /// The time: of migrations, and of what is dropped by hand through this handle ([`Store::drop_deliveries`]).
    pub now: Timestamp,
}

/// Who else may have the database at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The daemon or `poll`: the only one that polls and delivers. A second one is refused.
    Own,
    /// A command beside a running daemon: small writes to the outbox.
    Beside,
    /// A command that only reads.
    Read,
}

/// The database. Cheap to clone.
///
/// Times are kept in whole milliseconds, as [`model::clock::Clock`] gives them; records and changes keep what the source sent.
#[derive(Clone, Debug)]
pub struct Store(Arc<StoreHandle>);

struct StoreHandle {
    path: Arc<Path>,
    opened_at: Timestamp,
    writer: Option<Writer>,
    readers: Readers,
    /// Whether it is a database on a server, not a file.
    is_on_server: bool,
    /// The lease of a database on a server; none for a file, which has one owner by its lock.
    lease: Option<lease::LeaseKeeper>,
    /// Whether a dispatcher takes what is to be told to its receivers.
    is_dispatched: AtomicBool,
    /// Ends a running integrity check, so that closing need not wait for it.
    check: Mutex<Option<InterruptHandle>>,
}

impl std::fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreHandle").field("path", &self.path).field("writes", &self.writer.is_some()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database; as its owner also makes it and brings its schema up to date.
    /// Fails where the file is missing, not ours, of another schema, in use by another owner, or cannot be reached.
    pub async fn open(opening: Opening) -> Result<Store, StoreError> {
        Self::open_in(Place::File(opening.path), opening.access, opening.now).await
    }

    /// As [`Self::open`], wherever the database is. On a server several may own it; what the active one alone may write is refused
    /// until [`Self::keep_lease`] has taken the lease.
    pub async fn open_in(place: Place, access: Access, now: Timestamp) -> Result<Store, StoreError> {
        Self::open_place(place, access, now, Box::new(|_, _| {})).await
    }

    /// Opens the database as [`open_in`](Self::open_in) does. Where a large one is to be brought up to date, `progress` is told how
    /// many of its schedules are done, and how many there are.
    pub async fn open_telling(
        place: Place,
        access: Access,
        now: Timestamp,
        progress: impl Fn(usize, usize) + Send + Sync + 'static,
    ) -> Result<Store, StoreError> {
        Self::open_place(place, access, now, Box::new(progress)).await
    }

    async fn open_place(
        place: Place,
        access: Access,
        now: Timestamp,
        progress: Box<dyn Fn(usize, usize) + Send + Sync>,
    ) -> Result<Store, StoreError> {
        let doing = "open the store";
        let task = tokio::task::spawn_blocking(move || {
            let fence = Arc::default();
            let opened = match &place {
                Place::File(path) => open::open(&Opening { path: path.clone(), access, now }, &progress)?,
                Place::Server(place) => open::open_server(place, access, &fence)?,
            };
            let is_on_server = matches!(place, Place::Server(_));
            let lease = match place {
                Place::Server(place) if access == Access::Own => Some(lease::LeaseKeeper::new(place, fence)),
                _ => None,
            };
            let path: Arc<Path> = opened.path.into();
            let writer = opened.writer.map(|connection| Writer::start(connection, opened.lock, path.clone())).transpose()?;
            let readers = Readers::new(opened.readers);
            let (is_dispatched, check) = (AtomicBool::new(false), Mutex::new(None));
            Ok(Store(Arc::new(StoreHandle { path, opened_at: now, writer, readers, is_on_server, lease, is_dispatched, check })))
        });
        task.await.map_err(|_| StoreError::Closed { doing })?
    }

    /// Stops the writer after what is queued, checkpoints the WAL, releases the lock. Whatever is asked afterwards is answered
    /// with [`StoreError::Closed`]. Fails where the WAL cannot be moved into the database; nothing is lost by that.
    pub async fn close(&self) -> Result<(), StoreError> {
        if let Some(check) = self.0.check.lock().unwrap_or_else(PoisonError::into_inner).take() {
            check.interrupt();
        }
        self.0.readers.close().await;
        let closed = match &self.0.writer {
            Some(writer) => writer.close().await,
            None => Ok(()),
        };
        // Last: what was queued is written under the lease.
        if let Some(lease) = &self.0.lease {
            lease.release().await;
        }
        closed
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    fn writer(&self, doing: &'static str) -> Result<&Writer, StoreError> {
        self.0.writer.as_ref().ok_or(StoreError::OpenedForReading { doing })
    }

    /// Runs `run` in one transaction, which is committed if it succeeds and undone if not. Of several instances only the active one may.
    async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer(doing)?.transact(doing, true, run).await
    }

    /// As [`Self::write`], for what a person does: any instance may, since it decides nothing that another one decides too.
    async fn act<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer(doing)?.transact(doing, false, run).await
    }

    /// As [`Self::read`], of a moment at which this instance is the active one: a stale one gets nothing.
    async fn read_as_active<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.0.readers.run(doing, true, run).await
    }

    /// Runs `run` on one moment of the database.
    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.0.readers.run(doing, false, run).await
    }
}
