use proptest::prelude::*;

use super::*;
use model::{TokenId, wire};

fn now() -> Timestamp {
    wire::parse_timestamp("2026-11-21").expect("a timestamp")
}

/// A feed that was observed for two years and read `age` days ago.
fn feed(age: f64, findings: Findings) -> FeedState {
    let read_at = now() - TimeDelta::seconds((age * 86_400.0) as i64);
    let mark = Some(now() - TimeDelta::days(900));
    FeedState {
        baseline_at: Some(read_at - TimeDelta::days(730)),
        read_at: Some(read_at),
        mark,
        findings,
        ..FeedState::default()
    }
}

fn token(feed: FeedState) -> PlanToken {
    PlanToken { last_updated: feed.mark, feed: Some(feed), ..PlanToken::unknown(TokenId::from("t")) }
}

/// Learned from feeds whose marks the list still tells as they were, asked a while ago.
fn beliefs(feeds: &[FeedState]) -> Beliefs {
    let tokens: Vec<PlanToken> = feeds.iter().cloned().map(token).collect();
    Beliefs::of(&tokens, Some(now()), now())
}

fn worth(beliefs: &Beliefs, token: &PlanToken, lists: ListAges) -> f64 {
    beliefs.expect(Endpoint::UnlockEvents, true, token, TimeDelta::days(7), now()).worth(lists)
}

const NEVER: ListAges = ListAges { token_list: f64::INFINITY, upcoming: f64::INFINITY };
const FRESH: ListAges = ListAges { token_list: 0.0, upcoming: 0.0 };

#[test]
fn a_list_that_tells_is_trusted_and_one_that_does_not_keeps_nobody_from_being_read() {
    let believed = |findings: Findings| beliefs(&vec![feed(1.0, findings); 30]);
    let tells = believed(Findings { by_mark: 2, ..Findings::default() });
    let is_silent = believed(Findings { untold: 2, ..Findings::default() });
    assert!(tells.by_mark > 0.98 && is_silent.by_mark < 0.05, "{tells:?} {is_silent:?}");
    // One feed of thirty found five in all.
    let mut feeds = vec![feed(1.0, Findings::default()); 30];
    feeds[0].findings.untold = 5;
    let is_silent_so_far = beliefs(&feeds);
    assert!(is_silent_so_far.by_mark < 0.05, "what never told is soon asked for its own sake alone: {is_silent_so_far:?}");
    let old = token(feed(10.0, Findings::default()));
    let [told, untold] = [tells, is_silent].map(|beliefs| worth(&beliefs, &old, FRESH) / worth(&beliefs, &old, NEVER));
    assert!(told < 0.1 && untold > 0.9, "{told} {untold}");
}

#[test]
fn a_mark_that_moves_for_nothing_is_worth_little() {
    let moved = |findings: Findings| {
        let feeds = vec![feed(1.0, findings); 30];
        let mut token = token(feeds[0].clone());
        token.last_updated = Some(now());
        beliefs(&feeds).expect(Endpoint::UnlockEvents, true, &token, TimeDelta::days(7), now()).is_told()
    };
    assert!(moved(Findings::default()) && moved(Findings { by_mark: 3, idle_marks: 1, ..Findings::default() }));
    assert!(!moved(Findings { idle_marks: 20, ..Findings::default() }));
}

#[test]
fn rates_are_told_apart_only_as_far_as_they_differ() {
    let counts = |counts: [u32; 3]| {
        let feeds: Vec<FeedState> =
            (0..300).map(|n| feed(1.0, Findings { untold: counts[n % 3], ..Findings::default() })).collect();
        let beliefs = beliefs(&feeds);
        let [one, other] = [2, 0].map(|n: usize| worth(&beliefs, &token(feeds[n].clone()), NEVER));
        one / other
    };
    assert!(counts([0, 0, 12]) > 10.0, "a tail is heavy");
    assert!(counts([1, 1, 2]) < 1.1, "as even as this, it is chance");
}

#[test]
fn an_event_that_is_near_and_large_weighs_more_than_one_that_is_far_or_small() {
    let beliefs = beliefs(&[]);
    let with = |days: i64, size: Option<f64>| {
        let next_event = Some(now() + TimeDelta::days(days));
        worth(&beliefs, &PlanToken { next_event, next_size: size, ..token(feed(3.0, Findings::default())) }, NEVER)
    };
    assert!(with(1, Some(10.0)) > with(1, Some(0.1)) && with(1, Some(0.1)) > with(60, Some(10.0)));
    assert!(with(1, None) >= with(1, Some(4.0)), "one of unknown size counts as large");
}

#[test]
fn a_list_that_was_asked_before_a_find_and_not_since_says_nothing_of_it() {
    let mark = |day: i64| Some(now() - TimeDelta::days(day));
    let found = Findings { undecided: 1, undecided_at: mark(10), ..Findings::default() };
    let read = feed(10.0, found);
    let unmarked = FeedState { mark: None, ..read.clone() };
    let cases = [
        ("never asked", &read, read.mark, None, ListWord::NotAsked),
        ("asked before alone", &read, read.mark, mark(11), ListWord::NotAsked),
        ("at the same time", &read, read.mark, mark(10), ListWord::NotAsked),
        ("asked after, and silent", &read, read.mark, mark(9), ListWord::Silent),
        ("asked after, and it told", &read, mark(10), mark(9), ListWord::Told),
        ("it tells nothing of this token at all", &read, None, mark(9), ListWord::NotAsked),
        ("its first mark is older than the baseline", &unmarked, mark(800), mark(9), ListWord::Silent),
        ("its first mark is younger than the baseline", &unmarked, mark(11), mark(9), ListWord::Told),
        ("nothing was found", &feed(10.0, Findings::default()), read.mark, mark(9), ListWord::NotAsked),
    ];
    for (name, feed, mark, listed_at, expected) in cases {
        assert_eq!(list_word(feed, mark, listed_at), expected, "{name}");
    }
}

