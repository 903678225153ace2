//! Responses of different endpoint versions and visibility windows.

use chrono::{Days, Months, NaiveDate, TimeDelta};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use model::{
    change::ChangeKind,
    poll::{PollRequest, SegmentsFetch},
    supply::{ContentHash, Endpoint, ListReport, Record, RecordKey, Token, TokenId},
    wire::UnlockEvent,
};
use testkit::time;

mod completeness;
mod findings;
mod rows;

fn events(rows: serde_json::Value) -> Vec<UnlockEvent> {
    serde_json::from_value(rows).expect("events")
}

/// Monthly cliffs of one recipient, in version 3.
fn monthly(from: &str, count: u32) -> Vec<UnlockEvent> {
    let row = |k: u32| {
        let date = time(from) + Months::new(k);
        json!({"unlockDate": date, "linearUnlocks": null, "cliffUnlocks": {"cliffAmount": 10.0, "allocationBreakdown":
            [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 10.0, "unlockPrecision": "second"}]}})
    };
    events((0..count).map(row).collect())
}

/// A linear segment of another recipient.
fn segment(begin: &str, end: &str, amount: f64) -> UnlockEvent {
    let part = json!({"allocationName": "Farm", "linearAmount": amount, "beginDate": time(begin), "endDate": time(end)});
    let row = json!({"unlockDate": time(begin), "cliffUnlocks": null,
                     "linearUnlocks": {"linearAmount": amount, "allocationBreakdown": [part]}});
    serde_json::from_value(row).expect("an event")
}

/// The schedule as version 5 returns it: cliffs only.
fn cliffs_only(events: &[UnlockEvent]) -> Vec<UnlockEvent> {
    let with_cliffs = events.iter().filter(|event| event.cliff_unlocks.get().is_some());
    with_cliffs.map(|event| UnlockEvent { linear_unlocks: wire::Maybe::Absent, ..event.clone() }).collect()
}

/// The events from `back` days before to `ahead` days after `now`. A server cuts at whole days.
fn clipped(events: &[UnlockEvent], back: u64, ahead: u64, now: Timestamp) -> Vec<UnlockEvent> {
    let today = now.date_naive();
    let window = DateWindow::of(today - Days::new(back), today + Days::new(ahead));
    events.iter().filter(|event| window.contains(event.unlock_date.copied())).cloned().collect()
}

/// A feed with its stored state from poll to poll.
struct Feed {
    snapshot: TokenSnapshot,
    requested: (NaiveDate, NaiveDate),
    /// Whether segments of an older version are read in addition to the cliffs.
    with_segments: bool,
    /// Whether segments can be requested if they are not read.
    may_add_segments: bool,
    /// The dates without a row in the version of the cliffs.
    without_cliffs: Vec<Timestamp>,
}

impl Feed {
    fn new() -> Self {
        let day = |text: &str| time(text).date_naive();
        let token = Token::unknown("arbitrum".into());
        let requested = (day("1970-01-01"), day("2199-12-31"));
        Self {
            snapshot: TokenSnapshot::of(token),
            requested,
            with_segments: false,
            may_add_segments: false,
            without_cliffs: Vec::new(),
        }
    }

    fn poll(&mut self, events: &[UnlockEvent], version: Option<u8>, now: Timestamp) -> IngestResult {
        let (start, end) = self.requested;
        let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token: TokenId::from("arbitrum"), start, end };
        let payload = Payload::UnlockEvents(events.to_vec());
        let response = PollResponse::clean(payload, ContentHash(0));
        let poll = PlannedPoll { may_add_segments: self.may_add_segments, ..PlannedPoll::for_change(request.clone()) };
        let fetched = FetchedResponse {
            without_cliffs: self.without_cliffs.clone(),
            segments: self.with_segments.then_some(SegmentsFetch::read(3, 1)),
            ..FetchedResponse::of_page(request, PollOutcome::Fresh(response), version)
        };
        let result = ingest(&self.snapshot, &poll, &fetched, &Settings::default(), now);
        self.snapshot.records.clone_from(&result.after);
        self.snapshot.feeds = vec![(Endpoint::UnlockEvents, result.update.state.clone())];
        if let Some(header) = &result.update.header {
            self.snapshot.headers = vec![(Endpoint::UnlockEvents, header.clone())];
        }
        result
    }

    /// Returns the changes after polling the same response `times` times, six hours apart.
    fn poll_times(&mut self, events: &[UnlockEvent], version: Option<u8>, now: Timestamp, times: i32) -> Vec<Change> {
        (0..times).flat_map(|k| self.poll(events, version, now + TimeDelta::hours(6) * k).changes).collect()
    }

    fn has_linear(&self) -> bool {
        self.snapshot
            .records
            .iter()
            .any(|tracked| matches!(&tracked.record, Record::Unlock(event) if event.linear_unlocks.get().is_some()))
    }
}

