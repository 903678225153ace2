//! Recipients: events that keep their total and give it to others.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChangeBuilder, ChangeSubject, EventSet, ScheduleComparison, amounts::parts, wording};
use crate::diff::{align::TranchePair, close, ratio_of, tranche::TrancheForm};
use model::change::{AllocationChange, ChangeKind, Fact};

/// What is left to explain of amounts: pairs whose amount changed, tranches that are gone, tranches that came.
#[derive(Default)]
pub(super) struct UnexplainedAmounts {
    pub(super) links: Vec<TranchePair>,
    pub(super) gone: Vec<usize>,
    pub(super) come: Vec<usize>,
}

impl UnexplainedAmounts {
    fn len(&self) -> usize {
        self.links.len() + self.gone.len() + self.come.len()
    }

    /// Whether all amounts are known and add up to the same before and after.
    fn keeps_its_total(&self, compared: &ScheduleComparison<'_>) -> bool {
        let (old, new) = (compared.old, compared.new);
        let before: Option<f64> = self.links.iter().map(|(i, _)| i).chain(&self.gone).map(|i| old[*i].amount).sum();
        let after: Option<f64> = self.links.iter().map(|(_, j)| j).chain(&self.come).map(|j| new[*j].amount).sum();
        matches!((before, after), (Some(a), Some(b)) if a > 0.0 && close(a, b, compared.tolerance.max(1e-6)))
    }
}

impl ChangeBuilder<'_> {
    /// What went from one allocation to another.
    pub(super) fn transfers(&mut self) {
        let transfers = &self.compared.links.transfers;
        if !transfers.is_empty() {
            let mut all = UnexplainedAmounts::default();
            for transfer in transfers {
                all.links.extend(&transfer.links);
                all.gone.extend(&transfer.gone);
                all.come.extend(&transfer.come);
            }
            self.explain_reallocated(&all);
        }
    }

    /// Events of the same total with other recipients. Returns what is left to explain of amounts.
    pub(super) fn recipients(&mut self) -> UnexplainedAmounts {
        let compared = self.compared;
        let mut by_event: BTreeMap<(usize, TrancheForm), UnexplainedAmounts> = BTreeMap::new();
        let links: Vec<TranchePair> = compared.links.pairs.iter().copied().filter(|link| compared.is_resized(*link)).collect();
        for (i, j) in &links {
            let (old, new) = (&compared.old[*i], &compared.new[*j]);
            if compared.new_of_old[old.row] == Some(new.row) {
                by_event.entry((old.row, old.form)).or_default().links.push((*i, *j));
            }
        }
        for i in &compared.links.gone {
            by_event.entry((compared.old[*i].row, compared.old[*i].form)).or_default().gone.push(*i);
        }
        for j in &compared.links.come {
            if let Some(row) = compared.old_of_new[compared.new[*j].row] {
                by_event.entry((row, compared.new[*j].form)).or_default().come.push(*j);
            }
        }
        let mut moved = UnexplainedAmounts::default();
        for ((row, _), part) in by_event {
            if compared.new_of_old[row].is_some() && part.len() >= 2 && part.keeps_its_total(compared) {
                moved.links.extend(part.links);
                moved.gone.extend(part.gone);
                moved.come.extend(part.come);
            }
        }
        let (used_links, used_gone, used_come): (BTreeSet<TranchePair>, BTreeSet<usize>, BTreeSet<usize>) =
            (moved.links.iter().copied().collect(), moved.gone.iter().copied().collect(), moved.come.iter().copied().collect());
        if moved.len() > 0 {
            self.explain_reallocated(&moved);
        }
        UnexplainedAmounts {
            links: links.into_iter().filter(|link| !used_links.contains(link)).collect(),
            gone: compared.links.gone.iter().copied().filter(|i| !used_gone.contains(i)).collect(),
            come: compared.links.come.iter().copied().filter(|j| !used_come.contains(j)).collect(),
        }
    }

    fn explain_reallocated(&mut self, UnexplainedAmounts { links, gone, come }: &UnexplainedAmounts) {
        let compared = self.compared;
        let mut found = compared.explained(ChangeKind::Reallocated, links, gone, come);
        found.change.allocations = parts(compared, links, gone, come);
        let total = |rows: &EventSet, of: &dyn Fn(usize) -> Option<f64>| rows.iter().filter_map(|row| of(*row)).sum::<f64>();
        let from = total(&found.old, &|row| compared.old_total(row, None));
        let to = total(&found.new, &|row| compared.new_total(row, None));
        found.change.from = Some(Fact::Amount(from));
        found.change.to = Some(Fact::Amount(to));
        found.change.ratio = ratio_of(Some(from), Some(to));
        let grown = |part: &AllocationChange| {
            let amount = |fact: &Option<Fact>| fact.as_ref().and_then(Fact::amount).unwrap_or(0.0);
            amount(&part.to) - amount(&part.from)
        };
        let names = |is_side: fn(f64) -> bool| -> Vec<&str> {
            let side = found.change.allocations.iter().filter(|part| is_side(grown(part)));
            side.map(|part| part.name.as_str()).collect()
        };
        let amount: f64 = found.change.allocations.iter().map(grown).filter(|grown| *grown > 0.0).sum();
        found.change.amount = Some(amount);
        let dates = wording::other_end(
            compared,
            &links.iter().map(|(i, _)| *i).chain(gone.iter().copied()).collect::<Vec<_>>(),
            &links.iter().map(|(_, j)| *j).chain(come.iter().copied()).collect::<Vec<_>>(),
        );
        let dates = if gone.is_empty() && come.is_empty() { String::new() } else { dates };
        found.change.summary =
            format!("{}{dates}", wording::transfer(compared, amount, &names(|grown| grown < 0.0), &names(|grown| grown > 0.0)));
        found.subject = compared.one_event(&found).map(|(_, n)| ChangeSubject::New(n));
        self.explained.push(found);
    }
}
