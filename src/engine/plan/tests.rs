use super::*;
use model::{FeedId, Findings, LinearReads, ListedMethod, SegmentsRead, VersionAbsence};
use testkit::time;

fn source() -> config::SourceSettings {
    config::SourceSettings::default()
}

fn token(id: &str, feed: Option<FeedState>) -> PlanToken {
    PlanToken {
        id: TokenId::from(id),
        listed: true,
        last_updated: Some(time("2026-11-01")),
        has_burn: None,
        has_buyback: None,
        listed_method: None,
        next_event: None,
        // Cliff and linear unlocks were fetched together.
        segments: feed.as_ref().and_then(|feed| Some(SegmentsRead { at: feed.read_at?, mark: feed.mark, version: Some(1) })),
        next_size: None,
        linear: None,
        feed,
    }
}

fn read(mark: &str, read_at: &str) -> FeedState {
    FeedState {
        baseline_at: Some(time("2026-10-01")),
        read_at: Some(time(read_at)),
        mark: Some(time(mark)),
        hash: Some(ContentHash(7)),
        cost: 1,
        ..Default::default()
    }
}

fn basis<'a>(source: &'a config::SourceSettings, left: Option<u64>, today: Option<u64>) -> PlanBasis<'a> {
    let now = time("2026-11-21");
    PlanBasis {
        allowance: Allowance {
            left,
            reserve: 10,
            today,
            for_changes: today,
            for_first_reads: left,
            reset_at: time("2026-12-01"),
        },
        spent_today: 0,
        source,
        near: TimeDelta::days(7),
        now,
        trust: ListTrust::Learned,
    }
}

fn schedules(tokens: &[PlanToken]) -> EndpointFeeds {
    EndpointFeeds {
        endpoint: Endpoint::UnlockEvents,
        is_subscribed: true,
        next_slot: Some(time("2026-11-21T12:00:00Z")),
        slot_interval: TimeDelta::hours(1),
        whole: FeedState::default(),
        tokens: tokens.to_vec(),
        unreadable: Vec::new(),
    }
}

fn plan_tokens(endpoint: Endpoint, tokens: &[PlanToken], basis: &PlanBasis<'_>) -> PollPlan {
    plan(endpoint, &[EndpointFeeds { endpoint, ..schedules(tokens) }], basis)
}

fn order(plan: &PollPlan) -> Vec<(&str, PollReason)> {
    plan.polls.iter().map(|poll| (poll.request.token().map_or("", TokenId::as_str), poll.why)).collect()
}

#[test]
fn orders_first_reads_proofs_near_events_changes_and_regular_polls() {
    let source = source();
    let mut near = token("near", Some(read("2026-10-30", "2026-11-20")));
    near.next_event = Some(time("2026-11-24"));
    let mut proof = token("proof", Some(read("2026-11-01", "2026-11-20")));
    if let Some(feed) = &mut proof.feed {
        feed.missing = vec![("2026-12-01".into(), 1)];
    }
    let tokens = [
        token("same", Some(read("2026-11-01", "2026-11-20"))),
        token("changed", Some(read("2026-10-30", "2026-11-20"))),
        near,
        proof,
        token("new", None),
    ];
    let plan = plan_tokens(Endpoint::UnlockEvents, &tokens, &basis(&source, None, None));
    let expected = [
        ("new", PollReason::First),
        ("proof", PollReason::Confirm),
        ("near", PollReason::Near),
        ("changed", PollReason::Changed),
        ("same", PollReason::Verify),
    ];
    assert_eq!(order(&plan), expected);
    assert_eq!(plan.polls[1].known, None, "an unchanged response must count as proof, so it is parsed");
    assert_eq!(plan.polls[4].known, Some(ContentHash(7)));
}