fn kinds(changes: &[Change]) -> Vec<ChangeKind> {
    changes.iter().map(|change| change.kind).collect()
}

fn summaries(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(|change| change.summary.as_str()).collect()
}

#[test]
fn removed_segment_is_reported_by_a_version_with_segments() {
    let (now, cliffs) = (time("2026-03-09"), monthly("2026-01-16", 12));
    let mut whole = cliffs.clone();
    whole.push(segment("2026-02-01", "2028-02-01", 100.0));
    let mut feed = Feed::new();
    assert_eq!(feed.poll_times(&whole, Some(3), now, 2).len(), 0);
    let notified = feed.poll_times(&cliffs, Some(3), now + Days::new(1), 4);
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
    assert!(!feed.has_linear(), "the reported segment is removed from the records");
}

#[test]
fn version_without_segments_never_proves_their_removal() {
    let (now, mut cliffs) = (time("2026-03-09"), monthly("2026-01-16", 12));
    let mut whole = cliffs.clone();
    whole.push(segment("2026-02-01", "2028-02-01", 100.0));
    // One segment begins with a cliff.
    whole[4].linear_unlocks = segment("2026-05-16", "2028-02-01", 50.0).linear_unlocks;
    let mut feed = Feed::new();
    feed.poll(&whole, Some(3), now);
    assert_eq!(summaries(&feed.poll_times(&cliffs_only(&whole), Some(5), now + Days::new(1), 4)), [""; 0]);
    // That cliff is removed; the version does not show its segment.
    cliffs.remove(4);
    let notified = feed.poll_times(&cliffs_only(&cliffs), Some(5), now + Days::new(3), 4);
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
    assert!(feed.has_linear());
    let linear = feed
        .snapshot
        .records
        .iter()
        .filter(|tracked| matches!(&tracked.record, Record::Unlock(event) if event.linear_unlocks.get().is_some()));
    assert_eq!(linear.count(), 2);
    // Nothing is added when segments are shown again.
    whole[4].cliff_unlocks = wire::Maybe::Null;
    assert_eq!(summaries(&feed.poll_times(&whole, Some(3), now + Days::new(5), 4)), [""; 0]);
    // Every cliff changed. The response still counts as one without segments.
    let other: Vec<UnlockEvent> = cliffs_only(&monthly("2026-01-26", 11));
    feed.poll_times(&other, Some(5), now + Days::new(9), 6);
    assert!(feed.has_linear());
}

#[test]
fn parts_hidden_by_another_version_are_not_removed() {
    let (now, mut whole) = (time("2026-03-09"), monthly("2026-01-16", 12));
    // The first version shows where a rate changes; the third does not.
    whole.push(segment("2026-02-01", "2027-02-01", 100.0));
    let part = whole.clone();
    whole.push(segment("2027-02-01", "2028-02-01", 50.0));
    whole.push(segment("2028-02-01", "2029-02-01", 25.0));
    let mut feed = Feed::new();
    feed.poll(&whole, Some(1), now);
    assert_eq!(summaries(&feed.poll_times(&part, Some(3), now + Days::new(1), 4)), [""; 0]);
    assert_eq!(summaries(&feed.poll_times(&whole, Some(1), now + Days::new(3), 4)), [""; 0]);
    // Within one version, the removal is proven.
    let notified = feed.poll_times(&part, Some(1), now + Days::new(5), 4);
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
}

