//! Tokens that go to other recipients, while the total stays.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChangeExplanation, Comparison, amounts::allocation_changes, tranche_facts::tranches_change};
use crate::diff::{
    index::{NewTranche, OldRow, OldTranche},
    ratio_of,
    timeline::{TranchePair, TrancheSet},
    tolerances::{self, close},
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
    let mut moved = TrancheSet::default();
    for ((row, _), tranches) in by_event {
        if compared.new_of_old[row].is_some() && tranches.len() >= 2 && keeps_total(compared, &tranches) {
            moved.append(tranches);
        }
    }
    let pairs: BTreeSet<TranchePair> = moved.pairs.iter().copied().collect();
    let old: BTreeSet<OldTranche> = moved.unpaired_old.iter().copied().collect();
    let new: BTreeSet<NewTranche> = moved.unpaired_new.iter().copied().collect();
    let remaining = TrancheSet {
        pairs: resized.into_iter().filter(|pair| !pairs.contains(pair)).collect(),
        unpaired_old: links.removed.iter().copied().filter(|i| !old.contains(i)).collect(),
        unpaired_new: links.added.iter().copied().filter(|j| !new.contains(j)).collect(),
    };
    Recipients { explanation: (!moved.is_empty()).then(|| reallocated(compared, &[moved])), remaining }
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
    let from: f64 = explanation.old.iter().filter_map(|row| compared.old_total(*row, None)).sum();
    let to: f64 = explanation.new.iter().filter_map(|row| compared.new_total(*row, None)).sum();
    let change = &mut explanation.change;
    change.allocations = allocation_changes(compared, &tranches);
    change.from = Some(Fact::Amount(from));
    change.to = Some(Fact::Amount(to));
    change.ratio = ratio_of(Some(from), Some(to));
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
