//! Corrections as a person would describe them, not as the smallest difference.

use std::collections::BTreeSet;

use super::*;

fn summaries(changes: &[Change]) -> Vec<(ChangeKind, &str)> {
    changes.iter().map(|change| (change.kind, change.summary.as_str())).collect()
}

/// The first three of 15 coming unlocks now follow the last one. Two dates changed places, but the team paused vesting.
#[test]
fn series_that_moves_by_whole_steps_after_vested_tranches_is_shifted() {
    for (vested, steps) in [(12, 3), (30, 2), (12, -2)] {
        let mut before = monthly("2023-01-20", vested, &[("Team", 10.0)]);
        let mut after = before.clone();
        let first = time("2026-06-20");
        let from = |months: i32| match months {
            0.. => first + Months::new(months.unsigned_abs()),
            _ => first - Months::new(months.unsigned_abs()),
        };
        before.extend(monthly(&first.to_rfc3339(), 15, &[("Team", 10.0)]));
        after.extend(monthly(&from(steps).to_rfc3339(), 15, &[("Team", 10.0)]));
        let change = only(changes_of(&before, &after), ChangeKind::SeriesShifted);
        assert_eq!((change.count, change.amount), (15, Some(150.0)), "{}", change.summary);
        assert_eq!(change.from, Some(Fact::Time(first)));
    }
}

#[test]
fn fewer_tranches_that_all_grew_are_one_resize() {
    let before = monthly("2026-04-30", 28, &[("Team", 23.4)]);
    let after = monthly("2026-04-30", 24, &[("Team", 24.6)]);
    for (before, after) in [(&before, &after), (&after, &before)] {
        let change = only(changes_of(before, after), ChangeKind::Resized);
        let (from, to) = (change.from.and_then(|of| of.amount()), change.to.and_then(|of| of.amount()));
        let total = |events: &[UnlockEvent]| events.len() as f64 * if events.len() == 28 { 23.4 } else { 24.6 };
        assert!((from.expect("a total") - total(before)).abs() < 1e-6 && (to.expect("a total") - total(after)).abs() < 1e-6);
    }
}

#[test]
fn two_larger_tranches_instead_of_four_need_no_removal_proof() {
    let vested = monthly("2024-04-02", 12, &[("Team", 1.7)]);
    let before = [vested.clone(), monthly("2026-05-02", 4, &[("Team", 1.7)])].concat();
    let later = |day: &str| event(day, &[("Team", 3.57)]);
    let first = diff(&known(&before), &[vested, vec![later("2026-06-02"), later("2026-08-02")]].concat());
    let change = only(first.changes, ChangeKind::Resized);
    let pace = "in 2 cliffs of 3.57 instead of 1.70 per month; 7.14 tokens in total instead of 6.80";
    assert_eq!(change.summary, format!("Team: starts on 2 Jun 2026 instead of 2 May 2026, {pace}"));
}

#[test]
fn other_form_with_another_total_is_no_removal_next_to_a_true_one() {
    let before = [
        event_at(time("2027-03-05"), vec![cliff("Team", 195.0)], vec![linear("Investors", "2027-03-05", "2029-03-05", 230.0)]),
        event("2027-09-05", &[("Team", 50.0)]),
        segment("Reserve", "2028-09-05", "2029-09-05", 70.0),
    ];
    let after = [event("2027-03-05", &[("Investors", 161.0)]), event("2027-09-05", &[("Team", 50.0)]), before[2].clone()];
    let changes = changes_of(&before, &after);
    let removed: Vec<&Change> = changes.iter().filter(|change| change.kind == ChangeKind::Removed).collect();
    assert!(changes.len() <= 2, "{:?}", summaries(&changes));
    assert!(removed.iter().flat_map(|change| &change.allocations).all(|of| of.name == "Team"), "{:?}", summaries(&changes));
    let investors = changes.iter().find(|change| change.kind == ChangeKind::Resized && change.summary.contains("Investors"));
    assert!(investors.is_some_and(|change| change.summary.contains("161")), "{:?}", summaries(&changes));
}

