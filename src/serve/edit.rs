//! Changes of the data in the words of the domain, for the demo and for tests: the source corrects a schedule.
//!
//! Each change carries through what depends on it: totals of the event, values at its price, the allocation table, the totals of the
//! token list, `latestUpdateDate` of the event and `lastUpdatedDate` of the token. Stored daily emission of a token whose schedule
//! changed is dropped, so that it is made from the schedule from then on.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::answer::total_cliffs;
use crate::{
    store::{
        catalog::{CatalogError, Draft, Row},
        facts::{Facts as _, FactsError, Window},
    },
    supply::{Resource, Timestamp},
    wire::{Allocation, AllocationsData, Burn, Buyback, Emission, Maybe, TokenItem, UnlockEvent},
};

/// A change that makes no sense for the data.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The database.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The database, while it was read.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// No such token.
    #[error("token \"{0}\" is not in the data")]
    UnknownToken(String),
    /// No event at that instant.
    #[error("token \"{token}\" has no unlock event at {at}")]
    UnknownEvent {
        /// Which token.
        token: String,
        /// When.
        at: Timestamp,
    },
    /// A token without an id.
    #[error("a token of the list needs an id")]
    NoId,
}

/// A transaction of changes.
#[derive(Debug)]
pub struct Edit<'a> {
    draft: &'a Draft<'a>,
    now: Timestamp,
    touched: BTreeSet<String>,
    silent: bool,
}

/// Per allocation name: unlocked and locked tokens.
type Amounts = BTreeMap<String, (f64, f64)>;

impl<'a> Edit<'a> {
    pub(super) fn new(draft: &'a Draft<'a>, now: Timestamp) -> Self {
        Self { draft, now, touched: BTreeSet::new(), silent: false }
    }

    /// Leaves every `lastUpdatedDate` as it is: the source corrects something and does not say so.
    pub fn silently(&mut self) {
        self.silent = true;
    }

    /// Marks what was touched as updated now: later than before in any case, so that a change within the same second is seen.
    pub(super) fn finish(self) -> Result<(), EditError> {
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
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn tokens(&self) -> Result<Vec<TokenItem>, EditError> {
        Ok(self.draft.tokens()?)
    }

    /// The schedule of a token, oldest first.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn events(&self, token: &str) -> Result<Vec<UnlockEvent>, EditError> {
        Ok(self.draft.records(Resource::Unlock, token, Window::default())?)
    }

    /// Moves the event at `from`, parts and linear segments with it. An event that is already at `to` takes it in.
    ///
    /// # Errors
    /// Where there is no such token or event.
    pub fn move_event(&mut self, token: &str, from: Timestamp, to: Timestamp) -> Result<(), EditError> {
        self.change_events(token, |events, now| {
            let index = find(events, token, from)?;
            let mut event = events.remove(index);
            let shift = to - from;
            event.unlock_date = to.into();
            event.latest_update_date = now.into();
            if let Maybe::Value(cliffs) = &mut event.cliff_unlocks
                && let Maybe::Value(items) = &mut cliffs.allocation_breakdown
            {
                for item in items {
                    item.unlock_date = to.into();
                }
            }
            if let Maybe::Value(linears) = &mut event.linear_unlocks
                && let Maybe::Value(items) = &mut linears.allocation_breakdown
            {
                for item in items {
                    for date in [&mut item.begin_date, &mut item.end_date] {
                        if let Maybe::Value(date) = date {
                            *date = date.checked_add_signed(shift).unwrap_or(*date);
                        }
                    }
                }
            }
            match events.iter_mut().find(|there| there.unlock_date.copied() == Some(to)) {
                Some(there) => take_in(there, event),
                None => events.push(event),
            }
            Ok(())
        })
    }

