//! Readers of values that a response stores in several places, and of the recipients of a record.

use model::{Precision, Record, Timestamp, wire};

use super::reader::{ItemVisitor, ListItem};

/// Returns the sum over the claims that have the value. `None` if no claim has it.
pub(super) fn committed(event: &wire::UnlockEvent, of: fn(&wire::CommittedClaim) -> Option<f64>) -> Option<f64> {
    committed_claims(event).filter_map(of).fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// Returns the event's price. Older API versions have it in the event or its cliff or linear part, newer ones only in the
/// breakdown.
pub(super) fn reference_price(event: &wire::UnlockEvent) -> Option<f64> {
    event
        .reference_price
        .copied()
        .or_else(|| event.cliff_unlocks.get()?.reference_price.copied())
        .or_else(|| event.linear_unlocks.get()?.reference_price.copied())
        .or_else(|| cliff_rows(event).iter().find_map(|item| item.reference_price.copied()))
        .or_else(|| linear_rows(event).iter().find_map(|item| item.reference_price.copied()))
}

/// Returns the time of [`reference_price`].
pub fn reference_price_time(event: &wire::UnlockEvent) -> Option<Timestamp> {
    event
        .reference_price_updated_time
        .copied()
        .or_else(|| event.cliff_unlocks.get()?.reference_price_updated_time.copied())
        .or_else(|| event.linear_unlocks.get()?.reference_price_updated_time.copied())
        .or_else(|| cliff_rows(event).iter().find_map(|item| item.reference_price_updated_time.copied()))
        .or_else(|| linear_rows(event).iter().find_map(|item| item.reference_price_updated_time.copied()))
}

/// Returns the source's name of the least precise date.
pub(super) fn least_exact_precision(event: &wire::UnlockEvent) -> Option<&str> {
    let cliffs = cliff_rows(event).iter().filter_map(|item| item.unlock_precision.as_str());
    let linears = linear_rows(event).iter().filter_map(|item| item.unlock_precision.as_str());
    cliffs.chain(linears).max_by_key(|word| Precision::of(Some(word)))
}

pub(super) fn unix_time(seconds: Option<i64>) -> Option<Timestamp> {
    Timestamp::from_timestamp(seconds?, 0)
}

pub(super) fn each_share<'a>(event: &'a wire::UnlockEvent, visit: ItemVisitor<'a, '_>) -> Option<()> {
    let cliffs = event.cliff_unlocks.get().and_then(|cliffs| cliffs.allocation_breakdown.get());
    let linears = event.linear_unlocks.get().and_then(|linears| linears.allocation_breakdown.get());
    if cliffs.is_none() && linears.is_none() {
        return None;
    }
    let _ = cliffs.is_none_or(|items| items.iter().all(|item| visit(ListItem::Cliff(item))))
        && linears.is_none_or(|items| items.iter().all(|item| visit(ListItem::Linear(item))));
    Some(())
}

pub(super) fn cliff_items<'a>(event: &'a wire::UnlockEvent, visit: ItemVisitor<'a, '_>) -> Option<()> {
    event.cliff_unlocks.get()?.allocation_breakdown.get()?.iter().all(|item| visit(ListItem::Cliff(item)));
    Some(())
}

pub(super) fn linear_items<'a>(event: &'a wire::UnlockEvent, visit: ItemVisitor<'a, '_>) -> Option<()> {
    event.linear_unlocks.get()?.allocation_breakdown.get()?.iter().all(|item| visit(ListItem::Linear(item)));
    Some(())
}

pub(super) fn emission_items<'a>(emission: &'a wire::Emission, visit: ItemVisitor<'a, '_>) -> Option<()> {
    emission.allocations.get()?.iter().all(|item| match item {
        wire::NamedOr::Name(name) => visit(ListItem::Name(name)),
        wire::NamedOr::Item(item) => visit(ListItem::Emission(item)),
    });
    Some(())
}

/// Visits the recipients of a record of any kind until `visit` returns `false`.
pub fn each_recipient<'a>(record: &'a Record, visit: ItemVisitor<'a, '_>) {
    let _ = match record {
        Record::Unlock(event) => each_share(event, visit),
        Record::Emission(emission) => emission_items(emission, visit),
        Record::Allocation(row) => {
            let names = [row.allocation_name.as_str(), row.standard_allocation_name.as_str()];
            names.into_iter().flatten().all(|name| visit(ListItem::Name(name)));
            Some(())
        }
        Record::Burn(_) | Record::Buyback(_) | Record::Funding(_) => None,
    };
}

pub fn item_name(item: ListItem<'_>) -> Option<&str> {
    match item {
        ListItem::Cliff(item) => item.allocation_name.as_str(),
        ListItem::Linear(item) => item.allocation_name.as_str(),
        ListItem::Emission(item) => item.allocation_name.as_str(),
        ListItem::Change(item) => Some(&item.name),
        ListItem::Member(item) => Some(&item.name),
        ListItem::Name(name) => Some(name),
    }
}

/// Returns the standardized category of the recipient.
pub fn item_category(item: ListItem<'_>) -> Option<&str> {
    match item {
        ListItem::Cliff(item) => item.standard_allocation_name.as_str(),
        ListItem::Linear(item) => item.standard_allocation_name.as_str(),
        ListItem::Emission(item) => item.standard_allocation_name.as_str(),
        ListItem::Change(_) | ListItem::Member(_) | ListItem::Name(_) => None,
    }
}

fn cliff_rows(event: &wire::UnlockEvent) -> &[wire::CliffAllocation] {
    event.cliff_unlocks.get().map_or(&[], |cliffs| cliffs.allocation_breakdown.items())
}

fn linear_rows(event: &wire::UnlockEvent) -> &[wire::LinearAllocation] {
    event.linear_unlocks.get().map_or(&[], |linears| linears.allocation_breakdown.items())
}

pub(super) fn committed_claims(event: &wire::UnlockEvent) -> impl Iterator<Item = &wire::CommittedClaim> {
    cliff_rows(event).iter().filter_map(|item| item.committed_claim.get())
}

/// Returns the source's name of the precision of a recipient's date.
pub(super) fn part_precision(item: ListItem<'_>) -> Option<&str> {
    match item {
        ListItem::Cliff(cliff) => cliff.unlock_precision.as_str(),
        ListItem::Linear(linear) => linear.unlock_precision.as_str(),
        _ => None,
    }
}

pub(super) fn part_reference_price(item: ListItem<'_>) -> Option<f64> {
    match item {
        ListItem::Cliff(cliff) => cliff.reference_price.copied(),
        ListItem::Linear(linear) => linear.reference_price.copied(),
        _ => None,
    }
}
