//! Linear unlocks of different endpoint versions, and daily emission ahead.

use super::*;
use model::{
    poll::AheadFetch,
    supply::{KnownSupply, LinearAhead, SupplyCoverage, supply_coverage},
};

/// A feed whose linear unlocks are read in addition to its cliffs.
struct AutoFeed(Feed);

impl AutoFeed {
    fn new() -> Self {
        Self(Feed { may_add_segments: true, ..Feed::new() })
    }

    /// Polls the schedule with linear unlocks of a version, and daily emission ahead.
    fn poll(&mut self, events: &[UnlockEvent], version: u8, ahead: Option<Vec<wire::Emission>>, now: Timestamp) -> IngestResult {
        let (start, end) = self.0.requested;
        let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token: TokenId::from("arbitrum"), start, end };
        let response = PollResponse::clean(Payload::UnlockEvents(events.to_vec()), ContentHash(0));
        let first = now.date_naive();
        let last = first + Days::new(98);
        let without_cliffs = events.iter().filter(|event| event.cliff_unlocks.get().is_none());
        let fetched = FetchedResponse {
            segments: Some(SegmentsFetch::read(version, 1)),
            without_cliffs: without_cliffs.filter_map(|event| event.unlock_date.copied()).collect(),
            ahead: ahead.map(|days| AheadFetch { first, last, days: Some(days), is_absent: false, credits: 1 }),
            ..FetchedResponse::of_page(request.clone(), PollOutcome::Fresh(response), Some(5))
        };
        let result = ingest(
            &self.0.snapshot,
            &PlannedPoll::for_change(request),
            &fetched,
            (&Settings::default(), ListedSchedules::NONE),
            now,
        );
        self.0.snapshot.records = stored_after(&self.0.snapshot.records, &result);
        self.0.snapshot.feeds = vec![(Endpoint::UnlockEvents, result.update.state.clone())];
        if let Some(header) = &result.update.header {
            self.0.snapshot.headers = vec![(Endpoint::UnlockEvents, header.clone())];
        }
        result
    }

    fn coverage(&self) -> SupplyCoverage {
        let header = self.0.snapshot.headers.first().map(|(_, header)| header);
        supply_coverage(self.0.snapshot.feed(Endpoint::UnlockEvents), header)
    }

    fn ahead(&self) -> Option<LinearAhead> {
        self.0.snapshot.headers.first().and_then(|(_, header)| LinearAhead::of_header(header))
    }

    /// The begins of the known linear unlocks.
    fn begins(&self) -> Vec<String> {
        let events = self.0.snapshot.records.iter().filter_map(|tracked| tracked.record.unlock());
        let items =
            events.filter_map(|event| event.linear_unlocks.get()).flat_map(|linears| linears.allocation_breakdown.items());
        let mut begins: Vec<String> = items.filter_map(|item| Some(item.begin_date.copied()?.date_naive().to_string())).collect();
        begins.sort();
        begins
    }
}

/// Cliffs, and a linear unlock whose rate changes twice, the first time at the instant of a cliff. Also the same as version 3 shows it.
fn schedules(amount: f64) -> (Vec<UnlockEvent>, Vec<UnlockEvent>) {
    let mut whole = monthly("2026-01-16", 12);
    whole.push(segment("2026-02-01", "2026-05-16", amount));
    let mut shown = whole.clone();
    whole[4].linear_unlocks = segment("2026-05-16", "2028-02-01", 50.0).linear_unlocks;
    whole.push(segment("2028-02-01", "2029-02-01", 25.0));
    for events in [&mut whole, &mut shown] {
        events.sort_by_key(|event| event.unlock_date.copied());
    }
    (whole, shown)
}

const WHOLE: [&str; 3] = ["2026-02-01", "2026-05-16", "2028-02-01"];

