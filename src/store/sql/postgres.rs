//! A session with a PostgreSQL server.
//!
//! [`PgSession`] is one connection (`live`), with the statements that it keeps ready. It is made anew where it broke, at the begin of the
//! next transaction and never inside one. What nobody needs the answer of is sent without waiting for it (`pipeline`), and rows that are
//! inserted one after the other go out together (`gather`). Bytes are moved by a thread of the driver's own (`driver`), so that a
//! session may be used from any thread, also one that must not enter a runtime; whoever asks waits with a limit, since a network that is
//! cut says nothing.
//!
//! One transaction writes at a time, as with SQLite: each takes the same advisory lock first. So an operation that reads and then
//! writes what it decided from that needs no thought of others. One that is fenced also looks at the row of the lease, in a way that
//! a renewal passes and a take-over waits for (`lease`).

mod bulk;
pub(crate) mod driver;
mod gather;
pub(crate) mod lease;
mod live;
mod pipeline;
pub(crate) mod place;
pub(crate) mod schema;
mod statement;
mod tls;
mod translate;
mod value;

use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::{SimpleQueryMessage, error::SqlState};

use self::lease::Fence;
use self::live::LiveSession;
use self::pipeline::Reply;
use self::place::PostgresPlace;
pub(super) use self::statement::{PgQuestion, PgStatement};
use self::tls::TlsProblem;
use super::{SqlError, SqlResult, Transaction};
use crate::error::StoreFault;

/// How long a statement may take at the server.
const STATEMENT_SECS: u64 = 120;

/// How long an answer is waited for: the server ends a statement first, if it can be reached.
const ANSWER: Duration = Duration::from_secs(STATEMENT_SECS + 10);

/// How long the begin or the end of a transaction is waited for: whoever writes may wait for another writer.
const SHORT_ANSWER: Duration = Duration::from_secs(60);

/// The same for a word about the lease: well below its term.
const LEASE_ANSWER: Duration = Duration::from_secs(2);

/// Shortest pause between two attempts to connect that failed; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// What a session is given before anything else. A process that is paused inside a transaction keeps its locks for no longer than
/// the time for idle transactions, which is below the term of a lease; a commit is on the disk of the server when it is answered.
const SETTINGS: &str = "SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET synchronous_commit = on; \
     SET idle_in_transaction_session_timeout = '8s'; SET lock_timeout = '30s'; SET statement_timeout = '120s'; \
     SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '10s'; \
     SET client_min_messages = warning";

/// Takes the place of SQLite's one writer: a lock that belongs to our tables alone, until the transaction ends.
const BEGIN_WRITE: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock(1668048503, hashtext(current_schema()))";

/// Begins a transaction that keeps others from those rows alone which it changes or locks.
const BEGIN_ROWS: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Why the server, or the way to it, failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PgFault {
    #[error("the server refuses")]
    Refused(#[from] tokio_postgres::Error),
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the server does not answer")]
    Silent,
    /// No encrypted connection comes about.
    #[error(transparent)]
    Tls(#[from] TlsProblem),
    /// An unencrypted connection is refused.
    #[error(
        "the server does not let us in (its pg_hba.conf says who may come in, and how); where it asks for encryption, say \
         `?sslmode=require` in the address"
    )]
    NotAdmitted(#[source] tokio_postgres::Error),
    /// The lease is another's, or nobody's.
    #[error("this instance is not the active one")]
    NotActive,
    #[error("a value of the kind {kind} does not fit a column of the type {column}")]
    Unfit { kind: String, column: String },
}

impl PgFault {
    /// What the server calls it.
    pub(crate) fn state(&self) -> Option<&SqlState> {
        match self {
            PgFault::Refused(error) | PgFault::NotAdmitted(error) => error.code(),
            _ => None,
        }
    }

    /// The way to the server is broken, or it is going down: another attempt may well succeed.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            PgFault::Unreachable(_) | PgFault::Silent => true,
            PgFault::Refused(error) => match error.code() {
                Some(state) => error.is_closed() || is_lost_state(state),
                // What the server did not say, the way to it did; but for a value of ours that never went out.
                None => !error.source().is_some_and(|source| source.is::<PgFault>()),
            },
            PgFault::Tls(problem) => problem.passes(),
            PgFault::NotAdmitted(_) | PgFault::NotActive | PgFault::Unfit { .. } => false,
        }
    }
}

