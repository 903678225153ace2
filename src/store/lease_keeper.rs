//! Maintains the daemon's lease, on a separate connection, so that long commits do not delay renewals.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::StoreFault;
use super::sql::postgres::PgSession;
use super::sql::postgres::fence::Fence;
use super::sql::postgres::url::PostgresUrl;
use super::sql::{PgFault, SqlError, SqlResult};
use super::{Store, StoreError};
use model::lease::{LeaseAct, LeaseState, LeaseWatch, TERM, decide};

/// The result of [`Store::maintain_lease`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    /// This instance is the active one.
    Active,
    /// Another instance is active.
    Standby {
        /// The name of the active instance; empty if none is known.
        holder: String,
    },
}

/// Takes, renews, and releases the lease of one database.
#[derive(Clone)]
pub(super) struct LeaseKeeper {
    place: Arc<PostgresUrl>,
    fence: Arc<Fence>,
    /// When the lease was last taken or renewed, measured before the request. A separate lock, because `connection` is locked
    /// during requests.
    renewed: Arc<Mutex<Option<Instant>>>,
    connection: Arc<Mutex<LeaseConnection>>,
    /// The zero point of this process's monotonic clock.
    origin: Instant,
}

#[derive(Default)]
struct LeaseConnection {
    session: Option<PgSession>,
    watch: LeaseWatch,
    /// Whether the lease was released for good. A late caller must not take it again: nothing would renew it, and other
    /// instances would wait for its term.
    is_over: bool,
}

impl LeaseKeeper {
    pub(super) fn new(place: Arc<PostgresUrl>, fence: Arc<Fence>) -> Self {
        Self { place, fence, renewed: Arc::default(), connection: Arc::default(), origin: Instant::now() }
    }

    /// Reads the lease and takes, renews, or gives it up as needed. Blocks.
    pub(super) fn maintain(&self, instance: &str) -> SqlResult<LeaseStatus> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_over {
            return Ok(LeaseStatus::Standby { holder: String::new() });
        }
        let started = Instant::now();
        let checked = connection.read_lease(&self.place, &self.fence);
        if let Err(SqlError::Postgres(PgFault::NewerSchema { .. })) = &checked {
            self.fence.step_down();
        }
        let seen = checked.as_ref().ok().map(|state| {
            let sign = connection.watch.saw(state, started - self.origin, self.origin.elapsed());
            (state, sign)
        });
        let act = decide(seen, self.fence.number(), self.since_renewal());
        match (act, &connection.session, &checked) {
            (LeaseAct::StepDown, ..) => self.fence.step_down(),
            (LeaseAct::TakeOver, Some(session), Ok(seen)) if session.take_lease(instance, seen)? => self.renewed_at(started),
            (LeaseAct::Renew, Some(session), Ok(_)) if session.renew_lease()? => self.renewed_at(started),
            _ => {}
        }
        let state = checked?;
        Ok(if self.fence.number().is_some() { LeaseStatus::Active } else { LeaseStatus::Standby { holder: state.holder } })
    }

    fn renewed_at(&self, started: Instant) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
    }

    /// Returns the time since the last renewal, by the monotonic clock, which includes pauses of the process.
    fn since_renewal(&self) -> Duration {
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.map_or(Duration::MAX, |renewed| renewed.elapsed())
    }

    /// Returns whether the lease is held and within its term. Detects a pause of the process before anything is sent.
    fn is_held(&self) -> bool {
        self.fence.number().is_some() && self.since_renewal() < TERM
    }

    /// Releases the lease for good. If this fails, the lease expires after its term.
    pub(super) async fn release(&self) {
        let keeper = self.clone();
        let _ = tokio::task::spawn_blocking(move || keeper.release_now()).await;
    }

    /// Like [`Self::release`]. Blocks.
    pub(super) fn release_now(&self) {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.is_over = true;
        if let Some(session) = &connection.session
            && let Err(error) = session.release_lease()
        {
            tracing::warn!(%error, "cannot release the lease; another instance takes over after its term");
        }
    }
}

impl LeaseConnection {
    /// Reads the lease over a cached connection.
    fn read_lease(&mut self, place: &Arc<PostgresUrl>, fence: &Arc<Fence>) -> SqlResult<LeaseState> {
        let session = match self.session.take() {
            Some(session) => session,
            None => PgSession::open_for_lease(place, fence)?,
        };
        let state = session.lease();
        self.session = Some(session);
        Ok(state?)
    }
}

impl Store {
    /// Takes or renews the lease as `instance` if it is available. An instance on a file is always active.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached: an active instance stays active until its term ends. Fails also if a newer program has
    /// migrated the database: this instance is not active then.
    pub async fn maintain_lease(&self, instance: &str) -> Result<LeaseStatus, StoreError> {
        let doing = "renew the lease";
        let Some(keeper) = &self.handle.lease else { return Ok(LeaseStatus::Active) };
        let (keeper, instance) = (keeper.clone(), instance.to_owned());
        let maintain =
            move || keeper.maintain(&instance).map_err(|error| StoreFault::from(error).during(doing, keeper.place.name()));
        tokio::task::spawn_blocking(maintain).await.map_err(|_| StoreError::closed(doing))?
    }

    /// Returns whether this instance is active, to its knowledge, without a query.
    pub fn is_active(&self) -> bool {
        self.handle.lease.as_ref().is_none_or(|keeper| keeper.is_held())
    }

    /// Returns whether several instances can share this database.
    pub fn is_shared(&self) -> bool {
        self.handle.lease.is_some()
    }
}
