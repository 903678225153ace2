use super::*;
use model::{Findings, SegmentsRead, wire};

fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a timestamp")
}

fn source() -> config::SourceSettings {
    let text = config::DEFAULTS;
    let config: config::Config = toml::from_str(text).expect("the defaults");
    config.source
}

fn token(id: &str, feed: Option<FeedState>) -> PlanToken {
    PlanToken {
        id: TokenId::from(id),
        listed: true,
        last_updated: Some(time("2026-11-01")),
        has_burn: None,
        has_buyback: None,
        next_event: None,
        // As if both parts had been read together.
        segments: feed.as_ref().and_then(|feed| Some(SegmentsRead { at: feed.read_at?, mark: feed.mark })),
        next_size: None,
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
        allowance: Allowance { left, reserve: 10, today, told: today, reset_at: time("2026-12-01") },
        spent_today: 0,
        next_slot: time("2026-11-21T12:00:00Z"),
        source,
        near: TimeDelta::days(7),
        now,
    }
}

fn schedules(tokens: &[PlanToken]) -> EndpointFeeds {
    EndpointFeeds { endpoint: Endpoint::UnlockEvents, is_heard: true, whole: FeedState::default(), tokens: tokens.to_vec() }
}

fn plan_tokens(endpoint: Endpoint, tokens: &[PlanToken], basis: &PlanBasis<'_>) -> PollPlan {
    plan(endpoint, &[EndpointFeeds { endpoint, ..schedules(tokens) }], basis)
}

fn order(plan: &PollPlan) -> Vec<(&str, PollReason)> {
    plan.asks.iter().map(|ask| (ask.request.token().map_or("", TokenId::as_str), ask.why)).collect()
}

#[test]
fn first_reads_come_first_then_proof_then_what_is_near_then_what_changed() {
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
    assert_eq!(plan.asks[1].known, None, "an unchanged answer must count as proof, so it is parsed");
    assert_eq!(plan.asks[4].known, Some(ContentHash(7)));
}

