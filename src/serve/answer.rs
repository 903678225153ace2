//! From a question and a view of the data to the payload: one function per resource, each shaping its records as the version asks.
//!
//! The database holds the widest form of every record. What a version lacks is taken out here, what it calls by another name is
//! renamed here, and totals are made for the window that was asked for.

use chrono::NaiveTime;
use serde::Serialize;

use super::{
    Refusal,
    ask::{Ask, What, shown},
    emission::{self, add},
};
use crate::{
    store::catalog::{View, Window},
    supply::{Resource, Timestamp},
    wire::{
        AllocationsData, BurnData, Buyback, BuybackData, CliffAllocation, CliffUnlocks, Emission, FundingRound, InvestorDetail,
        InvestorItem, LinearAllocation, LinearUnlocks, Maybe, NamedOr, RoundInvestor, TokenFunding, TokenFundingRound, TokenItem,
        UnlockEvent, UpcomingItem,
    },
};

/// A payload as it goes out, without the envelope.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// JSON of `data`.
    pub data: Box<str>,
    /// Page numbers, where the list has pages.
    pub paging: Option<Paging>,
}

/// Where a page stands in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// From 1.
    pub page: u64,
    /// Items on a page.
    pub page_size: u64,
    /// Pages; zero for an empty list.
    pub total_pages: u64,
    /// Items.
    pub total: u64,
}

/// Answers a question.
///
/// # Errors
/// A refusal where the token or investor is unknown, or the data cannot be read.
pub fn answer(view: &View<'_>, ask: &Ask, now: Timestamp, strict_coverage: bool) -> Result<Answer, Refusal> {
    match ask.what {
        What::TokenList => whole(&token_list(view, ask)?),
        What::Upcoming => list(upcoming(view, ask, now)?, ask),
        What::UnlockEvents => {
            covered(&known(view, ask)?, ask, 3, strict_coverage)?;
            let events: Vec<UnlockEvent> = view.records(Resource::Unlock, &ask.id, Window::default())?;
            // Shaped before it is cut to the window: whether a linear item is a change of rate is told by the one before it.
            let events = unlock_events(events, ask).into_iter().filter(|event| ask.includes(event.unlock_date.copied()));
            list(events.collect(), ask)
        }
        What::DailyEmission => {
            covered(&known(view, ask)?, ask, 2, strict_coverage)?;
            list(daily_emission(view, ask, now)?, ask)
        }
        What::WeeklyEmission => {
            covered(&known(view, ask)?, ask, 3, strict_coverage)?;
            whole(&weekly_emission(view, ask, now)?)
        }
        What::Allocations => {
            let token = known(view, ask)?;
            covered(&token, ask, 2, strict_coverage)?;
            whole(&allocations(view, ask, token)?)
        }
        What::Burn => whole(&burns(view, ask)?),
        What::Buyback => whole(&buybacks(view, ask)?),
        What::Investors => list(investors(view, ask)?, ask),
        What::Investor => whole(&investor(view, ask)?),
        What::TokenFunding => whole(&token_funding(view, ask)?),
    }
}

fn whole<T: Serialize>(data: &T) -> Result<Answer, Refusal> {
    let data = serde_json::to_string(data).map_err(|_| Refusal::internal("an answer cannot be written as JSON"))?;
    Ok(Answer { data: data.into(), paging: None })
}

/// The page that was asked for; all of it where the version has no pages. A page past the end is empty.
fn list<T: Serialize>(items: Vec<T>, ask: &Ask) -> Result<Answer, Refusal> {
    let Some(page) = ask.page else { return whole(&items) };
    let total = u64::try_from(items.len()).unwrap_or(u64::MAX);
    let skip = usize::try_from((page.number - 1).saturating_mul(page.size)).unwrap_or(usize::MAX);
    let take = usize::try_from(page.size).unwrap_or(usize::MAX);
    let mut answer = whole(&items.iter().skip(skip).take(take).collect::<Vec<_>>())?;
    answer.paging = Some(Paging { page: page.number, page_size: page.size, total_pages: total.div_ceil(page.size), total });
    Ok(answer)
}

fn known(view: &View<'_>, ask: &Ask) -> Result<TokenItem, Refusal> {
    view.token(&ask.id)?.ok_or_else(|| Refusal::unknown(format!("token \"{}\" is not known", shown(&ask.id))))
}

