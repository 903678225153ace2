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
            next_slot: None,
            slot_interval: TimeDelta::hours(1),
            whole: if is_new { FeedState::default() } else { read.clone() },
            tokens: (0..tokens).filter(|_| endpoint.is_per_token()).map(token).collect(),
            unreadable: Vec::new(),
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
fn first_reads_are_spread_and_leave_credits_for_lists() {
    let month = |tokens, credits| month(&LIST_AND_SCHEDULES, tokens, true, &CreditState::default(), Some(credits));
    assert_eq!((month(99, 100).first_reads, month(99, 100).outlook), (100, Outlook::Stretched));
    assert_eq!(month(150, 100).outlook, Outlook::FirstReadsTooExpensive);
    let days = |tokens| month(tokens, 300).first_pass_days.map(f64::round);
    // A tenth of the credits at once, then an even pace of ten a day.
    assert_eq!([days(20), days(130)], [Some(0.0), Some(11.0)]);
    assert_eq!(month(290, 200).first_pass_days, None);
}

#[test]
fn both_assumptions_about_the_lists_are_planned() {
    // So many tokens that the planner finds the first correction early in the month.
    let month = month(&LIST_AND_SCHEDULES, 300, true, &CreditState::default(), Some(1_000));
    let [list, schedules] =
        [0, 1].map(|line: usize| (month.endpoints[line].granted_if_reported, month.endpoints[line].granted_if_silent));
    assert!(list.0 > 3 * list.1 && schedules.0 < schedules.1, "{list:?} {schedules:?}");
    let (reported, silent) =
        (month.noticed_hours_mean_if_reported.expect("known"), month.noticed_hours_mean_if_silent.expect("known"));
    assert!(reported * 3.0 < silent, "{reported} h and {silent} h");
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
    let feeds = EndpointFeeds {
        endpoint: Endpoint::UnlockEvents,
        is_subscribed: true,
        next_slot: None,
        slot_interval: TimeDelta::hours(1),
        whole: FeedState::default(),
        tokens: Vec::new(),
        unreadable: Vec::new(),
    };
    let demand = Demand::new(&feeds, &slots, &PollPlan { polls, ..PollPlan::default() }, false, now());
    assert_eq!(
        (demand.polls, demand.cost, demand.first_reads),
        (3, 1 + 2 + 3, 1 + 1 + 2),
        "half of the cost pays for linear unlocks"
    );
}

/// Returns the month of tokens that were just polled, with these cron patterns and the linear unlocks of `source`.
fn scheduled_month(patterns: &[(Endpoint, &str)], tokens: usize, monthly: Option<u64>, source: &config::SourceSettings) -> Month {
    let read = FeedState { baseline_at: Some(now()), read_at: Some(now()), cost: 1, ..FeedState::default() };
    let token = |n: usize| PlanToken { feed: Some(read.clone()), ..PlanToken::unknown(TokenId::from(format!("t{n}").as_str())) };
    let feeds = patterns.iter().map(|(endpoint, _)| EndpointFeeds {
        endpoint: *endpoint,
        is_subscribed: true,
        next_slot: None,
        slot_interval: TimeDelta::hours(1),
        whole: read.clone(),
        tokens: (0..tokens).filter(|_| endpoint.is_per_token()).map(token).collect(),
        unreadable: Vec::new(),
    });
    let slots = |pattern| Slots::parse(pattern, "UTC").expect("a pattern").expect("on");
    let polled: Vec<(Endpoint, Slots)> = patterns.iter().map(|(endpoint, pattern)| (*endpoint, slots(*pattern))).collect();
    plan_month(feeds.collect(), &polled, false, &CreditState::default(), (source, &budget(monthly)), now())
}

#[test]
fn month_that_skips_polls_is_not_in_full() {
    // The allocations of all tokens use most of the pace of a day at once, so that the list is skipped for half a day.
    let patterns = [(Endpoint::TokenList, "0 0 * * * *"), (Endpoint::Allocations, "0 30 3 * * *")];
    let month = scheduled_month(&patterns, 200, Some(7_500), &source());
    assert!(month.wanted <= 7_500 - month.reserve, "{month:?}");
    assert_eq!(month.outlook, Outlook::Stretched);
    assert!(month.endpoints[0].granted < 500 && month.endpoints[0].wanted == 720, "{month:?}");
    assert!(month.endpoints[0].hours_between_polls.expect("polled") > 1.4, "{month:?}");
}

#[test]
fn frequent_slots_are_all_counted() {
    let patterns = [(Endpoint::TokenList, "0 */10 * * * *"), (Endpoint::UnlockEvents, "0 */10 * * * *")];
    let month = scheduled_month(&patterns, 2, None, &source());
    assert_eq!(month.endpoints[1].hours_between_polls, Some(1.0 / 6.0));
    let worst = month.noticed_hours_worst.expect("known");
    assert!((worst - 1.0 / 6.0).abs() < 0.01, "{worst}");
    assert_eq!(month.most_read.iter().map(|of| of.polls).collect::<Vec<_>>(), [4_320, 4_320]);
}

