use super::*;
use model::{Findings, wire};

fn now() -> Timestamp {
    wire::parse_timestamp("2026-11-21T12:00:00Z").expect("a timestamp")
}

/// A feed that was read so many hours ago, and then found something or did not.
fn read(hours: i64, has_found: bool) -> FeedState {
    let read_at = Some(now() - TimeDelta::hours(hours));
    let findings = Findings { untold: has_found.into(), untold_at: read_at.filter(|_| has_found), ..Findings::default() };
    FeedState { baseline_at: Some(now() - TimeDelta::days(90)), read_at, findings, ..FeedState::default() }
}

/// How likely a feed that was read a day ago is taken to have been touched.
fn hits(feeds: &[FeedState]) -> f64 {
    let waiting = read(24, false);
    Burst::of(feeds.iter().chain([&waiting]), 0.001, now()).map_or(0.0, |burst| burst.hits(&waiting))
}

#[test]
fn one_find_is_a_suspicion_that_a_few_idle_reads_end_and_a_second_one_confirms() {
    let (found, idle) = (read(5, true), read(3, false));
    assert_eq!(hits(std::slice::from_ref(&idle)), 0.0);
    let one = hits(std::slice::from_ref(&found));
    assert!((0.01..0.02).contains(&one), "{one}");
    assert!(hits(&[vec![found.clone()], vec![idle.clone(); 5]].concat()) < one / 4.0);
    let second = hits(&[vec![found.clone(), read(2, true)], vec![idle.clone(); 4]].concat());
    assert!(second > 0.2, "{second}");
    assert!(hits(&[vec![found, read(2, true)], vec![idle; 30]].concat()) < 0.001, "two of many are chance");
}

#[test]
fn only_what_was_not_read_since_is_suspected_and_not_for_long() {
    let found = [read(5, true), read(4, true)];
    let burst = Burst::of(found.iter(), 0.001, now()).expect("suspected");
    assert!(burst.hits(&read(6, false)) > 0.2);
    assert_eq!((burst.hits(&read(3, false)), burst.hits(&FeedState::default())), (0.0, 0.0));
    assert_eq!(Burst::of(found.iter(), 0.001, now() + TimeDelta::days(3)), None);
}
