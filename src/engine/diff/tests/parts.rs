//! Parts of events that an answer leaves out or garbles: what was known of them stays, and nothing is told.

use super::*;
use crate::{
    ingest::{IngestResult, ingest},
    plan::PlannedPoll,
};
use model::{
    poll::{FetchedAnswer, Payload, PollAnswer, PollOutcome, PollRequest, SegmentsFetch},
    rows::TokenSnapshot,
    supply::{ContentHash, Endpoint, FeedState, Token},
};

/// One token whose schedule is polled, as the daemon does it.
pub(super) struct Polled {
    pub(super) snapshot: TokenSnapshot,
    pub(super) told: Vec<Change>,
    pub(super) oddities: Vec<String>,
    /// Oddities in all.
    pub(super) odd: usize,
    polls: u64,
    view: View,
    have_cliffs: Vec<bool>,
    without_cliffs: Vec<Timestamp>,
    is_marked: bool,
}

/// Which version answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum View {
    Unknown,
    /// One that shows segments too.
    Whole,
    /// One that shows cliffs alone, with segments of an older one beside it where they are due.
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
            told: Vec::new(),
            oddities: Vec::new(),
            odd: 0,
            polls: 0,
            view,
            have_cliffs: Vec::new(),
            without_cliffs: Vec::new(),
            is_marked: false,
        };
        polled.expect(events, true);
        polled.poll(events);
        assert!(polled.told.is_empty() && polled.odd == 0, "the baseline tells nothing");
        polled
    }

    /// An answer of these rows; each is written and read again, so that what no JSON can hold is garbled as it would be.
    pub(super) fn poll(&mut self, events: &[UnlockEvent]) {
        self.read(&serde_json::to_string(events).expect("JSON"));
    }

    /// An answer as text.
    pub(super) fn read(&mut self, json: &str) {
        if self.view != View::Auto {
            self.take(json, false, Vec::new());
            return;
        }
        // As a plan would ask: for segments too where something says that they moved.
        let awaits = |state: &FeedState| state.stale || !state.missing.is_empty() || state.held_since.is_some();
        let is_awaited = self.snapshot.feed(Endpoint::UnlockEvents).is_none_or(awaits);
        let is_marked = std::mem::take(&mut self.is_marked);
        if !is_awaited && !is_marked {
            let rows: Vec<serde_json::Value> = serde_json::from_str(json).expect("rows");
            let cliffs = rows.into_iter().zip(&self.have_cliffs).filter_map(|(mut row, has_cliffs)| {
                row.as_object_mut().map(|row| row.remove("linearUnlocks"));
                has_cliffs.then_some(row)
            });
            let cliffs: Vec<_> = cliffs.collect();
            if cliffs.is_empty() || !self.take(&serde_json::Value::from(cliffs).to_string(), false, Vec::new()) {
                return;
            }
        }
        self.take(json, true, self.without_cliffs.clone());
    }

    /// Takes one answer; whether it is to be asked for again, with segments.
    fn take(&mut self, json: &str, with_segments: bool, without_cliffs: Vec<Timestamp>) -> bool {
        let (rows, report) = wire::gather(|| serde_json::from_str::<Maybe<Vec<UnlockEvent>>>(json).expect("JSON"));
        let payload = Payload::UnlockEvents(rows.into_option().expect("rows"));
        let answer = PollAnswer {
            payload,
            hash: ContentHash(u128::from(self.polls)),
            oddities: report.oddities,
            oddities_total: report.total,
            dropped: report.dropped,
        };
        let request = PollRequest::Token {
            endpoint: Endpoint::UnlockEvents,
            token: token(),
            start: time("1970-01-01").date_naive(),
            end: time("2126-01-01").date_naive(),
        };
        let ask = PlannedPoll { may_add_segments: self.view == View::Auto, ..PlannedPoll::of(request.clone()) };
        let version = match self.view {
            View::Unknown => None,
            View::Whole => Some(3),
            View::Auto => Some(5),
        };
        let fetched = FetchedAnswer {
            segments: with_segments.then_some(SegmentsFetch { is_read: true, is_absent: false, credits: 1 }),
            without_cliffs,
            ..FetchedAnswer::of_page(request, PollOutcome::Fresh(answer), version)
        };
        self.polls += 1;
        let at = now() + chrono::TimeDelta::seconds(i64::try_from(self.polls).expect("few"));
        let taken: IngestResult = ingest(&self.snapshot, &ask, &fetched, &Settings::default(), at);
        assert!(taken.failure.is_none());
        self.snapshot.records = taken.after;
        self.snapshot.feeds = vec![(Endpoint::UnlockEvents, taken.update.state)];
        if let (Some(header), true) = (taken.update.header, self.view != View::Unknown) {
            self.snapshot.headers = vec![(Endpoint::UnlockEvents, header)];
        }
        self.told.extend(taken.changes);
        self.oddities.extend(taken.oddities.named.iter().map(|odd| format!("{}: {}", odd.path, odd.problem)));
        self.odd += taken.oddities.total + report.total;
        taken.lacks_segments
    }

    /// What a source without faults says next: which rows the list of cliffs has, and whether it marks a correction.
    pub(super) fn expect(&mut self, truth: &[UnlockEvent], is_marked: bool) {
        self.have_cliffs = truth.iter().map(|event| event.cliff_unlocks.get().is_some()).collect();
        let alone = truth.iter().filter(|event| event.cliff_unlocks.get().is_none());
        self.without_cliffs = alone.filter_map(|event| event.unlock_date.copied()).collect();
        self.is_marked |= is_marked;
    }

    fn summaries(&self) -> Vec<&str> {
        self.told.iter().map(|change| change.summary.as_str()).collect()
    }
}

