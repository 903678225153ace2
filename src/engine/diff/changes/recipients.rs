//! Tokens that go to other recipients, while the total stays.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ChangeExplanation, Comparison,
    amounts::{allocation_changes, explained_totals},
    known_sum,
    tranche_facts::tranches_change,
};
use crate::diff::{
    align::changed_ratio,
    index::{NewTranche, OldRow, OldTranche},
    ratio_of,
    timeline::{TranchePair, TrancheSet},
    tolerances::{self, MIN_SERIES, close},
    tranche::TrancheForm,
};
use model::{
    change::{AllocationChange, ChangeKind, Fact},
    phrase::changes::ChangeClause,
};

/// The outcome of this step.
pub(super) struct Recipients {
    pub(super) explanation: Option<ChangeExplanation>,
    /// Resized, removed, and added tranches that have another explanation.
    pub(super) remaining: TrancheSet,
}

/// Explains tokens that went from one allocation to another.
pub(super) fn explain_transfers(compared: &Comparison<'_>) -> Option<ChangeExplanation> {
    let transfers = &compared.links.transfers;
    (!transfers.is_empty()).then(|| reallocated(compared, transfers))
}

/// Explains events with the same total and other recipients.
pub(super) fn explain(compared: &Comparison<'_>) -> Recipients {
    let (timeline, links) = (compared.timeline, compared.links);
    let mut by_event: BTreeMap<(OldRow, TrancheForm), TrancheSet> = BTreeMap::new();
    let resized: Vec<TranchePair> = links.pairs.iter().copied().filter(|pair| compared.is_resized(*pair)).collect();
    for pair in resized.iter().filter(|pair| !links.rounded.contains(pair)) {
        let (old, new) = (&timeline.old[pair.old], &timeline.new[pair.new]);
        if compared.new_of_old[old.row] == Some(new.row) {
            by_event.entry((old.row, old.form)).or_default().pairs.push(*pair);
        }
    }
    for i in &links.removed {
        let old = &timeline.old[*i];
        by_event.entry((old.row, old.form)).or_default().unpaired_old.push(*i);
    }
    for j in &links.added {
        let new = &timeline.new[*j];
        if let Some(row) = compared.old_of_new[new.row] {
            by_event.entry((row, new.form)).or_default().unpaired_new.push(*j);
        }
    }
    let is_balanced = |row: OldRow, tranches: &TrancheSet| {
        compared.new_of_old[row].is_some() && tranches.len() >= 2 && keeps_total(compared, tranches)
    };
    let balanced: Vec<TrancheSet> =
        by_event.into_iter().filter(|((row, _), tranches)| is_balanced(*row, tranches)).map(|(_, tranches)| tranches).collect();
    let is_rescaled = rescaled_elsewhere(compared, &resized, &balanced);
    let mut moved = TrancheSet::default();
    balanced.into_iter().filter(|tranches| !tranches.pairs.iter().any(&is_rescaled)).for_each(|tranches| moved.append(tranches));
    let pairs: BTreeSet<TranchePair> = moved.pairs.iter().copied().collect();
    let old: BTreeSet<OldTranche> = moved.unpaired_old.iter().copied().collect();
    let new: BTreeSet<NewTranche> = moved.unpaired_new.iter().copied().collect();
    let remaining = TrancheSet {
        pairs: resized.iter().copied().filter(|pair| !pairs.contains(pair)).collect(),
        unpaired_old: links.removed.iter().copied().filter(|i| !old.contains(i)).collect(),
        unpaired_new: links.added.iter().copied().filter(|j| !new.contains(j)).collect(),
    };
    Recipients { explanation: (!moved.is_empty()).then(|| reallocated(compared, &[moved])), remaining }
}

