//! Findings: which polls found changes, and whether a list had reported them.

use super::*;

fn poll(mark: &str, listed_at: &str) -> PlannedPoll {
    PlannedPoll { mark: Some(time(mark)), listed_at: Some(time(listed_at)), ..PlannedPoll::for_change(PollRequest::TokenList) }
}

/// A feed with a correction found on 3 March, after the list was last polled on 1 March.
fn found_by_reading() -> FeedState {
    let known = FeedState { baseline_at: Some(time("2026-01-01")), mark: Some(time("2026-02-01")), ..FeedState::default() };
    let findings = findings(&known, &poll("2026-02-01", "2026-03-01"), true, time("2026-03-03"));
    FeedState { findings, ..known }
}

#[test]
fn find_is_decided_once_the_list_is_polled_after_it() {
    let known = found_by_reading();
    assert_eq!((known.findings.found(), known.findings.undecided, known.findings.unreported), (1, 1, 0));
    let read = |mark: &str, listed_at: &str, has_found: bool| {
        let of = findings(&known, &poll(mark, listed_at), has_found, time("2026-03-09"));
        (of.by_mark, of.unreported, of.undecided, of.idle_marks)
    };
    // (reported, unreported, undecided, reported for nothing)
    assert_eq!(read("2026-02-01", "2026-03-01", false), (0, 0, 1, 0), "the list was not polled since");
    assert_eq!(read("2026-02-01", "2026-03-05", false), (0, 1, 0, 0), "the list was polled and reports nothing");
    assert_eq!(read("2026-03-02", "2026-03-05", false), (1, 0, 0, 0), "the list reported late, but correctly");
    assert_eq!(read("2026-03-08", "2026-03-08", true), (2, 0, 0, 0), "the list reported another find");
    assert_eq!(read("2026-02-01", "2026-03-05", true), (0, 1, 1, 0), "a new find is undecided");
}

#[test]
fn find_reported_by_upcoming_is_decided_likewise() {
    let known = FeedState { stale: true, findings: Findings::default(), ..found_by_reading() };
    let findings = findings(&known, &poll("2026-02-01", "2026-03-01"), true, time("2026-03-03"));
    assert_eq!((findings.undecided_upcoming, findings.unreported_at), (1, None), "it does not belong to an unreported batch");
    let settled = [ListReport::NotPolled, ListReport::Silent, ListReport::Reported].map(|word| findings.settled(word));
    let counts = settled.map(|of| (of.by_mark, of.by_upcoming, of.undecided_upcoming));
    assert_eq!(counts, [(0, 0, 1), (0, 1, 0), (1, 0, 0)]);
}

#[test]
fn removal_proof_counts_no_find_but_decides_an_open_one() {
    let known = FeedState { missing: vec![("2026-12-01".into(), 1)], ..found_by_reading() };
    let of = findings(&known, &poll("2026-03-02", "2026-03-05"), true, time("2026-03-06"));
    assert_eq!((of.by_mark, of.undecided, of.found()), (1, 0, 1));
}

#[test]
fn find_awaiting_segments_counts_once_and_not_for_upcoming() {
    let now = time("2026-03-09");
    let (old, new) = (monthly("2026-04-16", 12), monthly("2026-04-19", 12));
    let mut feed = Feed { may_add_segments: true, ..Feed::new() };
    feed.with_segments = true;
    feed.poll(&old, Some(5), now);
    feed.with_segments = false;
    let moved = feed.poll(&new, Some(5), now + TimeDelta::hours(6));
    assert!(moved.lacks_segments);
    let again = feed.poll(&new, Some(5), now + TimeDelta::hours(7));
    assert!(again.lacks_segments, "no credits were left for the second request");
    feed.with_segments = true;
    let notified = feed.poll(&new, Some(5), now + TimeDelta::hours(12));
    assert_eq!(kinds(&notified.changes), [ChangeKind::SeriesShifted], "{:?}", summaries(&notified.changes));
    let of = notified.update.state.findings;
    assert_eq!((of.undecided, of.by_upcoming, of.found(), of.awaits_segments), (1, 0, 1, false), "{of:?}");
    assert_eq!(of.unreported_at, Some(now + TimeDelta::hours(6)));
}