#[test]
fn segments_only_token_may_be_empty_in_a_version_without_them() {
    let now = time("2026-03-09");
    let mut feed = Feed::new();
    feed.poll(&[segment("2026-02-01", "2028-02-01", 100.0)], Some(3), now);
    let result = feed.poll(&[], Some(5), now + Days::new(1));
    assert!(result.failure.is_none() && !result.is_held && result.changes.is_empty());
    assert!(feed.has_linear());
    let result = feed.poll(&[], Some(3), now + Days::new(2));
    assert!(result.failure.is_some(), "an empty response is a failure here");
}

#[test]
fn first_response_with_segments_adds_none() {
    let (now, cliffs) = (time("2026-03-09"), monthly("2026-01-16", 12));
    let mut whole = cliffs.clone();
    whole.push(segment("2026-02-01", "2028-02-01", 100.0));
    let mut feed = Feed::new();
    // Some servers print `"linearUnlocks": null` where they show none at all.
    feed.poll(&cliffs, Some(4), now);
    assert_eq!(summaries(&feed.poll_times(&whole, Some(3), now + Days::new(1), 2)), [""; 0]);
    assert!(feed.has_linear());
    whole.push(segment("2026-06-01", "2027-06-01", 70.0));
    let notified = feed.poll_times(&whole, Some(3), now + Days::new(2), 2);
    assert_eq!(kinds(&notified), [ChangeKind::Added], "{:?}", summaries(&notified));
}

/// A schedule whose fifth event has both a cliff and a segment, with segments read in addition to the cliffs.
fn with_segment_beside() -> (Feed, Vec<UnlockEvent>) {
    let mut whole = monthly("2026-01-16", 12);
    whole[4].linear_unlocks = segment("2026-05-16", "2028-02-01", 50.0).linear_unlocks;
    let mut feed = Feed::new();
    feed.with_segments = true;
    feed.poll(&whole, Some(5), time("2026-03-09"));
    (feed, whole)
}

#[test]
fn cliff_missing_from_the_list_is_removed_after_proof_while_its_segment_stays() {
    let (mut feed, whole) = with_segment_beside();
    let (now, date) = (time("2026-03-10"), time("2026-05-16"));
    let mut after = whole.clone();
    after[4].cliff_unlocks = wire::Maybe::Null;
    // A gap in the list of cliffs proves nothing, however often it occurs.
    assert_eq!(summaries(&feed.poll_times(&after, Some(5), now, 6)), [""; 0]);
    assert_eq!(feed.snapshot.feeds[0].1.missing, []);
    // A missing row does, with or without reading segments.
    let mut without = cliffs_only(&whole);
    without.remove(4);
    for turns in [[true, true, false], [false, true, true], [true, false, true]] {
        let (mut feed, _) = with_segment_beside();
        let mut notified = Vec::new();
        for (k, with_segments) in turns.into_iter().enumerate() {
            let at = now + TimeDelta::hours(6) * i32::try_from(k).expect("few");
            feed.with_segments = with_segments;
            feed.without_cliffs = if with_segments { vec![date] } else { Vec::new() };
            let result = feed.poll(if with_segments { &after } else { &without }, Some(5), at);
            notified.push(result.changes.len());
            if k == 1 {
                let is_gone = matches!(kinds(&result.changes)[..], [ChangeKind::Removed | ChangeKind::Resized]);
                assert!(is_gone, "{turns:?}: {:?}", summaries(&result.changes));
            }
        }
        assert_eq!(notified, [0, 1, 0], "{turns:?}");
        let kept = feed.snapshot.records.iter().filter_map(|tracked| tracked.record.unlock());
        let kept: Vec<_> = kept.filter(|event| event.unlock_date.copied() == Some(date)).collect();
        assert!(matches!(kept[..], [event] if event.cliff_unlocks.get().is_none() && event.linear_unlocks.get().is_some()));
    }
}

