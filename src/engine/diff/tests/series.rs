//! Corrections of whole series.

use super::*;

#[test]
fn monthly_series_with_uneven_shifts_is_one_shift() {
    let before = monthly("2026-04-01", 24, &[("Team", 10.0), ("Investors", 5.0)]);
    let after = monthly("2026-05-03", 24, &[("Team", 10.0), ("Investors", 5.0)]);
    let change = only(changes_of(&before, &after), ChangeKind::SeriesShifted);
    assert_eq!(change.count, 48);
    assert_eq!((change.shift_days_min, change.shift_days_max), (Some(30.0), Some(33.0)));
    assert_eq!((change.from, change.to), (Some(Fact::Time(time("2026-04-01"))), Some(Fact::Time(time("2026-05-03")))));
    assert_eq!(
        change.summary,
        "the whole schedule (360) moved by +30 to +33 days; the next unlock moves from 1 Apr 2026 to 3 May 2026"
    );
    assert_eq!(
        change.allocations.iter().map(|part| (part.name.as_str(), part.count)).collect::<Vec<_>>(),
        [("Investors", 24), ("Team", 24)]
    );
}

#[test]
fn series_that_overlaps_itself_is_shifted() {
    let before = monthly("2026-04-01", 24, &[("Team", 10.0)]);
    let after = monthly("2026-05-01", 24, &[("Team", 10.0)]);
    let (snapshot, changes) = settle(known(&before), &after, ProofPolicy::default());
    let change = only(changes, ChangeKind::SeriesShifted);
    assert_eq!(change.count, 24);
    let first = snapshot.iter().find(|tracked| tracked.key.as_str() == "2026-04-01").expect("the first keeps its key");
    assert_eq!(first.record.interval().expect("dated").start, time("2026-05-01"));
}

#[test]
fn shift_may_spare_tranches_and_allocations() {
    let with = |from: &str| {
        let mut events = monthly(from, 12, &[("Team", 10.0)]);
        events.push(event("2025-01-15", &[("Team", 3.0)]));
        events.extend(monthly("2026-01-20", 12, &[("Farm", 2.0)]));
        events
    };
    let change = only(changes_of(&with("2026-04-01"), &with("2026-07-01")), ChangeKind::SeriesShifted);
    assert_eq!((change.count, change.allocations.len()), (12, 1));
}

#[test]
fn placeholder_date_that_becomes_real_is_one_shift() {
    let at = |from: &str| monthly(from, 12, &[("Team", 10.0)]);
    let change = only(changes_of(&at("1970-01-01"), &at("2026-06-01")), ChangeKind::SeriesShifted);
    assert!(change.summary.ends_with("now dated; the next unlock: 1 Jun 2026 (no date before)"), "{}", change.summary);
}

#[test]
fn withdrawn_date_is_reported_without_days() {
    let before = known(&[event("2026-07-20", &[("Team", 1.0)]), event("2026-09-20", &[("Team", 1.0)])]);
    let mut after = vec![event("2026-07-20", &[("Team", 1.0)]), event("2026-09-20", &[("Team", 1.0)])];
    after[0].unlock_date = Maybe::Null;
    let changes = diff(&before, &after).changes;
    let [change] = &changes[..] else { panic!("{changes:#?}") };
    assert_eq!(change.kind, ChangeKind::Rescheduled);
    assert_eq!(change.summary, "1 token of Team: date withdrawn (was 20 Jul 2026)");
    assert_eq!((change.shift_days, &change.to), (None, &None));
}

#[test]
fn redenomination_is_one_change() {
    let by = |factor: f64| {
        let mut events = monthly("2026-04-01", 24, &[("Team", 10.0 * factor), ("Investors", 7.3 * factor)]);
        events.push(event("2025-01-15", &[("Airdrop", 3.1 * factor)]));
        events
    };
    let change = only(changes_of(&by(1.0), &by(20.0)), ChangeKind::SeriesRescaled);
    assert_eq!(change.count, 49);
    assert!((change.ratio.expect("a ratio") - 20.0).abs() < 1e-9);
}

#[test]
fn simultaneous_shift_and_rescale_are_two_changes() {
    let before = monthly("2026-04-01", 24, &[("Team", 10.0)]);
    let after = monthly("2026-09-01", 24, &[("Team", 5.0)]);
    let kinds: Vec<ChangeKind> = changes_of(&before, &after).iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::SeriesShifted, ChangeKind::SeriesRescaled]);
}

