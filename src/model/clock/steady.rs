//! Time that a wall clock set by mistake cannot move: pure, in milliseconds.
//!
//! Three witnesses say what time it is: the system's wall clock, the time since boot (which nobody can set), and the source, whose
//! answers carry a `Date`. Small steps of the wall clock are followed, for that is how it is kept right. A large one is doubted: time
//! goes on by the time since boot until the source has spoken, or until nobody has spoken against the wall clock for [`PATIENCE`].

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

/// How far two clocks may lie apart and still be called the same.
pub const TOLERANCE: TimeDelta = TimeDelta::minutes(5);

/// How long a wall clock that was set is doubted where the source says nothing.
pub const PATIENCE: TimeDelta = TimeDelta::hours(1);

/// 2026-01-01, UTC. A source that tells an earlier date has a clock that was never set: it is no witness.
const EARLIEST: i64 = 1_767_225_600_000;

/// What the machine's two clocks show at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock, unix milliseconds.
    pub system: i64,
    /// Milliseconds since boot.
    pub uptime: i64,
}

impl ClockReading {
    /// What this wall clock shows at another time since boot, if nobody sets it.
    fn after(self, uptime: i64) -> i64 {
        self.system.saturating_add(uptime.saturating_sub(self.uptime))
    }
}

/// A time that was borne out, to be gone on from after a restart of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// Of which boot the time since boot is; none where the system does not say.
    pub boot: Option<String>,
    /// What time it was, unix milliseconds.
    pub system: i64,
    /// Milliseconds since boot, then.
    pub uptime: i64,
    /// Whether the source agreed.
    pub is_agreed: bool,
}

impl ClockAnchor {
    /// Whether it is of this boot, as far as can be known: a machine that started anew has been up for less.
    #[must_use]
    pub fn is_of(&self, boot: Option<&str>, reading: ClockReading) -> bool {
        let is_same = self.boot.as_deref().zip(boot).is_none_or(|(one, other)| one == other);
        is_same && self.uptime <= reading.uptime
    }
}

/// What is known of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// By how much the machine's wall clock is ahead of the source's, as last told, where that is more than [`TOLERANCE`].
    pub ahead: Option<TimeDelta>,
    /// Whether the time we go by is the source's, since the wall clock is taken to be wrong.
    pub is_by_source: bool,
    /// Whether the time has been borne out by the source, or spoken against by nobody for [`PATIENCE`].
    pub is_settled: bool,
}

/// The time that is gone by.
#[derive(Clone, Debug)]
pub struct SteadyTime {
    /// Where the clock stood when it was last taken to be right: `system` is that time, whoever told it.
    anchor: ClockReading,
    began: i64,
    /// Since when, by the time since boot, the wall clock has been away from what was expected.
    doubted_since: Option<i64>,
    /// When the source and the time that we went by last agreed.
    agreed: Option<ClockReading>,
    state: ClockState,
    /// Sum of all steps that the time has made.
    stepped: i64,
}

impl SteadyTime {
    /// Begins with the wall clock as it stands.
    #[must_use]
    pub fn new(reading: ClockReading) -> Self {
        Self {
            anchor: reading,
            began: reading.uptime,
            doubted_since: None,
            agreed: None,
            state: ClockState::default(),
            stepped: 0,
        }
    }

    /// Goes on from a time that was borne out before a restart, in this boot: a wall clock that was set meanwhile is doubted as if the
    /// program had never stopped.
    pub fn resume(&mut self, kept: &ClockAnchor, reading: ClockReading) {
        self.anchor = ClockReading { system: kept.system, uptime: kept.uptime };
        self.agreed = kept.is_agreed.then_some(self.anchor);
        let ahead = reading.system.saturating_sub(self.anchor.after(reading.uptime));
        let ahead = (!is_near(ahead, 0)).then(|| TimeDelta::milliseconds(ahead));
        self.state = ClockState { ahead, is_by_source: false, is_settled: true };
    }

    /// As [`resume`](Self::resume), on a machine that was started anew: nobody knows how long it was off, yet it cannot be earlier
    /// than it was.
    pub fn resume_after_boot(&mut self, kept: &ClockAnchor, reading: ClockReading) {
        let behind = kept.system.saturating_sub(reading.system);
        if kept.is_agreed && behind > TOLERANCE.num_milliseconds() {
            self.anchor = ClockReading { system: kept.system, uptime: reading.uptime };
            self.state.ahead = Some(TimeDelta::milliseconds(-behind));
        }
    }

    /// The time that is gone by, for a later [`resume`](Self::resume); none before it was borne out. The boot is the caller's to add.
    #[must_use]
    pub fn anchor(&self) -> Option<ClockAnchor> {
        let ClockReading { system, uptime } = self.anchor;
        self.state.is_settled.then_some(ClockAnchor { boot: None, system, uptime, is_agreed: self.agreed.is_some() })
    }

    /// The time now, unix milliseconds.
    pub fn now(&mut self, reading: ClockReading) -> i64 {
        self.state.is_settled |= reading.uptime.saturating_sub(self.began) > PATIENCE.num_milliseconds();
        let expected = self.anchor.after(reading.uptime);
        if is_near(reading.system, expected) {
            // Our own time was the source's until the wall clock came right by itself.
            if std::mem::take(&mut self.state.is_by_source) {
                self.state.ahead = None;
            }
            self.doubted_since = None;
            self.anchor = reading;
            return reading.system;
        }
        let since = *self.doubted_since.get_or_insert(reading.uptime);
        if !self.state.is_by_source && reading.uptime.saturating_sub(since) > PATIENCE.num_milliseconds() {
            self.go_by(reading.system, reading);
            return reading.system;
        }
        expected
    }

    /// The source answered just now, and told `date` (unix milliseconds).
    pub fn source_told(&mut self, date: i64, reading: ClockReading) {
        if date < EARLIEST {
            return;
        }
        let is_ours_right = is_near(reading.system, date);
        // Where both agreed before, the time since boot tells which of them was set since.
        let projected = self.agreed.map(|agreed| agreed.after(reading.uptime));
        let is_theirs_wrong = projected.is_some_and(|projected| is_near(reading.system, projected) && !is_near(date, projected));
        self.state = ClockState {
            ahead: (!is_ours_right).then(|| TimeDelta::milliseconds(reading.system.saturating_sub(date))),
            is_by_source: !is_ours_right && !is_theirs_wrong,
            is_settled: true,
        };
        self.go_by(if self.state.is_by_source { date } else { reading.system }, reading);
        if !is_theirs_wrong {
            self.agreed = Some(self.anchor);
        }
    }

    /// What is known of the wall clock.
    #[must_use]
    pub fn state(&self) -> ClockState {
        self.state
    }

    /// How far the time has been set since it began, milliseconds: whoever holds a time from before adds what this rose by.
    #[must_use]
    pub fn stepped(&self) -> i64 {
        self.stepped
    }

    fn go_by(&mut self, time: i64, reading: ClockReading) {
        let expected = self.anchor.after(reading.uptime);
        if !is_near(time, expected) {
            self.stepped = self.stepped.saturating_add(time.saturating_sub(expected));
        }
        self.doubted_since = None;
        self.anchor = ClockReading { system: time, uptime: reading.uptime };
    }
}

fn is_near(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= TOLERANCE.num_milliseconds().unsigned_abs()
}

#[cfg(test)]
mod tests;