/// Classes 08 (connection), 57P (shutdown), and what ends a session that was idle for too long.
fn is_lost_state(state: &SqlState) -> bool {
    let code = state.code();
    code.starts_with("08") || code.starts_with("57P") || code == "25P03" || code == "25P04" || code == "53300"
}

/// One connection to the server.
pub(crate) struct PgSession {
    place: Arc<PostgresPlace>,
    fence: Arc<Fence>,
    live: RefCell<Option<LiveSession>>,
    pause: Cell<Option<(Instant, Duration)>>,
    /// A statement of this transaction failed: it cannot be committed.
    has_failed: Cell<bool>,
    /// How long a short answer is waited for.
    patience: Duration,
}

impl std::fmt::Debug for PgSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgSession").field("place", &self.place).finish_non_exhaustive()
    }
}

impl PgSession {
    /// Connects. Fails where the server cannot be reached, refuses, or is too old.
    pub(crate) fn open(place: &Arc<PostgresPlace>, fence: &Arc<Fence>) -> SqlResult<Self> {
        Self::open_with(place, fence, SHORT_ANSWER)
    }

    /// As [`Self::open`], for words about the lease, which are worth nothing when they come late.
    pub(crate) fn open_for_lease(place: &Arc<PostgresPlace>, fence: &Arc<Fence>) -> SqlResult<Self> {
        Self::open_with(place, fence, LEASE_ANSWER)
    }

    fn open_with(place: &Arc<PostgresPlace>, fence: &Arc<Fence>, patience: Duration) -> SqlResult<Self> {
        let session = Self {
            place: place.clone(),
            fence: fence.clone(),
            live: RefCell::default(),
            pause: Cell::default(),
            has_failed: Cell::default(),
            patience,
        };
        session.connect()?;
        Ok(session)
    }

    pub(super) fn is_open(&self) -> bool {
        self.live.borrow().as_ref().is_some_and(|live| !live.client.is_closed())
    }

    /// Connects where the connection is gone; after failures no sooner than the pause allows.
    fn connect(&self) -> Result<(), PgFault> {
        if self.is_open() {
            return Ok(());
        }
        self.live.take();
        if let Some((since, pause)) = self.pause.get()
            && since.elapsed() < pause
        {
            return Err(PgFault::Unreachable("the last attempt has just failed".into()));
        }
        let connect = || -> Result<LiveSession, PgFault> {
            let (client, server) = driver::connect(&self.place)?;
            let live = LiveSession::new(client, self.place.clone(), server);
            let settings = live.ask(live.client.batch_execute(SETTINGS), self.patience);
            settings.inspect_err(|_| self.place.avoid(server))?;
            Ok(live)
        };
        match connect() {
            Ok(live) => {
                self.pause.set(None);
                self.live.replace(Some(live));
                Ok(())
            }
            Err(fault) => {
                let next = self.pause.get().map_or(FIRST_PAUSE, |(_, pause)| (pause * 2).min(LONGEST_PAUSE));
                self.pause.set(Some((Instant::now(), next)));
                Err(fault)
            }
        }
    }

