//! A session with a PostgreSQL server.
//!
//! [`PgSession`] is one connection (`live`) with its cached statements. A lost connection is reopened at the start of
//! the next transaction, never inside one. Statements whose result is not needed are pipelined (`pipeline`). A separate
//! runtime does the I/O (`driver`), so a session works on any thread, including threads of another runtime. All waits
//! have a timeout, because a broken network gives no signal.
//!
//! Like in SQLite, there is one write transaction at a time: each takes the same advisory lock first. An operation that
//! reads and then writes therefore needs no further locking. A fenced transaction also locks the row of the lease in a
//! mode that allows renewals and blocks a takeover (`lease`).

pub(crate) mod driver;
pub(crate) mod fence;
mod live;
mod pipeline;
pub(crate) mod schema;
mod statement;
mod tables;
mod tls;
pub(crate) mod url;
mod value;

use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::{SimpleQueryMessage, error::SqlState};

use self::fence::Fence;
use self::live::{LiveSession, SharedStop};
use self::pipeline::Reply;
pub(super) use self::statement::{PgQuery, PgStatement};
use self::tls::TlsProblem;
use self::url::PostgresUrl;
use super::{SqlError, SqlResult, Transaction};
use crate::error::StoreFault;
use crate::read_stop::ReadStop;

/// The `statement_timeout` of the server, in seconds.
const STATEMENT_SECS: u64 = 120;

/// The timeout of a response, longer than the timeout on the server.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(STATEMENT_SECS + 10);

/// The timeout for starting and ending a transaction, which can wait for another writer.
const SHORT_RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The timeout for lease statements, well below the term of the lease.
const LEASE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The bounds of the pause between connection attempts, which doubles after each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The settings of a session. A process that is paused inside a transaction loses its locks after the idle timeout,
/// which is shorter than the term of a lease. Commits are synced to disk.
const SETTINGS: &str = "SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET synchronous_commit = on; \
     SET idle_in_transaction_session_timeout = '8s'; SET lock_timeout = '30s'; SET statement_timeout = '120s'; \
     SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '10s'; \
     SET client_min_messages = warning";

/// Further settings of a session of the web pages. A request ends sooner; the limit is for requests whose end the server does not
/// notice.
const PAGE_SETTINGS: &str = "; SET statement_timeout = '15s'";

/// Starts a write transaction. The advisory lock, which is specific to the schema, allows one writer at a time.
const BEGIN_WRITE: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock(1668048503, hashtext(current_schema()))";

/// Starts a transaction that locks only the rows it changes or selects for update.
const BEGIN_ROWS: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// An error of the server or of the connection to it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PgFault {
    #[error("the server returned an error")]
    Refused(#[from] tokio_postgres::Error),
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the server does not respond")]
    Timeout,
    /// The caller of the read is gone.
    #[error("the read was stopped, because its result is no longer needed")]
    Stopped,
    #[error(transparent)]
    Tls(#[from] TlsProblem),
    /// The server rejected an unencrypted connection.
    #[error(
        "the server rejected the login (see its pg_hba.conf); if it requires encryption, add \
         `?sslmode=require` to the URL"
    )]
    LoginRejected(#[source] tokio_postgres::Error),
    /// Another instance holds the lease, or none does.
    #[error("this instance is not the active one")]
    NotActive,
    /// A newer program migrated the tables since this one opened them.
    #[error("the tables have schema {found}, and this program supports schemas up to {known}")]
    NewerSchema { found: i64, known: i64, written_by: String },
    #[error("a value of type {kind} does not fit a column of type {column}")]
    TypeMismatch { kind: String, column: String },
}

impl PgFault {
    /// Returns the SQLSTATE code.
    pub(crate) fn state(&self) -> Option<&SqlState> {
        match self {
            PgFault::Refused(error) | PgFault::LoginRejected(error) => error.code(),
            _ => None,
        }
    }

    /// Returns whether the connection was lost or the server is shutting down. A retry may succeed.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            PgFault::Unreachable(_) | PgFault::Timeout => true,
            PgFault::Refused(error) => match error.code() {
                Some(state) => error.is_closed() || is_lost_state(state),
                // An error without a code is a connection error, unless one of our parameters failed to convert.
                None => !error.source().is_some_and(|source| source.is::<PgFault>()),
            },
            PgFault::Tls(problem) => problem.is_temporary(),
            PgFault::LoginRejected(_)
            | PgFault::NotActive
            | PgFault::NewerSchema { .. }
            | PgFault::Stopped
            | PgFault::TypeMismatch { .. } => false,
        }
    }
}

/// Returns whether a code means a lost session: class 08 (connection), 57P (shutdown), idle timeouts, or too many
/// connections.
fn is_lost_state(state: &SqlState) -> bool {
    let code = state.code();
    code.starts_with("08") || code.starts_with("57P") || code == "25P03" || code == "25P04" || code == "53300"
}