/// Older versions were made before tokens were listed by a model. Whether they answer for such tokens is an option of the service.
fn covered(token: &TokenItem, ask: &Ask, since: u8, strict: bool) -> Result<(), Refusal> {
    if strict && ask.version < since && token.listed_method.as_str() == Some("AI") {
        return Err(Refusal::unknown(format!(
            "token \"{}\" is listed by the method AI, which version {} does not cover: ask version {since} or newer",
            shown(&ask.id),
            ask.version
        )));
    }
    Ok(())
}

// -- tokens --

fn token_list(view: &View<'_>, ask: &Ask) -> Result<Vec<TokenItem>, Refusal> {
    let mut tokens = view.tokens()?;
    if let Some(ids) = &ask.ids {
        tokens.retain(|token| token.id.as_str().is_some_and(|id| ids.iter().any(|wanted| wanted == id)));
    }
    for token in &mut tokens {
        if ask.version < 2 {
            token.listed_method = Maybe::Absent;
        }
        if ask.version < 3 {
            token.has_fundraising = Maybe::Absent;
            token.latest_fundraising_round = Maybe::Absent;
        }
        if ask.version < 4 {
            token.has_burn = Maybe::Absent;
            token.has_buyback = Maybe::Absent;
        }
        if ask.version < 5 {
            token.has_committed_claim = Maybe::Absent;
        }
    }
    Ok(tokens)
}

fn upcoming(view: &View<'_>, ask: &Ask, now: Timestamp) -> Result<Vec<UpcomingItem>, Refusal> {
    // An event of today is shown all day: its date may be exact to the day only. What lies before today is not upcoming.
    let today = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    let mut window = ask.window();
    window.from = Some(window.from.map_or(today, |from| from.max(today)));
    let mut rows = Vec::new();
    for token in view.tokens()? {
        let Some(id) = token.id.as_str() else { continue };
        let least = |least: Option<super::ask::Number>, value: Option<f64>| {
            least.is_none_or(|least| value.is_some_and(|value| value >= least.get()))
        };
        let released = match (token.unlocked_amount.copied(), token.max_supply.copied()) {
            (Some(unlocked), Some(max)) if max > 0.0 => Some(unlocked / max * 100.0),
            _ => None,
        };
        if !least(ask.min_market_cap, token.market_cap.copied()) || !least(ask.min_released, released) {
            continue;
        }
        let Some(mut event) = view.first_cliff(id, window, |event| cliff_event(event, ask))? else {
            continue;
        };
        if !least(ask.min_amount, event.cliff_amount()) || !least(ask.min_value_to_cap, event.value_to_market_cap()) {
            continue;
        }
        if let Maybe::Value(cliffs) = &mut event.cliff_unlocks
            && ask.version < 5
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
            listed_method: std::mem::take(&mut event.listed_method),
            data_source: std::mem::take(&mut event.data_source),
            upcoming_event: UnlockEvent {
                token_name: Maybe::Absent,
                token_symbol: Maybe::Absent,
                reference_price: price,
                reference_price_updated_time: priced_at,
                ..event
            }
            .into(),
            ..Default::default()
        });
    }
    // Stable, so tokens of one instant stay in the order of their ids.
    rows.sort_by_key(|row| row.upcoming_event.get().and_then(|event| event.unlock_date.copied()));
    Ok(rows)
}

// -- schedules --

/// Whether an allocation pays miners or farmers: later versions leave those out of the events.
fn is_mining_or_farming(item: &CliffAllocation) -> bool {
    let name = item.allocation_name.as_str().unwrap_or_default().to_lowercase();
    name.contains("mining") || name.contains("farming")
}

/// Shapes a schedule, which is in order of time, as a version shows it.
fn unlock_events(mut events: Vec<UnlockEvent>, ask: &Ask) -> Vec<UnlockEvent> {
    if ask.version >= 4 {
        return events.into_iter().filter_map(|event| cliff_event(event, ask)).collect();
    }
    if ask.version >= 2 {
        drop_rate_changes(&mut events);
    }
    for event in &mut events {
        if ask.version < 2 {
            event.listed_method = Maybe::Absent;
        }
        // Null says "none here"; a version that has the field always shows it.
        if event.linear_unlocks.is_absent() {
            event.linear_unlocks = Maybe::Null;
        }
        if event.cliff_unlocks.is_absent() {
            event.cliff_unlocks = Maybe::Null;
        }
        if let Maybe::Value(cliffs) = &mut event.cliff_unlocks
            && let Maybe::Value(items) = &mut cliffs.allocation_breakdown
        {
            items.iter_mut().for_each(|item| item.committed_claim = Maybe::Absent);
        }
    }
    events
}

