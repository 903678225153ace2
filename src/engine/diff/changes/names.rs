//! Allocations under another name or in another category.

use std::collections::BTreeMap;

use super::{ChangeBuilder, ScheduleComparison, distinct, facts::RevisedFact};
use crate::diff::{align::TranchePair, count_of};
use model::{
    change::{AllocationChange, ChangeKind, Fact},
    format,
};

/// Names and categories that changed, while they are gathered.
#[derive(Default)]
struct NameChanges<'a> {
    /// Tranches concerned: those that are linked, and all under a new name.
    links: Vec<TranchePair>,
    under_new_name: Vec<usize>,
    parts: Vec<AllocationChange>,
    /// Old name, new name.
    renamed: Vec<(&'a str, &'a str)>,
    /// Old and new category, and the allocations that moved from the one to the other.
    recategorized: BTreeMap<(&'a str, &'a str), Vec<&'a str>>,
}

impl ChangeBuilder<'_> {
    /// Names and categories: one change for all of them.
    pub(super) fn names(&mut self) {
        let compared = self.compared;
        let mut by_name: BTreeMap<(&str, &str), Vec<TranchePair>> = BTreeMap::new();
        for (i, j) in &compared.links.pairs {
            by_name.entry((compared.old[*i].name, compared.new[*j].name)).or_default().push((*i, *j));
        }
        for (from, to) in &compared.links.renames {
            by_name.entry((from, to)).or_default();
        }
        let mut changed = NameChanges::default();
        for ((from, to), links) in &by_name {
            let is_renamed = from != to;
            match common_category(compared, links) {
                Some((was, is)) if !is_renamed => {
                    changed.recategorized.entry((was, is)).or_default().push(to);
                    changed.parts.push(part(to, was, is, links.len()));
                    changed.links.extend(links);
                }
                Some((was, is)) => self.fields.extend(links.iter().map(|link| category_fact(compared, *link, was, is))),
                None => self.fields.extend(links.iter().filter_map(|(i, j)| {
                    let (a, b) = (compared.old[*i].standard?, compared.new[*j].standard?);
                    (a != b).then(|| category_fact(compared, (*i, *j), a, b))
                })),
            }
            if is_renamed {
                changed.renamed.push((from, to));
                let all: Vec<usize> = (0..compared.new.len()).filter(|j| compared.new[*j].name == *to).collect();
                changed.parts.push(part(to, from, to, all.len()));
                changed.links.extend(links);
                changed.under_new_name.extend(all);
            }
        }
        if changed.links.is_empty() && changed.under_new_name.is_empty() {
            return;
        }
        let mut found = compared.explained(ChangeKind::Renamed, &changed.links, &[], &changed.under_new_name);
        found.change.count = changed.parts.iter().map(|part| part.count).sum();
        found.change.from = changed.parts.first().and_then(|part| part.from.clone());
        found.change.to = changed.parts.first().and_then(|part| part.to.clone());
        let tranches = format::count(found.change.count as usize, "tranche");
        found.change.summary = format!("{} ({tranches})", changed.sentence());
        found.change.allocations = changed.parts;
        self.explained.push(found);
    }
}

/// The category before and after, where all tranches of an allocation changed from one category to one other. Else the category is a
/// fact of single tranches.
fn common_category<'a>(compared: &ScheduleComparison<'a>, links: &[TranchePair]) -> Option<(&'a str, &'a str)> {
    let after = distinct(links.iter().filter_map(|(i, j)| {
        let (a, b) = (compared.old[*i].standard?, compared.new[*j].standard?);
        (a != b).then_some(b)
    }));
    let before = distinct(links.iter().filter_map(|(i, _)| compared.old[*i].standard));
    let all_changed = links.iter().all(|(i, j)| compared.old[*i].standard != compared.new[*j].standard);
    match (&before[..], &after[..]) {
        ([was], [is]) if all_changed => Some((was, is)),
        _ => None,
    }
}

/// The category of a tranche as a fact of its event.
fn category_fact(compared: &ScheduleComparison<'_>, (i, j): TranchePair, from: &str, to: &str) -> RevisedFact {
    RevisedFact::of("standardAllocationName", from.into(), to.into(), (compared.old[i].row, compared.new[j].row))
}

fn part(name: &str, from: &str, to: &str, count: usize) -> AllocationChange {
    AllocationChange {
        name: name.to_owned(),
        from: Some(Fact::Text(from.to_owned())),
        to: Some(Fact::Text(to.to_owned())),
        count: count_of(count),
        ..AllocationChange::default()
    }
}

impl NameChanges<'_> {
    fn sentence(&self) -> String {
        let mut said: Vec<String> = Vec::new();
        match &self.renamed[..] {
            [] => {}
            [(a, b), (c, d)] if a == d && b == c => {
                said.push(format!("{} and {} changed names", format::name(a), format::name(b)));
            }
            [(from, to)] => said.push(format!("{} renamed {}", format::name(from), format::name(to))),
            several => {
                let pairs: Vec<String> =
                    several.iter().take(3).map(|(from, to)| format!("{} → {}", format::name(from), format::name(to))).collect();
                let more = if several.len() > 3 { format!(" and {} more", several.len() - 3) } else { String::new() };
                said.push(format!("{} renamed: {}{more}", format::count(several.len(), "allocation"), pairs.join("; ")));
            }
        }
        for ((was, category), names) in &self.recategorized {
            said.push(format!(
                "{} filed under {} instead of {}",
                format::names(names.iter().copied()),
                format::name(category),
                format::name(was)
            ));
        }
        said.join("; ")
    }
}