#[test]
fn rate_changes_are_completed_silently_and_stay() {
    let now = time("2026-03-09");
    let (whole, shown) = schedules(100.0);
    let mut feed = AutoFeed::new();
    let days = |count: u64| now + Days::new(count);
    feed.poll(&shown, 3, None, now);
    assert_eq!((feed.begins(), feed.coverage().linear_until), (vec!["2026-02-01".to_owned()], Some(now)));
    for (day, events, version) in [(1, &whole, 1), (2, &whole, 1), (3, &shown, 3), (4, &shown, 3), (5, &shown, 3), (6, &whole, 1)]
    {
        let result = feed.poll(events, version, None, days(day));
        assert_eq!(summaries(&result.changes), [""; 0], "day {day}");
        assert!(result.update.state.missing.is_empty() && !result.is_held && result.update.removed.is_empty(), "day {day}");
        assert_eq!((feed.begins(), result.parse_warnings.total), (WHOLE.map(str::to_owned).to_vec(), 0), "day {day}");
        assert_eq!(feed.coverage().linear_until, (version == 3).then(|| days(day)), "day {day}");
    }
    // A rate change that disappears from the first version was removed.
    let less = &whole[..whole.len() - 1];
    let notified: Vec<_> = (7..10).flat_map(|day| feed.poll(less, 1, None, days(day)).changes).collect();
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
}

#[test]
fn correction_in_the_response_that_completes_rate_changes_is_reported() {
    let now = time("2026-03-09");
    for is_first in [true, false] {
        let ((whole, shown), (after, after_shown)) = (schedules(100.0), schedules(140.0));
        let (before, after, version) = if is_first { (&shown, &after, 3) } else { (&whole, &after_shown, 1) };
        let mut feed = AutoFeed::new();
        feed.poll(before, version, None, now);
        let result = feed.poll(after, 4 - version, None, now + Days::new(1));
        assert_eq!(kinds(&result.changes), [ChangeKind::Resized], "{:?}", summaries(&result.changes));
        assert_eq!(feed.begins(), WHOLE);
    }
}

#[test]
fn cliff_at_a_known_rate_change_can_be_removed() {
    let now = time("2026-03-09");
    let (whole, mut shown) = schedules(100.0);
    let mut feed = AutoFeed::new();
    feed.poll(&whole, 1, None, now);
    shown.retain(|event| event.unlock_date.copied() != Some(time("2026-05-16")));
    let notified: Vec<_> = (1..4).flat_map(|day| feed.poll(&shown, 3, None, now + Days::new(day)).changes).collect();
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
    assert_eq!(feed.begins(), WHOLE);
}

/// Daily emission of a token that releases `amount` each day.
fn emission(amount: f64, from: Timestamp) -> Vec<wire::Emission> {
    let row = |day: u64| {
        json!({"startDate": from + Days::new(day), "endDate": from + Days::new(day + 1), "unlockAmount": amount,
            "allocations": [{"allocationName": "Farm", "unlockAmount": amount}]})
    };
    serde_json::from_value((0..99).map(row).collect()).expect("days")
}

#[test]
fn daily_emission_ahead_completes_what_the_version_omits() {
    let now = time("2026-03-09");
    let linear = segment("2026-01-01", "2026-03-19", 770.0);
    let mut feed = AutoFeed::new();
    let result = feed.poll(std::slice::from_ref(&linear), 3, Some(emission(10.0, now)), now);
    assert_eq!(summaries(&result.changes), [""; 0]);
    let ahead = feed.ahead().expect("stored");
    assert_eq!((ahead.runs.len(), ahead.runs[0].start.to_string()), (1, "2026-03-19".to_owned()));
    let until = Some(time("2026-06-16"));
    assert_eq!(feed.coverage(), SupplyCoverage { known: KnownSupply::All, linear_until: until });
    // A response without daily emission keeps it, until the schedule changes.
    feed.poll(std::slice::from_ref(&linear), 3, None, now + Days::new(1));
    assert_eq!(feed.ahead(), Some(ahead));
    feed.poll(&[segment("2026-01-01", "2026-03-19", 900.0)], 3, None, now + Days::new(2));
    assert_eq!((feed.ahead(), feed.coverage().linear_until), (None, Some(now + Days::new(2))));
    // The first version shows everything, so that nothing needs to be completed.
    feed.poll(&[segment("2026-01-01", "2026-03-19", 900.0)], 1, None, now + Days::new(3));
    assert_eq!(feed.coverage(), SupplyCoverage { known: KnownSupply::All, linear_until: None });
    assert_eq!(feed.0.snapshot.headers[0].1["needsAhead"], json!(false));
}

