//! What the diff promises, by example and by property, and over the real corrections of `data/revisions`.

use chrono::{Days, Months};
use proptest::prelude::*;

use super::*;
use crate::{
    change::{ChangeKind, Fact},
    supply::{Precision, Resource, TokenId},
    wire::{
        self, Allocation, AllocationsData, Burn, Buyback, CliffAllocation, CliffUnlocks, CommittedClaim, Emission,
        LinearAllocation, LinearUnlocks, Maybe, UnlockEvent,
    },
};

fn time(text: &str) -> Timestamp {
    wire::parse_timestamp(text).expect("a timestamp")
}

fn now() -> Timestamp {
    time("2026-03-09")
}

fn token() -> TokenId {
    "arbitrum".into()
}

fn cliff(name: &str, amount: f64) -> CliffAllocation {
    CliffAllocation {
        allocation_name: name.to_owned().into(),
        standard_allocation_name: "Founder / Team".to_owned().into(),
        cliff_amount: amount.into(),
        cliff_value: (amount * 0.5).into(),
        reference_price: 0.5.into(),
        unlock_precision: "second".to_owned().into(),
        ..CliffAllocation::default()
    }
}

fn event_at(at: Timestamp, cliffs: Vec<CliffAllocation>, linears: Vec<LinearAllocation>) -> UnlockEvent {
    let total: f64 = cliffs.iter().filter_map(|part| part.cliff_amount.copied()).sum();
    UnlockEvent {
        unlock_date: at.into(),
        token_name: "Arbitrum".to_owned().into(),
        listed_method: "INTERNAL".to_owned().into(),
        data_source: "https://docs.example.com".to_owned().into(),
        linear_unlocks: if linears.is_empty() {
            Maybe::Null
        } else {
            LinearUnlocks { allocation_breakdown: linears.into(), ..LinearUnlocks::default() }.into()
        },
        cliff_unlocks: if cliffs.is_empty() {
            Maybe::Null
        } else {
            CliffUnlocks { cliff_amount: total.into(), allocation_breakdown: cliffs.into(), ..CliffUnlocks::default() }.into()
        },
        latest_update_date: time("2026-01-01").into(),
        ..UnlockEvent::default()
    }
}

fn event(at: &str, parts: &[(&str, f64)]) -> UnlockEvent {
    event_at(time(at), parts.iter().map(|(name, amount)| cliff(name, *amount)).collect(), Vec::new())
}

fn linear(name: &str, begin: &str, end: &str, amount: f64) -> LinearAllocation {
    LinearAllocation {
        allocation_name: name.to_owned().into(),
        linear_amount: amount.into(),
        begin_date: time(begin).into(),
        end_date: time(end).into(),
        ..LinearAllocation::default()
    }
}

fn segment(name: &str, begin: &str, end: &str, amount: f64) -> UnlockEvent {
    event_at(time(begin), Vec::new(), vec![linear(name, begin, end, amount)])
}

/// `count` events, a calendar month apart.
fn monthly(from: &str, count: u32, parts: &[(&str, f64)]) -> Vec<UnlockEvent> {
    (0..count)
        .map(|k| {
            event_at(time(from) + Months::new(k), parts.iter().map(|(name, amount)| cliff(name, *amount)).collect(), Vec::new())
        })
        .collect()
}

fn known(events: &[UnlockEvent]) -> Vec<Tracked> {
    apply(&[], &Diff { put: baseline_unlocks(&[], events, Timestamp::default()), ..Diff::default() })
}

fn diff(before: &[Tracked], after: &[UnlockEvent]) -> Diff {
    diff_unlocks(&token(), before, &[], after, &Settings::default(), &Window::ALL, now())
}

/// Polls until nothing awaits proof: the snapshot and all that was told.
fn settle(mut snapshot: Vec<Tracked>, after: &[UnlockEvent], settings: &Settings) -> (Vec<Tracked>, Vec<Change>) {
    let mut missing = Vec::new();
    let mut told = Vec::new();
    for _ in 0..8 {
        let diff = diff_unlocks(&token(), &snapshot, &missing, after, settings, &Window::ALL, now());
        snapshot = apply(&snapshot, &diff);
        told.extend(diff.changes);
        missing = diff.missing;
        if missing.is_empty() {
            return (snapshot, told);
        }
    }
    panic!("never settles: {missing:?}");
}

/// What is told of a correction, and that the snapshot afterwards has the facts of the answer.
#[track_caller]
fn told(before: &[UnlockEvent], after: &[UnlockEvent]) -> Vec<Change> {
    let (snapshot, changes) = settle(known(before), after, &Settings::default());
    assert_same_facts(&snapshot, after);
    let again = diff(&snapshot, after);
    assert!(again.is_empty(), "told twice: {:?}", again.changes);
    for change in &changes {
        assert!(change.kind.can_happen_to(Resource::Unlock));
        assert!(!change.summary.is_empty());
    }
    changes
}

#[track_caller]
fn only(changes: Vec<Change>, kind: ChangeKind) -> Change {
    let kinds: Vec<(ChangeKind, &str)> = changes.iter().map(|change| (change.kind, change.summary.as_str())).collect();
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    let change = changes.into_iter().next().expect("one");
    assert_eq!(change.kind, kind, "{}", change.summary);
    change
}

#[track_caller]
fn assert_same_facts(snapshot: &[Tracked], after: &[UnlockEvent]) {
    let keys: HashSet<&RecordKey> = snapshot.iter().map(|tracked| &tracked.key).collect();
    assert_eq!(keys.len(), snapshot.len(), "keys are unique");
    let mut kept: Vec<&UnlockEvent> = snapshot
        .iter()
        .map(|tracked| match &tracked.record {
            Record::Unlock(event) => &**event,
            other => panic!("not an unlock: {other:?}"),
        })
        .collect();
    let mut wanted: Vec<&UnlockEvent> = after.iter().collect();
    kept.sort_by_key(|event| event.unlock_date.copied());
    wanted.sort_by_key(|event| event.unlock_date.copied());
    assert_eq!(kept.len(), wanted.len());
    for (a, b) in kept.iter().zip(&wanted) {
        assert!(unlock::same_schedule(a, b, 1e-9), "{a:#?}\n{b:#?}");
    }
}