#[test]
fn correction_first_seen_in_cliffs_waits_for_segments() {
    let (mut feed, whole) = with_segment_beside();
    (feed.with_segments, feed.may_add_segments) = (false, true);
    let now = time("2026-03-10");
    assert_eq!(summaries(&feed.poll_times(&cliffs_only(&whole), Some(5), now, 2)), [""; 0]);
    // Most of a cliff becomes a segment that begins with it.
    let mut after = whole.clone();
    let smaller = monthly("2026-07-16", 1).swap_remove(0).cliff_unlocks.get().cloned().map(|mut cliffs| {
        cliffs.cliff_amount = 4.0.into();
        cliffs.allocation_breakdown.get_mut().expect("parts")[0].cliff_amount = 4.0.into();
        cliffs
    });
    after[6].cliff_unlocks = wire::Maybe::or_null(smaller);
    let cliffs = cliffs_only(&after);
    after[6].linear_unlocks = segment("2026-07-16", "2027-07-16", 6.0).linear_unlocks;
    let part = after[6].linear_unlocks.get_mut().and_then(|linear| linear.allocation_breakdown.get_mut()).expect("parts");
    part[0].allocation_name = "Team".to_owned().into();
    let before = feed.snapshot.records.clone();
    let result = feed.poll(&cliffs, Some(5), now + Days::new(1));
    assert!(result.lacks_segments && result.changes.is_empty() && result.failure.is_none(), "{:?}", summaries(&result.changes));
    assert_eq!(feed.snapshot.records, before);
    assert!(result.update.state.stale, "it is polled again");
    feed.with_segments = true;
    let notified = feed.poll_times(&after, Some(5), now + Days::new(1), 3);
    assert_eq!(kinds(&notified), [ChangeKind::Restructured], "{:?}", summaries(&notified));
}

// Edges of the visibility window.

#[test]
fn sliding_window_reports_nothing() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    for (back, ahead) in [(365, 365), (365, 730), (730, 730), (366, 1096)] {
        for (version, all) in [(3, all.clone()), (5, cliffs_only(&all))] {
            let mut feed = Feed::new();
            for hours in (0..300 * 24).step_by(18) {
                let now = begin + TimeDelta::hours(hours);
                let result = feed.poll(&clipped(&all, back, ahead, now), Some(version), now);
                assert_eq!(summaries(&result.changes), [""; 0], "{back}/{ahead} on {now}");
                assert!(result.update.removed.is_empty() && result.update.state.missing.is_empty() && !result.is_held);
            }
        }
    }
}

#[test]
fn removed_last_tranche_of_an_unclipped_schedule_is_reported() {
    let all = monthly("2025-01-16", 30);
    for day in 0..40 {
        let now = time("2026-03-09") + Days::new(day);
        let mut feed = Feed::new();
        feed.poll(&all, Some(3), now);
        let notified = feed.poll_times(&all[..29], Some(3), now + TimeDelta::hours(6), 4);
        assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
        assert!(!notified[0].summary.contains("moved beyond"), "no edge is near: {}", notified[0].summary);
        assert_eq!(feed.snapshot.records.len(), 29);
        // It is reported as added when it returns.
        let notified = feed.poll_times(&all, Some(3), now + Days::new(3), 2);
        assert_eq!(kinds(&notified), [ChangeKind::Added], "{:?}", summaries(&notified));
    }
}

/// An outermost event that moves day by day looks like an edge that moves with today. But an edge removes nothing ahead and adds
/// nothing behind.
#[test]
fn outermost_event_is_reported_on_each_move() {
    let begin = time("2026-03-09");
    for from in ["2024-01-16", "2026-04-16"] {
        for outermost in [0, 19] {
            for (hours, days) in [(24, 1), (24, -1), (1, 1), (48, 2), (18, 3), (24, 0), (6, -2)] {
                let mut all = monthly(from, 20);
                let mut feed = Feed::new();
                feed.poll(&all, Some(3), begin);
                for turn in 1..=6 {
                    // The first step has another length, so that the distances differ once.
                    let by = if turn == 1 { 5 } else { days };
                    let date = &mut all[outermost].unlock_date;
                    *date = date.copied().map_or(wire::Maybe::Null, |at| (at + TimeDelta::days(by)).into());
                    let now = begin + TimeDelta::hours(hours * turn);
                    let notified = feed.poll_times(&all, Some(3), now, 2);
                    let expected: &[ChangeKind] = if by == 0 { &[] } else { &[ChangeKind::Rescheduled] };
                    let what = format!("{from}, event {outermost}, {by} days after {hours} h, turn {turn}");
                    assert_eq!(kinds(&notified), expected, "{what}: {:?}", summaries(&notified));
                    assert_eq!(feed.snapshot.records.len(), 20, "{what}");
                }
            }
        }
    }
}

