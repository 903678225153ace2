//! Rewritten schedules: so much changed that no smaller change explains it.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChangeExplanation, Comparison};
use crate::diff::{
    count_of,
    index::{RowIndex, Side, TrancheIndex},
    ratio_of,
    timeline::TrancheSet,
    tranche::{Tranche, Tranches},
};
use model::{
    change::{AllocationChange, ChangeKind, Fact, ScheduleBrief},
    phrase::changes::ChangeClause,
    supply::Timestamp,
};

/// Replaces all explanations by one: the schedule was rewritten.
pub(super) fn rewritten(compared: &Comparison<'_>, explanations: Vec<ChangeExplanation>) -> ChangeExplanation {
    let timeline = compared.timeline;
    let mut whole = compared.explanation(ChangeKind::Rewritten, &TrancheSet::default());
    let old: Vec<_> = timeline.old.indices().collect();
    let new: Vec<_> = timeline.new.indices().collect();
    let mut before = brief(&timeline.old, &old, compared.now);
    let mut after = brief(&timeline.new, &new, compared.now);
    (before.events, after.events) = (count_of(timeline.old_events.len()), count_of(timeline.new_events.len()));
    let mut allocations: BTreeMap<String, AllocationChange> = BTreeMap::new();
    let mut count = 0_u32;
    for explanation in explanations {
        count = count.saturating_add(explanation.change.count);
        whole.old.extend(explanation.old);
        whole.new.extend(explanation.new);
        for AllocationChange { name, .. } in explanation.change.allocations {
            allocations.entry(name.clone()).or_insert(AllocationChange { name, ..AllocationChange::default() });
        }
    }
    // Missing events belong to the rewrite, even without tranches.
    whole.old.extend(compared.missing);
    let add = |sum: &mut Option<Fact>, amount: Option<f64>| {
        if let Some(amount) = amount {
            *sum = Some(Fact::Amount(sum.as_ref().and_then(Fact::amount).unwrap_or(0.0) + amount));
        }
    };
    for tranche in timeline.old.iter() {
        if let Some(allocation) = allocations.get_mut(tranche.series) {
            add(&mut allocation.from, tranche.amount);
        }
    }
    for tranche in timeline.new.iter() {
        if let Some(allocation) = allocations.get_mut(tranche.series) {
            add(&mut allocation.to, tranche.amount);
            allocation.count += 1;
        }
    }
    for allocation in allocations.values_mut() {
        let (from, to) = (&allocation.from, &allocation.to);
        allocation.ratio = ratio_of(from.as_ref().and_then(Fact::amount), to.as_ref().and_then(Fact::amount));
    }
    let change = &mut whole.change;
    change.count = count;
    change.allocations = allocations.into_values().collect();
    change.from = Some(Fact::Amount(before.total));
    change.to = Some(Fact::Amount(after.total));
    change.ratio = ratio_of(Some(before.total), Some(after.total));
    whole.clauses = vec![ChangeClause::Rewritten { before: before.clone(), after: after.clone() }];
    change.before = Some(before);
    change.after = Some(after);
    whole
}

/// Summarizes a schedule, or some of its tranches.
pub(super) fn brief<S: Side>(all: &Tranches<'_, S>, of: &[TrancheIndex<S>], now: Timestamp) -> ScheduleBrief {
    let tranches: Vec<&Tranche<'_, S>> = of.iter().map(|k| &all[*k]).collect();
    let mut coming: BTreeMap<Timestamp, f64> = BTreeMap::new();
    for tranche in tranches.iter().filter(|tranche| tranche.time() > now) {
        *coming.entry(tranche.time()).or_default() += tranche.amount.unwrap_or(0.0);
    }
    let rows: BTreeSet<RowIndex<S>> = tranches.iter().map(|tranche| tranche.row).collect();
    ScheduleBrief {
        total: tranches.iter().filter_map(|tranche| tranche.amount).sum(),
        events: count_of(rows.len()),
        tranches: count_of(tranches.len()),
        next: coming.into_iter().take(3).collect(),
        begin: tranches.iter().filter_map(|tranche| tranche.dated()).min(),
        end: tranches.iter().filter_map(|tranche| tranche.end_time().or_else(|| tranche.dated())).max(),
    }
}
