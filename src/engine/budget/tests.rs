use proptest::prelude::*;

use super::period::rolled_within;
use super::*;
use model::wire;
use testkit::time;

fn budget(monthly: Option<u64>) -> config::BudgetSettings {
    config::BudgetSettings {
        monthly_credits: monthly,
        reserve: config::Percent(10.0),
        near: config::Span(std::time::Duration::from_secs(7 * 86_400)),
    }
}

fn reported(used: u64, limit: u64, reset_at: &str) -> CreditState {
    CreditState { used: Some(used), limit: Some(limit), reset_at: Some(time(reset_at)), ..Default::default() }
}

#[test]
fn spreads_remaining_credits_over_the_days_until_the_reset() {
    let credit = reported(100, 1000, "2026-12-01");
    let allowance = Allowance::at(&credit, &budget(None), time("2026-11-21T12:00:00Z"));
    assert_eq!(allowance.left, Some(900));
    assert_eq!(allowance.reserve, 32, "100 for 9.5 of 30 days");
    assert_eq!(allowance.today, Some(90), "900 over 10 days, today included, while the reserve shrinks");
}

#[test]
fn cap_counts_own_credits_and_never_exceeds_the_api_limit() {
    let mut credit = reported(100, 1000, "2026-12-01");
    credit.spent = 40;
    let allowance = Allowance::at(&credit, &budget(Some(50)), time("2026-11-21"));
    assert_eq!(allowance.left, Some(10));
    let allowance = Allowance::at(&credit, &budget(Some(5_000)), time("2026-11-21"));
    assert_eq!(allowance.left, Some(900));
}

#[test]
fn polls_for_changes_run_at_most_a_fifth_of_the_period_ahead() {
    let allowed = |used| {
        let mut credit = reported(used, 1000, "2026-12-01");
        (credit.day, credit.spent_today) = (Some(time("2026-11-21")), 20);
        let allowance = Allowance::at(&credit, &budget(None), time("2026-11-21"));
        (allowance.of(PollReason::Changed), allowance.today)
    };
    // After 20 of 30 days, an even pace has spent 600 of the 900 credits, and 67 of the shrinking reserve.
    assert_eq!(allowed(666), (Some(201), Some(15)));
    assert_eq!(allowed(600), (Some(267), Some(22)), "saved credits are added");
    assert_eq!(allowed(900), (Some(0), Some(0)));
}

#[test]
fn new_period_restores_the_allowance() {
    let mut credit = reported(1000, 1000, "2026-12-01");
    credit.exhausted = true;
    assert!(Allowance::at(&credit, &budget(None), time("2026-11-30T23:59:59Z")).is_exhausted());
    let allowance = Allowance::at(&credit, &budget(None), time("2026-12-01"));
    assert_eq!(allowance.left, Some(1000));
    assert_eq!(allowance.reset_at, time("2027-01-01"));
}

/// While our clock was a month ahead, the API reported that its period had not ended. Then the clock was corrected, and the next request
/// came after the actual end of the period.
#[test]
fn corrected_clock_does_not_delay_the_next_period() {
    let mut credit = reported(16, 78, "2026-03-26");
    (credit.period_start, credit.spent) = (Some(time("2026-03-01")), 16);
    (credit.api_time, credit.seen_at) = (Some(time("2026-03-10")), Some(time("2026-04-15")));
    credit.not_over_before = Some(time("2026-05-01"));
    let later = |cap| rolled_within(credit.clone(), cap, time("2026-03-28"));
    let begun = later(Some(17));
    assert_eq!((begun.reset_at, begun.unconfirmed), (Some(time("2026-04-26")), true));
    for ahead in ["2026-04-14T23:59:59Z", "2026-04-16"] {
        let ahead = rolled_within(credit.clone(), Some(17), time(ahead));
        assert_eq!(
            ahead.reset_at, credit.reset_at,
            "a clock that is still ahead does not end the period, regardless of the order of requests"
        );
    }
    let waits = later(Some(16));
    assert_eq!(waits.reset_at, credit.reset_at, "without a credit for a probe, the period ends a day later");
    let begun = rolled_within(waits, Some(16), time("2026-03-29T01:00:00Z"));
    assert_eq!((begun.reset_at, begun.unconfirmed), (Some(time("2026-04-26")), true));
}

