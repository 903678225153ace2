//! The only module that reads the system clock.
//!
//! A cycle reads the time once and passes it on, so that all other code can be tested at any instant. `--now` and tests use a
//! [`Clock::manual`]. The machine's clock is not trusted blindly: [`trusted_time`] decides when it is right.

mod boot;
pub mod trusted_time;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};

use crate::Timestamp;
use boot::MachineBoot;
use trusted_time::{AnchorOrigin, ClockReading, TrustedTime};
pub use trusted_time::{ClockAnchor, ClockState, MAX_CLOCK_DIFFERENCE};

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
    Simulated(Arc<Mutex<ClockReading>>, MachineBoot),
}

impl MachineClocks {
    fn read(&self) -> ClockReading {
        match self {
            MachineClocks::This => ClockReading { system: read_system_clock(), uptime: read_uptime() },
            MachineClocks::Simulated(reading, _) => *locked(reading),
        }
    }

    fn boot(&self) -> MachineBoot {
        match self {
            MachineClocks::This => MachineBoot::read(),
            MachineClocks::Simulated(_, boot) => boot.clone(),
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

    /// Returns the clock of a new simulated machine. Its time [passes](Self::pass) on request, and its wall clock can be
    /// [set](Self::set) wrong.
    #[must_use]
    pub fn simulated(at: Timestamp) -> Self {
        let machine = format!("machine {}", SIMULATED.fetch_add(1, Ordering::SeqCst));
        let boot = MachineBoot { boot: Some(format!("first boot of {machine}")), machine: Some(machine) };
        let reading = ClockReading { system: at.timestamp_millis(), uptime: 0 };
        MachineClocks::Simulated(Arc::new(Mutex::new(reading)), boot).into_clock()
    }

    /// Returns a confirmed time to store for [`resume`](Self::resume); `None` if the time is not confirmed, if the machine has no id, and
    /// for a manual clock.
    #[must_use]
    pub fn anchor(&self) -> Option<ClockAnchor> {
        let TimeSource::Machine(clocks, time) = &self.0 else { return None };
        let MachineBoot { machine, boot } = clocks.boot();
        let machine = Some(machine?);
        locked(time).anchor().map(|anchor| ClockAnchor { machine, boot, ..anchor })
    }

    /// Continues from a time that this machine stored before a restart of the program or of the machine. The time of another machine has
    /// no effect.
    pub fn resume(&self, kept: &ClockAnchor) {
        let TimeSource::Machine(clocks, time) = &self.0 else { return };
        let reading = clocks.read();
        match kept.origin(&clocks.boot(), reading) {
            AnchorOrigin::ThisBoot => locked(time).resume(kept, reading),
            AnchorOrigin::EarlierBoot => locked(time).resume_after_boot(kept, reading),
            AnchorOrigin::Elsewhere => {}
        }
    }

    /// Requires a new confirmation of the time, as after a start: an instance that takes over has not polled, so nothing could contradict
    /// its clock.
    pub fn require_confirmation(&self) {
        if let TimeSource::Machine(clocks, time) = &self.0 {
            locked(time).require_confirmation(clocks.read());
        }
    }

    /// Records that the time contradicts what another instance stored, unless it is confirmed.
    pub fn contradict(&self) {
        if let TimeSource::Machine(_, time) = &self.0 {
            locked(time).contradict();
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

    /// Returns the clock of a simulated machine after a reboot. The machine was off for `off`.
    #[must_use]
    pub fn rebooted(&self, off: TimeDelta) -> Self {
        let TimeSource::Machine(MachineClocks::Simulated(reading, boot), _) = &self.0 else { return self.clone() };
        let system = locked(reading).system.saturating_add(off.num_milliseconds());
        let boot = MachineBoot { boot: Some(format!("boot {}", SIMULATED.fetch_add(1, Ordering::SeqCst))), ..boot.clone() };
        MachineClocks::Simulated(Arc::new(Mutex::new(ClockReading { system, uptime: 0 })), boot).into_clock()
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
            TimeSource::Machine(MachineClocks::Simulated(reading, _), _) => locked(reading).system = at.timestamp_millis(),
            TimeSource::Machine(MachineClocks::This, _) => {}
        }
    }

    /// Lets time pass on a simulated machine or a manual clock.
    pub fn pass(&self, time: TimeDelta) {
        match &self.0 {
            TimeSource::Manual(millis) => drop(millis.fetch_add(time.num_milliseconds(), Ordering::SeqCst)),
            TimeSource::Machine(MachineClocks::Simulated(reading, _), _) => {
                let mut reading = locked(reading);
                reading.system = reading.system.saturating_add(time.num_milliseconds());
                reading.uptime = reading.uptime.saturating_add(time.num_milliseconds());
            }
            TimeSource::Machine(MachineClocks::This, _) => {}
        }
    }
}

/// The number of simulated machines and boots, for their ids.
static SIMULATED: AtomicU64 = AtomicU64::new(0);

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
