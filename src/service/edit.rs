//! Changes of the data in the words of the domain, for the demo and for tests: the source corrects a schedule.
//!
//! Each change carries through what depends on it: totals of the event, values at its price, the allocation table, the totals of the
//! token list, `latestUpdateDate` of the event and `lastUpdatedDate` of the token. Stored daily emission of a token whose schedule
//! changed is dropped, so that it is made from the schedule from then on.

mod carry;
mod event;
#[cfg(any(test, feature = "faults"))]
mod fixture;

use std::collections::BTreeSet;

use chrono::TimeDelta;

use carry::amounts;
use model::wire::{Burn, Buyback, Emission, TokenItem, UnlockEvent};
use model::{Resource, Timestamp};
use store::catalog::{CatalogChange, CatalogError, CatalogRecord};
use store::facts::{DateRange, FactsError, SupplyFacts as _};

/// A change that makes no sense for the data.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The database, while it was read.
    #[error(transparent)]
    SupplyFacts(#[from] FactsError),
    #[error("token \"{0}\" is not in the data")]
    UnknownToken(String),
    #[error("token \"{token}\" has no unlock event at {at}")]
    UnknownEvent {
        token: String,
        /// When.
        at: Timestamp,
    },
    #[error("a token of the list needs an id")]
    NoId,
}

/// A transaction of changes.
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

    /// Marks what was touched as updated now: later than before in any case, so that a change within the same second is seen.
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

    /// Ids of the list.
    pub fn tokens(&self) -> Result<Vec<TokenItem>, EditError> {
        Ok(self.draft.tokens()?)
    }

    /// The schedule of a token, oldest first.
    pub fn events(&self, token: &str) -> Result<Vec<UnlockEvent>, EditError> {
        Ok(self.draft.records(Resource::Unlock, token, DateRange::default())?)
    }

    /// Moves the event at `from`, parts and linear segments with it. An event that is already at `to` takes its parts.
    /// Fails where there is no such token or event.
    pub fn move_event(&mut self, token: &str, from: Timestamp, to: Timestamp) -> Result<(), EditError> {
        self.change_events(token, |events, now| {
            let index = find(events, token, from)?;
            let mut event = events.remove(index);
            event.latest_update_date = now.into();
            event::shift(&mut event, from, to);
            match events.iter_mut().find(|there| there.unlock_date.copied() == Some(to)) {
                Some(there) => event::merge(there, event),
                None => events.push(event),
            }
            Ok(())
        })
    }

    /// Multiplies all amounts of the event at `at`. Fails where there is no such token or event.
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

    /// Adds a burn; the token list then says that the token has burns. Fails where there is no such token.
    pub fn add_burn(&mut self, token: &str, burn: Burn) -> Result<(), EditError> {
        self.put_item(token, |item| item.has_burn = true.into())?;
        let mut burns: Vec<Burn> = self.draft.records(Resource::Burn, token, DateRange::default())?;
        burns.push(burn);
        let rows =
            burns.iter().map(|burn| CatalogRecord { date: burn.burn_date.copied(), cliff: false, about: None, body: burn });
        Ok(self.draft.put_records(Resource::Burn, token, rows)?)
    }

    /// Adds a buyback; the token list then says that the token has buybacks. Fails where there is no such token.
    pub fn add_buyback(&mut self, token: &str, buyback: Buyback) -> Result<(), EditError> {
        self.put_item(token, |item| item.has_buyback = true.into())?;
        let mut buybacks: Vec<Buyback> = self.draft.records(Resource::Buyback, token, DateRange::default())?;
        buybacks.push(buyback);
        let rows =
            buybacks.iter().map(|row| CatalogRecord { date: row.buyback_date.copied(), cliff: false, about: None, body: row });
        Ok(self.draft.put_records(Resource::Buyback, token, rows)?)
    }

    /// Changes fields of the token list. Fails where there is no such token.
    pub fn put_item(&mut self, token: &str, change: impl FnOnce(&mut TokenItem)) -> Result<(), EditError> {
        let mut item = self.draft.token(token)?.ok_or_else(|| EditError::UnknownToken(token.to_owned()))?;
        change(&mut item);
        // The id is the row's key: it stays.
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
        self.carry_amounts(token, &before, &after)
    }
}

/// In place of the hash of imported files: no import is equal to an edit.
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