/// Polls an answer without some part three times, then the whole one: nothing is told, and the snapshot never loses anything.
#[track_caller]
fn holds(whole: &[UnlockEvent], partial: &[UnlockEvent]) -> Vec<String> {
    let mut polled = Polled::of(whole);
    for _ in 0..3 {
        polled.poll(partial);
        assert_eq!(polled.summaries(), [] as [&str; 0]);
        assert_same_facts(&polled.snapshot.records, whole);
    }
    assert!(polled.odd >= 3, "each time it is counted");
    polled.poll(whole);
    assert_eq!(polled.summaries(), [] as [&str; 0]);
    assert_same_facts(&polled.snapshot.records, whole);
    assert_eq!(polled.snapshot.records.iter().filter(|tracked| tracked.key.as_str().contains('#')).count(), 0);
    polled.oddities
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

/// A schedule with cliffs, segments and an event of both.
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
fn cliffs_that_an_answer_leaves_out_stay() {
    for gap in [Maybe::Null, Maybe::Absent] {
        for row in [2, 3] {
            let mut partial = schedule();
            partial[row].cliff_unlocks = gap.clone();
            let oddities = holds(&schedule(), &partial);
            assert!(oddities[0].ends_with(": cliffUnlocks: missing; the last known ones stay"), "{oddities:?}");
        }
        let mut partial = schedule();
        partial.iter_mut().for_each(|event| event.cliff_unlocks = gap.clone());
        holds(&schedule(), &partial);
    }
}

#[test]
fn a_breakdown_that_an_answer_leaves_out_stays_with_and_without_its_total() {
    for gap in [Maybe::Null, Maybe::Absent, Maybe::Value(Vec::new())] {
        let mut partial = schedule();
        cliffs(&mut partial[2]).allocation_breakdown = gap.clone();
        let oddities = holds(&schedule(), &partial);
        assert_eq!(oddities[0], "16 Mar 2026: cliffUnlocks.allocationBreakdown: missing; the last known one stays");
        if gap.get().is_none() {
            cliffs(&mut partial[2]).cliff_amount = Maybe::Null;
            holds(&schedule(), &partial);
        }
        // In all events at once, as another version of the endpoint would answer.
        let mut partial = schedule();
        for event in &mut partial {
            if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
                cliffs.allocation_breakdown = gap.clone();
            }
        }
        holds(&schedule(), &partial);
    }
}

