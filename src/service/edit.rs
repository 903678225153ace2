//! Edits the data for the demo and for tests, for example to correct a schedule.
//!
//! Each edit also updates everything that depends on it: totals and values of the event, the allocation table, the totals of the token
//! list, `latestUpdateDate` of the event, and `lastUpdatedDate` of the token. An edit of a schedule deletes the stored daily emission,
//! which is then computed from the schedule.

mod allocations;
mod event;
#[cfg(any(test, feature = "test-edits"))]
mod fixture;

use std::collections::BTreeSet;

use chrono::TimeDelta;

use allocations::amounts;
use model::wire::{Allocation, Burn, Buyback, Emission, Maybe, TokenItem, UnlockEvent};
use model::{Resource, Timestamp};
use store::catalog::{CatalogChange, CatalogError, CatalogRecord};
use store::facts::{DateRange, FactsError, SupplyFacts as _};

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    SupplyFacts(#[from] FactsError),
    #[error("token \"{0}\" is not in the data")]
    UnknownToken(String),
    #[error("token \"{token}\" has no unlock event at {at}")]
    UnknownEvent { token: String, at: Timestamp },
    #[error("the token or investor has no id")]
    NoId,
}

/// A transaction of edits.
#[derive(Debug)]
pub struct Edit<'a> {
    draft: &'a CatalogChange<'a>,
    now: Timestamp,
    touched: BTreeSet<String>,
    silent: bool,
}

impl<'a> Edit<'a> {
    pub(crate) fn new(draft: &'a CatalogChange<'a>, now: Timestamp) -> Self {
        Self { draft, now, touched: BTreeSet::new(), silent: false }
    }

    /// Sets `lastUpdatedDate` of the edited tokens to now, or one second later than before, so that every edit changes it.
    pub(crate) fn finish(self) -> Result<(), EditError> {
        if self.silent {
            return Ok(());
        }
        for token in &self.touched {
            let Some(mut item) = self.draft.token(token)? else { continue };
            let before = item.last_updated_date.copied();
            item.last_updated_date = before.map_or(self.now, |before| self.now.max(before + TimeDelta::seconds(1))).into();
            self.draft.put_token(token, &item, EDITED)?;
        }
        Ok(())
    }

    pub fn tokens(&self) -> Result<Vec<TokenItem>, EditError> {
        Ok(self.draft.tokens()?)
    }

    /// Returns the schedule of a token, oldest event first.
    pub fn events(&self, token: &str) -> Result<Vec<UnlockEvent>, EditError> {
        Ok(self.draft.records(Resource::Unlock, token, DateRange::default())?)
    }

    /// Moves the event at `from` with its allocation shares and linear segments, and merges it with an event at `to`.
    pub fn move_event(&mut self, token: &str, from: Timestamp, to: Timestamp) -> Result<(), EditError> {
        self.change_events(token, |events, now| {
            let index = find(events, token, from)?;
            let mut event = events.remove(index);
            event.latest_update_date = now.into();
            event::shift(&mut event, from, to);
            match events.iter_mut().find(|target| target.unlock_date.copied() == Some(to)) {
                Some(target) => event::merge(target, event),
                None => events.push(event),
            }
            Ok(())
        })
    }

    /// Multiplies all amounts of the event at `at`.
    pub fn resize_event(&mut self, token: &str, at: Timestamp, factor: f64) -> Result<(), EditError> {
        self.change_events(token, |events, now| {
            let index = find(events, token, at)?;
            if let Some(event) = events.get_mut(index) {
                event.latest_update_date = now.into();
                event::scale(event, factor);
            }
            Ok(())
        })
    }

    /// Moves half of the event at `at` to `to`.
    pub fn split_event(&mut self, token: &str, at: Timestamp, to: Timestamp) -> Result<(), EditError> {
        self.change_events(token, |events, now| {
            let index = find(events, token, at)?;
            if let Some(event) = events.get_mut(index) {
                event.latest_update_date = now.into();
                event::scale(event, 0.5);
                let mut half = event.clone();
                event::shift(&mut half, at, to);
                events.push(half);
            }
            Ok(())
        })
    }

