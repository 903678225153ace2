//! The credit ledger: no request is sent without reserved credits. All processes that poll share one row of the database.
//! [`engine::budget`] decides; this module reads, writes, and waits.
//!
//! A write for each request would be too slow. So a process reserves more credits than it needs, hands them out from memory, and
//! settles requests together with its next reservation, or when its cycle ends. If the process is killed, its whole reservation counts
//! as spent, so that the budget is never exceeded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::time::timeout;

use crate::live::{self, Live};
use engine::budget::{self, Allowance, Grant, ReservationRequest};
use model::{
    Clock, CreditState, FailureKind, PollFailure, SettledRequest, Timestamp,
    config::{Secret, SecretText},
    phrase,
    text::error_chain,
};
use source::{CreditGate, GateDecision, key_fingerprint};
use store::{Store, StoreError};

/// The interval at which waiters check for the result of the probe request, which shows whether a new period has begun.
const PROBE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub struct Ledger {
    store: Store,
    /// The API key, whose count of credits is its own.
    key: Secret,
    live: Arc<Live>,
    clock: Clock,
    /// The random id of this process in reservations.
    owner: u64,
    pool: Arc<Mutex<CreditPool>>,
    /// Locked during a reservation, so that they run one at a time.
    reservation_lock: Arc<tokio::sync::Mutex<()>>,
    settled: Notify,
    /// Locked while a poll plan is made, so that each plan sees the credits that earlier plans will spend.
    pub planning: tokio::sync::Mutex<()>,
}

/// The reserved credits of this process.
#[derive(Default)]
struct CreditPool {
    /// Reserved credits that are not handed out.
    available: u64,
    /// The time of the last reservation. A process that was suspended since then must not spend it.
    reserved_at: Timestamp,
    /// Credits of requests that are neither settled nor released.
    in_flight: u64,
    settled: Vec<SettledRequest>,
    mark: u64,
    /// Credits that running plans have yet to spend.
    claimed: u64,
}

impl CreditPool {
    /// Drops available credits of an old reservation, which may have expired. The next reservation returns them.
    fn drop_stale(&mut self, now: Timestamp) {
        if !budget::is_fresh(self.reserved_at, now) {
            self.available = 0;
        }
    }
}

type ReservationPermit = OwnedMutexGuard<()>;
impl Ledger {
    pub fn new(store: Store, key: Secret, live: Arc<Live>, clock: Clock) -> Self {
        let (pool, reservation_lock, planning) = (Arc::default(), Arc::default(), tokio::sync::Mutex::default());
        Self { store, key, live, clock, owner: fastrand::u64(..), pool, reservation_lock, settled: Notify::new(), planning }
    }

