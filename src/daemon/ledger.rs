//! The ledger of credits at work: no request is sent for which it has not reserved one, and every process that asks goes by the same row
//! of the same database. Here it is read, written and waited for; [`engine::budget`] decides.
//!
//! A write for each request would be too dear. So a process reserves some more than it needs, hands them out from memory, and books
//! what became of them together with its next wish, or when its cycle ends. Killed, it leaves its whole reservation behind, which counts
//! as spent: a cap is never passed by what nobody remembers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::time::timeout;

use crate::live::Live;
use engine::budget::{self, Allowance, Booking, Grant};
use model::{Clock, CreditState, FailureKind, PollFailure, SettledRequest, Timestamp, text::error_chain};
use source::{CreditGate, GateAnswer};
use store::{Store, StoreError};

/// How long to wait at a time for the request that shows whether a new period has begun.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// The ledger of one process.
pub struct Ledger {
    store: Store,
    live: Arc<Live>,
    clock: Clock,
    /// The number under which this process reserves.
    owner: u64,
    pool: Arc<Mutex<CreditPool>>,
    /// One booking at a time.
    booking: Arc<tokio::sync::Mutex<()>>,
    settled: Notify,
    /// Plans are made one after the other, so that each sees what those before it are going to spend.
    pub planning: tokio::sync::Mutex<()>,
}

/// What is reserved in memory.
#[derive(Default)]
struct CreditPool {
    /// Reserved, and not handed out.
    at_hand: u64,
    /// When that was last booked. A process that slept since then does not spend it.
    booked_at: Timestamp,
    /// Handed out, and neither settled nor given back.
    under_way: u64,
    settled: Vec<SettledRequest>,
    mark: u64,
    /// What plans that are being asked will still spend.
    claimed: u64,
}

impl CreditPool {
    /// Forgets what is at hand where it was booked long ago: its reservation may be gone, and the next booking gives it back.
    fn drop_stale(&mut self, now: Timestamp) {
        if !budget::is_fresh(self.booked_at, now) {
            self.at_hand = 0;
        }
    }
}

/// Whose turn it is to book.
type BookingTurn = OwnedMutexGuard<()>;

impl Ledger {
    pub fn new(store: Store, live: Arc<Live>, clock: Clock) -> Self {
        let (pool, booking, planning) = (Arc::default(), Arc::default(), tokio::sync::Mutex::default());
        Self { store, live, clock, owner: fastrand::u64(..), pool, booking, settled: Notify::new(), planning }
    }

