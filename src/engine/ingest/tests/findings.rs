//! What is counted of a read: what it found, and who had told.

use super::*;

fn ask(mark: &str, listed_at: &str) -> PlannedPoll {
    PlannedPoll { mark: Some(time(mark)), listed_at: Some(time(listed_at)), ..PlannedPoll::of(PollRequest::TokenList) }
}

/// A feed whose correction was found on 3 March, when the list had last been asked on the first.
fn found_by_reading() -> FeedState {
    let known = FeedState { baseline_at: Some(time("2026-01-01")), mark: Some(time("2026-02-01")), ..FeedState::default() };
    let findings = findings(&known, &ask("2026-02-01", "2026-03-01"), true, time("2026-03-03"));
    FeedState { findings, ..known }
}

#[test]
fn a_find_counts_for_or_against_the_list_once_the_list_was_asked_after_it() {
    let known = found_by_reading();
    assert_eq!((known.findings.found(), known.findings.undecided, known.findings.untold), (1, 1, 0));
    let read = |mark: &str, listed_at: &str, has_found: bool| {
        let of = findings(&known, &ask(mark, listed_at), has_found, time("2026-03-09"));
        (of.by_mark, of.untold, of.undecided, of.idle_marks)
    };
    // (told, untold, undecided, told for nothing)
    assert_eq!(read("2026-02-01", "2026-03-01", false), (0, 0, 1, 0), "it was not asked since");
    assert_eq!(read("2026-02-01", "2026-03-05", false), (0, 1, 0, 0), "it was asked and is silent");
    assert_eq!(read("2026-03-02", "2026-03-05", false), (1, 0, 0, 0), "it told late, and not for nothing");
    assert_eq!(read("2026-03-08", "2026-03-08", true), (2, 0, 0, 0), "and again");
    assert_eq!(read("2026-02-01", "2026-03-05", true), (0, 1, 1, 0), "a find of its own waits again");
}

#[test]
fn so_does_a_find_that_upcoming_told() {
    let known = FeedState { stale: true, findings: Findings::default(), ..found_by_reading() };
    let findings = findings(&known, &ask("2026-02-01", "2026-03-01"), true, time("2026-03-03"));
    assert_eq!((findings.undecided_upcoming, findings.untold_at), (1, None), "it is of no batch that nothing tells");
    let settled = [ListWord::NotAsked, ListWord::Silent, ListWord::Told].map(|word| findings.settled(word));
    let counts = settled.map(|of| (of.by_mark, of.by_upcoming, of.undecided_upcoming));
    assert_eq!(counts, [(0, 0, 1), (0, 1, 0), (1, 0, 0)]);
}

#[test]
fn the_proof_of_a_removal_counts_nothing_anew_but_what_the_list_says_of_it_is_heard() {
    let known = FeedState { missing: vec![("2026-12-01".into(), 1)], ..found_by_reading() };
    let of = findings(&known, &ask("2026-03-02", "2026-03-05"), true, time("2026-03-06"));
    assert_eq!((of.by_mark, of.undecided, of.found()), (1, 0, 1));
}

#[test]
fn what_waits_for_its_segments_is_counted_once_and_not_as_told_by_upcoming() {
    let now = time("2026-03-09");
    let (old, new) = (monthly("2026-04-16", 12), monthly("2026-04-19", 12));
    let mut feed = Feed { may_add_segments: true, ..Feed::new() };
    feed.with_segments = true;
    feed.poll(&old, Some(5), now);
    feed.with_segments = false;
    let moved = feed.poll(&new, Some(5), now + TimeDelta::hours(6));
    assert!(moved.lacks_segments);
    let again = feed.poll(&new, Some(5), now + TimeDelta::hours(7));
    assert!(again.lacks_segments, "the second one could not be paid");
    feed.with_segments = true;
    let told = feed.poll(&new, Some(5), now + TimeDelta::hours(12));
    assert_eq!(kinds(&told.changes), [ChangeKind::SeriesShifted], "{:?}", said(&told.changes));
    let of = told.update.state.findings;
    assert_eq!((of.undecided, of.by_upcoming, of.found(), of.awaits_segments), (1, 0, 1, false), "{of:?}");
    assert_eq!(of.untold_at, Some(now + TimeDelta::hours(6)));
}
