use proptest::prelude::*;

use super::*;

const HOUR: i64 = 3_600_000;
const NOON: i64 = 1_795_000_000_000;

/// A machine beside the true time; the source tells the true time.
struct Machine {
    truth: i64,
    reading: ClockReading,
    time: SteadyTime,
}

impl Machine {
    fn that_is(ahead: i64) -> Self {
        let reading = ClockReading { system: NOON + ahead, uptime: 7 };
        Self { truth: NOON, reading, time: SteadyTime::new(reading) }
    }

    fn pass(&mut self, millis: i64) {
        self.truth += millis;
        self.reading.system += millis;
        self.reading.uptime += millis;
    }

    fn set(&mut self, ahead: i64) {
        self.reading.system = self.truth + ahead;
    }

    fn asks(&mut self) {
        self.time.source_told(self.truth, self.reading);
    }

    /// How far the time that is gone by is ahead of the true one.
    fn error(&mut self) -> i64 {
        self.time.now(self.reading) - self.truth
    }
}

#[test]
fn a_clock_set_back_by_eight_hours_moves_nothing_and_is_told() {
    let mut machine = Machine::that_is(0);
    machine.asks();
    machine.pass(HOUR);
    machine.set(-8 * HOUR);
    assert_eq!(machine.error(), 0);
    assert_eq!(machine.time.state().ahead, None, "nobody but the wall clock has spoken yet");
    machine.pass(HOUR / 2);
    machine.asks();
    assert_eq!(machine.error(), 0);
    let state = machine.time.state();
    assert_eq!((state.ahead, state.is_by_source), (Some(TimeDelta::hours(-8)), true));
    machine.pass(100 * HOUR);
    assert_eq!(machine.error(), 0, "however long it stays wrong");
    machine.set(0);
    assert_eq!(machine.error(), 0);
    assert_eq!(machine.time.state(), ClockState { ahead: None, is_by_source: false, is_settled: true });
}

#[test]
fn one_look_at_a_clock_ten_years_ahead_is_not_believed() {
    let mut machine = Machine::that_is(0);
    machine.set(10 * 365 * 24 * HOUR);
    assert_eq!(machine.error(), 0);
    machine.set(0);
    machine.pass(HOUR);
    assert_eq!((machine.error(), machine.time.stepped()), (0, 0));
}

#[test]
fn a_machine_that_starts_wrong_is_set_right_by_the_first_answer() {
    let mut machine = Machine::that_is(-5 * HOUR);
    assert_eq!(machine.error(), -5 * HOUR, "it cannot know");
    assert!(!machine.time.state().is_settled);
    machine.asks();
    assert_eq!((machine.error(), machine.time.stepped()), (0, 5 * HOUR));
    assert!(machine.time.state().is_settled);
}

#[test]
fn a_machine_that_was_paused_follows_once_the_source_bears_it_out() {
    let mut machine = Machine::that_is(0);
    machine.asks();
    // The time since boot stood still, the wall clock was put right afterwards.
    machine.truth += 3 * HOUR;
    machine.reading.system += 3 * HOUR;
    assert_eq!(machine.error(), -3 * HOUR, "doubted at first");
    machine.asks();
    assert_eq!((machine.error(), machine.time.state().ahead), (0, None));
}

#[test]
fn without_a_word_of_the_source_the_wall_clock_is_believed_after_an_hour() {
    let mut machine = Machine::that_is(0);
    machine.set(2 * HOUR);
    assert_eq!(machine.error(), 0);
    machine.pass(HOUR + 1);
    assert_eq!(machine.error(), 2 * HOUR);
    assert!(machine.time.state().is_settled);
}

#[test]
fn a_source_whose_own_clock_is_set_wrong_moves_nothing() {
    let mut machine = Machine::that_is(0);
    machine.asks();
    machine.pass(HOUR);
    machine.time.source_told(machine.truth + 24 * HOUR, machine.reading);
    assert_eq!(machine.error(), 0);
    let state = machine.time.state();
    assert_eq!((state.ahead, state.is_by_source), (Some(TimeDelta::hours(-24)), false));
    machine.asks();
    assert_eq!(machine.time.state().ahead, None);
    machine.time.source_told(0, machine.reading);
    assert_eq!(machine.time.state().ahead, None, "1970 is no witness");
}