#[test]
fn what_was_found_before_the_list_was_asked_neither_ends_nor_makes_the_trust_in_it() {
    let found = Findings { undecided: 5, undecided_at: Some(now() - TimeDelta::days(1)), ..Findings::default() };
    let feeds = vec![feed(1.0, found); 3];
    let learned = |mark: Option<Timestamp>, listed_days_ago: i64| {
        let moved = |feed: &FeedState| PlanToken { last_updated: mark.or(feed.mark), ..token(feed.clone()) };
        let tokens: Vec<PlanToken> = feeds.iter().map(moved).collect();
        Beliefs::of(&tokens, Some(now() - TimeDelta::days(listed_days_ago)), now())
    };
    let nothing = beliefs(&[feed(1.0, Findings::default())]);
    let [unasked, silent, told] = [learned(None, 2), learned(None, 0), learned(Some(now()), 0)].map(|of| of.by_mark);
    assert_eq!(unasked, nothing.by_mark);
    assert!(silent < 0.01 && told > 0.95, "{silent} {told}");
    assert!(learned(None, 2).rate > 4.0 * nothing.rate, "they are corrections all the same");
}

#[test]
fn what_upcoming_told_before_the_list_was_asked_counts_against_the_list_no_more() {
    let told = Findings { undecided_upcoming: 3, undecided_at: Some(now() - TimeDelta::days(1)), ..Findings::default() };
    let tokens = [token(feed(1.0, told))];
    let [before, after] = [2, 0]
        .map(|days| Beliefs::of(&tokens, Some(now() - TimeDelta::days(days)), now()))
        .map(|of| (of.by_mark, of.by_upcoming));
    assert_eq!(before.0, beliefs(&[]).by_mark);
    assert!(after.0 < 0.02 && after.1 > 0.5, "asked since, the list did not tell: {after:?}");
}

#[test]
fn the_first_correction_that_a_list_tells_ends_the_doubt() {
    let one = |findings: Findings| {
        let mut feeds = vec![feed(1.0, Findings::default()); 30];
        feeds[0].findings = findings;
        beliefs(&feeds).by_mark
    };
    let at_first = one(Findings::default());
    let [told, silent] = [Findings { by_mark: 1, ..Findings::default() }, Findings { untold: 1, ..Findings::default() }].map(one);
    assert!((0.6..0.8).contains(&at_first) && told > 0.95 && silent < 0.05, "{at_first} {told} {silent}");
}

#[test]
fn what_was_found_and_waits_for_its_segments_is_told_for_sure() {
    let waits = Findings { undecided: 1, awaits_segments: true, idle_upcoming: 50, ..Findings::default() };
    let feed = FeedState { stale: true, ..feed(1.0, waits) };
    let expected =
        beliefs(std::slice::from_ref(&feed)).expect(Endpoint::UnlockEvents, true, &token(feed), TimeDelta::days(7), now());
    assert!(expected.is_told(), "{expected:?}");
}

proptest! {
    /// Against the definition: V = tz(t) - the integral of z, summed in small steps, with what lists told taken out.
    #[test]
    fn the_worth_is_what_its_definition_says(age in 0.5_f64..200.0, untold in 0_u32..5, list in 0.1_f64..200.0) {
        let token = token(feed(age, Findings { untold, by_mark: 2, ..Findings::default() }));
        let feeds = [token.feed.clone().expect("a feed")];
        let expected = beliefs(&feeds).expect(Endpoint::UnlockEvents, true, &token, TimeDelta::days(7), now());
        let by_definition = |rate: f64, age: f64| {
            let steps = 10_000;
            let step = age / f64::from(steps);
            let integral: f64 = (0..steps).map(|n| rate * (f64::from(n) + 0.5) * step * step).sum();
            age * rate * age - integral
        };
        let (marked, shown) = (expected.rate * expected.by_mark, expected.rate * expected.by_upcoming);
        let definition = by_definition(expected.rate - marked - shown, expected.age)
            + by_definition(marked, list.min(expected.age))
            + by_definition(shown, expected.age);
        let worth = expected.worth(ListAges { token_list: list, upcoming: f64::INFINITY });
        prop_assert!((worth / definition - 1.0).abs() < 1e-6, "{worth} {definition}");
    }

    /// Read by the greatest worth, feeds are read in proportion to the root of their rates, and none starves.
    #[test]
    fn reading_by_worth_follows_the_root_of_the_rates(rates in prop::collection::vec(0.001_f64..0.009, 20)) {
        let mut read = vec![0_u32; rates.len()];
        let mut last = vec![0.0; rates.len()];
        for step in 1..5_000 {
            let at = f64::from(step);
            let worth = |n: usize| {
                let expected = Expected { rate: rates[n], by_mark: 0.0, by_upcoming: 0.0, told: 0.0, age: at - last[n] };
                expected.worth(NEVER)
            };
            let best = (0..rates.len()).max_by(|a, b| worth(*a).total_cmp(&worth(*b))).expect("one");
            (read[best], last[best]) = (read[best] + 1, at);
        }
        let roots: f64 = rates.iter().map(|rate| rate.sqrt()).sum();
        for (count, rate) in read.iter().zip(&rates) {
            let ideal = 5_000.0 * rate.sqrt() / roots;
            prop_assert!((f64::from(*count) / ideal - 1.0).abs() < 0.35, "{read:?} {rates:?}");
        }
    }
}