    fn pool(&self) -> MutexGuard<'_, CreditPool> {
        locked(&self.pool)
    }

    async fn turn(&self) -> BookingTurn {
        self.booking.clone().lock_owned().await
    }

    /// The quota as it is now, with all that this process has settled.
    async fn credit(&self) -> Result<CreditState, StoreError> {
        let (_turn, booked) = self.book(self.turn().await, 0).await;
        booked?;
        self.store.credit().await
    }

    /// What may be planned now, and what today's share has lost already: both count what earlier plans are still going to spend.
    pub async fn allowance(&self) -> Result<(Allowance, u64), StoreError> {
        let now = self.clock.now();
        let settings = self.live.load().config.budget.clone();
        let credit = budget::rolled(self.credit().await?, &settings, now);
        let allowance = Allowance::at(&credit, &settings, now);
        let CreditPool { at_hand, under_way, claimed, .. } = *self.pool();
        let promised = claimed.saturating_sub(at_hand + under_way);
        Ok((allowance.after(promised), credit.spent_today + credit.held() + promised))
    }

    /// Notes that a plan is going to spend credits; until the claim is dropped, other plans leave them alone.
    pub fn claim(self: &Arc<Self>, credits: u64) -> CreditClaim {
        self.pool().claimed += credits;
        CreditClaim { ledger: self.clone(), left: Mutex::new(credits) }
    }

    /// Books what is settled and gives back what is not needed.
    pub async fn settle_up(&self) -> Result<(), StoreError> {
        let turn = self.turn().await;
        let at_hand = {
            let mut pool = self.pool();
            if pool.settled.is_empty() && pool.at_hand == 0 {
                return Ok(());
            }
            std::mem::take(&mut pool.at_hand)
        };
        let (_turn, booked) = self.book(turn, 0).await;
        if booked.is_err() {
            self.pool().at_hand += at_hand;
        }
        booked.map(drop)
    }

    /// One transaction, that goes to its end though nobody waits for it any more. What was not written is booked with the next one.
    async fn book(&self, turn: BookingTurn, want: u64) -> (BookingTurn, Result<Grant, StoreError>) {
        let now = self.clock.now();
        let booking = {
            let mut pool = self.pool();
            pool.drop_stale(now);
            let (settled, holds) = (std::mem::take(&mut pool.settled), pool.at_hand + pool.under_way);
            Booking { owner: self.owner, settled, holds, want }
        };
        let (pool, store, budget) = (self.pool.clone(), self.store.clone(), self.live.load().config.budget.clone());
        let written = tokio::spawn(async move {
            let settled = booking.settled.clone();
            let booked = store.decide_credit(move |credit| budget::book(credit, &booking, &budget, now)).await;
            let mut pool = locked(&pool);
            let granted = booked.inspect_err(|_| drop(pool.settled.splice(0..0, settled))).map(|booked| {
                (pool.mark, pool.booked_at) = (booked.uncounted_ever, now);
                if let Grant::Granted(credits) = booked.grant {
                    pool.at_hand += credits;
                }
                booked.grant
            });
            (turn, granted)
        });
        match written.await {
            Ok(written) => written,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            // Only the end of the process ends it, and with it whoever waits here.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes credits from what is at hand, all or none.
    fn take(&self, credits: u64) -> Result<(), u64> {
        let now = self.clock.now();
        let mut pool = self.pool();
        pool.drop_stale(now);
        match pool.at_hand.checked_sub(credits) {
            Some(rest) => {
                pool.at_hand = rest;
                pool.under_way += credits;
                Ok(())
            }
            None => Err(credits - pool.at_hand),
        }
    }

    async fn obtain(&self, credits: u64) -> Result<(), PollFailure> {
        loop {
            let settled = self.settled.notified();
            {
                let turn = self.turn().await;
                let Err(missing) = self.take(credits) else { return Ok(()) };
                let (_turn, booked) = self.book(turn, missing).await;
                match booked {
                    Ok(Grant::Granted(_)) if self.take(credits).is_ok() => return Ok(()),
                    Ok(Grant::Granted(_) | Grant::Waits) if self.pool().under_way > 0 => {}
                    Ok(Grant::Granted(_) | Grant::Waits) => {
                        return Err(refused(FailureKind::Suspended, "another process finds out whether a new period has begun"));
                    }
                    Ok(Grant::Refused(until)) => {
                        let message = format!(
                            "not sent, since the credits of this period are spent or reserved; they return on {}",
                            until.format("%-d %b %Y, %H:%M UTC")
                        );
                        return Err(PollFailure { retry_at: Some(until), ..refused(FailureKind::QuotaExhausted, &message) });
                    }
                    Err(error) => {
                        let message = format!("not sent, since its credit cannot be written down: {}", error_chain(&error));
                        return Err(refused(FailureKind::Suspended, &message));
                    }
                }
            }
            // Also where it came between the answer and here.
            let _ = timeout(PROBE_WAIT, settled).await;
        }
    }
}

fn locked(pool: &Mutex<CreditPool>) -> MutexGuard<'_, CreditPool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(kind: FailureKind, message: &str) -> PollFailure {
    PollFailure { kind, message: message.to_owned(), retry_at: None }
}

impl CreditGate for Ledger {
    fn reserve(&self, credits: u64) -> GateAnswer<'_> {
        if self.take(credits).is_ok() {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(self.obtain(credits))
    }

    fn sent(&self) -> SettledRequest {
        SettledRequest { uncounted_before: self.pool().mark, sent_at: Some(self.clock.now()), ..SettledRequest::default() }
    }

    fn settle(&self, request: SettledRequest) {
        {
            let mut pool = self.pool();
            pool.under_way = pool.under_way.saturating_sub(1);
            pool.settled.push(request);
        }
        self.settled.notify_waiters();
    }

    fn release(&self, credits: u64) {
        let mut pool = self.pool();
        pool.under_way = pool.under_way.saturating_sub(credits);
        pool.at_hand += credits;
    }
}

/// Credits that a plan is going to spend.
pub struct CreditClaim {
    ledger: Arc<Ledger>,
    left: Mutex<u64>,
}

impl CreditClaim {
    /// Something of the plan was asked, that was planned to cost so much.
    pub fn done(&self, credits: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let credits = credits.min(*left);
        *left -= credits;
        let mut pool = self.ledger.pool();
        pool.claimed = pool.claimed.saturating_sub(credits);
    }
}

impl Drop for CreditClaim {
    fn drop(&mut self) {
        self.done(u64::MAX);
    }
}

#[cfg(test)]
mod tests;
