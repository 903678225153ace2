//! Decides which of several instances on one database is active. Reads no database and no clock.

use std::time::Duration;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The time after which a lease that is not renewed expires.
pub const TERM: Duration = Duration::from_secs(9);

/// The interval at which the active instance renews the lease.
pub const RENEWAL: Duration = Duration::from_secs(3);

/// The interval at which a standby checks the lease. It notices a death within the term plus this interval.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The lease as read from the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// The fencing number. Grows by one with each holder.
    pub number: i64,
    /// The name of the holder; empty if the lease was released.
    pub holder: String,
    /// Changes with each renewal.
    pub mark: i64,
    /// Milliseconds since the renewal by the database's clock, which may have been set since. `None` if the lease was released or
    /// never held.
    pub age_ms: Option<i64>,
}

/// The state of the lease holder, as a standby observed it with a monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeSign {
    /// Not observed for long enough.
    Unseen,
    /// The holder renewed the lease within the term.
    Renewed,
    /// The holder did not renew the lease for a whole term.
    Silent,
}

/// One instance's observations of the lease. They use the time since the process started, because the database's clock can be set.
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
    /// Records the lease, requested and received at these times of a monotonic clock. Returns the state of its holder.
    pub fn saw(&mut self, state: &LeaseState, requested: Duration, responded: Duration) -> LifeSign {
        match &self.0 {
            Some(seen) if (seen.number, seen.mark) == (state.number, state.mark) => match requested.saturating_sub(seen.since) {
                unchanged if unchanged >= TERM => LifeSign::Silent,
                _ if seen.has_moved => LifeSign::Renewed,
                _ => LifeSign::Unseen,
            },
            before => {
                let has_moved = before.is_some();
                self.0 = Some(LeaseSighting { number: state.number, mark: state.mark, since: responded, has_moved });
                if has_moved { LifeSign::Renewed } else { LifeSign::Unseen }
            }
        }
    }
}

/// The config and rules of one instance, for comparison with the other instances on its database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceSetup {
    /// Host name and process id, as in `one:17`.
    pub instance: String,
    /// A hash of everything in config and rules that affects what is polled, evaluated, and sent.
    pub fingerprint: String,
    /// The last report of the instance, by its own clock.
    pub at: Timestamp,
}

/// The interval at which an instance reports its config and rules.
pub const SETUP_INTERVAL: Duration = Duration::from_secs(30);

/// The age at which a report of a host counts as outdated if there is a newer report of the same host: that process has ended.
const REPLACED_AFTER: TimeDelta = TimeDelta::minutes(2);

/// The age at which a report counts as outdated. Clocks of two hosts may differ by a few minutes.
const FORGOTTEN_AFTER: TimeDelta = TimeDelta::minutes(30);

impl InstanceSetup {
    fn host(&self) -> &str {
        self.instance.rsplit_once(':').map_or(&self.instance, |(host, _)| host)
    }
}

/// Replaces the report of an instance in the list of all reports, and removes outdated ones.
pub fn report_setup(setups: &mut Vec<InstanceSetup>, own: InstanceSetup) {
    let is_current = |setup: &InstanceSetup| {
        let limit = if setup.host() == own.host() { REPLACED_AFTER } else { FORGOTTEN_AFTER };
        setup.instance != own.instance && (own.at - setup.at).abs() < limit
    };
    setups.retain(is_current);
    setups.push(own);
}

/// Returns the names of the other instances whose config or rules differ.
pub fn differing_setups(setups: &[InstanceSetup], own: &InstanceSetup) -> Vec<String> {
    let differs = |setup: &&InstanceSetup| setup.instance != own.instance && setup.fingerprint != own.fingerprint;
    setups.iter().filter(differs).map(|setup| setup.instance.clone()).collect()
}

/// The decision of an instance about the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAct {
    /// This instance is active and renews the lease.
    Renew,
    /// Another instance is active.
    StandBy,
    /// No instance is active: this one tries to take the lease.
    TakeOver,
    /// This instance lost the lease: it stops polling and sending at once.
    StepDown,
}

/// Decides what to do. `ours` is the fencing number that this process holds, and `since_renewal` the time since its last renewal by
/// a monotonic clock. `state` is `None` if the database cannot be read: an active instance then continues until its term ends,
/// because another one may be active after that. A standby relies on its observation; without a long enough one, as after a start,
/// on the database's clock.
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
