//! What a row of `upcoming` says about a token whose schedule is known, or not yet. Pure.
//!
//! The row holds the token's next event only, so it proves nothing about the others: it may freshen the valuation of an event, or
//! say that the schedule should be read again; it never tells a change. A token whose schedule was never read is known by this one
//! event until it is.

use std::sync::Arc;

use crate::diff;
use model::{Endpoint, Put, Record, Resource, Timestamp, TokenSnapshot, wire};

/// What follows from a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconciled {
    /// Records to write: the freshened event, or the only one known.
    pub put: Vec<Put>,
    /// The schedule should be read again.
    pub is_stale: bool,
}

/// Whether the source marked the token after its schedule was last read.
const fn newer(mark: Option<Timestamp>, known: Option<Timestamp>) -> bool {
    match (mark, known) {
        (Some(mark), Some(known)) => mark.timestamp() > known.timestamp(),
        _ => false,
    }
}

/// Compares the row with the snapshot. `tolerance` is relative, for amounts; `now` the time of the poll.
pub fn reconcile(before: &TokenSnapshot, item: &wire::UpcomingItem, tolerance: f64, now: Timestamp) -> Reconciled {
    let Some(mut event) = item.upcoming_event.get().cloned() else { return Reconciled::default() };
    // The row says these once for the token; the event's own row has them itself.
    event.token_name = item.token_name.clone();
    event.token_symbol = item.token_symbol.clone();
    event.listed_method = item.listed_method.clone();
    event.data_source = item.data_source.clone();
    let Some(date) = event.unlock_date.copied() else { return Reconciled::default() };

    let has_schedule = before.feed(Endpoint::UnlockEvents).is_some_and(|feed| feed.baseline_at.is_some());
    if !has_schedule {
        // The next event stays the same record when its date moves; one that has passed stays as it was, and another is next.
        let (mut same, mut coming) = (None, None);
        for tracked in before.records_of(Resource::Unlock) {
            if tracked.record.unlock().and_then(|known| known.unlock_date.copied()) == Some(date) {
                same = Some(tracked);
            } else if tracked.record.interval().is_none_or(|interval| !interval.has_passed(now)) {
                coming = Some(tracked);
            }
        }
        let Some(of) = same.or(coming) else {
            let (key, record) = (diff::event_key(&event), Record::Unlock(Arc::new(event)));
            return Reconciled { put: vec![Put { key, record, is_new_version: true }], is_stale: false };
        };
        // Where nothing says what moved, it waits until more is known.
        let completed = diff::complete(std::slice::from_ref(of), std::slice::from_ref(&event), &diff::AnswerView::default());
        let Some(event) = completed.events.first().cloned() else { return Reconciled::default() };
        let was = of.record.unlock().and_then(wire::UnlockEvent::cliff_amount);
        let is_new_version = same.is_none() || !is_close(event.cliff_amount(), was, tolerance);
        let put = Put { key: of.key.clone(), record: Record::Unlock(Arc::new(event)), is_new_version };
        return Reconciled { put: vec![put], is_stale: false };
    }

    let mut known = before.records.iter().filter_map(|tracked| Some((&tracked.key, tracked.record.unlock()?)));
    let same_date = known.find(|(_, known)| known.unlock_date.copied() == Some(date) && known.cliff_unlocks.get().is_some());
    let Some((key, known)) = same_date else { return Reconciled { is_stale: true, ..Reconciled::default() } };
    let is_stale = !is_close(event.cliff_amount(), known.cliff_amount(), tolerance)
        || same_parts(known, &event).any(|(is, was)| !is_close(is.cliff_amount.copied(), was.cliff_amount.copied(), tolerance))
        || newer(event.latest_update_date.copied(), known.latest_update_date.copied());
    if is_stale {
        return Reconciled { is_stale, ..Reconciled::default() };
    }
    let freshened = freshened(known, &event);
    if freshened == *known {
        return Reconciled::default();
    }
    let put = Put { key: key.clone(), record: Record::Unlock(Arc::new(freshened)), is_new_version: false };
    Reconciled { put: vec![put], ..Reconciled::default() }
}

/// Whether two amounts agree, as far as both are known.
fn is_close(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    (a - b).abs() <= tolerance.max(1e-9) * a.abs().max(b.abs())
}

/// The parts of a row, each beside the known one of its allocation, where each has just one.
fn same_parts<'a>(
    known: &'a wire::UnlockEvent,
    event: &'a wire::UnlockEvent,
) -> impl Iterator<Item = (&'a wire::CliffAllocation, &'a wire::CliffAllocation)> {
    let parts = |of: &'a wire::UnlockEvent| of.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let only = move |of: &'a wire::UnlockEvent, name: &wire::Maybe<wire::Text>| {
        let mut same = parts(of).iter().filter(move |other| other.allocation_name == *name);
        same.next().filter(|_| same.next().is_none())
    };
    parts(event).iter().filter_map(move |is| {
        let was = only(known, &is.allocation_name)?;
        only(event, &is.allocation_name).map(|is| (is, was))
    })
}

/// The known event with the valuation of `event`, as far as that has one: prices, values, share of market cap. Schedule facts stay.
fn freshened(known: &wire::UnlockEvent, event: &wire::UnlockEvent) -> wire::UnlockEvent {
    let mut fresh = known.clone();
    let (Some(to), Some(from)) = (fresh.cliff_unlocks.get_mut(), event.cliff_unlocks.get()) else { return fresh };
    if let Some(value) = event.cliff_value() {
        to.cliff_value = value.into();
    }
    if let Some(share) = from.value_to_market_cap.copied() {
        to.value_to_market_cap = share.into();
    }
    for (is, was) in same_parts(known, event) {
        let items = to.allocation_breakdown.get_mut().into_iter().flatten();
        for item in items.filter(|item| item.allocation_name == was.allocation_name) {
            if is.cliff_value.get().is_some() {
                item.cliff_value = is.cliff_value;
            }
            if is.reference_price.get().is_some() {
                (item.reference_price, item.reference_price_updated_time) = (is.reference_price, is.reference_price_updated_time);
            }
        }
    }
    fresh
}

#[cfg(test)]
mod tests;
