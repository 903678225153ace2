//! The ledger of credits at work: no request is sent for which it has not reserved one, and every process that asks goes by the same row
//! of the same database. Here it is read, written and waited for; [`engine::budget`] decides.
//!
//! A write for each request would be too dear. So a process reserves some more than it needs, hands them out from memory, and books
//! what became of them together with its next wish, or when its cycle ends. Killed, it leaves its whole reservation behind, which counts
//! as spent: a cap is never passed by what nobody remembers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::live::Live;
use engine::budget::{self, Allowance, Booking, Grant};
use model::{Clock, CreditState, FailureKind, PollFailure, SettledRequest, text::error_chain};
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
    pool: Mutex<CreditPool>,
    /// One booking at a time.
    booking: tokio::sync::Mutex<()>,
    settled: Notify,
    /// Plans are made one after the other, so that each sees what those before it are going to spend.
    pub planning: tokio::sync::Mutex<()>,
}

/// What is reserved in memory.
#[derive(Default)]
struct CreditPool {
    /// Reserved, and not handed out.
    at_hand: u64,
    /// Handed out, and neither settled nor given back.
    under_way: u64,
    settled: Vec<SettledRequest>,
    mark: u64,
    /// What plans that are being asked will still spend.
    claimed: u64,
}

impl Ledger {
    pub fn new(store: Store, live: Arc<Live>, clock: Clock) -> Self {
        let (pool, booking, planning) = (Mutex::default(), tokio::sync::Mutex::default(), tokio::sync::Mutex::default());
        Self { store, live, clock, owner: fastrand::u64(..), pool, booking, settled: Notify::new(), planning }
    }

    fn pool(&self) -> MutexGuard<'_, CreditPool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The quota as it is now, with all that this process has settled.
    async fn credit(&self) -> Result<CreditState, StoreError> {
        let _one = self.booking.lock().await;
        self.book(0, 0).await?;
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
        let _one = self.booking.lock().await;
        let at_hand = {
            let mut pool = self.pool();
            if pool.settled.is_empty() && pool.at_hand == 0 {
                return Ok(());
            }
            std::mem::take(&mut pool.at_hand)
        };
        let booked = self.book(0, at_hand).await;
        if booked.is_err() {
            self.pool().at_hand += at_hand;
        }
        booked.map(drop)
    }

    /// One transaction. What was not written is booked with the next one.
    async fn book(&self, want: u64, returned: u64) -> Result<Grant, StoreError> {
        let settled = std::mem::take(&mut self.pool().settled);
        let booking = Booking { owner: self.owner, settled: settled.clone(), returned, want };
        let (budget, now) = (self.live.load().config.budget.clone(), self.clock.now());
        match self.store.decide_credit(move |credit| budget::book(credit, &booking, &budget, now)).await {
            Ok(booked) => {
                let mut pool = self.pool();
                pool.mark = booked.uncounted_ever;
                if let Grant::Granted(credits) = booked.grant {
                    pool.at_hand += credits;
                }
                Ok(booked.grant)
            }
            Err(error) => {
                self.pool().settled.splice(0..0, settled);
                Err(error)
            }
        }
    }

    /// Takes credits from what is at hand, all or none.
    fn take(&self, credits: u64) -> Result<(), u64> {
        let mut pool = self.pool();
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
                let _one = self.booking.lock().await;
                let Err(missing) = self.take(credits) else { return Ok(()) };
                match self.book(missing, 0).await {
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

    fn mark(&self) -> u64 {
        self.pool().mark
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
