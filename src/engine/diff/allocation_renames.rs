//! Finds allocations that have a new name.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    index::{New, Old},
    relisted::RelistedNames,
    tolerances::{self, MIN_SERIES, SCATTER_MS, close, close_or_none},
    tranche::{TrancheForm, Tranches},
};

/// The maximum number of removed names, and of added names, that are compared with each other.
pub(super) const MAX_RENAME_CANDIDATES: usize = 200;

/// The minimum similarity of two names of one allocation, if its dates or its amounts stayed.
const MIN_SIMILARITY: f64 = 0.8;

/// The maximum ratio of the amounts of an allocation under two names, if it has fewer tranches than a series.
const MAX_RESIZE_OF_FEW: f64 = 5.0;

/// The facts of a tranche that stay under another name.
#[derive(Clone, Copy)]
pub(super) struct TrancheMark {
    pub(super) place: (TrancheForm, i64, Option<i64>),
    pub(super) amount: Option<f64>,
}

/// The marks of each allocation, sorted by date and amount.
pub(super) type MarksByName<'a> = BTreeMap<&'a str, Vec<TrancheMark>>;

/// Returns the new name of each renamed allocation.
///
/// A removed name became an added one if both have the same tranches, or similar names and the same begins or amounts, or the same total in
/// the same category, or alone have the same dates in the same category, or the same ones up to one shift or to an earlier end. Two names may
/// also have changed places.
pub(super) fn find_renames<'a>(
    (old, before): (&Tranches<'a, Old>, &MarksByName<'a>),
    (new, after): (&Tranches<'a, New>, &MarksByName<'a>),
    relisted: &[RelistedNames<'a>],
    tolerance: f64,
) -> BTreeMap<&'a str, &'a str> {
    let mut renames = BTreeMap::new();
    let is_relisted = |name: &str| relisted.iter().any(|one| one.from.contains(&name) || one.to.contains(&name));
    let is_open = |name: &&str| !name.is_empty() && !is_relisted(name);
    let removed: Vec<&str> = before.keys().copied().filter(|name| !after.contains_key(name)).filter(is_open).collect();
    let added: Vec<&str> = after.keys().copied().filter(|name| !before.contains_key(name)).filter(is_open).collect();
    if removed.len() <= MAX_RENAME_CANDIDATES && added.len() <= MAX_RENAME_CANDIDATES {
        let mut candidates = Vec::new();
        for from in &removed {
            for to in &added {
                let score = rename_score(from, to, &before[from], &after[to], tolerance).or_else(|| {
                    let is_successor = same_total(&before[from], &after[to])
                        && category(old, from).is_some_and(|was| category(new, to) == Some(was));
                    is_successor.then_some(0.0)
                });
                candidates.extend(score.map(|score| (score, *from, *to)));
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)).then(a.2.cmp(b.2)));
        let mut taken = BTreeSet::new();
        for (_, from, to) in candidates {
            if !renames.contains_key(from) && taken.insert(to) {
                renames.insert(from, to);
            }
        }
        let is_resized = |from: &str, to: &str| {
            let (before, after) = (&before[from], &after[to]);
            (is_resized_in_place(before, after)
                || is_resized_elsewhere(before, after)
                || same_rates(before, after)
                || is_cut_short(before, after, tolerance))
                && category(old, from).is_some_and(|was| category(new, to) == Some(was))
        };
        let from: Vec<&str> = removed.into_iter().filter(|name| !renames.contains_key(name)).collect();
        let to: Vec<&str> = added.into_iter().filter(|name| !taken.contains(name)).collect();
        let resized: Vec<(&str, &str)> =
            from.iter().flat_map(|from| to.iter().map(|to| (*from, *to))).filter(|(from, to)| is_resized(from, to)).collect();
        // If several names have the same dates, the tokens were divided instead.
        let is_only = |(from, to): &&(&str, &str)| resized.iter().filter(|(a, b)| a == from || b == to).count() == 1;
        renames.extend(resized.iter().filter(is_only).copied());
    }
    renames.extend(swapped_names(before, after, tolerance));
    renames
}

