//! Which of several instances on one database is the active one: the decision, without a database and without a clock.

use std::time::Duration;

/// How long a lease holds that is not renewed, by the clock of the database.
pub const TERM: Duration = Duration::from_secs(9);

/// How often the active instance renews it.
pub const RENEWAL: Duration = Duration::from_secs(3);

/// How often an instance that stands by looks at it: a death is noticed within the term and this.
pub const LOOK: Duration = Duration::from_secs(1);

/// The lease as the database tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// Grows by one with each holder.
    pub number: i64,
    /// Who holds it, as it calls itself; empty where it was given back.
    pub holder: String,
    /// Milliseconds since it was renewed, by the clock of the database; none where it was given back or never held.
    pub age_ms: Option<i64>,
}

/// What an instance does about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAct {
    /// It is active and says so.
    Renew,
    /// Another is active.
    StandBy,
    /// Nobody is: it takes the lease, unless somebody else is faster.
    TakeOver,
    /// It was active and is not any more: it stops polling and sending at once.
    StepDown,
}

/// What to do, from the lease, the number that this process holds and the time since it last renewed it, by its own steady clock; `state`
/// is none where the database could not be asked. An active instance that cannot ask goes on until its term is over and no longer: from then on another
/// may be active.
pub fn decide(state: Option<&LeaseState>, ours: Option<i64>, since_renewal: Duration) -> LeaseAct {
    match (ours, state) {
        (Some(_), _) if since_renewal >= TERM => LeaseAct::StepDown,
        (Some(ours), Some(state)) if state.number != ours => LeaseAct::StepDown,
        (Some(_), _) => LeaseAct::Renew,
        (None, None) => LeaseAct::StandBy,
        (None, Some(state)) => match state.age_ms {
            Some(age) if u128::try_from(age).unwrap_or(0) < TERM.as_millis() => LeaseAct::StandBy,
            _ => LeaseAct::TakeOver,
        },
    }
}

#[cfg(test)]
mod tests;
