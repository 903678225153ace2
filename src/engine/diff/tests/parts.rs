//! Parts of events that a response leaves out or garbles: known facts stay, and no change is reported.

use super::*;
use crate::ingest::ListedSchedules;
use crate::{
    ingest::{IngestResult, ingest},
    plan::PlannedPoll,
};
use model::{
    poll::{FetchedResponse, Payload, PollOutcome, PollRequest, PollResponse, SegmentsFetch},
    rows::TokenSnapshot,
    supply::{ContentHash, Endpoint, FeedState, Token},
};

/// A token whose schedule is polled as in the daemon.
pub(super) struct Polled {
    pub(super) snapshot: TokenSnapshot,
    pub(super) notified: Vec<Change>,
    pub(super) parse_warnings: Vec<String>,
    /// The number of parse warnings of all polls.
    pub(super) warning_count: usize,
    polls: u64,
    view: View,
    have_cliffs: Vec<bool>,
    without_cliffs: Vec<Timestamp>,
    is_marked: bool,
}

/// The endpoint version that responds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum View {
    Unknown,
    /// A version that shows segments.
    Whole,
    /// A version that shows only cliffs. Segments are read from an older version if they are due.
    Auto,
}

impl Polled {
    pub(super) fn of(events: &[UnlockEvent]) -> Self {
        Self::with(events, View::Unknown)
    }

    pub(super) fn with(events: &[UnlockEvent], view: View) -> Self {
        let mut snapshot = TokenSnapshot::of(Token::unknown(token()));
        snapshot.feeds.push((Endpoint::UnlockEvents, FeedState::default()));
        let mut polled = Self {
            snapshot,
            notified: Vec::new(),
            parse_warnings: Vec::new(),
            warning_count: 0,
            polls: 0,
            view,
            have_cliffs: Vec::new(),
            without_cliffs: Vec::new(),
            is_marked: false,
        };
        polled.expect(events, true);
        polled.poll(events);
        assert!(polled.notified.is_empty() && polled.warning_count == 0, "the baseline has no changes");
        polled
    }

    /// Polls a response with these rows, which pass through JSON as real ones do.
    pub(super) fn poll(&mut self, events: &[UnlockEvent]) {
        self.read(&serde_json::to_string(events).expect("JSON"));
    }

    /// Polls a response given as JSON.
    pub(super) fn read(&mut self, json: &str) {
        if self.view != View::Auto {
            self.ingest_response(json, false, Vec::new());
            return;
        }
        // As the planner does: segments are read too if a mark or a cliff shows a change.
        let awaits = |state: &FeedState| state.stale || state.awaits_proof();
        let is_awaited = self.snapshot.feed(Endpoint::UnlockEvents).is_none_or(awaits);
        let is_marked = std::mem::take(&mut self.is_marked);
        if !is_awaited && !is_marked {
            let rows: Vec<serde_json::Value> = serde_json::from_str(json).expect("rows");
            let cliffs = rows.into_iter().zip(&self.have_cliffs).filter_map(|(mut row, has_cliffs)| {
                row.as_object_mut().map(|row| row.remove("linearUnlocks"));
                has_cliffs.then_some(row)
            });
            let cliffs: Vec<_> = cliffs.collect();
            if cliffs.is_empty() || !self.ingest_response(&serde_json::Value::from(cliffs).to_string(), false, Vec::new()) {
                return;
            }
        }
        self.ingest_response(json, true, self.without_cliffs.clone());
    }

