//! What an answer tells of an event of which less was known.

use super::{names, parts::same_amount};
use model::wire::UnlockEvent;

/// A known event with the parts that an answer tells of it, where nothing but the same total was known of them.
pub(super) fn learned(known: &UnlockEvent, event: &UnlockEvent) -> Option<UnlockEvent> {
    let mut learned = known.clone();
    if !has_content(known) {
        (learned.cliff_unlocks, learned.linear_unlocks) = (event.cliff_unlocks.clone(), event.linear_unlocks.clone());
        return has_content(event).then_some(learned);
    }
    if let (Some(was), Some(is)) = (learned.cliff_unlocks.get_mut(), event.cliff_unlocks.get())
        && was.allocation_breakdown.items().is_empty()
        && !is.allocation_breakdown.items().is_empty()
        && same_amount(known.cliff_amount(), is.allocation_breakdown.items().iter().map(|part| part.cliff_amount.copied()).sum())
    {
        was.allocation_breakdown = is.allocation_breakdown.clone();
    }
    if let (Some(was), Some(is)) = (learned.linear_unlocks.get_mut(), event.linear_unlocks.get())
        && was.allocation_breakdown.items().is_empty()
        && !is.allocation_breakdown.items().is_empty()
        && same_amount(
            was.linear_amount.copied(),
            is.allocation_breakdown.items().iter().map(|part| part.linear_amount.copied()).sum(),
        )
    {
        was.allocation_breakdown = is.allocation_breakdown.clone();
    }
    (learned != *known).then_some(learned)
}

/// Whether anything but a date is known of an event.
pub(super) fn has_content(event: &UnlockEvent) -> bool {
    !names(event).is_empty()
        || event.cliff_amount().is_some()
        || event.linear_unlocks.get().is_some_and(|linears| linears.linear_amount.get().is_some())
}
