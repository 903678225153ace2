//! Finds allocations that are listed together under one new name, or one that is listed apart under several.
//!
//! Date by date, the parts add up to the whole on most dates. So the other dates may have changed at the same time, and the change can
//! still be separated from the new names: the old tranches are listed as the new ones are, and then compared.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    allocation_renames::{MAX_RENAME_CANDIDATES, MarksByName, TrancheMark},
    index::{New, Old},
    tolerances::{self, MIN_SERIES, close},
    tranche::{Tranche, TrancheForm, Tranches},
};

/// The maximum number of parts of which all combinations are tried. Of more, only all together, all but one, and each alone are tried.
const MAX_COMBINED_PARTS: usize = 6;

/// The maximum number of parts of which one may be left out. Of more, only all together are tried, which bounds the work.
const MAX_PARTS_WITH_REST: usize = 20;

/// The form, the begin, and the end of a tranche.
type TranchePlace = (TrancheForm, i64, Option<i64>);

/// Names that stand for the same tokens: several old ones for a new one, or an old one for several new ones.
#[derive(Clone, Debug)]
pub(super) struct RelistedNames<'a> {
    pub(super) from: Vec<&'a str>,
    pub(super) to: Vec<&'a str>,
    /// The tokens of each old name.
    pub(super) amounts: Vec<f64>,
    /// The share of each new name in the tokens of the old one. `None` if it differs between dates.
    shares: Option<Vec<f64>>,
}

impl RelistedNames<'_> {
    pub(super) fn contains(&self, from: &str, to: &str) -> bool {
        self.from.contains(&from) && self.to.contains(&to)
    }
}

/// Parts of a whole, with the number of dates on which they add up to it.
struct PartsOfWhole<'a> {
    names: Vec<&'a str>,
    matched: usize,
    /// The number of dates that the parts have together.
    dates: usize,
    shares: Option<Vec<f64>>,
}

impl PartsOfWhole<'_> {
    /// Returns a value that is larger for better explanations: more dates that match, and fewer others and fewer names.
    fn fit(&self) -> (usize, std::cmp::Reverse<(usize, usize)>) {
        (self.matched, std::cmp::Reverse((self.dates, self.names.len())))
    }
}