#[test]
fn failing_list_is_polled_with_growing_waits() {
    let source = source();
    for endpoint in [Endpoint::TokenList, Endpoint::Upcoming, Endpoint::Investors] {
        // It fails from midnight on. A slot comes every ten minutes.
        let begin = time("2026-11-21");
        let mut list = EndpointFeeds {
            endpoint,
            whole: FeedState { tried_at: Some(begin), failing_since: Some(begin), ..read("2026-11-01", "2026-11-01") },
            ..schedules(&[])
        };
        let mut polled_after = Vec::new();
        for slot in 1..=6 * 72 {
            let now = begin + TimeDelta::minutes(10 * slot);
            let plan = plan(endpoint, std::slice::from_ref(&list), &PlanBasis { now, ..basis(&source, None, None) });
            if plan.polls.is_empty() {
                let cause = DelayCause::Failing { retry_at: retry::due_at(&list.whole).expect("it waits") };
                assert_eq!((plan.not_due, &plan.delayed), (1, &vec![DelayedFeed { feed: FeedId::whole(endpoint), cause }]));
                continue;
            }
            list.whole.tried_at = Some(now);
            polled_after.push(10 * slot);
        }
        // The first retry is at the next slot. Each wait is as long as the list has failed so far, at most a day.
        assert_eq!(polled_after, [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 4_000], "{endpoint}");
    }
}

#[test]
fn pacing_defers_regular_polls_but_no_first_read() {
    let source = source();
    let tokens = [
        token("new", None),
        token("changed", Some(read("2026-10-30", "2026-11-20"))),
        token("same", Some(read("2026-11-01", "2026-11-20"))),
    ];
    let plan = plan_tokens(Endpoint::UnlockEvents, &tokens, &basis(&source, Some(20), Some(0)));
    assert_eq!(order(&plan), [("new", PollReason::First)]);
    assert_eq!(plan.deferred, [(PollReason::Changed, 1), (PollReason::Verify, 1)]);
}

#[test]
fn regular_polls_keep_an_even_pace_and_take_the_oldest_feed_first() {
    let source = source();
    let tokens: Vec<_> = (0..9).map(|n| token(&format!("t{n}"), Some(read("2026-11-01", &format!("2026-11-1{n}"))))).collect();
    let plan = plan_tokens(Endpoint::UnlockEvents, &tokens, &basis(&source, Some(500), Some(6)));
    let expected = [("t0", PollReason::Verify), ("t1", PollReason::Verify), ("t2", PollReason::Verify)];
    assert_eq!(order(&plan), expected, "half of the day's six, because the next slot is at noon");
}

#[test]
fn leaves_credits_for_higher_priorities_of_other_endpoints() {
    let source = source();
    let old: Vec<_> = (0..2).map(|n| token(&format!("o{n}"), Some(read("2026-11-01", "2026-10-10")))).collect();
    let young: Vec<_> = (0..9).map(|n| token(&format!("y{n}"), Some(read("2026-11-01", "2026-11-01")))).collect();
    let sooner = |of: EndpointFeeds| EndpointFeeds { next_slot: Some(time("2026-11-21T00:30:00Z")), ..of };
    let feeds = [sooner(schedules(&old)), EndpointFeeds { endpoint: Endpoint::Burn, ..schedules(&young) }];
    let count =
        |endpoint, feeds: &[EndpointFeeds], today| plan(endpoint, feeds, &basis(&source, Some(500), Some(today))).polls.len();
    assert_eq!(count(Endpoint::Burn, &feeds, 6), 1, "two of three credits are for the schedules");
    let same = [schedules(&old), feeds[1].clone()];
    assert_eq!(count(Endpoint::Burn, &same, 6), 1, "a slot at the same time competes as well");
    let unread = [sooner(schedules(&[token("new", None)])), feeds[1].clone()];
    assert_eq!(count(Endpoint::Burn, &unread, 6), 1, "the other two credits are for a first read with its linear unlocks");
    let later = [EndpointFeeds { next_slot: Some(time("2026-11-22")), ..feeds[0].clone() }, feeds[1].clone()];
    assert_eq!(count(Endpoint::Burn, &later, 6), 3, "the schedules have no slot before the next one of burns");
    let unsubscribed = EndpointFeeds { is_subscribed: false, ..feeds[1].clone() };
    let idle = sooner(schedules(&[token("o", Some(read("2026-11-01", "2026-11-20T23:00:00Z")))]));
    assert_eq!(
        count(Endpoint::Burn, &[idle, unsubscribed], 72),
        2,
        "an unsubscribed endpoint is polled rarely: one of three credits for an hour is for the schedule"
    );
}