/// A linear item that begins where another of the same allocation ends is no start but a change of rate. An event of nothing else
/// goes with it.
fn drop_rate_changes(events: &mut Vec<UnlockEvent>) {
    let ends: std::collections::HashSet<(Option<String>, Timestamp)> = events
        .iter()
        .flat_map(|event| event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items()))
        .filter_map(|item| Some((item.allocation_name.as_str().map(str::to_owned), item.end_date.copied()?)))
        .collect();
    events.retain_mut(|event| {
        let had_cliff = event.cliff_unlocks.get().is_some();
        let Maybe::Value(linears) = &mut event.linear_unlocks else {
            return true;
        };
        let Maybe::Value(items) = &mut linears.allocation_breakdown else {
            return true;
        };
        let before = items.len();
        items.retain(|item| {
            let Some(begin) = item.begin_date.copied() else { return true };
            // A segment of no length ends where it begins; that is no segment before it.
            item.end_date.copied() == Some(begin) || !ends.contains(&(item.allocation_name.as_str().map(str::to_owned), begin))
        });
        if items.is_empty() && before > 0 {
            event.linear_unlocks = Maybe::Null;
            return had_cliff;
        }
        if items.len() < before {
            total_linears(linears);
        }
        true
    });
}

pub(super) fn total_linears(linears: &mut LinearUnlocks) {
    let items = linears.allocation_breakdown.items();
    let sum = |pick: fn(&LinearAllocation) -> &Maybe<f64>| items.iter().fold(Maybe::Null, |sum, item| add(&sum, pick(item)));
    let (amount, value) = (sum(|item| &item.linear_amount), sum(|item| &item.linear_value));
    let (daily_amount, daily_value) = (sum(|item| &item.daily_amount), sum(|item| &item.daily_value));
    linears.linear_amount = amount;
    linears.linear_value = value;
    linears.daily_amount = daily_amount;
    linears.daily_value = daily_value;
}

/// An event as the versions from the fourth on, and `upcoming`, show it: what unlocks at once, in the categories that were asked for.
fn cliff_event(mut event: UnlockEvent, ask: &Ask) -> Option<UnlockEvent> {
    event.linear_unlocks = Maybe::Absent;
    let cliffs = event.cliff_unlocks.get_mut()?;
    let Maybe::Value(items) = &mut cliffs.allocation_breakdown else {
        // Without a breakdown nothing can be told of recipients.
        return ask.standards.is_empty().then_some(event);
    };
    let before = items.len();
    items.retain(|item| !is_mining_or_farming(item) && ask.wants(item.standard_allocation_name.as_str()));
    if items.is_empty() && before > 0 {
        return None;
    }
    for item in items.iter_mut() {
        if ask.version < 5 {
            item.committed_claim = Maybe::Absent;
        } else if item.committed_claim.is_absent() {
            item.committed_claim = Maybe::Null;
        }
    }
    if items.len() < before {
        total_cliffs(cliffs);
    }
    Some(event)
}

/// Totals of the parts that are left; the ratio to the market cap shrinks with the amount.
pub(super) fn total_cliffs(cliffs: &mut CliffUnlocks) {
    let items = cliffs.allocation_breakdown.items();
    let amount = items.iter().fold(Maybe::Null, |sum, item| add(&sum, &item.cliff_amount));
    let value = items.iter().fold(Maybe::Null, |sum, item| add(&sum, &item.cliff_value));
    if let (Maybe::Value(ratio), Some(before), Some(after)) =
        (&mut cliffs.value_to_market_cap, cliffs.cliff_amount.copied(), amount.copied())
        && before > 0.0
    {
        *ratio *= after / before;
    }
    cliffs.cliff_amount = amount;
    cliffs.cliff_value = value;
}

// -- emission --

/// All days of a token, in order of time: as stored, and outside of the stored stretch made from its schedule.
fn days(view: &View<'_>, token: &str) -> Result<Vec<Emission>, Refusal> {
    let stored: Vec<Emission> = view.records(Resource::Emission, token, Window::default())?;
    let made = emission::daily(&view.records(Resource::Unlock, token, Window::default())?);
    let start = |day: &Emission| day.start_date.copied();
    let (Some(first), Some(last)) = (stored.first().map(start), stored.last().map(start)) else {
        return Ok(made);
    };
    let (mut days, after): (Vec<_>, Vec<_>) =
        made.into_iter().filter(|day| start(day) < first || start(day) > last).partition(|day| start(day) < first);
    days.extend(stored);
    days.extend(after);
    Ok(days)
}