fn days(change: &Change) -> f64 {
    change.shift_days.expect("a shift")
}

// One event.

#[test]
fn a_moved_event_is_rescheduled_and_keeps_its_key() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0), ("Investors", 5.0)]);
    let mut after = before.clone();
    after[2].unlock_date = time("2026-03-20").into();
    let change = only(told(&before, &after), ChangeKind::Rescheduled);
    assert_eq!(change.key, Some("2026-03-16".into()));
    assert_eq!(change.from, Some(Fact::Time(time("2026-03-16"))));
    assert_eq!(change.to, Some(Fact::Time(time("2026-03-20"))));
    assert!((days(&change) - 4.0).abs() < 1e-9);
    assert_eq!(change.summary, "moved from 16 Mar 2026 to 20 Mar 2026 (+4 days)");
    assert_eq!(change.allocations.len(), 2);
    assert_eq!(change.count, 2);
}

#[test]
fn an_event_that_jumps_over_others_is_one_move() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[2].unlock_date = time("2026-06-30").into();
    let change = only(told(&before, &after), ChangeKind::Rescheduled);
    assert_eq!(change.key, Some("2026-03-16".into()));
    assert_eq!(change.to, Some(Fact::Time(time("2026-06-30"))));
}

#[test]
fn a_shift_of_hours_is_told_as_hours() {
    let before = [event("2026-03-16T12:00:00Z", &[("Team", 10.0)])];
    let after = [event("2026-03-16T09:00:00Z", &[("Team", 10.0)])];
    let change = only(told(&before, &after), ChangeKind::Rescheduled);
    assert!((days(&change) + 0.125).abs() < 1e-9);
    assert_eq!(change.summary, "moved from 16 Mar 2026, 12:00 UTC to 16 Mar 2026, 09:00 UTC (-3 h)");
}

#[test]
fn a_move_of_months_is_said_in_months_where_only_months_are_known() {
    let month = |at: &str| {
        let mut event = event(at, &[("Team", 10.0)]);
        event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts")[0].unlock_precision =
            "month".to_owned().into();
        event
    };
    let change = only(told(&[month("2026-03-16")], &[month("2026-05-02")]), ChangeKind::Rescheduled);
    assert_eq!(change.summary, "moved from March 2026 to May 2026 (+47 days)");
    assert_eq!(month("2026-03-16").precision(), Precision::Month);
}

#[test]
fn a_past_event_is_corrected_like_any_other() {
    let before = monthly("2023-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[5] = event("2023-06-16", &[("Team", 12.0)]);
    let change = only(told(&before, &after), ChangeKind::Resized);
    assert_eq!(change.key, Some("2023-06-16".into()));
    assert_eq!((change.from, change.to), (Some(Fact::Amount(10.0)), Some(Fact::Amount(12.0))));
    assert_eq!(change.summary, "resized from 10 to 12 (×1.2): Team");
}

#[test]
fn a_resized_part_is_told_with_the_whole_event() {
    let before = [event("2026-04-16", &[("Team", 30.0), ("Investors", 10.0)])];
    let after = [event("2026-04-16", &[("Team", 30.0), ("Investors", 20.0)])];
    let change = only(told(&before, &after), ChangeKind::Resized);
    assert_eq!((change.from, change.to, change.ratio), (Some(Fact::Amount(40.0)), Some(Fact::Amount(50.0)), Some(1.25)));
    assert_eq!(change.allocations.len(), 1);
    assert_eq!(change.allocations[0].ratio, Some(2.0));
}

#[test]
fn the_same_total_to_other_recipients_is_reallocated() {
    let before = [event("2026-04-16", &[("Team", 30.0), ("Investors", 10.0)]), event("2026-05-16", &[("Team", 1.0)])];
    let after = [event("2026-04-16", &[("Team", 25.0), ("Investors", 15.0)]), event("2026-05-16", &[("Team", 1.0)])];
    let change = only(told(&before, &after), ChangeKind::Reallocated);
    assert_eq!(change.key, Some("2026-04-16".into()));
    let after =
        [event("2026-04-16", &[("Team", 30.0), ("Advisors", 4.0), ("Partners", 6.0)]), event("2026-05-16", &[("Team", 1.0)])];
    let change = only(told(&before, &after), ChangeKind::Reallocated);
    assert_eq!(change.ratio, Some(1.0));
}

#[test]
fn one_event_that_becomes_several_is_split_and_back_is_merged() {
    let whole = [event("2026-04-16", &[("Team", 30.0)]), event("2027-04-16", &[("Team", 30.0)])];
    let parts =
        [event("2026-04-16", &[("Team", 10.0)]), event("2026-05-16", &[("Team", 20.0)]), event("2027-04-16", &[("Team", 30.0)])];
    let change = only(told(&whole, &parts), ChangeKind::Split);
    assert_eq!(change.key, Some("2026-04-16".into()));
    let diff = diff(&known(&parts), &whole);
    assert_eq!(diff.removed, [RecordKey::from("2026-05-16")], "a merged event is accounted for: no proof is needed");
    only(told(&parts, &whole), ChangeKind::Merged);
}

#[test]
fn a_cliff_that_becomes_linear_is_revised() {
    let before = [event("2026-04-16", &[("Team", 30.0)]), segment("Farm", "2026-01-01", "2028-01-01", 9.0)];
    let after = [segment("Team", "2026-04-16", "2027-04-16", 30.0), segment("Farm", "2026-01-01", "2028-01-01", 9.0)];
    let change = only(told(&before, &after), ChangeKind::Revised);
    assert_eq!(change.summary, "Team: 1 cliff became 1 linear segment, 30 in all");
}

#[test]
fn the_end_of_a_segment_that_moved_is_rescheduled() {
    let before = [segment("Team", "2026-04-16", "2027-04-16", 30.0)];
    let after = [segment("Team", "2026-04-16", "2028-04-16", 30.0)];
    let change = only(told(&before, &after), ChangeKind::Rescheduled);
    assert_eq!(change.summary, "the end of Team moved from 16 Apr 2027 to 16 Apr 2028 (+366 days)");
    assert_eq!(change.key, Some("2026-04-16".into()));
    let moved = [segment("Team", "2026-05-16", "2027-05-16", 30.0)];
    only(told(&before, &moved), ChangeKind::Rescheduled);
}

#[test]
fn an_added_event_is_told_once_with_its_own_key() {
    let before = monthly("2026-01-16", 6, &[("Team", 10.0)]);
    let mut after = before.clone();
    after.push(event("2026-02-01", &[("Airdrop", 7.0)]));
    let change = only(told(&before, &after), ChangeKind::Added);
    assert_eq!((change.key, change.to), (Some("2026-02-01".into()), Some(Fact::Amount(7.0))));
    assert!(change.new.is_some() && change.old.is_none());
}

#[test]
fn a_committed_claim_is_told_when_it_appears_or_changes_and_not_when_it_is_missing() {
    let with = |amount: Option<f64>| {
        let mut event = event("2026-04-16", &[("Team", 30.0)]);
        event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts")[0].committed_claim =
            Maybe::or_null(amount.map(|amount| CommittedClaim {
                amount: amount.into(),
                timestamp: 1_776_297_600.into(),
                ..CommittedClaim::default()
            }));
        [event]
    };
    let change = only(told(&with(None), &with(Some(20.0))), ChangeKind::Committed);
    assert_eq!(change.summary, "Team committed to claim 20 on 16 Apr 2026");
    only(told(&with(Some(20.0)), &with(Some(25.0))), ChangeKind::Committed);
    assert!(told(&with(Some(20.0)), &with(None)).is_empty());
}

#[test]
fn three_corrections_of_three_events_are_three_changes() {
    let before = [
        event("2026-04-01", &[("Team", 30.0)]),
        event("2026-05-01", &[("Airdrop", 10.0)]),
        event("2026-06-01", &[("Partners", 11.0)]),
        event("2026-07-01", &[("Treasury", 12.0)]),
    ];
    let mut after = before.clone();
    after[0].unlock_date = time("2026-04-10").into();
    after[1] = event("2026-05-01", &[("Airdrop", 20.0)]);
    after[2].unlock_date = time("2026-05-20").into();
    let kinds: Vec<ChangeKind> = told(&before, &after).iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Rescheduled, ChangeKind::Rescheduled, ChangeKind::Resized]);
}

