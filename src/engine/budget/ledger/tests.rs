//! Processes that ask, die and go by a wrong clock, at an API that counts for itself.

use std::collections::BTreeMap;

use chrono::Months;
use proptest::prelude::*;

use super::*;

/// What an API tells beside its data.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tells {
    Nothing,
    ItsTime,
    Quota,
}

#[derive(Clone, Debug)]
enum Step {
    /// Process, credits.
    Want(usize, u64),
    /// Process, how many at most; whether the API charges for them.
    Send(usize, usize, bool),
    /// Process, which of its requests, whether it can be read.
    Answer(usize, usize, bool),
    SettleUp(usize),
    Kill(usize),
    /// Hours.
    Pass(i64),
    /// Our clock is wrong by so many days from now on.
    Jump(i64),
    Cap(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let process = 0..2_usize;
    let step = prop_oneof![
        8 => (process.clone(), 1..9_u64).prop_map(|(process, credits)| Step::Want(process, credits)),
        8 => (process.clone(), 1..9_usize, prop::bool::weighted(0.9)).prop_map(|(a, b, c)| Step::Send(a, b, c)),
        8 => (process.clone(), 0..4_usize, prop::bool::weighted(0.7)).prop_map(|(a, b, c)| Step::Answer(a, b, c)),
        2 => process.clone().prop_map(Step::SettleUp),
        1 => process.prop_map(Step::Kill),
        3 => prop_oneof![4 => 1..40_i64, 1 => 40..400_i64].prop_map(Step::Pass),
        2 => (-20..45_i64).prop_map(Step::Jump),
        1 => (10..25_u64).prop_map(Step::Cap),
    ];
    prop::collection::vec(step, 1..120)
}

#[derive(Default)]
struct Process {
    owner: u64,
    at_hand: u64,
    settled: Vec<SettledRequest>,
    mark: u64,
    /// Sent and not answered: what the answer will say.
    under_way: Vec<(bool, SettledRequest)>,
}

struct Api {
    tells: Tells,
    now: Timestamp,
    anchor: Timestamp,
    charged: BTreeMap<Timestamp, u64>,
}

impl Api {
    fn period(&self) -> (Timestamp, Timestamp) {
        let start = |months| self.anchor.checked_add_months(Months::new(months)).expect("a date");
        let months = (0..600).find(|months| self.now < start(months + 1)).expect("a period");
        (start(months), start(months + 1))
    }

    /// Answers a request; how many were charged in the period, if it was.
    fn answer(&mut self, is_charged: bool) -> (Option<u64>, SettledRequest) {
        let (begin, end) = self.period();
        let count = self.charged.entry(begin).or_default();
        *count += u64::from(is_charged);
        let (used, charge) = (*count, if is_charged { Charge::One } else { Charge::Free });
        let number = |count: u64| i64::try_from(count).expect("small").into();
        let credit = wire::Credit { used: number(used), limit: number(1_000), reset_at: end.into(), ..Default::default() };
        let reported = (self.tells == Tells::Quota).then_some(credit);
        let told_at = (self.tells != Tells::Nothing && is_charged).then_some(self.now);
        (is_charged.then_some(used), SettledRequest { charge, reported, told_at, uncounted_before: 0 })
    }
}

struct World {
    api: Api,
    credit: CreditState,
    cap: u64,
    /// Our clock, less the true one.
    error: TimeDelta,
    /// The period in which our clock went wrong.
    jumped: Option<Timestamp>,
    processes: [Process; 2],
    owners: u64,
}

impl World {
    fn new(tells: Tells, cap: u64) -> Self {
        let now: Timestamp = "2026-03-10T15:00:00Z".parse().expect("a time");
        let anchor =
            if tells == Tells::Quota { now - TimeDelta::days(5) } else { "2026-03-01T00:00:00Z".parse().expect("a time") };
        let process = |owner| Process { owner, ..Process::default() };
        let api = Api { tells, now, anchor, charged: BTreeMap::new() };
        let credit = CreditState::default();
        Self { api, credit, cap, error: TimeDelta::zero(), jumped: None, processes: [process(1), process(2)], owners: 2 }
    }