/// While our clock is in doubt, the API's own time decides which month a response belongs to.
#[test]
fn response_counts_for_the_month_of_the_api_time() {
    let spent = CreditState { api_time: Some(time("2026-03-03")), spent: 29, ..Default::default() };
    let months = CreditState { period_start: Some(time("2026-03-01")), ..spent.clone() };
    let resets = CreditState { reset_at: Some(time("2026-04-01")), ..spent };
    for credit in [months, resets] {
        let now = time("2026-04-01T01:00:00Z");
        let doubted = CreditState { seen_at: Some(now), not_over_before: Some(time("2026-04-02")), ..credit };
        let api_time = Some(now);
        let settled = vec![model::SettledRequest { charge: model::Charge::One, api_time, ..Default::default() }];
        let reservation = ReservationRequest { owner: 1, settled, ..Default::default() };
        let (credit, _) = reserve(doubted, &reservation, &budget(Some(52)), now);
        assert_eq!((credit.period_start, credit.spent), (Some(time("2026-04-01")), 1));
        assert!(!credit.unconfirmed, "the API confirmed the new period");
    }
}

#[test]
fn allowance_is_unlimited_without_a_known_limit() {
    let allowance = Allowance::at(&CreditState::default(), &budget(None), time("2026-11-21"));
    assert_eq!((allowance.left, allowance.today), (None, None));
}

#[test]
fn few_credits_are_spread_evenly_over_the_month() {
    for limit in [3, 5, 12, 25, 39, 100] {
        let budget = budget(None);
        let mut credit = reported(0, limit, "2026-12-01");
        for day in 0..30 {
            let now = time("2026-11-01T12:00:00Z") + TimeDelta::days(day);
            while Allowance::at(&credit, &budget, now).today > Some(0) {
                let used = i64::try_from(credit.used.unwrap_or(0) + 1).expect("small");
                let reported = wire::Credit { used: used.into(), ..Default::default() };
                credit = settle(credit, 1, Some(&reported), now);
            }
            let used = credit.used.unwrap_or(0) as f64;
            let even = limit as f64 * (day + 1) as f64 / 30.0;
            assert!((used - even).abs() <= 2.0 + even * 0.05, "{limit}: {used} of {even} after day {day}");
        }
        assert!(credit.used.is_some_and(|used| used + 1 >= limit), "{limit}: {:?}", credit.used);
    }
}

proptest! {
    /// A month of greedy regular polls with arbitrary costs never uses the reserve.
    #[test]
    fn regular_polls_never_use_the_reserve(
        limit in 10_u64..5_000,
        why in prop::sample::select(vec![PollReason::Changed, PollReason::Verify]),
        costs in prop::collection::vec(1_u64..40, 30 * 8)) {
        let start = time("2026-11-01");
        let mut credit = reported(0, limit, "2026-12-01");
        let budget = budget(None);
        for (tick, cost) in costs.into_iter().enumerate() {
            let now = start + TimeDelta::hours(3) * i32::try_from(tick).expect("small");
            let allowance = Allowance::at(&credit, &budget, now);
            prop_assert!(allowance.left >= Some(allowance.reserve));
            if allowance.of(why).is_some_and(|most| most >= cost) {
                let used = i64::try_from(credit.used.unwrap_or(0) + cost).expect("small");
                let reported = wire::Credit { used: used.into(), limit: i64::try_from(limit).expect("small").into(), ..Default::default() };
                credit = settle(credit, u32::try_from(cost).expect("small"), Some(&reported), now);
            }
        }
    }
}