proptest! {
    /// Whoever sets the wall clock however often: where the source was heard since, the time is true to the tolerance, and between
    /// two words of the source it runs as evenly as the time since boot, up to what a settled wall clock may be off.
    #[test]
    fn the_time_is_true_whenever_the_source_has_been_heard(
        ahead in -100 * HOUR..100 * HOUR,
        steps in proptest::collection::vec((0..4u8, 1..2 * HOUR, -90_000 * HOUR..90_000 * HOUR), 1..60),
    ) {
        let mut machine = Machine::that_is(ahead);
        let mut heard_at = None;
        let mut held = None;
        for (what, span, offset) in steps {
            match what {
                0 => machine.set(offset),
                1 => machine.set(offset % (2 * 60_000)),
                2 => {
                    machine.asks();
                    heard_at = Some(machine.truth);
                }
                _ => machine.pass(span % (HOUR / 2)),
            }
            let error = machine.error();
            if heard_at.is_some_and(|at| machine.truth - at < HOUR) {
                prop_assert!(error.abs() <= 2 * TOLERANCE.num_milliseconds(), "off by {error} ms");
            }
            let stepped = machine.time.stepped();
            if let Some((before, error_before)) = held.replace((stepped, error)) {
                let crept = error - error_before - (stepped - before);
                prop_assert!(crept.abs() <= 2 * TOLERANCE.num_milliseconds(), "moved by {crept} ms without a step");
            }
        }
    }
}

#[test]
fn a_start_goes_on_by_the_time_of_the_run_before_it() {
    let mut machine = Machine::that_is(0);
    assert_eq!(machine.time.anchor(), None, "nobody has borne it out");
    machine.asks();
    machine.pass(HOUR);
    let kept = machine.time.anchor().expect("borne out");
    machine.pass(HOUR);
    machine.set(87_600 * HOUR);
    machine.time = SteadyTime::new(machine.reading);
    machine.time.resume(&kept, machine.reading);
    assert_eq!(machine.error(), 0);
    assert_eq!(machine.time.state().ahead, Some(TimeDelta::hours(87_600)), "the incident goes on");
    // Nobody speaks against the wall clock for an hour: then it is believed, as by a program that never stopped.
    machine.pass(HOUR + HOUR / 60);
    assert_eq!(machine.error(), 87_600 * HOUR);
}

#[test]
fn a_machine_that_started_anew_begins_anew() {
    let kept = |boot: Option<&str>| ClockAnchor { boot: boot.map(str::to_owned), system: NOON, uptime: 1_000, is_agreed: true };
    let reading = |uptime| ClockReading { system: NOON, uptime };
    assert!(kept(Some("a")).is_of(Some("a"), reading(2_000)));
    assert!(!kept(Some("a")).is_of(Some("b"), reading(2_000)));
    assert!(kept(None).is_of(Some("b"), reading(2_000)), "a system that hides it");
    assert!(!kept(None).is_of(None, reading(999)), "it has been up for less than then");
}

#[test]
fn after_a_boot_it_is_never_earlier_than_it_was() {
    let kept = ClockAnchor { boot: None, system: NOON, uptime: 50 * HOUR, is_agreed: true };
    for (shown, expected) in [(NOON + 9_000 * HOUR, NOON + 9_000 * HOUR), (NOON - 9_000 * HOUR, NOON)] {
        let reading = ClockReading { system: shown, uptime: 7 };
        let mut time = SteadyTime::new(reading);
        assert!(!kept.is_of(None, reading));
        time.resume_after_boot(&kept, reading);
        assert_eq!(time.now(reading), expected, "a battery that is empty sets a clock back");
    }
}