#[test]
fn linear_unlock_that_keeps_its_end_did_not_move_with_its_cliff() {
    let with = |at: &str| {
        let event = event_at(time(at), vec![cliff("Team", 10.0)], vec![linear("Team", at, "2029-11-24", 16.0)]);
        [event, event_at(time("2030-01-01"), vec![cliff("Reserve", 5.0)], Vec::new())]
    };
    let change = only(changes_of(&with("2026-11-24"), &with("2026-12-24")), ChangeKind::Rescheduled);
    assert!(change.summary.starts_with("10 tokens of Team moved from "), "{}", change.summary);
    assert!(
        change.summary.contains("16 tokens of Team: linear unlock from 24 Dec 2026 on instead of 24 Nov 2026"),
        "{}",
        change.summary
    );
}

#[test]
fn new_name_is_reported_with_the_change_that_it_comes_with() {
    let with = |name: &str, amount: f64, at: &str| {
        let mut events = monthly("2026-04-20", 12, &[(name, amount)]);
        events.push(event(at, &[("Foundation", 80.0)]));
        events
    };
    let before = with("Labs", 20.0, "2026-06-03");
    let changes = changes_of(&before, &with("Humidifi Labs", 24.0, "2026-06-18"));
    assert!(changes.len() <= 2, "{:?}", summaries(&changes));
    let renamed = changes.iter().find(|change| change.summary.contains("Labs renamed Humidifi Labs"));
    assert!(renamed.is_some_and(|change| change.kind == ChangeKind::SeriesRescaled), "{:?}", summaries(&changes));
    let is_named = |change: &Change| change.fields.iter().any(|field| field.field == "allocationName" && field.from == "Labs");
    assert!(changes.iter().any(is_named), "{:?}", summaries(&changes));
}

/// The dates of the shorter series are a part of the former ones, because it moved by whole steps.
#[test]
fn series_that_moved_with_others_and_lost_its_end_is_shifted() {
    let with = |first: &str, of_team: u32| {
        let mut events = monthly(first, 24, &[("Investors", 10.0)]);
        events.extend(monthly(first, of_team, &[("Team", 7.0)]));
        events
    };
    let changes = changes_of(&with("2026-05-03", 20), &with("2026-07-03", 17));
    let [moved, removed] = &changes[..] else { panic!("{:?}", summaries(&changes)) };
    assert_eq!((moved.kind, moved.count), (ChangeKind::SeriesShifted, 41), "{}", moved.summary);
    assert_eq!((removed.kind, removed.count), (ChangeKind::Removed, 3), "{}", removed.summary);
    assert!(removed.summary.ends_with("between 3 Oct 2027 and 3 Dec 2027"), "{}", removed.summary);
}

#[test]
fn each_allocation_has_its_own_end() {
    let before: Vec<_> = monthly("2026-05-01", 12, &[("Team", 10.0), ("Farm", 6.0)])
        .into_iter()
        .chain(monthly("2027-05-01", 12, &[("Farm", 6.0)]))
        .collect();
    let after: Vec<_> = monthly("2026-05-01", 12, &[("Team", 5.0), ("Farm", 12.0)])
        .into_iter()
        .chain(monthly("2027-05-01", 12, &[("Team", 5.0)]))
        .collect();
    let change = only(changes_of(&before, &after), ChangeKind::Restructured);
    for text in ["Team: ends on 1 Apr 2028 instead of 1 Apr 2027", "Farm: ends on 1 Apr 2027 instead of 1 Apr 2028"] {
        assert!(change.summary.contains(text), "{}", change.summary);
    }
}