#[test]
fn new_allocation_of_many_tranches_is_added_once() {
    let before = monthly("2026-01-16", 24, &[("Team", 10.0)]);
    let mut after = monthly("2026-01-16", 24, &[("Team", 10.0), ("Advisors", 1.0)]);
    after.extend(monthly("2028-01-16", 24, &[("Advisors", 1.0)]));
    let change = only(changes_of(&before, &after), ChangeKind::Added);
    assert_eq!((change.count, change.to), (48, Some(Fact::Amount(48.0))));
    assert_eq!(change.allocations.len(), 1);
}

#[test]
fn same_tranches_under_another_name_or_category_are_renamed() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0), ("Alladin DAO", 4.0)]);
    let after = monthly("2026-01-16", 12, &[("Team", 10.0), ("Aladdin DAO", 4.0)]);
    let change = only(changes_of(&before, &after), ChangeKind::Renamed);
    assert_eq!((change.from, change.to), (Some(Fact::Text("Alladin DAO".into())), Some(Fact::Text("Aladdin DAO".into()))));
    let mut filed = before.clone();
    for event in &mut filed {
        let parts = event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts");
        parts[1].standard_allocation_name = "Community".to_owned().into();
    }
    let change = only(changes_of(&before, &filed), ChangeKind::Renamed);
    assert_eq!(change.summary, "Alladin DAO filed under Community instead of Founder / Team (12 tranches)");
}

#[test]
fn swapped_names_are_renamed() {
    let with = |a: &str, b: &str| monthly("2026-01-16", 12, &[(a, 10.0), (b, 4.0)]);
    let change = only(changes_of(&with("Team", "Farm"), &with("Farm", "Team")), ChangeKind::Renamed);
    assert!(change.summary.contains("is now called"), "{}", change.summary);
}

/// The sums of the changes of an allocation must be the sums of the schedules.
#[test]
fn fewer_and_larger_tranches_are_one_resize_at_once() {
    let quarterly = |amount: f64| -> Vec<UnlockEvent> {
        (0..10).map(|k| event_at(time("2026-04-01") + Months::new(3 * k), vec![cliff("Team", amount)], Vec::new())).collect()
    };
    for (amount, total, pace) in [(3.5, 35.0, "3.50"), (2.5, 25.0, "2.50")] {
        let (before, after) = (monthly("2026-04-01", 30, &[("Team", 1.0)]), quarterly(amount));
        for (from, to, is_reversed) in [(&before, &after, false), (&after, &before, true)] {
            let seen = diff(&known(from), to);
            assert!(!seen.held && seen.missing.is_empty());
            let change = only(seen.changes, ChangeKind::Resized);
            let (was, is) = if is_reversed { (total, 30.0) } else { (30.0, total) };
            assert_eq!((change.from, change.to), (Some(Fact::Amount(was)), Some(Fact::Amount(is))));
            assert_eq!(change.amount, Some((total - 30.0_f64).abs()), "the difference");
            if !is_reversed {
                let text = format!(
                    "Team: ends on 1 Jul 2028 instead of 1 Sep 2028, {pace} per quarter instead of 1 per month; \
                     {total} tokens in total instead of 30"
                );
                assert_eq!(change.summary, text);
            }
        }
    }
}

#[test]
fn allocation_divided_among_many_names_is_listed_apart() {
    for heirs in [2_u32, 6, 9, 15] {
        let before = monthly("2026-04-01", 12, &[("Community", 90.0), ("Team", 10.0)]);
        let names: Vec<String> = (0..heirs).map(|k| format!("Program {k}")).collect();
        // Different shares, so that no two of them are equal.
        let shares: Vec<f64> = (0..heirs).map(|k| f64::from(k + 1)).collect();
        let sum: f64 = shares.iter().sum();
        let mut parts: Vec<(&str, f64)> =
            names.iter().zip(&shares).map(|(name, share)| (name.as_str(), 90.0 * share / sum)).collect();
        parts.push(("Team", 10.0));
        let after = monthly("2026-04-01", 12, &parts);
        let seen = diff(&known(&before), &after);
        assert!(!seen.held && seen.missing.is_empty(), "{heirs}");
        let kinds: Vec<ChangeKind> = seen.changes.iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Renamed], "{heirs}: {:?}", seen.changes.iter().map(|c| &c.summary).collect::<Vec<_>>());
    }
}

