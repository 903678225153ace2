//! What keeps its total is not gone: allocations whose tranches add up as before, alone or together, whatever became of each tranche.
//!
//! Aligning tranches explains a shift, an exception, a tranche of another size. It cannot explain 24 monthly tranches that became 48,
//! or half of one allocation that now belongs to another: read tranche by tranche these are removals and additions. So after the
//! alignment each allocation is looked at as a whole. One that keeps its total, and of which single tranches came, went or changed
//! size, vests otherwise: all that differs is one [group](TrancheLinks::groups). Several that keep their total together gave to each
//! other: one [`Transfer`]. Neither needs proof of a removal, since nothing is gone.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{
    align::{TrancheGroup, TranchePair, changed_ratio},
    close,
    link::TrancheLinks,
    tranche::Tranche,
};

/// Totals are compared with at least this relative tolerance: sources round each tranche.
const TOTAL_TOLERANCE: f64 = 1e-6;
/// Allocations of which all combinations are tried for a transfer; of more, pairs only.
const MAX_COMBINED: usize = 12;
/// Allocations that take part in one transfer. Sums of more agree by chance.
const MAX_PARTNERS: usize = 6;

/// Tokens that went from some allocations to others, which keep their total together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Transfer {
    /// Tranches whose amount changed.
    pub(super) links: Vec<TranchePair>,
    /// Tranches that givers no longer have.
    pub(super) gone: Vec<usize>,
    /// Tranches that receivers did not have.
    pub(super) come: Vec<usize>,
}

/// The tranches of one allocation, by index.
#[derive(Default)]
struct AllocationTranches {
    old: Vec<usize>,
    new: Vec<usize>,
}

impl AllocationTranches {
    fn totals(&self, old: &[Tranche<'_>], new: &[Tranche<'_>]) -> Option<(f64, f64)> {
        let before: Option<f64> = self.old.iter().map(|i| old[*i].amount).sum();
        let after: Option<f64> = self.new.iter().map(|j| new[*j].amount).sum();
        Some((before?, after?))
    }

    /// The tranches that are the same in form, dates and amount, and those that are not.
    fn compare(&self, old: &[Tranche<'_>], new: &[Tranche<'_>], tolerance: f64) -> (Vec<TranchePair>, TrancheGroup) {
        let place = |t: &Tranche<'_>| (t.form, t.at, t.end);
        let amount = |t: &Tranche<'_>| t.amount.unwrap_or(f64::NEG_INFINITY);
        let sorted = |all: &[Tranche<'_>], of: &[usize]| {
            let mut of = of.to_vec();
            of.sort_by(|a, b| place(&all[*a]).cmp(&place(&all[*b])).then(amount(&all[*a]).total_cmp(&amount(&all[*b]))));
            of
        };
        let (from, to) = (sorted(old, &self.old), sorted(new, &self.new));
        let (mut pairs, mut rest) = (Vec::new(), TrancheGroup::default());
        let (mut from, mut to) = (from.into_iter().peekable(), to.into_iter().peekable());
        while let (Some(i), Some(j)) = (from.peek().copied(), to.peek().copied()) {
            let (a, b) = (&old[i], &new[j]);
            let is_same = place(a) == place(b) && close(amount(a), amount(b), tolerance);
            let is_first = (place(a), amount(a)) < (place(b), amount(b));
            if is_same || is_first {
                from.next();
            }
            if is_same || !is_first {
                to.next();
            }
            match (is_same, is_first) {
                (true, _) => pairs.push((i, j)),
                (false, true) => rest.0.push(i),
                (false, false) => rest.1.push(j),
            }
        }
        rest.0.extend(from);
        rest.1.extend(to);
        (pairs, rest)
    }
}

