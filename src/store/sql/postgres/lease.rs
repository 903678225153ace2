//! The lease by which one of several instances on one database is the active one.
//!
//! It is a row with a number, which grows by one with each holder. A transaction that only the active instance may make reads the
//! number under a lock that a renewal passes (it changes no key) and a take-over waits for (the number is the key). So whoever takes
//! over begins after the last commit of the one before, and a stale holder finds another number and can commit nothing more.
//! Times are those of the server's clock alone. It may be set, so what they say counts for little: `model::lease` goes by whether
//! they change.

use std::sync::atomic::{AtomicI64, Ordering};

use model::lease::LeaseState;

use super::{PgFault, PgSession};

/// When it was renewed, in microseconds; 0 where it was given back.
const MARK: &str = "coalesce((extract(epoch FROM nullif(renewed_at, '-infinity')) * 1000000)::bigint, 0)";

/// The number as it stands, held until the transaction ends.
pub(super) const LOOK: &str = "SELECT number FROM lease FOR KEY SHARE";

/// The number as it stands, for whoever writes nothing: a take-over need not wait, since what is read is of the moment before it.
pub(super) const GLANCE: &str = "SELECT number FROM lease";

/// The number under which this process may write what only the active instance does; none while it stands by.
#[derive(Debug, Default)]
pub(crate) struct Fence(AtomicI64);

impl Fence {
    pub(crate) fn number(&self) -> Option<i64> {
        Some(self.0.load(Ordering::SeqCst)).filter(|number| *number != 0)
    }

    fn hold(&self, number: i64) {
        self.0.store(number, Ordering::SeqCst);
    }

    /// Gives a number up, unless a newer one is held meanwhile.
    pub(super) fn lost(&self, number: i64) {
        let _ = self.0.compare_exchange(number, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Gives up whatever is held.
    pub(crate) fn step_down(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

impl PgSession {
    /// The lease as it stands.
    pub(crate) fn lease(&self) -> Result<LeaseState, PgFault> {
        self.connect()?;
        let row = self.simple(&format!(
            "SELECT number || ' ' || {MARK} || ' ' || coalesce(round(extract(epoch FROM clock_timestamp() - aged_from) * 1000)::bigint::text, '-')
             || ' ' || holder FROM (SELECT number, renewed_at, nullif(renewed_at, '-infinity') AS aged_from, holder FROM lease) l"
        ))?;
        let row = row.unwrap_or_default();
        let mut words = row.splitn(4, ' ');
        let number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let mark = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let age_ms = words.next().and_then(|word| word.parse().ok());
        Ok(LeaseState { number, mark, holder: words.next().unwrap_or_default().to_owned(), age_ms })
    }

    /// Takes the lease where it stands as it was `seen`: nobody renewed or took it meanwhile. Answers whether it is ours now.
    pub(crate) fn take_lease(&self, holder: &str, seen: &LeaseState) -> Result<bool, PgFault> {
        self.connect()?;
        let holder: String = holder.chars().filter(|c| c.is_ascii_graphic() && !"'\\".contains(*c)).take(200).collect();
        let taken = self.simple(&format!(
            "UPDATE lease SET number = number + 1, holder = '{holder}', renewed_at = clock_timestamp()
             WHERE number = {} AND {MARK} = {} RETURNING number",
            seen.number, seen.mark
        ))?;
        match taken.and_then(|number| number.parse().ok()) {
            Some(number) => {
                self.fence.hold(number);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Renews the lease; answers whether it was still ours.
    pub(crate) fn renew_lease(&self) -> Result<bool, PgFault> {
        let Some(number) = self.fence.number() else { return Ok(false) };
        self.connect()?;
        let renewed =
            self.simple(&format!("UPDATE lease SET renewed_at = clock_timestamp() WHERE number = {number} RETURNING number"))?;
        if renewed.is_none() {
            self.fence.lost(number);
        }
        Ok(renewed.is_some())
    }

    /// Gives the lease back, so that another takes over at once.
    pub(crate) fn release_lease(&self) -> Result<(), PgFault> {
        let Some(number) = self.fence.number() else { return Ok(()) };
        self.fence.lost(number);
        self.connect()?;
        self.simple(&format!("UPDATE lease SET renewed_at = '-infinity', holder = '' WHERE number = {number}"))?;
        Ok(())
    }
}
