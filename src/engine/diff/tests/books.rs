//! The books of a change: its amounts before and after, and its totals, contain what the change is about and nothing else. Each new name is
//! stated once.

use std::collections::BTreeSet;

use super::{
    laws::{Random, SCHEDULES, changes_from, rebuild},
    operations::one_of_several,
    *,
};

/// The maximum number of allocations in a change.
const MAX_LISTED: usize = 50;

/// The relative difference of totals that are equal except for rounding, which a text about other timing states.
const ROUNDING: f64 = 1e-4;

fn amount(fact: &Option<Fact>) -> Option<f64> {
    fact.as_ref().and_then(Fact::amount)
}

/// Describes each change whose amounts or totals differ by anything else than its allocations do.
pub(super) fn unexplained_amounts(changes: &[Change]) -> Vec<String> {
    let mut faults = Vec::new();
    for change in changes.iter().filter(|change| change.allocations.len() < MAX_LISTED) {
        let sides = change.allocations.iter().map(|part| (amount(&part.from).unwrap_or(0.0), amount(&part.to).unwrap_or(0.0)));
        let (before, after) = sides.fold((0.0, 0.0), |sum, side| (sum.0 + side.0, sum.1 + side.1));
        let ratios: Vec<f64> = change.allocations.iter().filter_map(|part| part.ratio).collect();
        let fault = |what: &str, from: f64, to: f64, rounding: f64| {
            let scale = from.abs().max(to.abs()).max(before).max(after);
            let is_wrong = ((to - from) - (after - before)).abs() > scale * rounding;
            is_wrong.then(|| format!("{what} {from} to {to} of allocations {before} to {after}: {}", change.summary))
        };
        use ChangeKind::*;
        match change.kind {
            Added | Removed | Resized | Reallocated | Split | Merged | Rewritten => {
                faults.extend(fault("amounts", amount(&change.from).unwrap_or(0.0), amount(&change.to).unwrap_or(0.0), 1e-5));
            }
            // The amounts of its first tranche.
            SeriesRescaled => {
                let (from, to) = (amount(&change.from).unwrap_or(0.0), amount(&change.to).unwrap_or(0.0));
                let is_near = |ratio: &f64| (to / from - ratio).abs() <= 1e-3 * ratio;
                if !ratios.iter().all(is_near) {
                    faults.push(format!("amounts {from} to {to}, but allocations by {ratios:?}: {}", change.summary));
                }
            }
            _ => {}
        }
        if let (Some(was), Some(is)) = (&change.before, &change.after) {
            let rounding = if change.kind == Restructured { ROUNDING } else { 1e-5 };
            faults.extend(fault("totals", was.total, is.total, rounding));
        }
    }
    faults
}

/// Describes each new name that the texts state more than once.
pub(super) fn repeated_names(changes: &[Change]) -> Vec<String> {
    let fields = changes.iter().flat_map(|change| &change.fields).filter(|field| field.field == "allocationName");
    let of_fields = fields.filter_map(|field| Some((field.from.as_str()?.to_owned(), field.to.as_str()?.to_owned())));
    let of_parts = changes.iter().filter(|change| change.kind == ChangeKind::Renamed).flat_map(|change| &change.allocations);
    let of_parts =
        of_parts.filter_map(|part| Some((part.from.as_ref()?.text()?.to_owned(), part.to.as_ref()?.text()?.to_owned())));
    let names: BTreeSet<(String, String)> = of_fields.chain(of_parts).collect();
    let is_repeated = |(from, to): &&(String, String)| {
        let phrase = format!("{from} renamed {to}");
        changes.iter().map(|change| change.summary.matches(&phrase).count()).sum::<usize>() > 1
    };
    names.iter().filter(is_repeated).map(|(from, to)| format!("{from} renamed {to} is stated more than once")).collect()
}

#[test]
fn reallocation_next_to_a_removal_on_its_dates_counts_its_own_tokens() {
    let parts = |core: f64, investors: f64, advisors: f64| {
        let all = [("Core", core), ("Investors", investors), ("Advisors", advisors)];
        all.into_iter().filter(|(_, amount)| *amount > 0.0).collect::<Vec<_>>()
    };
    let dates = ["2026-04-17", "2026-10-17", "2027-04-17"];
    let before: Vec<_> = dates.iter().map(|at| event(at, &parts(4.73, 3.34, 0.44))).collect();
    let mut after: Vec<_> = dates.iter().map(|at| event(at, &parts(4.73, 3.43, 0.35))).collect();
    after[2] = event(dates[2], &parts(0.0, 3.43, 0.35));
    let changes = changes_from(&before, &after);
    let moved = changes.iter().find(|change| change.kind == ChangeKind::Reallocated).expect("a reallocation");
    let (from, to) = (amount(&moved.from).expect("an amount"), amount(&moved.to).expect("an amount"));
    assert!((from - to).abs() < 1e-9, "{from} to {to}");
    assert_eq!(unexplained_amounts(&changes), [""; 0]);
}

