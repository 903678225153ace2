//! Rewritten schedules: so much changed that no smaller change explains it.

use std::collections::{BTreeMap, BTreeSet};

use super::{ChangeExplanation, Comparison, facts::name_field, tranche_facts::facts};
use crate::diff::{
    count_of,
    index::{RowIndex, Side, TrancheIndex},
    ratio_of,
    timeline::TrancheSet,
    tranche::{Tranche, Tranches},
};
use model::{
    change::{AllocationChange, AllocationSchedule, ChangeKind, Fact, ScheduleBrief},
    phrase::changes::{AllocationRewrite, ChangeClause},
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
    let mut count = 0_u32;
    let mut names: BTreeSet<String> = BTreeSet::new();
    for explanation in explanations {
        count = count.saturating_add(explanation.change.count);
        whole.old.extend(explanation.old);
        whole.new.extend(explanation.new);
        names.extend(explanation.change.allocations.into_iter().map(|allocation| allocation.name));
    }
    // Missing events belong to the rewrite, even without tranches.
    whole.old.extend(compared.missing);
    let (old_of, new_of) = (by_series(&timeline.old), by_series(&timeline.new));
    let allocation = |name: String| {
        let (before, after) = (old_of.get(name.as_str()), new_of.get(name.as_str()));
        let (was, is) = (before.map(|of| allocation_schedule(of)), after.map(|of| allocation_schedule(of)));
        let (from, to) = (was.as_ref().and_then(|was| was.total), is.as_ref().and_then(|is| is.total));
        AllocationChange {
            name,
            from: from.map(Fact::Amount),
            to: to.map(Fact::Amount),
            ratio: ratio_of(from, to),
            count: count_of(after.map_or(0, Vec::len)),
            before: was,
            after: is,
            ..AllocationChange::default()
        }
    };
    let change = &mut whole.change;
    change.count = count;
    change.allocations = names.into_iter().map(allocation).collect();
    change.from = Some(Fact::Amount(before.total));
    change.to = Some(Fact::Amount(after.total));
    change.ratio = ratio_of(Some(before.total), Some(after.total));
    change.fields.extend(timeline.new_names().map(|(from, to)| name_field(from, to)));
    let renamed = timeline.new_names().map(|(from, to)| (from.to_owned(), to.to_owned())).collect();
    let allocations = change.allocations.iter().map(AllocationRewrite::of).filter(AllocationRewrite::differs).collect();
    whole.clauses = vec![ChangeClause::Rewritten { before: before.clone(), after: after.clone(), allocations, renamed }];
    change.before = Some(before);
    change.after = Some(after);
    whole
}

/// Returns the tranches of each allocation, under its new name.
fn by_series<'t, 'a, S: Side>(all: &'t Tranches<'a, S>) -> BTreeMap<&'a str, Vec<&'t Tranche<'a, S>>> {
    let mut series: BTreeMap<&str, Vec<&Tranche<'_, S>>> = BTreeMap::new();
    for tranche in all.iter() {
        series.entry(tranche.series).or_default().push(tranche);
    }
    series
}

/// Summarizes tranches of one allocation.
pub(super) fn allocation_schedule<S>(tranches: &[&Tranche<'_, S>]) -> AllocationSchedule {
    AllocationSchedule::of(&tranches.iter().map(|tranche| facts(tranche)).collect::<Vec<_>>())
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
