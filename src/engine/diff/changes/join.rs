//! Joins equal explanations of different tranches, so that a correction takes as few changes as possible.

use super::{ChangeExplanation, MAX_EXPLANATIONS, MAX_SINGLE_EVENTS, are_few, are_independent, facts::RevisedFact};
use crate::diff::ratio_of;
use model::change::{AllocationChange, Change, ChangeKind, Fact};

/// The outcome of this step.
pub(super) struct Joined {
    pub(super) explanations: Vec<ChangeExplanation>,
    /// New categories of allocations that are part of another change.
    pub(super) facts: Vec<RevisedFact>,
}

/// Makes the new name of one allocation a part of another change that is about all of it. If there are too many changes, does so with several
/// new names, joins changes of one kind, or makes new names a part of changes that are about some of the renamed allocations.
pub(super) fn join(explanations: Vec<ChangeExplanation>) -> Joined {
    let are_single = explanations.len() <= MAX_SINGLE_EVENTS && are_independent(&explanations);
    let are_short = explanations.len() <= MAX_EXPLANATIONS || are_single;
    // A sentence about something else is no place for several names.
    if are_short && explanations.iter().any(renames_several) {
        return Joined { explanations, facts: Vec::new() };
    }
    let Joined { explanations, mut facts } = join_names(explanations, Share::Whole);
    if are_short {
        return Joined { explanations, facts };
    }
    if explanations.len() <= MAX_EXPLANATIONS || are_few(&explanations) && !has_like(&explanations) {
        return Joined { explanations, facts };
    }
    let joined = join_kinds(explanations);
    if are_few(&joined) {
        return Joined { explanations: joined, facts };
    }
    let without_names = join_names(joined, Share::Any);
    facts.extend(without_names.facts);
    Joined { explanations: without_names.explanations, facts }
}

fn renames_several(explanation: &ChangeExplanation) -> bool {
    explanation.change.kind == ChangeKind::Renamed && explanation.change.allocations.len() > 1
}

/// The share of a renamed allocation that other changes must be about to take in its new name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    /// All of its tranches: the name came with that change.
    Whole,
    /// Any of its tranches.
    Any,
}

/// Returns whether two changes say the same about different allocations: moved or resized in the same direction by about as much.
fn has_like(explanations: &[ChangeExplanation]) -> bool {
    let is_like = |a: &Change, b: &Change| {
        a.kind == b.kind
            && match a.kind {
                ChangeKind::Rescheduled => are_close(a.shift_days, b.shift_days),
                ChangeKind::Resized => are_close(a.ratio.map(f64::ln), b.ratio.map(f64::ln)),
                kind => can_join(kind),
            }
    };
    let changes = || explanations.iter().map(|explanation| &explanation.change);
    changes().enumerate().any(|(k, one)| changes().skip(k + 1).any(|other| is_like(one, other)))
}

/// Returns whether two numbers have the same sign and differ by at most a quarter, or one of them is unknown.
fn are_close(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).is_none_or(|(a, b)| a.signum() == b.signum() && (a - b).abs() <= a.abs().max(b.abs()) / 4.0)
}

fn can_join(kind: ChangeKind) -> bool {
    matches!(kind, ChangeKind::Rescheduled | ChangeKind::Resized | ChangeKind::Restructured)
}

fn join_kinds(explanations: Vec<ChangeExplanation>) -> Vec<ChangeExplanation> {
    let mut joined: Vec<ChangeExplanation> = Vec::with_capacity(explanations.len());
    for explanation in explanations {
        let kind = explanation.change.kind;
        match joined.iter_mut().find(|other| can_join(kind) && other.change.kind == kind) {
            Some(other) => append(other, explanation),
            None => joined.push(explanation),
        }
    }
    joined
}

/// Leaves new names and categories to the other changes, if these are about all its allocations. A new category becomes a fact of them; a
/// new name is part of them already.
fn join_names(mut explanations: Vec<ChangeExplanation>, share: Share) -> Joined {
    let is_rename = |explanation: &ChangeExplanation| explanation.change.kind == ChangeKind::Renamed;
    let count_elsewhere = |name: &str| -> u32 {
        let others = explanations.iter().filter(|explanation| !is_rename(explanation));
        let same = others.flat_map(|explanation| &explanation.change.allocations).filter(|allocation| allocation.name == name);
        same.map(|allocation| allocation.count).fold(0, u32::saturating_add)
    };
    let is_part = |explanation: &ChangeExplanation| {
        explanation
            .change
            .allocations
            .iter()
            .all(|allocation| count_elsewhere(&allocation.name) >= if share == Share::Whole { allocation.count } else { 1 })
    };
    let rename = explanations.iter().position(is_rename).filter(|k| explanations.get(*k).is_some_and(is_part));
    let Some(rename) = rename.map(|k| explanations.remove(k)) else {
        return Joined { explanations, facts: Vec::new() };
    };
    let rows = rename.old.first().copied().zip(rename.new.first().copied());
    let fact = |allocation: AllocationChange| {
        let (Some(Fact::Text(from)), Some(Fact::Text(to))) = (allocation.from, allocation.to) else { return None };
        (to != allocation.name).then_some(RevisedFact::of_category(allocation.name, &from, &to, rows?))
    };
    Joined { facts: rename.change.allocations.into_iter().filter_map(fact).collect(), explanations }
}

/// Adds a change of the same kind.
fn append(explanation: &mut ChangeExplanation, other: ChangeExplanation) {
    let (into, from): (&mut Change, Change) = (&mut explanation.change, other.change);
    explanation.subject = None;
    explanation.old.extend(other.old);
    explanation.new.extend(other.new);
    explanation.tranches.0.extend(other.tranches.0);
    explanation.tranches.1.extend(other.tranches.1);
    explanation.clauses.extend(other.clauses);
    into.count = into.count.saturating_add(from.count);
    into.amount = into.amount.zip(from.amount).map(|(a, b)| a + b);
    let sum = |a: &Option<Fact>, b: &Option<Fact>| Some(Fact::Amount(a.as_ref()?.amount()? + b.as_ref()?.amount()?));
    // The schedules of a part of the change would be false for all of it.
    (into.before, into.after) = (None, None);
    if into.kind == ChangeKind::Resized {
        (into.from, into.to) = (sum(&into.from, &from.from), sum(&into.to, &from.to));
        let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount);
        into.ratio = ratio_of(amount(&into.from), amount(&into.to));
    }
    if into.kind == ChangeKind::Rescheduled {
        let least = |change: &Change| change.shift_days_min.or(change.shift_days);
        let most = |change: &Change| change.shift_days_max.or(change.shift_days);
        let (low, high) =
            (least(into).zip(least(&from)).map(|(a, b)| a.min(b)), most(into).zip(most(&from)).map(|(a, b)| a.max(b)));
        if from.from.as_ref().and_then(Fact::time) < into.from.as_ref().and_then(Fact::time) {
            (into.from, into.to, into.shift_days) = (from.from, from.to, from.shift_days);
        }
        (into.shift_days_min, into.shift_days_max) = (low, high);
    }
    for allocation in from.allocations {
        match into.allocations.iter_mut().find(|known| known.name == allocation.name) {
            Some(known) => {
                known.count = known.count.saturating_add(allocation.count);
                if into.kind != ChangeKind::Rescheduled {
                    (known.from, known.to) = (sum(&known.from, &allocation.from), sum(&known.to, &allocation.to));
                    known.ratio = ratio_of(known.from.as_ref().and_then(Fact::amount), known.to.as_ref().and_then(Fact::amount));
                }
            }
            None => into.allocations.push(allocation),
        }
    }
}