    /// Ingests one response. Returns whether the schedule must be polled again with segments.
    fn ingest_response(&mut self, json: &str, with_segments: bool, without_cliffs: Vec<Timestamp>) -> bool {
        let (rows, report) = wire::gather(|| serde_json::from_str::<Maybe<Vec<UnlockEvent>>>(json).expect("JSON"));
        let payload = Payload::UnlockEvents(rows.into_option().expect("rows"));
        let response = PollResponse {
            payload,
            hash: ContentHash(u128::from(self.polls)),
            parse_warnings: report.parse_warnings,
            parse_warnings_total: report.total,
            dropped: report.dropped,
        };
        let request = PollRequest::Token {
            endpoint: Endpoint::UnlockEvents,
            token: token(),
            start: time("1970-01-01").date_naive(),
            end: time("2126-01-01").date_naive(),
        };
        let poll = PlannedPoll { may_add_segments: self.view == View::Auto, ..PlannedPoll::for_change(request.clone()) };
        let version = match self.view {
            View::Unknown => None,
            View::Whole => Some(3),
            View::Auto => Some(5),
        };
        let fetched = FetchedResponse {
            segments: with_segments.then_some(SegmentsFetch::read(3, 1)),
            without_cliffs,
            ..FetchedResponse::of_page(request, PollOutcome::Fresh(response), version)
        };
        self.polls += 1;
        let at = now() + chrono::TimeDelta::seconds(i64::try_from(self.polls).expect("few"));
        let taken: IngestResult = ingest(&self.snapshot, &poll, &fetched, (&Settings::default(), ListedSchedules::NONE), at);
        assert!(taken.failure.is_none());
        self.snapshot.records = taken.after;
        self.snapshot.feeds = vec![(Endpoint::UnlockEvents, taken.update.state)];
        if let (Some(header), true) = (taken.update.header, self.view != View::Unknown) {
            self.snapshot.headers = vec![(Endpoint::UnlockEvents, header)];
        }
        self.notified.extend(taken.changes);
        self.parse_warnings
            .extend(taken.parse_warnings.named.iter().map(|warning| format!("{}: {}", warning.path, warning.problem)));
        self.warning_count += taken.parse_warnings.total + report.total;
        taken.lacks_segments
    }

    /// Sets the true schedule of the next polls, and whether the token list marks a correction.
    pub(super) fn expect(&mut self, truth: &[UnlockEvent], is_marked: bool) {
        self.have_cliffs = truth.iter().map(|event| event.cliff_unlocks.get().is_some()).collect();
        let alone = truth.iter().filter(|event| event.cliff_unlocks.get().is_none());
        self.without_cliffs = alone.filter_map(|event| event.unlock_date.copied()).collect();
        self.is_marked |= is_marked;
    }

    fn summaries(&self) -> Vec<&str> {
        self.notified.iter().map(|change| change.summary.as_str()).collect()
    }
}

/// Polls a partial response three times, then the whole one. Asserts that no change is reported and the snapshot loses nothing.
#[track_caller]
fn assert_gap_is_filled(whole: &[UnlockEvent], partial: &[UnlockEvent]) -> Vec<String> {
    let mut polled = Polled::of(whole);
    for _ in 0..3 {
        polled.poll(partial);
        assert_eq!(polled.summaries(), [] as [&str; 0]);
        assert_same_facts(&polled.snapshot.records, whole);
    }
    assert!(polled.warning_count >= 3, "each gap is counted");
    polled.poll(whole);
    assert_eq!(polled.summaries(), [] as [&str; 0]);
    assert_same_facts(&polled.snapshot.records, whole);
    assert_eq!(polled.snapshot.records.iter().filter(|tracked| tracked.key.as_str().contains('#')).count(), 0);
    polled.parse_warnings
}

fn cliffs(event: &mut UnlockEvent) -> &mut CliffUnlocks {
    event.cliff_unlocks.get_mut().expect("cliffs")
}

fn cliff_parts(event: &mut UnlockEvent) -> &mut Vec<CliffAllocation> {
    cliffs(event).allocation_breakdown.get_mut().expect("parts")
}

fn linear_parts(event: &mut UnlockEvent) -> &mut Vec<LinearAllocation> {
    event.linear_unlocks.get_mut().expect("segments").allocation_breakdown.get_mut().expect("parts")
}