#[test]
fn cliffs_without_linear_unlocks_need_no_daily_emission() {
    let now = time("2026-03-09");
    let mut feed = AutoFeed::new();
    feed.poll(&monthly("2026-07-16", 3), 3, Some(Vec::new()), now);
    assert_eq!((feed.ahead(), feed.coverage().linear_until), (None, None));
    assert_eq!(feed.0.snapshot.headers[0].1["needsAhead"], json!(false));
    // Issuance is in no schedule.
    let mut feed = AutoFeed::new();
    feed.poll(&monthly("2026-07-16", 3), 3, Some(emission(10.0, now)), now);
    assert_eq!((feed.ahead().map(|ahead| ahead.runs.len()), feed.coverage().linear_until), (Some(1), Some(time("2026-06-16"))));
}

#[test]
fn limited_history_hides_linear_unlocks_from_every_version() {
    let now = time("2026-03-09");
    let mut feed = AutoFeed::new();
    feed.0.requested.0 = time("2026-02-09").date_naive();
    feed.poll(&[segment("2026-03-01", "2026-03-19", 180.0)], 1, Some(emission(25.0, now)), now);
    let runs: Vec<f64> = feed.ahead().expect("stored").runs.iter().map(|run| run.per_day).collect();
    assert_eq!(runs, [15.0, 25.0]);
    assert_eq!(feed.coverage().linear_until, Some(time("2026-06-16")));
}

/// A linear unlock whose rate changes, with the name of its allocation.
fn two_rates(name: &str) -> Vec<UnlockEvent> {
    let mut events = monthly("2026-01-17", 6);
    events.extend([segment("2026-02-01", "2026-05-16", 100.0), segment("2026-05-16", "2028-02-01", 50.0)]);
    for event in &mut events {
        let items = event.linear_unlocks.get_mut().and_then(|linears| linears.allocation_breakdown.get_mut());
        items.into_iter().flatten().for_each(|item| item.allocation_name = name.to_owned().into());
    }
    events
}

#[test]
fn hidden_rate_change_is_renamed_with_its_allocation() {
    let now = time("2026-03-09");
    let (before, after) = (two_rates("Farm"), two_rates("Core Farm"));
    let mut feed = AutoFeed::new();
    feed.poll(&before, 1, None, now);
    let notified: Vec<_> = (1..9).flat_map(|day| feed.poll(&after[..7], 3, None, now + Days::new(day)).changes).collect();
    assert_eq!(kinds(&notified), [ChangeKind::Renamed], "{:?}", summaries(&notified));
    let result = feed.poll(&after, 1, None, now + Days::new(9));
    assert_eq!(summaries(&result.changes), [""; 0]);
    assert_eq!(feed.begins(), ["2026-02-01", "2026-05-16"]);
}

#[test]
fn part_of_a_known_linear_unlock_is_not_hidden() {
    let now = time("2026-03-09");
    let mut before = monthly("2026-01-17", 6);
    let mut after = before.clone();
    before.push(segment("2026-02-01", "2028-02-01", 100.0));
    after.extend([segment("2026-02-01", "2027-02-01", 30.0), segment("2027-02-01", "2028-02-01", 70.0)]);
    let mut feed = AutoFeed::new();
    feed.poll(&before, 3, None, now);
    let result = feed.poll(&after, 1, None, now + Days::new(1));
    let [change] = &result.changes[..] else { panic!("{:?}", summaries(&result.changes)) };
    assert!(![ChangeKind::Added, ChangeKind::Removed, ChangeKind::Resized].contains(&change.kind), "{}", change.summary);
}

