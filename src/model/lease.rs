//! Which of several instances on one database is the active one: the decision, without a database and without a clock.

use std::time::Duration;

/// How long a lease holds that is not renewed.
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
    /// Changes with each renewal.
    pub mark: i64,
    /// Milliseconds since it was renewed, by the clock of the database, which may have been set meanwhile; none where it was given back
    /// or never held.
    pub age_ms: Option<i64>,
}

/// Whether the holder of a lease is alive, as far as whoever stands by saw it with a steady clock of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeSign {
    /// Too short a look to say.
    Unseen,
    /// It renewed within the term.
    Renewed,
    /// It did not renew for the whole term.
    Silent,
}

/// What one instance saw of the lease. The clock of the database may be set; the time since this process began may not.
#[derive(Clone, Debug, Default)]
pub struct LeaseWatch(Option<LeaseSighting>);

#[derive(Clone, Debug)]
struct LeaseSighting {
    number: i64,
    mark: i64,
    since: Duration,
    has_moved: bool,
}

impl LeaseWatch {
    /// Takes in the lease, which was asked for and answered at these times of a steady clock, and says what that tells of its holder.
    pub fn saw(&mut self, state: &LeaseState, asked: Duration, answered: Duration) -> LifeSign {
        match &self.0 {
            Some(seen) if (seen.number, seen.mark) == (state.number, state.mark) => match asked.saturating_sub(seen.since) {
                unchanged if unchanged >= TERM => LifeSign::Silent,
                _ if seen.has_moved => LifeSign::Renewed,
                _ => LifeSign::Unseen,
            },
            before => {
                let has_moved = before.is_some();
                self.0 = Some(LeaseSighting { number: state.number, mark: state.mark, since: answered, has_moved });
                if has_moved { LifeSign::Renewed } else { LifeSign::Unseen }
            }
        }
    }
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

/// What to do, from the lease with what was seen of its holder, the number that this process holds and the time since it last renewed
/// it, by its own steady clock; `state` is none where the database could not be asked. An active instance that cannot ask goes on
/// until its term is over and no longer: from then on another may be active. Whoever stands by goes by what it saw; where it has not
/// looked for long enough, as after a start, by the clock of the database.
pub fn decide(state: Option<(&LeaseState, LifeSign)>, ours: Option<i64>, since_renewal: Duration) -> LeaseAct {
    match (ours, state) {
        (Some(_), _) if since_renewal >= TERM => LeaseAct::StepDown,
        (Some(ours), Some((state, _))) if state.number != ours => LeaseAct::StepDown,
        (Some(_), _) => LeaseAct::Renew,
        (None, None) => LeaseAct::StandBy,
        (None, Some((state, sign))) => match (state.age_ms, sign) {
            (None, _) | (_, LifeSign::Silent) => LeaseAct::TakeOver,
            (Some(age), LifeSign::Unseen) if u128::try_from(age).unwrap_or(0) >= TERM.as_millis() => LeaseAct::TakeOver,
            (Some(_), LifeSign::Unseen | LifeSign::Renewed) => LeaseAct::StandBy,
        },
    }
}

#[cfg(test)]
mod tests;
