//! Allocations that carry another name now.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    close, close_or_none,
    tranche::{Tranche, TrancheForm},
};

/// Names up to which each gone name is compared with each new one.
const MAX_RENAME_CANDIDATES: usize = 200;

/// What a tranche is without its name: form, begin, end, amount.
type TrancheMark = (TrancheForm, i64, Option<i64>, Option<f64>);
type MarksByName<'a> = BTreeMap<&'a str, Vec<TrancheMark>>;

/// Totals are compared with at least this relative tolerance: sources round each tranche.
const TOTAL_TOLERANCE: f64 = 1e-6;

/// Finds allocations that carry another name: a name that is gone and one that is new, with the same tranches, with much the same
/// name and comparable tranches, or with the same total in the same category; and names that changed places.
pub(super) fn find_renames<'a>(old: &[Tranche<'a>], new: &[Tranche<'a>], tolerance: f64) -> BTreeMap<&'a str, &'a str> {
    let (before, after) = (by_name(old), by_name(new));
    let mut renames = BTreeMap::new();
    let gone: Vec<&str> = before.keys().copied().filter(|name| !after.contains_key(name) && !name.is_empty()).collect();
    let come: Vec<&str> = after.keys().copied().filter(|name| !before.contains_key(name) && !name.is_empty()).collect();
    if gone.len() <= MAX_RENAME_CANDIDATES && come.len() <= MAX_RENAME_CANDIDATES {
        let mut candidates = Vec::new();
        for from in &gone {
            for to in &come {
                let likeness = likeness(from, to, &before[from], &after[to], tolerance).or_else(|| {
                    is_successor(&before[from], &after[to]).then_some(0.0).filter(|_| shares_category(old, from, new, to))
                });
                candidates.extend(likeness.map(|score| (score, *from, *to)));
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)).then(a.2.cmp(b.2)));
        let mut taken = BTreeSet::new();
        for (_, from, to) in candidates {
            if !renames.contains_key(from) && taken.insert(to) {
                renames.insert(from, to);
            }
        }
    }
    renames.extend(swapped_names(&before, &after, tolerance));
    renames
}

/// Two names that changed places.
fn swapped_names<'a>(before: &MarksByName<'a>, after: &MarksByName<'a>, tolerance: f64) -> Vec<(&'a str, &'a str)> {
    let mut swapped = Vec::new();
    let both: Vec<&str> = before.keys().copied().filter(|name| after.contains_key(name)).collect();
    if both.len() > MAX_RENAME_CANDIDATES {
        return swapped;
    }
    let same = |a: &[TrancheMark], b: &[TrancheMark]| same_dates(a, b) && same_amounts(a, b, tolerance);
    for (k, one) in both.iter().enumerate() {
        if same(&before[one], &after[one]) {
            continue;
        }
        for other in both.iter().skip(k + 1) {
            if same(&before[one], &after[other]) && same(&before[other], &after[one]) {
                swapped.push((*one, *other));
                swapped.push((*other, *one));
            }
        }
    }
    swapped
}

/// How likely a name became another, where that is likely at all.
fn likeness(from: &str, to: &str, before: &[TrancheMark], after: &[TrancheMark], tolerance: f64) -> Option<f64> {
    let (plain_from, plain_to) = (plain(from), plain(to));
    let likeness = strsim::jaro_winkler(&plain_from, &plain_to);
    let (dates, amounts) = (same_dates(before, after), same_amounts(before, after, tolerance));
    let spelled_alike = plain_from == plain_to;
    let contained =
        plain_from.len() >= 4 && plain_to.len() >= 4 && (plain_from.contains(&plain_to) || plain_to.contains(&plain_from));
    // Some of its tranches may have come or gone at the same time.
    let mostly = common(before, after, tolerance) * 2 > before.len().max(after.len());
    let likely = (dates && amounts)
        || spelled_alike
        || mostly
        || (dates && (likeness >= 0.8 || contained))
        || (amounts && likeness >= 0.8);
    likely.then(|| likeness + f64::from(u8::from(dates && amounts)) * 2.0 + f64::from(u8::from(spelled_alike)) * 2.0)
}

/// How many tranches both have, dates and amounts alike. Both are in the order of their dates and amounts.
fn common(a: &[TrancheMark], b: &[TrancheMark], tolerance: f64) -> usize {
    let place = |mark: &TrancheMark| (mark.0, mark.1, mark.2);
    let (mut i, mut j, mut found) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        match place(x).cmp(&place(y)) {
            _ if place(x) == place(y) && close_or_none(x.3, y.3, tolerance) => (i, j, found) = (i + 1, j + 1, found + 1),
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal if x.3 < y.3 => i += 1,
            std::cmp::Ordering::Equal => j += 1,
        }
    }
    found
}

/// Whether all of one is all of the other, in other tranches.
fn is_successor(before: &[TrancheMark], after: &[TrancheMark]) -> bool {
    let total = |marks: &[TrancheMark]| marks.iter().map(|mark| mark.3).sum::<Option<f64>>();
    matches!((total(before), total(after)), (Some(a), Some(b)) if a > 0.0 && close(a, b, TOTAL_TOLERANCE))
}

/// Whether both names stand for recipients of one category.
fn shares_category(old: &[Tranche<'_>], from: &str, new: &[Tranche<'_>], to: &str) -> bool {
    let category =
        |all: &[Tranche<'_>], name: &str| all.iter().find(|t| t.name == name).and_then(|t| t.standard.map(str::to_owned));
    category(old, from).is_some_and(|was| category(new, to).is_some_and(|is| was == is))
}

fn by_name<'a>(all: &[Tranche<'a>]) -> MarksByName<'a> {
    let mut by_name = MarksByName::new();
    for t in all {
        by_name.entry(t.name).or_default().push((t.form, t.at, t.end, t.amount));
    }
    let amount = |t: &TrancheMark| t.3.unwrap_or(f64::NEG_INFINITY);
    for tranches in by_name.values_mut() {
        tranches.sort_by(|a, b| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)).then(amount(a).total_cmp(&amount(b))));
    }
    by_name
}

fn same_dates(a: &[TrancheMark], b: &[TrancheMark]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a.0, a.1, a.2) == (b.0, b.1, b.2))
}

fn same_amounts(a: &[TrancheMark], b: &[TrancheMark], tolerance: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && close_or_none(a.3, b.3, tolerance))
}

/// A name without case, blanks and punctuation, `&` read as `and`.
fn plain(name: &str) -> String {
    name.replace('&', "and").chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