#[test]
fn rest_of_a_shortened_linear_unlock_is_reported_once_it_is_shown() {
    let now = time("2026-03-09");
    let cliffs = monthly("2026-01-17", 6);
    let with = |segments: &[UnlockEvent]| [&cliffs[..], segments].concat();
    let first = segment("2026-02-01", "2027-02-01", 30.0);
    let mut feed = AutoFeed::new();
    feed.poll(&with(&[segment("2026-02-01", "2028-02-01", 100.0)]), 3, None, now);
    let result = feed.poll(&with(std::slice::from_ref(&first)), 3, None, now + Days::new(1));
    let [change] = &result.changes[..] else { panic!("{:?}", summaries(&result.changes)) };
    assert!(
        change.summary.ends_with("the linear unlock may continue at another rate, which this API version does not show"),
        "{}",
        change.summary
    );
    let whole = with(&[first, segment("2027-02-01", "2028-02-01", 70.0)]);
    let result = feed.poll(&whole, 1, None, now + Days::new(2));
    assert_eq!(kinds(&result.changes), [ChangeKind::Added], "{:?}", summaries(&result.changes));
    let result = feed.poll(&whole, 1, None, now + Days::new(3));
    assert_eq!(summaries(&result.changes), [""; 0]);
    assert_eq!(feed.begins(), ["2026-02-01", "2027-02-01"]);
}

/// Each form of an unlock is removed while the other one stays. The response has null in its place, which may be a gap.
#[test]
fn form_that_stays_null_is_removed() {
    let now = time("2026-03-09");
    for version in [1, 3] {
        for removes_cliff in [true, false] {
            let mut whole = monthly("2026-01-16", 6);
            whole.push(segment("2026-07-01", "2027-02-01", 20.0));
            whole[4].linear_unlocks = segment("2026-05-16", "2028-02-01", 50.0).linear_unlocks;
            let mut less = whole.clone();
            match removes_cliff {
                true => less[4].cliff_unlocks = wire::Maybe::Null,
                false => less[4].linear_unlocks = wire::Maybe::Null,
            }
            let mut feed = Feed::new();
            feed.poll(&whole, Some(version), now);
            // A gap does not last.
            assert_eq!(summaries(&feed.poll_times(&less, Some(version), now + Days::new(1), 5)), [""; 0]);
            assert_eq!(summaries(&feed.poll_times(&whole, Some(version), now + Days::new(3), 2)), [""; 0]);
            assert!(!feed.snapshot.feeds[0].1.awaits_proof());
            let notified = feed.poll_times(&less, Some(version), now + Days::new(4), 8);
            assert_eq!(notified.len(), 1, "{:?}", summaries(&notified));
            let form = |event: &UnlockEvent| {
                event.linear_unlocks.get().is_some() && event.unlock_date.copied() == less[4].unlock_date.copied()
            };
            let has_linear = feed.snapshot.records.iter().filter_map(|tracked| tracked.record.unlock()).any(form);
            assert_eq!(has_linear, removes_cliff);
            assert_eq!(summaries(&feed.poll_times(&less, Some(version), now + Days::new(8), 3)), [""; 0]);
        }
    }
}

#[test]
fn correction_in_a_response_of_another_version_is_reported() {
    let now = time("2026-03-09");
    let mut before = monthly("2026-01-16", 6);
    before.push(segment("2026-02-01", "2028-02-01", 100.0));
    let mut after = before.clone();
    after[3].unlock_date = time("2026-04-19").into();
    for (from, to) in [(5, 3), (3, 5), (1, 4), (3, 1)] {
        let rows = |events: &[UnlockEvent], version: u8| if version > 3 { cliffs_only(events) } else { events.to_vec() };
        let mut feed = Feed::new();
        feed.poll(&rows(&before, from), Some(from), now);
        let notified = feed.poll_times(&rows(&after, to), Some(to), now + Days::new(1), 4);
        assert_eq!(kinds(&notified), [ChangeKind::Rescheduled], "{from} to {to}: {:?}", summaries(&notified));
    }
}

