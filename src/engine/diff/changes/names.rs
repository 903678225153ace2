//! Allocations with a new name or in a new category.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ChangeExplanation, Comparison, distinct,
    facts::{CATEGORY, RevisedFact, name_field},
};
use crate::diff::{
    count_of,
    index::{New, NewTranche},
    relisted::RelistedNames,
    timeline::{TranchePair, TrancheSet},
    tranche::{Tranche, TrancheForm},
};
use model::{
    change::{AllocationChange, ChangeKind, Fact, FieldChange},
    phrase::changes::{CategoryChange, ChangeClause},
};

/// The outcome of this step.
#[derive(Default)]
pub(super) struct Names {
    /// One change for all names and categories.
    pub(super) explanation: Option<ChangeExplanation>,
    /// Categories that changed in single events.
    pub(super) facts: Vec<RevisedFact>,
}

/// Names and categories that changed.
#[derive(Default)]
struct NameChanges<'a> {
    /// Pairs, and all tranches under a new name.
    tranches: TrancheSet,
    allocations: Vec<AllocationChange>,
    /// Old name, new name.
    renamed: Vec<(&'a str, &'a str)>,
    /// A clause for each set of allocations that are listed together or apart.
    relisted: Vec<ChangeClause>,
    /// The allocations of each old and new category.
    recategorized: BTreeMap<(&'a str, &'a str), Vec<&'a str>>,
}

pub(super) fn explain(compared: &Comparison<'_>) -> Names {
    let timeline = compared.timeline;
    let mut by_name: BTreeMap<(&str, &str), Vec<TranchePair>> = BTreeMap::new();
    for pair in &compared.links.pairs {
        by_name.entry((timeline.old[pair.old].name, timeline.new[pair.new].name)).or_default().push(*pair);
    }
    for (from, to) in &timeline.renames {
        by_name.entry((from, to)).or_default();
    }
    let (mut changed, mut facts) = (NameChanges::default(), Vec::new());
    for ((from, to), pairs) in &by_name {
        if timeline.relisted.iter().any(|one| one.contains(from, to)) {
            changed.tranches.pairs.extend(pairs);
            continue;
        }
        let is_renamed = from != to;
        match common_category(compared, pairs) {
            Some((was, is)) if !is_renamed => {
                changed.recategorized.entry((was, is)).or_default().push(to);
                changed.allocations.push(allocation_change(to, was, is, pairs.len()));
                changed.tranches.pairs.extend(pairs);
            }
            Some((was, is)) => facts.extend(pairs.iter().map(|pair| category_fact(compared, *pair, was, is))),
            None => facts.extend(pairs.iter().filter_map(|pair| {
                let (a, b) = (timeline.old[pair.old].category?, timeline.new[pair.new].category?);
                (a != b).then(|| category_fact(compared, *pair, a, b))
            })),
        }
        if is_renamed {
            changed.renamed.push((from, to));
            let all = tranches_of(compared, to);
            changed.allocations.push(allocation_change(to, from, to, all.len()));
            changed.tranches.pairs.extend(pairs);
            changed.tranches.unpaired_new.extend(all);
        }
    }
    for one in &timeline.relisted {
        for to in &one.to {
            let all = tranches_of(compared, to);
            changed.allocations.extend(one.from.iter().map(|from| allocation_change(to, from, to, all.len())));
            changed.tranches.unpaired_new.extend(all);
        }
        changed.relisted.push(relisted_clause(compared, one));
    }
    Names { explanation: changed.explanation(compared), facts }
}

/// Adds the former names of renamed allocations to each change that names one. The text of the first such change states the new name, unless
/// a change of names states it.
pub(super) fn add_former_names(compared: &Comparison<'_>, explanations: &mut [ChangeExplanation]) {
    let is_rename = |explanation: &ChangeExplanation| explanation.change.kind == ChangeKind::Renamed;
    let renamed = explanations.iter().filter(|explanation| is_rename(explanation));
    let mut stated: BTreeSet<String> = renamed.flat_map(new_names).collect();
    for explanation in explanations.iter_mut().filter(|explanation| !is_rename(explanation)) {
        let named: BTreeSet<&str> = explanation.change.allocations.iter().map(|allocation| allocation.name.as_str()).collect();
        let fields = compared.timeline.new_names().filter(|(_, to)| named.contains(to)).map(|(from, to)| name_field(from, to));
        let fields: Vec<FieldChange> = fields.collect();
        let renames = compared.timeline.renames.iter().filter(|(_, to)| named.contains(*to));
        let renames = renames.map(|(from, to)| ((*from).to_string(), (*to).to_string()));
        let names: Vec<(String, String)> = renames.filter(|(_, to)| stated.insert(to.clone())).collect();
        explanation.change.fields.extend(fields);
        if !names.is_empty() {
            explanation.clauses.push(ChangeClause::Renamed { names, categories: Vec::new(), amounts: Vec::new(), tranches: 0 });
        }
    }
}