/// A schedule with cliffs, segments, and an event with both.
fn schedule() -> Vec<UnlockEvent> {
    let mut events = monthly("2026-01-16", 6, &[("Team", 10.0), ("Investors", 5.0)]);
    events[3] = event_at(
        time("2026-04-16"),
        vec![cliff("Team", 10.0), cliff("Investors", 5.0)],
        vec![linear("Ops", "2026-04-16", "2027-04-16", 7.0), linear("Farm", "2026-04-16", "2028-04-16", 9.0)],
    );
    events.push(segment("Farm", "2026-08-01", "2028-02-01", 100.0));
    events.push(segment("Ops", "2026-09-01", "2028-02-01", 100.0));
    events
}

#[test]
fn cliffs_left_out_by_a_response_stay() {
    for gap in [Maybe::Null, Maybe::Absent] {
        for row in [2, 3] {
            let mut partial = schedule();
            partial[row].cliff_unlocks = gap.clone();
            let parse_warnings = assert_gap_is_filled(&schedule(), &partial);
            assert!(parse_warnings[0].ends_with(": cliffUnlocks: missing; the last known ones stay"), "{parse_warnings:?}");
        }
        let mut partial = schedule();
        partial.iter_mut().for_each(|event| event.cliff_unlocks = gap.clone());
        assert_gap_is_filled(&schedule(), &partial);
    }
}

#[test]
fn breakdown_left_out_by_a_response_stays_with_and_without_its_total() {
    for gap in [Maybe::Null, Maybe::Absent, Maybe::Value(Vec::new())] {
        let mut partial = schedule();
        cliffs(&mut partial[2]).allocation_breakdown = gap.clone();
        let parse_warnings = assert_gap_is_filled(&schedule(), &partial);
        assert_eq!(parse_warnings[0], "16 Mar 2026: cliffUnlocks.allocationBreakdown: missing; the last known one stays");
        if gap.get().is_none() {
            cliffs(&mut partial[2]).cliff_amount = Maybe::Null;
            assert_gap_is_filled(&schedule(), &partial);
        }
        // In all events at once, as in the response of another version.
        let mut partial = schedule();
        for event in &mut partial {
            if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
                cliffs.allocation_breakdown = gap.clone();
            }
        }
        assert_gap_is_filled(&schedule(), &partial);
    }
}

#[test]
fn total_without_parts_is_not_a_resize_until_the_parts_arrive() {
    let mut partial = schedule();
    cliffs(&mut partial[2]).allocation_breakdown = Maybe::Null;
    cliffs(&mut partial[2]).cliff_amount = 7.5.into();
    let mut polled = Polled::of(&schedule());
    polled.poll(&partial);
    polled.poll(&partial);
    assert_eq!(polled.summaries(), [] as [&str; 0]);
    assert!(polled.parse_warnings[0].contains("the total differs"), "{:?}", polled.parse_warnings);
    let mut corrected = schedule();
    corrected[2] = event("2026-03-16", &[("Team", 5.0), ("Investors", 2.5)]);
    polled.poll(&corrected);
    let change = only(polled.notified, ChangeKind::Resized);
    assert_eq!((change.from, change.to), (Some(Fact::Amount(15.0)), Some(Fact::Amount(7.5))));
}

#[test]
fn amount_is_compared_with_the_last_known_one() {
    let with = |amount: Maybe<f64>| {
        let mut events = monthly("2026-01-16", 4, &[("Team", 5e6)]);
        cliff_parts(&mut events[2])[0].cliff_amount = amount;
        if let Maybe::Value(amount) = amount {
            cliffs(&mut events[2]).cliff_amount = amount.into();
        } else {
            cliffs(&mut events[2]).cliff_amount = amount;
        }
        events
    };
    let mut polled = Polled::of(&with(5e6.into()));
    for amount in [Maybe::Null, Maybe::Absent, 5e6.into(), Maybe::Null] {
        polled.poll(&with(amount));
        assert_eq!(polled.summaries(), [] as [&str; 0]);
    }
    polled.poll(&with(2.5e6.into()));
    let change = only(polled.notified, ChangeKind::Resized);
    assert_eq!((change.from, change.to, change.ratio), (Some(Fact::Amount(5e6)), Some(Fact::Amount(2.5e6)), Some(0.5)));
}

