use proptest::prelude::*;

use super::*;
use model::{TokenId, wire};

fn now() -> Timestamp {
    wire::parse_timestamp("2026-11-21").expect("a timestamp")
}

/// Returns a feed that was observed for two years and polled `age` days ago.
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

/// Returns the model of feeds whose marks are unchanged in a current token list.
fn model(feeds: &[FeedState]) -> CorrectionModel {
    let tokens: Vec<PlanToken> = feeds.iter().cloned().map(token).collect();
    CorrectionModel::learn(&tokens, Some(now()), now())
}

fn benefit(model: &CorrectionModel, token: &PlanToken, lists: ListAges) -> f64 {
    model.estimate(Endpoint::UnlockEvents, true, token, TimeDelta::days(7), now()).benefit(lists)
}

const NEVER: ListAges = ListAges { token_list: f64::INFINITY, upcoming: f64::INFINITY };
const FRESH: ListAges = ListAges { token_list: 0.0, upcoming: 0.0 };

#[test]
fn only_a_list_that_reports_corrections_replaces_polls() {
    let model_of = |findings: Findings| model(&vec![feed(1.0, findings); 30]);
    let reporting = model_of(Findings { by_mark: 2, ..Findings::default() });
    let silent = model_of(Findings { unreported: 2, ..Findings::default() });
    assert!(reporting.by_mark > 0.98 && silent.by_mark < 0.05, "{reporting:?} {silent:?}");
    // All five corrections were found in one of thirty feeds.
    let mut feeds = vec![feed(1.0, Findings::default()); 30];
    feeds[0].findings.unreported = 5;
    let silent_so_far = model(&feeds);
    assert!(silent_so_far.by_mark < 0.05, "{silent_so_far:?}");
    let old = token(feed(10.0, Findings::default()));
    let [reporting, silent] = [reporting, silent].map(|model| benefit(&model, &old, FRESH) / benefit(&model, &old, NEVER));
    assert!(reporting < 0.1 && silent > 0.9, "{reporting} {silent}");
}

#[test]
fn mark_that_often_moves_without_correction_is_not_a_report() {
    let moved = |findings: Findings| {
        let feeds = vec![feed(1.0, findings); 30];
        let mut token = token(feeds[0].clone());
        token.last_updated = Some(now());
        model(&feeds).estimate(Endpoint::UnlockEvents, true, &token, TimeDelta::days(7), now()).is_change_reported()
    };
    assert!(moved(Findings::default()) && moved(Findings { by_mark: 3, idle_marks: 1, ..Findings::default() }));
    assert!(!moved(Findings { idle_marks: 20, ..Findings::default() }));
}

#[test]
fn rates_are_separated_only_if_counts_differ_significantly() {
    let ratio = |counts: [u32; 3]| {
        let feeds: Vec<FeedState> =
            (0..300).map(|n| feed(1.0, Findings { unreported: counts[n % 3], ..Findings::default() })).collect();
        let model = model(&feeds);
        let [one, other] = [2, 0].map(|n: usize| benefit(&model, &token(feeds[n].clone()), NEVER));
        one / other
    };
    assert!(ratio([0, 0, 12]) > 10.0, "a heavy tail");
    assert!(ratio([1, 1, 2]) < 1.1, "differences by chance");
}

#[test]
fn near_and_large_event_weighs_more_than_far_or_small_one() {
    let model = model(&[]);
    let with = |days: i64, size: Option<f64>| {
        let next_event = Some(now() + TimeDelta::days(days));
        benefit(&model, &PlanToken { next_event, next_size: size, ..token(feed(3.0, Findings::default())) }, NEVER)
    };
    assert!(with(1, Some(10.0)) > with(1, Some(0.1)) && with(1, Some(0.1)) > with(60, Some(10.0)));
    assert!(with(1, None) >= with(1, Some(4.0)), "an unknown size counts as large");
}

#[test]
fn list_decides_a_find_only_if_polled_after_it() {
    let mark = |day: i64| Some(now() - TimeDelta::days(day));
    let found = Findings { undecided: 1, undecided_at: mark(10), ..Findings::default() };
    let read = feed(10.0, found);
    let unmarked = FeedState { mark: None, ..read.clone() };
    let cases = [
        ("never polled", &read, read.mark, None, ListReport::NotPolled),
        ("polled only before", &read, read.mark, mark(11), ListReport::NotPolled),
        ("polled at the same time", &read, read.mark, mark(10), ListReport::NotPolled),
        ("polled after, mark unchanged", &read, read.mark, mark(9), ListReport::Silent),
        ("polled after, mark moved", &read, mark(10), mark(9), ListReport::Reported),
        ("no mark for this token", &read, None, mark(9), ListReport::NotPolled),
        ("first mark is older than the baseline", &unmarked, mark(800), mark(9), ListReport::Silent),
        ("first mark is newer than the baseline", &unmarked, mark(11), mark(9), ListReport::Reported),
        ("nothing was found", &feed(10.0, Findings::default()), read.mark, mark(9), ListReport::NotPolled),
    ];
    for (name, feed, mark, listed_at, expected) in cases {
        assert_eq!(list_report(feed, mark, listed_at), expected, "{name}");
    }
}