/// Finds names that are listed together or apart. Each name belongs to at most one of the results.
pub(super) fn find_relisted<'a>(before: &MarksByName<'a>, after: &MarksByName<'a>, tolerance: f64) -> Vec<RelistedNames<'a>> {
    let of_one_side = |these: &MarksByName<'a>, those: &MarksByName<'a>| -> BTreeMap<&'a str, BTreeMap<TranchePlace, f64>> {
        let gone = these.iter().filter(|(name, _)| !name.is_empty() && !those.contains_key(*name));
        gone.filter_map(|(name, marks)| Some((*name, by_place(marks)?))).collect()
    };
    let (removed, added) = (of_one_side(before, after), of_one_side(after, before));
    if removed.len() > MAX_RENAME_CANDIDATES || added.len() > MAX_RENAME_CANDIDATES {
        return Vec::new();
    }
    let total = |name: &&str| removed.get(name).map_or(0.0, |part| part.values().sum());
    let names = |from: Vec<&'a str>, to: Vec<&'a str>, shares: Option<Vec<f64>>| {
        let amounts = from.iter().map(total).collect();
        RelistedNames { from, to, amounts, shares }
    };
    let mut found: Vec<(usize, RelistedNames<'a>)> = Vec::new();
    for (to, whole) in &added {
        let parts = parts_of(whole, &removed, tolerance);
        found.extend(parts.map(|parts| (parts.matched, names(parts.names, vec![*to], None))));
    }
    for (from, whole) in &removed {
        let is_divisible = |parts: &PartsOfWhole<'_>| parts.shares.is_some() || parts.matched == whole.len();
        let parts = parts_of(whole, &added, tolerance).filter(is_divisible);
        found.extend(parts.map(|parts| (parts.matched, names(vec![*from], parts.names, parts.shares))));
    }
    found.sort_by_key(|(matched, _)| std::cmp::Reverse(*matched));
    let (mut taken, mut relisted): (BTreeSet<&str>, Vec<RelistedNames<'a>>) = (BTreeSet::new(), Vec::new());
    for (_, one) in found {
        let names: Vec<&str> = one.from.iter().chain(&one.to).copied().collect();
        if names.iter().all(|name| !taken.contains(name)) {
            taken.extend(names);
            relisted.push(one);
        }
    }
    relisted
}

/// Returns the tokens of each place, or `None` if an amount is unknown.
fn by_place(marks: &[TrancheMark]) -> Option<BTreeMap<TranchePlace, f64>> {
    let mut sums = BTreeMap::new();
    for mark in marks {
        *sums.entry(mark.place).or_insert(0.0) += mark.amount?;
    }
    Some(sums)
}

/// Returns the candidates that add up to the whole, if no single one does so as well.
fn parts_of<'a>(
    whole: &BTreeMap<TranchePlace, f64>,
    all: &BTreeMap<&'a str, BTreeMap<TranchePlace, f64>>,
    tolerance: f64,
) -> Option<PartsOfWhole<'a>> {
    let shares_place = |part: &BTreeMap<TranchePlace, f64>| part.keys().any(|place| whole.contains_key(place));
    let candidates: Vec<(&'a str, &BTreeMap<TranchePlace, f64>)> =
        all.iter().filter(|(_, part)| shares_place(part)).map(|(name, part)| (*name, part)).collect();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    if candidates.len() <= MAX_COMBINED_PARTS {
        let members = |bits: usize| (0..candidates.len()).filter(|k| bits & (1 << k) != 0).collect::<Vec<_>>();
        sets.extend((1..1_usize << candidates.len()).map(members));
    } else {
        sets.push((0..candidates.len()).collect());
    }
    if (MAX_COMBINED_PARTS + 1..=MAX_PARTS_WITH_REST).contains(&candidates.len()) {
        sets.extend((0..candidates.len()).map(|left_out| (0..candidates.len()).filter(|k| *k != left_out).collect()));
        sets.extend((0..candidates.len()).map(|only| vec![only]));
    }
    let mut best: Option<PartsOfWhole<'a>> = None;
    for set in sets {
        let parts: Vec<_> = set.into_iter().filter_map(|k| candidates.get(k).copied()).collect();
        let Some(found) = added_up(whole, &parts, tolerance) else { continue };
        if best.as_ref().is_none_or(|best| found.fit() > best.fit()) {
            best = Some(found);
        }
    }
    best.filter(|best| best.names.len() > 1)
}

/// Returns some parts if they add up to the whole on most of its dates, or on several and have no other dates.
fn added_up<'a>(
    whole: &BTreeMap<TranchePlace, f64>,
    parts: &[(&'a str, &BTreeMap<TranchePlace, f64>)],
    tolerance: f64,
) -> Option<PartsOfWhole<'a>> {
    let tolerance = tolerances::of_totals(tolerance);
    let places: BTreeSet<TranchePlace> = parts.iter().flat_map(|(_, part)| part.keys().copied()).collect();
    let sum = |place: &TranchePlace| parts.iter().filter_map(|(_, part)| part.get(place)).sum::<f64>();
    let matched: Vec<(&TranchePlace, f64)> = (whole.iter())
        .filter(|(place, amount)| places.contains(*place) && **amount > 0.0 && close(sum(place), **amount, tolerance))
        .map(|(place, amount)| (place, *amount))
        .collect();
    let has_same_places = places.len() == whole.len() && places.iter().all(|place| whole.contains_key(place));
    let is_found = matched.len() * 2 > places.len().max(whole.len()) || has_same_places && matched.len() >= MIN_SERIES;
    let are_all_parts =
        parts.iter().all(|(_, part)| matched.iter().any(|(place, _)| part.get(place).is_some_and(|of| *of > 0.0)));
    if !is_found || !are_all_parts {
        return None;
    }
    let total: f64 = matched.iter().map(|(_, amount)| amount).sum();
    let of_part = |part: &BTreeMap<TranchePlace, f64>, place: &TranchePlace| part.get(place).copied().unwrap_or(0.0);
    let share = |part: &BTreeMap<TranchePlace, f64>| {
        let share = matched.iter().map(|(place, _)| of_part(part, place)).sum::<f64>() / total;
        let is_constant = |(place, amount): &(&TranchePlace, f64)| close(of_part(part, place), amount * share, tolerances::RATIO);
        matched.iter().all(is_constant).then_some(share)
    };
    let shares = parts.iter().map(|(_, part)| share(part)).collect();
    Some(PartsOfWhole {
        names: parts.iter().map(|(name, _)| *name).collect(),
        matched: matched.len(),
        dates: places.len(),
        shares,
    })
}