#[test]
fn each_linear_unlock_has_its_own_end() {
    let event = |farm: &str, team: &str| {
        let linears = vec![linear("Farm", "2026-04-16", farm, 40.0), linear("Team", "2026-04-16", team, 100.0)];
        event_at(time("2026-04-16"), Vec::new(), linears)
    };
    let change =
        only(changes_of(&[event("2027-04-16", "2029-04-16")], &[event("2028-04-16", "2030-04-16")]), ChangeKind::Rescheduled);
    for text in [
        "Farm: linear unlock until 16 Apr 2028 instead of 16 Apr 2027",
        "Team: linear unlock until 16 Apr 2030 instead of 16 Apr 2029",
    ] {
        assert!(change.summary.contains(text), "{}", change.summary);
    }
}

fn of_team(name: &str, begin: &str, end: &str, amount: f64) -> UnlockEvent {
    let part =
        LinearAllocation { standard_allocation_name: "Founder / Team".to_owned().into(), ..linear(name, begin, end, amount) };
    event_at(time(begin), Vec::new(), vec![part])
}

#[test]
fn linear_unlock_that_is_renamed_and_ends_earlier_is_not_removed() {
    let farm = segment("Farm", "2024-01-01", "2030-01-01", 70.0);
    let before = [farm.clone(), of_team("Initial Team", "2024-04-21", "2034-04-21", 3652.0)];
    let after = [farm, of_team("Core Developers", "2024-04-21", "2026-04-21", 730.0)];
    for (before, after) in [(&before, &after), (&after, &before)] {
        let changes = changes_of(before, after);
        let is_false = |change: &Change| matches!(change.kind, ChangeKind::Added | ChangeKind::Removed);
        assert!(changes.len() <= 2 && !changes.iter().any(is_false), "{:?}", summaries(&changes));
        assert!(changes.iter().any(|change| change.summary.contains("renamed")), "{:?}", summaries(&changes));
    }
}

#[test]
fn series_that_is_renamed_and_cut_short_is_not_removed_as_a_whole() {
    let before = monthly("2025-01-16", 40, &[("Initial Team", 10.0), ("Farm", 1.0)]);
    let farm = |k: usize| monthly("2025-01-16", 40, &[("Farm", 1.0)])[k].clone();
    let cut = monthly("2025-01-16", 40, &[("Core Developers", 10.0), ("Farm", 1.0)]);
    let after: Vec<UnlockEvent> = (0..40).map(|k| if k < 18 { cut[k].clone() } else { farm(k) }).collect();
    let changes = changes_of(&before, &after);
    assert!(changes.iter().all(|change| change.kind != ChangeKind::Added), "{:?}", summaries(&changes));
    let removed: f64 =
        changes.iter().filter(|change| change.kind == ChangeKind::Removed).filter_map(|change| change.amount).sum();
    assert!(changes.len() <= 2 && removed <= 220.0, "{:?}", summaries(&changes));
}

#[test]
fn new_name_is_part_of_the_resize_of_its_allocation_before_resizes_of_others_are_joined() {
    let event = |farm: (&str, f64), investors: (&str, f64)| {
        [
            of_team("Treasury", "2024-02-07", "2026-02-07", 100.0),
            event_at(time("2024-02-08"), Vec::new(), vec![linear("Farm", "2024-02-08", farm.0, farm.1)]),
            of_team(investors.0, "2024-08-07", "2026-02-07", investors.1),
        ]
    };
    let before = event(("2027-02-08", 1096.0), ("Investors & Advisors", 160.0));
    let after = event(("2028-02-08", 1461.0), ("Investors", 180.0));
    let changes = changes_of(&before, &after);
    assert_eq!(changes.len(), 2, "{:?}", summaries(&changes));
    for change in &changes {
        assert_eq!((change.kind, change.allocations.len()), (ChangeKind::Resized, 1), "{}", change.summary);
    }
    assert!(changes.iter().any(|change| change.summary.contains("Investors & Advisors renamed Investors")));
}

