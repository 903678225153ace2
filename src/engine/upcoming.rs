//! Applies a row of `upcoming` to a token's known schedule. Pure.
//!
//! A row contains only the token's next event, so it proves nothing about the others and never reports a change. It updates the
//! valuation of the known event, or marks the schedule as stale so that it is polled again. If the schedule was never polled, the row's
//! event is the only known one.

use std::sync::Arc;

use crate::diff;
use model::{Endpoint, Put, Record, Resource, Timestamp, TokenSnapshot, wire};

/// The result of applying a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconciled {
    /// Records to write: the revalued event, or the only known one.
    pub put: Vec<Put>,
    /// Whether the schedule must be polled again.
    pub is_stale: bool,
}

/// Returns whether the row's mark is later than the known one.
const fn is_newer(mark: Option<Timestamp>, known: Option<Timestamp>) -> bool {
    match (mark, known) {
        (Some(mark), Some(known)) => mark.timestamp() > known.timestamp(),
        _ => false,
    }
}

/// Compares the row with the snapshot. `tolerance` is the relative tolerance for amounts, and `now` the time of the poll.
pub fn reconcile(before: &TokenSnapshot, item: &wire::UpcomingItem, tolerance: f64, now: Timestamp) -> Reconciled {
    let Some(mut event) = item.upcoming_event.get().cloned() else { return Reconciled::default() };
    // The row has these fields once per token, a schedule has them on each event.
    event.token_name = item.token_name.clone();
    event.token_symbol = item.token_symbol.clone();
    event.listed_method = item.listed_method.clone();
    event.data_source = item.data_source.clone();
    let Some(date) = event.unlock_date.copied() else { return Reconciled::default() };

    let has_schedule = before.feed(Endpoint::UnlockEvents).is_some_and(|feed| feed.baseline_at.is_some());
    if !has_schedule {
        // A next event that moves stays the same record. An event that has passed stays unchanged, and the row becomes a new record.
        let (mut same, mut upcoming) = (None, None);
        for tracked in before.records_of(Resource::Unlock) {
            if tracked.record.unlock().and_then(|known| known.unlock_date.copied()) == Some(date) {
                same = Some(tracked);
            } else if tracked.record.interval().is_none_or(|interval| !interval.has_passed(now)) {
                upcoming = Some(tracked);
            }
        }
        let Some(of) = same.or(upcoming) else {
            let (key, record) = (diff::event_key(&event), Record::Unlock(Arc::new(event)));
            return Reconciled { put: vec![Put { key, record, is_new_version: true }], is_stale: false };
        };
        // A row that moves the event but leaves its parts out is not applied.
        let completed = diff::complete(std::slice::from_ref(of), std::slice::from_ref(&event), &diff::ResponseView::default());
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
        || same_shares(known, &event).any(|(is, was)| !is_close(is.cliff_amount.copied(), was.cliff_amount.copied(), tolerance))
        || is_newer(event.latest_update_date.copied(), known.latest_update_date.copied());
    if is_stale {
        return Reconciled { is_stale, ..Reconciled::default() };
    }
    let revalued = revalued(known, &event);
    if revalued == *known {
        return Reconciled::default();
    }
    let put = Put { key: key.clone(), record: Record::Unlock(Arc::new(revalued)), is_new_version: false };
    Reconciled { put: vec![put], ..Reconciled::default() }
}

/// Returns whether two amounts are equal within the tolerance, or one is unknown.
fn is_close(a: Option<f64>, b: Option<f64>, tolerance: f64) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    (a - b).abs() <= tolerance.max(1e-9) * a.abs().max(b.abs())
}

/// Returns pairs of the row's share and the known share of an allocation, for each allocation that has exactly one in both.
fn same_shares<'a>(
    known: &'a wire::UnlockEvent,
    event: &'a wire::UnlockEvent,
) -> impl Iterator<Item = (&'a wire::CliffAllocation, &'a wire::CliffAllocation)> {
    let shares = |of: &'a wire::UnlockEvent| of.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items());
    let only = move |of: &'a wire::UnlockEvent, name: &wire::Maybe<wire::Text>| {
        let mut same = shares(of).iter().filter(move |other| other.allocation_name == *name);
        same.next().filter(|_| same.next().is_none())
    };
    shares(event).iter().filter_map(move |is| {
        let was = only(known, &is.allocation_name)?;
        only(event, &is.allocation_name).map(|is| (is, was))
    })
}

/// Returns the known event with the prices, values, and share of market cap that `event` has. Schedule facts are unchanged.
fn revalued(known: &wire::UnlockEvent, event: &wire::UnlockEvent) -> wire::UnlockEvent {
    let mut fresh = known.clone();
    let (Some(to), Some(from)) = (fresh.cliff_unlocks.get_mut(), event.cliff_unlocks.get()) else { return fresh };
    if let Some(value) = event.cliff_value() {
        to.cliff_value = value.into();
    }
    if let Some(share) = from.value_to_market_cap.copied() {
        to.value_to_market_cap = share.into();
    }
    for (is, was) in same_shares(known, event) {
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