    fn now(&self) -> Timestamp {
        self.api.now + self.error
    }

    fn book(&mut self, index: usize, want: u64, returned: u64) {
        let now = self.now();
        let process = &mut self.processes[index];
        let budget = config::BudgetSettings {
            monthly_credits: Some(self.cap),
            reserve: config::Percent(10.0),
            near: config::Span(std::time::Duration::from_secs(7 * 86_400)),
        };
        let booking = Booking { owner: process.owner, settled: std::mem::take(&mut process.settled), returned, want };
        let (credit, booked) = book(self.credit.clone(), &booking, &budget, now);
        process.mark = booked.uncounted_ever;
        if let Grant::Granted(credits) = booked.grant {
            process.at_hand += credits;
        }
        self.credit = credit;
    }

    /// Whether something is left to find out with whether our clock is right.
    fn is_left(&self) -> bool {
        self.api.charged.get(&self.api.period().0).is_none_or(|charged| *charged < self.cap)
    }

    fn set_right(&mut self) {
        self.error = TimeDelta::zero();
        self.book(0, 0, 0);
    }

    /// Fails where something goes beyond the cap.
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Want(index, credits) if self.processes[index].at_hand == 0 => self.book(index, credits, 0),
            Step::Send(index, most, is_charged) => {
                for _ in 0..self.processes[index].at_hand.min(most as u64) {
                    let (used, mut request) = self.api.answer(is_charged);
                    let process = &mut self.processes[index];
                    process.at_hand -= 1;
                    request.uncounted_before = process.mark;
                    process.under_way.push((is_charged, request));
                    let used = used.unwrap_or_default();
                    prop_assert!(used <= self.cap, "{used} of {} at {}: {:#?}", self.cap, self.api.now, self.credit);
                }
            }
            Step::Answer(index, which, is_readable) => {
                let process = &mut self.processes[index];
                if process.under_way.is_empty() {
                    return Ok(());
                }
                let (is_charged, request) = process.under_way.remove(which % process.under_way.len());
                // Where our clock is wrong, whether a period is over takes an answer that can be read.
                let is_readable = is_readable || self.error != TimeDelta::zero();
                let unread = SettledRequest { uncounted_before: request.uncounted_before, ..SettledRequest::default() };
                process.settled.push(if is_readable || !is_charged { request } else { unread });
            }
            Step::SettleUp(index) => {
                let process = &mut self.processes[index];
                let returned = std::mem::take(&mut process.at_hand);
                if returned > 0 || !process.settled.is_empty() {
                    self.book(index, 0, returned);
                }
            }
            Step::Kill(index) if self.error == TimeDelta::zero() => {
                self.owners += 1;
                self.processes[index] = Process { owner: self.owners, ..Process::default() };
            }
            Step::Pass(hours) => {
                // No request takes hours.
                for index in 0..2 {
                    while !self.processes[index].under_way.is_empty() {
                        self.take(Step::Answer(index, 0, true))?;
                    }
                    self.take(Step::SettleUp(index))?;
                }
                // A clock that is wrong is set right before the period ends, though nobody may look at it before that; where nothing is
                // left to find out with, within a day.
                let ends = self.api.now + TimeDelta::hours(hours) >= self.api.period().1;
                if hours > 0 && (ends || !self.is_left()) {
                    self.error = TimeDelta::zero();
                }
                self.api.now += TimeDelta::hours(hours);
                self.jumped = self.jumped.filter(|period| *period == self.api.period().0);
            }
            Step::Jump(days) if self.api.tells != Tells::Nothing => {
                self.take(Step::Pass(0))?;
                let period = self.api.period().0;
                // Once in a period it goes wrong for so long, and then right again.
                if self.error != TimeDelta::zero() {
                    self.set_right();
                } else if self.jumped.is_none() && !self.credit.unconfirmed && self.credit.told_at.is_some_and(|at| at >= period)
                {
                    (self.jumped, self.error) = (Some(period), TimeDelta::days(days));
                }
            }
            Step::Cap(cap) if self.error == TimeDelta::zero() => {
                self.take(Step::Pass(0))?;
                self.cap = cap;
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn a_clock_that_leaps_again_and_again_or_after_a_cap_was_lowered_costs_no_credit_beyond_the_cap() {
    for (lowered, leaps) in [(20, 3), (10, 2)] {
        let mut world = World::new(Tells::Quota, 20);
        let ask = |world: &mut World| {
            for step in [Step::Want(0, 1), Step::Send(0, 1, true), Step::Answer(0, 0, true), Step::SettleUp(0)] {
                world.take(step).expect("within the cap");
            }
        };
        (0..18).for_each(|_| ask(&mut world));
        world.cap = lowered;
        world.book(0, 0, 0);
        for _ in 0..leaps {
            world.error = TimeDelta::days(35);
            (0..3).for_each(|_| ask(&mut world));
            world.set_right();
            world.api.now += TimeDelta::hours(2);
        }
        // And a new period is used within a day of its beginning, though nobody looked meanwhile.
        world.api.now += TimeDelta::days(32);
        ask(&mut world);
        world.api.now += TimeDelta::days(1);
        ask(&mut world);
        assert_eq!(world.api.charged.len(), 2, "{:?}", world.api.charged);
    }
}

#[test]
fn a_cap_that_was_lowered_below_what_is_spent_counts_before_a_clock_that_leaps_is_believed() {
    let mut world = World::new(Tells::Quota, 20);
    let ask = |world: &mut World| {
        for step in [Step::Want(0, 1), Step::Send(0, 1, true), Step::Answer(0, 0, true), Step::SettleUp(0)] {
            world.take(step).expect("within the cap");
        }
    };
    (0..15).for_each(|_| ask(&mut world));
    // The daemon is off meanwhile.
    world.cap = 12;
    world.error = TimeDelta::days(35);
    ask(&mut world);
}

#[test]
fn what_was_spent_before_the_api_said_a_word_counts_until_it_tells_its_months() {
    let mut world = World::new(Tells::Quota, 10);
    let steps = [
        Step::Want(1, 3),
        Step::Send(1, 3, true),
        Step::Kill(1),
        // Into the next month of the calendar, in the same one of the API.
        Step::Pass(24 * 22),
        Step::Want(1, 6),
        Step::Send(1, 3, true),
        Step::Answer(1, 0, true),
        Step::SettleUp(1),
        Step::Want(1, 5),
        Step::Send(1, 8, true),
    ];
    for step in steps {
        world.take(step).expect("within the cap");
    }
    assert!(world.api.charged.values().all(|charged| (6..=10).contains(charged)), "{:?}", world.api.charged);
    let wants = Step::Want(0, 8);
    world.take(wants).expect("within the cap");
    assert!(world.processes[0].at_hand < 8);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever dies, cannot be read, comes late or goes by a wrong clock.
    #[test]
    fn no_credit_is_spent_beyond_the_cap(
        tells in prop::sample::select(vec![Tells::Nothing, Tells::ItsTime, Tells::Quota]),
        cap in 10..25_u64,
        steps in steps(),
    ) {
        let mut world = World::new(tells, cap);
        for step in steps {
            world.take(step)?;
        }
        // And once all is well, a new period is used.
        world.set_right();
        // Where no answer was ever read, the month before counts too, and a cap that was lowered may leave nothing of this one.
        let months = if period::is_unread(&world.credit) { 2 } else { 1 };
        for _ in 0..months * 4 * 32 {
            world.take(Step::Pass(6))?;
            world.take(Step::SettleUp(0))?;
        }
        // Nobody looked meanwhile, so a clock that may have leapt is doubted for a day where nothing was left to ask with.
        world.book(0, 0, 0);
        world.take(Step::Pass(25))?;
        let before = world.api.charged.get(&world.api.period().0).copied().unwrap_or_default();
        for _ in 0..3 {
            world.take(Step::Want(0, 1))?;
            world.take(Step::Send(0, 1, true))?;
            world.take(Step::Answer(0, 0, true))?;
            world.take(Step::SettleUp(0))?;
        }
        let after = world.api.charged.get(&world.api.period().0).copied().unwrap_or_default();
        prop_assert_eq!(after - before, 3, "{:#?}", world.credit);
    }
}