// Series.

#[test]
fn a_series_that_steps_in_months_is_one_shift_although_it_scatters() {
    let before = monthly("2026-04-01", 24, &[("Team", 10.0), ("Investors", 5.0)]);
    let after = monthly("2026-05-03", 24, &[("Team", 10.0), ("Investors", 5.0)]);
    let change = only(told(&before, &after), ChangeKind::SeriesShifted);
    assert_eq!(change.count, 48);
    assert_eq!((change.shift_days_min, change.shift_days_max), (Some(30.0), Some(33.0)));
    assert_eq!((change.from, change.to), (Some(Fact::Time(time("2026-04-01"))), Some(Fact::Time(time("2026-05-03")))));
    assert_eq!(
        change.summary,
        "48 tranches of Investors, Team moved by +30 to +33 days (the first from 1 Apr 2026 to 3 May 2026)"
    );
    assert_eq!(
        change.allocations.iter().map(|part| (part.name.as_str(), part.count)).collect::<Vec<_>>(),
        [("Investors", 24), ("Team", 24)]
    );
}

#[test]
fn a_series_that_overlaps_itself_is_shifted_not_cut_and_extended() {
    let before = monthly("2026-04-01", 24, &[("Team", 10.0)]);
    let after = monthly("2026-05-01", 24, &[("Team", 10.0)]);
    let (snapshot, changes) = settle(known(&before), &after, &Settings::default());
    let change = only(changes, ChangeKind::SeriesShifted);
    assert_eq!(change.count, 24);
    let first = snapshot.iter().find(|tracked| tracked.key.as_str() == "2026-04-01").expect("the first keeps its key");
    assert_eq!(first.record.interval().expect("dated").start, time("2026-05-01"));
}

#[test]
fn a_shift_may_spare_single_tranches_and_whole_allocations() {
    let with = |from: &str| {
        let mut events = monthly(from, 12, &[("Team", 10.0)]);
        events.push(event("2025-01-15", &[("Team", 3.0)]));
        events.extend(monthly("2026-01-20", 12, &[("Farm", 2.0)]));
        events
    };
    let change = only(told(&with("2026-04-01"), &with("2026-07-01")), ChangeKind::SeriesShifted);
    assert_eq!((change.count, change.allocations.len()), (12, 1));
}

#[test]
fn a_placeholder_date_that_becomes_real_is_one_shift() {
    let at = |from: &str| monthly(from, 12, &[("Team", 10.0)]);
    let change = only(told(&at("1970-01-01"), &at("2026-06-01")), ChangeKind::SeriesShifted);
    assert!(change.summary.contains("the first from no date to 1 Jun 2026"), "{}", change.summary);
}

#[test]
fn a_date_that_is_taken_back_is_told_without_a_number_of_days() {
    let before = known(&[event("2026-07-20", &[("Team", 1.0)]), event("2026-09-20", &[("Team", 1.0)])]);
    let mut after = vec![event("2026-07-20", &[("Team", 1.0)]), event("2026-09-20", &[("Team", 1.0)])];
    after[0].unlock_date = Maybe::Null;
    let changes = diff(&before, &after).changes;
    let [change] = &changes[..] else { panic!("{changes:#?}") };
    assert_eq!(change.kind, ChangeKind::Rescheduled);
    assert_eq!(change.summary, "moved from 20 Jul 2026 to no date");
    assert_eq!((change.shift_days, &change.to), (None, &None));
}

