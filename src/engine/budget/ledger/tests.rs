//! Simulates processes that send requests, die, and have a wrong clock, with an API that counts credits independently.

use std::collections::BTreeMap;

use chrono::Months;
use proptest::prelude::*;

use super::*;

/// The metadata that the API reports.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ApiReports {
    Nothing,
    Time,
    Quota,
}

#[derive(Clone, Debug)]
enum Step {
    /// Reserve credits: process, credits.
    Reserve(usize, u64),
    /// Send requests: process, maximum number, whether the API charges for them.
    Send(usize, usize, bool),
    /// Receive a response: process, index of the request, whether the response is readable.
    Respond(usize, usize, bool),
    /// Settle the requests of a process and return its credits.
    Settle(usize),
    Kill(usize),
    /// Let so many hours pass while the processes run.
    Pass(i64),
    /// Let so many hours pass while the machine sleeps.
    Sleep(i64),
    /// Set our clock wrong by so many days, or correct a wrong clock.
    Jump(i64),
    SetCap(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let process = 0..2_usize;
    let step = prop_oneof![
        8 => (process.clone(), 1..9_u64).prop_map(|(process, credits)| Step::Reserve(process, credits)),
        8 => (process.clone(), 1..9_usize, prop::bool::weighted(0.9)).prop_map(|(a, b, c)| Step::Send(a, b, c)),
        8 => (process.clone(), 0..4_usize, prop::bool::weighted(0.7)).prop_map(|(a, b, c)| Step::Respond(a, b, c)),
        2 => process.clone().prop_map(Step::Settle),
        1 => process.prop_map(Step::Kill),
        3 => prop_oneof![4 => 1..40_i64, 1 => 40..400_i64].prop_map(Step::Pass),
        1 => prop_oneof![1..40_i64, 400..900_i64].prop_map(Step::Sleep),
        2 => (-20..45_i64).prop_map(Step::Jump),
        1 => (10..25_u64).prop_map(Step::SetCap),
    ];
    prop::collection::vec(step, 1..120)
}

#[derive(Default)]
struct Process {
    owner: u64,
    available: u64,
    /// The time of the last reservation.
    reserved_at: Timestamp,
    settled: Vec<SettledRequest>,
    uncounted_ever: u64,
    /// Running requests: whether the API charges for it, and the result when it finishes.
    running: Vec<(bool, SettledRequest)>,
}

impl Process {
    fn has_credits(&self, now: Timestamp) -> bool {
        self.available > 0 && is_fresh(self.reserved_at, now)
    }

    fn drop_stale(&mut self, now: Timestamp) {
        if !is_fresh(self.reserved_at, now) {
            self.available = 0;
        }
    }
}

struct Api {
    reports: ApiReports,
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

    /// Responds to a request. Returns the credits used in the period if the request was charged.
    fn response(&mut self, is_charged: bool) -> (Option<u64>, SettledRequest) {
        let (begin, end) = self.period();
        let count = self.charged.entry(begin).or_default();
        *count += u64::from(is_charged);
        let (used, charge) = (*count, if is_charged { Charge::One } else { Charge::Free });
        let number = |count: u64| i64::try_from(count).expect("small").into();
        let credit = wire::Credit { used: number(used), limit: number(1_000), reset_at: end.into(), ..Default::default() };
        let reported = (self.reports == ApiReports::Quota).then_some(credit);
        let api_time = (self.reports != ApiReports::Nothing && is_charged).then_some(self.now);
        (is_charged.then_some(used), SettledRequest { charge, reported, api_time, ..SettledRequest::default() })
    }
}

struct World {
    api: Api,
    credit: CreditState,
    cap: u64,
    /// Our clock minus the true time.
    error: TimeDelta,
    /// The period in which our clock jumped.
    jumped: Option<Timestamp>,
    processes: [Process; 2],
    owners: u64,
}

impl World {
    fn new(reports: ApiReports, cap: u64) -> Self {
        let now: Timestamp = "2026-03-10T15:00:00Z".parse().expect("a time");
        let anchor =
            if reports == ApiReports::Quota { now - TimeDelta::days(5) } else { "2026-03-01T00:00:00Z".parse().expect("a time") };
        let process = |owner| Process { owner, ..Process::default() };
        let api = Api { reports, now, anchor, charged: BTreeMap::new() };
        let credit = CreditState::default();
        Self { api, credit, cap, error: TimeDelta::zero(), jumped: None, processes: [process(1), process(2)], owners: 2 }
    }

    fn now(&self) -> Timestamp {
        self.api.now + self.error
    }

    fn reserve(&mut self, index: usize, want: u64) {
        let now = self.now();
        let process = &mut self.processes[index];
        process.drop_stale(now);
        let budget = config::BudgetSettings {
            monthly_credits: Some(self.cap),
            reserve: config::Percent(10.0),
            near: config::Span(std::time::Duration::from_secs(7 * 86_400)),
        };
        let holds = process.available + process.running.len() as u64;
        let reservation =
            ReservationRequest { owner: process.owner, settled: std::mem::take(&mut process.settled), holds, want, key: None };
        let (credit, reserved) = reserve(self.credit.clone(), &reservation, &budget, now);
        (process.uncounted_ever, process.reserved_at) = (reserved.uncounted_ever, now);
        if let Grant::Granted(credits) = reserved.grant {
            process.available += credits;
        }
        self.credit = credit;
    }