#[test]
fn moves_by_different_lengths_are_reported_apart_next_to_a_third_correction() {
    let before = [
        event("2026-08-01", &[("Backers", 17.0), ("Education", 2.0), ("Bounties", 1.0)]),
        of_team("Foundation", "2025-12-17", "2030-12-17", 19.0),
    ];
    let after = [
        event("2026-08-01", &[("Programs", 3.0)]),
        event("2026-09-01", &[("Backers", 17.0)]),
        of_team("Foundation", "2025-12-17", "2032-12-17", 19.0),
    ];
    let changes = changes_of(&before, &after);
    assert_eq!(changes.len(), 3, "{:?}", summaries(&changes));
    let shifts: Vec<f64> = changes.iter().filter_map(|change| change.shift_days).collect();
    assert_eq!(shifts, [31.0, 731.0], "{:?}", summaries(&changes));
}

#[test]
fn rate_that_is_cut_from_some_date_on_is_one_resize() {
    let rest = event("2026-06-01", &[("Farm", 5.0)]);
    let whole = vec![of_team("Rewards", "2022-01-01", "2032-01-01", 3652.0), rest.clone()];
    let cut =
        vec![of_team("Rewards", "2022-01-01", "2027-01-01", 1826.0), rest, of_team("Rewards", "2027-01-01", "2032-01-01", 913.0)];
    for (before, after) in [(&whole, &cut), (&cut, &whole)] {
        let change = only(changes_of(before, after), ChangeKind::Resized);
        assert_eq!(change.amount, Some(913.0), "{}", change.summary);
    }
}

#[test]
fn an_extended_a_shortened_and_a_cancelled_linear_unlock_are_reported_one_by_one() {
    let part = |name: &str, end: &str, amount: f64| {
        let event = of_team(name, "2022-10-27", end, amount);
        event.linear_unlocks.get().map(|of| of.allocation_breakdown.items().to_vec()).unwrap_or_default()
    };
    let event = |parts: Vec<Vec<LinearAllocation>>| event_at(time("2022-10-27"), vec![cliff("Sale", 1.0)], parts.concat());
    let core = |parts: &[LinearAllocation]| event_at(time("2023-10-09"), vec![cliff("Core", 3.0)], parts.to_vec());
    let before = [
        event(vec![part("Mining", "2026-10-27", 1461.0), part("Treasury", "2026-10-27", 2922.0)]),
        core(&[linear("Second Treasury", "2023-10-09", "2027-10-09", 1461.0)]),
    ];
    let after = [event(vec![part("Mining", "2027-04-27", 1643.0), part("Treasury", "2026-05-27", 2616.0)]), core(&[])];
    let changes = changes_of(&before, &after);
    let count = |kind: ChangeKind| changes.iter().filter(|change| change.kind == kind).count();
    assert_eq!((changes.len(), count(ChangeKind::Removed)), (3, 1), "{:?}", summaries(&changes));
    assert_eq!(count(ChangeKind::Resized), 2, "{:?}", summaries(&changes));
}

/// Returns whether a change has the former name of an allocation in its text and in its fields.
fn states_rename(change: &Change, from: &str, to: &str) -> bool {
    let is_field = change.fields.iter().any(|field| field.field == "allocationName" && field.from == from && field.to == to);
    is_field && change.summary.contains(&format!("{from} renamed {to}"))
}

#[test]
fn new_name_is_a_part_of_the_change_of_the_whole_allocation() {
    let before = [of_team("Initial Team", "2024-04-21", "2034-04-21", 3652.0)];
    let after = [of_team("Core Developers", "2024-04-21", "2026-04-21", 730.0)];
    let changes = changes_of(&before, &after);
    assert_eq!(changes.iter().map(|change| change.kind).collect::<Vec<_>>(), [ChangeKind::Resized]);
    assert!(states_rename(&changes[0], "Initial Team", "Core Developers"), "{:?}", summaries(&changes));
}

