//! Burns, buybacks, allocations, and emissions.

use super::*;

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

fn poll(token: &TokenId) -> RecordPoll<'_> {
    RecordPoll { token, window: &DateWindow::ALL, tolerance: 1e-9 }
}

fn tracked(put: Vec<Put>) -> Vec<Tracked> {
    apply(&[], &Diff { put, ..Diff::default() })
}

fn burns_diff(before: &[Burn], after: &[Burn]) -> Diff {
    diff_burns(&poll(&token()), &tracked(baseline_burns(before)), &confirmed_by(&[]), after)
}

#[test]
fn equal_burns_of_one_day_are_separate_rows() {
    let two = [burn("2026-01-01", "Q1", 5.0), burn("2026-01-01", "Q1", 5.0)];
    assert_eq!(baseline_burns(&two).iter().map(|put| put.key.to_string()).collect::<Vec<_>>(), ["2026-01-01", "2026-01-01#2"]);
    assert!(burns_diff(&two, &two).is_empty());
    let three = [two[0].clone(), two[1].clone(), two[1].clone()];
    let seen = burns_diff(&two, &three);
    assert_eq!(only(seen.changes, ChangeKind::Added).key, Some("2026-01-01#3".into()));
    assert_eq!(seen.put.len(), 1);
}

#[test]
fn restated_burn_is_revised_whichever_field_changed() {
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
fn each_row_of_many_revised_burns_has_its_own_facts() {
    let days: Vec<String> = (1..=9).map(|day| format!("2026-01-{:02}", 10 - day)).collect();
    let before: Vec<Burn> = days.iter().map(|day| burn(day, &format!("of {day}"), 5.0)).collect();
    // Two amounts, three types, and the rest other labels, each in its own way.
    let mut after = before.clone();
    after[0].amount = 6.0.into();
    after[1].amount = 8.0.into();
    for (row, burn) in after.iter_mut().enumerate().skip(2) {
        match row {
            2..5 => burn.burn_type = format!("TYPE{row}").into(),
            _ => burn.burn_event_label = format!("another label {row}").into(),
        }
    }
    let changes = burns_diff(&before, &after).changes;
    let mut seen: Vec<(u32, Option<Fact>, Option<Fact>, &str)> = Vec::new();
    for change in &changes {
        assert!(change.fields.iter().all(|field| field.field == change.fields[0].field), "{change:?}");
        seen.push((change.count, change.from.clone(), change.to.clone(), &change.summary));
    }
    seen.sort_by_key(|(count, ..)| *count);
    assert_eq!(
        seen,
        [
            (2, Some(Fact::Amount(10.0)), Some(Fact::Amount(14.0)), "2 burns from 8 Jan 2026 on restated from 10 to 14 (×1.4)"),
            (3, Some(Fact::Text("PROGRAMMATIC".into())), None, "3 burns from 5 Jan 2026 on burnType changed"),
            (4, None, None, "4 burns from 1 Jan 2026 on burnEventLabel changed"),
        ]
    );
    // A fact that is true of all rows is stated.
    let mut same = before.clone();
    same.iter_mut().for_each(|burn| burn.burn_type = "MANUAL".to_owned().into());
    let change = only(burns_diff(&before, &same).changes, ChangeKind::Revised);
    assert_eq!((change.count, change.to), (9, Some(Fact::Text("MANUAL".into()))));
    assert_eq!(change.summary, "9 burns from 1 Jan 2026 on burnType changed from PROGRAMMATIC to MANUAL");
}

#[test]
fn sum_of_restated_burns_has_the_same_rows_on_both_sides() {
    let mut before: Vec<Burn> = (1..=9).map(|day| burn(&format!("2026-01-0{day}"), &format!("of {day}"), 5.0)).collect();
    for burn in &mut before {
        (burn.value, burn.price_per_token) = (Maybe::Null, Maybe::Null);
    }
    before[..4].iter_mut().for_each(|burn| burn.amount = Maybe::Null);
    let mut after = before.clone();
    after.iter_mut().for_each(|burn| burn.amount = 6.0.into());
    let mut changes = burns_diff(&before, &after).changes;
    changes.sort_by_key(|change| change.count);
    let facts: Vec<_> = changes.iter().map(|change| (change.count, change.from.clone(), change.to.clone())).collect();
    let amount = |amount: f64| Some(Fact::Amount(amount));
    assert_eq!(facts, [(4, None, amount(6.0)), (5, amount(25.0), amount(30.0))], "{changes:?}");
}

#[test]
fn several_renamed_allocations_keep_their_own_names() {
    let before = [allocation("Tem", 40.0, 1.0), allocation("Comunity", 60.0, 2.0)];
    let snapshot = tracked(baseline_allocations(&before));
    let after = table(100.0, vec![allocation("Team", 40.0, 1.0), allocation("Community", 60.0, 2.0)]);
    let header = serde_json::json!({"maxSupply": 100.0});
    let seen = diff_allocations(&poll(&token()), &snapshot, &confirmed_by(&[]), &after, Some(&header));
    let change = only(seen.changes, ChangeKind::Renamed);
    assert_eq!((change.count, &change.from, &change.to), (2, &None, &None));
    assert_eq!(change.summary, "2 allocations, Community among them, renamed");
    let text = |text: &str| Some(Fact::Text(text.into()));
    let own: Vec<_> = change.allocations.iter().map(|row| (row.from.clone(), row.to.clone())).collect();
    assert_eq!(own, [(text("Comunity"), text("Community")), (text("Tem"), text("Team"))]);
}

#[test]
fn price_drift_is_not_a_restated_burn() {
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
fn burn_is_removed_after_proof_and_mass_removal_is_held() {
    let before: Vec<Burn> = (1..=9).map(|day| burn(&format!("2026-01-0{day}"), "daily", f64::from(day))).collect();
    let seen = burns_diff(&before, &before[1..]);
    assert!(seen.changes.is_empty() && seen.missing.len() == 1);
    let snapshot = tracked(baseline_burns(&before));
    let seen = diff_burns(&poll(&token()), &snapshot, &confirmed_by(&seen.missing), &before[1..]);
    only(seen.changes, ChangeKind::Removed);
    assert!(burns_diff(&before, &before[6..]).held);
}

#[test]
fn two_of_three_missing_burns_are_held() {
    let before: Vec<Burn> = (1..=4).map(|day| burn(&format!("2026-01-0{day}"), "daily", f64::from(day))).collect();
    assert!(burns_diff(&before[..3], &before[..1]).held, "two of three");
    assert!(!burns_diff(&before, &before[..2]).held, "two of four are not most");
    assert!(!burns_diff(&before[..1], &before[1..2]).held, "a single burn is never held");
}

#[test]
fn long_history_is_compared_in_linear_time() {
    let day = |k: u64| (time("2010-01-01") + Days::new(k)).format("%Y-%m-%d").to_string();
    let before: Vec<Burn> = (0..5_000).map(|k| burn(&day(k % 2_500), "daily", 5.0)).collect();
    let mut after = before.clone();
    after.push(burn("2026-03-01", "daily", 5.0));
    after.reverse();
    let change = only(burns_diff(&before, &after).changes, ChangeKind::Added);
    assert_eq!(change.key, Some("2026-03-01".into()));
}

#[test]
fn buybacks_are_identified_by_their_addresses() {
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
    let seen = diff_buybacks(&poll(&token()), &snapshot, &confirmed_by(&[]), &after);
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
fn allocation_table_reports_resize_rename_and_supply_change_once() {
    let before = [allocation("Team", 40.0, 1.0), allocation("Comunity", 60.0, 2.0)];
    let snapshot = tracked(baseline_allocations(&before));
    let header = serde_json::json!({"maxSupply": 100.0});
    let seen = |after: &AllocationsData| diff_allocations(&poll(&token()), &snapshot, &confirmed_by(&[]), after, Some(&header));

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
fn restated_emissions_are_one_change_and_weeks_are_not_days() {
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
    assert!(diff_emissions(&poll(&token()), &snapshot, &confirmed_by(&[]), &weekly).is_empty());
    let restated: Vec<Emission> = (0..30).map(|day| emission(day, 1, 6.0)).collect();
    let change = only(diff_emissions(&poll(&token()), &snapshot, &confirmed_by(&[]), &restated).changes, ChangeKind::Revised);
    assert_eq!((change.count, change.from, change.to), (30, Some(Fact::Amount(150.0)), Some(Fact::Amount(180.0))));
}

// Bounds.
