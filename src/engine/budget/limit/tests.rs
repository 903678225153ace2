//! Simulates an API whose limit is raised, lowered, or replaced by the limit of another key, and counts its requests independently.

use proptest::prelude::*;

use super::*;
use crate::budget::{Allowance, Grant, ReservationRequest, left, reserve};
use model::config;

/// An API that counts credits for each key, and a process that polls it.
struct World {
    now: Timestamp,
    key: usize,
    /// The credits used with each key.
    used: Vec<u64>,
    limit: u64,
    rejected: u64,
    credit: CreditState,
    cap: Option<u64>,
    settled: Vec<SettledRequest>,
}

impl World {
    fn new(limit: u64, cap: Option<u64>) -> Self {
        let now = "2026-03-02T12:00:00Z".parse().expect("a time");
        Self { now, key: 0, used: vec![0], limit, rejected: 0, credit: CreditState::default(), cap, settled: Vec::new() }
    }

    fn budget(&self) -> config::BudgetSettings {
        let near = config::Span(std::time::Duration::from_secs(7 * 86_400));
        config::BudgetSettings { monthly_credits: self.cap, reserve: config::Percent(10.0), near }
    }

    fn reserve(&mut self, want: u64) -> Grant {
        let settled = std::mem::take(&mut self.settled);
        let reservation = ReservationRequest { owner: 1, settled, holds: 0, want, key: Some(format!("key {}", self.key)) };
        let (credit, reserved) = reserve(self.credit.clone(), &reservation, &self.budget(), self.now);
        self.credit = credit;
        reserved.grant
    }

    fn request(&mut self) -> SettledRequest {
        let used = &mut self.used[self.key];
        let is_accepted = *used < self.limit;
        *used += u64::from(is_accepted);
        self.rejected += u64::from(!is_accepted);
        let number = |count: u64| i64::try_from(count).expect("small").into();
        let reset_at: Timestamp = "2026-04-01T00:00:00Z".parse().expect("a time");
        let reported =
            wire::Credit { used: number(*used), limit: number(self.limit), reset_at: reset_at.into(), ..Default::default() };
        SettledRequest {
            charge: if is_accepted { Charge::One } else { Charge::Refused },
            reported: is_accepted.then_some(reported),
            api_time: is_accepted.then_some(self.now),
            sent_at: Some(self.now),
            key: Some(format!("key {}", self.key)),
            uncounted_before: self.credit.uncounted_ever,
        }
    }

    /// Plans and sends one request if the credits allow it. Returns whether the API accepted it.
    fn poll(&mut self) -> bool {
        self.reserve(0);
        let allowance = Allowance::at(&self.credit, &self.budget(), self.now);
        if allowance.left == Some(0) || !matches!(self.reserve(1), Grant::Granted(_)) {
            return false;
        }
        let request = self.request();
        let is_accepted = request.charge == Charge::One;
        self.settled.push(request);
        self.reserve(0);
        is_accepted
    }

    fn use_up(&mut self) {
        while self.poll() {}
        assert_eq!(self.used[self.key], self.limit);
        self.pass(1);
    }

    fn pass(&mut self, hours: i64) {
        self.now += TimeDelta::hours(hours);
    }
}

#[test]
fn raised_limit_is_found_within_a_day_and_costs_one_rejection_a_day() {
    let mut world = World::new(20, None);
    world.use_up();
    for _ in 0..10 * 24 {
        assert!(!world.poll());
        assert_eq!(left(&world.credit, &world.budget(), world.now), Some(0), "a check does not count as a remaining credit");
        world.pass(1);
    }
    assert!((8..=10).contains(&world.rejected), "{} rejected requests in ten days", world.rejected);
    world.limit = 30;
    let hours = (0..48).find(|_| {
        world.pass(1);
        world.poll()
    });
    assert!(hours.is_some_and(|hours| hours <= 24), "{hours:?}");
    assert!(world.poll(), "all further credits can be used at once: {:#?}", world.credit);
}

#[test]
fn operator_can_request_a_check() {
    let mut world = World::new(20, None);
    assert!(!recheck(&mut world.credit, world.now), "nothing to check");
    world.use_up();
    world.limit = 30;
    assert!(!world.poll());
    assert!(recheck(&mut world.credit, world.now));
    assert!(world.poll() && world.poll());
}

#[test]
fn another_key_has_its_own_count_but_not_its_own_cap() {
    let mut world = World::new(20, Some(30));
    world.use_up();
    // A response to the old key arrives after the change, and says nothing about the new one.
    world.limit = 21;
    let late = world.request();
    world.limit = 20;
    (world.key, world.used) = (1, vec![21, 0]);
    assert!(world.poll(), "{:#?}", world.credit);
    world.settled.push(late);
    let more = (0..20).take_while(|_| world.poll()).count();
    assert_eq!(world.used.iter().sum::<u64>(), 29, "one of 30 credits is kept for a new period");
    assert_eq!(more, 7);
    assert!(!recheck(&mut world.credit, world.now), "the cap of the config is not the limit of the API: {:#?}", world.credit);
}

#[test]
fn lowered_count_is_believed_if_the_api_accepts_the_request() {
    let mut world = World::new(20, None);
    world.use_up();
    world.used = vec![3];
    assert!(recheck(&mut world.credit, world.now));
    assert!(world.poll());
    assert_eq!(left(&world.credit, &world.budget(), world.now), Some(16));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Holds for any sequence of limits, keys, and requests by an operator.
    #[test]
    fn cap_holds_and_polling_recovers(
        cap in prop::option::of(12..60_u64),
        steps in prop::collection::vec((0..6_u8, 1..30_u64), 1..60),
    ) {
        let mut world = World::new(20, cap);
        let mut checks = 0;
        for (step, number) in steps {
            match step {
                0 => world.pass(i64::try_from(number).expect("small").min(9)),
                1 => world.limit = number,
                2 => (world.key, world.used) = (world.used.len(), [world.used.clone(), vec![0]].concat()),
                3 => checks += u64::from(recheck(&mut world.credit, world.now)),
                _ => (0..number).for_each(|_| {
                    world.poll();
                }),
            }
            prop_assert!(cap.is_none_or(|cap| world.used.iter().sum::<u64>() <= cap));
        }
        let days = u64::try_from((world.now - "2026-03-02T12:00:00Z".parse::<Timestamp>().expect("a time")).num_days()).expect("later");
        // A key whose limit was lowered is rejected once, and again after half an hour.
        let changes = u64::try_from(world.used.len()).expect("small");
        prop_assert!(world.rejected <= days + checks + 3 * changes + 60, "{} rejected", world.rejected);
        world.limit = 100;
        if cap.is_none() {
            world.pass(25);
            prop_assert!(world.poll(), "{:#?}", world.credit);
        }
    }
}