#[test]
fn weekly_reads_of_linear_unlocks_without_a_mark_are_wanted() {
    let month =
        scheduled_month(&[(Endpoint::UnlockEvents, "0 0 3 * * *")], 10, Some(100_000), &config::SourceSettings::default());
    // Each of ten tokens: 30 polls, linear unlocks on days 1, 8, 15, 22, and 29.
    let linear = 10 * 5;
    assert_eq!((month.wanted, month.granted), (300 + linear, 300 + linear));
}

/// The delays of a month, from the instants of its polls and the definition of a delay alone.
#[test]
fn delays_agree_with_the_instants_of_the_polls() {
    for (tokens, monthly) in [(1, 200), (3, 400), (12, 500), (40, 1_000)] {
        let slots = |pattern| Slots::parse(pattern, "UTC").expect("a pattern").expect("on");
        let polled = [(Endpoint::UnlockEvents, slots("0 0 * * * *"))];
        let read = FeedState { baseline_at: Some(now()), read_at: Some(now()), cost: 1, ..FeedState::default() };
        let token = |n: usize| PlanToken { feed: Some(read.clone()), ..PlanToken::unknown(format!("t{n}").as_str().into()) };
        let feeds = vec![EndpointFeeds {
            endpoint: Endpoint::UnlockEvents,
            is_subscribed: true,
            next_slot: None,
            slot_interval: TimeDelta::hours(1),
            whole: read.clone(),
            tokens: (0..tokens).map(token).collect(),
            unreadable: Vec::new(),
        }];
        let (source, budget) = (source(), budget(Some(monthly)));
        let instants = instants_of_polls(feeds.clone(), &polled[0].1, (&source, &budget));
        let hours = |span: TimeDelta| span.num_seconds() as f64 / 3_600.0;
        let end = now() + TimeDelta::days(DAYS.into());
        let (mut worst, mut squares) = (0.0_f64, 0.0);
        for instants in &instants {
            let all: Vec<Timestamp> = [now()].into_iter().chain(instants.iter().copied()).chain([end]).collect();
            for gap in all.windows(2).map(|two| hours(two[1] - two[0])) {
                (worst, squares) = (worst.max(gap), squares + gap * gap);
            }
        }
        let mean = squares / 2.0 / (f64::from(u32::try_from(tokens).expect("few")) * 720.0);
        let month = plan_month(feeds, &polled, false, &CreditState::default(), (&source, &budget), now());
        let (planned_mean, planned_worst) = (month.noticed_hours_mean.expect("known"), month.noticed_hours_worst.expect("known"));
        assert!((planned_worst - worst).abs() < 0.01, "{tokens}: {planned_worst} h at most, really {worst} h");
        assert!((planned_mean - mean).abs() < mean * 0.02, "{tokens}: {planned_mean} h on average, really {mean} h");
        let most = instants.iter().map(Vec::len).max();
        assert_eq!(month.most_read.first().map(|of| of.polls as usize), most);
    }
}

/// Runs the planner over the slots of a month. Returns the instants of each token's polls.
fn instants_of_polls(
    mut feeds: Vec<EndpointFeeds>,
    slots: &Slots,
    (source, budget): (&config::SourceSettings, &config::BudgetSettings),
) -> Vec<Vec<Timestamp>> {
    let end = now() + TimeDelta::days(DAYS.into());
    let mut credit = CreditState { limit: budget.monthly_credits, used: Some(0), reset_at: Some(end), ..CreditState::default() };
    let mut instants = vec![Vec::new(); feeds[0].tokens.len()];
    let mut at = slots.next(now());
    while let Some(slot) = at.filter(|slot| *slot < end) {
        at = slots.next(slot);
        feeds[0].next_slot = Some(at.unwrap_or(end));
        let basis = PlanBasis {
            allowance: Allowance::at(&credit, budget, slot),
            spent_today: budget::rolled(credit.clone(), budget, slot).spent_today,
            source,
            near: budget.near.delta(),
            now: slot,
            trust: ListTrust::Learned,
        };
        for poll in plan::plan(Endpoint::UnlockEvents, &feeds, &basis).polls {
            let index = feeds[0].tokens.iter().position(|token| Some(&token.id) == poll.request.token()).expect("a token");
            credit = budget::settle(credit, 1, None, slot);
            feeds[0].tokens[index].feed =
                Some(FeedState { baseline_at: Some(now()), read_at: Some(slot), cost: 1, ..FeedState::default() });
            instants[index].push(slot);
        }
    }
    instants
}