#[test]
fn poll_that_costs_more_than_a_days_share_is_still_sent() {
    let source = source();
    let mut large = token("large", Some(read("2026-11-01", "2026-10-10")));
    large.feed.as_mut().expect("a feed").cost = 40;
    let feeds = [EndpointFeeds { next_slot: Some(time("2026-11-22")), ..schedules(&[large]) }];
    let basis = basis(&source, Some(500), Some(6));
    assert_eq!(order(&plan(Endpoint::UnlockEvents, &feeds, &basis)), [("large", PollReason::Verify)]);
}

#[test]
fn two_unreported_corrections_trigger_polls_of_all_older_feeds() {
    let source = source();
    let mut tokens: Vec<_> = (0..20).map(|n| token(&format!("t{n:02}"), Some(read("2026-11-01", "2026-11-20")))).collect();
    let planned = |tokens: &[PlanToken]| {
        let few = basis(&source, Some(500), Some(2));
        let few = PlanBasis { allowance: Allowance { for_changes: Some(100), ..few.allowance }, ..few };
        plan_tokens(Endpoint::UnlockEvents, tokens, &few).polls.into_iter().map(|poll| poll.why).collect::<Vec<_>>()
    };
    for (number, hour) in [(4, 19), (9, 21)] {
        let at = time(&format!("2026-11-20T{hour}:00:00Z"));
        let feed = tokens[number].feed.as_mut().expect("a feed");
        (feed.read_at, feed.findings) = (Some(at), Findings { unreported: 1, unreported_at: Some(at), ..Findings::default() });
        let expected = if number == 4 { vec![PollReason::Verify] } else { vec![PollReason::Changed; 18] };
        assert_eq!(planned(&tokens), expected);
    }
}

#[test]
fn silent_list_is_polled_less_often_with_fewer_credits() {
    let source = source();
    let polls = |days: i64, left: u64| {
        let mut list = EndpointFeeds { endpoint: Endpoint::TokenList, ..schedules(&[]) };
        let read_at = basis(&source, None, None).now - TimeDelta::days(days);
        list.whole = FeedState { baseline_at: Some(read_at), read_at: Some(read_at), cost: 1, ..FeedState::default() };
        let mut old: Vec<_> = (0..20).map(|n| token(&format!("o{n}"), Some(read("2026-11-01", "2026-11-01")))).collect();
        old[0].feed.as_mut().expect("a feed").findings.unreported = 5;
        let feeds = [list, EndpointFeeds { next_slot: Some(time("2026-11-21T00:10:00Z")), ..schedules(&old) }];
        let share = left / 10;
        plan(Endpoint::TokenList, &feeds, &PlanBasis { spent_today: 0, ..basis(&source, Some(left), Some(share)) }).polls.len()
    };
    // A list gets 1 in 200 credits. With 100 credits a day that is every 2 days, raised to the minimum of 3; with 30 a day, every week;
    // and at most 2 weeks.
    assert_eq!((polls(3, 1_000), polls(3, 300), polls(7, 300), polls(13, 10), polls(14, 10)), (1, 0, 1, 0, 1));
}

#[test]
fn polls_nothing_when_credits_are_exhausted() {
    let source = source();
    let plan = plan_tokens(Endpoint::UnlockEvents, &[token("new", None)], &basis(&source, Some(0), Some(0)));
    assert_eq!(plan.polls, []);
    assert_eq!(plan.exhausted_until, Some(time("2026-12-01")));
}

#[test]
fn burns_of_token_without_burns_are_not_polled() {
    let source = source();
    let mut none = token("none", None);
    none.has_burn = Some(false);
    let plan = plan_tokens(Endpoint::Burn, &[none.clone(), token("some", None)], &basis(&source, None, None));
    assert_eq!(order(&plan), [("some", PollReason::First)]);
    assert_eq!(plan.not_due, 1);
    none.feed = Some(read("2026-10-01", "2026-11-20"));
    let plan = plan_tokens(Endpoint::Burn, &[none], &basis(&source, None, None));
    assert_eq!(plan.polls.len(), 1, "a feed with a baseline is polled even if the flag is withdrawn");
}