#[test]
fn a_total_without_parts_is_no_resize_until_the_parts_say_which() {
    let mut partial = schedule();
    cliffs(&mut partial[2]).allocation_breakdown = Maybe::Null;
    cliffs(&mut partial[2]).cliff_amount = 7.5.into();
    let mut polled = Polled::of(&schedule());
    polled.poll(&partial);
    polled.poll(&partial);
    assert_eq!(polled.summaries(), [] as [&str; 0]);
    assert!(polled.oddities[0].contains("the total is another one"), "{:?}", polled.oddities);
    let mut corrected = schedule();
    corrected[2] = event("2026-03-16", &[("Team", 5.0), ("Investors", 2.5)]);
    polled.poll(&corrected);
    let change = only(polled.told, ChangeKind::Resized);
    assert_eq!((change.from, change.to), (Some(Fact::Amount(15.0)), Some(Fact::Amount(7.5))));
}

#[test]
fn an_amount_is_compared_with_the_last_known_one() {
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
    let change = only(polled.told, ChangeKind::Resized);
    assert_eq!((change.from, change.to, change.ratio), (Some(Fact::Amount(5e6)), Some(Fact::Amount(2.5e6)), Some(0.5)));
}

#[test]
fn numbers_that_no_amount_can_be_are_unreadable() {
    let whole = monthly("2026-01-16", 4, &[("Team", 5e6), ("Investors", 1e6)]);
    let json = serde_json::to_string(&whole).expect("JSON");
    for garbled in
        ["-5000000.0", "-0.5", "1e31", "\"NaN\"", "\"inf\"", "\"-infinity\"", "\"a lot\"", "[5]", "{}", "true", "\"-3\""]
    {
        let mut polled = Polled::of(&whole);
        polled.read(&json.replacen("\"cliffAmount\":5000000.0", &format!("\"cliffAmount\":{garbled}"), 2));
        assert_eq!(polled.summaries(), [] as [&str; 0], "{garbled}");
        assert!(polled.odd >= 2, "{garbled}");
        assert_same_facts(&polled.snapshot.records, &whole);
    }
    // A schedule of nothing but such numbers is no schedule of negative amounts.
    let mut polled = Polled::of(&whole);
    polled.read(&json.replace("Amount\":", "Amount\":-"));
    assert_eq!(polled.summaries(), [] as [&str; 0]);
    assert_same_facts(&polled.snapshot.records, &whole);
}

#[test]
fn a_row_of_a_breakdown_that_cannot_be_read_stays() {
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
        // And where the total is gone with it.
        polled.read(&json.replace(&part, garbled).replace("\"cliffAmount\":15.0,", ""));
        assert_eq!(polled.summaries(), [] as [&str; 0]);
        polled.read(&json);
        assert_eq!(polled.summaries(), [] as [&str; 0]);
        assert_same_facts(&polled.snapshot.records, &whole);
    }
    // A row that is simply not there, while the total counts it.
    let mut partial = whole.clone();
    cliff_parts(&mut partial[2]).pop();
    holds(&whole, &partial);
    // Where the total no longer counts it, it is gone.
    cliffs(&mut partial[2]).cliff_amount = 10.0.into();
    let mut polled = Polled::of(&whole);
    for _ in 0..3 {
        polled.poll(&partial);
    }
    assert_eq!(polled.told.len(), 1, "{:?}", polled.summaries());
}

#[test]
fn an_allocation_without_its_name_is_the_one_that_is_left() {
    for row in [2, 3] {
        for part in [0, 1] {
            let mut partial = schedule();
            cliff_parts(&mut partial[row])[part].allocation_name = Maybe::Null;
            holds(&schedule(), &partial);
            cliff_parts(&mut partial[row])[part].cliff_amount = Maybe::Null;
            holds(&schedule(), &partial);
        }
    }
    let mut partial = schedule();
    cliff_parts(&mut partial[2]).iter_mut().for_each(|part| part.allocation_name = Maybe::Null);
    holds(&schedule(), &partial);
    cliff_parts(&mut partial[2]).iter_mut().for_each(|part| part.cliff_amount = Maybe::Null);
    holds(&schedule(), &partial);
}