fn daily_emission(view: &View<'_>, ask: &Ask, now: Timestamp) -> Result<Vec<Emission>, Refusal> {
    let ask = &Ask { end: ask.end.or(Some(now.date_naive())), ..ask.clone() };
    let mut days = days(view, &ask.id)?;
    days.retain(|day| ask.includes(day.start_date.copied()));
    for day in &mut days {
        if ask.version < 2 {
            day.listed_method = Maybe::Absent;
        }
        let claim = |claim: &mut Maybe<_>| {
            if ask.version < 5 {
                *claim = Maybe::Absent;
            } else if claim.is_absent() {
                *claim = Maybe::Null;
            }
        };
        claim(&mut day.committed_claim);
        let Maybe::Value(items) = &mut day.allocations else { continue };
        let before = items.len();
        items.retain_mut(|item| match item {
            NamedOr::Name(_) => ask.standards.is_empty(),
            NamedOr::Item(item) => {
                claim(&mut item.committed_claim);
                ask.wants(item.standard_allocation_name.as_str())
            }
        });
        // The cumulative amount stays that of the whole token.
        if items.len() < before {
            let sum = |pick: fn(&crate::wire::EmissionAllocation) -> &Maybe<f64>| {
                items.iter().fold(Maybe::Value(0.0), |sum, item| match item {
                    NamedOr::Item(item) => add(&sum, pick(item)),
                    NamedOr::Name(_) => sum,
                })
            };
            let (amount, value) = (sum(|item| &item.unlock_amount), sum(|item| &item.unlock_value));
            if day.unlock_value.get().is_some() {
                day.unlock_value = value;
            }
            day.unlock_amount = amount;
        }
    }
    Ok(days)
}

/// Whole weeks: the one that holds the start to the one that holds the end.
fn weekly_emission(view: &View<'_>, ask: &Ask, now: Timestamp) -> Result<Vec<Emission>, Refusal> {
    let start = ask.start.map(emission::sunday_of);
    let last = emission::sunday_of(ask.end.unwrap_or(now.date_naive()));
    let end = last.checked_add_days(chrono::Days::new(6)).unwrap_or(last);
    let weeks = Ask { start, end: Some(end), ..ask.clone() };
    let mut days = days(view, &ask.id)?;
    days.retain(|day| weeks.includes(day.start_date.copied()));
    Ok(emission::weekly(&days, ask.version))
}

// -- allocations, burns, buybacks --