/// Returns names that changed places, in both directions.
fn swapped_names<'a>(before: &MarksByName<'a>, after: &MarksByName<'a>, tolerance: f64) -> Vec<(&'a str, &'a str)> {
    let mut swapped = Vec::new();
    let both: Vec<&str> = before.keys().copied().filter(|name| after.contains_key(name)).collect();
    if both.len() > MAX_RENAME_CANDIDATES {
        return swapped;
    }
    let same = |a: &[TrancheMark], b: &[TrancheMark]| same_dates(a, b) && same_amounts(a, b, tolerance);
    // On a few dates that both have, tokens may as well have gone from one to the other, which is true in any case.
    let can_swap = |one: &str, other: &str| before[one].len() >= MIN_SERIES || !same_dates(&before[one], &before[other]);
    for (k, one) in both.iter().enumerate() {
        if same(&before[one], &after[one]) {
            continue;
        }
        for other in both.iter().skip(k + 1) {
            if can_swap(one, other) && same(&before[one], &after[other]) && same(&before[other], &after[one]) {
                swapped.push((*one, *other));
                swapped.push((*other, *one));
            }
        }
    }
    swapped
}

/// Returns how likely a rename is, or `None` if it is unlikely.
fn rename_score(from: &str, to: &str, before: &[TrancheMark], after: &[TrancheMark], tolerance: f64) -> Option<f64> {
    let (plain_from, plain_to) = (plain(from), plain(to));
    let similarity = strsim::jaro_winkler(&plain_from, &plain_to);
    let (dates, amounts) = (same_dates(before, after), same_amounts(before, after, tolerance));
    let spelled_alike = plain_from == plain_to;
    let contained =
        plain_from.len() >= 4 && plain_to.len() >= 4 && (plain_from.contains(&plain_to) || plain_to.contains(&plain_from));
    // Some tranches may have been added or removed at the same time.
    let share_most = common_count(before, after, tolerance) * 2 > before.len().max(after.len());
    let is_likely = (dates && amounts)
        || spelled_alike
        || share_most
        || ((dates || same_begins(before, after)) && (similarity >= MIN_SIMILARITY || contained))
        || (amounts && similarity >= MIN_SIMILARITY);
    is_likely.then(|| similarity + f64::from(u8::from(dates && amounts)) * 2.0 + f64::from(u8::from(spelled_alike)) * 2.0)
}

/// Counts the marks that two sorted lists share.
fn common_count(a: &[TrancheMark], b: &[TrancheMark], tolerance: f64) -> usize {
    let (mut i, mut j, mut found) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        match x.place.cmp(&y.place) {
            std::cmp::Ordering::Equal if close_or_none(x.amount, y.amount, tolerance) => {
                (i, j, found) = (i + 1, j + 1, found + 1);
            }
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal if x.amount < y.amount => i += 1,
            std::cmp::Ordering::Equal => j += 1,
        }
    }
    found
}

fn same_total(before: &[TrancheMark], after: &[TrancheMark]) -> bool {
    let total = |marks: &[TrancheMark]| marks.iter().map(|mark| mark.amount).sum::<Option<f64>>();
    matches!((total(before), total(after)), (Some(a), Some(b)) if a > 0.0 && close(a, b, tolerances::TOTAL))
}

/// Returns the category of the first tranche of an allocation.
fn category<'a, S>(all: &Tranches<'a, S>, name: &str) -> Option<&'a str> {
    all.iter().find(|tranche| tranche.name == name)?.category
}

pub(super) fn marks_by_name<'a, S>(all: &Tranches<'a, S>) -> MarksByName<'a> {
    let mut by_name = MarksByName::new();
    for tranche in all.iter() {
        let place = (tranche.form, tranche.at, tranche.end);
        by_name.entry(tranche.name).or_default().push(TrancheMark { place, amount: tranche.amount });
    }
    let amount = |mark: &TrancheMark| mark.amount.unwrap_or(f64::NEG_INFINITY);
    for marks in by_name.values_mut() {
        marks.sort_by(|a, b| a.place.cmp(&b.place).then(amount(a).total_cmp(&amount(b))));
    }
    by_name
}

