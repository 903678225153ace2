//! Joins equal explanations of different tranches, so that a correction takes as few changes as possible.

use super::{
    ChangeExplanation, MAX_EXPLANATIONS, MAX_SINGLE_EVENTS, are_few, are_independent,
    facts::{RevisedFact, name_field},
};
use crate::diff::ratio_of;
use model::change::{Change, ChangeKind, Fact};

/// The outcome of this step.
pub(super) struct Joined {
    pub(super) explanations: Vec<ChangeExplanation>,
    /// New names of allocations that are part of another change.
    pub(super) facts: Vec<RevisedFact>,
}

/// Makes new names a part of the other changes if there are too many changes, or joins changes of one kind, or both.
pub(super) fn join(explanations: Vec<ChangeExplanation>) -> Joined {
    let are_single = explanations.len() <= MAX_SINGLE_EVENTS && are_independent(&explanations);
    if explanations.len() <= MAX_EXPLANATIONS || are_single {
        return Joined { explanations, facts: Vec::new() };
    }
    let Joined { explanations, facts } = join_names(explanations);
    if explanations.len() <= MAX_EXPLANATIONS || are_few(&explanations) && !has_like(&explanations) {
        return Joined { explanations, facts };
    }
    let joined = join_kinds(explanations);
    if facts.is_empty() && !are_few(&joined) { join_names(joined) } else { Joined { explanations: joined, facts } }
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

/// Turns a rename into facts, if other changes name all its allocations by their new names.
fn join_names(mut explanations: Vec<ChangeExplanation>) -> Joined {
    let is_rename = |explanation: &ChangeExplanation| explanation.change.kind == ChangeKind::Renamed;
    let is_named_elsewhere = |name: &str| {
        let others = explanations.iter().filter(|explanation| !is_rename(explanation));
        others.flat_map(|explanation| &explanation.change.allocations).any(|allocation| allocation.name == name)
    };
    let is_part = |explanation: &ChangeExplanation| {
        explanation.change.allocations.iter().all(|allocation| is_named_elsewhere(&allocation.name))
    };
    let rename = explanations.iter().position(is_rename).filter(|k| explanations.get(*k).is_some_and(is_part));
    let Some(rename) = rename.map(|k| explanations.remove(k)) else {
        return Joined { explanations, facts: Vec::new() };
    };
    let rows = rename.old.first().copied().zip(rename.new.first().copied());
    let text = |fact: Option<Fact>| fact.and_then(|fact| fact.text().map(str::to_owned)).unwrap_or_default();
    let renamed = rename.change.allocations.into_iter().map(|allocation| (text(allocation.from), text(allocation.to)));
    let fact = |(from, to): (String, String)| {
        let (old, new) = rows?;
        let field = name_field(&from, &to);
        Some(RevisedFact { field, old, new, is_of_token: true, redated: None })
    };
    Joined { facts: renamed.filter_map(fact).collect(), explanations }
}

/// Adds a change of the same kind.
fn append(explanation: &mut ChangeExplanation, other: ChangeExplanation) {
    let (into, from): (&mut Change, Change) = (&mut explanation.change, other.change);
    explanation.subject = None;
    explanation.old.extend(other.old);
    explanation.new.extend(other.new);
    explanation.clauses.extend(other.clauses);
    into.count = into.count.saturating_add(from.count);
    into.amount = into.amount.zip(from.amount).map(|(a, b)| a + b);
    let sum = |a: &Option<Fact>, b: &Option<Fact>| Some(Fact::Amount(a.as_ref()?.amount()? + b.as_ref()?.amount()?));
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
