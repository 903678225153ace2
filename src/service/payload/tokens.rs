//! The token list, and the next event of each token.

use chrono::NaiveTime;

use super::unlocks::cliff_event;
use crate::query::{DataQuery, FiniteNumber};
use crate::refusal::Refusal;
use model::Timestamp;
use model::wire::{Maybe, TokenItem, UnlockEvent, UpcomingItem};
use store::facts::SupplyFacts;

pub(super) fn token_list(facts: &impl SupplyFacts, query: &DataQuery) -> Result<Vec<TokenItem>, Refusal> {
    let mut tokens = facts.tokens()?;
    if let Some(ids) = &query.ids {
        tokens.retain(|token| token.id.as_str().is_some_and(|id| ids.binary_search_by(|wanted| wanted.as_str().cmp(id)).is_ok()));
    }
    Ok(tokens)
}

pub(super) fn upcoming(facts: &impl SupplyFacts, query: &DataQuery, now: Timestamp) -> Result<Vec<UpcomingItem>, Refusal> {
    // An event counts as upcoming until the end of its day, since its date may have day precision only.
    let today = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    let mut window = query.window();
    window.from = Some(window.from.map_or(today, |from| from.max(today)));
    let mut rows = Vec::new();
    for token in facts.tokens()? {
        let Some(id) = token.id.as_str() else { continue };
        let least = |least: Option<FiniteNumber>, value: Option<f64>| {
            least.is_none_or(|least| value.is_some_and(|value| value >= least.get()))
        };
        let released = match (token.unlocked_amount.copied(), token.max_supply.copied()) {
            (Some(unlocked), Some(max)) if max > 0.0 => Some(unlocked / max * 100.0),
            _ => None,
        };
        if !least(query.min_market_cap, token.market_cap.copied()) || !least(query.min_released, released) {
            continue;
        }
        let Some(mut event) = facts.first_cliff(id, window, |event| cliff_event(event, query))? else {
            continue;
        };
        if !least(query.min_amount, event.cliff_amount()) || !least(query.min_value_to_cap, event.value_to_market_cap()) {
            continue;
        }
        if let Maybe::Value(cliffs) = &mut event.cliff_unlocks
            && query.version < 5
        {
            cliffs.total_cliff_amount = std::mem::take(&mut cliffs.cliff_amount);
            cliffs.total_cliff_value = std::mem::take(&mut cliffs.cliff_value);
        }
        let (price, priced_at) = event
            .cliff_unlocks
            .get()
            .and_then(|cliffs| cliffs.allocation_breakdown.items().first())
            .map_or((Maybe::Null, Maybe::Null), |item| (item.reference_price, item.reference_price_updated_time));
        rows.push(UpcomingItem {
            token_id: token.id.clone(),
            token_name: token.name.clone(),
            token_symbol: token.symbol.clone(),
            market_cap: token.market_cap,
            released_percentage: Maybe::or_null(released),
            listed_method: match std::mem::take(&mut event.listed_method) {
                Maybe::Value(method) => method.into(),
                _ => token.listed_method.clone(),
            },
            data_source: std::mem::take(&mut event.data_source),
            upcoming_event: UnlockEvent { reference_price: price, reference_price_updated_time: priced_at, ..event }.into(),
            ..Default::default()
        });
    }
    // The sort is stable, so tokens with the same date remain sorted by id.
    rows.sort_by_key(|row| row.upcoming_event.get().and_then(|event| event.unlock_date.copied()));
    Ok(rows)
}
