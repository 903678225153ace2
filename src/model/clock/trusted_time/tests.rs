use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3_600_000;
const NOON: i64 = 1_795_000_000_000;

/// A machine whose clock can differ from the true time, which the source reports.
struct Machine {
    truth: i64,
    reading: ClockReading,
    time: TrustedTime,
}

impl Machine {
    fn ahead_by(ahead: i64) -> Self {
        let reading = ClockReading { system: NOON + ahead, uptime: 7 };
        Self { truth: NOON, reading, time: TrustedTime::new(reading) }
    }

    fn pass(&mut self, millis: i64) {
        self.truth += millis;
        self.reading.system += millis;
        self.reading.uptime += millis;
    }

    fn set(&mut self, ahead: i64) {
        self.reading.system = self.truth + ahead;
    }

    fn polls(&mut self) {
        self.time.record_source_time(self.truth, self.reading);
    }

    /// Returns by how much the trusted time is ahead of the true one.
    fn error(&mut self) -> i64 {
        self.time.now(self.reading) - self.truth
    }
}

#[test]
fn clock_set_back_eight_hours_is_reported_and_ignored() {
    let mut machine = Machine::ahead_by(0);
    machine.polls();
    machine.pass(HOUR);
    machine.set(-8 * HOUR);
    assert_eq!(machine.error(), 0);
    assert_eq!(machine.time.state().ahead, None, "only the wall clock is known yet");
    machine.pass(HOUR / 2);
    machine.polls();
    assert_eq!(machine.error(), 0);
    let state = machine.time.state();
    assert_eq!((state.ahead, state.is_by_source), (Some(TimeDelta::hours(-8)), true));
    machine.pass(100 * HOUR);
    assert_eq!(machine.error(), 0, "however long it stays wrong");
    machine.set(0);
    assert_eq!(machine.error(), 0);
    assert_eq!(machine.time.state(), ClockState { is_settled: true, ..ClockState::default() });
}

#[test]
fn single_reading_ten_years_ahead_is_ignored() {
    let mut machine = Machine::ahead_by(0);
    machine.set(10 * 365 * 24 * HOUR);
    assert_eq!(machine.error(), 0);
    machine.set(0);
    machine.pass(HOUR);
    assert_eq!((machine.error(), machine.time.total_correction()), (0, 0));
}

#[test]
fn first_source_time_corrects_wrong_clock_at_start() {
    let mut machine = Machine::ahead_by(-5 * HOUR);
    assert_eq!(machine.error(), -5 * HOUR, "it cannot know");
    assert!(!machine.time.state().is_settled);
    machine.polls();
    assert_eq!((machine.error(), machine.time.total_correction()), (0, 5 * HOUR));
    assert!(machine.time.state().is_settled);
}

#[test]
fn paused_machine_follows_after_source_confirms() {
    let mut machine = Machine::ahead_by(0);
    machine.polls();
    // The time since boot did not advance, and the wall clock was corrected afterward.
    machine.truth += 3 * HOUR;
    machine.reading.system += 3 * HOUR;
    assert_eq!(machine.error(), -3 * HOUR, "not trusted at first");
    machine.polls();
    assert_eq!((machine.error(), machine.time.state().ahead), (0, None));
}

#[test]
fn wall_clock_is_trusted_after_an_hour_without_source() {
    let mut machine = Machine::ahead_by(0);
    machine.set(2 * HOUR);
    assert_eq!(machine.error(), 0);
    machine.pass(HOUR + 1);
    assert_eq!(machine.error(), 2 * HOUR);
    assert!(machine.time.state().is_settled);
}

#[test]
fn wrong_source_clock_is_ignored() {
    let mut machine = Machine::ahead_by(0);
    machine.polls();
    machine.pass(HOUR);
    machine.time.record_source_time(machine.truth + 24 * HOUR, machine.reading);
    assert_eq!(machine.error(), 0);
    let state = machine.time.state();
    assert_eq!((state.ahead, state.is_by_source), (Some(TimeDelta::hours(-24)), false));
    machine.polls();
    assert_eq!(machine.time.state().ahead, None);
    machine.time.record_source_time(0, machine.reading);
    assert_eq!(machine.time.state().ahead, None, "1970 is ignored");
}

proptest! {
    /// Sets the wall clock at random. After each report of the source, the time is right within the tolerance. Between two reports it runs
    /// as evenly as the time since boot, up to the error that a settled wall clock may have.
    #[test]
    fn time_is_right_after_each_source_time(
        ahead in -100 * HOUR..100 * HOUR,
        steps in proptest::collection::vec((0..4u8, 1..2 * HOUR, -90_000 * HOUR..90_000 * HOUR), 1..60),
    ) {
        let mut machine = Machine::ahead_by(ahead);
        let mut received_at = None;
        let mut held = None;
        for (what, span, offset) in steps {
            match what {
                0 => machine.set(offset),
                1 => machine.set(offset % (2 * 60_000)),
                2 => {
                    machine.polls();
                    received_at = Some(machine.truth);
                }
                _ => machine.pass(span % (HOUR / 2)),
            }
            let error = machine.error();
            if received_at.is_some_and(|at| machine.truth - at < HOUR) {
                prop_assert!(error.abs() <= 2 * TOLERANCE.num_milliseconds(), "off by {error} ms");
            }
            let total_correction = machine.time.total_correction();
            if let Some((before, error_before)) = held.replace((total_correction, error)) {
                let crept = error - error_before - (total_correction - before);
                prop_assert!(crept.abs() <= 2 * TOLERANCE.num_milliseconds(), "moved by {crept} ms without a step");
            }
        }
    }
}