fn same_dates(a: &[TrancheMark], b: &[TrancheMark]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.place == b.place)
}

/// Returns whether two lists have the same forms and begins, so that at most the ends of linear unlocks differ.
fn same_begins(a: &[TrancheMark], b: &[TrancheMark]) -> bool {
    let begin = |mark: &TrancheMark| (mark.place.0, mark.place.1);
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| begin(a) == begin(b))
}

/// Returns whether both are linear unlocks with the same begins and rates, so that at most their ends and totals differ.
fn same_rates(a: &[TrancheMark], b: &[TrancheMark]) -> bool {
    let rate = |mark: &TrancheMark| {
        let (_, begin, end) = mark.place;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a few thousand years fit a double")]
        let length = end.filter(|end| *end > begin).map(|end| (end - begin) as f64);
        mark.amount.zip(length).map(|(amount, length)| amount / length)
    };
    let is_same = |(a, b)| matches!((rate(a), rate(b)), (Some(a), Some(b)) if close(a, b, tolerances::TOTAL));
    same_begins(a, b) && !a.is_empty() && a.iter().zip(b).all(is_same)
}

/// Returns whether both have the same dates, and amounts of the same magnitude if they are too few for a series.
fn is_resized_in_place(a: &[TrancheMark], b: &[TrancheMark]) -> bool {
    let is_near = |(a, b): (&TrancheMark, &TrancheMark)| {
        a.amount.zip(b.amount).is_some_and(|(a, b)| a.min(b) * MAX_RESIZE_OF_FEW >= a.max(b) && a.min(b) > 0.0)
    };
    same_dates(a, b) && (a.len() >= MIN_SERIES || a.iter().zip(b).all(is_near))
}

/// Returns whether both are series of the same form in which all amounts differ by one ratio and all dates by about one shift.
fn is_resized_elsewhere(a: &[TrancheMark], b: &[TrancheMark]) -> bool {
    let shift =
        |(a, b): (&TrancheMark, &TrancheMark)| (b.place.1 - a.place.1, a.place.2.zip(b.place.2).map(|(from, to)| to - from));
    let ratio = |(a, b): (&TrancheMark, &TrancheMark)| a.amount.zip(b.amount).map(|(a, b)| b / a);
    let pairs = || a.iter().zip(b);
    let Some(((first, _), ratio_of_first)) = pairs().next().map(|pair| (shift(pair), ratio(pair))) else { return false };
    let is_like = |pair: (&TrancheMark, &TrancheMark)| {
        let (begin, end) = shift(pair);
        let is_shifted = |by: i64| (by - first).abs() <= SCATTER_MS;
        let has_ratio = matches!((ratio_of_first, ratio(pair)), (Some(a), Some(b)) if close(a, b, tolerances::RATIO));
        pair.0.place.0 == pair.1.place.0 && is_shifted(begin) && end.is_none_or(is_shifted) && has_ratio
    };
    a.len() == b.len() && a.len() >= MIN_SERIES && pairs().all(is_like)
}

/// Returns whether one is a series that begins like the other and ends earlier.
fn is_cut_short(a: &[TrancheMark], b: &[TrancheMark], tolerance: f64) -> bool {
    let shorter = a.len().min(b.len());
    let is_same = |(a, b): (&TrancheMark, &TrancheMark)| a.place == b.place && close_or_none(a.amount, b.amount, tolerance);
    shorter >= MIN_SERIES && a.len() != b.len() && a.iter().zip(b).all(is_same)
}

fn same_amounts(a: &[TrancheMark], b: &[TrancheMark], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.place.0 == b.place.0 && close_or_none(a.amount, b.amount, tolerance))
}

/// Returns a name without case, blanks, and punctuation, with `&` written as `and`.
fn plain(name: &str) -> String {
    name.replace('&', "and").chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