/// One connection to the server.
pub(crate) struct PgSession {
    place: Arc<PostgresUrl>,
    fence: Arc<Fence>,
    live: RefCell<Option<LiveSession>>,
    pause: Cell<Option<(Instant, Duration)>>,
    /// Whether a statement of this transaction failed, so that it cannot be committed.
    has_failed: Cell<bool>,
    /// The timeout of short responses.
    response_timeout: Duration,
    /// Settings after [`SETTINGS`].
    more_settings: &'static str,
    /// The signal to end the current read, shared with the open connection.
    stop: SharedStop,
}

impl std::fmt::Debug for PgSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgSession").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PgSession {
    /// Connects. Fails if the server cannot be reached, rejects the login, or is too old.
    pub(crate) fn open(place: &Arc<PostgresUrl>, fence: &Arc<Fence>) -> SqlResult<Self> {
        Self::open_with(place, fence, SHORT_RESPONSE_TIMEOUT, "")
    }

    /// Like [`Self::open`], with a time limit for the statements of the web pages.
    pub(crate) fn open_for_pages(place: &Arc<PostgresUrl>, fence: &Arc<Fence>) -> SqlResult<Self> {
        Self::open_with(place, fence, SHORT_RESPONSE_TIMEOUT, PAGE_SETTINGS)
    }

    /// Like [`Self::open`], with a short timeout for lease statements.
    pub(crate) fn open_for_lease(place: &Arc<PostgresUrl>, fence: &Arc<Fence>) -> SqlResult<Self> {
        Self::open_with(place, fence, LEASE_RESPONSE_TIMEOUT, "")
    }

    fn open_with(
        place: &Arc<PostgresUrl>,
        fence: &Arc<Fence>,
        response_timeout: Duration,
        more_settings: &'static str,
    ) -> SqlResult<Self> {
        let session = Self {
            place: place.clone(),
            fence: fence.clone(),
            live: RefCell::default(),
            pause: Cell::default(),
            has_failed: Cell::default(),
            response_timeout,
            more_settings,
            stop: SharedStop::default(),
        };
        session.connect()?;
        Ok(session)
    }

    pub(super) fn is_open(&self) -> bool {
        self.live.borrow().as_ref().is_some_and(|live| !live.client.is_closed())
    }

    /// Reconnects if the connection is lost. After a failure, waits out the pause.
    fn connect(&self) -> Result<(), PgFault> {
        if self.is_open() {
            return Ok(());
        }
        self.live.take();
        if let Some((since, pause)) = self.pause.get()
            && since.elapsed() < pause
        {
            return Err(PgFault::Unreachable("the last attempt failed a moment ago".into()));
        }
        let connect = || -> Result<LiveSession, PgFault> {
            let (client, server) = driver::connect(&self.place)?;
            let live = LiveSession::new(client, self.place.clone(), server, self.stop.clone());
            let settings = [SETTINGS, self.more_settings].concat();
            let settings = live.request(live.client.batch_execute(&settings), self.response_timeout);
            // A stopped read says nothing about the server.
            let is_fault = |fault: &PgFault| !matches!(fault, PgFault::Stopped);
            settings.inspect_err(|fault| {
                if is_fault(fault) {
                    self.place.avoid(server)
                }
            })?;
            Ok(live)
        };
        match connect() {
            Ok(live) => {
                self.pause.set(None);
                self.live.replace(Some(live));
                Ok(())
            }
            Err(PgFault::Stopped) => Err(PgFault::Stopped),
            Err(fault) => {
                let next = self.pause.get().map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(LONGEST_PAUSE));
                self.pause.set(Some((Instant::now(), next)));
                Err(fault)
            }
        }
    }

    /// Runs statements without parameters. Returns the first column of the last row, if any.
    pub(crate) fn simple(&self, sql: &str) -> Result<Option<String>, PgFault> {
        let rows = self.with_live(|live| live.request(live.client.simple_query(sql), self.response_timeout))?;
        Ok(rows.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
            _ => None,
        }))
    }

    /// Runs the statements of a migration, with a long timeout.
    fn batch(&self, sql: &str) -> Result<(), PgFault> {
        self.with_live(|live| live.request(live.client.batch_execute(sql), Duration::from_secs(3600)))
    }

    /// Sets the signal to end the next read. `None` if nothing ends it.
    pub(super) fn set_stop(&self, stop: Option<ReadStop>) {
        self.stop.set(stop);
    }

    /// Marks the transaction as failed, discards outstanding responses, and drops a connection that timed out or was stopped.
    fn mark_failed(&self, fault: &PgFault) {
        self.has_failed.set(true);
        self.discard_responses();
        if matches!(fault, PgFault::Timeout | PgFault::Stopped)
            && let Ok(mut live) = self.live.try_borrow_mut()
            && let Some(silent) = live.take()
        {
            match fault {
                // Without a request to cancel, the server would finish the statement first.
                PgFault::Stopped => driver::cancel(&self.place, &silent.client),
                _ => self.place.avoid(silent.server),
            }
        }
    }

    /// Starts a transaction. Reconnects once if the connection was lost since the last transaction. Rolls back if the
    /// start fails halfway.
    fn begin(&self, sql: &str) -> Result<Option<String>, PgFault> {
        self.connect()?;
        self.has_failed.set(false);
        let begun = match self.with_live(|live| live.discard_plans(self.response_timeout)).and_then(|()| self.simple(sql)) {
            Err(fault) if fault.is_lost() => {
                self.live.take();
                self.connect()?;
                self.has_failed.set(false);
                self.simple(sql)
            }
            result => result,
        };
        begun.inspect_err(|_| self.rollback())
    }

    /// Starts a read transaction. If it is fenced, it fails unless this instance holds the lease in its snapshot.
    pub(super) fn begin_read(&self, is_fenced: bool) -> SqlResult<()> {
        self.begin_as(BEGIN_READ, is_fenced.then_some(fence::READ_NUMBER))
    }

    /// Starts a write transaction that does not exclude other writers.
    pub(super) fn begin_rows(&self) -> SqlResult<()> {
        self.begin(BEGIN_ROWS)?;
        Ok(())
    }

    /// Starts a write transaction. If it is fenced, it fails unless this instance holds the lease.
    pub(super) fn begin_write(&self, is_fenced: bool) -> SqlResult<()> {
        self.begin_as(BEGIN_WRITE, is_fenced.then_some(fence::LOCK_NUMBER))
    }

    /// Starts a transaction and, with `fence_query`, fails unless the lease has our fencing number. Uses one round trip.
    fn begin_as(&self, sql: &str, fence_query: Option<&str>) -> SqlResult<()> {
        let Some(fence_query) = fence_query else {
            self.begin(sql)?;
            return Ok(());
        };
        let ours = self.fence.number().ok_or(PgFault::NotActive)?;
        if self.begin(&format!("{sql}; {fence_query}"))? != Some(ours.to_string()) {
            self.fence.lost(ours);
            self.rollback();
            return Err(PgFault::NotActive.into());
        }
        Ok(())
    }

    /// Runs `run` in the started transaction and commits it.
    pub(super) fn finish<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        self.finish_by(run, Self::commit)
    }

    /// Like [`Self::finish`], for a read transaction.
    pub(super) fn finish_read<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        self.finish_by(run, Self::end_read)
    }

    fn finish_by<T>(
        &self,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
        end: impl FnOnce(&Self) -> Result<(), PgFault>,
    ) -> Result<T, StoreFault> {
        let mut open = OpenTransaction { session: self, is_over: false };
        let value = run(&Transaction::postgres(self))?;
        if self.has_failed.get() {
            return Err(SqlError::from(PgFault::Unreachable("a statement of the transaction failed".into())).into());
        }
        // Before the commit, every statement must have succeeded.
        self.flush()?;
        open.is_over = true;
        drop(open);
        end(self).map_err(SqlError::from)?;
        Ok(value)
    }

    /// Waits until all statements sent so far have succeeded.
    pub(super) fn flush(&self) -> SqlResult<()> {
        Ok(self.with_live(|live| live.flush(RESPONSE_TIMEOUT))?)
    }

    fn commit(&self) -> Result<(), PgFault> {
        self.simple("COMMIT").map(drop)
    }

    /// Ends a read transaction, without waiting for the response.
    fn end_read(&self) -> Result<(), PgFault> {
        self.with_live(|live| {
            let client = live.client.clone();
            let end = async move { client.batch_execute("COMMIT").await.map(|()| Reply::default()) };
            live.send(Box::pin(end), 0, false)?;
            live.send_all()
        })
    }

    /// Returns how often this connection has waited for the server.
    #[cfg(test)]
    pub(super) fn round_trips(&self) -> u64 {
        self.live.borrow().as_ref().map_or(0, |live| live.round_trips.get())
    }

    fn discard_responses(&self) {
        if let Ok(live) = self.live.try_borrow() {
            live.iter().for_each(LiveSession::discard);
        }
    }

    /// Rolls back the transaction. If that fails, drops the connection, which also rolls back.
    fn rollback(&self) {
        self.discard_responses();
        if self.is_open() && self.simple("ROLLBACK").is_err() {
            self.live.take();
        }
    }

    /// Prepares a statement, cached if `is_kept`.
    pub(super) fn prepare(&self, sql: &str, is_kept: bool) -> SqlResult<PgStatement<'_>> {
        let ready = self.live.borrow().as_ref().filter(|_| is_kept).and_then(|live| live.cached(sql));
        let prepared = match ready {
            Some(prepared) => prepared,
            None => self.with_live(|live| live.prepare(sql, is_kept))?,
        };
        Ok(PgStatement::of(self, prepared))
    }

    fn with_live<T>(&self, use_live: impl FnOnce(&LiveSession) -> Result<T, PgFault>) -> Result<T, PgFault> {
        let response = match self.live.borrow().as_ref() {
            Some(live) => use_live(live),
            None => Err(PgFault::Unreachable("the connection is closed".into())),
        };
        response.inspect_err(|fault| self.mark_failed(fault))
    }
}

/// Rolls back the transaction when dropped, unless it is over.
struct OpenTransaction<'a> {
    session: &'a PgSession,
    is_over: bool,
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.session.rollback();
        }
    }
}