#[test]
fn linear_unlocks_are_polled_once_per_mark_and_to_prove_a_removal() {
    let source = source();
    let polls = |endpoint: Endpoint, token: &PlanToken, source: &config::SourceSettings| {
        let plan = plan_tokens(endpoint, std::slice::from_ref(token), &basis(source, None, None));
        plan.polls.iter().map(|poll| (poll.with_segments, poll.cost, poll.known.is_some())).collect::<Vec<_>>()
    };
    let (cliffs, both) = (vec![(false, 1, true)], vec![(true, 2, false)]);
    let known = token("known", Some(read("2026-11-01", "2026-11-20")));
    assert_eq!(polls(Endpoint::UnlockEvents, &known, &source), cliffs);
    assert_eq!(polls(Endpoint::UnlockEvents, &token("new", None), &source), both);
    assert_eq!(polls(Endpoint::Burn, &token("new", None), &source), [(false, 1, false)]);
    let moved = PlanToken { last_updated: Some(time("2026-11-02")), ..known.clone() };
    assert_eq!(polls(Endpoint::UnlockEvents, &moved, &source), both);
    // The cliffs under this mark were read, but not the linear unlocks.
    let behind = PlanToken { feed: Some(read("2026-11-02", "2026-11-20")), ..moved };
    assert_eq!(polls(Endpoint::UnlockEvents, &behind, &source), both);
    let mut missing = known.clone();
    missing.feed.as_mut().expect("read").missing = vec![("2026-12-01".into(), 1)];
    assert_eq!(polls(Endpoint::UnlockEvents, &missing, &source), both);
    for (read_on, expected) in [("2026-11-15", &cliffs), ("2026-11-14", &both)] {
        let unmarked = PlanToken { last_updated: None, ..token("unmarked", Some(read("2026-11-01", read_on))) };
        assert_eq!(polls(Endpoint::UnlockEvents, &unmarked, &source), *expected, "{read_on}");
    }
    let pinned = config::SourceSettings { unlock_events: config::EndpointVersion::V(5), ..source };
    assert_eq!(polls(Endpoint::UnlockEvents, &token("new", None), &pinned), [(false, 1, false)]);
}

