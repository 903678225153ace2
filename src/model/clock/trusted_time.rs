//! A time that a wrongly set wall clock does not affect. In milliseconds; reads no clock.
//!
//! There are three clocks: the system's wall clock, the time since boot, which cannot be set, and the source's clock, which its
//! responses report in `Date`. Small steps of the wall clock are followed, because time synchronization makes them. After a large
//! step, the time continues by the time since boot until the source reports the time, or until [`PATIENCE`] passes without a
//! contradiction.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::boot::MachineBoot;

/// The maximum difference of two clocks that count as equal.
pub const TOLERANCE: TimeDelta = TimeDelta::minutes(5);

/// The maximum difference of the clocks of two instances that both count as right. Each may differ from the source's by [`TOLERANCE`].
pub const MAX_CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(10);

/// The time after which a wall clock that was set is trusted without a report of the source.
pub const PATIENCE: TimeDelta = TimeDelta::hours(1);

/// 2026-01-01 UTC in milliseconds. A source that reports an earlier date has a clock that was never set, and is ignored.
const EARLIEST: i64 = 1_767_225_600_000;

/// The two clocks of the machine at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock in milliseconds since 1970.
    pub system: i64,
    pub uptime: i64,
}

impl ClockReading {
    /// Returns the wall clock at another time since boot, in milliseconds since 1970, provided that it is not set in between.
    fn system_at(self, uptime: i64) -> i64 {
        self.system.saturating_add(uptime.saturating_sub(self.uptime))
    }
}

/// A confirmed time, stored for a restart of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// The id of the machine. `None` in databases of earlier builds.
    #[serde(default)]
    pub machine: Option<String>,
    /// The id of the boot that `uptime` counts from; `None` if the system hides it.
    pub boot: Option<String>,
    /// The time in milliseconds since 1970.
    pub system: i64,
    /// Milliseconds since boot at that time.
    pub uptime: i64,
    /// Whether the source confirmed the time.
    pub is_agreed: bool,
}

/// The origin of a stored time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnchorOrigin {
    /// This machine, since it booted.
    ThisBoot,
    /// This machine, in an earlier or an unknown boot.
    EarlierBoot,
    /// Another machine, or an unknown one.
    Elsewhere,
}

impl ClockAnchor {
    /// Returns the origin of the time, as seen on the machine and in the boot `here`. An unknown id equals no other: two machines that
    /// share a database must never continue each other's time.
    pub(super) fn origin(&self, here: &MachineBoot, reading: ClockReading) -> AnchorOrigin {
        let is_same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
        if !is_same(&self.machine, &here.machine) {
            AnchorOrigin::Elsewhere
        } else if is_same(&self.boot, &here.boot) && self.uptime <= reading.uptime {
            AnchorOrigin::ThisBoot
        } else {
            AnchorOrigin::EarlierBoot
        }
    }
}

/// The state of the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockState {
    /// The time by which the machine's wall clock is ahead of the source's clock, if that is more than [`TOLERANCE`].
    pub ahead: Option<TimeDelta>,
    /// Whether the trusted time is the source's, because the wall clock is wrong.
    pub is_by_source: bool,
    /// Whether the time is confirmed: by the source, or by [`PATIENCE`] without a contradiction.
    pub is_settled: bool,
    /// Whether the time continues from a stored one and contradicts the wall clock. Nothing may be decided by it until one of the two is
    /// confirmed.
    pub is_resumed: bool,
    /// Whether the time contradicts what another instance stored. Nothing may be decided by it until it is confirmed.
    pub is_contradicted: bool,
}

#[derive(Clone, Debug)]
pub struct TrustedTime {
    /// The last instant at which the time was known to be right.
    anchor: ClockReading,
    began: i64,
    /// The uptime from which the wall clock differs from the expected time.
    doubted_since: Option<i64>,
    /// The last instant at which the source agreed with the trusted time.
    agreed: Option<ClockReading>,
    state: ClockState,
    /// The sum of all steps of the trusted time, in milliseconds.
    total_correction: i64,
}

impl TrustedTime {
    /// Starts with the current wall clock.
    #[must_use]
    pub fn new(reading: ClockReading) -> Self {
        Self {
            anchor: reading,
            began: reading.uptime,
            doubted_since: None,
            agreed: None,
            state: ClockState::default(),
            total_correction: 0,
        }
    }

    /// Continues from a time that was confirmed before a restart of the program. A wall clock that was set since is not trusted, as
    /// if the program had not stopped. The time counts as confirmed only once it is confirmed again.
    pub fn resume(&mut self, kept: &ClockAnchor, reading: ClockReading) {
        self.anchor = ClockReading { system: kept.system, uptime: kept.uptime };
        self.agreed = kept.is_agreed.then_some(self.anchor);
        let ahead = reading.system.saturating_sub(self.anchor.system_at(reading.uptime));
        let ahead = (!is_near(ahead, 0)).then(|| TimeDelta::milliseconds(ahead));
        self.state = ClockState { ahead, is_resumed: ahead.is_some(), ..ClockState::default() };
    }