#[test]
fn plan_change_neither_removes_nor_adds_events() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    for weekly in [1, 7] {
        let mut feed = Feed::new();
        let mut notified = Vec::new();
        for poll in 0..120 {
            let now = begin + Days::new(poll * weekly);
            let (back, ahead) = match poll {
                0..30 => (4_000, 4_000),
                30..60 => (365, 365),
                60..90 => (730, 730),
                _ => (4_000, 4_000),
            };
            let result = feed.poll(&clipped(&all, back, ahead, now), Some(3), now);
            assert!(!result.is_held && result.update.removed.is_empty(), "poll {poll}");
            notified.extend(result.changes);
        }
        assert_eq!(summaries(&notified), [""; 0]);
        assert_eq!(feed.snapshot.records.len(), 120);
    }
}

#[test]
fn series_shift_at_a_window_edge_is_one_change() {
    let (begin, all) = (time("2026-03-09"), monthly("2022-01-16", 120));
    for by in [-12, -3, 5, 11] {
        let mut shifted = all.clone();
        for event in &mut shifted {
            event.unlock_date = event.unlock_date.copied().map_or(wire::Maybe::Null, |at| (at + TimeDelta::days(by)).into());
        }
        let mut feed = Feed::new();
        let mut notified = Vec::new();
        for day in 0..200 {
            let now = begin + Days::new(day);
            let schedule = if day < 100 { &all } else { &shifted };
            notified.extend(feed.poll(&clipped(schedule, 365, 365, now), Some(3), now).changes);
        }
        assert_eq!(kinds(&notified), [ChangeKind::SeriesShifted], "{by}: {:?}", summaries(&notified));
        let mut dates: Vec<_> = feed.snapshot.records.iter().filter_map(|tracked| tracked.record.interval()).collect();
        let count = dates.len();
        dates.sort_by_key(|interval| interval.start);
        dates.dedup_by_key(|interval| interval.start);
        assert_eq!(dates.len(), count, "{by}: no event is stored twice");
    }
}

#[test]
fn segments_entering_during_a_long_pause_are_not_reported() {
    let month = |k: u32| segment(&(time("2022-01-16") + Months::new(k)).to_rfc3339(), "2032-01-16", 10.0);
    let all: Vec<UnlockEvent> = (0..120).map(month).collect();
    for pause in [30, 90, 150, 300] {
        let mut feed = Feed::new();
        feed.with_segments = true;
        for poll in 0..6 {
            let now = time("2024-03-09") + Days::new(poll * pause);
            let result = feed.poll(&clipped(&all, 365, 365, now), Some(5), now);
            assert_eq!(summaries(&result.changes), [""; 0], "every {pause} days, on {now}");
            assert!(!result.is_held && result.update.state.missing.is_empty(), "every {pause} days, on {now}");
        }
    }
}

#[test]
fn removal_near_the_window_edge_may_be_a_move() {
    let all = monthly("2022-01-16", 120);
    let mut moved = all.clone();
    moved[60].unlock_date = time("2029-03-03").into();
    let begin = time("2026-03-09");
    let mut feed = Feed::new();
    let mut notified = Vec::new();
    for day in 0..80 {
        let now = begin + Days::new(day);
        notified.extend(feed.poll(&clipped(if day < 60 { &all } else { &moved }, 730, 730, now), Some(3), now).changes);
    }
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
    assert!(notified[0].summary.contains(", or moved beyond "), "{}", notified[0].summary);
}

// Real schedules behind a sliding window.

