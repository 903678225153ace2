//! Imports the files of a token: schedule, allocations, emission, burns, and buybacks.

use serde::Serialize;

use super::{ImportRun, rows_of};
use crate::ServiceError;
use crate::data_folder::{FOLDERS, SourceFile};
use crate::edit::event_row;
use model::wire::{Allocation, AllocationsData, Burn, BurnData, Buyback, BuybackData, Emission, Maybe, TokenItem, UnlockEvent};
use model::{Resource, Timestamp};

impl ImportRun<'_> {
    pub(super) fn token_file(&mut self, folder: &str, id: &str, file: &SourceFile) -> Result<(), ServiceError> {
        if let Some(token) = self.tokens.get_mut(id) {
            token.content.update(folder.as_bytes());
            token.content.update(file.text.as_bytes());
        }
        match folder {
            "unlock-events" => self.unlock_events(id, file),
            "allocations" => self.allocations(id, file),
            "daily-emission" => {
                let days = self.problems.rows::<Emission>(file, "startDate", |day| day.start_date.copied());
                for (index, day) in days.iter().enumerate() {
                    let record = format!("[{index}]");
                    self.problems.check_amounts(file, &record, &[("unlockAmount", day.unlock_amount)]);
                    self.problems.check_order(file, &record, ("startDate", day.start_date), ("endDate", day.end_date));
                }
                self.imported.days += days.len();
                self.put(Resource::Emission, id, &days, |day| day.start_date.copied())
            }
            "burn" => {
                let Some(mut data) = self.problems.parse::<BurnData>(file) else {
                    return Ok(());
                };
                let burns = std::mem::take(&mut data.burns).into_option().unwrap_or_default();
                self.problems.check_dates(file, "burns", "burnDate", &burns, |burn| burn.burn_date.copied());
                for (index, burn) in burns.iter().enumerate() {
                    self.problems.check_amounts(
                        file,
                        &format!("burns[{index}]"),
                        &[("amount", burn.amount), ("value", burn.value)],
                    );
                }
                self.imported.burns += burns.len();
                self.flag(id, |item| item.has_burn = (!burns.is_empty()).into());
                self.draft.put_header(Resource::Burn, id, &data)?;
                self.put(Resource::Burn, id, &burns, |burn: &Burn| burn.burn_date.copied())
            }
            "buyback" => {
                let Some(mut data) = self.problems.parse::<BuybackData>(file) else {
                    return Ok(());
                };
                let buybacks = std::mem::take(&mut data.buybacks).into_option().unwrap_or_default();
                self.problems.check_dates(file, "buybacks", "buybackDate", &buybacks, |buyback| buyback.buyback_date.copied());
                for (index, row) in buybacks.iter().enumerate() {
                    let amounts = [("tokenAmount", row.token_amount), ("value", row.value), ("spentAmount", row.spent_amount)];
                    self.problems.check_amounts(file, &format!("buybacks[{index}]"), &amounts);
                }
                self.imported.buybacks += buybacks.len();
                self.flag(id, |item| item.has_buyback = (!buybacks.is_empty()).into());
                self.draft.put_header(Resource::Buyback, id, &data)?;
                self.put(Resource::Buyback, id, &buybacks, |buyback: &Buyback| buyback.buyback_date.copied())
            }
            _ => {
                self.problems.add(&file.path, "", format!("unknown folder: expected one of {}", FOLDERS.join(", ")));
                Ok(())
            }
        }
    }

    fn unlock_events(&mut self, id: &str, file: &SourceFile) -> Result<(), ServiceError> {
        let mut events = self.problems.rows::<UnlockEvent>(file, "unlockDate", |event| event.unlock_date.copied());
        self.imported.events += events.len();
        for (index, event) in events.iter().enumerate() {
            self.problems.event(file, index, event);
        }
        // If the file has the field in any event, an absent field means that the event has no linear unlocks.
        if events.iter().any(|event| !event.linear_unlocks.is_absent()) {
            for event in &mut events {
                if event.linear_unlocks.is_absent() {
                    event.linear_unlocks = Maybe::Null;
                }
            }
        }
        let newest = events.iter().filter_map(|event| event.latest_update_date.copied()).max();
        let claimed = events
            .iter()
            .flat_map(|event| event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items()))
            .any(|item| item.committed_claim.get().is_some());
        if let Some(token) = self.tokens.get_mut(id) {
            token.updated = token.updated.max(newest);
            token.item.has_committed_claim = claimed.into();
            token.is_uncovered &= events.is_empty();
        }
        Ok(self.draft.put_records(Resource::Unlock, id, events.iter().map(event_row))?)
    }

    fn allocations(&mut self, id: &str, file: &SourceFile) -> Result<(), ServiceError> {
        let Some(mut data) = self.problems.parse::<AllocationsData>(file) else {
            return Ok(());
        };
        let rows = std::mem::take(&mut data.allocations).into_option().unwrap_or_default();
        for (index, row) in rows.iter().enumerate() {
            let amounts = [
                ("allocationAmount", row.allocation_amount),
                ("allocationUnlockedAmount", row.allocation_unlocked_amount),
                ("allocationLockedAmount", row.allocation_locked_amount),
            ];
            self.problems.check_amounts(file, &format!("allocations[{index}]"), &amounts);
        }
        self.imported.allocations += rows.len();
        if let Some(token) = self.tokens.get_mut(id) {
            token.updated = token.updated.max(data.last_updated_date.copied());
            let item = &mut token.item;
            item.total_locked_amount = Maybe::or_null(data.total_locked_amount.copied());
            item.tbd_locked_amount = Maybe::or_null(data.total_tbd_locked_amount.copied());
            item.unlocked_amount = Maybe::or_null(data.total_unlocked_amount.copied());
            item.untracked_amount = Maybe::or_null(data.total_untracked_amount.copied());
            item.has_standard_allocation = rows.iter().any(|row| row.standard_allocation_name.get().is_some()).into();
        }
        self.draft.put_header(Resource::Allocation, id, &data)?;
        self.put(Resource::Allocation, id, &rows, |_: &Allocation| None)
    }

    pub(super) fn put<T: Serialize>(
        &self,
        resource: Resource,
        id: &str,
        rows: &[T],
        date: fn(&T) -> Option<Timestamp>,
    ) -> Result<(), ServiceError> {
        Ok(self.draft.put_records(resource, id, rows_of(rows, date))?)
    }

    fn flag(&mut self, id: &str, change: impl FnOnce(&mut TokenItem)) {
        if let Some(token) = self.tokens.get_mut(id) {
            change(&mut token.item);
        }
    }
}