/// A hidden rate change is alone in its event, whose key names an earlier date. Another event takes place on its day.
#[test]
fn rate_change_joins_another_event_of_its_day_once() {
    let now = time("2026-03-09");
    let with = |cliffs: &[UnlockEvent], begin: Option<&str>| {
        let mut events = [cliffs, &[segment("2026-02-01", begin.unwrap_or("2026-06-16"), 100.0)]].concat();
        events.extend(begin.map(|begin| segment(begin, "2028-02-01", 50.0)));
        events.sort_by_key(|event| event.unlock_date.copied());
        events
    };
    let (few, more) = (monthly("2026-01-16", 5), monthly("2026-01-16", 6));
    let mut feed = AutoFeed::new();
    feed.poll(&with(&few, Some("2026-05-20")), 1, None, now);
    let moved = feed.poll(&with(&few, Some("2026-06-16")), 1, None, now + Days::new(1));
    assert!(!moved.changes.is_empty());
    let total = |feed: &AutoFeed| feed.begins().len();
    for day in 2..6 {
        let result = feed.poll(&with(&more, None), 3, None, now + Days::new(day));
        let is_added = kinds(&result.changes) == [ChangeKind::Added];
        assert_eq!(is_added, day == 2, "{:?}", summaries(&result.changes));
        assert_eq!(total(&feed), 2, "{:?}", feed.begins());
    }
    let whole = with(&more, Some("2026-06-16"));
    let notified: Vec<_> = (6..10).flat_map(|day| feed.poll(&whole, 1, None, now + Days::new(day)).changes).collect();
    assert_eq!(summaries(&notified), [""; 0]);
    assert_eq!(total(&feed), 2);
}

#[test]
fn response_that_omits_a_form_does_not_prove_the_removal_of_the_event() {
    let now = time("2026-03-09");
    let mut whole = monthly("2026-01-16", 6);
    whole[4].linear_unlocks = segment("2026-05-16", "2028-02-01", 50.0).linear_unlocks;
    let (mut less, mut without) = (whole.clone(), whole.clone());
    less[4].cliff_unlocks = wire::Maybe::Null;
    without.remove(4);
    let mut feed = Feed::new();
    feed.poll(&whole, Some(3), now);
    feed.poll_times(&less, Some(3), now + Days::new(1), 3);
    let missing = feed.snapshot.feeds[0].1.missing.clone();
    assert_eq!(missing.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [3]);
    let is_known = |key: &RecordKey| feed.snapshot.records.iter().any(|tracked| tracked.key == *key);
    assert!(missing.iter().all(|(key, _)| !is_known(key)), "the event is listed, so it is not missing: {missing:?}");
    assert_eq!(summaries(&feed.poll_times(&without, Some(3), now + Days::new(2), 1)), [""; 0]);
    let notified = feed.poll_times(&without, Some(3), now + Days::new(3), 1);
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
}

/// Cliffs that become linear unlocks are corrections, and no sign of a response that omits a form of most events.
#[test]
fn form_is_removed_although_other_cliffs_become_linear_unlocks() {
    let now = time("2026-03-09");
    let mut whole = monthly("2026-01-16", 8);
    whole[4].linear_unlocks = segment("2026-05-16", "2028-02-01", 50.0).linear_unlocks;
    let mut less = whole.clone();
    less[4].cliff_unlocks = wire::Maybe::Null;
    for (row, amount) in [(5, 35.0), (6, 36.0), (7, 37.0)] {
        less[row].linear_unlocks = segment("2026-06-16", "2027-06-16", amount).linear_unlocks;
        less[row].cliff_unlocks = wire::Maybe::Null;
    }
    let mut feed = Feed::new();
    feed.poll(&whole, Some(3), now);
    feed.poll_times(&less, Some(3), now + Days::new(1), 8);
    let at = |row: usize| {
        let mut events = feed.snapshot.records.iter().filter_map(|tracked| tracked.record.unlock());
        events.find(|event| event.unlock_date == less[row].unlock_date).expect("a known event")
    };
    assert!((4..8).all(|row| at(row).cliff_unlocks.get().is_none()));
    assert!(!feed.snapshot.feeds[0].1.awaits_proof());
}