#[test]
fn new_name_is_a_change_of_its_own_beside_a_change_of_one_tranche() {
    let with = |name: &str, at: &str, investors: f64| {
        let mut events = monthly("2026-05-16", 12, &[(name, 10.0), ("Investors", investors)]);
        events.push(event(at, &[(name, 56.0)]));
        events
    };
    let changes = changes_of(&with("Founders", "2027-06-16", 20.0), &with("Team", "2027-06-21", 19.0));
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Renamed, ChangeKind::Rescheduled, ChangeKind::SeriesRescaled], "{:?}", summaries(&changes));
    // The text of the rename says it, and the fields of the other change have it.
    assert!(!changes[1].summary.contains("Founders"), "{:?}", summaries(&changes));
    assert!(changes[1].fields.iter().any(|field| field.from == "Founders" && field.to == "Team"), "{:?}", summaries(&changes));
    assert!(changes[2].fields.is_empty(), "{:?}", summaries(&changes));
}

/// A category is not a name.
#[test]
fn new_category_that_comes_with_other_changes_is_no_new_name() {
    let with = |category: &str, amount: f64, others: [(&str, f64); 2]| {
        let mut events = monthly("2026-05-16", 12, &[others[0], ("Rewards", 5.0)]);
        for event in &mut events {
            let parts = event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts");
            parts[1].standard_allocation_name = category.to_owned().into();
            parts[1].cliff_amount = amount.into();
        }
        events.extend(monthly("2027-06-20", 12, &[others[1]]));
        events
    };
    let before = with("Community", 5.0, [("Team", 10.0), ("Investors", 3.0)]);
    let after = with("Ecosystem", 7.0, [("Team", 20.0), ("Investors", 27.0)]);
    let changes = changes_of(&before, &after);
    let is_named = |change: &Change| change.fields.iter().any(|field| field.field == "allocationName");
    assert!(!changes.iter().any(|change| is_named(change) || change.summary.contains("renamed")), "{:?}", summaries(&changes));
    let filed = "Rewards filed under Ecosystem instead of Community";
    assert!(changes.iter().any(|change| change.summary.contains(filed)), "{:?}", summaries(&changes));
}

#[test]
fn allocation_that_is_renamed_and_resized_is_not_removed() {
    let farm = || monthly("2026-05-01", 6, &[("Farm", 3.0)]);
    let with = |name: &str, first: &str, count: u32, amount: f64| [farm(), monthly(first, count, &[(name, amount)])].concat();
    for (before, after) in [
        // One unlock, two unlocks, and a series that moved as well.
        (with("Airdrop", "2026-06-16", 1, 10.0), with("Rewards", "2026-06-16", 1, 15.0)),
        (with("Airdrop", "2026-06-16", 2, 10.0), with("Rewards", "2026-06-16", 2, 15.0)),
        (with("Airdrop", "2026-06-16", 12, 10.0), with("Rewards", "2026-06-26", 12, 5.0)),
    ] {
        let changes = changes_of(&before, &after);
        let is_false = |change: &Change| matches!(change.kind, ChangeKind::Added | ChangeKind::Removed);
        assert!(changes.len() <= 2 && !changes.iter().any(is_false), "{:?}", summaries(&changes));
        assert!(changes.iter().any(|change| states_rename(change, "Airdrop", "Rewards")), "{:?}", summaries(&changes));
    }
    // Far from the former amount, or on another date, one unlock is another one.
    for after in [with("Rewards", "2026-06-16", 1, 150.0), with("Rewards", "2026-07-16", 1, 15.0)] {
        let changes = changes_of(&with("Airdrop", "2026-06-16", 1, 10.0), &after);
        assert!(changes.iter().any(|change| change.kind == ChangeKind::Removed), "{:?}", summaries(&changes));
    }
}

/// Interchanged amounts of one date are also tokens that went from one allocation to the other.
#[test]
fn interchanged_amounts_of_one_date_are_reallocated() {
    let with = |team: f64, farm: f64| [event("2026-05-16", &[("Team", team), ("Farm", farm)])];
    let change = only(changes_of(&with(1.0, 2.0), &with(2.0, 1.0)), ChangeKind::Reallocated);
    assert!(change.summary.starts_with("1 token of Farm now go to Team"), "{}", change.summary);
}

