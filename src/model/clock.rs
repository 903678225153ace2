//! The only module that reads the system clock.
//!
//! A cycle reads the time once and passes it on, so that all other code can be tested at any instant. `--now` and tests use a
//! [`Clock::manual`]. The machine's clock is not trusted blindly: [`trusted_time`] decides when it is right.

pub mod trusted_time;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};

use crate::Timestamp;
pub use trusted_time::{ClockAnchor, ClockState};
use trusted_time::{ClockReading, TrustedTime};

/// The source of the time. Clones share the state of the machine's clock or the time of a manual one.
#[derive(Clone, Debug)]
pub struct Clock(TimeSource);

#[derive(Clone, Debug)]
enum TimeSource {
    Machine(MachineClocks, Arc<Mutex<TrustedTime>>),
    /// Milliseconds since 1970.
    Manual(Arc<AtomicI64>),
}

/// The clocks of this machine, or of a simulated one.
#[derive(Clone, Debug)]
enum MachineClocks {
    This,
    Simulated(Arc<Mutex<ClockReading>>),
}

impl MachineClocks {
    fn read(&self) -> ClockReading {
        match self {
            MachineClocks::This => ClockReading { system: read_system_clock(), uptime: read_uptime() },
            MachineClocks::Simulated(reading) => *locked(reading),
        }
    }

    /// Returns an id of the current boot; `None` if the system hides it, as the systemd unit does.
    fn boot(&self) -> Option<String> {
        match self {
            MachineClocks::This => std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned()),
            MachineClocks::Simulated(_) => None,
        }
    }

    fn into_clock(self) -> Clock {
        let time = TrustedTime::new(self.read());
        Clock(TimeSource::Machine(self, Arc::new(Mutex::new(time))))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// Returns the clock of this machine.
    #[must_use]
    pub fn system() -> Self {
        MachineClocks::This.into_clock()
    }

    /// Returns a clock that stays at `at` until it is [set](Self::set).
    #[must_use]
    pub fn manual(at: Timestamp) -> Self {
        Self(TimeSource::Manual(Arc::new(AtomicI64::new(at.timestamp_millis()))))
    }

    /// Returns the clock of a simulated machine. Its time [passes](Self::pass) on request, and its wall clock can be
    /// [set](Self::set) wrong.
    #[must_use]
    pub fn simulated(at: Timestamp) -> Self {
        let reading = ClockReading { system: at.timestamp_millis(), uptime: 0 };
        MachineClocks::Simulated(Arc::new(Mutex::new(reading))).into_clock()
    }

    /// Returns a confirmed time to store for [`resume`](Self::resume); `None` if the time is not confirmed, and for a manual clock.
    #[must_use]
    pub fn anchor(&self) -> Option<ClockAnchor> {
        match &self.0 {
            TimeSource::Machine(clocks, time) => {
                locked(time).anchor().map(|anchor| ClockAnchor { boot: clocks.boot(), ..anchor })
            }
            TimeSource::Manual(_) => None,
        }
    }

    /// Continues from a time that was stored before a restart of the program or of the machine.
    pub fn resume(&self, kept: &ClockAnchor) {
        let TimeSource::Machine(clocks, time) = &self.0 else { return };
        let reading = clocks.read();
        if kept.is_of(clocks.boot().as_deref(), reading) {
            locked(time).resume(kept, reading);
        } else {
            locked(time).resume_after_boot(kept, reading);
        }
    }

    /// Returns the clock after a simulated restart of the program, without the learned state.
    #[must_use]
    pub fn restarted(&self) -> Self {
        match &self.0 {
            TimeSource::Machine(clocks, _) => clocks.clone().into_clock(),
            TimeSource::Manual(_) => self.clone(),
        }
    }

    /// Returns the current instant in whole milliseconds, as the database stores it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let millis = match &self.0 {
            TimeSource::Machine(clocks, time) => {
                let mut time = locked(time);
                time.now(clocks.read())
            }
            TimeSource::Manual(millis) => millis.load(Ordering::SeqCst),
        };
        DateTime::from_timestamp_millis(millis).unwrap_or_default()
    }

    /// Records the time that the source reported just now.
    pub fn record_source_time(&self, date: Timestamp) {
        if let TimeSource::Machine(clocks, time) = &self.0 {
            let mut time = locked(time);
            time.record_source_time(date.timestamp_millis(), clocks.read());
        }
    }

    /// Returns the state of the machine's clock. A manual clock is always right.
    #[must_use]
    pub fn state(&self) -> ClockState {
        match &self.0 {
            TimeSource::Machine(_, time) => locked(time).state(),
            TimeSource::Manual(_) => ClockState { is_settled: true, ..ClockState::default() },
        }
    }

    /// Returns the sum of all corrections of this clock since it started. To correct an earlier instant, add the difference between the sum
    /// now and the sum then.
    #[must_use]
    pub fn total_correction(&self) -> TimeDelta {
        match &self.0 {
            TimeSource::Machine(_, time) => TimeDelta::milliseconds(locked(time).total_correction()),
            TimeSource::Manual(_) => TimeDelta::zero(),
        }
    }

    /// Sets a manual clock or the wall clock of a simulated machine. Does nothing on this machine.
    pub fn set(&self, at: Timestamp) {
        match &self.0 {
            TimeSource::Manual(millis) => millis.store(at.timestamp_millis(), Ordering::SeqCst),
            TimeSource::Machine(MachineClocks::Simulated(reading), _) => locked(reading).system = at.timestamp_millis(),
            TimeSource::Machine(MachineClocks::This, _) => {}
        }
    }

    /// Lets time pass on a simulated machine or a manual clock.
    pub fn pass(&self, time: TimeDelta) {
        match &self.0 {
            TimeSource::Manual(millis) => drop(millis.fetch_add(time.num_milliseconds(), Ordering::SeqCst)),
            TimeSource::Machine(MachineClocks::Simulated(reading), _) => {
                let mut reading = locked(reading);
                reading.system = reading.system.saturating_add(time.num_milliseconds());
                reading.uptime = reading.uptime.saturating_add(time.num_milliseconds());
            }
            TimeSource::Machine(MachineClocks::This, _) => {}
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn read_system_clock() -> i64 {
    Utc::now().timestamp_millis()
}

/// Returns milliseconds since boot, including the time that the machine slept.
fn read_uptime() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