#[test]
fn an_event_without_its_date_is_the_one_that_is_missing() {
    for rows in [vec![2], vec![3], vec![1, 2], vec![6]] {
        for gap in [Maybe::Null, Maybe::Absent] {
            let mut partial = schedule();
            for row in &rows {
                partial[*row].unlock_date = gap;
            }
            holds(&schedule(), &partial);
            if let Maybe::Value(cliffs) = &mut partial[rows[0]].cliff_unlocks {
                cliffs.cliff_amount = Maybe::Null;
                cliffs.allocation_breakdown.get_mut().expect("parts")[0].cliff_amount = Maybe::Null;
                holds(&schedule(), &partial);
            }
        }
    }
}

#[test]
fn linear_unlocks_that_an_answer_leaves_out_stay() {
    for gap in [Maybe::Null, Maybe::Absent] {
        for row in [3, 6] {
            let mut partial = schedule();
            partial[row].linear_unlocks = gap.clone();
            holds(&schedule(), &partial);
        }
    }
    let parts = |change: &dyn Fn(&mut LinearAllocation)| {
        for row in [3, 6] {
            let mut partial = schedule();
            change(&mut linear_parts(&mut partial[row])[0]);
            holds(&schedule(), &partial);
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
    holds(&schedule(), &partial);
}

#[test]
fn an_event_that_moves_while_a_part_is_missing_holds_the_part() {
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
    only(polled.told, ChangeKind::Rescheduled);
    // Where nothing but the new date is known, it waits.
    let mut empty = whole.clone();
    empty[2].cliff_unlocks = Maybe::Null;
    let mut polled = Polled::of(&schedule());
    for _ in 0..4 {
        polled.poll(&empty);
        assert_eq!(polled.summaries(), [] as [&str; 0]);
    }
    polled.poll(&whole);
    only(polled.told, ChangeKind::Rescheduled);
}

#[test]
fn parts_are_to_be_determined_by_themselves() {
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
fn to_zero_is_a_ratio_and_from_zero_is_none() {
    let with = |amount: f64| monthly("2026-01-16", 3, &[("Team", 5.0), ("Farm", amount)]);
    let one = |from: f64, to: f64| {
        let mut after = with(from);
        after[1] = with(to).swap_remove(1);
        only(told(&with(from), &after), ChangeKind::Resized)
    };
    let change = one(7.0, 0.0);
    assert_eq!(change.allocations[0].ratio, Some(0.0), "{}", change.summary);
    let change = one(0.0, 7.0);
    assert_eq!(change.allocations[0].ratio, None, "{}", change.summary);
    let alone = |amount: f64| [event("2026-04-16", &[("Team", amount)]), event("2026-05-16", &[("Farm", 1.0)])];
    assert_eq!(only(told(&alone(7.0), &alone(0.0)), ChangeKind::Resized).ratio, Some(0.0));
    assert_eq!(only(told(&alone(0.0), &alone(7.0)), ChangeKind::Resized).ratio, None);
}

#[test]
fn other_facts_that_are_missing_stay() {
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
fn a_committed_claim_that_is_left_out_is_not_told_again() {
    let mut with = monthly("2026-01-16", 4, &[("Team", 30.0)]);
    cliff_parts(&mut with[3])[0].committed_claim = CommittedClaim { amount: 20.0.into(), ..CommittedClaim::default() }.into();
    let mut polled = Polled::of(&with);
    polled.poll(&monthly("2026-01-16", 4, &[("Team", 30.0)]));
    polled.poll(&with);
    assert_eq!(polled.summaries(), [] as [&str; 0]);
}

#[test]
fn a_real_correction_has_no_gap() {
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
            let completed = complete(&known(&two[0].data), &two[1].data, &AnswerView::default());
            assert_eq!(completed.oddities, [], "{}", path.display());
            assert!(!completed.proves_no_absence);
            let after =
                complete(&known(&two[0].data), &two[1].data, &AnswerView { has_lost_rows: true, ..AnswerView::default() });
            assert!(after.oddities.is_empty(), "{}: {:?}", path.display(), after.oddities);
        }
    }
}

/// What is told of an answer given three times, where its nulls mean that something is there no more.
#[track_caller]
fn believed(known: &[UnlockEvent], after: &[UnlockEvent]) -> Vec<Change> {
    let mut polled = Polled::of(known);
    (0..3).for_each(|_| polled.poll(after));
    assert_same_facts(&polled.snapshot.records, after);
    polled.told
}

#[test]
fn a_null_is_believed_where_its_amount_stands_elsewhere_in_the_answer() {
    // Into the next event, which had some of it before.
    let mut merged = schedule();
    merged[1].cliff_unlocks = Maybe::Null;
    merged[1].linear_unlocks = segment("Ops", "2026-02-16", "2027-02-16", 3.0).linear_unlocks;
    let mut known = merged.clone();
    known[1].cliff_unlocks = schedule()[1].cliff_unlocks.clone();
    merged[2] = event("2026-03-16", &[("Team", 20.0), ("Investors", 10.0)]);
    let told = believed(&known, &merged);
    assert!(
        told.iter().all(|change| matches!(change.kind, ChangeKind::Merged | ChangeKind::Restructured)) && told.len() == 1,
        "{told:?}"
    );
    // A cliff that became more of a segment of its recipient, of that event and of another one.
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
        let told = believed(&known, &linear);
        assert!(told.iter().all(|change| change.kind == ChangeKind::Restructured) && told.len() == 1, "{told:?}");
        // And back.
        let told = believed(&linear, &known);
        assert!(told.iter().all(|change| change.kind == ChangeKind::Restructured) && told.len() == 1, "{told:?}");
    }
    // Segments that became a cliff that was there.
    let mut cliffs_alone = schedule();
    cliffs_alone[3].linear_unlocks = Maybe::Null;
    cliffs_alone[3].cliff_unlocks =
        event("2026-04-16", &[("Team", 10.0), ("Investors", 5.0), ("Ops", 7.0), ("Farm", 9.0)]).cliff_unlocks;
    assert!(believed(&schedule(), &cliffs_alone).iter().all(|change| change.kind == ChangeKind::Restructured));
    // Given to others.
    let mut given = schedule();
    given[3].linear_unlocks = Maybe::Null;
    given[4] = event("2026-05-16", &[("Team", 26.0), ("Investors", 5.0)]);
    assert!(believed(&schedule(), &given).iter().all(|change| change.kind == ChangeKind::Reallocated));
}

#[test]
fn a_null_beside_something_new_is_no_removal() {
    // Something else comes at the same time, whose amount is not that of what is missing.
    let mut partial = schedule();
    partial[3].cliff_unlocks = Maybe::Null;
    linear_parts(&mut partial[3]).push(linear("Airdrop", "2026-04-16", "2026-12-16", 1.5));
    let mut polled = Polled::of(&schedule());
    (0..4).for_each(|_| polled.poll(&partial));
    let kinds: Vec<ChangeKind> = polled.told.iter().map(|change| change.kind).collect();
    assert!(kinds == [ChangeKind::Added] || kinds == [ChangeKind::Resized], "{:?}", polled.summaries());
    let mut whole = partial.clone();
    whole[3].cliff_unlocks = schedule()[3].cliff_unlocks.clone();
    assert_same_facts(&polled.snapshot.records, &whole);
    // One of two parts went elsewhere: the other one stays.
    let mut partial = schedule();
    partial[3].cliff_unlocks = Maybe::Null;
    partial[4] = event("2026-05-16", &[("Team", 20.0), ("Investors", 5.0)]);
    let mut polled = Polled::of(&schedule());
    (0..4).for_each(|_| polled.poll(&partial));
    partial[3].cliff_unlocks = event("2026-04-16", &[("Investors", 5.0)]).cliff_unlocks;
    assert_same_facts(&polled.snapshot.records, &partial);
    // So little that it could be rounding of all the others is still not elsewhere.
    let mut dust = schedule();
    dust.push(event("2026-12-01", &[("Team", 1e-7)]));
    dust[3].linear_unlocks = schedule()[3].linear_unlocks.clone();
    let mut partial = dust.clone();
    partial.last_mut().expect("an event").cliff_unlocks = Maybe::Null;
    holds(&dust, &partial);
}
