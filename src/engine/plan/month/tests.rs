use proptest::prelude::*;

use super::*;
use model::config::DEFAULTS;
use model::wire::parse_timestamp;
use model::{FeedState, PlanToken, TokenId};

fn now() -> Timestamp {
    parse_timestamp("2026-11-21T12:00:00Z").expect("a timestamp")
}

fn budget(monthly_credits: Option<u64>) -> config::BudgetSettings {
    let config: config::Config = toml::from_str(DEFAULTS).expect("the defaults");
    config::BudgetSettings { monthly_credits, ..config.budget }
}

fn source() -> config::SourceSettings {
    let source = toml::from_str::<config::Config>(DEFAULTS).expect("the defaults").source;
    config::SourceSettings { unlock_events: config::EndpointVersion::V(5), ..source } // no segments beside the cliffs
}

/// The month of endpoints that are asked every `hours`, with so many tokens that were read a day ago, or never.
fn played(endpoints: &[(Endpoint, u32)], tokens: usize, is_new: bool, credit: &CreditState, monthly: Option<u64>) -> Month {
    let slots = |hours: u32| Slots::parse(&format!("0 0 */{hours} * * *"), "UTC").expect("a pattern").expect("on");
    let read = FeedState { baseline_at: Some(now()), read_at: Some(now()), cost: 1, ..FeedState::default() };
    let feed = Some(read.clone()).filter(|_| !is_new);
    let token = |n: usize| PlanToken { feed: feed.clone(), ..PlanToken::unknown(TokenId::from(format!("t{n}").as_str())) };
    let feeds: Vec<EndpointFeeds> = endpoints
        .iter()
        .map(|(endpoint, _)| EndpointFeeds {
            endpoint: *endpoint,
            is_heard: true,
            whole: if is_new { FeedState::default() } else { read.clone() },
            tokens: (0..tokens).filter(|_| endpoint.is_per_token()).map(token).collect(),
        })
        .collect();
    let polled: Vec<(Endpoint, Slots)> = endpoints.iter().map(|(endpoint, hours)| (*endpoint, slots(*hours))).collect();
    lay_out(feeds, &polled, false, credit, (&source(), &budget(monthly)), now())
}

fn plan(endpoints: &[(Endpoint, u32)], tokens: usize, monthly: Option<u64>) -> Month {
    played(endpoints, tokens, false, &CreditState::default(), monthly)
}

#[test]
fn ticks_are_the_slots_of_thirty_days() {
    let slots = |pattern| Slots::parse(pattern, "UTC").expect("a pattern").expect("on");
    assert_eq!(ticks(&slots("0 0 */6 * * *"), now()), 120);
    assert_eq!(ticks(&slots("0 30 3 * * *"), now()), 30);
    assert_eq!(ticks(&slots("0 0 9 1 * *"), now()), 1);
    assert_eq!(ticks(&slots("*/3 * * * * *"), now()), 20 * 60 * 24 * 30, "far too many to be counted one by one");
}

const LIST_AND_SCHEDULES: [(Endpoint, u32); 2] = [(Endpoint::TokenList, 6), (Endpoint::UnlockEvents, 6)];

#[test]
fn a_config_that_fits_is_asked_in_full() {
    let month = plan(&LIST_AND_SCHEDULES, 4, Some(1_000));
    assert_eq!((month.wanted, month.granted, month.verdict), (600, 600, Outlook::InFull));
    let hours: Vec<_> = month.endpoints.iter().map(|line| line.hours_between_looks).collect();
    assert_eq!(hours, [Some(6.0), Some(6.0)]);
}

#[test]
fn where_it_does_not_fit_nearly_all_is_spent_and_it_says_how_late_and_on_whom() {
    let month = plan(&LIST_AND_SCHEDULES, 40, Some(1_000));
    assert_eq!(month.verdict, Outlook::Stretched);
    assert!((950..=1_000).contains(&month.granted), "{month:?}");
    let (mean, worst) = (month.noticed_hours_mean.expect("known"), month.noticed_hours_worst.expect("known"));
    assert!(mean > 1.0 && mean < worst && worst < 720.0, "{mean} {worst}");
    assert_eq!((month.most_read.len(), month.least_read.len()), (10, 10));
    let looks: u32 = month.most_read.iter().map(|of| of.looks).sum();
    assert!(looks > 0 && month.least_read[0].looks <= month.most_read[0].looks);
}

#[test]
fn first_reads_come_before_everything_and_may_use_the_reserve() {
    let month = |tokens| played(&LIST_AND_SCHEDULES, tokens, true, &CreditState::default(), Some(100));
    assert_eq!((month(99).first_reads, month(99).verdict), (100, Outlook::ListsTooDear));
    assert_eq!(month(150).verdict, Outlook::FirstReadsTooDear);
}

#[test]
fn nothing_is_promised_where_no_limit_is_known() {
    let month = plan(&[(Endpoint::UnlockEvents, 6)], 10, None);
    assert_eq!((month.granted, month.allowance, month.verdict), (1_200, None, Outlook::Unknown));
}

#[test]
fn the_limit_that_the_api_reported_counts_whatever_is_spent_of_this_month() {
    let credit = CreditState { used: Some(990), limit: Some(1_000), spent: 990, ..CreditState::default() };
    let month = played(&[(Endpoint::UnlockEvents, 6)], 4, false, &credit, None);
    assert_eq!((month.allowance, month.verdict), (Some(1_000), Outlook::InFull));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No plan promises more than the allowance, nor more than was wanted, and none leaves credits unused that were wanted.
    #[test]
    fn a_month_never_spends_more_than_its_allowance(limit in 40_u64..2_000, tokens in 1_usize..40, is_new in any::<bool>()) {
        let endpoints = [(Endpoint::TokenList, 3), (Endpoint::UnlockEvents, 6), (Endpoint::Burn, 6)];
        let month = played(&endpoints, tokens, is_new, &CreditState::default(), Some(limit));
        prop_assert!(month.granted <= limit, "{month:?}");
        prop_assert!(month.endpoints.iter().all(|line| line.granted <= line.wanted));
        let used = month.granted as f64 / limit.min(month.wanted) as f64;
        prop_assert!(used > 0.9 || month.granted + 10 > limit || month.wanted < limit, "{used} {month:?}");
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
        listed_at: None,
        with_segments,
        may_add_segments: with_segments,
    };
    let asks = vec![ask(PollReason::First, 2, true), ask(PollReason::Changed, 4, true), ask(PollReason::Verify, 3, false)];
    let slots = Slots::parse("0 10 */6 * * *", "UTC").expect("a pattern").expect("on");
    let wish = Wish::of(Endpoint::UnlockEvents, &slots, &PollPlan { asks, ..PollPlan::default() }, now());
    assert_eq!((wish.asks, wish.cost, wish.first_reads), (3, 1 + 3 + 3, 1 + 2));
}