#[test]
fn a_redenomination_is_one_change() {
    let by = |factor: f64| {
        let mut events = monthly("2026-04-01", 24, &[("Team", 10.0 * factor), ("Investors", 7.3 * factor)]);
        events.push(event("2025-01-15", &[("Airdrop", 3.1 * factor)]));
        events
    };
    let change = only(told(&by(1.0), &by(20.0)), ChangeKind::SeriesRescaled);
    assert_eq!(change.count, 49);
    assert!((change.ratio.expect("a ratio") - 20.0).abs() < 1e-9);
}

#[test]
fn a_shift_and_a_rescale_at_once_are_two_changes() {
    let before = monthly("2026-04-01", 24, &[("Team", 10.0)]);
    let after = monthly("2026-09-01", 24, &[("Team", 5.0)]);
    let kinds: Vec<ChangeKind> = told(&before, &after).iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::SeriesShifted, ChangeKind::SeriesRescaled]);
}

#[test]
fn a_new_allocation_of_many_tranches_is_added_once() {
    let before = monthly("2026-01-16", 24, &[("Team", 10.0)]);
    let mut after = monthly("2026-01-16", 24, &[("Team", 10.0), ("Advisors", 1.0)]);
    after.extend(monthly("2028-01-16", 24, &[("Advisors", 1.0)]));
    let change = only(told(&before, &after), ChangeKind::Added);
    assert_eq!((change.count, change.to), (48, Some(Fact::Amount(48.0))));
    assert_eq!(change.allocations.len(), 1);
}

#[test]
fn the_same_tranches_under_another_name_or_category_are_renamed() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0), ("Alladin DAO", 4.0)]);
    let after = monthly("2026-01-16", 12, &[("Team", 10.0), ("Aladdin DAO", 4.0)]);
    let change = only(told(&before, &after), ChangeKind::Renamed);
    assert_eq!((change.from, change.to), (Some(Fact::Text("Alladin DAO".into())), Some(Fact::Text("Aladdin DAO".into()))));
    let mut filed = before.clone();
    for event in &mut filed {
        let parts = event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts");
        parts[1].standard_allocation_name = "Community".to_owned().into();
    }
    let change = only(told(&before, &filed), ChangeKind::Renamed);
    assert_eq!(change.summary, "Alladin DAO filed under Community instead of Founder / Team (12 tranches)");
}

#[test]
fn names_that_change_places_are_renamed() {
    let with = |a: &str, b: &str| monthly("2026-01-16", 12, &[(a, 10.0), (b, 4.0)]);
    let change = only(told(&with("Team", "Farm"), &with("Farm", "Team")), ChangeKind::Renamed);
    assert!(change.summary.contains("changed names"), "{}", change.summary);
}

#[test]
fn a_wholly_other_schedule_is_rewritten_in_one_change() {
    let before = monthly("2025-01-16", 30, &[("Team", 10.0), ("Investors", 4.0)]);
    let mut after = vec![event("2026-04-02", &[("Public", 500.0)])];
    after.extend((0..9).map(|k| event_at(time("2026-08-02") + Days::new(91 * k), vec![cliff("Core", 77.0)], Vec::new())));
    let change = only(told(&before, &after), ChangeKind::Rewritten);
    let (before, after) = (change.before.expect("before"), change.after.expect("after"));
    assert_eq!((before.events, after.events), (30, 10));
    assert_eq!(after.next.len(), 3);
    assert!((before.total - 420.0).abs() < 1e-9);
}

#[test]
fn many_events_revised_alike_are_one_change() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    for event in &mut after {
        event.data_source = "https://docs.example.com/v2".to_owned().into();
    }
    let change = only(told(&before, &after), ChangeKind::Revised);
    assert_eq!((change.count, change.fields.len()), (12, 1));
    assert_eq!(change.fields[0].field, "dataSource");
}

#[test]
fn a_new_source_that_comes_with_a_correction_is_part_of_it() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = monthly("2026-03-16", 12, &[("Team", 10.0)]);
    for event in &mut after {
        event.data_source = "https://docs.example.com/v2".to_owned().into();
    }
    let change = only(told(&before, &after), ChangeKind::SeriesShifted);
    assert_eq!(change.fields[0].field, "dataSource");
}

// What is no change.

#[test]
fn nulls_duplicates_order_and_update_dates_are_no_changes() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let mut after = before.clone();
    after.reverse();
    after.push(before[3].clone());
    let seen = diff(&snapshot, &after);
    assert!(seen.is_empty(), "{:?}", seen.changes);
    assert_eq!((seen.odd.duplicates, seen.odd.reordered), (1, 11));

    let mut touched = before.clone();
    for event in &mut touched {
        event.latest_update_date = time("2026-03-01").into();
    }
    let seen = diff(&snapshot, &touched);
    assert!(seen.changes.is_empty());
    assert!(seen.put.len() == 12 && seen.put.iter().all(|put| !put.is_new_version));

    let mut nulls = before.clone();
    let parts = nulls[2].cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts");
    parts[0].cliff_amount = Maybe::Null;
    parts[0].unlock_precision = Maybe::Absent;
    assert!(diff(&snapshot, &nulls).changes.is_empty(), "missing is neither zero nor removed");
}

#[test]
fn an_amount_that_appears_is_revised() {
    let after = [event("2026-04-16", &[("Team", 30.0)])];
    let mut before = after.clone();
    let cliffs = before[0].cliff_unlocks.get_mut().expect("cliffs");
    cliffs.cliff_amount = Maybe::Null;
    cliffs.allocation_breakdown.get_mut().expect("parts")[0].cliff_amount = Maybe::Null;
    let change = only(told(&before, &after), ChangeKind::Revised);
    assert_eq!(change.summary, "cliffAmount is now 30");
}