impl TrancheLinks {
    /// Explains what is conserved: by groups within an allocation, by transfers between allocations.
    pub(super) fn conserve(&mut self, old: &[Tranche<'_>], new: &[Tranche<'_>], tolerance: f64) {
        let untidy = self.untidy(old, new, tolerance);
        let mut allocations: BTreeMap<&str, AllocationTranches> = BTreeMap::new();
        for (i, tranche) in old.iter().enumerate().filter(|(_, tranche)| untidy.contains(tranche.series)) {
            allocations.entry(tranche.series).or_default().old.push(i);
        }
        for (j, tranche) in new.iter().enumerate().filter(|(_, tranche)| untidy.contains(tranche.series)) {
            allocations.entry(tranche.series).or_default().new.push(j);
        }
        let mut deltas: Vec<(&str, f64, f64)> = Vec::new();
        for (name, tranches) in &allocations {
            let Some((before, after)) = tranches.totals(old, new) else { continue };
            if !close(before, after, tolerance.max(TOTAL_TOLERANCE)) {
                deltas.push((name, after - before, before.max(after)));
                continue;
            }
            let (pairs, rest) = tranches.compare(old, new, tolerance);
            // What differs has to add up by itself: within a large total much could be called rounding.
            let sum = |all: &[Tranche<'_>], of: &[usize]| of.iter().filter_map(|k| all[*k].amount).sum::<f64>();
            let is_kept = close(sum(old, &rest.0), sum(new, &rest.1), tolerance.max(TOTAL_TOLERANCE));
            if before > 0.0 && is_kept && !rest.0.is_empty() && !rest.1.is_empty() {
                self.forget(tranches);
                self.pairs.extend(pairs);
                self.groups.push(rest);
            }
        }
        for partners in conserved_together(&deltas, tolerance.max(TOTAL_TOLERANCE)) {
            let is_partner = |name: &str| partners.contains(&name);
            let links: Vec<TranchePair> = self
                .pairs
                .iter()
                .copied()
                .filter(|(i, j)| is_partner(old[*i].series) && changed_ratio(&old[*i], &new[*j], tolerance).is_some())
                .collect();
            let mut transfer = Transfer { links, ..Transfer::default() };
            // Groups within a partner are no longer the whole story of it.
            self.groups.retain(|(from, to)| {
                let is_part = from.first().is_some_and(|i| is_partner(old[*i].series));
                if is_part {
                    transfer.gone.extend(from);
                    transfer.come.extend(to);
                }
                !is_part
            });
            self.gone.retain(|i| {
                !is_partner(old[*i].series) || {
                    transfer.gone.push(*i);
                    false
                }
            });
            self.come.retain(|j| {
                !is_partner(new[*j].series) || {
                    transfer.come.push(*j);
                    false
                }
            });
            self.transfers.push(transfer);
        }
    }

    /// Allocations of which a tranche came, is gone, or has another amount.
    fn untidy<'a>(&self, old: &[Tranche<'a>], new: &[Tranche<'a>], tolerance: f64) -> BTreeSet<&'a str> {
        let resized = self.pairs.iter().filter(|(i, j)| changed_ratio(&old[*i], &new[*j], tolerance).is_some());
        let resized = resized.map(|(i, _)| old[*i].series);
        let gone = self.gone.iter().map(|i| old[*i].series);
        resized.chain(gone).chain(self.come.iter().map(|j| new[*j].series)).collect()
    }

    /// Takes the tranches of an allocation out of every link.
    fn forget(&mut self, tranches: &AllocationTranches) {
        let (old, new): (HashSet<usize>, HashSet<usize>) =
            (tranches.old.iter().copied().collect(), tranches.new.iter().copied().collect());
        self.pairs.retain(|(i, _)| !old.contains(i));
        self.groups.retain(|(from, _)| !from.iter().any(|i| old.contains(i)));
        self.gone.retain(|i| !old.contains(i));
        self.come.retain(|j| !new.contains(j));
    }
}

/// Sets of allocations whose totals change, and whose common total does not: the smallest first, none in two sets.
fn conserved_together<'a>(deltas: &[(&'a str, f64, f64)], tolerance: f64) -> Vec<Vec<&'a str>> {
    let mut left: Vec<(&str, f64, f64)> = deltas.to_vec();
    let mut found = Vec::new();
    let mut size = 2;
    while size <= MAX_PARTNERS.min(left.len()) && (size == 2 || left.len() <= MAX_COMBINED) {
        match first_balanced(&left, size, tolerance) {
            Some(members) => {
                found.push(members.iter().map(|k| left[*k].0).collect());
                left = left.into_iter().enumerate().filter(|(k, _)| !members.contains(k)).map(|(_, one)| one).collect();
            }
            None => size += 1,
        }
    }
    found
}

/// The first `size` of the allocations, by index, that add up to nothing.
fn first_balanced(deltas: &[(&str, f64, f64)], size: usize, tolerance: f64) -> Option<Vec<usize>> {
    fn search(deltas: &[(&str, f64, f64)], from: usize, chosen: &mut Vec<usize>, size: usize, tolerance: f64) -> bool {
        if chosen.len() == size {
            let sum: f64 = chosen.iter().map(|k| deltas[*k].1).sum();
            let scale = chosen.iter().map(|k| deltas[*k].2).fold(0.0, f64::max);
            let least = chosen.iter().map(|k| deltas[*k].1.abs()).fold(f64::INFINITY, f64::min);
            // What remains is rounding, and no partner is so small that it could be left out.
            return sum.abs() <= tolerance * scale && sum.abs() < least / 100.0;
        }
        for k in from..deltas.len() {
            chosen.push(k);
            if search(deltas, k + 1, chosen, size, tolerance) {
                return true;
            }
            chosen.pop();
        }
        false
    }
    let mut chosen = Vec::with_capacity(size);
    search(deltas, 0, &mut chosen, size, tolerance).then_some(chosen)
}