#[test]
fn pacing_defers_what_did_not_change_but_never_a_first_read() {
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
fn looking_again_keeps_an_even_pace_over_the_day_and_takes_the_longest_unread_first() {
    let source = source();
    let tokens: Vec<_> = (0..9).map(|n| token(&format!("t{n}"), Some(read("2026-11-01", &format!("2026-11-1{n}"))))).collect();
    let plan = plan_tokens(Endpoint::UnlockEvents, &tokens, &basis(&source, Some(500), Some(6)));
    let expected = [("t0", PollReason::Verify), ("t1", PollReason::Verify), ("t2", PollReason::Verify)];
    assert_eq!(order(&plan), expected, "half of the day's six until the next slot, at noon");
}

#[test]
fn what_another_endpoint_has_more_use_for_is_left_for_its_slot() {
    let source = source();
    let old: Vec<_> = (0..2).map(|n| token(&format!("o{n}"), Some(read("2026-11-01", "2026-10-10")))).collect();
    let young: Vec<_> = (0..9).map(|n| token(&format!("y{n}"), Some(read("2026-11-01", "2026-11-19")))).collect();
    let feeds = [schedules(&old), EndpointFeeds { endpoint: Endpoint::Allocations, ..schedules(&young) }];
    let count =
        |endpoint, feeds: &[EndpointFeeds], today| plan(endpoint, feeds, &basis(&source, Some(500), Some(today))).asks.len();
    assert_eq!(count(Endpoint::Allocations, &feeds, 6), 1, "two of three are the schedules'");
    assert_eq!(count(Endpoint::UnlockEvents, &feeds, 6), 2);
    let unheard = EndpointFeeds { is_heard: false, ..feeds[1].clone() };
    let idle = schedules(&[token("o", Some(read("2026-11-01", "2026-11-20T23:00:00Z")))]);
    assert_eq!(
        count(Endpoint::Allocations, &[idle, unheard], 72),
        2,
        "rarely is not never: one of an hour's three is the schedule's"
    );
}

#[test]
fn a_walk_that_is_dearer_than_the_day_is_asked_all_the_same() {
    let source = source();
    let mut dear = token("dear", Some(read("2026-11-01", "2026-10-10")));
    dear.feed.as_mut().expect("a feed").cost = 40;
    let mut basis = basis(&source, Some(500), Some(6));
    basis.next_slot = time("2026-11-22");
    assert_eq!(order(&plan_tokens(Endpoint::UnlockEvents, &[dear], &basis)), [("dear", PollReason::Verify)]);
}

#[test]
fn two_finds_in_a_row_that_nothing_told_send_for_all_that_was_not_read_since() {
    let source = source();
    let mut tokens: Vec<_> = (0..20).map(|n| token(&format!("t{n:02}"), Some(read("2026-11-01", "2026-11-20")))).collect();
    let planned = |tokens: &[PlanToken]| {
        let few = basis(&source, Some(500), Some(2));
        let few = PlanBasis { allowance: Allowance { told: Some(100), ..few.allowance }, ..few };
        plan_tokens(Endpoint::UnlockEvents, tokens, &few).asks.into_iter().map(|ask| ask.why).collect::<Vec<_>>()
    };
    for (number, hour) in [(4, 19), (9, 21)] {
        let at = time(&format!("2026-11-20T{hour}:00:00Z"));
        let feed = tokens[number].feed.as_mut().expect("a feed");
        (feed.read_at, feed.findings) = (Some(at), Findings { untold: 1, untold_at: Some(at), ..Findings::default() });
        let expected = if number == 4 { vec![PollReason::Verify] } else { vec![PollReason::Changed; 18] };
        assert_eq!(planned(&tokens), expected);
    }
}

#[test]
fn a_list_that_never_told_is_asked_the_more_rarely_the_fewer_credits_there_are() {
    let source = source();
    let asks = |days: i64, left: u64| {
        let mut list = EndpointFeeds { endpoint: Endpoint::TokenList, ..schedules(&[]) };
        let read_at = basis(&source, None, None).now - TimeDelta::days(days);
        list.whole = FeedState { baseline_at: Some(read_at), read_at: Some(read_at), cost: 1, ..FeedState::default() };
        let mut old: Vec<_> = (0..20).map(|n| token(&format!("o{n}"), Some(read("2026-11-01", "2026-11-01")))).collect();
        old[0].feed.as_mut().expect("a feed").findings.untold = 5;
        let feeds = [list, schedules(&old)];
        let share = left / 10;
        plan(Endpoint::TokenList, &feeds, &PlanBasis { spent_today: 0, ..basis(&source, Some(left), Some(share)) }).asks.len()
    };
    // One of two hundred credits: with a hundred a day every two days, were it not for three; with thirty, every week; and never longer
    // than two weeks.
    assert_eq!((asks(3, 1_000), asks(3, 300), asks(7, 300), asks(13, 10), asks(14, 10)), (1, 0, 1, 0, 1));
}

#[test]
fn nothing_is_asked_once_the_credits_are_spent() {
    let source = source();
    let plan = plan_tokens(Endpoint::UnlockEvents, &[token("new", None)], &basis(&source, Some(0), Some(0)));
    assert_eq!(plan.asks, []);
    assert_eq!(plan.spent_until, Some(time("2026-12-01")));
}

#[test]
fn a_token_without_burns_is_not_asked_for_them() {
    let source = source();
    let mut none = token("none", None);
    none.has_burn = Some(false);
    let plan = plan_tokens(Endpoint::Burn, &[none.clone(), token("some", None)], &basis(&source, None, None));
    assert_eq!(order(&plan), [("some", PollReason::First)]);
    assert_eq!(plan.resting, 1);
    none.feed = Some(read("2026-10-01", "2026-11-20"));
    let plan = plan_tokens(Endpoint::Burn, &[none], &basis(&source, None, None));
    assert_eq!(plan.asks.len(), 1, "a flag that was withdrawn does not end what was followed");
}

#[test]
fn segments_are_asked_once_for_each_mark_and_to_confirm_a_removal() {
    let source = source();
    let asks = |endpoint: Endpoint, token: &PlanToken, source: &config::SourceSettings| {
        let plan = plan_tokens(endpoint, std::slice::from_ref(token), &basis(source, None, None));
        plan.asks.iter().map(|ask| (ask.with_segments, ask.cost, ask.known.is_some())).collect::<Vec<_>>()
    };
    let (alone, both) = (vec![(false, 1, true)], vec![(true, 2, false)]);
    let known = token("known", Some(read("2026-11-01", "2026-11-20")));
    assert_eq!(asks(Endpoint::UnlockEvents, &known, &source), alone);
    assert_eq!(asks(Endpoint::UnlockEvents, &token("new", None), &source), both);
    assert_eq!(asks(Endpoint::Burn, &token("new", None), &source), [(false, 1, false)]);
    let moved = PlanToken { last_updated: Some(time("2026-11-02")), ..known.clone() };
    assert_eq!(asks(Endpoint::UnlockEvents, &moved, &source), both);
    // The cliffs of that mark were read, and the segments could not be.
    let behind = PlanToken { feed: Some(read("2026-11-02", "2026-11-20")), ..moved };
    assert_eq!(asks(Endpoint::UnlockEvents, &behind, &source), both);
    let mut missing = known.clone();
    missing.feed.as_mut().expect("read").missing = vec![("2026-12-01".into(), 1)];
    assert_eq!(asks(Endpoint::UnlockEvents, &missing, &source), both);
    for (read_on, expected) in [("2026-11-15", &alone), ("2026-11-14", &both)] {
        let unmarked = PlanToken { last_updated: None, ..token("unmarked", Some(read("2026-11-01", read_on))) };
        assert_eq!(asks(Endpoint::UnlockEvents, &unmarked, &source), *expected, "{read_on}");
    }
    let pinned = config::SourceSettings { unlock_events: config::EndpointVersion::V(5), ..source };
    assert_eq!(asks(Endpoint::UnlockEvents, &token("new", None), &pinned), [(false, 1, false)]);
}

#[test]
fn what_nobody_hears_leaves_the_credits_of_the_day_to_the_slots_to_come() {
    let source = source();
    let tokens: Vec<PlanToken> =
        (0..30).map(|number| token(&format!("t{number}"), Some(read("2026-11-01", "2026-10-20")))).collect();
    let asks = |is_heard| {
        let feeds = EndpointFeeds { endpoint: Endpoint::Allocations, is_heard, ..schedules(&tokens) };
        plan(Endpoint::Allocations, &[feeds], &basis(&source, Some(900), Some(100))).asks.len()
    };
    assert_eq!((asks(true), asks(false)), (30, 5), "half a day, and an hour of it");
}

#[test]
fn the_last_credit_reads_cliffs_but_never_half_of_what_moved() {
    let source = source();
    let tokens = [token("new", None), token("changed", Some(read("2026-10-30", "2026-11-20")))];
    let planned =
        |token: &PlanToken| plan_tokens(Endpoint::UnlockEvents, std::slice::from_ref(token), &basis(&source, Some(11), Some(1)));
    let first = planned(&tokens[0]);
    assert_eq!(first.asks.iter().map(|ask| ask.with_segments).collect::<Vec<_>>(), [true], "a first read may use the reserve");
    let none_in_reserve = PlanBasis {
        allowance: Allowance { left: Some(1), reserve: 0, ..basis(&source, None, None).allowance },
        ..basis(&source, None, None)
    };
    let first = plan_tokens(Endpoint::UnlockEvents, &tokens[..1], &none_in_reserve);
    assert_eq!(first.asks.iter().map(|ask| (ask.with_segments, ask.cost)).collect::<Vec<_>>(), [(false, 1)]);
    assert_eq!(planned(&tokens[1]).deferred, [(PollReason::Changed, 1)]);
}
