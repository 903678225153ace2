use proptest::prelude::*;

use super::*;
use model::config::DEFAULTS;
use model::wire::parse_timestamp;

fn now() -> Timestamp {
    parse_timestamp("2026-11-21T12:00:00Z").expect("a timestamp")
}

fn budget(monthly_credits: Option<u64>) -> config::BudgetSettings {
    let config: config::Config = toml::from_str(DEFAULTS).expect("the defaults");
    config::BudgetSettings { monthly_credits, ..config.budget }
}

fn wish(endpoint: Endpoint, ticks: u64, cost: u64) -> Wish {
    Wish { endpoint, ticks, asks: cost, cost, first_reads: 0, is_measured: true }
}

fn plan(wishes: &[Wish], monthly_credits: Option<u64>) -> Month {
    month(wishes, 10, false, &CreditState::default(), &budget(monthly_credits), now())
}

#[test]
fn ticks_are_the_slots_of_thirty_days() {
    let slots = |pattern| Slots::parse(pattern, "UTC").expect("a pattern").expect("on");
    assert_eq!(ticks(&slots("0 0 */6 * * *"), now()), 120);
    assert_eq!(ticks(&slots("0 30 3 * * *"), now()), 30);
    assert_eq!(ticks(&slots("0 0 9 1 * *"), now()), 1);
    assert_eq!(ticks(&slots("*/3 * * * * *"), now()), 20 * 60 * 24 * 30, "far too many to be counted one by one");
}

#[test]
fn a_config_that_fits_is_asked_in_full() {
    let month = plan(&[wish(Endpoint::TokenList, 120, 1), wish(Endpoint::UnlockEvents, 120, 4)], Some(1_000));
    assert_eq!((month.wanted, month.granted, month.verdict), (600, 600, Outlook::InFull));
    let hours: Vec<_> = month.endpoints.iter().map(|line| line.hours_between_looks).collect();
    assert_eq!(hours, [Some(6.0), Some(6.0)]);
}

#[test]
fn where_it_does_not_fit_lists_come_first_and_cheap_ticks_before_dear_ones() {
    let wishes = [
        wish(Endpoint::TokenList, 120, 1),
        wish(Endpoint::UnlockEvents, 120, 10),
        wish(Endpoint::Burn, 120, 1),
        wish(Endpoint::Buyback, 120, 10),
    ];
    let month = plan(&wishes, Some(1_000));
    let granted: Vec<u64> = month.endpoints.iter().map(|line| line.granted).collect();
    // 900 ordinary credits: 120 for the list, 120 for the burns, the rest in two equal parts.
    assert_eq!(granted, [120, 330, 120, 330]);
    assert_eq!(month.verdict, Outlook::Stretched);
    assert_eq!(month.tokens_in_full(), Some(3), "(900 - 120) of the 2,520 that ten tokens want");
    let times = month.times_less_often().expect("it helps");
    assert!((times - 2_520.0 / 780.0).abs() < 1e-9, "{times}");
}

#[test]
fn first_reads_come_before_everything_and_may_use_the_reserve() {
    let mut wishes = [wish(Endpoint::TokenList, 10, 1), wish(Endpoint::UnlockEvents, 10, 95)];
    wishes[1].first_reads = 95;
    let month = plan(&wishes, Some(100));
    assert_eq!(month.granted, 95, "what is left is the reserve's");
    assert_eq!(month.verdict, Outlook::ListsTooDear);
    wishes[1].first_reads = 101;
    assert_eq!(plan(&wishes, Some(100)).verdict, Outlook::FirstReadsTooDear);
}

#[test]
fn nothing_is_promised_where_no_limit_is_known() {
    let month = plan(&[wish(Endpoint::UnlockEvents, 120, 10)], None);
    assert_eq!((month.granted, month.allowance, month.verdict), (1_200, None, Outlook::Unknown));
}

#[test]
fn the_limit_that_the_api_reported_counts_whatever_is_spent_of_this_month() {
    let credit = CreditState { used: Some(990), limit: Some(1_000), spent: 990, ..CreditState::default() };
    let month = month(&[wish(Endpoint::UnlockEvents, 120, 4)], 4, false, &credit, &budget(None), now());
    assert_eq!((month.allowance, month.verdict), (Some(1_000), Outlook::InFull));
}

proptest! {
    /// No plan promises more than the allowance, nor more than was wanted, and none leaves credits unused that were wanted.
    #[test]
    fn a_month_never_spends_more_than_its_allowance(
        limit in 0_u64..5_000,
        wants in prop::collection::vec((0_usize..5, 0_u64..200, 0_u64..50, 0_u64..30), 1..6),
    ) {
        let endpoints = [Endpoint::TokenList, Endpoint::Upcoming, Endpoint::UnlockEvents, Endpoint::Burn, Endpoint::Buyback];
        let wishes: Vec<Wish> = wants
            .into_iter()
            .map(|(endpoint, ticks, cost, first_reads)| Wish { first_reads, ..wish(endpoints[endpoint], ticks, cost) })
            .collect();
        let month = plan(&wishes, Some(limit));
        prop_assert!(month.granted <= limit);
        prop_assert!(month.endpoints.iter().all(|line| line.granted <= line.wanted));
        let ordinary = limit.saturating_sub(month.first_reads).saturating_sub(month.reserve);
        let wanted = month.endpoints.iter().map(|line| line.wanted).sum::<u64>();
        let granted = month.endpoints.iter().map(|line| line.granted).sum::<u64>();
        // Each line is rounded down.
        prop_assert!(granted + 8 >= ordinary.min(wanted), "{granted} of {ordinary}, {wanted} wanted");
    }
}

#[test]
fn segments_are_paid_for_once_and_not_at_every_tick() {
    let ask = |why, cost, with_segments| super::super::PlannedPoll {
        request: model::PollRequest::TokenList,
        known: None,
        why,
        cost,
        mark: None,
        with_segments,
    };
    let asks = vec![ask(PollReason::First, 2, true), ask(PollReason::Changed, 4, true), ask(PollReason::Verify, 3, false)];
    let slots = Slots::parse("0 10 */6 * * *", "UTC").expect("a pattern").expect("on");
    let wish = Wish::of(Endpoint::UnlockEvents, &slots, &PollPlan { asks, ..PollPlan::default() }, now());
    assert_eq!((wish.asks, wish.cost, wish.first_reads), (3, 1 + 3 + 3, 1 + 2));
}