#[test]
fn impossible_amounts_are_unreadable() {
    let whole = monthly("2026-01-16", 4, &[("Team", 5e6), ("Investors", 1e6)]);
    let json = serde_json::to_string(&whole).expect("JSON");
    for garbled in
        ["-5000000.0", "-0.5", "1e31", "\"NaN\"", "\"inf\"", "\"-infinity\"", "\"a lot\"", "[5]", "{}", "true", "\"-3\""]
    {
        let mut polled = Polled::of(&whole);
        polled.read(&json.replacen("\"cliffAmount\":5000000.0", &format!("\"cliffAmount\":{garbled}"), 2));
        assert_eq!(polled.summaries(), [] as [&str; 0], "{garbled}");
        assert!(polled.warning_count >= 2, "{garbled}");
        assert_same_facts(&polled.snapshot.records, &whole);
    }
    // A schedule with only such numbers keeps all its amounts.
    let mut polled = Polled::of(&whole);
    polled.read(&json.replace("Amount\":", "Amount\":-"));
    assert_eq!(polled.summaries(), [] as [&str; 0]);
    assert_same_facts(&polled.snapshot.records, &whole);
}

#[test]
fn unreadable_row_of_a_breakdown_stays() {
    let whole = schedule();
    let json = serde_json::to_string(&whole).expect("JSON");
    let part = serde_json::to_string(&cliff("Investors", 5.0)).expect("JSON");
    for garbled in ["null", "\"Investors\"", "7", "[]"] {
        let mut polled = Polled::of(&whole);
        for _ in 0..3 {
            polled.read(&json.replace(&part, garbled));
            assert_eq!(polled.summaries(), [] as [&str; 0]);
            assert_same_facts(&polled.snapshot.records, &whole);
        }
        // Also if the total is missing.
        polled.read(&json.replace(&part, garbled).replace("\"cliffAmount\":15.0,", ""));
        assert_eq!(polled.summaries(), [] as [&str; 0]);
        polled.read(&json);
        assert_eq!(polled.summaries(), [] as [&str; 0]);
        assert_same_facts(&polled.snapshot.records, &whole);
    }
    // A row is missing while the total still includes it.
    let mut partial = whole.clone();
    cliff_parts(&mut partial[2]).pop();
    assert_gap_is_filled(&whole, &partial);
    // If the total no longer includes it, it is removed.
    cliffs(&mut partial[2]).cliff_amount = 10.0.into();
    let mut polled = Polled::of(&whole);
    for _ in 0..3 {
        polled.poll(&partial);
    }
    assert_eq!(polled.notified.len(), 1, "{:?}", polled.summaries());
}

#[test]
fn nameless_allocation_is_the_remaining_one() {
    for row in [2, 3] {
        for part in [0, 1] {
            let mut partial = schedule();
            cliff_parts(&mut partial[row])[part].allocation_name = Maybe::Null;
            assert_gap_is_filled(&schedule(), &partial);
            cliff_parts(&mut partial[row])[part].cliff_amount = Maybe::Null;
            assert_gap_is_filled(&schedule(), &partial);
        }
    }
    let mut partial = schedule();
    cliff_parts(&mut partial[2]).iter_mut().for_each(|part| part.allocation_name = Maybe::Null);
    assert_gap_is_filled(&schedule(), &partial);
    cliff_parts(&mut partial[2]).iter_mut().for_each(|part| part.cliff_amount = Maybe::Null);
    assert_gap_is_filled(&schedule(), &partial);
}