/// A form that most events omit may be a defect of the source, so its removal needs more responses.
#[test]
fn form_that_most_events_omit_is_removed_later() {
    let now = time("2026-03-09");
    let mut whole = monthly("2026-01-16", 8);
    let mut less = whole.clone();
    for row in [4, 5, 6] {
        whole[row].linear_unlocks = segment("2026-05-16", "2028-02-01", 50.0).linear_unlocks;
    }
    for row in [4, 5] {
        (less[row].cliff_unlocks, less[row].linear_unlocks) = (wire::Maybe::Null, whole[row].linear_unlocks.clone());
    }
    less[6].linear_unlocks = whole[6].linear_unlocks.clone();
    let mut feed = Feed::new();
    feed.poll(&whole, Some(3), now);
    assert_eq!(summaries(&feed.poll_times(&less, Some(3), now + Days::new(1), 12)), [""; 0]);
    let notified = feed.poll_times(&less, Some(3), now + Days::new(5), 4);
    assert_eq!(kinds(&notified), [ChangeKind::Removed], "{:?}", summaries(&notified));
    assert!(!feed.snapshot.feeds[0].1.awaits_proof());
}

/// A linear unlock of an allocation.
fn linear_of(name: &str, begin: &str, end: &str, amount: f64) -> UnlockEvent {
    let mut event = segment(begin, end, amount);
    let items = event.linear_unlocks.get_mut().and_then(|linears| linears.allocation_breakdown.get_mut());
    items.into_iter().flatten().for_each(|item| item.allocation_name = name.to_owned().into());
    event
}

/// Returns one event with the linear unlocks of several.
fn joined(events: &[UnlockEvent]) -> UnlockEvent {
    let mut joined = events[0].clone();
    let items = events.iter().filter_map(|event| event.linear_unlocks.get());
    let items: Vec<_> = items.flat_map(|linears| linears.allocation_breakdown.items()).cloned().collect();
    let linears = joined.linear_unlocks.get_mut().expect("linear unlocks");
    linears.linear_amount = items.iter().filter_map(|item| item.linear_amount.copied()).sum::<f64>().into();
    linears.allocation_breakdown = items.into();
    joined
}

#[test]
fn only_changes_of_a_shortened_linear_unlock_say_that_it_may_continue() {
    let now = time("2026-03-09");
    let hint = "the linear unlock may continue at another rate, which this API version does not show";
    let cliffs = |amount: f64| {
        let mut cliffs = monthly("2026-01-17", 6);
        let items = cliffs[5].cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).expect("parts");
        (items[0].allocation_name, items[0].cliff_amount) = ("Farm".to_owned().into(), amount.into());
        cliffs[5].cliff_unlocks.get_mut().expect("cliffs").cliff_amount = amount.into();
        cliffs
    };
    let both = |end: &str, amount: f64| joined(&["Farm", "Labs"].map(|name| linear_of(name, "2026-02-01", end, amount)));
    let mut feed = AutoFeed::new();
    feed.poll(&[cliffs(500.0), vec![both("2028-02-01", 200.0)]].concat(), 3, None, now);
    let result = feed.poll(&[cliffs(733.0), vec![both("2027-02-01", 100.0)]].concat(), 3, None, now + Days::new(1));
    let all = summaries(&result.changes);
    assert!(all.iter().any(|summary| summary.contains(hint)) && all.iter().any(|summary| !summary.contains(hint)), "{all:?}");
    for change in &result.changes {
        let is_of_cliff = change.new.as_ref().and_then(|new| new.unlock()).is_some_and(|new| new.cliff_unlocks.get().is_some());
        assert_eq!(change.summary.matches(hint).count(), usize::from(!is_of_cliff), "{all:?}");
    }
}

#[test]
fn gap_in_a_response_keeps_the_labels_of_omitted_rate_changes() {
    let now = time("2026-03-09");
    let with = |segments: &[UnlockEvent]| {
        let mut events = [&monthly("2026-01-17", 6)[..], segments].concat();
        events.sort_by_key(|event| event.unlock_date.copied());
        events
    };
    let (first, shorter) = (segment("2026-02-01", "2026-06-20", 100.0), segment("2026-02-01", "2026-05-20", 75.0));
    let labs = linear_of("Labs", "2026-04-01", "2027-04-01", 40.0);
    let mut feed = AutoFeed::new();
    feed.poll(&with(&[first.clone(), segment("2026-06-20", "2028-02-01", 50.0), labs.clone()]), 1, None, now);
    feed.poll(&with(&[first, labs.clone()]), 3, None, now + Days::new(1));
    // Once the linear unlock before it ends earlier, only its label states that the rate change is hidden.
    let notified: Vec<_> = (2..5)
        .flat_map(|day| feed.poll(&with(&[shorter.clone(), labs.clone()]), 3, None, now + Days::new(day)).changes)
        .collect();
    assert_eq!(notified.len(), 1, "{:?}", summaries(&notified));
    let begins = feed.begins();
    assert_eq!(begins, ["2026-02-01", "2026-04-01", "2026-06-20"]);
    let mut nameless = labs.clone();
    let items = nameless.linear_unlocks.get_mut().and_then(|linears| linears.allocation_breakdown.get_mut());
    items.into_iter().flatten().for_each(|item| item.allocation_name = wire::Maybe::Null);
    let response = |gap: bool| with(&[shorter.clone(), if gap { nameless.clone() } else { labs.clone() }]);
    let notified: Vec<_> =
        (5..12).flat_map(|day| feed.poll(&response(day == 5), 3, None, now + Days::new(day)).changes).collect();
    assert_eq!(summaries(&notified), [""; 0]);
    assert_eq!(feed.begins(), begins);
}