#[test]
fn an_answer_of_a_version_without_linear_unlocks_keeps_the_segments() {
    let mut before = monthly("2026-01-16", 6, &[("Team", 10.0)]);
    before.push(segment("Farm", "2026-02-01", "2028-02-01", 100.0));
    before[0].linear_unlocks = LinearUnlocks {
        allocation_breakdown: vec![linear("Ops", "2026-01-16", "2027-01-16", 5.0)].into(),
        ..LinearUnlocks::default()
    }
    .into();
    let snapshot = known(&before);
    let after = monthly("2026-01-16", 6, &[("Team", 10.0)]);
    let seen = diff(&snapshot, &after);
    assert!(seen.changes.is_empty() && seen.missing.is_empty() && seen.removed.is_empty(), "{seen:?}");
    assert_same_facts(&apply(&snapshot, &seen), &before);
    // And back: nothing was lost, so nothing is new.
    assert!(diff(&apply(&snapshot, &seen), &before).changes.is_empty());
    // A version that begins to tell segments adds nothing either.
    let mut cliffs_only = after;
    cliffs_only.iter_mut().for_each(|event| event.linear_unlocks = Maybe::Absent);
    let (snapshot, changes) = settle(known(&cliffs_only), &before, &Settings::default());
    assert!(changes.is_empty(), "{changes:?}");
    assert_same_facts(&snapshot, &before);
}

#[test]
fn two_events_of_one_instant_keep_two_keys() {
    let twins = [event("2026-04-16", &[("Team", 30.0)]), event("2026-04-16", &[("Farm", 30.0)])];
    let keys: Vec<String> = known(&twins).iter().map(|tracked| tracked.key.to_string()).collect();
    assert_eq!(keys, ["2026-04-16", "2026-04-16#2"]);
    assert!(diff(&known(&twins), &[twins[1].clone(), twins[0].clone()]).is_empty());
}

#[test]
fn a_new_event_never_takes_the_key_of_one_that_moved_away() {
    let before = [event("2026-04-16", &[("Team", 30.0)])];
    let after = [event("2026-04-20", &[("Team", 30.0)]), event("2026-04-16", &[("Airdrop", 1.0)])];
    let (snapshot, changes) = settle(known(&before), &after, &Settings::default());
    assert_eq!(changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [ChangeKind::Rescheduled, ChangeKind::Added]);
    assert_eq!(changes[1].key, Some("2026-04-16#2".into()));
    assert_same_facts(&snapshot, &after);
}

// Removal.

#[test]
fn a_removal_is_told_after_proof_and_only_then() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let mut after = before.clone();
    after.remove(7);
    let first = diff(&snapshot, &after);
    assert!(first.changes.is_empty() && first.removed.is_empty() && !first.held);
    assert_eq!(first.missing, [("2026-08-16".into(), 1)]);
    let snapshot = apply(&snapshot, &first);
    let second = diff_unlocks(&token(), &snapshot, &first.missing, &after, &Settings::default(), &Window::ALL, now());
    let change = only(second.changes.clone(), ChangeKind::Removed);
    assert_eq!(change.key, Some("2026-08-16".into()));
    assert_eq!(change.summary, "removed: Team, 10, on 16 Aug 2026");
    assert!(second.missing.is_empty());
    assert_same_facts(&apply(&snapshot, &second), &after);
}

#[test]
fn a_record_that_comes_back_was_never_gone() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let missing = [("2026-08-16".into(), 1)];
    let seen = diff_unlocks(&token(), &snapshot, &missing, &before, &Settings::default(), &Window::ALL, now());
    assert!(seen.is_empty(), "{seen:?}");
}

#[test]
fn what_a_removal_does_not_touch_is_told_at_once() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[2].unlock_date = time("2026-03-20").into();
    after.remove(7);
    let first = diff(&known(&before), &after);
    only(first.changes, ChangeKind::Rescheduled);
    assert_eq!(first.missing.len(), 1);
}

#[test]
fn an_allocation_gone_from_shared_and_own_events_is_told_once() {
    let mut before = monthly("2026-01-16", 12, &[("Team", 10.0), ("Farm", 3.0)]);
    before.extend(monthly("2027-01-16", 4, &[("Farm", 3.0)]));
    let after = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let first = diff(&known(&before), &after);
    assert!(first.changes.is_empty(), "all of it waits for the proof: {:?}", first.changes);
    let change = only(told(&before, &after), ChangeKind::Removed);
    assert_eq!((change.count, change.from), (16, Some(Fact::Amount(48.0))));
}

#[test]
fn a_mass_removal_is_held_until_confirmed_once_more() {
    let before = monthly("2026-01-16", 24, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let after = before[..6].to_vec();
    let mut missing = Vec::new();
    for poll in 0..2 {
        let seen = diff_unlocks(&token(), &snapshot, &missing, &after, &Settings::default(), &Window::ALL, now());
        assert!(seen.held, "poll {poll}");
        assert!(seen.changes.is_empty() && seen.put.is_empty() && seen.removed.is_empty());
        missing = seen.missing;
    }
    let seen = diff_unlocks(&token(), &snapshot, &missing, &after, &Settings::default(), &Window::ALL, now());
    assert!(!seen.held);
    let change = only(seen.changes, ChangeKind::Removed);
    assert_eq!((change.count, seen.removed.len()), (18, 18));
}

#[test]
fn an_empty_answer_empties_nothing() {
    let snapshot = known(&monthly("2026-01-16", 2, &[("Team", 10.0)]));
    let missing = [("2026-01-16".into(), 99), ("2026-02-16".into(), 99)];
    let seen = diff_unlocks(&token(), &snapshot, &missing, &[], &Settings::default(), &Window::ALL, now());
    assert!(seen.held && seen.removed.is_empty() && seen.changes.is_empty());
}

#[test]
fn rows_of_days_that_were_not_asked_for_are_known_the_next_time() {
    let events = monthly("2026-01-01T00:00:00Z", 12, &[("Team", 5.0)]);
    let window = Window::of(time("2026-03-01").date_naive(), time("2026-09-30").date_naive());
    let again = |after: &[UnlockEvent]| diff_unlocks(&token(), &known(&events), &[], after, &Settings::default(), &window, now());
    assert!(again(&events).is_empty(), "the source answers more than it was asked for, each time");
    assert!(again(&events[2..9]).is_empty(), "and then no more than that");
    let mut longer = events.clone();
    longer.push(event("2027-05-05T00:00:00Z", &[("Team", 5.0)]));
    assert_eq!(again(&longer).changes.len(), 1);
}

#[test]
fn a_record_outside_the_window_proves_nothing() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let window = Window::of(time("2026-03-01").date_naive(), time("2026-09-30").date_naive());
    let missing = [("2026-01-16".into(), 1)];
    let seen = diff_unlocks(&token(), &known(&before), &missing, &before[2..9], &Settings::default(), &window, now());
    assert!(seen.changes.is_empty() && seen.put.is_empty() && !seen.held);
    assert_eq!(seen.missing, missing, "its count stays as it was");
}