#[test]
fn dateless_event_is_the_missing_one() {
    for rows in [vec![2], vec![3], vec![1, 2], vec![6]] {
        for gap in [Maybe::Null, Maybe::Absent] {
            let mut partial = schedule();
            for row in &rows {
                partial[*row].unlock_date = gap;
            }
            assert_gap_is_filled(&schedule(), &partial);
            if let Maybe::Value(cliffs) = &mut partial[rows[0]].cliff_unlocks {
                cliffs.cliff_amount = Maybe::Null;
                cliffs.allocation_breakdown.get_mut().expect("parts")[0].cliff_amount = Maybe::Null;
                assert_gap_is_filled(&schedule(), &partial);
            }
        }
    }
}

#[test]
fn linear_unlocks_left_out_by_a_response_stay() {
    for gap in [Maybe::Null, Maybe::Absent] {
        for row in [3, 6] {
            let mut partial = schedule();
            partial[row].linear_unlocks = gap.clone();
            assert_gap_is_filled(&schedule(), &partial);
        }
    }
    let parts = |change: &dyn Fn(&mut LinearAllocation)| {
        for row in [3, 6] {
            let mut partial = schedule();
            change(&mut linear_parts(&mut partial[row])[0]);
            assert_gap_is_filled(&schedule(), &partial);
        }
    };
    parts(&|part| part.linear_amount = Maybe::Null);
    parts(&|part| part.begin_date = Maybe::Null);
    parts(&|part| part.end_date = Maybe::Null);
    parts(&|part| {
        part.end_date = Maybe::Absent;
        part.linear_amount = Maybe::Absent;
    });
    let mut partial = schedule();
    partial[3].linear_unlocks.get_mut().expect("segments").allocation_breakdown = Maybe::Null;
    assert_gap_is_filled(&schedule(), &partial);
}

#[test]
fn event_that_moves_while_a_part_is_missing_keeps_the_part() {
    let mut moved = schedule();
    moved[2].unlock_date = time("2026-03-20").into();
    cliffs(&mut moved[2]).cliff_amount = Maybe::Null;
    cliff_parts(&mut moved[2])[0].cliff_amount = Maybe::Null;
    let mut polled = Polled::of(&schedule());
    polled.poll(&moved);
    let mut whole = schedule();
    whole[2].unlock_date = time("2026-03-20").into();
    polled.poll(&whole);
    assert_same_facts(&polled.snapshot.records, &whole);
    only(polled.notified, ChangeKind::Rescheduled);
    // If only the new date is known, the event waits.
    let mut empty = whole.clone();
    empty[2].cliff_unlocks = Maybe::Null;
    let mut polled = Polled::of(&schedule());
    for _ in 0..4 {
        polled.poll(&empty);
        assert_eq!(polled.summaries(), [] as [&str; 0]);
    }
    polled.poll(&whole);
    only(polled.notified, ChangeKind::Rescheduled);
}

#[test]
fn each_part_can_be_to_be_determined() {
    let mut events = schedule();
    cliff_parts(&mut events[2])[1].unlock_precision = "To Be Determined".to_owned().into();
    let interval = events[2].interval().expect("the other part keeps its date");
    assert_eq!(interval.start, time("2026-03-16"));
    cliff_parts(&mut events[2])[0].unlock_precision = "month".to_owned().into();
    assert_eq!(events[2].precision(), Precision::Month);
    cliff_parts(&mut events[2])[0].unlock_precision = "tbd".to_owned().into();
    assert_eq!(events[2].interval(), None);
}