#[test]
fn new_name_with_new_amounts_on_the_same_dates_is_no_removal() {
    let before = monthly("2026-04-01", 12, &[("Ecosystem Grants", 9.0), ("Team", 10.0)]);
    let after = monthly("2026-04-01", 12, &[("Growth Pool", 12.0), ("Team", 10.0)]);
    let change = only(changes_of(&before, &after), ChangeKind::SeriesRescaled);
    assert!(change.summary.ends_with("; Ecosystem Grants renamed Growth Pool"), "{}", change.summary);
}

#[test]
fn unrelated_schedule_is_one_rewrite() {
    let before = monthly("2025-01-16", 30, &[("Team", 10.0), ("Investors", 4.0)]);
    let mut after = vec![event("2026-04-02", &[("Public", 500.0)])];
    after.extend((0..9).map(|k| event_at(time("2026-08-02") + Days::new(91 * k), vec![cliff("Core", 77.0)], Vec::new())));
    let change = only(changes_of(&before, &after), ChangeKind::Rewritten);
    let (before, after) = (change.before.expect("before"), change.after.expect("after"));
    assert_eq!((before.events, after.events), (30, 10));
    assert_eq!(after.next.len(), 3);
    assert!((before.total - 420.0).abs() < 1e-9);
}

#[test]
fn equal_revisions_of_many_events_are_one_change() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    for event in &mut after {
        event.data_source = "https://docs.example.com/v2".to_owned().into();
    }
    let change = only(changes_of(&before, &after), ChangeKind::Revised);
    assert_eq!((change.count, change.fields.len()), (12, 1));
    assert_eq!(change.fields[0].field, "dataSource");
}

/// The same schedule from another source.
fn from_other_source(mut schedule: Vec<UnlockEvent>) -> Vec<UnlockEvent> {
    for event in &mut schedule {
        event.data_source = "https://docs.example.com/v2".to_owned().into();
    }
    schedule
}

#[test]
fn new_data_source_next_to_one_correction_is_a_change_of_its_own() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    for (after, kind) in [
        (monthly("2026-03-16", 12, &[("Team", 10.0)]), ChangeKind::SeriesShifted),
        (monthly("2026-01-16", 13, &[("Team", 10.0)]), ChangeKind::Added),
    ] {
        let changes = changes_of(&before, &from_other_source(after));
        let [correction, source] = &changes[..] else { panic!("{changes:#?}") };
        assert_eq!((correction.kind, source.kind), (kind, ChangeKind::Revised));
        assert!(correction.fields.is_empty(), "{:?}", correction.fields);
        assert_eq!(
            source.summary,
            "source of the schedule changed from https://docs.example.com to https://docs.example.com/v2 (12 events)"
        );
    }
}

#[test]
fn new_data_source_next_to_several_corrections_is_part_of_one() {
    let before = monthly("2026-01-16", 12, &[("Team", 10.0)]);
    let mut after = before.clone();
    after[5] = event("2026-06-16", &[("Team", 11.0)]);
    after.push(event("2027-03-05", &[("Seed", 77.0)]));
    let after = from_other_source(after);
    let changes = changes_of(&before, &after);
    assert!(changes.iter().all(|change| change.kind != ChangeKind::Revised), "{changes:#?}");
    let text = "source of the schedule changed from ";
    let with_source: Vec<&Change> = changes.iter().filter(|change| change.summary.contains(text)).collect();
    assert_eq!(with_source.len(), 1, "{changes:#?}");
    assert_eq!(with_source[0].fields[0].field, "dataSource");
}

// Differences that are not changes.

/// All allocations get new names and amounts at once. The search for names that are listed together or apart must be bounded.
#[test]
fn many_new_names_take_little_time() {
    let schedule = |prefix: &str, factor: f64| {
        let names: Vec<String> = (0..100).map(|k| format!("{prefix} {k}")).collect();
        let parts: Vec<(&str, f64)> = names.iter().zip(1..).map(|(name, k)| (name.as_str(), f64::from(k) * factor)).collect();
        monthly("2026-04-01", 24, &parts)
    };
    let (before, after) = (schedule("Program", 1.0), schedule("Fund", 1.37));
    let begun = std::time::Instant::now();
    let seen = diff(&known(&before), &after);
    assert!(!seen.changes.is_empty() || !seen.missing.is_empty());
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