// The others.

fn burn(at: &str, label: &str, amount: f64) -> Burn {
    Burn {
        burn_date: time(at).into(),
        burn_event_label: label.to_owned().into(),
        burn_type: "PROGRAMMATIC".to_owned().into(),
        amount: amount.into(),
        price_per_token: 2.0.into(),
        value: (amount * 2.0).into(),
        ..Burn::default()
    }
}

fn tracked(put: Vec<Put>) -> Vec<Tracked> {
    apply(&[], &Diff { put, ..Diff::default() })
}

fn burns_diff(before: &[Burn], after: &[Burn]) -> Diff {
    diff_burns(&token(), &tracked(baseline_burns(before)), &[], after, &Settings::default(), &Window::ALL)
}

#[test]
fn equal_burns_of_one_day_are_as_many_rows() {
    let two = [burn("2026-01-01", "Q1", 5.0), burn("2026-01-01", "Q1", 5.0)];
    assert_eq!(baseline_burns(&two).iter().map(|put| put.key.to_string()).collect::<Vec<_>>(), ["2026-01-01", "2026-01-01#2"]);
    assert!(burns_diff(&two, &two).is_empty());
    let three = [two[0].clone(), two[1].clone(), two[1].clone()];
    let seen = burns_diff(&two, &three);
    assert_eq!(only(seen.changes, ChangeKind::Added).key, Some("2026-01-01#3".into()));
    assert_eq!(seen.put.len(), 1);
}

#[test]
fn a_restated_burn_is_revised_whatever_was_restated() {
    let before = [burn("2026-01-01", "Q1", 5.0), burn("2026-02-01", "Q2", 7.0)];
    let change = only(burns_diff(&before, &[before[0].clone(), burn("2026-02-01", "Q2", 14.0)]).changes, ChangeKind::Revised);
    assert_eq!((change.from, change.to, change.ratio), (Some(Fact::Amount(7.0)), Some(Fact::Amount(14.0)), Some(2.0)));
    assert_eq!(change.summary, "burn of 1 Feb 2026 restated from 7 to 14 (×2)");
    let seen = burns_diff(&before, &[before[0].clone(), burn("2026-02-03", "Q2", 7.0)]);
    let change = only(seen.changes, ChangeKind::Revised);
    assert_eq!((change.key, change.shift_days), (Some("2026-02-01".into()), Some(2.0)));
    assert!(seen.missing.is_empty());
    only(burns_diff(&before, &[before[0].clone(), burn("2026-02-01", "Second quarter", 7.0)]).changes, ChangeKind::Revised);
}

#[test]
fn a_price_that_drifts_restates_no_burn() {
    let before: Vec<Burn> = (1..=9).map(|day| burn(&format!("2026-01-0{day}"), "daily", 5.0)).collect();
    let mut after = before.clone();
    for burn in &mut after {
        burn.value = 11.0.into();
        burn.price_per_token = 2.2.into();
    }
    let seen = burns_diff(&before, &after);
    assert!(seen.changes.is_empty() && seen.put.len() == 9);
    let mut one = before.clone();
    one[4].value = 11.0.into();
    only(burns_diff(&before, &one).changes, ChangeKind::Revised);
}

#[test]
fn a_burn_is_gone_after_proof_and_many_at_once_are_held() {
    let before: Vec<Burn> = (1..=9).map(|day| burn(&format!("2026-01-0{day}"), "daily", f64::from(day))).collect();
    let seen = burns_diff(&before, &before[1..]);
    assert!(seen.changes.is_empty() && seen.missing.len() == 1);
    let snapshot = tracked(baseline_burns(&before));
    let seen = diff_burns(&token(), &snapshot, &seen.missing, &before[1..], &Settings::default(), &Window::ALL);
    only(seen.changes, ChangeKind::Removed);
    assert!(burns_diff(&before, &before[6..]).held);
}

#[test]
fn a_long_history_is_compared_row_by_row_and_not_pair_by_pair() {
    let day = |k: u64| (time("2010-01-01") + Days::new(k)).format("%Y-%m-%d").to_string();
    let before: Vec<Burn> = (0..5_000).map(|k| burn(&day(k % 2_500), "daily", 5.0)).collect();
    let mut after = before.clone();
    after.push(burn("2026-03-01", "daily", 5.0));
    after.reverse();
    let change = only(burns_diff(&before, &after).changes, ChangeKind::Added);
    assert_eq!(change.key, Some("2026-03-01".into()));
}

#[test]
fn buybacks_are_told_apart_by_their_addresses() {
    let buyback = |buyer: &str, amount: f64| Buyback {
        buyback_date: time("2026-03-01").into(),
        buyback_event_label: "Fund".to_owned().into(),
        buyer_address: buyer.to_owned().into(),
        token_amount: amount.into(),
        ..Buyback::default()
    };
    let before = [buyback("0x1", 5.0), buyback("0x2", 6.0)];
    let after = [buyback("0x2", 6.0), buyback("0x1", 5.5), buyback("0x3", 1.0)];
    let snapshot = tracked(baseline_buybacks(&before));
    let seen = diff_buybacks(&token(), &snapshot, &[], &after, &Settings::default(), &Window::ALL);
    assert_eq!(seen.changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [ChangeKind::Revised, ChangeKind::Added]);
    assert_eq!(seen.changes[0].fields[0].field, "tokenAmount");
}

