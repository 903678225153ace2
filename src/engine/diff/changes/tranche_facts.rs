//! Facts of tranches for [`model::phrase::changes`], which writes the sentences.

use super::Comparison;
use crate::diff::{
    index::{New, NewTranche, Old, OldTranche, Side, TrancheIndex},
    tranche::{Tranche, TrancheForm, Tranches},
};
use model::phrase::changes::{DateChange, TrancheFacts, TranchesChange};

pub(super) fn tranche_facts<S: Side>(all: &Tranches<'_, S>, of: &[TrancheIndex<S>]) -> Vec<TrancheFacts> {
    of.iter().map(|index| facts(&all[*index])).collect()
}

pub(super) fn tranches_change(compared: &Comparison<'_>, old: &[OldTranche], new: &[NewTranche]) -> TranchesChange {
    let timeline = compared.timeline;
    TranchesChange { before: tranche_facts(&timeline.old, old), after: tranche_facts(&timeline.new, new) }
}

pub(super) fn date_change(from: &Tranche<'_, Old>, to: &Tranche<'_, New>) -> DateChange {
    DateChange { from: (from.dated(), from.precision()), to: (to.dated(), to.precision()) }
}

pub(super) fn facts<S>(tranche: &Tranche<'_, S>) -> TrancheFacts {
    TrancheFacts {
        allocation: tranche.name.to_owned(),
        amount: tranche.amount,
        at: tranche.dated(),
        end: tranche.end_time(),
        precision: tranche.precision(),
        is_linear: tranche.form == TrancheForm::Linear,
    }
}
