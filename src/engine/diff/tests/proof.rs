//! Harmless differences, stable keys, and removals that need proof.

use super::{tolerances::close, *};

#[test]
fn nulls_duplicates_order_and_update_dates_are_not_changes() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let mut after = before.clone();
    after.reverse();
    after.push(before[3].clone());
    let seen = diff(&snapshot, &after);
    assert!(seen.is_empty(), "{:?}", seen.changes);
    assert_eq!((seen.anomalies.duplicates, seen.anomalies.reordered), (1, 11));

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
fn new_amount_of_a_known_event_is_revised() {
    let after = [event("2026-04-16", &[("Team", 30.0)])];
    let mut before = after.clone();
    let cliffs = before[0].cliff_unlocks.get_mut().expect("cliffs");
    cliffs.cliff_amount = Maybe::Null;
    cliffs.allocation_breakdown.get_mut().expect("parts")[0].cliff_amount = Maybe::Null;
    let change = only(changes_of(&before, &after), ChangeKind::Revised);
    assert_eq!(change.summary, "cliffAmount is now 30");
}

#[test]
fn response_without_linear_unlocks_keeps_the_segments() {
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
    // On return, nothing was lost, so nothing is new.
    assert!(diff(&apply(&snapshot, &seen), &before).changes.is_empty());
    // A version that starts to show segments adds nothing either.
    let mut cliffs_only = after;
    cliffs_only.iter_mut().for_each(|event| event.linear_unlocks = Maybe::Absent);
    let (snapshot, changes) = settle(known(&cliffs_only), &before, ProofPolicy::default());
    assert!(changes.is_empty(), "{changes:?}");
    assert_same_facts(&snapshot, &before);
}

#[test]
fn two_events_at_one_instant_keep_two_keys() {
    let duplicates = [event("2026-04-16", &[("Team", 30.0)]), event("2026-04-16", &[("Farm", 30.0)])];
    let keys: Vec<String> = known(&duplicates).iter().map(|tracked| tracked.key.to_string()).collect();
    assert_eq!(keys, ["2026-04-16", "2026-04-16#2"]);
    assert!(diff(&known(&duplicates), &[duplicates[1].clone(), duplicates[0].clone()]).is_empty());
}

#[test]
fn new_event_never_takes_the_key_of_a_moved_event() {
    let before = [event("2026-04-16", &[("Team", 30.0)])];
    let after = [event("2026-04-20", &[("Team", 30.0)]), event("2026-04-16", &[("Airdrop", 1.0)])];
    let (snapshot, changes) = settle(known(&before), &after, ProofPolicy::default());
    assert_eq!(changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [ChangeKind::Rescheduled, ChangeKind::Added]);
    assert_eq!(changes[1].key, Some("2026-04-16#2".into()));
    assert_same_facts(&snapshot, &after);
}

// Removal.

#[test]
fn removal_is_reported_only_after_proof() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let mut after = before.clone();
    after.remove(7);
    let first = diff(&snapshot, &after);
    assert!(first.changes.is_empty() && first.removed.is_empty() && !first.held);
    assert_eq!(first.missing, [("2026-08-16".into(), 1)]);
    let snapshot = apply(&snapshot, &first);
    let second = diff_unlocks(&UnlockPoll::of(&token(), now()), &snapshot, &confirmed_by(&first.missing), &after);
    let change = only(second.changes.clone(), ChangeKind::Removed);
    assert_eq!(change.key, Some("2026-08-16".into()));
    assert_eq!(change.summary, "removed: 10 tokens of Team, on 16 Aug 2026");
    assert!(second.missing.is_empty());
    assert_same_facts(&apply(&snapshot, &second), &after);
}

#[test]
fn record_that_returns_was_never_removed() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let missing = [("2026-08-16".into(), 1)];
    let seen = diff_unlocks(&UnlockPoll::of(&token(), now()), &snapshot, &confirmed_by(&missing), &before);
    assert!(seen.is_empty(), "{seen:?}");
}

#[test]
fn unrelated_changes_do_not_wait_for_a_removal() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[2].unlock_date = time("2026-03-20").into();
    after.remove(7);
    let first = diff(&known(&before), &after);
    only(first.changes, ChangeKind::Rescheduled);
    assert_eq!(first.missing.len(), 1);
}

#[test]
fn allocation_removed_from_several_events_is_reported_once() {
    let mut before = monthly("2026-01-16", 12, &[("Team", 10.0), ("Farm", 3.0)]);
    before.extend(monthly("2027-01-16", 4, &[("Farm", 3.0)]));
    let after = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let first = diff(&known(&before), &after);
    assert!(first.changes.is_empty(), "the whole removal awaits proof: {:?}", first.changes);
    let change = only(changes_of(&before, &after), ChangeKind::Removed);
    assert_eq!((change.count, change.from), (16, Some(Fact::Amount(48.0))));
}