#[test]
fn moved_and_resized_series_beside_another_correction_is_not_rewritten() {
    let with = |first: &str, amount: f64| {
        let mut events = monthly(first, 6, &[("Ecosystem", 10.0)]);
        events[0] = event(first, &[("Ecosystem", amount)]);
        events
    };
    let before = with("2026-05-03", 650.0);
    let mut after = with("2026-05-04", 604.0);
    after.push(event("2027-06-16", &[("Growth", 100.0)]));
    let changes = changes_of(&before, &after);
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::SeriesShifted, ChangeKind::Resized, ChangeKind::Added], "{:?}", summaries(&changes));
}

/// Another tranche of each lost event is elsewhere in the response, so that the event itself is not in doubt.
#[test]
fn removal_from_events_whose_other_tranches_have_new_dates_is_not_held() {
    let mut before = monthly("2026-05-09", 12, &[("Team", 8.0), ("Investors", 3.0)]);
    let mut after: Vec<UnlockEvent> =
        (0..4).map(|k| event_at(time("2026-07-09") + Months::new(3 * k), vec![cliff("Investors", 9.0)], Vec::new())).collect();
    before.push(segment("Ops", "2024-01-01", "2029-01-01", 5.0));
    after.push(segment("Ops", "2024-01-01", "2029-01-01", 5.0));
    let first = diff(&known(&before), &after);
    assert!(!first.held);
    assert!(first.changes.iter().all(|change| change.kind != ChangeKind::Removed), "the removal needs proof");
    let changes = changes_of(&before, &after);
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Removed, ChangeKind::Restructured], "{:?}", summaries(&changes));
}

#[test]
fn cliff_that_changes_next_to_far_ones_did_not_move_with_a_series_of_one() {
    let before = [event("2030-08-05", &[("Makers", 0.5)]), event("2032-05-10", &[("Makers", 0.5)])];
    let after: Vec<UnlockEvent> = monthly("2030-08-05", 4, &[("Makers", 0.125)]);
    let changes = changes_of(&before, &after);
    assert!(changes.iter().all(|change| change.kind != ChangeKind::Rescheduled), "{:?}", summaries(&changes));
}

#[test]
fn each_allocation_with_another_form_and_total_has_its_own_text() {
    let advisors = |count: u32, amount: f64| monthly("2026-06-09", count, &[("Advisors", amount)]);
    let before = [vec![segment("Team", "2026-02-12", "2030-02-12", 120.0)], advisors(13, 1.25)].concat();
    let after = [vec![event("2026-02-12", &[("Team", 144.0)])], advisors(16, 1.1)].concat();
    let change = only(changes_of(&before, &after), ChangeKind::Resized);
    let cliff = "Team: 144 tokens in one cliff on 12 Feb 2026 instead of 120 linearly at 2.50 per month, between 12 Feb 2026 and 12 Feb 2030";
    for text in [cliff, "; Advisors: ends on ", "; 17.60 tokens in total instead of 16.25"] {
        assert!(change.summary.contains(text), "{}", change.summary);
    }
}

#[test]
fn allocation_that_is_taken_out_of_an_unlock_is_named_next_to_a_resized_one() {
    let with = |amounts: &[(&str, f64)]| [event("2026-05-16", amounts), event("2026-08-16", &[("Seed", 100.0), ("Sale", 5.0)])];
    let before = with(&[("Farm", 150.0), ("Sale", 20.0), ("Seed", 100.0)]);
    let change = only(changes_of(&before, &with(&[("Farm", 144.3), ("Seed", 100.0)])), ChangeKind::Resized);
    assert_eq!(
        change.summary,
        "Farm resized from 150 to 144.30 (-3.8%), on 16 May 2026; Sale (20) taken out of the unlock on 16 May 2026; the other 100 of that \
         unlock remain"
    );
}

