//! Changes that only tests make: silent corrections, prices, whole schedules, tokens of their own.

use super::{EDITED, Edit, EditError, find};
use crate::edit::event_row;
use model::wire::{AllocationsData, Emission, FundingRound, InvestorItem, Maybe, TokenItem, UnlockEvent};
use model::{Resource, Timestamp};
use store::{catalog::CatalogRecord, facts::SupplyFacts as _};

impl Edit<'_> {
    /// Leaves every `lastUpdatedDate` as it is: the source corrects something and does not say so.
    pub fn silently(&mut self) {
        self.silent = true;
    }

    /// Gives a token a new reference price: values, and with them the market cap, drift; amounts, dates and marks of change stay, as
    /// with the source's own daily prices. Fails where there is no such token.
    pub fn reprice(&mut self, token: &str, price: f64) -> Result<(), EditError> {
        let mut item = self.draft.token(token)?.ok_or_else(|| EditError::UnknownToken(token.to_owned()))?;
        let mut events = self.events(token)?;
        for event in &mut events {
            reprice(event, price, self.now);
        }
        self.draft.put_records(Resource::Unlock, token, events.iter().map(event_row))?;
        self.draft.put_records(Resource::Emission, token, std::iter::empty::<CatalogRecord<'_, Emission>>())?;
        item.market_cap = valued(item.circulating_supply, price);
        Ok(self.draft.put_token(token, &item, EDITED)?)
    }

    /// Takes all tokens and records out.
    pub fn clear(&mut self) -> Result<(), EditError> {
        Ok(self.draft.clear()?)
    }

    /// Writes an investor of the list, as it stands there.
    pub fn put_investor(&mut self, item: &InvestorItem) -> Result<(), EditError> {
        let id = item.investor_id.as_str().ok_or(EditError::NoId)?;
        Ok(self.draft.put_header(Resource::Funding, id, item)?)
    }

    /// Writes the rounds of an investor in place of those there are; they need not differ from the list.
    pub fn put_rounds(&mut self, investor: &str, rounds: &[FundingRound]) -> Result<(), EditError> {
        let rows = rounds.iter().map(|round| CatalogRecord {
            date: round.funding_date.copied(),
            cliff: false,
            about: round.token_id.as_str(),
            body: round,
        });
        Ok(self.draft.put_records(Resource::Funding, investor, rows)?)
    }

    /// Takes the event at `at` out. Fails where there is no such token or event.
    pub fn remove_event(&mut self, token: &str, at: Timestamp) -> Result<(), EditError> {
        self.change_events(token, |events, _| {
            let index = find(events, token, at)?;
            events.remove(index);
            Ok(())
        })
    }

    /// Writes a whole schedule in place of the one there is, in any order. Fails where there is no such token.
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

    /// Adds a token to the list, or writes the item of one that is there. Fails where the item has no id.
    pub fn put_token(&mut self, item: &TokenItem) -> Result<(), EditError> {
        let id = item.id.as_str().filter(|id| !id.is_empty()).ok_or(EditError::NoId)?;
        self.draft.put_token(id, item, EDITED)?;
        self.touched.insert(id.to_owned());
        Ok(())
    }

    /// Writes a token's allocation table, the totals of `table` included. Fails where there is no such token.
    pub fn put_allocations(&mut self, token: &str, mut table: AllocationsData) -> Result<(), EditError> {
        let rows = std::mem::take(&mut table.allocations).into_option().unwrap_or_default();
        self.put_table(token, table, &rows)
    }
}

/// What an amount is worth at a price; unknown where the amount is.
fn valued(amount: Maybe<f64>, price: f64) -> Maybe<f64> {
    Maybe::or_null(amount.copied().map(|amount| amount * price))
}

/// Gives an event a new price: values follow, amounts and dates stay.
fn reprice(event: &mut UnlockEvent, price: f64, now: Timestamp) {
    let valued = |amount: Maybe<f64>| valued(amount, price);
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