fn allocations(view: &View<'_>, ask: &Ask, token: TokenItem) -> Result<AllocationsData, Refusal> {
    // A token that is listed without a table answers with what the list knows, and no rows.
    let mut data = view.header(Resource::Allocation, &ask.id)?.unwrap_or_else(|| AllocationsData {
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
    data.allocations = view.records(Resource::Allocation, &ask.id, Window::default())?.into();
    if ask.version < 2 {
        data.listed_method = Maybe::Absent;
    }
    Ok(data)
}

/// The total of a column: zero for no rows, unknown where no row knows.
fn total<T>(rows: &[T], pick: fn(&T) -> &Maybe<f64>) -> Maybe<f64> {
    let none = if rows.is_empty() { Maybe::Value(0.0) } else { Maybe::Null };
    rows.iter().fold(none, |sum, row| add(&sum, pick(row)))
}

fn burns(view: &View<'_>, ask: &Ask) -> Result<BurnData, Refusal> {
    let token = known(view, ask)?;
    let mut burns: Vec<crate::wire::Burn> = view.records(Resource::Burn, &ask.id, ask.window())?;
    burns.sort_by_key(|burn| std::cmp::Reverse(burn.burn_date.copied()));
    Ok(BurnData {
        token_id: token.id,
        token_name: token.name,
        token_symbol: token.symbol,
        total_burn_amount: total(&burns, |burn| &burn.amount),
        total_burn_value: total(&burns, |burn| &burn.value),
        burns: burns.into(),
        ..view.header(Resource::Burn, &ask.id)?.unwrap_or_default()
    })
}

fn buybacks(view: &View<'_>, ask: &Ask) -> Result<BuybackData, Refusal> {
    let token = known(view, ask)?;
    let mut buybacks: Vec<Buyback> = view.records(Resource::Buyback, &ask.id, ask.window())?;
    buybacks.sort_by_key(|buyback| std::cmp::Reverse(buyback.buyback_date.copied()));
    let value = total(&buybacks, |buyback| &buyback.value);
    Ok(BuybackData {
        token_id: token.id,
        token_name: token.name,
        token_symbol: token.symbol,
        total_buyback_amount: total(&buybacks, |buyback| &buyback.token_amount),
        total_buyback_value: if ask.version >= 5 { value } else { Maybe::Absent },
        buybacks: buybacks.into(),
        ..view.header(Resource::Buyback, &ask.id)?.unwrap_or_default()
    })
}

// -- fundraising --

fn investors(view: &View<'_>, ask: &Ask) -> Result<Vec<InvestorItem>, Refusal> {
    let mut investors: Vec<InvestorItem> = view.headers(Resource::Funding)?;
    investors.retain(|investor| ask.includes(investor.latest_funding_date.copied()));
    // Newest first; stable, so investors of one day stay in the order of their ids.
    investors.sort_by_key(|investor| std::cmp::Reverse(investor.latest_funding_date.copied()));
    Ok(investors)
}

fn raised_enough(ask: &Ask, raised: Option<f64>) -> bool {
    ask.min_raised.is_none_or(|least| raised.is_some_and(|raised| raised >= least.get()))
        && ask.max_raised.is_none_or(|most| raised.is_some_and(|raised| raised <= most.get()))
}

fn investor(view: &View<'_>, ask: &Ask) -> Result<InvestorDetail, Refusal> {
    let Some(item) = view.header::<InvestorItem>(Resource::Funding, &ask.id)? else {
        return Err(Refusal::unknown(format!("investor \"{}\" is not known", shown(&ask.id))));
    };
    let mut rounds: Vec<FundingRound> = view.records(Resource::Funding, &ask.id, ask.window())?;
    rounds.retain(|round| {
        ask.lead.is_none_or(|lead| round.is_lead_investor.copied().unwrap_or(false) == lead)
            && raised_enough(ask, round.total_amount_raised.copied())
    });
    for round in &mut rounds {
        round.investor_id = Maybe::Absent;
        round.investor_name = Maybe::Absent;
    }
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

/// A token's rounds, put together from what its investors' pages say of them.
fn token_funding(view: &View<'_>, ask: &Ask) -> Result<TokenFunding, Refusal> {
    let token = known(view, ask)?;
    let mut rounds: Vec<TokenFundingRound> = Vec::new();
    for told in view.rounds_about(&ask.id)? {
        if !ask.includes(told.funding_date.copied()) || !raised_enough(ask, told.total_amount_raised.copied()) {
            continue;
        }
        let investor = RoundInvestor {
            investor_id: told.investor_id,
            investor_name: told.investor_name,
            is_lead_investor: told.is_lead_investor,
            ..Default::default()
        };
        let same = |round: &&mut TokenFundingRound| {
            round.funding_round == told.round_name
                && round.funding_date == told.funding_date
                && round.amount_raised == told.total_amount_raised
        };
        match rounds.iter_mut().find(same) {
            Some(round) => {
                if let Maybe::Value(investors) = &mut round.investors {
                    investors.push(investor);
                }
            }
            None => rounds.push(TokenFundingRound {
                funding_round: told.round_name,
                funding_date: told.funding_date,
                raise_type: Maybe::Null,
                amount_raised: told.total_amount_raised,
                valuation: told.valuation,
                price_per_token: told.price_per_token,
                source_url_list: Vec::new().into(),
                investors: vec![investor].into(),
                ..Default::default()
            }),
        }
    }
    for round in &mut rounds {
        round.number_of_investors = i64::try_from(round.investors.items().len()).unwrap_or(i64::MAX).into();
    }
    let private: Vec<crate::wire::Allocation> = view.records(Resource::Allocation, &ask.id, Window::default())?;
    let private: Vec<_> =
        private.iter().filter(|row| row.standard_allocation_name.as_str() == Some("Private Investors")).collect();
    let sum = |pick: fn(&crate::wire::Allocation) -> &Maybe<f64>| {
        private.iter().fold(Maybe::Null, |sum, row| add(&sum, pick(row))).copied()
    };
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
