//! Random corrections that round amounts, or that come together with a rounding or with a new name.

use super::{
    laws::{Flat, Random, SCHEDULES, changes_from, rebuild},
    *,
};

const ROUNDS: u64 = 150;
const DAY: i64 = 86_400;

/// Returns the rounds of a test, each with its random numbers and a schedule.
fn rounds(salt: u64) -> impl Iterator<Item = (Random, &'static str, &'static [Flat])> {
    (0..ROUNDS).map(move |round| {
        let mut random = Random((round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt);
        random.below(7);
        let (token, flat) = &SCHEDULES[random.below(SCHEDULES.len())];
        (random, token.as_str(), flat.as_slice())
    })
}

/// Returns an amount with this number of significant digits.
fn rounded(amount: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits - 1 - amount.abs().log10().floor() as i32);
    (amount * scale).round() / scale
}

#[test]
fn amounts_with_six_digits_or_more_are_no_change() {
    for (mut random, token, before) in rounds(1) {
        let digits = 6 + i32::try_from(random.below(4)).expect("a digit");
        let after: Vec<Flat> =
            before.iter().map(|tranche| Flat { amount: rounded(tranche.amount, digits), ..tranche.clone() }).collect();
        let changes = changes_from(&rebuild(before), &rebuild(&after));
        let reported: Vec<&str> = changes.iter().map(|change| change.summary.as_str()).collect();
        assert!(reported.is_empty(), "{token} with {digits} digits: {reported:?}");
    }
}

#[test]
fn amounts_with_fewer_digits_are_one_change_without_a_transfer() {
    let mut played = 0;
    for (mut random, token, before) in rounds(5) {
        let digits = 3 + i32::try_from(random.below(2)).expect("a digit");
        let after: Vec<Flat> =
            before.iter().map(|tranche| Flat { amount: rounded(tranche.amount, digits), ..tranche.clone() }).collect();
        let is_changed = |(a, b): &(&Flat, &Flat)| (a.amount - b.amount).abs() > 2e-5 * a.amount;
        let changed: std::collections::BTreeSet<&str> =
            before.iter().zip(&after).filter(is_changed).map(|(tranche, _)| tranche.name.as_str()).collect();
        if changed.len() < 3 {
            continue;
        }
        played += 1;
        let changes = changes_from(&rebuild(before), &rebuild(&after));
        let reported: Vec<(ChangeKind, &str)> = changes.iter().map(|change| (change.kind, change.summary.as_str())).collect();
        assert!(matches!(&reported[..], [(ChangeKind::Resized, _)]), "{token} with {digits} digits: {reported:?}");
    }
    assert!(played > 10, "{played}");
}

#[test]
fn smallest_resize_that_no_rounding_explains_is_reported() {
    for (mut random, token, before) in rounds(4) {
        let mut after = before.to_vec();
        after[random.below(before.len())].amount *= [1.0 + 3e-5, 1.0 - 3e-5][random.below(2)];
        let changes = changes_from(&rebuild(before), &rebuild(&after));
        assert!(matches!(&changes[..], [change] if change.kind == ChangeKind::Resized), "{token}: {changes:?}");
    }
}

#[test]
fn new_schedule_with_a_rounded_total_is_restructured() {
    let (mut played, mut restructured) = (0, 0);
    for (mut random, token, before) in rounds(2) {
        let name = &before[random.below(before.len())].name;
        let (mut own, mut others): (Vec<&Flat>, Vec<&Flat>) = before.iter().partition(|tranche| tranche.name == *name);
        // The first tranches may stay, so that the others are a small part of the total.
        own.sort_by_key(|tranche| tranche.at);
        let kept = if own.len() >= 12 && random.below(2) == 0 { own.len() / 2 } else { 0 };
        others.extend(own.drain(..kept));
        let (first, last) = (own.iter().map(|t| t.at).min().expect("one"), own.iter().map(|t| t.at).max().expect("one"));
        if own.len() < 6 || own.iter().any(|tranche| tranche.end.is_some()) || last - first < 300 * DAY {
            continue;
        }
        played += 1;
        let total: f64 = own.iter().map(|tranche| tranche.amount).sum();
        let count = i64::try_from(own.len()).expect("few") / 3 + 1;
        let each = total * (1.0 + (random.below(9) as f64 - 4.0) * 1e-5) / count as f64;
        let step = (last - first) / count;
        let tranche = |k: i64| Flat { at: first + k * step + 3 * DAY, amount: each, ..own[0].clone() };
        let after: Vec<Flat> = others.into_iter().cloned().chain((0..count).map(tranche)).collect();
        let changes = changes_from(&rebuild(before), &rebuild(&after));
        let reported: Vec<(ChangeKind, &str)> = changes.iter().map(|change| (change.kind, change.summary.as_str())).collect();
        // A schedule with very many other dates is rewritten.
        assert!(matches!(&reported[..], [(ChangeKind::Restructured | ChangeKind::Rewritten, _)]), "{token} {name}: {reported:?}");
        if reported[0].0 == ChangeKind::Restructured {
            restructured += 1;
            assert!(!reported[0].1.contains(" in total instead of "), "{token} {name}: {reported:?}");
        }
    }
    assert!(played > 10 && restructured * 10 >= played * 8, "{restructured} of {played}");
}

#[test]
fn allocation_with_a_shorter_name_and_a_later_end_is_not_removed() {
    let mut played = 0;
    for (mut random, token, before) in rounds(3) {
        let linears: Vec<usize> =
            (0..before.len()).filter(|k| before[*k].end.is_some_and(|end| end > before[*k].at + DAY)).collect();
        let Some(k) = linears.get(random.below(linears.len())) else { continue };
        let (old, end) = (&before[*k].name, before[*k].end.expect("linear"));
        let new = format!("{old} and Partners");
        if old.len() < 4 || before.iter().any(|tranche| tranche.name == new) {
            continue;
        }
        played += 1;
        let (mut before, mut after) = (before.to_vec(), before.to_vec());
        let later = i64::try_from(20 + random.below(400)).expect("days") * DAY;
        let length = (end - before[*k].at) as f64;
        after[*k].end = Some(end + later);
        after[*k].amount *= (length + later as f64) / length;
        let is_reverse = random.below(2) == 1;
        let renamed = if is_reverse { &mut before } else { &mut after };
        renamed.iter_mut().filter(|tranche| tranche.name == *old).for_each(|tranche| tranche.name.clone_from(&new));
        let changes = changes_from(&rebuild(&before), &rebuild(&after));
        let reported: Vec<(ChangeKind, &str)> = changes.iter().map(|change| (change.kind, change.summary.as_str())).collect();
        let is_name = |field: &model::change::FieldChange| field.field == "allocationName";
        assert!(
            changes.len() <= 2
                && changes.iter().any(|change| change.kind == ChangeKind::Renamed || change.fields.iter().any(is_name)),
            "{token} {old}: {reported:?}"
        );
        assert!(
            !reported.iter().any(|(kind, _)| [ChangeKind::Added, ChangeKind::Removed].contains(kind)),
            "{token} {old}: {reported:?}"
        );
    }
    assert!(played > 10, "{played}");
}