#[test]
fn linear_unlocks_come_from_the_version_that_completes_them() {
    let source = source();
    let poll = |token: &PlanToken| {
        let plan = plan_tokens(Endpoint::UnlockEvents, std::slice::from_ref(token), &basis(&source, None, None));
        let poll = plan.polls.first().expect("polled").clone();
        (poll.with_segments, poll.linear.segments_version, poll.linear.with_ahead, poll.cost)
    };
    let read_from =
        |version: u8, mark: &str| Some(SegmentsRead { at: time("2026-11-20"), mark: Some(time(mark)), version: Some(version) });
    let with = |linear: LinearReads| Some(Box::new(linear));
    let of_ai = |token: PlanToken| PlanToken { listed_method: Some(ListedMethod::Ai), ..token };
    let known = token("known", Some(read("2026-11-01", "2026-11-20")));
    assert_eq!(poll(&token("new", None)), (true, 1, false, 2));
    assert_eq!(poll(&of_ai(token("new", None))), (true, 3, true, 3), "nothing is known of its linear unlocks");
    let of_v3 = |linear| of_ai(PlanToken { segments: read_from(3, "2026-11-01"), linear: with(linear), ..known.clone() });
    let needed = LinearReads { needs_ahead: Some(true), ahead_at: Some(time("2026-11-13")), ..LinearReads::default() };
    assert_eq!(poll(&of_v3(LinearReads { needs_ahead: Some(false), ..needed })), (false, 3, false, 1));
    assert_eq!(poll(&of_v3(needed)), (false, 3, false, 1), "read eight days ago");
    assert_eq!(poll(&of_v3(LinearReads { ahead_at: Some(time("2026-11-12")), ..needed })), (false, 3, true, 2));
    assert_eq!(poll(&of_v3(LinearReads { ahead_at: None, ..needed })), (false, 3, true, 2));
    let absent = LinearReads { ahead_at: None, ahead_absent: Some(time("2026-10-25")), ..needed };
    assert_eq!(poll(&of_v3(absent)), (false, 3, false, 1), "the source had none 27 days ago");
    let moved = PlanToken { last_updated: Some(time("2026-11-02")), ..of_v3(needed) };
    assert_eq!(poll(&moved), (true, 3, true, 3), "read again together with the linear unlocks");
    // A token is listed by another method now, or an older program read it, or the first version lacks it.
    let listed = PlanToken { listed_method: Some(ListedMethod::Internal), ..of_v3(needed) };
    assert_eq!(poll(&listed), (true, 1, false, 2));
    let by_older =
        PlanToken { segments: read_from(3, "2026-11-01").map(|read| SegmentsRead { version: None, ..read }), ..known.clone() };
    assert_eq!((poll(&by_older), poll(&of_ai(by_older.clone()))), ((true, 1, false, 2), (true, 3, true, 3)));
    let lacking = |at: &str, method| LinearReads {
        rate_changes_absent: Some(VersionAbsence { at: time(at), method }),
        needs_ahead: Some(false),
        ..LinearReads::default()
    };
    let lacks = |linear| PlanToken { linear: with(linear), segments: read_from(3, "2026-11-01"), ..known.clone() };
    assert_eq!(poll(&lacks(lacking("2026-11-01", None))), (false, 3, false, 1));
    assert_eq!(poll(&lacks(lacking("2026-10-01", None))), (true, 1, false, 2), "tried again after 30 days");
    assert_eq!(poll(&lacks(lacking("2026-11-01", Some(ListedMethod::Ai)))), (true, 1, false, 2), "its method has changed");
}

#[test]
fn daily_emission_ahead_uses_only_spare_credits_of_first_reads() {
    let source = source();
    let tokens: Vec<PlanToken> =
        (0..4).map(|number| PlanToken { listed_method: Some(ListedMethod::Ai), ..token(&format!("t{number}"), None) }).collect();
    let with_ahead = |left| {
        let plan = plan_tokens(Endpoint::UnlockEvents, &tokens, &basis(&source, left, left));
        let with_ahead = plan.polls.iter().filter(|poll| poll.linear.with_ahead).count();
        (plan.polls.iter().filter(|poll| poll.with_segments).count(), with_ahead, plan.cost())
    };
    // The reserve has 10 credits.
    assert_eq!(with_ahead(None), (4, 4, 12));
    assert_eq!(with_ahead(Some(20)), (4, 2, 10));
    assert_eq!(with_ahead(Some(18)), (4, 0, 8));
    let first = plan_tokens(Endpoint::UnlockEvents, &tokens[..1], &basis(&source, Some(12), Some(12))).polls.remove(0);
    let repeated = first.with_segments(false);
    assert_eq!((repeated.cost, repeated.linear.with_ahead, repeated.base_cost()), (3, true, 1));
    assert_eq!(first.with_segments(true).cost, 2, "the response with the cliffs is at hand");
}

#[test]
fn unsubscribed_endpoint_leaves_credits_for_later_slots() {
    let source = source();
    let tokens: Vec<PlanToken> =
        (0..30).map(|number| token(&format!("t{number}"), Some(read("2026-11-01", "2026-10-20")))).collect();
    let polls = |is_subscribed| {
        let feeds = EndpointFeeds { endpoint: Endpoint::Allocations, is_subscribed, ..schedules(&tokens) };
        plan(Endpoint::Allocations, &[feeds], &basis(&source, Some(900), Some(100))).polls.len()
    };
    assert_eq!((polls(true), polls(false)), (30, 5), "the credits of half a day, and of one hour");
}

