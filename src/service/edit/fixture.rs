//! Edits that only tests make. They are in this crate because they use the private transaction of [`Edit`]; the feature `test-edits`,
//! which only dev-dependencies enable, compiles them.

use super::{EDITED, Edit, EditError};
use crate::edit::event_row;
use model::wire::{AllocationsData, Emission, FundingRound, InvestorItem, Maybe, TokenItem, UnlockEvent};
use model::{Resource, Timestamp};
use store::{catalog::CatalogRecord, facts::SupplyFacts as _};

impl Edit<'_> {
    /// Keeps every `lastUpdatedDate` unchanged, like a source that does not report a correction.
    pub fn silently(&mut self) {
        self.silent = true;
    }

    /// Changes the reference price of a token. Values and the market cap follow; amounts, dates, and `lastUpdatedDate` stay, as with the
    /// daily prices of the source.
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

    pub fn clear(&mut self) -> Result<(), EditError> {
        Ok(self.draft.clear()?)
    }

    pub fn put_investor(&mut self, item: &InvestorItem) -> Result<(), EditError> {
        let id = item.investor_id.as_str().ok_or(EditError::NoId)?;
        Ok(self.draft.put_header(Resource::Funding, id, item)?)
    }

    /// Replaces the funding rounds of an investor.
    pub fn put_rounds(&mut self, investor: &str, rounds: &[FundingRound]) -> Result<(), EditError> {
        let rows = rounds.iter().map(|round| CatalogRecord {
            date: round.funding_date.copied(),
            cliff: false,
            about: round.token_id.as_str(),
            body: round,
        });
        Ok(self.draft.put_records(Resource::Funding, investor, rows)?)
    }

    /// Adds a token to the list or replaces its item.
    pub fn put_token(&mut self, item: &TokenItem) -> Result<(), EditError> {
        let id = item.id.as_str().filter(|id| !id.is_empty()).ok_or(EditError::NoId)?;
        self.draft.put_token(id, item, EDITED)?;
        self.touched.insert(id.to_owned());
        Ok(())
    }

    /// Replaces the allocation table of a token, including its totals.
    pub fn put_allocations(&mut self, token: &str, mut table: AllocationsData) -> Result<(), EditError> {
        let rows = std::mem::take(&mut table.allocations).into_option().unwrap_or_default();
        self.put_table(token, table, &rows)
    }
}

/// Returns the value of an amount, unknown if the amount is.
fn valued(amount: Maybe<f64>, price: f64) -> Maybe<f64> {
    Maybe::or_null(amount.copied().map(|amount| amount * price))
}

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
