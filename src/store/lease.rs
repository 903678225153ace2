//! The lease as the daemon tends it: on a connection of its own, so that no long commit stands in its way.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::error::StoreFault;
use super::sql::SqlResult;
use super::sql::postgres::PgSession;
use super::sql::postgres::lease::Fence;
use super::sql::postgres::place::PostgresPlace;
use super::{Store, StoreError};
use model::lease::{LeaseAct, LeaseState, decide};

/// What came of tending the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This instance is the active one.
    Active,
    /// Another is, as it calls itself; empty where nobody is, or it is not known.
    StandingBy {
        /// Who is active.
        holder: String,
    },
}

/// Takes, renews and gives back the lease of one database.
pub(super) struct LeaseKeeper {
    place: Arc<PostgresPlace>,
    fence: Arc<Fence>,
    tended: Arc<Mutex<Tended>>,
}

#[derive(Default)]
struct Tended {
    session: Option<PgSession>,
    /// Before the request by which the lease was last taken or renewed.
    renewed: Option<Instant>,
    /// What the database said last.
    seen: LeaseState,
}

impl LeaseKeeper {
    pub(super) fn new(place: Arc<PostgresPlace>, fence: Arc<Fence>) -> Self {
        Self { place, fence, tended: Arc::default() }
    }

    /// Looks at the lease and does what is to be done about it. Blocks.
    fn tend(place: &Arc<PostgresPlace>, fence: &Arc<Fence>, tended: &mut Tended, holder: &str) -> SqlResult<Standing> {
        let asked = Instant::now();
        if tended.session.is_none() {
            tended.session = PgSession::open(place, fence).ok();
        }
        let state = match &tended.session {
            Some(session) => session.lease(),
            None => PgSession::open(place, fence).map(drop).map(|()| LeaseState::default()).map_err(not_reached),
        };
        let since = tended.renewed.map_or(std::time::Duration::MAX, |renewed| renewed.elapsed());
        let act = decide(state.as_ref().ok(), fence.number(), since);
        if let Ok(state) = &state {
            tended.seen = state.clone();
        }
        match (act, &tended.session) {
            (LeaseAct::StepDown, _) => fence.step_down(),
            (LeaseAct::TakeOver, Some(session)) if session.take_lease(holder)? => tended.renewed = Some(asked),
            (LeaseAct::Renew, Some(session)) if state.is_ok() && session.renew_lease()? => tended.renewed = Some(asked),
            _ => {}
        }
        if fence.number().is_some() {
            return Ok(Standing::Active);
        }
        state?;
        Ok(Standing::StandingBy { holder: tended.seen.holder.clone() })
    }

    /// Gives the lease back; where that fails, its term ends by itself.
    pub(super) async fn release(&self) {
        let tended = self.tended.clone();
        let release = move || {
            let tended = tended.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(session) = &tended.session
                && let Err(error) = session.release_lease()
            {
                tracing::warn!(%error, "the lease could not be given back: another instance takes over once its term is over");
            }
        };
        let _ = tokio::task::spawn_blocking(release).await;
    }
}

fn not_reached(error: super::sql::SqlError) -> super::sql::PgFault {
    match error {
        super::sql::SqlError::Postgres(fault) => fault,
        super::sql::SqlError::Sqlite(error) => super::sql::PgFault::Unreachable(Box::new(error)),
    }
}

impl Store {
    /// Takes or renews the lease as `holder`, where it is to be had; an instance on a file is always the active one.
    /// Fails where the server cannot be asked; an active instance stays so until the term is over.
    pub async fn tend_lease(&self, holder: &str) -> Result<Standing, StoreError> {
        let doing = "tend the lease";
        let Some(keeper) = &self.0.lease else { return Ok(Standing::Active) };
        let (place, fence, tended, holder) =
            (keeper.place.clone(), keeper.fence.clone(), keeper.tended.clone(), holder.to_owned());
        let tend = move || {
            let mut tended = tended.lock().unwrap_or_else(PoisonError::into_inner);
            LeaseKeeper::tend(&place, &fence, &mut tended, &holder)
                .map_err(|error| StoreFault::from(error).during(doing, place.name()))
        };
        tokio::task::spawn_blocking(tend).await.map_err(|_| StoreError::Closed { doing })?
    }

    /// Whether this instance may write what the active one alone writes, as far as it knows.
    pub fn is_active(&self) -> bool {
        self.0.lease.as_ref().is_none_or(|keeper| keeper.is_held())
    }

    /// Whether several instances may share this database.
    pub fn is_shared(&self) -> bool {
        self.0.lease.is_some()
    }
}

impl LeaseKeeper {
    /// Held, and renewed within its term by this process's own steady clock: one that was paused finds out here, before it sends.
    fn is_held(&self) -> bool {
        let is_fresh = || match self.tended.try_lock() {
            Ok(tended) => tended.renewed.is_some_and(|renewed| renewed.elapsed() < model::lease::TERM),
            // It is being tended at this moment: the fence says what is known.
            Err(_) => true,
        };
        self.fence.number().is_some() && is_fresh()
    }
}
