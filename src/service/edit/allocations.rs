//! Updates the allocation table and the token list after an edit of a schedule.

use std::collections::BTreeMap;

use super::{Edit, EditError};
use model::wire::{Allocation, AllocationsData, Maybe, UnlockEvent};
use model::{Resource, Timestamp};
use store::catalog::CatalogRecord;
use store::facts::{DateRange, SupplyFacts as _};

/// Unlocked and locked tokens by allocation name.
pub(super) type AllocationAmounts = BTreeMap<String, (f64, f64)>;

impl Edit<'_> {
    /// Applies the difference of two schedules to the allocation table and the token list. Additional tokens reduce the untracked
    /// amount first, then raise the max supply.
    pub(super) fn update_allocations(
        &mut self,
        token: &str,
        before: &AllocationAmounts,
        after: &AllocationAmounts,
    ) -> Result<(), EditError> {
        let Some(mut table) = self.draft.header::<AllocationsData>(Resource::Allocation, token)? else {
            return Ok(());
        };
        let mut rows: Vec<Allocation> = self.draft.records(Resource::Allocation, token, DateRange::default())?;
        let grow = |field: &mut Maybe<f64>, by: f64| {
            if let Maybe::Value(amount) = field {
                *amount += by;
            }
        };
        let mut changed = false;
        for name in before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))) {
            let (unlocked_before, locked_before) = before.get(name).copied().unwrap_or_default();
            let (unlocked_after, locked_after) = after.get(name).copied().unwrap_or_default();
            let (unlocked, locked) = (unlocked_after - unlocked_before, locked_after - locked_before);
            if unlocked == 0.0 && locked == 0.0 {
                continue;
            }
            changed = true;
            if let Some(row) = rows.iter_mut().find(|row| row.allocation_name.as_str() == Some(name)) {
                grow(&mut row.allocation_unlocked_amount, unlocked);
                grow(&mut row.allocation_locked_amount, locked);
                grow(&mut row.allocation_amount, unlocked + locked);
            }
            grow(&mut table.total_unlocked_amount, unlocked);
            grow(&mut table.total_locked_amount, locked);
            let untracked = table.total_untracked_amount.copied().unwrap_or(0.0);
            let left = untracked - (unlocked + locked);
            if let Maybe::Value(amount) = &mut table.total_untracked_amount {
                *amount = left.max(0.0);
            }
            if left < 0.0 {
                grow(&mut table.max_supply, -left);
            }
        }
        if changed { self.put_table(token, table, &rows) } else { Ok(()) }
    }

    /// Returns the row of an allocation.
    pub(super) fn allocation(&self, token: &str, name: &str) -> Result<Option<Allocation>, EditError> {
        let rows: Vec<Allocation> = self.draft.records(Resource::Allocation, token, DateRange::default())?;
        Ok(rows.into_iter().find(|row| row.allocation_name.as_str() == Some(name)))
    }

    /// Replaces the row of an allocation.
    pub(super) fn replace_allocation(&mut self, token: &str, name: &str, new: Allocation) -> Result<(), EditError> {
        let Some(table) = self.draft.header::<AllocationsData>(Resource::Allocation, token)? else { return Ok(()) };
        let mut rows: Vec<Allocation> = self.draft.records(Resource::Allocation, token, DateRange::default())?;
        if let Some(row) = rows.iter_mut().find(|row| row.allocation_name.as_str() == Some(name)) {
            *row = new;
        }
        self.put_table(token, table, &rows)
    }

    pub(super) fn put_table(&mut self, token: &str, table: AllocationsData, rows: &[Allocation]) -> Result<(), EditError> {
        self.draft.put_header(Resource::Allocation, token, &table)?;
        let rows = rows.iter().map(|row| CatalogRecord { date: None, cliff: false, about: None, body: row });
        self.draft.put_records(Resource::Allocation, token, rows)?;
        self.put_item(token, |item| {
            item.max_supply = table.max_supply;
            item.unlocked_amount = table.total_unlocked_amount;
            item.total_locked_amount = table.total_locked_amount;
            item.tbd_locked_amount = table.total_tbd_locked_amount;
            item.untracked_amount = table.total_untracked_amount;
        })
    }
}

/// Returns the unlocked and locked tokens of a schedule at `now`, by allocation.
pub(super) fn amounts(events: &[UnlockEvent], now: Timestamp) -> AllocationAmounts {
    let mut amounts = AllocationAmounts::new();
    for event in events {
        for item in event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items()) {
            let amount = item.cliff_amount.copied().unwrap_or(0.0);
            let entry = amounts.entry(item.allocation_name.as_str().unwrap_or_default().to_owned()).or_default();
            if event.unlock_date.copied().is_some_and(|at| at <= now) {
                entry.0 += amount;
            } else {
                entry.1 += amount;
            }
        }
        for item in event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items()) {
            let amount = item.linear_amount.copied().unwrap_or(0.0);
            let share = match (item.begin_date.copied(), item.end_date.copied()) {
                (Some(begin), Some(end)) if end > begin => {
                    (model::supply::days(now - begin) / model::supply::days(end - begin)).clamp(0.0, 1.0)
                }
                (Some(begin), _) if begin <= now => 1.0,
                _ => 0.0,
            };
            let entry = amounts.entry(item.allocation_name.as_str().unwrap_or_default().to_owned()).or_default();
            entry.0 += amount * share;
            entry.1 += amount * (1.0 - share);
        }
    }
    amounts
}
