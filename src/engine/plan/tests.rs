use super::*;
use model::{SegmentsRead, wire};

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
        segments: feed.as_ref().and_then(|feed| Some(SegmentsRead { at: feed.read_at?, mark: feed.mark })),
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
        backbone_today: 2,
        ticks_today: 2,
        source,
        near: TimeDelta::days(7),
        now,
    }
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
fn looking_again_leaves_the_lists_their_share_of_the_day() {
    let source = source();
    let tokens: Vec<_> = (0..9).map(|n| token(&format!("t{n}"), Some(read("2026-11-01", &format!("2026-11-1{n}"))))).collect();
    let plan = plan_tokens(Endpoint::UnlockEvents, &tokens, &basis(&source, Some(500), Some(8)));
    assert_eq!(
        order(&plan),
        [("t0", PollReason::Verify), ("t1", PollReason::Verify), ("t2", PollReason::Verify)],
        "(8 - 2) over 2 ticks, longest unread first"
    );
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
