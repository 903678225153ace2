//! The schedules of the allocations of a change: their affected tranches before and after it.

use super::{ChangeExplanation, Comparison, tranche_facts::tranche_facts};
use crate::diff::index::{NewTranche, OldTranche};
use model::change::{AllocationSchedule, ChangeKind};

/// Returns whether a change of this kind is about dates or amounts. A rewritten schedule has the schedules of whole
/// allocations instead.
fn has_schedules(kind: ChangeKind) -> bool {
    use ChangeKind::*;
    match kind {
        Added | Removed | Rescheduled | Resized | Reallocated | Split | Merged | SeriesShifted | SeriesRescaled
        | Restructured => true,
        Renamed | Rewritten | Committed | Revised | SupplyChanged => false,
    }
}

/// Adds the affected tranches of each allocation to a change, summarized, before and after it. Allocations that are listed together or apart
/// have none, because one of them has the tokens of several others.
pub(super) fn add(compared: &Comparison<'_>, explanation: &mut ChangeExplanation) {
    let timeline = compared.timeline;
    if !has_schedules(explanation.change.kind) {
        return;
    }
    let (olds, news) = &explanation.tranches;
    for allocation in &mut explanation.change.allocations {
        let name = allocation.name.as_str();
        if timeline.relisted.iter().any(|one| one.from.contains(&name) || one.to.contains(&name)) {
            continue;
        }
        let before: Vec<OldTranche> = olds.iter().copied().filter(|i| timeline.old[*i].series == name).collect();
        let after: Vec<NewTranche> = news.iter().copied().filter(|j| timeline.new[*j].name == name).collect();
        allocation.before = (!before.is_empty()).then(|| AllocationSchedule::of(&tranche_facts(&timeline.old, &before)));
        allocation.after = (!after.is_empty()).then(|| AllocationSchedule::of(&tranche_facts(&timeline.new, &after)));
    }
}
