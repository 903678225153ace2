//! Investors, and funding rounds by investor and by token.

use super::totals::{add, total};
use crate::query::DataQuery;
use crate::refusal::{Refusal, redact};
use model::Resource;
use model::wire::{
    Allocation, FundingRound, InvestorDetail, InvestorItem, Maybe, RoundInvestor, TokenFunding, TokenFundingRound, TokenItem,
};
use store::facts::{DateRange, SupplyFacts};

/// Returns all investors whose latest funding date is in the range of the query, newest first, then by id.
pub(super) fn investors(facts: &impl SupplyFacts, query: &DataQuery) -> Result<Vec<InvestorItem>, Refusal> {
    let mut investors: Vec<InvestorItem> = facts.investors()?;
    investors.retain(|investor| query.includes(investor.latest_funding_date.copied()));
    // Newest first. The sort is stable, so investors with the same date remain sorted by id.
    investors.sort_by_key(|investor| std::cmp::Reverse(investor.latest_funding_date.copied()));
    Ok(investors)
}

pub(super) fn investor(facts: &impl SupplyFacts, query: &DataQuery) -> Result<InvestorDetail, Refusal> {
    let Some(item) = facts.header::<InvestorItem>(Resource::Funding, &query.id)? else {
        return Err(Refusal::not_found(format!("unknown investor \"{}\"", redact(&query.id))));
    };
    let mut rounds: Vec<FundingRound> = facts.records(Resource::Funding, &query.id, query.window())?;
    rounds.retain(|round| {
        query.lead.is_none_or(|lead| round.is_lead_investor.copied().unwrap_or(false) == lead)
            && raised_enough(query, round.total_amount_raised.copied())
    });
    rounds.sort_by_key(|round| std::cmp::Reverse(round.funding_date.copied()));
    Ok(InvestorDetail {
        investor_id: item.investor_id,
        investor_name: item.investor_name,
        website: item.website,
        latest_funding_date: item.latest_funding_date,
        funding_rounds: rounds.into(),
        extra: item.extra,
    })
}

/// Returns the funding rounds of a token, combined from the rounds of its investors.
pub(super) fn token_funding(facts: &impl SupplyFacts, query: &DataQuery, token: TokenItem) -> Result<TokenFunding, Refusal> {
    let mut rounds: Vec<TokenFundingRound> = Vec::new();
    for row in facts.rounds_about(&query.id)? {
        if !query.includes(row.funding_date.copied()) || !raised_enough(query, row.total_amount_raised.copied()) {
            continue;
        }
        let investor = RoundInvestor {
            investor_id: row.investor_id,
            investor_name: row.investor_name,
            is_lead_investor: row.is_lead_investor,
            ..Default::default()
        };
        let same = |round: &&mut TokenFundingRound| {
            round.funding_round == row.round_name
                && round.funding_date == row.funding_date
                && round.amount_raised == row.total_amount_raised
        };
        match rounds.iter_mut().find(same) {
            Some(round) => {
                if let Maybe::Value(investors) = &mut round.investors {
                    investors.push(investor);
                }
            }
            None => rounds.push(TokenFundingRound {
                funding_round: row.round_name,
                funding_date: row.funding_date,
                raise_type: Maybe::Null,
                amount_raised: row.total_amount_raised,
                valuation: row.valuation,
                price_per_token: row.price_per_token,
                source_url_list: Vec::new().into(),
                investors: vec![investor].into(),
                ..Default::default()
            }),
        }
    }
    for round in &mut rounds {
        round.number_of_investors = i64::try_from(round.investors.items().len()).unwrap_or(i64::MAX).into();
    }
    let private: Vec<Allocation> = facts.records(Resource::Allocation, &query.id, DateRange::default())?;
    let private: Vec<_> =
        private.iter().filter(|row| row.standard_allocation_name.as_str() == Some("Private Investors")).collect();
    let sum = |pick: fn(&Allocation) -> &Maybe<f64>| private.iter().fold(Maybe::Null, |sum, row| add(&sum, pick(row))).copied();
    let (unlocked, amount) = (sum(|row| &row.allocation_unlocked_amount), sum(|row| &row.allocation_amount));
    let released = match (unlocked, amount) {
        (Some(unlocked), Some(amount)) if amount > 0.0 => Some(unlocked / amount * 100.0),
        _ => None,
    };
    Ok(TokenFunding {
        token_id: token.id,
        token_name: token.name,
        token_symbol: token.symbol,
        listed_method: token.listed_method,
        total_amount_raised: total(&rounds, |round| &round.amount_raised),
        unlocked_investor: Maybe::or_null(unlocked),
        investor_released_percentage: Maybe::or_null(released),
        funding_rounds: rounds.into(),
        ..Default::default()
    })
}

fn raised_enough(query: &DataQuery, raised: Option<f64>) -> bool {
    query.min_raised.is_none_or(|least| raised.is_some_and(|raised| raised >= least.get()))
        && query.max_raised.is_none_or(|most| raised.is_some_and(|raised| raised <= most.get()))
}