#[test]
fn mass_removal_is_held_for_a_day_and_four_responses_or_until_accepted() {
    let before = monthly("2026-01-16", 24, &[("Team", 10.0)]);
    let snapshot = known(&before);
    let after = before[..6].to_vec();
    let seen = |hold: Option<Hold>, missing: &[(RecordKey, u32)]| {
        let proof = RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, missing, hold, now());
        diff_unlocks(&UnlockPoll::of(&token(), now()), &snapshot, &proof, &after)
    };
    let since = |hold: TimeDelta| Some(Hold { since: now() - hold, is_accepted: false });
    let lasted = since(MIN_HOLD);
    let mut missing = Vec::new();
    for (poll, hold) in [None, lasted, lasted, since(MIN_HOLD - TimeDelta::seconds(1)), None].into_iter().enumerate() {
        let seen = seen(hold, &missing);
        assert!(seen.held, "poll {poll}");
        assert!(seen.changes.is_empty() && seen.put.is_empty() && seen.removed.is_empty());
        missing = seen.missing;
    }
    let accepted = Some(Hold { since: now(), is_accepted: true });
    for (hold, missing) in [(lasted, missing), (accepted, Vec::new())] {
        let seen = seen(hold, &missing);
        assert!(!seen.held, "{hold:?}");
        let change = only(seen.changes, ChangeKind::Removed);
        assert_eq!((change.count, seen.removed.len()), (18, 18));
    }
}

#[test]
fn infinite_sum_equals_only_itself() {
    for (a, b, is_equal) in
        [(f64::INFINITY, 1.0, false), (f64::INFINITY, f64::INFINITY, true), (f64::INFINITY, f64::NEG_INFINITY, false)]
    {
        assert_eq!((close(a, b, 1e-9), close(b, a, 1e-9)), (is_equal, is_equal), "{a} {b}");
    }
}

#[test]
fn two_of_three_upcoming_events_count_as_most() {
    let before = monthly("2026-01-16", 6, &[("Team", 10.0)]);
    // Three events have passed. Of the three upcoming ones, first two are missing, then one.
    let now = time("2026-03-20");
    let poll = |after: &[UnlockEvent]| diff_unlocks(&UnlockPoll::of(&token(), now), &known(&before), &confirmed_by(&[]), after);
    assert!(poll(&before[..4]).held);
    assert!(!poll(&before[..5]).held);
}

#[test]
fn empty_response_removes_nothing() {
    let snapshot = known(&monthly("2026-01-16", 2, &[("Team", 10.0)]));
    let missing = [("2026-01-16".into(), 99), ("2026-02-16".into(), 99)];
    let seen = diff_unlocks(&UnlockPoll::of(&token(), now()), &snapshot, &confirmed_by(&missing), &[]);
    assert!(seen.held && seen.removed.is_empty() && seen.changes.is_empty());
}

#[test]
fn rows_outside_the_requested_days_are_known_the_next_time() {
    let events = monthly("2026-01-01T00:00:00Z", 12, &[("Team", 5.0)]);
    let window = DateWindow::of(time("2026-03-01").date_naive(), time("2026-09-30").date_naive());
    let again = |after: &[UnlockEvent]| {
        diff_unlocks(
            &UnlockPoll { window: &window, ..UnlockPoll::of(&token(), now()) },
            &known(&events),
            &confirmed_by(&[]),
            after,
        )
    };
    assert!(again(&events).is_empty(), "the source returns more days than requested, each time");
    assert!(again(&events[2..9]).is_empty(), "and then only the requested days");
    let mut longer = events.clone();
    longer.push(event("2027-05-05T00:00:00Z", &[("Team", 5.0)]));
    assert_eq!(again(&longer).changes.len(), 1);
}

#[test]
fn record_outside_the_window_proves_nothing() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let window = DateWindow::of(time("2026-03-01").date_naive(), time("2026-09-30").date_naive());
    let missing = [("2026-01-16".into(), 1)];
    let seen = diff_unlocks(
        &UnlockPoll { window: &window, ..UnlockPoll::of(&token(), now()) },
        &known(&before),
        &confirmed_by(&missing),
        &before[2..9],
    );
    assert!(seen.changes.is_empty() && seen.put.is_empty() && !seen.held);
    assert_eq!(seen.missing, missing, "its count stays as it was");
}

// Other resources.