fn allocation(name: &str, amount: f64, unlocked: f64) -> Allocation {
    Allocation {
        allocation_name: name.to_owned().into(),
        allocation_amount: amount.into(),
        allocation_unlocked_amount: unlocked.into(),
        ..Allocation::default()
    }
}

fn table(max_supply: f64, rows: Vec<Allocation>) -> AllocationsData {
    AllocationsData { max_supply: max_supply.into(), allocations: rows.into(), ..AllocationsData::default() }
}

#[test]
fn an_allocation_table_is_resized_renamed_and_its_supply_changes_once() {
    let before = [allocation("Team", 40.0, 1.0), allocation("Comunity", 60.0, 2.0)];
    let snapshot = tracked(baseline_allocations(&before));
    let header = serde_json::json!({"maxSupply": 100.0});
    let seen = |after: &AllocationsData| diff_allocations(&token(), &snapshot, &[], after, Some(&header), &Settings::default());

    let drifted = seen(&table(100.0, vec![allocation("Team", 40.0, 3.0), allocation("Comunity", 60.0, 9.0)]));
    assert!(drifted.changes.is_empty());
    assert!(drifted.put.len() == 2 && drifted.put.iter().all(|put| !put.is_new_version));

    let renamed = seen(&table(100.0, vec![allocation("Team", 40.0, 1.0), allocation("Community", 60.0, 2.0)]));
    let change = only(renamed.changes, ChangeKind::Renamed);
    assert_eq!((change.key, change.from), (Some("Comunity".into()), Some(Fact::Text("Comunity".into()))));

    let resized = seen(&table(120.0, vec![allocation("Team", 60.0, 1.0), allocation("Comunity", 60.0, 2.0)]));
    assert_eq!(
        resized.changes.iter().map(|change| change.kind).collect::<Vec<_>>(),
        [ChangeKind::Resized, ChangeKind::SupplyChanged]
    );
    assert_eq!(resized.changes[0].summary, "allocation Team resized from 40 to 60 (×1.5)");
    assert_eq!(resized.changes[1].summary, "maximum supply changed from 100 to 120 (×1.2)");
}

#[test]
fn emissions_restated_over_many_days_are_one_change_and_weeks_are_not_days() {
    let emission = |day: u64, length: u64, amount: f64| {
        let start = time("2026-01-04") + Days::new(day);
        Emission {
            start_date: start.into(),
            end_date: (start + Days::new(length)).into(),
            unlock_amount: amount.into(),
            unlock_value: (amount * 2.0).into(),
            ..Emission::default()
        }
    };
    let daily: Vec<Emission> = (0..30).map(|day| emission(day, 1, 5.0)).collect();
    let weekly: Vec<Emission> = (0..4).map(|week| emission(week * 7, 7, 35.0)).collect();
    let mut snapshot = tracked(baseline_emissions(&daily));
    snapshot.extend(tracked(baseline_emissions(&weekly)));
    assert_eq!(snapshot.iter().map(|tracked| &tracked.key).collect::<HashSet<_>>().len(), 34);
    let all = Window::ALL;
    assert!(diff_emissions(&token(), &snapshot, &[], &weekly, &Settings::default(), &all).is_empty());
    let restated: Vec<Emission> = (0..30).map(|day| emission(day, 1, 6.0)).collect();
    let change =
        only(diff_emissions(&token(), &snapshot, &[], &restated, &Settings::default(), &all).changes, ChangeKind::Revised);
    assert_eq!((change.count, change.from, change.to), (30, Some(Fact::Amount(150.0)), Some(Fact::Amount(180.0))));
}

// Bounds.

#[test]
fn a_schedule_of_ten_thousand_tranches_is_compared_in_order_of_its_length() {
    let at = |k: u64| time("2000-01-01") + Days::new(k);
    let make = |offset: u64, amount: f64| -> Vec<UnlockEvent> {
        (0..10_000).map(|k| event_at(at(k + offset), vec![cliff("Farm", amount)], Vec::new())).collect()
    };
    let before = make(0, 10.0);
    only(told(&before, &make(90, 10.0)), ChangeKind::SeriesShifted);
    // Nothing fits: neither dates nor amounts, nor their number.
    let other: Vec<UnlockEvent> = (0..7_000_u32)
        .map(|k| {
            event_at(
                at(u64::from(k) + 3) + chrono::TimeDelta::hours(i64::from(k % 23)),
                vec![cliff("Farm", f64::from(k) + 0.5)],
                Vec::new(),
            )
        })
        .collect();
    assert!(told(&before, &other).len() <= 2);
}

// Properties.

#[derive(Clone, Debug)]
struct Part {
    name: usize,
    day: u16,
    amount: u8,
}

const NAMES: [&str; 4] = ["Team", "Investors", "Community Fund", "Airdrop"];

fn build(parts: &[Part]) -> Vec<UnlockEvent> {
    let mut days: std::collections::BTreeMap<u16, Vec<CliffAllocation>> = std::collections::BTreeMap::new();
    for part in parts {
        days.entry(part.day).or_default().push(cliff(NAMES[part.name], f64::from(part.amount) * 1.5e6));
    }
    let mut events: Vec<UnlockEvent> = days
        .into_iter()
        .map(|(day, mut cliffs)| {
            cliffs.sort_by(|a, b| a.allocation_name.as_str().cmp(&b.allocation_name.as_str()));
            event_at(time("2025-06-01") + Days::new(u64::from(day)), cliffs, Vec::new())
        })
        .collect();
    // A segment in every schedule, so that no answer reads as one of a version without segments.
    events.push(segment("Ops", "2025-05-01T12:00:00Z", "2029-05-01", 1.0e6));
    events.sort_by_key(|event| event.unlock_date.copied());
    events
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let one = (0..NAMES.len(), 0_u16..700, 1_u8..6).prop_map(|(name, day, amount)| vec![Part { name, day, amount }]);
    let series = (0..NAMES.len(), 0_u16..200, 1_u8..6, 1_u16..20, 7_u16..40)
        .prop_map(|(name, day, amount, count, step)| (0..count).map(|k| Part { name, day: day + k * step, amount }).collect());
    prop::collection::vec(prop_oneof![one, series], 1..6).prop_map(|all: Vec<Vec<Part>>| all.concat())
}

