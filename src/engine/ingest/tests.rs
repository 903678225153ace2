//! Responses of different endpoint versions and visibility windows.

use std::collections::BTreeMap;

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
mod edges;
mod findings;
mod rows;
mod versions;

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
    /// The responses about all tokens.
    listed: ListedSchedules,
}

impl Feed {
    fn new() -> Self {
        Self::of("arbitrum")
    }

    fn of(token: &str) -> Self {
        let day = |text: &str| time(text).date_naive();
        let token = Token::unknown(token.into());
        let requested = (day("1970-01-01"), day("2199-12-31"));
        Self {
            snapshot: TokenSnapshot::of(token),
            requested,
            with_segments: false,
            may_add_segments: false,
            without_cliffs: Vec::new(),
            listed: ListedSchedules::default(),
        }
    }

    fn poll(&mut self, events: &[UnlockEvent], version: Option<u8>, now: Timestamp) -> IngestResult {
        let (start, end) = self.requested;
        let token = self.snapshot.token.id.clone();
        let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token, start, end };
        let payload = Payload::UnlockEvents(events.to_vec());
        let response = PollResponse::clean(payload, ContentHash(0));
        let poll = PlannedPoll { may_add_segments: self.may_add_segments, ..PlannedPoll::for_change(request.clone()) };
        let fetched = FetchedResponse {
            without_cliffs: self.without_cliffs.clone(),
            segments: self.with_segments.then_some(SegmentsFetch::read(3, 1)),
            ..FetchedResponse::of_page(request, PollOutcome::Fresh(response), version)
        };
        let result = ingest(&self.snapshot, &poll, &fetched, (&Settings::default(), &self.listed), now);
        self.listed.apply(&result.update);
        self.snapshot.records = stored_after(&self.snapshot.records, &result);
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

/// Returns the records that the database has after a poll: what was stored, with what the poll writes and removes. They must be those
/// that are evaluated.
fn stored_after(before: &[Tracked], result: &IngestResult) -> Vec<Tracked> {
    let mut stored: BTreeMap<RecordKey, Tracked> = before.iter().map(|tracked| (tracked.key.clone(), tracked.clone())).collect();
    stored.retain(|key, _| !result.update.removed.contains(key));
    stored.extend(result.update.put.iter().map(|put| {
        let tracked = Tracked { key: put.key.clone(), record: put.record.clone() };
        (put.key.clone(), tracked)
    }));
    let evaluated: BTreeMap<RecordKey, Tracked> =
        result.after.iter().map(|tracked| (tracked.key.clone(), tracked.clone())).collect();
    assert_eq!(result.after.len(), evaluated.len(), "keys are unique");
    let keys = |records: &BTreeMap<RecordKey, Tracked>| records.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert!(stored == evaluated, "the database has {:?}, and evaluated is {:?}", keys(&stored), keys(&evaluated));
    stored.into_values().collect()
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

/// The source can replace a date with a placeholder, 1970-01-01, which is before the first requested day.
#[test]
fn unlock_that_gets_a_placeholder_is_not_removed() {
    let (now, mut before) = (time("2026-03-09"), monthly("2026-01-16", 12));
    let mut single = monthly("2027-08-22", 1);
    if let Some(parts) = single[0].cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()) {
        (parts[0].allocation_name, parts[0].cliff_amount) = ("Miners".to_owned().into(), 500.0.into());
    }
    before.extend(single);
    for first in ["1970-01-01", "1976-01-01"] {
        let mut after = before.clone();
        let last = after.last_mut().expect("an event");
        last.unlock_date = time("1970-01-01").into();
        let parts = last.cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).expect("parts");
        parts[0].unlock_date = time("1970-01-01").into();
        let mut feed = Feed::new();
        feed.requested.0 = time(first).date_naive();
        feed.poll(&before, Some(5), now);
        let notified = feed.poll_times(&after, Some(5), now + Days::new(1), 4);
        let [change] = &notified[..] else { panic!("{:?}", summaries(&notified)) };
        assert!([ChangeKind::Rescheduled, ChangeKind::Revised].contains(&change.kind), "{}", change.summary);
    }
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
        ingest(&snapshot, &poll, &fetched, (&Settings::default(), ListedSchedules::NONE), time("2026-03-09")).failure.is_some()
    };
    assert!(emptied("2026-01-01"));
    assert!(!emptied("2026-02-01"));
}