    /// Returns whether the cap leaves a credit for a probe.
    fn has_probe_credit(&self) -> bool {
        self.api.charged.get(&self.api.period().0).is_none_or(|charged| *charged < self.cap)
    }

    fn correct_clock(&mut self) {
        self.error = TimeDelta::zero();
        self.reserve(0, 0);
    }

    /// Finishes all running requests, because none takes hours. Returns reserved credits if `returns_credits`.
    fn settle_all(&mut self, returns_credits: bool) -> Result<(), TestCaseError> {
        for index in 0..2 {
            while !self.processes[index].running.is_empty() {
                self.run(Step::Respond(index, 0, true))?;
            }
            match returns_credits {
                true => self.run(Step::Settle(index))?,
                false => self.reserve(index, 0),
            }
        }
        Ok(())
    }

    /// Advances the time. A wrong clock is corrected before the period ends, or at once if no credit is left for a probe.
    fn advance(&mut self, hours: i64) {
        let ends = self.api.now + TimeDelta::hours(hours) >= self.api.period().1;
        if hours > 0 && (ends || !self.has_probe_credit()) {
            self.error = TimeDelta::zero();
        }
        self.api.now += TimeDelta::hours(hours);
        self.jumped = self.jumped.filter(|period| *period == self.api.period().0);
    }

