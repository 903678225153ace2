//! Sentences about rewritten schedules, in which too much changed to list it.

use super::{pace::is_close, two_amounts, two_or_unknown};
use crate::phrase::{count, day, name};
use crate::{AllocationChange, AllocationSchedule, ScheduleBrief};

/// The number of allocations of a rewritten schedule that a sentence describes before it only counts them.
const MAX_REWRITTEN: usize = 3;

/// `schedule rewritten: 10 events instead of 30, 420 tokens in total as before, ends on 1 Jan 2030 instead of 1 Jan 2028`.
pub(super) fn rewritten(before: &ScheduleBrief, after: &ScheduleBrief) -> String {
    let step = |from: &str, to: &str| if from == to { " as before".to_owned() } else { format!(" instead of {from}") };
    let (from, to) = two_amounts(before.total, after.total);
    let events = if after.events == 1 { "event" } else { "events" };
    let count = step(&before.events.to_string(), &after.events.to_string());
    let end = |brief: &ScheduleBrief| brief.end.map_or_else(|| "no date".to_owned(), day);
    let ends = if after.end.is_some() { "ends on " } else { "ends with " };
    format!(
        "schedule rewritten: {} {events}{count}, {to} tokens in total{}, {ends}{}{}",
        after.events,
        step(&from, &to),
        end(after),
        step(&end(before), &end(after))
    )
}

/// The schedule of one allocation in a rewritten schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocationRewrite {
    name: String,
    before: Option<AllocationSchedule>,
    after: Option<AllocationSchedule>,
}

impl AllocationRewrite {
    /// Returns the schedule of an allocation before and after a change of a whole schedule.
    #[must_use]
    pub fn of(change: &AllocationChange) -> Self {
        Self { name: change.name.clone(), before: change.before.clone(), after: change.after.clone() }
    }

    /// Returns whether total, begin, or end changed.
    #[must_use]
    pub fn differs(&self) -> bool {
        let (Some(was), Some(is)) = (&self.before, &self.after) else { return self.before != self.after };
        let is_same_total = match (was.total, is.total) {
            (Some(was), Some(is)) => is_close(was, is, 1e-9),
            (was, is) => was == is,
        };
        !is_same_total || (was.begin, was.end) != (is.begin, is.end)
    }

    /// Returns the difference of the totals, without its sign.
    fn size(&self) -> f64 {
        let total = |schedule: &Option<AllocationSchedule>| schedule.as_ref().and_then(|of| of.total).unwrap_or(0.0);
        (total(&self.after) - total(&self.before)).abs()
    }

    /// `Team 40.00M until 1 Jan 2028 instead of 50.00M until 1 Jan 2030`, `Core added (693.00M until 2 Nov 2028)`.
    fn text(&self) -> String {
        let of_total = |of: &Option<AllocationSchedule>| of.as_ref().and_then(|of| of.total);
        let (was_total, is_total) = two_or_unknown(of_total(&self.before), of_total(&self.after));
        let side = |of: &AllocationSchedule, other: Option<&AllocationSchedule>, total: &str| {
            let begin = of.begin.filter(|begin| other.is_some_and(|other| other.begin != Some(*begin)));
            let from = begin.map(|at| format!(" from {}", day(at))).unwrap_or_default();
            let until = of.end.map(|at| format!(" until {}", day(at))).unwrap_or_default();
            format!("{total}{from}{until}")
        };
        let allocation = name(&self.name);
        match (&self.before, &self.after) {
            (Some(was), Some(is)) => {
                let (old, new) = (side(was, Some(is), &was_total), side(is, Some(was), &is_total));
                format!("{allocation} {new} instead of {old}")
            }
            (Some(was), None) => format!("{allocation} removed ({})", side(was, None, &was_total)),
            (None, Some(is)) => format!("{allocation} added ({})", side(is, None, &is_total)),
            (None, None) => allocation,
        }
    }
}

/// The allocations of a rewritten schedule, the largest differences first: `Team 40.00M until 1 Jan 2028 instead of …; Core added (…)`.
pub(super) fn rewritten_allocations(allocations: &[AllocationRewrite]) -> Option<String> {
    let mut sorted: Vec<&AllocationRewrite> = allocations.iter().collect();
    sorted.sort_by(|a, b| b.size().total_cmp(&a.size()).then_with(|| a.name.cmp(&b.name)));
    let mut clauses: Vec<String> = sorted.iter().take(MAX_REWRITTEN).map(|allocation| allocation.text()).collect();
    let others = sorted.len().saturating_sub(MAX_REWRITTEN);
    if others > 0 {
        clauses.push(format!("{} changed as well", count(others, "other allocation")));
    }
    (!clauses.is_empty()).then(|| clauses.join("; "))
}