    fn pool(&self) -> MutexGuard<'_, CreditPool> {
        locked(&self.pool)
    }

    async fn reservation_permit(&self) -> ReservationPermit {
        self.reservation_lock.clone().lock_owned().await
    }

    /// Writes the settled requests of this process and returns the credits.
    async fn credit(&self) -> Result<CreditState, StoreError> {
        let (_permit, reserved) = self.reserve_in_store(self.reservation_permit().await, 0).await;
        reserved?;
        self.store.credit().await
    }

    /// Returns the allowance for a new plan and the credits spent today. Both include the credits that earlier plans will still
    /// spend.
    pub async fn allowance(&self) -> Result<(Allowance, u64), StoreError> {
        let now = self.clock.now();
        let settings = self.live.load().config.budget.clone();
        let credit = budget::rolled(self.credit().await?, &settings, now);
        let allowance = Allowance::at(&credit, &settings, now);
        let CreditPool { available, in_flight, claimed, .. } = *self.pool();
        let promised = claimed.saturating_sub(available + in_flight);
        Ok((allowance.after(promised), credit.spent_today + credit.held() + promised))
    }

    /// Claims the credits that a plan will spend. Other plans do not use them until the claim is dropped.
    pub fn claim(self: &Arc<Self>, credits: u64) -> CreditClaim {
        self.pool().claimed += credits;
        CreditClaim { ledger: self.clone(), left: Mutex::new(credits) }
    }

    /// Writes the settled requests and returns available credits.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let permit = self.reservation_permit().await;
        let available = {
            let mut pool = self.pool();
            if pool.settled.is_empty() && pool.available == 0 {
                return Ok(());
            }
            std::mem::take(&mut pool.available)
        };
        let (_permit, reserved) = self.reserve_in_store(permit, 0).await;
        if reserved.is_err() {
            self.pool().available += available;
        }
        reserved.map(drop)
    }

    /// Settles requests and reserves `want` credits in one transaction, which completes even if the caller is dropped. If it fails,
    /// the requests are settled with the next one.
    async fn reserve_in_store(&self, permit: ReservationPermit, want: u64) -> (ReservationPermit, Result<Grant, StoreError>) {
        let now = self.clock.now();
        let key = self.key_fingerprint().await;
        let reservation = {
            let mut pool = self.pool();
            pool.drop_stale(now);
            let (settled, holds) = (std::mem::take(&mut pool.settled), pool.available + pool.in_flight);
            ReservationRequest { owner: self.owner, settled, holds, want, key }
        };
        let (pool, store, budget) = (self.pool.clone(), self.store.clone(), self.live.load().config.budget.clone());
        let written = tokio::spawn(async move {
            let settled = reservation.settled.clone();
            let reserved = store.decide_credit(move |credit| budget::reserve(credit, &reservation, &budget, now)).await;
            let mut pool = locked(&pool);
            let granted = reserved.inspect_err(|_| drop(pool.settled.splice(0..0, settled))).map(|reserved| {
                (pool.mark, pool.reserved_at) = (reserved.uncounted_ever, now);
                if let Grant::Granted(credits) = reserved.grant {
                    pool.available += credits;
                }
                reserved.grant
            });
            (permit, granted)
        });
        match written.await {
            Ok(written) => written,
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            // The task is only cancelled when the process ends.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns a fingerprint of the current API key. `None` without a readable key, with which no request is sent.
    async fn key_fingerprint(&self) -> Option<String> {
        let key = live::resolve(self.key.clone()).await.ok().flatten()?;
        key_fingerprint(&key)
    }

    /// Takes available credits, all or none. Returns the number of missing ones as the error.
    fn take(&self, credits: u64) -> Result<(), u64> {
        let now = self.clock.now();
        let mut pool = self.pool();
        pool.drop_stale(now);
        match pool.available.checked_sub(credits) {
            Some(rest) => {
                pool.available = rest;
                pool.in_flight += credits;
                Ok(())
            }
            None => Err(credits - pool.available),
        }
    }

    async fn obtain(&self, credits: u64) -> Result<(), PollFailure> {
        loop {
            let settled = self.settled.notified();
            {
                let permit = self.reservation_permit().await;
                let Err(missing) = self.take(credits) else { return Ok(()) };
                let (_permit, reserved) = self.reserve_in_store(permit, missing).await;
                match reserved {
                    Ok(Grant::Granted(_)) if self.take(credits).is_ok() => return Ok(()),
                    Ok(Grant::Granted(_) | Grant::Waits) if self.pool().in_flight > 0 => {}
                    Ok(Grant::Granted(_) | Grant::Waits) => {
                        return Err(not_sent(
                            FailureKind::Suspended,
                            "another process checks whether a new credit period has begun",
                        ));
                    }
                    Ok(Grant::Refused(until)) => {
                        let message = format!(
                            "not sent: all credits of this period are spent or reserved; the next period begins on {}",
                            phrase::instant_iso(until)
                        );
                        return Err(PollFailure { retry_at: Some(until), ..not_sent(FailureKind::QuotaExhausted, &message) });
                    }
                    Err(error) => {
                        let message = format!("not sent: cannot reserve credits in the database: {}", error_chain(&error));
                        return Err(not_sent(FailureKind::Suspended, &message));
                    }
                }
            }
            // `settled` was created before the reservation, so no notification is missed.
            let _ = timeout(PROBE_CHECK_INTERVAL, settled).await;
        }
    }
}

fn locked(pool: &Mutex<CreditPool>) -> MutexGuard<'_, CreditPool> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_sent(kind: FailureKind, message: &str) -> PollFailure {
    PollFailure { kind, message: message.to_owned(), retry_at: None }
}

impl CreditGate for Ledger {
    fn reserve(&self, credits: u64) -> GateDecision<'_> {
        if self.take(credits).is_ok() {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(self.obtain(credits))
    }

    fn sent(&self, key: Option<&SecretText>) -> SettledRequest {
        SettledRequest {
            uncounted_before: self.pool().mark,
            sent_at: Some(self.clock.now()),
            key: key.and_then(key_fingerprint),
            ..SettledRequest::default()
        }
    }

    fn settle(&self, request: SettledRequest) {
        {
            let mut pool = self.pool();
            pool.in_flight = pool.in_flight.saturating_sub(1);
            pool.settled.push(request);
        }
        self.settled.notify_waiters();
    }

    fn release(&self, credits: u64) {
        let mut pool = self.pool();
        pool.in_flight = pool.in_flight.saturating_sub(credits);
        pool.available += credits;
    }
}

/// The credits that a plan has yet to spend.
pub struct CreditClaim {
    ledger: Arc<Ledger>,
    left: Mutex<u64>,
}

impl CreditClaim {
    /// Releases the planned cost of a poll that has ended.
    pub fn release(&self, credits: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let credits = credits.min(*left);
        *left -= credits;
        let mut pool = self.ledger.pool();
        pool.claimed = pool.claimed.saturating_sub(credits);
    }
}

impl Drop for CreditClaim {
    fn drop(&mut self) {
        self.release(u64::MAX);
    }
}

#[cfg(test)]
mod tests;