    /// Renames an allocation in the whole schedule and in the allocation table.
    pub fn rename_allocation(&mut self, token: &str, from: &str, to: &str) -> Result<(), EditError> {
        let known = self.allocation(token, from)?;
        self.change_events(token, |events, now| {
            for event in events {
                if event::rename(event, from, to) {
                    event.latest_update_date = now.into();
                }
            }
            Ok(())
        })?;
        // The amounts of the schedule moved away from the former name.
        match known {
            Some(known) => self.replace_allocation(token, from, Allocation { allocation_name: to.to_owned().into(), ..known }),
            None => Ok(()),
        }
    }

    pub fn remove_event(&mut self, token: &str, at: Timestamp) -> Result<(), EditError> {
        self.change_events(token, |events, _| {
            let index = find(events, token, at)?;
            events.remove(index);
            Ok(())
        })
    }

    /// Replaces the schedule of a token. The events can be in any order.
    pub fn put_events(&mut self, token: &str, schedule: Vec<UnlockEvent>) -> Result<(), EditError> {
        self.change_events(token, |events, _| {
            *events = schedule;
            // The schedule is complete, so an absent field means that the event has no linear unlocks.
            for event in events {
                if event.linear_unlocks.is_absent() {
                    event.linear_unlocks = Maybe::Null;
                }
            }
            Ok(())
        })
    }

    /// Adds a burn and sets `hasBurn` in the token list.
    pub fn add_burn(&mut self, token: &str, burn: Burn) -> Result<(), EditError> {
        self.put_item(token, |item| item.has_burn = true.into())?;
        let mut burns: Vec<Burn> = self.draft.records(Resource::Burn, token, DateRange::default())?;
        burns.push(burn);
        let rows =
            burns.iter().map(|burn| CatalogRecord { date: burn.burn_date.copied(), cliff: false, about: None, body: burn });
        Ok(self.draft.put_records(Resource::Burn, token, rows)?)
    }

    /// Adds a buyback and sets `hasBuyback` in the token list.
    pub fn add_buyback(&mut self, token: &str, buyback: Buyback) -> Result<(), EditError> {
        self.put_item(token, |item| item.has_buyback = true.into())?;
        let mut buybacks: Vec<Buyback> = self.draft.records(Resource::Buyback, token, DateRange::default())?;
        buybacks.push(buyback);
        let rows =
            buybacks.iter().map(|row| CatalogRecord { date: row.buyback_date.copied(), cliff: false, about: None, body: row });
        Ok(self.draft.put_records(Resource::Buyback, token, rows)?)
    }

    /// Changes an item of the token list, except its id.
    pub fn put_item(&mut self, token: &str, change: impl FnOnce(&mut TokenItem)) -> Result<(), EditError> {
        let mut item = self.draft.token(token)?.ok_or_else(|| EditError::UnknownToken(token.to_owned()))?;
        change(&mut item);
        item.id = token.to_owned().into();
        self.draft.put_token(token, &item, EDITED)?;
        self.touched.insert(token.to_owned());
        Ok(())
    }

    fn change_events(
        &mut self,
        token: &str,
        change: impl FnOnce(&mut Vec<UnlockEvent>, Timestamp) -> Result<(), EditError>,
    ) -> Result<(), EditError> {
        self.draft.token(token)?.ok_or_else(|| EditError::UnknownToken(token.to_owned()))?;
        let mut events = self.events(token)?;
        let before = amounts(&events, self.now);
        change(&mut events, self.now)?;
        events.sort_by_key(|event| event.unlock_date.copied());
        let after = amounts(&events, self.now);
        let rows = events.iter().map(event_row);
        self.draft.put_records(Resource::Unlock, token, rows)?;
        self.draft.put_records(Resource::Emission, token, std::iter::empty::<CatalogRecord<'_, Emission>>())?;
        self.touched.insert(token.to_owned());
        self.update_allocations(token, &before, &after)
    }
}

/// Replaces the hash of imported files, so that a later import counts as a change.
const EDITED: &str = "edited";

pub(crate) fn event_row(event: &UnlockEvent) -> CatalogRecord<'_, UnlockEvent> {
    CatalogRecord { date: event.unlock_date.copied(), cliff: event.cliff_unlocks.get().is_some(), about: None, body: event }
}

fn find(events: &[UnlockEvent], token: &str, at: Timestamp) -> Result<usize, EditError> {
    events
        .iter()
        .position(|event| event.unlock_date.copied() == Some(at))
        .ok_or_else(|| EditError::UnknownEvent { token: token.to_owned(), at })
}