#[test]
fn last_credit_polls_cliffs_of_new_token_but_no_half_correction() {
    let source = source();
    let tokens = [token("new", None), token("changed", Some(read("2026-10-30", "2026-11-20")))];
    let planned =
        |token: &PlanToken| plan_tokens(Endpoint::UnlockEvents, std::slice::from_ref(token), &basis(&source, Some(11), Some(1)));
    let first = planned(&tokens[0]);
    assert_eq!(
        first.polls.iter().map(|poll| poll.with_segments).collect::<Vec<_>>(),
        [true],
        "a first read runs ahead of the even pace"
    );
    let none_in_reserve = PlanBasis {
        allowance: Allowance { left: Some(1), reserve: 0, for_first_reads: Some(1), ..basis(&source, None, None).allowance },
        ..basis(&source, None, None)
    };
    let first = plan_tokens(Endpoint::UnlockEvents, &tokens[..1], &none_in_reserve);
    assert_eq!(first.polls.iter().map(|poll| (poll.with_segments, poll.cost)).collect::<Vec<_>>(), [(false, 1)]);
    assert_eq!(planned(&tokens[1]).deferred, [(PollReason::Changed, 1)]);
}

/// A feed of `endpoint` that was polled on `read_at` and last found a correction on `found_at`.
fn found(endpoint: Endpoint, read_at: &str, found_at: Option<&str>) -> EndpointFeeds {
    let mut feed = read("2026-11-01", read_at);
    feed.findings.found_at = found_at.map(time);
    EndpointFeeds { endpoint, ..schedules(&[token("a", Some(feed))]) }
}

#[test]
fn correction_of_schedule_reports_allocations_and_the_reverse() {
    let source = source();
    let why = |endpoint, feeds: &[EndpointFeeds]| {
        let plan = plan(endpoint, feeds, &basis(&source, Some(500), Some(100)));
        plan.polls.first().map(|poll| poll.why)
    };
    let (schedule, allocations) = (Endpoint::UnlockEvents, Endpoint::Allocations);
    let corrected = [found(schedule, "2026-11-20", Some("2026-11-20")), found(allocations, "2026-11-10", None)];
    assert_eq!(why(allocations, &corrected), Some(PollReason::Changed));
    let read_since = [corrected[0].clone(), found(allocations, "2026-11-20T12:00:00Z", Some("2026-11-20T12:00:00Z"))];
    assert_eq!(why(allocations, &read_since), Some(PollReason::Verify));
    assert_eq!(why(schedule, &read_since), Some(PollReason::Verify), "the correction that the schedule showed first");
    let only_allocations = [found(schedule, "2026-11-19", None), read_since[1].clone()];
    assert_eq!(why(schedule, &only_allocations), Some(PollReason::Changed));
    let of_wrong_clock = [found(schedule, "2026-11-19", None), found(allocations, "2026-11-20", Some("2027-01-01"))];
    assert_eq!(why(schedule, &of_wrong_clock), Some(PollReason::Verify));
    let burns = [corrected[0].clone(), found(Endpoint::Burn, "2026-11-10", None)];
    assert_eq!(why(Endpoint::Burn, &burns), Some(PollReason::Verify), "burns are facts of their own");
}

#[test]
fn rare_slot_spends_what_the_days_until_the_next_one_may_spend() {
    let source = source();
    let tokens: Vec<_> = (0..90).map(|n| token(&format!("t{n:02}"), Some(read("2026-11-01", "2026-11-10")))).collect();
    let polled = |next_slot| {
        let feeds = [EndpointFeeds { next_slot: Some(time(next_slot)), ..schedules(&tokens) }];
        plan(Endpoint::UnlockEvents, &feeds, &basis(&source, Some(110), Some(11))).polls.len()
    };
    // 110 credits for ten days, 10 of them in reserve.
    assert_eq!([polled("2026-11-22"), polled("2026-11-25"), polled("2026-12-08")], [11, 44, 90]);
}

