//! A schedule of which so much changed that only the whole explains it.

use std::collections::{BTreeMap, BTreeSet};

use super::{ExplainedChange, ScheduleComparison};
use crate::diff::{count_of, ratio_of, tranche::Tranche};
use model::{
    change::{AllocationChange, ChangeKind, Fact, ScheduleBrief},
    format,
    supply::Timestamp,
};

/// All of it is one thing: the schedule was rewritten.
pub(super) fn rewritten(compared: &ScheduleComparison<'_>, explained: Vec<ExplainedChange>) -> ExplainedChange {
    let mut whole = compared.explained(ChangeKind::Rewritten, &[], &[], &[]);
    let all = |tranches: &[Tranche<'_>]| (0..tranches.len()).collect::<Vec<_>>();
    let (mut before, mut after) =
        (brief(compared.old, &all(compared.old), compared.now), brief(compared.new, &all(compared.new), compared.now));
    (before.events, after.events) = (count_of(compared.old_rows.len()), count_of(compared.new_rows.len()));
    whole.change.count = explained.iter().map(|found| found.change.count).fold(0, u32::saturating_add);
    let mut names: BTreeMap<String, AllocationChange> = BTreeMap::new();
    for found in explained {
        whole.old.extend(found.old);
        whole.new.extend(found.new);
        for part in found.change.allocations {
            names.entry(part.name.clone()).or_insert(AllocationChange { name: part.name, ..AllocationChange::default() });
        }
    }
    // Who vanished or came belongs to it, also where no tranche says so.
    whole.old.extend(compared.vanished);
    // Of each allocation, what it has in all before and after.
    for (all, is_old) in [(compared.old, true), (compared.new, false)] {
        for t in all {
            if let Some(part) = names.get_mut(t.series) {
                let sum = if is_old { &mut part.from } else { &mut part.to };
                if let Some(amount) = t.amount {
                    *sum = Some(Fact::Amount(sum.as_ref().and_then(Fact::amount).unwrap_or(0.0) + amount));
                }
                if !is_old {
                    part.count += 1;
                }
            }
        }
    }
    for part in names.values_mut() {
        part.ratio = ratio_of(part.from.as_ref().and_then(Fact::amount), part.to.as_ref().and_then(Fact::amount));
    }
    whole.change.allocations = names.into_values().collect();
    whole.change.from = Some(Fact::Amount(before.total));
    whole.change.to = Some(Fact::Amount(after.total));
    whole.change.ratio = ratio_of(Some(before.total), Some(after.total));
    let end = |brief: &ScheduleBrief| brief.end.map_or_else(|| "no date".to_owned(), format::day);
    let step = |from: String, to: String, what: &str| {
        if from == to { format!("{to}{what} as before") } else { format!("{from} to {to}{what}") }
    };
    whole.change.summary = format!(
        "schedule rewritten: {}, {}, end {}",
        step(before.events.to_string(), after.events.to_string(), if after.events == 1 { " event" } else { " events" }),
        step(format::amount(before.total), format::amount(after.total), " tokens in all"),
        step(end(&before), end(&after), "")
    );
    whole.change.before = Some(before);
    whole.change.after = Some(after);
    whole.change.old = None;
    whole.change.new = None;
    whole
}

/// A schedule, or some tranches of it, in brief.
pub(super) fn brief(all: &[Tranche<'_>], of: &[usize], now: Timestamp) -> ScheduleBrief {
    let tranches: Vec<&Tranche<'_>> = of.iter().map(|k| &all[*k]).collect();
    let mut coming: BTreeMap<Timestamp, f64> = BTreeMap::new();
    for t in tranches.iter().filter(|t| t.time() > now) {
        *coming.entry(t.time()).or_default() += t.amount.unwrap_or(0.0);
    }
    ScheduleBrief {
        total: tranches.iter().filter_map(|t| t.amount).sum(),
        events: count_of(tranches.iter().map(|t| t.row).collect::<BTreeSet<_>>().len()),
        tranches: count_of(tranches.len()),
        next: coming.into_iter().take(3).collect(),
        begin: tranches.iter().filter_map(|t| t.dated()).min(),
        end: tranches.iter().map(|t| t.end_time().unwrap_or_else(|| t.time())).max(),
    }
}
