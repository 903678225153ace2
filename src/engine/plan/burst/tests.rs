use super::*;
use model::{Findings, wire};

fn now() -> Timestamp {
    wire::parse_timestamp("2026-11-21T12:00:00Z").expect("a timestamp")
}

/// Returns a feed that was polled `hours` ago, with or without a find.
fn read(hours: i64, has_found: bool) -> FeedState {
    let read_at = Some(now() - TimeDelta::hours(hours));
    let findings = Findings { unreported: has_found.into(), unreported_at: read_at.filter(|_| has_found), ..Findings::default() };
    FeedState { baseline_at: Some(now() - TimeDelta::days(90)), read_at, findings, ..FeedState::default() }
}

/// Returns the probability that a batch corrected a feed that was polled a day ago.
fn probability(feeds: &[FeedState]) -> f64 {
    let waiting = read(24, false);
    Burst::detect(feeds.iter().chain([&waiting]), 0.001, now()).map_or(0.0, |burst| burst.probability(&waiting))
}

#[test]
fn idle_polls_clear_a_suspicion_and_a_second_find_confirms_it() {
    let (found, idle) = (read(5, true), read(3, false));
    assert_eq!(probability(std::slice::from_ref(&idle)), 0.0);
    let one = probability(std::slice::from_ref(&found));
    assert!((0.01..0.02).contains(&one), "{one}");
    assert!(probability(&[vec![found.clone()], vec![idle.clone(); 5]].concat()) < one / 4.0);
    let second = probability(&[vec![found.clone(), read(2, true)], vec![idle.clone(); 4]].concat());
    assert!(second > 0.2, "{second}");
    assert!(probability(&[vec![found, read(2, true)], vec![idle; 30]].concat()) < 0.001, "two finds in many polls are chance");
}

#[test]
fn suspicion_covers_only_feeds_not_polled_since_and_expires() {
    let found = [read(5, true), read(4, true)];
    let burst = Burst::detect(found.iter(), 0.001, now()).expect("suspected");
    assert!(burst.probability(&read(6, false)) > 0.2);
    assert_eq!((burst.probability(&read(3, false)), burst.probability(&FeedState::default())), (0.0, 0.0));
    assert_eq!(Burst::detect(found.iter(), 0.001, now() + TimeDelta::days(3)), None);
}