    /// Runs statements without values, and gives the first column of their last row, if there is one.
    pub(crate) fn simple(&self, sql: &str) -> Result<Option<String>, PgFault> {
        let rows = self.with_live(|live| live.ask(live.client.simple_query(sql), self.patience))?;
        Ok(rows.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
            _ => None,
        }))
    }

    /// Runs statements of a migration, which may take their time.
    fn batch(&self, sql: &str) -> Result<(), PgFault> {
        self.with_live(|live| live.ask(live.client.batch_execute(sql), Duration::from_secs(3600)))
    }

    /// Remembers that a transaction has failed, whose other statements come to nothing, and lets go of a connection that says nothing
    /// more.
    fn note(&self, fault: &PgFault) {
        self.has_failed.set(true);
        self.give_up_answers();
        if matches!(fault, PgFault::Silent)
            && let Ok(mut live) = self.live.try_borrow_mut()
            && let Some(silent) = live.take()
        {
            self.place.avoid(silent.server);
        }
    }

    /// Begins a transaction. A connection that broke since the last one is made anew, once: nothing was asked of it yet. One that was
    /// begun and not let in any further is undone.
    fn begin(&self, sql: &str) -> Result<Option<String>, PgFault> {
        self.connect()?;
        self.has_failed.set(false);
        let begun = match self.with_live(|live| live.forget_plans(self.patience)).and_then(|()| self.simple(sql)) {
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

    /// Begins a transaction that reads; where it is fenced, it fails unless the lease is ours at the moment that it reads.
    pub(super) fn begin_read(&self, is_fenced: bool) -> SqlResult<()> {
        self.begin_as(BEGIN_READ, is_fenced.then_some(lease::GLANCE))
    }

    /// Begins a transaction that writes beside others.
    pub(super) fn begin_rows(&self) -> SqlResult<()> {
        self.begin(BEGIN_ROWS)?;
        Ok(())
    }

    /// Begins a transaction that writes; where it is fenced, it fails unless the lease is ours.
    pub(super) fn begin_write(&self, is_fenced: bool) -> SqlResult<()> {
        self.begin_as(BEGIN_WRITE, is_fenced.then_some(lease::LOOK))
    }

    /// Begins a transaction, and fails unless `look`, where there is one, finds our number in the lease: all in one word to the server,
    /// whose statements run one after the other.
    fn begin_as(&self, sql: &str, look: Option<&str>) -> SqlResult<()> {
        let Some(look) = look else {
            self.begin(sql)?;
            return Ok(());
        };
        let ours = self.fence.number().ok_or(PgFault::NotActive)?;
        if self.begin(&format!("{sql}; {look}"))? != Some(ours.to_string()) {
            self.fence.lost(ours);
            self.rollback();
            return Err(PgFault::NotActive.into());
        }
        Ok(())
    }

    /// Runs the transaction that was begun to its end, and commits it.
    pub(super) fn finish<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        self.finish_by(run, Self::commit)
    }

    /// As [`Self::finish`], of a transaction that reads.
    pub(super) fn finish_read<T>(&self, run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>) -> Result<T, StoreFault> {
        self.finish_by(run, Self::leave)
    }

    fn finish_by<T>(
        &self,
        run: impl FnOnce(&Transaction<'_>) -> Result<T, StoreFault>,
        end: impl FnOnce(&Self) -> Result<(), PgFault>,
    ) -> Result<T, StoreFault> {
        let mut open = OpenTransaction { session: self, is_over: false };
        let value = run(&Transaction::Postgres(self))?;
        if self.has_failed.get() {
            return Err(SqlError::from(PgFault::Unreachable("a statement had failed".into())).into());
        }
        // Before it is committed, every statement has said that it went well.
        self.with_live(|live| live.settle(ANSWER)).map_err(SqlError::from)?;
        open.is_over = true;
        drop(open);
        end(self).map_err(SqlError::from)?;
        Ok(value)
    }

    /// Commits a transaction that has written.
    fn commit(&self) -> Result<(), PgFault> {
        self.simple("COMMIT").map(drop)
    }

    /// Ends a transaction that has read. What becomes of it nobody needs to know.
    fn leave(&self) -> Result<(), PgFault> {
        self.with_live(|live| {
            let client = live.client.clone();
            let end = async move { client.batch_execute("COMMIT").await.map(|()| Reply::default()) };
            live.send(Box::pin(end), 0, false)?;
            live.send_all()
        })
    }

    /// How often this connection has waited for the server.
    #[cfg(test)]
    pub(super) fn round_trips(&self) -> u64 {
        self.live.borrow().as_ref().map_or(0, |live| live.round_trips.get())
    }

    fn give_up_answers(&self) {
        if let Ok(live) = self.live.try_borrow() {
            live.iter().for_each(LiveSession::give_up);
        }
    }

    /// Undoes what was not committed; a connection on which that fails is given up, which undoes it as well.
    fn rollback(&self) {
        self.give_up_answers();
        if self.is_open() && self.simple("ROLLBACK").is_err() {
            self.live.take();
        }
    }

    /// A prepared statement, of the cache where it `is_kept`.
    pub(super) fn prepare(&self, sql: &str, is_kept: bool) -> SqlResult<PgStatement<'_>> {
        let ready = self.live.borrow().as_ref().filter(|_| is_kept).and_then(|live| live.ready(sql));
        let prepared = match ready {
            Some(prepared) => prepared,
            None => self.with_live(|live| live.prepared(sql, &translate::translate(sql), is_kept))?,
        };
        Ok(PgStatement::of(self, prepared))
    }

    fn with_live<T>(&self, ask: impl FnOnce(&LiveSession) -> Result<T, PgFault>) -> Result<T, PgFault> {
        let answer = match self.live.borrow().as_ref() {
            Some(live) => ask(live),
            None => Err(PgFault::Unreachable("the connection is gone".into())),
        };
        answer.inspect_err(|fault| self.note(fault))
    }
}

/// Undoes a transaction that does not come to its end.
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
