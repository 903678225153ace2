//! The one room that reads the system clock.
//!
//! A tick reads the time once and passes it on, so that everything below can be tested at any instant. `--now` and tests stop the time
//! with a [`Clock::manual`]. The machine's own clock is not believed whatever it shows: [`steady`] says when it is.

pub mod steady;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};

use crate::Timestamp;
pub use steady::{ClockAnchor, ClockState};
use steady::{ClockReading, SteadyTime};

/// Where the time comes from. Cheap to clone; clones share what was learnt of the machine's clock, or the hands of a manual one.
#[derive(Clone, Debug)]
pub struct Clock(TimeSource);

#[derive(Clone, Debug)]
enum TimeSource {
    Machine(MachineClocks, Arc<Mutex<SteadyTime>>),
    /// Unix milliseconds.
    Manual(Arc<AtomicI64>),
}

/// The clocks of a machine: this one's, or those of one that a test makes up.
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

    /// Which boot this is. The system may hide it, as the unit of systemd does.
    fn boot(&self) -> Option<String> {
        match self {
            MachineClocks::This => std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned()),
            MachineClocks::Simulated(_) => None,
        }
    }

    fn steady(self) -> Clock {
        let time = SteadyTime::new(self.read());
        Clock(TimeSource::Machine(self, Arc::new(Mutex::new(time))))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// The machine's own time.
    #[must_use]
    pub fn system() -> Self {
        MachineClocks::This.steady()
    }

    /// A clock that stands at `at` until it is [set](Self::set), and believes nobody else.
    #[must_use]
    pub fn manual(at: Timestamp) -> Self {
        Self(TimeSource::Manual(Arc::new(AtomicI64::new(at.timestamp_millis()))))
    }

    /// The clock of a machine that shows `at` and whose time is [passed](Self::pass) by hand, so that its wall clock can be
    /// [set](Self::set) wrong.
    #[must_use]
    pub fn simulated(at: Timestamp) -> Self {
        let reading = ClockReading { system: at.timestamp_millis(), uptime: 0 };
        MachineClocks::Simulated(Arc::new(Mutex::new(reading))).steady()
    }

    /// A time that was borne out, to be kept for [`resume`](Self::resume); none before, and of a manual clock.
    #[must_use]
    pub fn anchor(&self) -> Option<ClockAnchor> {
        match &self.0 {
            TimeSource::Machine(clocks, time) => {
                locked(time).anchor().map(|anchor| ClockAnchor { boot: clocks.boot(), ..anchor })
            }
            TimeSource::Manual(_) => None,
        }
    }

    /// Goes on from a time that was kept before a restart of the program; where the machine was started anew since, from that time on.
    pub fn resume(&self, kept: &ClockAnchor) {
        let TimeSource::Machine(clocks, time) = &self.0 else { return };
        let reading = clocks.read();
        if kept.is_of(clocks.boot().as_deref(), reading) {
            locked(time).resume(kept, reading);
        } else {
            locked(time).resume_after_boot(kept, reading);
        }
    }

    /// As the same machine has it after a restart of the program: nothing learnt is kept.
    #[must_use]
    pub fn restarted(&self) -> Self {
        match &self.0 {
            TimeSource::Machine(clocks, _) => clocks.clone().steady(),
            TimeSource::Manual(_) => self.clone(),
        }
    }

    /// The present instant, UTC, in whole milliseconds: what the database keeps, so that nothing differs after a restart.
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

    /// The source answered just now, and told that it is `date`.
    pub fn source_told(&self, date: Timestamp) {
        if let TimeSource::Machine(clocks, time) = &self.0 {
            let mut time = locked(time);
            time.source_told(date.timestamp_millis(), clocks.read());
        }
    }

    /// What is known of the machine's clock. A manual one is right by definition.
    #[must_use]
    pub fn state(&self) -> ClockState {
        match &self.0 {
            TimeSource::Machine(_, time) => locked(time).state(),
            TimeSource::Manual(_) => ClockState { is_settled: true, ..ClockState::default() },
        }
    }

    /// How far this clock has been set since it began: whoever holds a time from before adds what this rose by.
    #[must_use]
    pub fn stepped(&self) -> TimeDelta {
        match &self.0 {
            TimeSource::Machine(_, time) => TimeDelta::milliseconds(locked(time).stepped()),
            TimeSource::Manual(_) => TimeDelta::zero(),
        }
    }

    /// Moves a manual clock to `at`, or the wall clock of a simulated machine; this machine's is not ours to move, so it stays.
    pub fn set(&self, at: Timestamp) {
        match &self.0 {
            TimeSource::Manual(millis) => millis.store(at.timestamp_millis(), Ordering::SeqCst),
            TimeSource::Machine(MachineClocks::Simulated(reading), _) => locked(reading).system = at.timestamp_millis(),
            TimeSource::Machine(MachineClocks::This, _) => {}
        }
    }

    /// Lets time pass on a simulated machine, and on a manual clock.
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

/// Milliseconds since boot, those included in which the machine slept.
fn read_uptime() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}