#[test]
fn resize_to_zero_has_a_ratio_and_from_zero_has_none() {
    let with = |amount: f64| monthly("2026-01-16", 3, &[("Team", 5.0), ("Farm", amount)]);
    let one = |from: f64, to: f64| {
        let mut after = with(from);
        after[1] = with(to).swap_remove(1);
        only(changes_of(&with(from), &after), ChangeKind::Resized)
    };
    let change = one(7.0, 0.0);
    assert_eq!(change.allocations[0].ratio, Some(0.0), "{}", change.summary);
    let change = one(0.0, 7.0);
    assert_eq!(change.allocations[0].ratio, None, "{}", change.summary);
    let alone = |amount: f64| [event("2026-04-16", &[("Team", amount)]), event("2026-05-16", &[("Farm", 1.0)])];
    assert_eq!(only(changes_of(&alone(7.0), &alone(0.0)), ChangeKind::Resized).ratio, Some(0.0));
    assert_eq!(only(changes_of(&alone(0.0), &alone(7.0)), ChangeKind::Resized).ratio, None);
}

#[test]
fn other_missing_facts_stay() {
    let mut partial = schedule();
    for event in &mut partial {
        (event.data_source, event.listed_method, event.token_name) = (Maybe::Null, Maybe::Absent, Maybe::Null);
    }
    cliff_parts(&mut partial[2]).iter_mut().for_each(|part| {
        part.unlock_precision = Maybe::Null;
        part.standard_allocation_name = Maybe::Null;
    });
    let mut polled = Polled::of(&schedule());
    polled.poll(&partial);
    assert_same_facts(&polled.snapshot.records, &schedule());
    polled.poll(&schedule());
    assert_eq!(polled.summaries(), [] as [&str; 0]);
}

#[test]
fn missing_committed_claim_is_not_reported_again() {
    let mut with = monthly("2026-01-16", 4, &[("Team", 30.0)]);
    cliff_parts(&mut with[3])[0].committed_claim = CommittedClaim { amount: 20.0.into(), ..CommittedClaim::default() }.into();
    let mut polled = Polled::of(&with);
    polled.poll(&monthly("2026-01-16", 4, &[("Team", 30.0)]));
    polled.poll(&with);
    assert_eq!(polled.summaries(), [] as [&str; 0]);
}

#[test]
fn real_corrections_have_no_gaps() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("data/revisions");
    #[derive(serde::Deserialize)]
    struct Version {
        data: Vec<UnlockEvent>,
    }
    for entry in std::fs::read_dir(folder).expect("the bundled revisions") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let versions: Vec<Version> = text.lines().map(|line| serde_json::from_str(line).expect("a version")).collect();
        for two in versions.windows(2) {
            let completed = complete(&known(&two[0].data), &two[1].data, &ResponseView::default());
            assert_eq!(completed.parse_warnings, [], "{}", path.display());
            assert!(!completed.proves_no_absence);
            let after =
                complete(&known(&two[0].data), &two[1].data, &ResponseView { has_lost_rows: true, ..ResponseView::default() });
            assert!(after.parse_warnings.is_empty(), "{}: {:?}", path.display(), after.parse_warnings);
        }
    }
}

/// Returns the changes after polling a response three times whose nulls stand for removed parts.
#[track_caller]
fn changes_after_nulls(known: &[UnlockEvent], after: &[UnlockEvent]) -> Vec<Change> {
    let mut polled = Polled::of(known);
    (0..3).for_each(|_| polled.poll(after));
    assert_same_facts(&polled.snapshot.records, after);
    polled.notified
}