#[test]
fn resize_next_to_another_change_of_its_unlock_counts_its_own_tokens() {
    let with = |events: &[(&str, f64)]| vec![event("2026-06-17", events), event("2026-09-17", &[("Team", 7.0)])];
    let before = with(&[("Team", 10.0), ("Farm", 20.0), ("Seed", 5.0)]);
    let resized = only(changes_from(&before, &with(&[("Team", 5.0), ("Farm", 20.0), ("Seed", 5.0)])), ChangeKind::Resized);
    assert_eq!((amount(&resized.from), amount(&resized.to)), (Some(35.0), Some(30.0)), "the other tokens are as before");
    let mut after = with(&[("Team", 5.0), ("Seed", 5.0)]);
    after.insert(1, event("2026-07-17", &[("Farm", 20.0)]));
    let changes = changes_from(&before, &after);
    let resized = changes.iter().find(|change| change.kind == ChangeKind::Resized).expect("a resize");
    assert_eq!((amount(&resized.from), amount(&resized.to)), (Some(10.0), Some(5.0)), "the farm moved away");
    assert_eq!(unexplained_amounts(&changes), [""; 0]);
}

#[test]
fn new_name_of_a_resized_allocation_is_reported_once() {
    let with = |name: &str, end: &str, amount: f64| {
        let mut events = monthly("2026-05-11", 6, &[("Team", 3.0), ("Seed", 2.0)]);
        events.insert(0, segment(name, "2024-04-11", end, amount));
        events
    };
    let changes = changes_from(&with("Staking Rewards", "2034-04-11", 735.0), &with("Staking Rewards II", "2034-10-11", 771.83));
    let resized = only(changes, ChangeKind::Resized);
    assert!(resized.summary.ends_with("; Staking Rewards renamed Staking Rewards II"), "{}", resized.summary);
}

#[test]
fn new_name_next_to_a_change_of_a_part_of_the_allocation_is_stated_once() {
    let before = monthly("2026-01-16", 12, &[("Staking", 10.0), ("Team", 3.0)]);
    let mut after = monthly("2026-01-16", 12, &[("Community", 10.0), ("Team", 3.0)]);
    after[6] = event("2026-07-16", &[("Community", 14.0), ("Team", 3.0)]);
    let changes = changes_from(&before, &after);
    assert_eq!(changes.len(), 2, "{:?}", changes.iter().map(|change| &change.summary).collect::<Vec<_>>());
    assert_eq!(repeated_names(&changes), [""; 0]);
    let resized = changes.iter().find(|change| change.kind == ChangeKind::Resized).expect("a resize");
    assert!(resized.fields.iter().any(|field| field.field == "allocationName"), "programs still get the former name");
}

#[test]
fn several_new_names_are_a_change_of_their_own_and_stated_once() {
    let with = |first: &str, team: &str, investors: &str| monthly(first, 12, &[(team, 10.0), (investors, 3.0)]);
    let changes = changes_from(&with("2026-04-16", "Team & Contributors", "Investors"), &with("2026-07-16", "Team", "Backers"));
    let kinds: BTreeSet<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, BTreeSet::from([ChangeKind::Renamed, ChangeKind::SeriesShifted]));
    let texts: Vec<&str> = changes.iter().map(|change| change.summary.as_str()).collect();
    assert_eq!(texts.iter().map(|text| text.matches(" renamed").count()).sum::<usize>(), 1, "{texts:?}");
}

/// An allocation gets a new name, and the same allocation or another one is corrected, too.
#[test]
fn new_names_of_corrected_allocations_are_stated_once() {
    let rounds: usize = std::env::var("LAW_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    let mut checked = 0;
    for round in 0..rounds {
        let mut random = Random(u64::try_from(round).expect("a number").wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 17);
        random.below(7);
        let (token, before) = &SCHEDULES[random.below(SCHEDULES.len())];
        let Some((name, after)) = one_of_several(before, &mut random) else { continue };
        // Texts cut longer names.
        if name.chars().count() > 50 {
            continue;
        }
        let fresh = format!("{name} II");
        let after: Vec<_> = after
            .into_iter()
            .map(|mut t| {
                if t.name == name {
                    t.name.clone_from(&fresh)
                };
                t
            })
            .collect();
        let changes = changes_from(&rebuild(before), &rebuild(&after));
        let reported: Vec<String> = changes.iter().map(|change| format!("{}: {}", change.kind, change.summary)).collect();
        let faults = [repeated_names(&changes), unexplained_amounts(&changes)].concat();
        assert_eq!(faults, [""; 0], "{round} {token}: {reported:#?}");
        assert!(reported.iter().any(|text| text.contains(&fresh)), "{round} {token}: {reported:#?}");
        checked += 1;
    }
    assert!(checked * 4 > rounds, "only {checked} of {rounds}");
}