/// Returns a function that tells whether a pair is one of a series that changed by one ratio, most of it in other events than the balanced
/// ones. Then other tokens make up for it on some dates by chance.
fn rescaled_elsewhere<'c>(
    compared: &'c Comparison<'_>,
    resized: &'c [TranchePair],
    balanced: &[TrancheSet],
) -> impl Fn(&TranchePair) -> bool + use<'c> {
    let of_balanced: BTreeSet<TranchePair> = balanced.iter().flat_map(|tranches| tranches.pairs.iter().copied()).collect();
    let ratio = |pair: &TranchePair| {
        let (old, new) = (&compared.timeline.old[pair.old], &compared.timeline.new[pair.new]);
        changed_ratio(old, new, compared.tolerance).map(|ratio| (new.series, ratio))
    };
    let ratios: Vec<(TranchePair, (&str, f64))> = resized.iter().filter_map(|pair| Some((*pair, ratio(pair)?))).collect();
    move |pair| {
        let Some((_, (series, of_pair))) = ratios.iter().find(|(other, _)| other == pair) else { return false };
        let alike = ratios.iter().filter(|(_, (name, other))| name == series && close(*other, *of_pair, tolerances::RATIO));
        let is_inside: Vec<bool> = alike.map(|(other, _)| of_balanced.contains(other)).collect();
        let inside = is_inside.iter().filter(|is_inside| **is_inside).count();
        let outside = is_inside.len() - inside;
        outside >= MIN_SERIES && outside > inside
    }
}

/// Returns whether all amounts are known, and add up to the same before and after.
fn keeps_total(compared: &Comparison<'_>, tranches: &TrancheSet) -> bool {
    let before: Option<f64> = tranches.all_old().into_iter().map(|i| compared.timeline.old[i].amount).sum();
    let after: Option<f64> = tranches.all_new().into_iter().map(|j| compared.timeline.new[j].amount).sum();
    matches!((before, after), (Some(a), Some(b)) if a > 0.0 && close(a, b, tolerances::of_totals(compared.tolerance)))
}

/// Returns one change for several transfers, with a clause for each.
fn reallocated(compared: &Comparison<'_>, transfers: &[TrancheSet]) -> ChangeExplanation {
    let mut tranches = TrancheSet::default();
    transfers.iter().for_each(|transfer| tranches.append(transfer.clone()));
    let mut explanation = compared.explanation(ChangeKind::Reallocated, &tranches);
    let before = known_sum(explanation.old.iter().filter_map(|row| compared.old_total(*row, None)));
    let after = known_sum(explanation.new.iter().filter_map(|row| compared.new_total(*row, None)));
    let (from, to) = explained_totals(compared, &tranches, (before, after));
    let change = &mut explanation.change;
    change.allocations = allocation_changes(compared, &tranches);
    change.from = from.map(Fact::Amount);
    change.to = to.map(Fact::Amount);
    change.ratio = ratio_of(from, to);
    change.amount = Some(received(&change.allocations));
    explanation.clauses = transfers.iter().map(|transfer| transfer_clause(compared, transfer)).collect();
    explanation.subject = compared.single_event(&explanation);
    explanation
}

/// Returns the tokens that an allocation has more than before.
fn growth(allocation: &AllocationChange) -> f64 {
    let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount).unwrap_or(0.0);
    amount(&allocation.to) - amount(&allocation.from)
}

fn received(allocations: &[AllocationChange]) -> f64 {
    allocations.iter().map(growth).filter(|growth| *growth > 0.0).sum()
}

fn transfer_clause(compared: &Comparison<'_>, transfer: &TrancheSet) -> ChangeClause {
    let allocations = allocation_changes(compared, transfer);
    let shares = |is_side: fn(f64) -> bool| -> Vec<(String, f64)> {
        let side = allocations.iter().filter(|allocation| is_side(growth(allocation)));
        side.map(|allocation| (allocation.name.clone(), growth(allocation).abs())).collect()
    };
    let is_paired = transfer.unpaired_old.is_empty() && transfer.unpaired_new.is_empty();
    ChangeClause::Reallocated {
        amount: received(&allocations),
        from: shares(|growth| growth < 0.0),
        to: shares(|growth| growth > 0.0),
        tranches: (!is_paired).then(|| tranches_change(compared, &transfer.all_old(), &transfer.all_new())),
    }
}