#[test]
fn null_is_applied_if_its_amount_appears_elsewhere() {
    // The amount moved to the next event, which already had some of it.
    let mut merged = schedule();
    merged[1].cliff_unlocks = Maybe::Null;
    merged[1].linear_unlocks = segment("Ops", "2026-02-16", "2027-02-16", 3.0).linear_unlocks;
    let mut known = merged.clone();
    known[1].cliff_unlocks = schedule()[1].cliff_unlocks.clone();
    merged[2] = event("2026-03-16", &[("Team", 20.0), ("Investors", 10.0)]);
    let changes = changes_after_nulls(&known, &merged);
    assert!(
        changes.iter().all(|change| matches!(change.kind, ChangeKind::Merged | ChangeKind::Restructured)) && changes.len() == 1,
        "{changes:?}"
    );
    // A cliff became part of a segment of the same allocation, in its event or in another one.
    for (to, whole) in [(3, 19.0), (6, 110.0)] {
        let mut known = schedule();
        cliff_parts(&mut known[3]).clear();
        cliff_parts(&mut known[3]).push(cliff("Farm", 10.0));
        cliffs(&mut known[3]).cliff_amount = 10.0.into();
        let mut linear = known.clone();
        linear[3].cliff_unlocks = Maybe::Null;
        linear_parts(&mut linear[to]).iter_mut().filter(|part| part.allocation_name.as_str() == Some("Farm")).for_each(|part| {
            part.linear_amount = whole.into();
        });
        let changes = changes_after_nulls(&known, &linear);
        assert!(changes.iter().all(|change| change.kind == ChangeKind::Restructured) && changes.len() == 1, "{changes:?}");
        // The reverse.
        let changes = changes_after_nulls(&linear, &known);
        assert!(changes.iter().all(|change| change.kind == ChangeKind::Restructured) && changes.len() == 1, "{changes:?}");
    }
    // Segments became part of an existing cliff.
    let mut cliffs_alone = schedule();
    cliffs_alone[3].linear_unlocks = Maybe::Null;
    cliffs_alone[3].cliff_unlocks =
        event("2026-04-16", &[("Team", 10.0), ("Investors", 5.0), ("Ops", 7.0), ("Farm", 9.0)]).cliff_unlocks;
    assert!(changes_after_nulls(&schedule(), &cliffs_alone).iter().all(|change| change.kind == ChangeKind::Restructured));
    // Reallocated to other recipients.
    let mut given = schedule();
    given[3].linear_unlocks = Maybe::Null;
    given[4] = event("2026-05-16", &[("Team", 26.0), ("Investors", 5.0)]);
    assert!(changes_after_nulls(&schedule(), &given).iter().all(|change| change.kind == ChangeKind::Reallocated));
}

#[test]
fn null_next_to_an_unrelated_new_part_is_not_a_removal() {
    // A new part appears at the same time, but its amount differs from the missing one.
    let mut partial = schedule();
    partial[3].cliff_unlocks = Maybe::Null;
    linear_parts(&mut partial[3]).push(linear("Airdrop", "2026-04-16", "2026-12-16", 1.5));
    let mut polled = Polled::of(&schedule());
    (0..4).for_each(|_| polled.poll(&partial));
    let kinds: Vec<ChangeKind> = polled.notified.iter().map(|change| change.kind).collect();
    assert!(kinds == [ChangeKind::Added] || kinds == [ChangeKind::Resized], "{:?}", polled.summaries());
    let mut whole = partial.clone();
    whole[3].cliff_unlocks = schedule()[3].cliff_unlocks.clone();
    assert_same_facts(&polled.snapshot.records, &whole);
    // One of two parts moved. The other one stays.
    let mut partial = schedule();
    partial[3].cliff_unlocks = Maybe::Null;
    partial[4] = event("2026-05-16", &[("Team", 20.0), ("Investors", 5.0)]);
    let mut polled = Polled::of(&schedule());
    (0..4).for_each(|_| polled.poll(&partial));
    partial[3].cliff_unlocks = event("2026-04-16", &[("Investors", 5.0)]).cliff_unlocks;
    assert_same_facts(&polled.snapshot.records, &partial);
    // An amount so small that it could be a rounding error of the others did not move either.
    let mut dust = schedule();
    dust.push(event("2026-12-01", &[("Team", 1e-7)]));
    dust[3].linear_unlocks = schedule()[3].linear_unlocks.clone();
    let mut partial = dust.clone();
    partial.last_mut().expect("an event").cliff_unlocks = Maybe::Null;
    assert_gap_is_filled(&dust, &partial);
}
