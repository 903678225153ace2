//! Amounts that a source now states with fewer digits.
//!
//! If the amounts of several allocations are rounded in one response, some gain about as many tokens as others lose, by chance. They are
//! reported as one change of amounts, not as transfers.

use std::collections::BTreeSet;

use super::{
    align::changed_ratio,
    link::Links,
    timeline::{Timeline, TranchePair},
    tolerances::{EXACT, close},
};

/// The significant digits of amounts that are rounded. Amounts with more digits are equal to exact ones.
const DIGITS: std::ops::RangeInclusive<i32> = 3..=5;

/// The minimum number of allocations that are rounded at once. Two may also have exchanged tokens.
const MIN_ALLOCATIONS: usize = 3;

/// Returns the changed tranches of all allocations that were only rounded, or none if these are few.
pub(super) fn rounded_pairs(links: &Links, timeline: &Timeline<'_>, tolerance: f64) -> BTreeSet<TranchePair> {
    let (old, new) = (&timeline.old, &timeline.new);
    let series = |pair: &TranchePair| old[pair.old].series;
    let is_changed = |pair: &TranchePair| changed_ratio(&old[pair.old], &new[pair.new], tolerance).is_some();
    let is_rounded = |pair: &TranchePair| {
        let (was, is) = (&old[pair.old], &new[pair.new]);
        was.at == is.at && was.end == is.end && matches!((was.amount, is.amount), (Some(from), Some(to)) if is_rounding(from, to))
    };
    let changed = links.pairs.iter().copied().filter(is_changed);
    let (mut rounded, others): (BTreeSet<TranchePair>, BTreeSet<TranchePair>) = changed.partition(is_rounded);
    let grouped = links.groups.iter().flat_map(|group| group.old.iter());
    let removed = links.removed.iter().chain(grouped).map(|i| old[*i].series);
    let otherwise: BTreeSet<&str> =
        others.iter().map(series).chain(removed).chain(links.added.iter().map(|j| new[*j].series)).collect();
    rounded.retain(|pair| !otherwise.contains(series(pair)));
    let allocations: BTreeSet<&str> = rounded.iter().map(series).collect();
    if allocations.len() >= MIN_ALLOCATIONS { rounded } else { BTreeSet::new() }
}

/// Returns whether `to` is `from` with fewer significant digits.
fn is_rounding(from: f64, to: f64) -> bool {
    DIGITS.into_iter().any(|digits| rounded(from, digits).is_some_and(|amount| close(amount, to, EXACT)))
}

/// Returns an amount with this number of significant digits. `None` for amounts without any.
fn rounded(amount: f64, digits: i32) -> Option<f64> {
    let magnitude = amount.abs().log10();
    let unit = magnitude.is_finite().then(|| 10_f64.powf(magnitude.floor() - f64::from(digits - 1)))?;
    Some((amount / unit).round() * unit)
}