/// A gap that the known schedule has as well hides nothing more.
#[test]
fn known_gap_does_not_end_the_comparison_of_rate_changes() {
    let now = time("2026-03-09");
    let nameless = segment("2026-04-01", "2027-04-01", 40.0);
    let items = |event: &UnlockEvent| {
        let mut event = event.clone();
        let items = event.linear_unlocks.get_mut().and_then(|linears| linears.allocation_breakdown.get_mut());
        items.into_iter().flatten().for_each(|item| item.allocation_name = wire::Maybe::Null);
        event
    };
    let mut shown = monthly("2026-01-17", 6);
    shown.extend([segment("2026-02-01", "2026-06-20", 100.0), items(&nameless)]);
    let mut whole = shown.clone();
    whole.push(segment("2026-06-20", "2028-02-01", 50.0));
    for events in [&mut shown, &mut whole] {
        events.sort_by_key(|event| event.unlock_date.copied());
    }
    let mut feed = AutoFeed::new();
    feed.poll(&whole, 1, None, now);
    let notified: Vec<_> = (1..12).flat_map(|day| feed.poll(&shown, 3, None, now + Days::new(day)).changes).collect();
    assert_eq!(summaries(&notified), [""; 0]);
    assert_eq!(feed.begins(), ["2026-02-01", "2026-04-01", "2026-06-20"]);
}

#[test]
fn notes_keep_the_latest_shortened_linear_unlocks() {
    let now = time("2026-03-09");
    let cliffs = monthly("2026-01-17", 2);
    let names: Vec<String> = (0..104).map(|number| format!("Farm {number:03}")).collect();
    let response = |is_short: &dyn Fn(usize) -> bool| {
        let part = |(number, name): (usize, &String)| {
            let (end, amount) = if is_short(number) { ("2027-02-01", 100.0) } else { ("2028-02-01", 210.0) };
            linear_of(name, "2026-02-01", end, amount + number as f64)
        };
        let linears: Vec<UnlockEvent> = names.iter().enumerate().map(part).collect();
        [&cliffs[..], &[joined(&linears)]].concat()
    };
    let mut feed = AutoFeed::new();
    feed.poll(&response(&|_| false), 3, None, now);
    let noted = |feed: &AutoFeed| -> Vec<String> {
        let shortened = feed.0.snapshot.headers[0].1["shortened"].as_array().cloned().unwrap_or_default();
        shortened.iter().map(|unlock| unlock["allocation"].as_str().expect("a name").to_owned()).collect()
    };
    // Two end earlier, then later, and then earlier again, the first one alone.
    for (day, short) in [(1, 0..2), (2, 0..0), (3, 0..1), (4, 0..0)] {
        feed.poll(&response(&|number| short.contains(&number)), 3, None, now + Days::new(day));
    }
    assert_eq!(noted(&feed), ["Farm 001", "Farm 000"]);
    feed.poll(&response(&|number| number >= 4), 3, None, now + Days::new(5));
    assert_eq!(noted(&feed), names[4..]);
    feed.poll(&response(&|number| number >= 3), 3, None, now + Days::new(6));
    assert_eq!(noted(&feed), [&names[5..], &names[3..4]].concat());
}
