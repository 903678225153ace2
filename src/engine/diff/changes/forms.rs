//! Another timing of the same total: tranches that were cut, joined, extended, brought forward, or changed between cliff and linear.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChangeBuilder, ChangeSubject, ScheduleComparison, amounts::parts, in_days, rewritten::brief, wording};
use crate::diff::{align::TrancheGroup, close, count_of, ratio_of, tranche::TrancheForm};
use model::change::{ChangeKind, Fact};

/// Events up to which a cliff that was cut, or cliffs that were joined, are told as such; more are another way of vesting.
const MAX_CUT: usize = 4;

impl ChangeBuilder<'_> {
    /// Groups of tranches that keep their sum, and what other steps found to be timed otherwise.
    pub(super) fn forms(&mut self, timed_otherwise: TrancheGroup) {
        let compared = self.compared;
        let mut by_kind: BTreeMap<ChangeKind, Vec<TrancheGroup>> = BTreeMap::new();
        for group in &compared.links.groups {
            let name = group.0.first().map(|i| compared.old[*i].series);
            let of_name = compared.links.groups.iter().filter(|(old, _)| old.first().map(|i| compared.old[*i].series) == name);
            // One cliff that was cut is one thing; several of one allocation are another way of vesting.
            let kind = if of_name.count() > 1 { ChangeKind::Restructured } else { kind_of(compared, group) };
            by_kind.entry(kind).or_default().push(group.clone());
        }
        if !timed_otherwise.0.is_empty() {
            by_kind.entry(ChangeKind::Restructured).or_default().push(timed_otherwise);
        }
        for (kind, groups) in by_kind {
            let old: Vec<usize> = groups.iter().flat_map(|group| group.0.iter().copied()).collect();
            let new: Vec<usize> = groups.iter().flat_map(|group| group.1.iter().copied()).collect();
            let mut found = compared.explained(kind, &[], &old, &new);
            found.change.count = count_of(if kind == ChangeKind::Split { new.len() } else { old.len() });
            found.change.allocations = parts(compared, &[], &old, &new);
            let (before, after) = (brief(compared.old, &old, compared.now), brief(compared.new, &new, compared.now));
            found.change.amount = Some(after.total);
            if kind == ChangeKind::Restructured {
                // Only the timing is told here: another amount is a change of its own.
                for part in &mut found.change.allocations {
                    (part.from, part.ratio) = (part.to.clone(), None);
                }
                found.change.from = before.end.map(Fact::Time);
                found.change.to = after.end.map(Fact::Time);
                let shift = before.end.zip(after.end).map(|(from, to)| in_days((to - from).num_milliseconds()));
                found.change.shift_days = shift.filter(|days| *days != 0.0);
                found.change.summary = wording::restructured(compared, &groups);
            } else {
                found.change.from = Some(Fact::Amount(before.total));
                found.change.to = Some(Fact::Amount(after.total));
                found.change.ratio = ratio_of(Some(before.total), Some(after.total));
                found.change.summary = wording::cut_or_joined(compared, &old, &new);
            }
            found.change.before = Some(before);
            found.change.after = Some(after);
            // The event that lived on: the one that was cut, or the one that others joined.
            found.subject = if groups.len() > 1 {
                None
            } else {
                found
                    .old
                    .iter()
                    .find_map(|row| compared.new_of_old[*row].filter(|n| found.new.contains(n)))
                    .map(ChangeSubject::New)
            };
            self.explained.push(found);
        }
    }
}

fn kind_of(compared: &ScheduleComparison<'_>, (old, new): &TrancheGroup) -> ChangeKind {
    let are_cliffs = old
        .iter()
        .map(|i| compared.old[*i].form)
        .chain(new.iter().map(|j| compared.new[*j].form))
        .all(|form| form == TrancheForm::Cliff);
    let before: BTreeSet<i64> = old.iter().map(|i| compared.old[*i].at).collect();
    let after: BTreeSet<i64> = new.iter().map(|j| compared.new[*j].at).collect();
    let sum = |amounts: &mut dyn Iterator<Item = Option<f64>>| amounts.flatten().sum::<f64>();
    let kept =
        close(sum(&mut old.iter().map(|i| compared.old[*i].amount)), sum(&mut new.iter().map(|j| compared.new[*j].amount)), 1e-6);
    match (old.len(), new.len()) {
        _ if !are_cliffs || !kept => ChangeKind::Restructured,
        (1, 2..=MAX_CUT) if after.len() == new.len() => ChangeKind::Split,
        (2..=MAX_CUT, 1) if before.len() == old.len() => ChangeKind::Merged,
        _ => ChangeKind::Restructured,
    }
}