static BUNDLED: std::sync::LazyLock<Vec<(String, Vec<UnlockEvent>)>> = std::sync::LazyLock::new(bundled);

/// The bundled schedules, as version 3 returns them.
fn bundled() -> Vec<(String, Vec<UnlockEvent>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/unlock-events");
    let mut all: Vec<(String, Vec<UnlockEvent>)> = std::fs::read_dir(folder)
        .expect("the bundled schedules")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, serde_json::from_str(&std::fs::read_to_string(&path).expect("a file")).expect("events"))
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    // Versions of corrected schedules count as schedules.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/revisions");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the bundled corrections").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")) {
        let text = std::fs::read_to_string(path).expect("a file");
        let line: serde_json::Value = serde_json::from_str(text.lines().next().expect("a version")).expect("a version");
        all.push((path.file_stem().expect("a name").to_string_lossy().into_owned(), events(line["data"].clone())));
    }
    all
}

/// A server that cuts a number of years to either side at whole days, and the times of the polls.
#[derive(Clone, Debug)]
struct Sliding {
    back: u64,
    ahead: u64,
    begin: u32,
    step_hours: i64,
    polls: i64,
    version: u8,
    /// The polls at which segments are read in addition to the cliffs of version 5.
    segments_every: i64,
}

fn sliding() -> impl Strategy<Value = Sliding> {
    let years = || (1..=3_u64, 0..=1_u64).prop_map(|(years, day)| years * 365 + day);
    (years(), years(), 0..1_200_u32, 5..72_i64, 40..120_i64, prop_oneof![Just(3_u8), Just(5)], 1..200_i64).prop_map(
        |(back, ahead, begin, step_hours, polls, version, segments_every)| Sliding {
            back,
            ahead,
            begin,
            step_hours,
            polls,
            version,
            // After more than a season, only cliffs can prove an edge ahead.
            segments_every: segments_every.min(80 * 24 / step_hours),
        },
    )
}

impl Sliding {
    fn now(&self, poll: i64) -> Timestamp {
        time("2024-01-01T05:00:00Z") + Days::new(u64::from(self.begin)) + TimeDelta::hours(self.step_hours * poll)
    }

    /// Polls as the planner does: with segments if they are due, or to confirm a removal.
    fn poll(&self, feed: &mut Feed, schedule: &[UnlockEvent], poll: i64) -> IngestResult {
        let state = feed.snapshot.feed(Endpoint::UnlockEvents);
        let must_confirm = state.is_some_and(FeedState::awaits_proof);
        feed.with_segments = self.version == 5 && (must_confirm || poll % self.segments_every == 0);
        let seen = clipped(schedule, self.back, self.ahead, self.now(poll));
        let response = if self.version == 3 || feed.with_segments { seen } else { cliffs_only(&seen) };
        feed.poll(&response, Some(self.version), self.now(poll))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sliding_window_over_a_real_schedule_reports_nothing(which in any::<prop::sample::Index>(), sliding in sliding()) {
        let schedules = &*BUNDLED;
        let (name, schedule) = &schedules[which.index(schedules.len())];
        let mut feed = Feed::new();
        for poll in 0..sliding.polls {
            let result = sliding.poll(&mut feed, schedule, poll);
            prop_assert!(result.changes.is_empty() && !result.is_held, "{name}, {sliding:?}, poll {poll}: {:?}", summaries(&result.changes));
            prop_assert!(result.update.removed.is_empty() && result.update.state.missing.is_empty(), "{name}, {sliding:?}, poll {poll}");
            prop_assert!(result.failure.is_none(), "{name}, {sliding:?}, poll {poll}: {:?}", result.failure);
        }
    }

    #[test]
    fn real_correction_inside_the_window_is_reported_once(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), what in 0..3_u8, sliding in sliding(),
    ) {
        let schedules = &*BUNDLED;
        let (name, schedule) = &schedules[which.index(schedules.len())];
        // Far from both edges during the test, on a unique date, and with an amount that no neighboring tranche explains.
        let (first, last) = (sliding.now(0), sliding.now(sliding.polls));
        let is_inside = |event: &&UnlockEvent| {
            let date = event.unlock_date.copied();
            event.cliff_unlocks.get().is_some()
                && date.is_some_and(|date| date > last + Days::new(20) && date < first + Days::new(sliding.ahead - 30))
        };
        let inside: Vec<&UnlockEvent> = schedule.iter().filter(is_inside).collect();
        prop_assume!(inside.len() >= 4);
        let target = inside[at.index(inside.len())].unlock_date.copied();
        let mut corrected = schedule.clone();
        for event in corrected.iter_mut().filter(|event| event.unlock_date.copied() == target) {
            match what {
                0 => {
                    for part in event.cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).into_iter().flatten() {
                        if let Some(amount) = part.cliff_amount.copied() {
                            part.cliff_amount = (amount * 1.37).into();
                        }
                    }
                }
                1 => event.unlock_date = target.map_or(wire::Maybe::Null, |at| (at + TimeDelta::hours(5)).into()),
                _ => {}
            }
        }
        if what == 2 {
            corrected.retain(|event| event.unlock_date.copied() != target);
        }
        let mut feed = Feed::new();
        let mut notified = Vec::new();
        for poll in 0..sliding.polls {
            let schedule = if poll < sliding.polls / 2 { schedule } else { &corrected };
            let result = sliding.poll(&mut feed, schedule, poll);
            if !result.changes.is_empty() {
                notified.push((poll, result.changes));
            }
        }
        let when: Vec<(i64, Vec<&str>)> = notified.iter().map(|(poll, changes)| (*poll, summaries(changes))).collect();
        let expected = sliding.polls / 2 + i64::from(what == 2);
        prop_assert!(when.len() == 1 && when[0].0 == expected, "{name}, {sliding:?}, {target:?}: {when:?}");
        prop_assert!(when[0].1.len() <= 2, "{name}, {sliding:?}, {target:?}: {when:?}");
    }
}