fn place_of<S>(tranche: &Tranche<'_, S>) -> TranchePlace {
    (tranche.form, tranche.at, tranche.end)
}

/// Lists the old tranches as the new ones are listed: tranches of several names as one, or of one name apart.
pub(super) fn relist<'a>(old: Tranches<'a, Old>, new: &Tranches<'a, New>, relisted: &[RelistedNames<'a>]) -> Tranches<'a, Old> {
    if relisted.is_empty() {
        return old;
    }
    let mut listed: HashMap<(&str, TranchePlace), (usize, f64)> = HashMap::new();
    for tranche in new.iter() {
        let (count, sum) = listed.entry((tranche.name, place_of(tranche))).or_default();
        *count += 1;
        *sum += tranche.amount.unwrap_or(0.0);
    }
    let mut tranches: Vec<Tranche<'a, Old>> = Vec::with_capacity(old.len());
    for mut tranche in old.into_vec() {
        let Some(one) = relisted.iter().find(|one| one.from.contains(&tranche.name)) else {
            tranches.push(tranche);
            continue;
        };
        let place = place_of(&tranche);
        if let [to] = one.to[..] {
            tranche.series = to;
            let is_one = listed.get(&(to, place)).is_none_or(|(count, _)| *count <= 1);
            let is_same = |other: &&mut Tranche<'a, Old>| {
                is_one && other.row == tranche.row && other.series == to && place_of(other) == place
            };
            match tranches.iter_mut().rev().take_while(|other| other.row == tranche.row).find(is_same) {
                Some(other) => join(other, &tranche),
                None => tranches.push(tranche),
            }
            continue;
        }
        let listed_amounts: Vec<f64> =
            one.to.iter().map(|to| listed.get(&(*to, place)).map_or(0.0, |(_, amount)| *amount)).collect();
        let amount = tranche.amount.unwrap_or(0.0);
        let amounts = match &one.shares {
            _ if close(listed_amounts.iter().sum(), amount, tolerances::TOTAL) => listed_amounts,
            Some(shares) => shares.iter().map(|share| share * amount).collect(),
            // Another tranche on the same date has the rest.
            None => one.to.iter().enumerate().map(|(k, _)| if k == 0 { amount } else { 0.0 }).collect(),
        };
        let parts = one.to.iter().zip(amounts).filter(|(_, amount)| *amount > 0.0);
        tranches.extend(parts.map(|(to, amount)| Tranche { series: to, amount: Some(amount), ..tranche.clone() }));
    }
    tranches.into()
}

/// Adds a tranche of another name. What both do not share is not known of the sum.
fn join<'a>(tranche: &mut Tranche<'a, Old>, other: &Tranche<'a, Old>) {
    tranche.amount = tranche.amount.zip(other.amount).map(|(a, b)| a + b);
    tranche.category = tranche.category.filter(|category| other.category == Some(category));
    tranche.precision = tranche.precision.filter(|precision| other.precision == Some(precision));
    tranche.claim = tranche.claim.or(other.claim);
}
