//! The lease as the daemon tends it: on a connection of its own, so that no long commit stands in its way.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::StoreFault;
use super::sql::SqlResult;
use super::sql::postgres::PgSession;
use super::sql::postgres::lease::Fence;
use super::sql::postgres::place::PostgresPlace;
use super::{Store, StoreError};
use model::lease::{LeaseAct, LeaseState, LeaseWatch, TERM, decide};

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
#[derive(Clone)]
pub(super) struct LeaseKeeper {
    place: Arc<PostgresPlace>,
    fence: Arc<Fence>,
    /// When the lease was last taken or renewed: before the request that did it. Apart from what a request may hold for long.
    renewed: Arc<Mutex<Option<Instant>>>,
    tended: Arc<Mutex<Tended>>,
    /// From when the steady clock of this process counts.
    origin: Instant,
}

#[derive(Default)]
struct Tended {
    session: Option<PgSession>,
    watch: LeaseWatch,
    /// It was given back for good. Whoever tends it once more, such as a task that slept meanwhile, must not take it again: nobody would
    /// renew it, and everybody else would wait for its term.
    is_over: bool,
}

impl LeaseKeeper {
    pub(super) fn new(place: Arc<PostgresPlace>, fence: Arc<Fence>) -> Self {
        Self { place, fence, renewed: Arc::default(), tended: Arc::default(), origin: Instant::now() }
    }

    /// Looks at the lease and does what is to be done about it. Blocks.
    pub(super) fn tend(&self, holder: &str) -> SqlResult<Standing> {
        let mut tended = self.tended.lock().unwrap_or_else(PoisonError::into_inner);
        if tended.is_over {
            return Ok(Standing::StandingBy { holder: String::new() });
        }
        let asked = Instant::now();
        let looked = tended.look(&self.place, &self.fence);
        let seen = looked.as_ref().ok().map(|state| {
            let sign = tended.watch.saw(state, asked - self.origin, self.origin.elapsed());
            (state, sign)
        });
        let act = decide(seen, self.fence.number(), self.since_renewal());
        match (act, &tended.session, &looked) {
            (LeaseAct::StepDown, ..) => self.fence.step_down(),
            (LeaseAct::TakeOver, Some(session), Ok(seen)) if session.take_lease(holder, seen)? => self.renewed_at(asked),
            (LeaseAct::Renew, Some(session), Ok(_)) if session.renew_lease()? => self.renewed_at(asked),
            _ => {}
        }
        let state = looked?;
        Ok(if self.fence.number().is_some() { Standing::Active } else { Standing::StandingBy { holder: state.holder } })
    }

    fn renewed_at(&self, asked: Instant) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
    }

    /// By this process's own steady clock, which goes on while it is paused.
    fn since_renewal(&self) -> Duration {
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.map_or(Duration::MAX, |renewed| renewed.elapsed())
    }

    /// Held, and renewed within its term: a process that was paused finds out here, before it sends.
    fn is_held(&self) -> bool {
        self.fence.number().is_some() && self.since_renewal() < TERM
    }

    /// Gives the lease back for good; where that fails, its term ends by itself.
    pub(super) async fn release(&self) {
        let keeper = self.clone();
        let _ = tokio::task::spawn_blocking(move || keeper.release_now()).await;
    }

    /// As [`Self::release`]. Blocks.
    pub(super) fn release_now(&self) {
        let mut tended = self.tended.lock().unwrap_or_else(PoisonError::into_inner);
        tended.is_over = true;
        if let Some(session) = &tended.session
            && let Err(error) = session.release_lease()
        {
            tracing::warn!(%error, "the lease could not be given back: another instance takes over once its term is over");
        }
    }
}

impl Tended {
    /// The lease as it stands, by a connection that is kept.
    fn look(&mut self, place: &Arc<PostgresPlace>, fence: &Arc<Fence>) -> SqlResult<LeaseState> {
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
    /// Takes or renews the lease as `holder`, where it is to be had; an instance on a file is always the active one.
    /// Fails where the server cannot be asked; an active instance stays so until the term is over.
    pub async fn tend_lease(&self, holder: &str) -> Result<Standing, StoreError> {
        let doing = "tend the lease";
        let Some(keeper) = &self.0.lease else { return Ok(Standing::Active) };
        let (keeper, holder) = (keeper.clone(), holder.to_owned());
        let tend = move || keeper.tend(&holder).map_err(|error| StoreFault::from(error).during(doing, keeper.place.name()));
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