#[test]
fn allocation_that_was_listed_twice_is_resized() {
    let with = |amounts: &[(&str, f64)]| [event("2026-05-16", amounts), event("2026-08-16", &[("Seed", 100.0)])];
    let twice = with(&[("Farm", 150.0), ("Sale", 20.0), ("Sale", 20.0), ("Seed", 100.0)]);
    let once = with(&[("Farm", 150.0), ("Sale", 20.0), ("Seed", 100.0)]);
    let change = only(changes_of(&twice, &once), ChangeKind::Resized);
    assert_eq!(change.summary, "Sale resized from 40 to 20 (×0.5), on 16 May 2026; the other 250 of that unlock remain");
    let change = only(changes_of(&once, &twice), ChangeKind::Resized);
    assert!(change.summary.starts_with("Sale resized from 20 to 40 (×2), on 16 May 2026"), "{}", change.summary);
    let change = only(changes_of(&twice, &with(&[("Farm", 144.3), ("Sale", 20.0), ("Seed", 100.0)])), ChangeKind::Resized);
    assert!(change.summary.starts_with("Farm and Sale resized from 190 to 164.30"), "{}", change.summary);
}

#[test]
fn allocation_that_was_listed_twice_is_resized_next_to_other_corrections() {
    let with = |treasury: &[(&str, f64)], early: &str| {
        let mut events = monthly("2026-05-16", 6, &[("Treasury", 10.0), (early, 4.0)]);
        events[2] = event("2026-07-16", &[&[("Treasury", 10.0), (early, 4.0)], treasury].concat());
        events
    };
    let before = with(&[("Treasury", 10.0)], "Early Supporters");
    let mut after = with(&[], "Early Backers");
    after.push(event("2027-03-05", &[("Incentives", 77.0)]));
    let changes = changes_of(&before, &after);
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Renamed, ChangeKind::Resized, ChangeKind::Added], "{:?}", summaries(&changes));
    assert_eq!(changes[1].summary, "Treasury resized from 20 to 10 (×0.5), on 16 Jul 2026");
}

/// Other allocations unlock on the same date, but this step of the allocation was cancelled, or forgotten before.
#[test]
fn step_of_a_shared_unlock_is_added_or_removed() {
    let with_all = monthly("2026-05-16", 6, &[("Team", 10.0), ("Seed", 4.0)]);
    let mut without = with_all.clone();
    without[2] = event("2026-07-16", &[("Team", 10.0)]);
    let change = only(changes_of(&with_all, &without), ChangeKind::Removed);
    assert_eq!(change.summary, "removed: 4 tokens of Seed, on 16 Jul 2026; the other 10 of that unlock remain");
    assert_eq!((change.amount, change.key.as_ref().map(|key| key.as_str())), (Some(4.0), Some("2026-07-16")));
    let change = only(changes_of(&without, &with_all), ChangeKind::Added);
    assert_eq!(change.summary, "added: 4 tokens of Seed, on 16 Jul 2026; the other 10 of that unlock remain");
    // Next to a move of the other allocation, there is no unchanged rest.
    let mut moved: Vec<UnlockEvent> = Vec::new();
    for (k, shared) in with_all.iter().enumerate() {
        let at = shared.unlock_date.copied().expect("dated");
        moved.push(event_at(at + Days::new(7), vec![cliff("Team", 10.0)], Vec::new()));
        moved.extend((k != 2).then(|| event_at(at, vec![cliff("Seed", 4.0)], Vec::new())));
    }
    moved.sort_by_key(|event| event.unlock_date.copied());
    let changes = changes_of(&with_all, &moved);
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::SeriesShifted, ChangeKind::Removed], "{:?}", summaries(&changes));
}