    /// Continues after a reboot. The time that the machine was off is unknown, but the time cannot be earlier than before.
    pub fn resume_after_boot(&mut self, kept: &ClockAnchor, reading: ClockReading) {
        let behind = kept.system.saturating_sub(reading.system);
        if kept.is_agreed && behind > TOLERANCE.num_milliseconds() {
            self.anchor = ClockReading { system: kept.system, uptime: reading.uptime };
            self.state.ahead = Some(TimeDelta::milliseconds(-behind));
            self.state.is_resumed = true;
        }
    }

    /// Makes the time count as not confirmed, as after a start.
    pub fn require_confirmation(&mut self, reading: ClockReading) {
        self.began = reading.uptime;
        self.state.is_settled = false;
    }

    /// Records that another instance stored a time that contradicts this one.
    pub fn contradict(&mut self) {
        self.state.is_contradicted = !self.state.is_settled;
    }

    /// Returns the anchor for a later [`resume`](Self::resume), or `None` if the time is not confirmed yet. The caller adds the
    /// ids of the machine and the boot.
    #[must_use]
    pub fn anchor(&self) -> Option<ClockAnchor> {
        let ClockReading { system, uptime } = self.anchor;
        // A wall clock that was followed because the source was silent is not confirmed by an earlier response.
        let is_agreed = self.agreed.is_some_and(|agreed| is_near(agreed.system_at(uptime), system));
        self.state.is_settled.then_some(ClockAnchor { machine: None, boot: None, system, uptime, is_agreed })
    }

    /// Returns the trusted time in milliseconds since 1970.
    pub fn now(&mut self, reading: ClockReading) -> i64 {
        let now = self.trusted(reading);
        let is_patient = reading.uptime.saturating_sub(self.began) > PATIENCE.num_milliseconds();
        self.state.is_settled |= is_patient && self.doubted_since.is_none();
        self.state.is_contradicted &= !self.state.is_settled;
        now
    }

    fn trusted(&mut self, reading: ClockReading) -> i64 {
        let expected = self.anchor.system_at(reading.uptime);
        if is_near(reading.system, expected) {
            // The wall clock agrees again with the time that was trusted instead: the source's, or a stored one.
            let was_by_source = std::mem::take(&mut self.state.is_by_source);
            let was_resumed = std::mem::take(&mut self.state.is_resumed);
            if was_by_source || was_resumed {
                self.state.ahead = None;
            }
            self.doubted_since = None;
            self.anchor = reading;
            return reading.system;
        }
        let since = *self.doubted_since.get_or_insert(reading.uptime);
        if !self.state.is_by_source && reading.uptime.saturating_sub(since) > PATIENCE.num_milliseconds() {
            self.follow(reading.system, reading);
            return reading.system;
        }
        expected
    }

    /// Records the time that the source reported just now, in milliseconds since 1970.
    pub fn record_source_time(&mut self, date: i64, reading: ClockReading) {
        if date < EARLIEST {
            return;
        }
        let is_ours_right = is_near(reading.system, date);
        // If both agreed before, the time since boot shows which of them was set since.
        let projected = self.agreed.map(|agreed| agreed.system_at(reading.uptime));
        let is_theirs_wrong = projected.is_some_and(|projected| is_near(reading.system, projected) && !is_near(date, projected));
        self.state = ClockState {
            ahead: (!is_ours_right).then(|| TimeDelta::milliseconds(reading.system.saturating_sub(date))),
            is_by_source: !is_ours_right && !is_theirs_wrong,
            is_settled: true,
            is_resumed: false,
            is_contradicted: false,
        };
        self.follow(if self.state.is_by_source { date } else { reading.system }, reading);
        if !is_theirs_wrong {
            self.agreed = Some(self.anchor);
        }
    }

    #[must_use]
    pub fn state(&self) -> ClockState {
        self.state
    }

    /// Returns the sum of all corrections of the time since the start, in milliseconds. To correct an earlier instant, add the difference
    /// between the sum now and the sum then.
    #[must_use]
    pub fn total_correction(&self) -> i64 {
        self.total_correction
    }

    fn follow(&mut self, time: i64, reading: ClockReading) {
        let expected = self.anchor.system_at(reading.uptime);
        if !is_near(time, expected) {
            self.total_correction = self.total_correction.saturating_add(time.saturating_sub(expected));
        }
        self.doubted_since = None;
        self.state.is_resumed = false;
        self.anchor = ClockReading { system: time, uptime: reading.uptime };
    }
}

fn is_near(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= TOLERANCE.num_milliseconds().unsigned_abs()
}

#[cfg(test)]
mod tests;
