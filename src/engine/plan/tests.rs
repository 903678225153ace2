use super::*;
use model::wire;

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
        allowance: Allowance { left, reserve: 10, today, reset_at: time("2026-12-01") },
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
    let count = |endpoint, feeds: &[EndpointFeeds]| plan(endpoint, feeds, &basis(&source, Some(500), Some(6))).asks.len();
    assert_eq!(count(Endpoint::Allocations, &feeds), 1, "two of three are the schedules'");
    assert_eq!(count(Endpoint::UnlockEvents, &feeds), 2);
    let unheard = EndpointFeeds { is_heard: false, ..feeds[1].clone() };
    let idle = schedules(&[token("o", Some(read("2026-11-01", "2026-11-20T23:00:00Z")))]);
    assert_eq!(count(Endpoint::Allocations, &[idle, unheard]), 2, "rarely is not never");
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
