//! The lease that makes one of several instances on a database active.
//!
//! The lease is a row with a fencing number, which grows with each holder. A transaction reserved for the active
//! instance reads the number under a lock that allows renewals (they change no key) but blocks a takeover (the number
//! is the key). A new holder therefore starts after the last commit of the previous one, and a stale holder can commit
//! nothing more.
//!
//! Times are from the server's clock only. That clock can be changed, so `model::lease` relies on whether the times
//! change, not on their values.

use std::sync::atomic::{AtomicI64, Ordering};

use model::lease::LeaseState;

use super::schema::DAEMON;
use super::{PgFault, PgSession};

/// The renewal time in microseconds, 0 if the lease was released.
const RENEWED_MICROS: &str = "coalesce((extract(epoch FROM nullif(renewed_at, '-infinity')) * 1000000)::bigint, 0)";

/// Selects the fencing number and blocks a takeover until the transaction ends.
pub(super) const LOCK_NUMBER: &str = "SELECT number FROM lease FOR KEY SHARE";

/// Selects the fencing number without blocking a takeover. Sufficient for reads, whose snapshot precedes the takeover.
pub(super) const READ_NUMBER: &str = "SELECT number FROM lease";

/// The fencing number of this instance, 0 while it is a standby.
#[derive(Debug, Default)]
pub(crate) struct Fence(AtomicI64);

impl Fence {
    pub(crate) fn number(&self) -> Option<i64> {
        Some(self.0.load(Ordering::SeqCst)).filter(|number| *number != 0)
    }

    fn hold(&self, number: i64) {
        self.0.store(number, Ordering::SeqCst);
    }

    /// Gives up `number`, unless a newer one is held.
    pub(super) fn lost(&self, number: i64) {
        let _ = self.0.compare_exchange(number, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Gives up any number.
    pub(crate) fn step_down(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

impl PgSession {
    /// Reads the lease. Fails if a newer program has migrated the tables: this one must then neither take nor renew it.
    pub(crate) fn lease(&self) -> Result<LeaseState, PgFault> {
        self.connect()?;
        // One statement, so that no migration comes between both: it also changes the number, and the lease cannot be taken after that.
        let row = self.simple(&format!(
            "SELECT coalesce((SELECT value FROM meta WHERE key = 'schema'), '0') || ' ' || number || ' ' || {RENEWED_MICROS}
             || ' ' || coalesce(round(extract(epoch FROM clock_timestamp() - aged_from) * 1000)::bigint::text, '-') || ' ' || holder
             FROM (SELECT number, renewed_at, nullif(renewed_at, '-infinity') AS aged_from, holder FROM lease) l"
        ))?;
        let row = row.unwrap_or_default();
        let mut words = row.splitn(5, ' ');
        let schema = words.next().and_then(|word| word.parse().ok());
        if let Some(found) = schema.filter(|found| *found > DAEMON.version()) {
            let written_by = self.simple("SELECT value FROM meta WHERE key = 'program'")?.unwrap_or_default();
            return Err(PgFault::NewerSchema { found, known: DAEMON.version(), written_by });
        }
        let number = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let mark = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let age_ms = words.next().and_then(|word| word.parse().ok());
        Ok(LeaseState { number, mark, holder: words.next().unwrap_or_default().to_owned(), age_ms })
    }

    /// Takes the lease, unless another instance has changed it since it was `seen`. Returns whether this instance holds
    /// it now.
    pub(crate) fn take_lease(&self, instance: &str, seen: &LeaseState) -> Result<bool, PgFault> {
        self.connect()?;
        let instance: String = instance.chars().filter(|c| c.is_ascii_graphic() && !"'\\".contains(*c)).take(200).collect();
        let taken = self.simple(&format!(
            "UPDATE lease SET number = number + 1, holder = '{instance}', renewed_at = clock_timestamp()
             WHERE number = {} AND {RENEWED_MICROS} = {} RETURNING number",
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

    /// Renews the lease. Returns whether this instance still held it.
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

    /// Releases the lease, so that another instance can take it at once.
    pub(crate) fn release_lease(&self) -> Result<(), PgFault> {
        let Some(number) = self.fence.number() else { return Ok(()) };
        self.fence.lost(number);
        self.connect()?;
        self.simple(&format!("UPDATE lease SET renewed_at = '-infinity', holder = '' WHERE number = {number}"))?;
        Ok(())
    }
}