/// A schedule and a correction of it: some parts moved, resized, renamed, dropped, added; or another schedule.
fn corrected() -> impl Strategy<Value = (Vec<Part>, Vec<Part>)> {
    let edit = (0..6_u8, any::<prop::sample::Index>(), 1_u16..60, 1_u8..6);
    prop_oneof![
        3 => (parts(), prop::collection::vec(edit, 0..4)).prop_map(|(before, edits)| {
            let mut after = before.clone();
            for (what, index, days, amount) in edits {
                let k = index.index(after.len().max(1));
                let Some(part) = after.get(k).cloned() else { continue };
                match what {
                    0 => after[k].day += days,
                    1 => after[k].amount = amount,
                    2 => after.iter_mut().filter(|other| other.name == part.name).for_each(|other| other.day += days),
                    3 => after.iter_mut().filter(|other| other.name == part.name).for_each(|other| other.amount *= 2),
                    4 if after.len() > 1 => { after.remove(k); }
                    _ => after.push(Part { day: part.day + days, ..part }),
                }
            }
            (before, after)
        }),
        1 => (parts(), parts()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn a_schedule_does_not_differ_from_itself(schedule in parts(), seed in any::<u64>()) {
        let events = build(&schedule);
        let snapshot = known(&events);
        prop_assert!(diff(&snapshot, &events).is_empty());
        // Nor from itself in another order.
        let mut shuffled = events;
        let mut state = seed;
        for k in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(k, usize::try_from(state >> 33).unwrap() % (k + 1));
        }
        let mut seen = diff(&snapshot, &shuffled);
        seen.odd = Odd::default();
        prop_assert!(seen.is_empty());
    }

    #[test]
    fn a_price_is_never_a_change_of_the_schedule(schedule in parts(), price in 0.001_f64..1e4) {
        let before = build(&schedule);
        let mut after = before.clone();
        for event in &mut after {
            if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
                cliffs.cliff_value = price.into();
                cliffs.value_to_market_cap = price.into();
                if let Maybe::Value(parts) = &mut cliffs.allocation_breakdown {
                    for part in parts {
                        part.cliff_value = price.into();
                        part.reference_price = Maybe::Null;
                    }
                }
            }
        }
        let seen = diff(&known(&before), &after);
        prop_assert!(seen.changes.is_empty());
        prop_assert!(seen.put.iter().all(|put| !put.is_new_version));
        prop_assert_eq!(seen.put.len(), after.iter().filter(|event| event.cliff_unlocks.get().is_some()).count());
    }

    #[test]
    fn a_diff_leads_from_one_schedule_to_the_other((before, after) in corrected()) {
        let (before, after) = (build(&before), build(&after));
        let settings = Settings { removal_confirmations: 1, ..Settings::default() };
        let (snapshot, changes) = settle(known(&before), &after, &settings);
        assert_same_facts(&snapshot, &after);
        // Whatever differs is told, and told once.
        let differs = before.len() != after.len()
            || before.iter().zip(&after).any(|(a, b)| !unlock::same_schedule(a, b, 1e-9));
        prop_assert_eq!(differs, !changes.is_empty(), "{:?}", changes.iter().map(|change| &change.summary).collect::<Vec<_>>());
        prop_assert!(changes.len() <= 5);
        prop_assert!(diff(&snapshot, &after).is_empty());
        // With more proof asked for, the same end is reached.
        let (snapshot, _) = settle(known(&before), &after, &Settings::default());
        assert_same_facts(&snapshot, &after);
    }

    #[test]
    fn the_order_of_an_answer_changes_nothing_that_is_told((before, after) in corrected()) {
        let (snapshot, after) = (known(&build(&before)), build(&after));
        let mut reversed = after.clone();
        reversed.reverse();
        let (mut one, mut other) = (diff(&snapshot, &after), diff(&snapshot, &reversed));
        one.odd = Odd::default();
        other.odd = Odd::default();
        prop_assert_eq!(one, other);
    }

    #[test]
    fn what_an_answer_leaves_out_is_not_gone_yet(schedule in parts(), left_out in prop::collection::vec(any::<prop::sample::Index>(), 1..30)) {
        let before = build(&schedule);
        let mut after = before.clone();
        for index in left_out {
            let k = index.index(after.len());
            // The segment stays: without any, the answer would say nothing of segments.
            if after[k].cliff_unlocks.get().is_some() {
                after.remove(k);
            }
        }
        let snapshot = known(&before);
        let gone = before.len() - after.len();
        let first = diff(&snapshot, &after);
        prop_assert!(first.changes.is_empty() && first.put.is_empty() && first.removed.is_empty(), "{:?}", first.changes);
        prop_assert_eq!(first.missing.len(), gone);
        prop_assert!(first.missing.iter().all(|(_, count)| *count == 1));
        // Proven, it is told once.
        let (_, changes) = settle(snapshot, &after, &Settings::default());
        prop_assert_eq!(changes.len(), usize::from(gone > 0), "{:?}", changes.iter().map(|change| &change.summary).collect::<Vec<_>>());
    }
}

// Real corrections.

#[derive(serde::Deserialize)]
struct Version {
    data: Vec<UnlockEvent>,
}

#[test]
fn each_real_correction_is_told_in_at_most_two_changes_and_none_is_missed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let mut corrections = 0;
    for entry in std::fs::read_dir(folder).expect("the bundled revisions") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let versions: Vec<Version> = text.lines().map(|line| serde_json::from_str(line).expect("a version")).collect();
        for two in versions.windows(2) {
            let changes = told(&two[0].data, &two[1].data);
            let said: Vec<&str> = changes.iter().map(|change| change.summary.as_str()).collect();
            assert!((1..=2).contains(&changes.len()), "{}: {said:?}", path.display());
            corrections += 1;
        }
    }
    assert_eq!(corrections, 71);
}
