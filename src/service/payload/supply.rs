//! Allocation tables, burns, and buybacks.

use super::totals::total;
use crate::{query::DataQuery, refusal::Refusal};
use model::Resource;
use model::wire::{AllocationsData, Burn, BurnData, Buyback, BuybackData, Maybe, TokenItem};
use store::facts::{DateRange, SupplyFacts};

pub(super) fn allocations(facts: &impl SupplyFacts, query: &DataQuery, token: TokenItem) -> Result<AllocationsData, Refusal> {
    // A token without a table gets the totals of the token list and no rows.
    let mut data = facts.header(Resource::Allocation, &query.id)?.unwrap_or_else(|| AllocationsData {
        name: token.name.clone(),
        symbol: token.symbol.clone(),
        listed_method: token.listed_method.clone(),
        max_supply: Maybe::or_null(token.max_supply.copied()),
        total_unlocked_amount: Maybe::Null,
        total_locked_amount: Maybe::Null,
        total_untracked_amount: Maybe::Null,
        total_tbd_locked_amount: Maybe::Null,
        ..Default::default()
    });
    data.last_updated_date = token.last_updated_date;
    data.allocations = facts.records(Resource::Allocation, &query.id, DateRange::default())?.into();
    if data.listed_method.get().is_none() {
        data.listed_method = token.listed_method;
    }
    Ok(data)
}

pub(super) fn burns(facts: &impl SupplyFacts, query: &DataQuery, token: TokenItem) -> Result<BurnData, Refusal> {
    let mut burns: Vec<Burn> = facts.records(Resource::Burn, &query.id, query.window())?;
    burns.sort_by_key(|burn| std::cmp::Reverse(burn.burn_date.copied()));
    Ok(BurnData {
        token_id: token.id,
        token_name: token.name,
        token_symbol: token.symbol,
        total_burn_amount: total(&burns, |burn| &burn.amount),
        total_burn_value: total(&burns, |burn| &burn.value),
        burns: burns.into(),
        ..facts.header(Resource::Burn, &query.id)?.unwrap_or_default()
    })
}

pub(super) fn buybacks(facts: &impl SupplyFacts, query: &DataQuery, token: TokenItem) -> Result<BuybackData, Refusal> {
    let mut buybacks: Vec<Buyback> = facts.records(Resource::Buyback, &query.id, query.window())?;
    buybacks.sort_by_key(|buyback| std::cmp::Reverse(buyback.buyback_date.copied()));
    let value = total(&buybacks, |buyback| &buyback.value);
    Ok(BuybackData {
        token_id: token.id,
        token_name: token.name,
        token_symbol: token.symbol,
        total_buyback_amount: total(&buybacks, |buyback| &buyback.token_amount),
        total_buyback_value: value,
        buybacks: buybacks.into(),
        ..facts.header(Resource::Buyback, &query.id)?.unwrap_or_default()
    })
}
