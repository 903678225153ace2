//! Parts of a known event that were unknown until a response showed them.

use super::{cliffs, linears, parts};
use crate::diff::tolerances::same_total;
use model::wire::UnlockEvent;

/// Returns the known event with the parts in `event`, if only their total or only the date was known before. `None` if nothing was
/// learned.
pub(super) fn learned(known: &UnlockEvent, event: &UnlockEvent) -> Option<UnlockEvent> {
    let mut learned = known.clone();
    if !has_content(known) {
        (learned.cliff_unlocks, learned.linear_unlocks) = (event.cliff_unlocks.clone(), event.linear_unlocks.clone());
        return has_content(event).then_some(learned);
    }
    let cliff_total = cliffs(event).iter().map(|part| part.cliff_amount.copied()).sum();
    if let (Some(was), Some(is)) = (learned.cliff_unlocks.get_mut(), event.cliff_unlocks.get())
        && was.allocation_breakdown.items().is_empty()
        && !is.allocation_breakdown.items().is_empty()
        && same_total(known.cliff_amount(), cliff_total)
    {
        was.allocation_breakdown = is.allocation_breakdown.clone();
    }
    let linear_total = linears(event).iter().map(|part| part.linear_amount.copied()).sum();
    if let (Some(was), Some(is)) = (learned.linear_unlocks.get_mut(), event.linear_unlocks.get())
        && was.allocation_breakdown.items().is_empty()
        && !is.allocation_breakdown.items().is_empty()
        && same_total(was.linear_amount.copied(), linear_total)
    {
        was.allocation_breakdown = is.allocation_breakdown.clone();
    }
    (learned != *known).then_some(learned)
}

/// Returns whether an event has anything but a date.
pub(super) fn has_content(event: &UnlockEvent) -> bool {
    parts(event).next().is_some()
        || event.cliff_amount().is_some()
        || event.linear_unlocks.get().is_some_and(|linears| linears.linear_amount.get().is_some())
}