// Empty responses.

#[test]
fn response_is_emptied_only_if_requested_days_had_events() {
    let now = time("2026-03-09");
    let mut feed = Feed::new();
    feed.requested.0 = time("2026-02-07").date_naive();
    feed.poll(&monthly("2026-02-20", 1), Some(3), now);
    let emptied = feed.poll(&[], Some(3), now + Days::new(1));
    assert_eq!(emptied.failure.map(|failure| failure.kind), Some(FailureKind::Emptied));
    // The requested days move on and leave the only event behind.
    feed.requested.0 = time("2026-02-21").date_naive();
    let empty = feed.poll(&[], Some(3), now + Days::new(14));
    assert_eq!((empty.failure, empty.changes.len(), empty.after.len()), (None, 0, 1));
    assert_eq!(empty.update.state.failing_since, None);
}

#[test]
fn burns_before_the_requested_days_do_not_make_an_empty_response_a_failure() {
    let burn: wire::Burn = serde_json::from_value(json!({"burnDate": "2026-01-10T00:00:00Z", "amount": 5.0})).expect("a burn");
    let request = |start: &str| PollRequest::Token {
        endpoint: Endpoint::Burn,
        token: "arbitrum".into(),
        start: time(start).date_naive(),
        end: time("2026-12-31").date_naive(),
    };
    let mut snapshot = Feed::new().snapshot;
    snapshot.records = vec![Tracked { key: RecordKey::from("a"), record: Record::Burn(Box::new(burn)) }];
    snapshot.feeds = vec![(Endpoint::Burn, FeedState { baseline_at: Some(time("2026-01-11")), ..FeedState::default() })];
    let emptied = |start: &str| {
        let payload = Payload::Burns(serde_json::from_value(json!({"burns": []})).expect("burns"));
        let response = PollResponse::clean(payload, ContentHash(0));
        let poll = PlannedPoll::for_change(request(start));
        let fetched = FetchedResponse::of_page(request(start), PollOutcome::Fresh(response), None);
        ingest(&snapshot, &poll, &fetched, &Settings::default(), time("2026-03-09")).failure.is_some()
    };
    assert!(emptied("2026-01-01"));
    assert!(!emptied("2026-02-01"));
}