#[test]
fn restart_continues_with_saved_time() {
    let mut machine = Machine::ahead_by(0);
    assert_eq!(machine.time.anchor(), None, "not confirmed yet");
    machine.polls();
    machine.pass(HOUR);
    let kept = machine.time.anchor().expect("a confirmed time");
    machine.pass(HOUR);
    machine.set(87_600 * HOUR);
    machine.time = TrustedTime::new(machine.reading);
    machine.time.resume(&kept, machine.reading);
    assert_eq!(machine.error(), 0);
    assert_eq!(machine.time.state().ahead, Some(TimeDelta::hours(87_600)), "the incident goes on");
    // Without a contradiction for an hour, the wall clock is trusted, as if the program had not stopped.
    machine.pass(HOUR + HOUR / 60);
    assert_eq!(machine.error(), 87_600 * HOUR);
}

#[test]
fn resumed_time_is_not_confirmed() {
    let mut machine = Machine::ahead_by(0);
    machine.polls();
    let kept = machine.time.anchor().expect("a confirmed time");
    machine.set(20 * 24 * HOUR);
    machine.time = TrustedTime::new(machine.reading);
    machine.time.resume(&kept, machine.reading);
    machine.pass(HOUR / 2);
    assert_eq!(machine.error(), 0);
    let state = machine.time.state();
    assert_eq!((state.is_settled, state.is_resumed), (false, true), "two clocks contradict each other");
    assert_eq!(machine.time.anchor(), None, "it is not stored again");
    machine.polls();
    assert_eq!((machine.time.state().is_settled, machine.time.state().is_resumed), (true, false));

    // The wall clock was right all the time.
    machine.set(0);
    machine.time = TrustedTime::new(machine.reading);
    machine.time.resume(&kept, machine.reading);
    assert_eq!(machine.error(), 0);
    assert_eq!(machine.time.state(), ClockState::default(), "no contradiction, but no confirmation either");
}

#[test]
fn stored_time_belongs_to_machine_and_boot() {
    let id = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let kept = |machine: &str, boot: &str| ClockAnchor {
        machine: id(machine),
        boot: id(boot),
        system: NOON,
        uptime: 1_000,
        is_agreed: true,
    };
    let origin = |anchor: ClockAnchor, machine: &str, boot: &str, uptime| {
        anchor.origin(&MachineBoot { machine: id(machine), boot: id(boot) }, ClockReading { system: NOON, uptime })
    };
    assert_eq!(origin(kept("a", "1"), "a", "1", 2_000), AnchorOrigin::ThisBoot);
    assert_eq!(origin(kept("a", "1"), "a", "2", 2_000), AnchorOrigin::EarlierBoot);
    assert_eq!(origin(kept("a", "1"), "a", "1", 999), AnchorOrigin::EarlierBoot, "the machine was reset to a snapshot");
    for (kept_boot, boot) in [("", "1"), ("1", ""), ("", "")] {
        assert_eq!(origin(kept("a", kept_boot), "a", boot, 2_000), AnchorOrigin::EarlierBoot, "an unknown boot is another one");
    }
    for (of, here) in [("a", "b"), ("", "a"), ("a", ""), ("", "")] {
        assert_eq!(origin(kept(of, "1"), here, "1", 2_000), AnchorOrigin::Elsewhere, "{of:?} on {here:?}");
    }
    let earlier = r#"{"boot":null,"system":1,"uptime":2,"is_agreed":true}"#;
    let earlier: ClockAnchor = serde_json::from_str(earlier).expect("an anchor of an earlier build");
    assert_eq!(origin(earlier, "a", "1", 2_000), AnchorOrigin::Elsewhere);
}

#[test]
fn time_after_boot_is_not_before_saved_time() {
    let kept = ClockAnchor { machine: None, boot: None, system: NOON, uptime: 50 * HOUR, is_agreed: true };
    for (shown, expected) in [(NOON + 9_000 * HOUR, NOON + 9_000 * HOUR), (NOON - 9_000 * HOUR, NOON)] {
        let reading = ClockReading { system: shown, uptime: 7 };
        let mut time = TrustedTime::new(reading);
        time.resume_after_boot(&kept, reading);
        assert_eq!(time.now(reading), expected, "a battery that is empty sets a clock back");
        assert_eq!(time.state().is_resumed, shown < NOON);
    }
}

#[test]
fn followed_wall_clock_is_not_confirmed_by_earlier_response() {
    let mut machine = Machine::ahead_by(0);
    machine.polls();
    machine.pass(HOUR);
    machine.set(87_600 * HOUR);
    machine.error();
    machine.pass(2 * HOUR);
    assert_eq!(machine.error(), 87_600 * HOUR, "the source is silent");
    assert!(!machine.time.anchor().expect("settled").is_agreed, "a reboot must not continue in 2036");
    machine.polls();
    assert!(machine.time.anchor().expect("settled").is_agreed);
}

#[test]
fn taking_over_requires_confirmation() {
    let mut machine = Machine::ahead_by(900 * 24 * HOUR);
    machine.pass(2 * HOUR);
    machine.error();
    assert!(machine.time.state().is_settled, "a standby waited for an hour");
    machine.time.require_confirmation(machine.reading);
    machine.pass(HOUR / 2);
    machine.error();
    assert!(!machine.time.state().is_settled);
    machine.polls();
    assert!(machine.time.state().is_settled);
    assert_eq!(machine.error(), 0);
}