/// A new currency unit, and in the same correction, the day of one unlock is less exact than before.
#[test]
fn date_of_one_unlock_is_reported_apart_from_a_redenomination() {
    let mut before = monthly("2026-05-16", 6, &[("Team", 10.0), ("Seed", 4.0)]);
    before.push(event("2027-01-16", &[("Team", 10.0)]));
    let mut after: Vec<UnlockEvent> = monthly("2026-05-16", 6, &[("Team", 1000.0), ("Seed", 400.0)]);
    after.push(event("2027-01-16", &[("Team", 1000.0)]));
    for part in after[6].cliff_unlocks.get_mut().and_then(|cliffs| cliffs.allocation_breakdown.get_mut()).into_iter().flatten() {
        part.unlock_precision = "month".to_owned().into();
    }
    let changes = changes_of(&before, &after);
    let [rescaled, dated] = &changes[..] else { panic!("{:?}", summaries(&changes)) };
    assert_eq!((rescaled.kind, dated.kind), (ChangeKind::SeriesRescaled, ChangeKind::Revised));
    assert!(!rescaled.summary.contains("dated"), "{}", rescaled.summary);
    assert!(dated.summary.contains("of Team now dated: January 2027 (before: 16 Jan 2027"), "{}", dated.summary);
    // The only change of the same unlock takes in its date.
    let mut resized = before.clone();
    resized[6] = after[6].clone();
    let change = only(changes_of(&before, &resized), ChangeKind::Resized);
    assert!(change.summary.contains("now dated: January 2027"), "{}", change.summary);
}

/// The max supply is published later than the new amounts. A share of the former one would be 200%.
#[test]
fn share_of_a_max_supply_in_another_unit_is_not_stated() {
    let (before, token) = (monthly("2026-05-16", 6, &[("Team", 10.0)]), token());
    let proof = RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, &[], None, now());
    let poll = UnlockPoll { supply: Some(60.0), ..UnlockPoll::of(&token, now()) };
    for (factor, has_share) in [(1.0, true), (1.2, true), (10.0, false)] {
        let mut after = monthly("2026-05-16", 6, &[("Team", 10.0 * factor)]);
        after[5] = event("2026-10-20", &[("Team", 10.0 * factor)]);
        let changes = diff_unlocks(&poll, &known(&before), &proof, &after).changes;
        let moved = changes.iter().find(|change| change.kind == ChangeKind::Rescheduled).expect("a move");
        assert_eq!(moved.summary.contains("% of max supply"), has_share, "{}", moved.summary);
    }
}

/// Many new dates of such a series are former dates of it. A vested tranche on the day before the series says nothing about its steps.
#[test]
fn series_of_thirty_days_that_moves_by_a_month_is_one_shift() {
    let with = |months: u32| -> Vec<UnlockEvent> {
        let dates = (0..24).map(|k| time("2025-02-01") + Days::new(30 * k));
        let moved = dates.map(|at| if at > now() { at + Months::new(months) } else { at });
        let first = event("2025-01-31", &[("Team", 120.0)]);
        std::iter::once(first).chain(moved.map(|at| event_at(at, vec![cliff("Team", 10.0)], Vec::new()))).collect()
    };
    for months in [1, 2, 3, 6] {
        let change = only(changes_of(&with(0), &with(months)), ChangeKind::SeriesShifted);
        assert!(change.summary.contains(&format!("moved by +{months} month")), "{}", change.summary);
    }
}

#[test]
fn series_that_is_doubled_gets_no_tokens_of_cancelled_steps() {
    let with = |grants: f64, count: u32| {
        let mut events = monthly("2026-04-04", 12, &[("Grants", grants), ("Team", 3.0), ("Seed", 8.0)]);
        let with_association = events.iter_mut().take(count as usize);
        for event in with_association {
            let parts = event.cliff_unlocks.get_mut().expect("cliffs").allocation_breakdown.get_mut().expect("parts");
            parts.push(cliff("Association", 5.0));
        }
        events
    };
    let changes = super::laws::changes_from(&with(5.0, 12), &with(10.0, 9));
    let kinds: BTreeSet<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, BTreeSet::from([ChangeKind::Removed, ChangeKind::SeriesRescaled]), "{:?}", summaries(&changes));
}