    /// Runs a step. Fails if the API charges more credits than the cap allows.
    fn run(&mut self, step: Step) -> Result<(), TestCaseError> {
        let now = self.now();
        match step {
            Step::Reserve(index, credits) if !self.processes[index].has_credits(now) => self.reserve(index, credits),
            Step::Send(index, most, is_charged) => {
                self.processes[index].drop_stale(now);
                for _ in 0..self.processes[index].available.min(most as u64) {
                    let (used, mut request) = self.api.response(is_charged);
                    let process = &mut self.processes[index];
                    process.available -= 1;
                    (request.uncounted_before, request.sent_at) = (process.uncounted_ever, Some(now));
                    process.running.push((is_charged, request));
                    let used = used.unwrap_or_default();
                    prop_assert!(used <= self.cap, "{used} of {} at {}: {:#?}", self.cap, self.api.now, self.credit);
                }
            }
            Step::Respond(index, which, is_readable) => {
                let process = &mut self.processes[index];
                if process.running.is_empty() {
                    return Ok(());
                }
                let (is_charged, request) = process.running.remove(which % process.running.len());
                // With a wrong clock, only a readable response shows whether a period ended.
                let is_readable = is_readable || self.error != TimeDelta::zero();
                let SettledRequest { uncounted_before, sent_at, .. } = request;
                let unread = SettledRequest { uncounted_before, sent_at, ..SettledRequest::default() };
                process.settled.push(if is_readable || !is_charged { request } else { unread });
            }
            Step::Settle(index) => {
                let process = &mut self.processes[index];
                let returned = std::mem::take(&mut process.available);
                if returned > 0 || !process.settled.is_empty() {
                    self.reserve(index, 0);
                }
            }
            Step::Kill(index) if self.error == TimeDelta::zero() => {
                self.owners += 1;
                self.processes[index] = Process { owner: self.owners, ..Process::default() };
            }
            Step::Pass(hours) => {
                self.settle_all(true)?;
                self.advance(hours);
            }
            Step::Sleep(hours) => {
                self.settle_all(false)?;
                self.advance(hours);
            }
            Step::Jump(days) if self.api.reports != ApiReports::Nothing => {
                self.run(Step::Pass(0))?;
                let period = self.api.period().0;
                // The clock goes wrong at most once in a period, and is corrected by the next jump.
                if self.error != TimeDelta::zero() {
                    self.correct_clock();
                } else if self.jumped.is_none() && !self.credit.unconfirmed && self.credit.api_time.is_some_and(|at| at >= period)
                {
                    (self.jumped, self.error) = (Some(period), TimeDelta::days(days));
                }
            }
            Step::SetCap(cap) if self.error == TimeDelta::zero() => {
                self.run(Step::Pass(0))?;
                self.cap = cap;
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn repeated_clock_jumps_do_not_exceed_the_cap() {
    for (lowered, jumps) in [(20, 3), (10, 2)] {
        let mut world = World::new(ApiReports::Quota, 20);
        let poll = |world: &mut World| {
            for step in [Step::Reserve(0, 1), Step::Send(0, 1, true), Step::Respond(0, 0, true), Step::Settle(0)] {
                world.run(step).expect("within the cap");
            }
        };
        (0..18).for_each(|_| poll(&mut world));
        world.cap = lowered;
        world.reserve(0, 0);
        for _ in 0..jumps {
            world.error = TimeDelta::days(35);
            (0..3).for_each(|_| poll(&mut world));
            world.correct_clock();
            world.api.now += TimeDelta::hours(2);
        }
        // A new period is used within a day of its start, even without requests in between.
        world.api.now += TimeDelta::days(32);
        poll(&mut world);
        world.api.now += TimeDelta::days(1);
        poll(&mut world);
        assert_eq!(world.api.charged.len(), 2, "{:?}", world.api.charged);
    }
}

#[test]
fn lowered_cap_applies_after_a_clock_jump() {
    let mut world = World::new(ApiReports::Quota, 20);
    let poll = |world: &mut World| {
        for step in [Step::Reserve(0, 1), Step::Send(0, 1, true), Step::Respond(0, 0, true), Step::Settle(0)] {
            world.run(step).expect("within the cap");
        }
    };
    (0..15).for_each(|_| poll(&mut world));
    // While the daemon is stopped.
    world.cap = 12;
    world.error = TimeDelta::days(35);
    poll(&mut world);
}

#[test]
fn slept_process_neither_overspends_nor_loses_its_credits() {
    for hours in [3, 24 * 27] {
        let mut world = World::new(ApiReports::Quota, 12);
        for step in
            [Step::Reserve(1, 1), Step::Send(1, 1, true), Step::Respond(1, 0, true), Step::Reserve(0, 5), Step::Sleep(hours)]
        {
            world.run(step).expect("within the cap");
        }
        for _ in 0..12 {
            for step in [Step::Reserve(1, 1), Step::Send(1, 1, true), Step::Respond(1, 0, true)] {
                world.run(step).expect("within the cap");
            }
        }
        for step in [Step::Send(0, 5, true), Step::Reserve(0, 3), Step::Send(0, 3, true)] {
            world.run(step).expect("within the cap");
        }
    }
    let mut world = World::new(ApiReports::Quota, 12);
    for step in [Step::Reserve(0, 5), Step::Sleep(3), Step::Reserve(0, 5)] {
        world.run(step).expect("within the cap");
    }
    assert_eq!((world.credit.own(), world.credit.held()), (0, 5));
}

#[test]
fn response_from_before_a_long_sleep_does_not_decide_the_period() {
    let mut world = World::new(ApiReports::Time, 12);
    for step in
        [Step::Reserve(0, 1), Step::Send(0, 1, true), Step::Respond(0, 0, true), Step::Reserve(0, 1), Step::Send(0, 1, true)]
    {
        world.run(step).expect("within the cap");
    }
    world.api.now += TimeDelta::days(60);
    for step in
        [Step::Respond(0, 0, true), Step::Reserve(0, 1), Step::Send(0, 1, true), Step::Respond(0, 0, true), Step::Settle(0)]
    {
        world.run(step).expect("within the cap");
    }
    assert_eq!((world.credit.not_over_before, world.credit.unconfirmed), (None, false));
}

#[test]
fn credits_used_before_the_first_readable_response_count() {
    let mut world = World::new(ApiReports::Quota, 10);
    let steps = [
        Step::Reserve(1, 3),
        Step::Send(1, 3, true),
        Step::Kill(1),
        // Into the next calendar month, but in the same month of the API.
        Step::Pass(24 * 22),
        Step::Reserve(1, 6),
        Step::Send(1, 3, true),
        Step::Respond(1, 0, true),
        Step::Settle(1),
        Step::Reserve(1, 5),
        Step::Send(1, 8, true),
    ];
    for step in steps {
        world.run(step).expect("within the cap");
    }
    assert!(world.api.charged.values().all(|charged| (6..=10).contains(charged)), "{:?}", world.api.charged);
    world.run(Step::Reserve(0, 8)).expect("within the cap");
    assert!(world.processes[0].available < 8);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Holds for any sequence of dead processes, unreadable or late responses, and wrong clocks.
    #[test]
    fn never_exceeds_the_cap(
        reports in prop::sample::select(vec![ApiReports::Nothing, ApiReports::Time, ApiReports::Quota]),
        cap in 10..25_u64,
        steps in steps(),
    ) {
        let mut world = World::new(reports, cap);
        for step in steps {
            world.run(step)?;
        }
        // After everything is back to normal, a new period can be used.
        world.correct_clock();
        // Until a response was read, the previous month counts too, and a lowered cap may leave no credits in this one.
        let months = if period::is_unread(&world.credit) { 2 } else { 1 };
        for _ in 0..months * 4 * 32 {
            world.run(Step::Pass(6))?;
            world.run(Step::Settle(0))?;
        }
        // There was no request in the meantime, so without a credit for a probe the clock is in doubt for a day.
        world.reserve(0, 0);
        world.run(Step::Pass(25))?;
        let before = world.api.charged.get(&world.api.period().0).copied().unwrap_or_default();
        for _ in 0..3 {
            world.run(Step::Reserve(0, 1))?;
            world.run(Step::Send(0, 1, true))?;
            world.run(Step::Respond(0, 0, true))?;
            world.run(Step::Settle(0))?;
        }
        let after = world.api.charged.get(&world.api.period().0).copied().unwrap_or_default();
        prop_assert_eq!(after - before, 3, "{:#?}", world.credit);
    }
}
