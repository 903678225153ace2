//! Forms: tranches that were cut, joined, or changed between cliff and linear.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChangeBuilder, ChangeSubject, amounts::parts, distinct};
use crate::diff::{
    align::TrancheGroup,
    count_of, ratio_of,
    tranche::{Tranche, TrancheForm},
};
use model::{
    change::{ChangeKind, Fact, FieldChange},
    format,
};

impl ChangeBuilder<'_> {
    /// Tranches that were cut, joined, or changed between cliff and linear.
    pub(super) fn forms(&mut self) {
        let compared = self.compared;
        let mut by_kind: BTreeMap<ChangeKind, Vec<&TrancheGroup>> = BTreeMap::new();
        for group in &compared.links.groups {
            let rows = |all: &[Tranche<'_>], of: &[usize]| of.iter().map(|i| all[*i].row).collect::<BTreeSet<_>>().len();
            let (before, after) = (rows(compared.old, &group.0), rows(compared.new, &group.1));
            let kind = match (before.cmp(&after), group.0.len().cmp(&group.1.len())) {
                (std::cmp::Ordering::Less, _) => ChangeKind::Split,
                (std::cmp::Ordering::Greater, _) => ChangeKind::Merged,
                _ => ChangeKind::Revised,
            };
            by_kind.entry(kind).or_default().push(group);
        }
        for (kind, groups) in by_kind {
            let gone: Vec<usize> = groups.iter().flat_map(|group| group.0.iter().copied()).collect();
            let come: Vec<usize> = groups.iter().flat_map(|group| group.1.iter().copied()).collect();
            let mut found = compared.explained(kind, &[], &gone, &come);
            found.change.count = count_of(if kind == ChangeKind::Split { come.len() } else { gone.len() });
            found.change.allocations = parts(compared, &[], &gone, &come);
            let sum = |all: &[Tranche<'_>], of: &[usize]| of.iter().filter_map(|i| all[*i].amount).sum::<f64>();
            let (from, to) = (sum(compared.old, &gone), sum(compared.new, &come));
            found.change.from = Some(Fact::Amount(from));
            found.change.to = Some(Fact::Amount(to));
            found.change.ratio = ratio_of(Some(from), Some(to));
            let forms = |all: &[Tranche<'_>], of: &[usize]| {
                let forms: BTreeSet<TrancheForm> = of.iter().map(|i| all[*i].form).collect();
                match (forms.len(), forms.first()) {
                    (1, Some(TrancheForm::Cliff)) => "cliff",
                    (1, Some(TrancheForm::Linear)) => "linear segment",
                    _ => "tranche",
                }
            };
            let names = format::names(distinct(come.iter().map(|j| compared.new[*j].name)));
            found.change.summary = format!(
                "{names}: {} became {}, {} in all",
                format::count(gone.len(), forms(compared.old, &gone)),
                format::count(come.len(), forms(compared.new, &come)),
                format::amount(to)
            );
            if kind == ChangeKind::Revised {
                found.change.fields = vec![FieldChange {
                    field: "allocationBreakdown".into(),
                    from: forms(compared.old, &gone).into(),
                    to: forms(compared.new, &come).into(),
                }];
            }
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