#[test]
fn undecided_find_does_not_change_trust_in_the_list() {
    let found = Findings { undecided: 5, undecided_at: Some(now() - TimeDelta::days(1)), ..Findings::default() };
    let feeds = vec![feed(1.0, found); 3];
    let learned = |mark: Option<Timestamp>, listed_days_ago: i64| {
        let moved = |feed: &FeedState| PlanToken { last_updated: mark.or(feed.mark), ..token(feed.clone()) };
        let tokens: Vec<PlanToken> = feeds.iter().map(moved).collect();
        CorrectionModel::learn(&tokens, Some(now() - TimeDelta::days(listed_days_ago)), now())
    };
    let without_finds = model(&[feed(1.0, Findings::default())]);
    let [undecided, silent, reported] = [learned(None, 2), learned(None, 0), learned(Some(now()), 0)].map(|of| of.by_mark);
    assert_eq!(undecided, without_finds.by_mark);
    assert!(silent < 0.01 && reported > 0.95, "{silent} {reported}");
    assert!(learned(None, 2).rate > 4.0 * without_finds.rate, "undecided corrections still count for the rate");
}

#[test]
fn find_reported_by_upcoming_counts_against_the_list_once_polled() {
    let reported = Findings { undecided_upcoming: 3, undecided_at: Some(now() - TimeDelta::days(1)), ..Findings::default() };
    let tokens = [token(feed(1.0, reported))];
    let [before, after] = [2, 0]
        .map(|days| CorrectionModel::learn(&tokens, Some(now() - TimeDelta::days(days)), now()))
        .map(|of| (of.by_mark, of.by_upcoming));
    assert_eq!(before.0, model(&[]).by_mark);
    assert!(after.0 < 0.02 && after.1 > 0.5, "the list was polled since and did not report it: {after:?}");
}

#[test]
fn first_reported_correction_establishes_trust_in_the_list() {
    let one = |findings: Findings| {
        let mut feeds = vec![feed(1.0, Findings::default()); 30];
        feeds[0].findings = findings;
        model(&feeds).by_mark
    };
    let at_first = one(Findings::default());
    let [reported, silent] =
        [Findings { by_mark: 1, ..Findings::default() }, Findings { unreported: 1, ..Findings::default() }].map(one);
    assert!((0.05..0.15).contains(&at_first) && reported > 0.95 && silent < 0.05, "{at_first} {reported} {silent}");
}

#[test]
fn correction_without_its_linear_unlocks_counts_as_reported() {
    let waiting = Findings { undecided: 1, awaits_segments: true, idle_upcoming: 50, ..Findings::default() };
    let feed = FeedState { stale: true, ..feed(1.0, waiting) };
    let estimate =
        model(std::slice::from_ref(&feed)).estimate(Endpoint::UnlockEvents, true, &token(feed), TimeDelta::days(7), now());
    assert!(estimate.is_change_reported(), "{estimate:?}");
}

proptest! {
    /// The definition is V = tz(t) - the integral of z, here summed in small steps, with the reported shares handled separately.
    #[test]
    fn benefit_matches_its_definition(age in 0.5_f64..200.0, unreported in 0_u32..5, list in 0.1_f64..200.0) {
        let token = token(feed(age, Findings { unreported, by_mark: 2, ..Findings::default() }));
        let feeds = [token.feed.clone().expect("a feed")];
        let estimate = model(&feeds).estimate(Endpoint::UnlockEvents, true, &token, TimeDelta::days(7), now());
        let by_definition = |rate: f64, age: f64| {
            let steps = 10_000;
            let step = age / f64::from(steps);
            let integral: f64 = (0..steps).map(|n| rate * (f64::from(n) + 0.5) * step * step).sum();
            age * rate * age - integral
        };
        let (marked, shown) = (estimate.rate * estimate.by_mark, estimate.rate * estimate.by_upcoming);
        let definition = by_definition(estimate.rate - marked - shown, estimate.age)
            + by_definition(marked, list.min(estimate.age))
            + by_definition(shown, estimate.age);
        let benefit = estimate.benefit(ListAges { token_list: list, upcoming: f64::INFINITY });
        prop_assert!((benefit / definition - 1.0).abs() < 1e-6, "{benefit} {definition}");
    }

    /// Polling by priority polls each feed in proportion to the square root of its rate, and no feed starves.
    #[test]
    fn polling_by_priority_follows_the_root_of_the_rates(rates in prop::collection::vec(0.001_f64..0.009, 20)) {
        let mut read = vec![0_u32; rates.len()];
        let mut last = vec![0.0; rates.len()];
        for step in 1..5_000 {
            let at = f64::from(step);
            let benefit = |n: usize| {
                let estimate = FeedEstimate { rate: rates[n], by_mark: 0.0, by_upcoming: 0.0, reported: 0.0, age: at - last[n] };
                estimate.benefit(NEVER)
            };
            let best = (0..rates.len()).max_by(|a, b| benefit(*a).total_cmp(&benefit(*b))).expect("one");
            (read[best], last[best]) = (read[best] + 1, at);
        }
        let roots: f64 = rates.iter().map(|rate| rate.sqrt()).sum();
        for (count, rate) in read.iter().zip(&rates) {
            let ideal = 5_000.0 * rate.sqrt() / roots;
            prop_assert!((f64::from(*count) / ideal - 1.0).abs() < 0.35, "{read:?} {rates:?}");
        }
    }
}
