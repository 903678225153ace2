use proptest::prelude::*;

use super::*;
use model::wire::parse_timestamp;
use model::{FeedState, PlanToken, TokenId};

fn now() -> Timestamp {
    parse_timestamp("2026-11-21T12:00:00Z").expect("a timestamp")
}

fn budget(monthly_credits: Option<u64>) -> config::BudgetSettings {
    config::BudgetSettings { monthly_credits, ..Default::default() }
}

fn source() -> config::SourceSettings {
    // A pinned version, so that no linear unlocks are fetched.
    config::SourceSettings { unlock_events: config::EndpointVersion::V(5), ..Default::default() }
}

/// Returns the month of endpoints that are polled every so many hours, with `tokens` tokens that were just polled, or never if `is_new`.
fn month(endpoints: &[(Endpoint, u32)], tokens: usize, is_new: bool, credit: &CreditState, monthly: Option<u64>) -> Month {
    let slots = |hours: u32| Slots::parse(&format!("0 0 */{hours} * * *"), "UTC").expect("a pattern").expect("on");
    let read = FeedState { baseline_at: Some(now()), read_at: Some(now()), cost: 1, ..FeedState::default() };
    let feed = Some(read.clone()).filter(|_| !is_new);
    let token = |n: usize| PlanToken { feed: feed.clone(), ..PlanToken::unknown(TokenId::from(format!("t{n}").as_str())) };
    let feeds: Vec<EndpointFeeds> = endpoints
        .iter()
        .map(|(endpoint, _)| EndpointFeeds {
            endpoint: *endpoint,
            is_subscribed: true,
            whole: if is_new { FeedState::default() } else { read.clone() },
            tokens: (0..tokens).filter(|_| endpoint.is_per_token()).map(token).collect(),
        })
        .collect();
    let polled: Vec<(Endpoint, Slots)> = endpoints.iter().map(|(endpoint, hours)| (*endpoint, slots(*hours))).collect();
    plan_month(feeds, &polled, false, credit, (&source(), &budget(monthly)), now())
}

fn known_month(endpoints: &[(Endpoint, u32)], tokens: usize, monthly: Option<u64>) -> Month {
    month(endpoints, tokens, false, &CreditState::default(), monthly)
}

#[test]
fn ticks_are_the_slots_of_thirty_days() {
    let slots = |pattern| Slots::parse(pattern, "UTC").expect("a pattern").expect("on");
    assert_eq!(ticks(&slots("0 0 */6 * * *"), now()), 120);
    assert_eq!(ticks(&slots("0 30 3 * * *"), now()), 30);
    assert_eq!(ticks(&slots("0 0 9 1 * *"), now()), 1);
    assert_eq!(ticks(&slots("*/3 * * * * *"), now()), 20 * 60 * 24 * 30, "extrapolated, because there are too many to count");
}

const LIST_AND_SCHEDULES: [(Endpoint, u32); 2] = [(Endpoint::TokenList, 6), (Endpoint::UnlockEvents, 6)];

#[test]
fn small_config_is_polled_in_full() {
    let month = known_month(&LIST_AND_SCHEDULES, 4, Some(1_000));
    assert_eq!((month.wanted, month.granted, month.outlook), (600, 600, Outlook::InFull));
    let hours: Vec<_> = month.endpoints.iter().map(|line| line.hours_between_polls).collect();
    assert_eq!(hours, [Some(6.0), Some(6.0)]);
}

#[test]
fn stretched_month_uses_nearly_all_credits_and_reports_the_delay() {
    let month = known_month(&LIST_AND_SCHEDULES, 40, Some(1_000));
    assert_eq!(month.outlook, Outlook::Stretched);
    assert!((950..=1_000).contains(&month.granted), "{month:?}");
    let (mean, worst) = (month.noticed_hours_mean.expect("known"), month.noticed_hours_worst.expect("known"));
    assert!(mean > 1.0 && mean < worst && worst < 720.0, "{mean} {worst}");
    assert_eq!((month.most_read.len(), month.least_read.len()), (10, 10));
    let polls: u32 = month.most_read.iter().map(|of| of.polls).sum();
    assert!(polls > 0 && month.least_read[0].polls <= month.most_read[0].polls);
}

#[test]
fn first_reads_come_first_and_may_use_the_reserve() {
    let month = |tokens| month(&LIST_AND_SCHEDULES, tokens, true, &CreditState::default(), Some(100));
    assert_eq!((month(99).first_reads, month(99).outlook), (100, Outlook::ListsTooExpensive));
    assert_eq!(month(150).outlook, Outlook::FirstReadsTooExpensive);
}

#[test]
fn month_without_known_limit_grants_everything() {
    let month = known_month(&[(Endpoint::UnlockEvents, 6)], 10, None);
    assert_eq!((month.granted, month.allowance, month.outlook), (1_200, None, Outlook::Unknown));
}

#[test]
fn reported_limit_counts_in_full_even_if_credits_are_used() {
    let credit = CreditState { used: Some(990), limit: Some(1_000), spent: 990, ..CreditState::default() };
    let month = month(&[(Endpoint::UnlockEvents, 6)], 4, false, &credit, None);
    assert_eq!((month.allowance, month.outlook), (Some(1_000), Outlook::InFull));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A plan grants no more than the allowance and the demand, and leaves few wanted credits unused.
    #[test]
    fn month_stays_within_its_allowance(limit in 40_u64..2_000, tokens in 1_usize..40, is_new in any::<bool>()) {
        let endpoints = [(Endpoint::TokenList, 3), (Endpoint::UnlockEvents, 6), (Endpoint::Burn, 6)];
        let month = month(&endpoints, tokens, is_new, &CreditState::default(), Some(limit));
        prop_assert!(month.granted <= limit, "{month:?}");
        prop_assert!(month.endpoints.iter().all(|line| line.granted <= line.wanted));
        let used = month.granted as f64 / limit.min(month.wanted) as f64;
        prop_assert!(used > 0.9 || month.granted + 10 > limit || month.wanted < limit, "{used} {month:?}");
    }
}

#[test]
fn segments_are_counted_once_and_not_per_slot() {
    let poll = |why, cost, with_segments| super::super::PlannedPoll {
        request: model::PollRequest::TokenList,
        known: None,
        why,
        cost,
        mark: None,
        listed_at: None,
        with_segments,
        may_add_segments: with_segments,
        linear: crate::plan::LinearPolls::NONE,
    };
    let polls = vec![poll(PollReason::First, 2, true), poll(PollReason::Changed, 4, true), poll(PollReason::Verify, 3, false)];
    let slots = Slots::parse("0 10 */6 * * *", "UTC").expect("a pattern").expect("on");
    let feeds =
        EndpointFeeds { endpoint: Endpoint::UnlockEvents, is_subscribed: true, whole: FeedState::default(), tokens: Vec::new() };
    let demand = Demand::new(&feeds, &slots, &PollPlan { polls, ..PollPlan::default() }, now());
    assert_eq!(
        (demand.polls, demand.cost, demand.first_reads),
        (3, 1 + 2 + 3, 1 + 1 + 2),
        "half of the cost pays for linear unlocks"
    );
}