/// Returns the new names of allocations that a change of names states.
fn new_names(explanation: &ChangeExplanation) -> impl Iterator<Item = String> {
    let allocations = explanation.change.allocations.iter();
    allocations.filter(|of| of.to.as_ref().and_then(Fact::text) == Some(&of.name)).map(|of| of.name.clone())
}

/// Returns the new tranches of an allocation.
fn tranches_of(compared: &Comparison<'_>, name: &str) -> Vec<NewTranche> {
    compared.timeline.new.indexed().filter(|(_, tranche)| tranche.name == name).map(|(j, _)| j).collect()
}

/// Returns the known tokens of an allocation after the change.
fn tokens_of(compared: &Comparison<'_>, name: &str) -> f64 {
    compared.timeline.new.iter().filter(|tranche| tranche.name == name).filter_map(|tranche| tranche.amount).sum()
}

/// Returns the clause about allocations that are listed together or apart, with their tokens before.
fn relisted_clause(compared: &Comparison<'_>, one: &RelistedNames<'_>) -> ChangeClause {
    let old = &compared.timeline.old;
    let of_series = |name: &str| old.iter().filter(|tranche| tranche.series == name).filter_map(|tranche| tranche.amount).sum();
    let from = one.from.iter().zip(&one.amounts).map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
    let to = one.to.iter().map(|name| ((*name).to_owned(), of_series(name))).collect();
    ChangeClause::AllocationsRelisted { from, to }
}

/// Returns the category before and after, if all tranches of an allocation changed from one to the other. Otherwise, the category is a
/// fact of single tranches.
fn common_category<'a>(compared: &Comparison<'a>, pairs: &[TranchePair]) -> Option<(&'a str, &'a str)> {
    let categories = |pair: &TranchePair| (compared.timeline.old[pair.old].category, compared.timeline.new[pair.new].category);
    let after = distinct(pairs.iter().map(categories).filter_map(|(a, b)| b.filter(|b| a.is_some_and(|a| a != *b))));
    let before = distinct(pairs.iter().filter_map(|pair| categories(pair).0));
    let all_changed = pairs.iter().map(categories).all(|(a, b)| a != b);
    match (&before[..], &after[..]) {
        ([was], [is]) if all_changed => Some((was, is)),
        _ => None,
    }
}

/// Returns the category of a tranche as a fact of its event.
fn category_fact(compared: &Comparison<'_>, pair: TranchePair, from: &str, to: &str) -> RevisedFact {
    RevisedFact::of(CATEGORY, from.into(), to.into(), compared.rows(pair))
}

fn allocation_change(name: &str, from: &str, to: &str, count: usize) -> AllocationChange {
    AllocationChange {
        name: name.to_owned(),
        from: Some(Fact::Text(from.to_owned())),
        to: Some(Fact::Text(to.to_owned())),
        count: count_of(count),
        ..AllocationChange::default()
    }
}

impl NameChanges<'_> {
    fn explanation(self, compared: &Comparison<'_>) -> Option<ChangeExplanation> {
        if self.tranches.is_empty() {
            return None;
        }
        let mut explanation = compared.explanation(ChangeKind::Renamed, &self.tranches);
        let change = &mut explanation.change;
        let counts: BTreeMap<&str, u32> =
            self.allocations.iter().map(|allocation| (allocation.name.as_str(), allocation.count)).collect();
        change.count = counts.values().sum();
        change.from = self.allocations.first().and_then(|allocation| allocation.from.clone());
        change.to = self.allocations.first().and_then(|allocation| allocation.to.clone());
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let category = |((from, to), allocations): (&(&str, &str), &Vec<&str>)| CategoryChange {
            allocations: owned(allocations),
            from: (*from).to_owned(),
            to: (*to).to_owned(),
        };
        explanation.clauses = self.relisted;
        if !self.renamed.is_empty() || !self.recategorized.is_empty() {
            let of_relisted: BTreeSet<&str> = compared.timeline.relisted.iter().flat_map(|one| one.to.iter().copied()).collect();
            let is_counted = |tranche: &&Tranche<'_, New>| {
                tranche.form == TrancheForm::Cliff && counts.contains_key(tranche.name) && !of_relisted.contains(tranche.name)
            };
            let tranches = compared.timeline.new.iter().filter(is_counted).count();
            explanation.clauses.push(ChangeClause::Renamed {
                names: self.renamed.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect(),
                categories: self.recategorized.iter().map(category).collect(),
                amounts: self.renamed.iter().map(|(_, to)| tokens_of(compared, to)).collect(),
                tranches,
            });
        }
        change.allocations = self.allocations;
        Some(explanation)
    }
}