#[test]
fn first_reads_of_allocations_do_not_come_before_polls_of_schedules() {
    let source = source();
    let old: Vec<_> = (0..40).map(|n| token(&format!("o{n:02}"), Some(read("2026-11-01", "2026-11-01")))).collect();
    let unread: Vec<_> = (0..40).map(|n| token(&format!("o{n:02}"), None)).collect();
    let feeds = [
        EndpointFeeds { next_slot: Some(time("2026-11-21T00:30:00Z")), ..schedules(&old) },
        EndpointFeeds { endpoint: Endpoint::Allocations, next_slot: Some(time("2026-11-22")), ..schedules(&unread) },
    ];
    let polls = plan(Endpoint::Allocations, &feeds, &basis(&source, Some(500), Some(30))).polls;
    assert!(polls.len() <= 1 && polls.iter().all(|poll| poll.why == PollReason::Verify), "{polls:?}");
    let polls = plan(Endpoint::Allocations, &feeds, &basis(&source, Some(500), Some(90))).polls;
    assert_eq!(polls.len(), 40, "everything is affordable");
}

#[test]
fn last_credit_of_a_day_is_for_the_poll_that_needs_it_most() {
    let source = source();
    let schedule = EndpointFeeds {
        next_slot: Some(time("2026-11-21T01:00:00Z")),
        ..schedules(&[token("a", Some(read("2026-11-01", "2026-11-20")))])
    };
    let burn = EndpointFeeds {
        endpoint: Endpoint::Burn,
        next_slot: Some(time("2026-11-21T12:20:00Z")),
        slot_interval: TimeDelta::days(1),
        ..schedules(&[token("a", Some(read("2026-11-01", "2025-10-20")))])
    };
    let plan = plan(Endpoint::UnlockEvents, &[schedule, burn], &basis(&source, Some(30), Some(1)));
    assert_eq!(plan.polls, [], "a burn of 400 days waits for its slot at noon");
}

#[test]
fn unaffordable_poll_does_not_stop_cheaper_ones() {
    let source = source();
    let mut tokens: Vec<_> = (0..9).map(|n| token(&format!("t{n}"), Some(read("2026-11-01", "2026-11-20")))).collect();
    let mut large = token("large", Some(read("2026-11-01", "2026-01-25")));
    large.feed.as_mut().expect("a feed").cost = 40;
    tokens.push(large);
    assert_eq!(plan_tokens(Endpoint::UnlockEvents, &tokens, &basis(&source, Some(30), Some(6))).polls.len(), 3);
}

#[test]
fn emissions_of_many_pages_are_read_at_last() {
    let source = source();
    let old: Vec<_> = (0..40).map(|n| token(&format!("o{n:02}"), Some(read("2026-11-01", "2026-11-01")))).collect();
    let unread = FeedState { cost: 30, tried_at: Some(time("2026-11-20")), ..FeedState::default() };
    let unread: Vec<_> = (0..5).map(|n| token(&format!("o{n:02}"), Some(unread.clone()))).collect();
    let days = (0..300).filter(|day| {
        let mut basis = basis(&source, Some(1_000), Some(33));
        basis.now += TimeDelta::days(*day);
        basis.allowance.reset_at = basis.now + TimeDelta::days(30);
        let slot = |hours| Some(basis.now + TimeDelta::hours(hours));
        let feeds = [
            EndpointFeeds { next_slot: slot(1), ..schedules(&old) },
            EndpointFeeds { endpoint: Endpoint::DailyEmission, next_slot: slot(24), ..schedules(&unread) },
        ];
        !plan(Endpoint::DailyEmission, &feeds, &basis).polls.is_empty()
    });
    let days = days.count();
    assert!((3..=10).contains(&days), "{days}: a fiftieth of 9,900 credits pays for six polls");
}

#[test]
fn retries_after_a_start_leave_credits_for_schedules() {
    let source = source();
    let old: Vec<_> = (0..40).map(|n| token(&format!("o{n:02}"), Some(read("2026-11-01", "2026-11-01")))).collect();
    let unread: Vec<_> = (0..40).map(|n| token(&format!("o{n:02}"), None)).collect();
    let own = EndpointFeeds { endpoint: Endpoint::Allocations, next_slot: Some(time("2026-11-22")), ..schedules(&unread) };
    let others = vec![EndpointFeeds { next_slot: Some(time("2026-11-21T00:30:00Z")), ..schedules(&old) }];
    let retries = plan_retries(own, others, true, &basis(&source, Some(500), Some(30)));
    assert!(retries.polls.polls.len() <= 1, "{:?}", retries.polls.polls);
}