    /// Multiplies all amounts of the event at `at`.
    ///
    /// # Errors
    /// Where there is no such token or event.
    pub fn resize_event(&mut self, token: &str, at: Timestamp, factor: f64) -> Result<(), EditError> {
        self.change_events(token, |events, now| {
            let index = find(events, token, at)?;
            let Some(event) = events.get_mut(index) else { return Ok(()) };
            event.latest_update_date = now.into();
            let scale = |amount: &mut Maybe<f64>| {
                if let Maybe::Value(amount) = amount {
                    *amount *= factor;
                }
            };
            if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
                [&mut cliffs.cliff_amount, &mut cliffs.cliff_value, &mut cliffs.value_to_market_cap].into_iter().for_each(scale);
                if let Maybe::Value(items) = &mut cliffs.allocation_breakdown {
                    for item in items {
                        [&mut item.cliff_amount, &mut item.cliff_value].into_iter().for_each(scale);
                    }
                }
            }
            if let Maybe::Value(linears) = &mut event.linear_unlocks {
                [&mut linears.linear_amount, &mut linears.linear_value, &mut linears.daily_amount, &mut linears.daily_value]
                    .into_iter()
                    .for_each(scale);
                if let Maybe::Value(items) = &mut linears.allocation_breakdown {
                    for item in items {
                        [&mut item.linear_amount, &mut item.linear_value, &mut item.daily_amount, &mut item.daily_value]
                            .into_iter()
                            .for_each(scale);
                    }
                }
            }
            Ok(())
        })
    }

    /// Gives a token a new reference price: values, and with them the market cap, drift; amounts, dates and marks of change stay, as
    /// with the source's own daily prices.
    ///
    /// # Errors
    /// Where there is no such token.
    pub fn reprice(&mut self, token: &str, price: f64) -> Result<(), EditError> {
        let mut item = self.draft.token(token)?.ok_or_else(|| EditError::UnknownToken(token.to_owned()))?;
        let mut events = self.events(token)?;
        let now = self.now;
        let valued = |amount: Maybe<f64>| Maybe::or_null(amount.copied().map(|amount| amount * price));
        for event in &mut events {
            if let Maybe::Value(cliffs) = &mut event.cliff_unlocks {
                cliffs.cliff_value = valued(cliffs.cliff_amount);
                if let Maybe::Value(items) = &mut cliffs.allocation_breakdown {
                    for item in items {
                        item.cliff_value = valued(item.cliff_amount);
                        item.reference_price = price.into();
                        item.reference_price_updated_time = now.into();
                    }
                }
            }
            if let Maybe::Value(linears) = &mut event.linear_unlocks {
                linears.linear_value = valued(linears.linear_amount);
                linears.daily_value = valued(linears.daily_amount);
                linears.reference_price = price.into();
                linears.reference_price_updated_time = now.into();
                if let Maybe::Value(items) = &mut linears.allocation_breakdown {
                    for item in items {
                        item.linear_value = valued(item.linear_amount);
                        item.daily_value = valued(item.daily_amount);
                        item.reference_price = price.into();
                        item.reference_price_updated_time = now.into();
                    }
                }
            }
        }
        self.draft.put_records(Resource::Unlock, token, events.iter().map(event_row))?;
        self.draft.put_records(Resource::Emission, token, std::iter::empty::<Row<'_, Emission>>())?;
        item.market_cap = valued(item.circulating_supply);
        Ok(self.draft.put_token(token, &item, EDITED)?)
    }

    /// Takes the event at `at` out.
    ///
    /// # Errors
    /// Where there is no such token or event.
    pub fn remove_event(&mut self, token: &str, at: Timestamp) -> Result<(), EditError> {
        self.change_events(token, |events, _| {
            let index = find(events, token, at)?;
            events.remove(index);
            Ok(())
        })
    }

    /// Writes a whole schedule in place of the one there is, in any order.
    ///
    /// # Errors
    /// Where there is no such token.
    pub fn put_events(&mut self, token: &str, schedule: Vec<UnlockEvent>) -> Result<(), EditError> {
        self.change_events(token, |events, _| {
            *events = schedule;
            // Whoever writes a schedule says all there is: no linear unlocks means that there are none.
            for event in events {
                if event.linear_unlocks.is_absent() {
                    event.linear_unlocks = Maybe::Null;
                }
            }
            Ok(())
        })
    }

    /// Adds a burn; the token list then says that the token has burns.
    ///
    /// # Errors
    /// Where there is no such token.
    pub fn add_burn(&mut self, token: &str, burn: Burn) -> Result<(), EditError> {
        self.put_item(token, |item| item.has_burn = true.into())?;
        let mut burns: Vec<Burn> = self.draft.records(Resource::Burn, token, Window::default())?;
        burns.push(burn);
        let rows = burns.iter().map(|burn| Row { date: burn.burn_date.copied(), cliff: false, about: None, body: burn });
        Ok(self.draft.put_records(Resource::Burn, token, rows)?)
    }

    /// Adds a buyback; the token list then says that the token has buybacks.
    ///
    /// # Errors
    /// Where there is no such token.
    pub fn add_buyback(&mut self, token: &str, buyback: Buyback) -> Result<(), EditError> {
        self.put_item(token, |item| item.has_buyback = true.into())?;
        let mut buybacks: Vec<Buyback> = self.draft.records(Resource::Buyback, token, Window::default())?;
        buybacks.push(buyback);
        let rows = buybacks.iter().map(|row| Row { date: row.buyback_date.copied(), cliff: false, about: None, body: row });
        Ok(self.draft.put_records(Resource::Buyback, token, rows)?)
    }

    /// Changes fields of the token list.
    ///
    /// # Errors
    /// Where there is no such token.
    pub fn put_item(&mut self, token: &str, change: impl FnOnce(&mut TokenItem)) -> Result<(), EditError> {
        let mut item = self.draft.token(token)?.ok_or_else(|| EditError::UnknownToken(token.to_owned()))?;
        change(&mut item);
        // The id is the row's key: it stays.
        item.id = token.to_owned().into();
        self.draft.put_token(token, &item, EDITED)?;
        self.touched.insert(token.to_owned());
        Ok(())
    }

    /// Adds a token to the list, or writes the item of one that is there.
    ///
    /// # Errors
    /// Where the item has no id.
    pub fn put_token(&mut self, item: &TokenItem) -> Result<(), EditError> {
        let id = item.id.as_str().filter(|id| !id.is_empty()).ok_or(EditError::NoId)?;
        self.draft.put_token(id, item, EDITED)?;
        self.touched.insert(id.to_owned());
        Ok(())
    }

    /// Takes a token out of the list, with all its records.
    ///
    /// # Errors
    /// Where there is no such token.
    pub fn remove_token(&mut self, token: &str) -> Result<(), EditError> {
        self.draft.token(token)?.ok_or_else(|| EditError::UnknownToken(token.to_owned()))?;
        self.touched.remove(token);
        Ok(self.draft.remove_token(token)?)
    }

    /// Writes a token's allocation table, the totals of `table` included.
    ///
    /// # Errors
    /// Where there is no such token.
    pub fn put_allocations(&mut self, token: &str, mut table: AllocationsData) -> Result<(), EditError> {
        let rows = std::mem::take(&mut table.allocations).into_option().unwrap_or_default();
        self.put_table(token, table, &rows)
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
        self.draft.put_records(Resource::Emission, token, std::iter::empty::<Row<'_, Emission>>())?;
        self.touched.insert(token.to_owned());
        self.carry_amounts(token, &before, &after)
    }

    /// Carries the difference of two schedules into the allocation table and the list. What is added comes out of the untracked
    /// supply, and beyond that raises the maximum.
    fn carry_amounts(&mut self, token: &str, before: &Amounts, after: &Amounts) -> Result<(), EditError> {
        let Some(mut table) = self.draft.header::<AllocationsData>(Resource::Allocation, token)? else {
            return Ok(());
        };
        let mut rows: Vec<Allocation> = self.draft.records(Resource::Allocation, token, Window::default())?;
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

    fn put_table(&mut self, token: &str, table: AllocationsData, rows: &[Allocation]) -> Result<(), EditError> {
        self.draft.put_header(Resource::Allocation, token, &table)?;
        let rows = rows.iter().map(|row| Row { date: None, cliff: false, about: None, body: row });
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

/// In place of the hash of imported files: no import is equal to an edit.
const EDITED: &str = "edited";

/// An event as a row.
pub(super) fn event_row(event: &UnlockEvent) -> Row<'_, UnlockEvent> {
    Row { date: event.unlock_date.copied(), cliff: event.cliff_unlocks.get().is_some(), about: None, body: event }
}

fn find(events: &[UnlockEvent], token: &str, at: Timestamp) -> Result<usize, EditError> {
    events
        .iter()
        .position(|event| event.unlock_date.copied() == Some(at))
        .ok_or_else(|| EditError::UnknownEvent { token: token.to_owned(), at })
}

/// Adds the parts of an event to another one of the same instant.
fn take_in(there: &mut UnlockEvent, event: UnlockEvent) {
    there.latest_update_date = event.latest_update_date;
    match (&mut there.cliff_unlocks, event.cliff_unlocks) {
        (Maybe::Value(there), Maybe::Value(more)) => {
            let items = more.allocation_breakdown.into_option().unwrap_or_default();
            match &mut there.allocation_breakdown {
                Maybe::Value(list) => list.extend(items),
                list => *list = items.into(),
            }
            total_cliffs(there);
        }
        (there, more @ Maybe::Value(_)) => *there = more,
        _ => {}
    }
    match (&mut there.linear_unlocks, event.linear_unlocks) {
        (Maybe::Value(there), Maybe::Value(more)) => {
            let items = more.allocation_breakdown.into_option().unwrap_or_default();
            match &mut there.allocation_breakdown {
                Maybe::Value(list) => list.extend(items),
                list => *list = items.into(),
            }
            super::answer::total_linears(there);
        }
        (there, more @ Maybe::Value(_)) => *there = more,
        _ => {}
    }
}

/// What a schedule has unlocked by `now`, and what is locked, per allocation.
fn amounts(events: &[UnlockEvent], now: Timestamp) -> Amounts {
    let mut amounts = Amounts::new();
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
                    (crate::supply::days(now - begin) / crate::supply::days(end - begin)).clamp(0.0, 1.0)
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
