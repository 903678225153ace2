//! Equal explanations of different tranches are one: a token's correction is told in as few changes as it takes.

use super::{ChangeBuilder, ExplainedChange, MAX_EXPLANATIONS, MAX_SINGLE_EVENTS, facts::RevisedFact};
use crate::diff::ratio_of;
use model::change::{Change, ChangeKind, Fact, FieldChange};

impl ChangeBuilder<'_> {
    /// Joins changes of one kind where there are more than a reader wants, then tells new names with what else happened.
    pub(super) fn join(&mut self) {
        let are_single = self.explained.len() <= MAX_SINGLE_EVENTS && self.compared.are_independent(&self.explained);
        if self.explained.len() <= MAX_EXPLANATIONS || are_single {
            return;
        }
        let mut joined: Vec<ExplainedChange> = Vec::with_capacity(self.explained.len());
        for found in self.explained.drain(..) {
            let is_joined = |kind| matches!(kind, ChangeKind::Rescheduled | ChangeKind::Resized | ChangeKind::Restructured);
            match joined.iter_mut().find(|home| home.change.kind == found.change.kind && is_joined(found.change.kind)) {
                Some(home) => append(home, found),
                None => joined.push(found),
            }
        }
        self.explained = joined;
        if self.explained.len() <= MAX_EXPLANATIONS {
            return;
        }
        // What has another name and something else besides is told once, under its new name.
        let Some(k) = self.explained.iter().position(|found| found.change.kind == ChangeKind::Renamed) else { return };
        let is_elsewhere = |name: &str| {
            let others = self.explained.iter().filter(|found| found.change.kind != ChangeKind::Renamed);
            others.flat_map(|found| &found.change.allocations).any(|part| part.name == name)
        };
        if self.explained[k].change.allocations.iter().all(|part| is_elsewhere(&part.name)) {
            let renamed = self.explained.remove(k);
            let (Some(old), Some(new)) = (renamed.old.first().copied(), renamed.new.first().copied()) else { return };
            for part in renamed.change.allocations {
                let text = |fact: Option<Fact>| fact.and_then(|fact| fact.text().map(str::to_owned)).unwrap_or_default();
                let (from, to) = (text(part.from), text(part.to));
                self.fields.push(RevisedFact {
                    field: FieldChange { field: "allocationName".to_owned(), from: from.into(), to: to.into() },
                    old,
                    new,
                    whole_token: true,
                });
            }
        }
    }
}

/// Adds a change of the same kind.
fn append(home: &mut ExplainedChange, found: ExplainedChange) {
    let (into, from): (&mut Change, Change) = (&mut home.change, found.change);
    home.subject = None;
    home.old.extend(found.old);
    home.new.extend(found.new);
    into.count = into.count.saturating_add(from.count);
    into.summary = format!("{}; {}", into.summary, from.summary);
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
    for part in from.allocations {
        match into.allocations.iter_mut().find(|known| known.name == part.name) {
            Some(known) => {
                known.count = known.count.saturating_add(part.count);
                if into.kind != ChangeKind::Rescheduled {
                    (known.from, known.to) = (sum(&known.from, &part.from), sum(&known.to, &part.to));
                    known.ratio = ratio_of(known.from.as_ref().and_then(Fact::amount), known.to.as_ref().and_then(Fact::amount));
                }
            }
            None => into.allocations.push(part),
        }
    }
}
