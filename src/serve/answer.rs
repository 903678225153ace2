//! From a question and a view of the data to the payload: one function per resource, each shaping its records as the version asks.
//!
//! What is held is the widest form of every record. Totals are made for the window that was asked for; which fields a version shows
//! is the table in [`shows`], applied to everything that goes out.

use axum::body::Bytes;
use chrono::NaiveTime;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    Refusal,
    ask::{Ask, Number, Page, What, shown},
    emission::{self, add},
    mirror::Reach,
    version::{covers_ai_since, shows},
};
use crate::{
    store::facts::{Facts, Standing, Window},
    supply::{Endpoint, Resource, Timestamp},
    wire::{
        AllocationsData, BurnData, Buyback, BuybackData, CliffAllocation, CliffUnlocks, Described, Emission, FundingRound,
        InvestorDetail, InvestorItem, LinearAllocation, LinearUnlocks, Maybe, NamedOr, RoundInvestor, TokenFunding,
        TokenFundingRound, TokenItem, UnlockEvent, UpcomingItem,
    },
};

/// A payload as it goes out, without what is around it.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The end of the body: JSON of `data`, with the name before it and the brace after it. Shared by all who ask.
    pub tail: Bytes,
    /// Page numbers, where the list has pages.
    pub paging: Option<Paging>,
    /// When the source told it; none where the data is our own.
    pub read_at: Option<Timestamp>,
    /// Stands for the payload and its paging: equal tags, equal facts.
    pub tag: String,
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

/// What a question without pages, or one with them, is answered from.
#[derive(Debug)]
pub enum Told {
    /// All of it.
    Whole(Answer),
    /// A list, from which pages are cut.
    Rows(Rows),
}

/// A whole list as JSON.
#[derive(Debug)]
pub struct Rows {
    /// Items with commas between them.
    text: String,
    /// Where each item ends in it.
    ends: Vec<usize>,
    read_at: Option<Timestamp>,
}

impl Rows {
    /// A list of what `items` are as JSON.
    ///
    /// # Errors
    /// Where one cannot be written.
    pub fn of<T: Serialize>(items: impl IntoIterator<Item = T>, read_at: Option<Timestamp>) -> serde_json::Result<Self> {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for item in items {
            if !ends.is_empty() {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(&item)?);
            ends.push(text.len());
        }
        text.shrink_to_fit();
        Ok(Self { text, ends, read_at })
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<usize>()
    }

    /// A page; one past the end is empty.
    #[must_use]
    pub fn page(&self, page: Page) -> Answer {
        let count = self.ends.len();
        let size = usize::try_from(page.size).unwrap_or(usize::MAX);
        let first = usize::try_from(page.number - 1).unwrap_or(usize::MAX).saturating_mul(size).min(count);
        let last = first.saturating_add(size).min(count);
        let end_of = |items: usize| items.checked_sub(1).and_then(|index| self.ends.get(index)).copied().unwrap_or(0);
        // Behind the comma that follows the item before.
        let begin = if first == 0 { 0 } else { end_of(first) + 1 };
        let items = if first == last { "" } else { self.text.get(begin..end_of(last)).unwrap_or_default() };
        let tail = [DATA, "[", items, "]}"].concat();
        let total = u64::try_from(count).unwrap_or(u64::MAX);
        let tag = format!("{:032x}-{}-{}-{total}", xxh3_128(tail.as_bytes()), page.number, page.size);
        let paging = Paging { page: page.number, page_size: page.size, total_pages: total.div_ceil(page.size), total };
        Answer { tail: tail.into(), paging: Some(paging), read_at: self.read_at, tag }
    }
}

/// What stands before a payload.
const DATA: &str = ",\"status\":true,\"data\":";

/// What an answer is made under.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The present time.
    pub now: Timestamp,
    /// Whether older versions answer for tokens that were listed by a model too.
    pub all_tokens: bool,
    /// For a mirror: what its daemon asks the source for.
    pub reach: Option<&'a Reach>,
}

/// Answers a question.
///
/// # Errors
/// A refusal where the token or investor is unknown, where a mirror was not told yet, or where the data cannot be read.
pub fn answer(facts: &impl Facts, ask: &Ask, terms: Terms<'_>) -> Result<Told, Refusal> {
    match ask.what {
        What::TokenList => {
            let read_at = held(facts, Endpoint::TokenList, None, terms)?;
            whole(token_list(facts, ask)?, ask, read_at)
        }
        What::Upcoming => {
            let read_at = held(facts, Endpoint::Upcoming, None, terms)?;
            list(upcoming(facts, ask, terms.now)?, ask, read_at)
        }
        What::UnlockEvents => {
            let token = covered(facts, ask, terms)?;
            let read_at = held(facts, Endpoint::UnlockEvents, Some(&ask.id), terms)?;
            let mut events: Vec<UnlockEvent> = facts.records(Resource::Unlock, &ask.id, Window::default())?;
            events.sort_by_key(|event| event.unlock_date.copied());
            if ask.version < 2 && !facts.tells_rate_changes(&ask.id, &events)? {
                return Err(Refusal::unknown(format!(
                    "the schedule of token \"{}\" is known here as a later version tells it, without changes of rate: ask version 2 or newer",
                    shown(&ask.id)
                )));
            }
            for event in &mut events {
                if event.listed_method.get().is_none() {
                    event.listed_method = token.listed_method.clone();
                }
            }
            // Shaped before it is cut to the window: whether a linear item is a change of rate is told by the one before it.
            let events = unlock_events(events, ask)?.into_iter().filter(|event| ask.includes(event.unlock_date.copied()));
            list(events.collect(), ask, read_at)
        }
        What::DailyEmission => {
            covered(facts, ask, terms)?;
            let read_at = held(facts, Endpoint::DailyEmission, Some(&ask.id), terms)?;
            list(daily_emission(facts, ask, terms.now)?, ask, read_at)
        }
        What::WeeklyEmission => {
            covered(facts, ask, terms)?;
            weekly_emission(facts, ask, terms)
        }
        What::Allocations => {
            let token = covered(facts, ask, terms)?;
            let read_at = held(facts, Endpoint::Allocations, Some(&ask.id), terms)?;
            whole(allocations(facts, ask, token)?, ask, read_at)
        }
        What::Burn => {
            let token = known(facts, ask, terms)?;
            let read_at = held_unless(facts, Endpoint::Burn, ask, token.has_burn.copied(), terms)?;
            whole(burns(facts, ask, token)?, ask, read_at)
        }
        What::Buyback => {
            let token = known(facts, ask, terms)?;
            let read_at = held_unless(facts, Endpoint::Buyback, ask, token.has_buyback.copied(), terms)?;
            whole(buybacks(facts, ask, token)?, ask, read_at)
        }
        What::Investors => {
            let read_at = held(facts, Endpoint::Investors, None, terms)?;
            list(investors(facts, ask)?, ask, read_at)
        }
        What::Investor | What::TokenFunding if terms.reach.is_some() => {
            Err(Refusal::unknown("a mirror has no funding rounds: its daemon reads those of the tokens that it watches, not all"))
        }
        What::Investor => {
            held(facts, Endpoint::Investors, None, terms)?;
            whole(investor(facts, ask)?, ask, None)
        }
        What::TokenFunding => {
            let token = known(facts, ask, terms)?;
            held(facts, Endpoint::Investors, None, terms)?;
            whole(token_funding(facts, ask, token)?, ask, None)
        }
    }
}

fn whole<T: Described + Serialize>(mut data: T, ask: &Ask, read_at: Option<Timestamp>) -> Result<Told, Refusal> {
    data.keep(&|object, field| shows(ask.what, ask.version, object, field));
    let mut tail = DATA.as_bytes().to_vec();
    serde_json::to_writer(&mut tail, &data).map_err(|_| Refusal::internal("an answer cannot be written as JSON"))?;
    tail.push(b'}');
    let tag = format!("{:032x}", xxh3_128(&tail));
    Ok(Told::Whole(Answer { tail: tail.into(), paging: None, read_at, tag }))
}

/// A list with pages where the version has pages.
fn list<T: Described + Serialize>(items: Vec<T>, ask: &Ask, read_at: Option<Timestamp>) -> Result<Told, Refusal> {
    if ask.page.is_none() {
        return whole(items, ask, read_at);
    }
    let items = items.into_iter().map(|mut item| {
        item.keep(&|object, field| shows(ask.what, ask.version, object, field));
        item
    });
    let rows = Rows::of(items, read_at).map_err(|_| Refusal::internal("an answer cannot be written as JSON"))?;
    Ok(Told::Rows(rows))
}

// -- what is there --

/// When the source told what an endpoint tells. Not being told yet is no empty answer.
fn held(facts: &impl Facts, endpoint: Endpoint, token: Option<&str>, terms: Terms<'_>) -> Result<Option<Timestamp>, Refusal> {
    match facts.standing(endpoint, token)? {
        Standing::Own => Ok(None),
        Standing::ReadAt(at) => Ok(Some(at)),
        Standing::NeverRead => Err(match terms.reach {
            Some(reach) => reach.missing(endpoint, token),
            None => Refusal::unknown(match token {
                Some(token) => format!(
                    "{endpoint} of token \"{}\" is not known here: the daemon that this data came from never read it",
                    shown(token)
                ),
                None => format!("{endpoint} is not known here: the daemon that this data came from never read it"),
            }),
        }),
    }
}

/// As [`held`], where the token list may have said that the token has none: then nobody asks, and the list's word holds.
fn held_unless(
    facts: &impl Facts,
    endpoint: Endpoint,
    ask: &Ask,
    has: Option<bool>,
    terms: Terms<'_>,
) -> Result<Option<Timestamp>, Refusal> {
    let own = held(facts, endpoint, Some(&ask.id), terms);
    if own.is_err() && has == Some(false) { held(facts, Endpoint::TokenList, None, terms) } else { own }
}

fn known(facts: &impl Facts, ask: &Ask, terms: Terms<'_>) -> Result<TokenItem, Refusal> {
    if let Some(token) = facts.token(&ask.id)? {
        return Ok(token);
    }
    // Without the list nobody knows which tokens there are.
    held(facts, Endpoint::TokenList, None, terms)?;
    Err(Refusal::unknown(format!("token \"{}\" is not known", shown(&ask.id))))
}

/// Older versions were made before tokens were listed by a model. Whether they answer for such tokens is an option of the service.
fn covered(facts: &impl Facts, ask: &Ask, terms: Terms<'_>) -> Result<TokenItem, Refusal> {
    let token = known(facts, ask, terms)?;
    let since = covers_ai_since(ask.what);
    if !terms.all_tokens && ask.version < since && token.listed_method.as_str() == Some("AI") {
        return Err(Refusal::unknown(format!(
            "token \"{}\" is listed by the method AI, which version {} does not cover: ask version {since} or newer",
            shown(&ask.id),
            ask.version
        )));
    }
    Ok(token)
}

// -- tokens --

fn token_list(facts: &impl Facts, ask: &Ask) -> Result<Vec<TokenItem>, Refusal> {
    let mut tokens = facts.tokens()?;
    if let Some(ids) = &ask.ids {
        tokens.retain(|token| token.id.as_str().is_some_and(|id| ids.binary_search_by(|wanted| wanted.as_str().cmp(id)).is_ok()));
    }
    Ok(tokens)
}

fn upcoming(facts: &impl Facts, ask: &Ask, now: Timestamp) -> Result<Vec<UpcomingItem>, Refusal> {
    // An event of today is shown all day: its date may be exact to the day only. What lies before today is not upcoming.
    let today = now.date_naive().and_time(NaiveTime::MIN).and_utc();
    let mut window = ask.window();
    window.from = Some(window.from.map_or(today, |from| from.max(today)));
    let mut rows = Vec::new();
    for token in facts.tokens()? {
        let Some(id) = token.id.as_str() else { continue };
        let least =
            |least: Option<Number>, value: Option<f64>| least.is_none_or(|least| value.is_some_and(|value| value >= least.get()));
        let released = match (token.unlocked_amount.copied(), token.max_supply.copied()) {
            (Some(unlocked), Some(max)) if max > 0.0 => Some(unlocked / max * 100.0),
            _ => None,
        };
        if !least(ask.min_market_cap, token.market_cap.copied()) || !least(ask.min_released, released) {
            continue;
        }
        let Some(mut event) = facts.first_cliff(id, window, |event| cliff_event(event, ask))? else {
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
            listed_method: match std::mem::take(&mut event.listed_method) {
                Maybe::Value(method) => method.into(),
                _ => token.listed_method.clone(),
            },
            data_source: std::mem::take(&mut event.data_source),
            upcoming_event: UnlockEvent { reference_price: price, reference_price_updated_time: priced_at, ..event }.into(),
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

/// Shapes a schedule, which is in order of time, as a version tells it.
fn unlock_events(mut events: Vec<UnlockEvent>, ask: &Ask) -> Result<Vec<UnlockEvent>, Refusal> {
    if ask.version >= 4 {
        return Ok(events.into_iter().filter_map(|event| cliff_event(event, ask)).collect());
    }
    if events.iter().any(|event| event.linear_unlocks.is_absent()) {
        return Err(Refusal::unknown(format!(
            "the schedule of token \"{}\" is known here as version 4 tells it, without linear unlocks: ask version 4 or 5",
            shown(&ask.id)
        )));
    }
    if ask.version >= 2 {
        drop_rate_changes(&mut events);
    }
    Ok(events)
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
    let cliffs = event.cliff_unlocks.get_mut()?;
    // Where a mirror knows the event from the first version of `upcoming` alone, these have the names that they have there.
    for (total, told) in
        [(&mut cliffs.cliff_amount, &mut cliffs.total_cliff_amount), (&mut cliffs.cliff_value, &mut cliffs.total_cliff_value)]
    {
        if total.is_absent() {
            *total = std::mem::take(told);
        }
    }
    let Maybe::Value(items) = &mut cliffs.allocation_breakdown else {
        // Without a breakdown nothing can be told of recipients.
        return ask.standards.is_empty().then_some(event);
    };
    let before = items.len();
    items.retain(|item| !is_mining_or_farming(item) && ask.wants(item.standard_allocation_name.as_str()));
    if items.is_empty() && before > 0 {
        return None;
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

/// Whether a stored row is a week of the weekly endpoint, not a day.
fn is_week(row: &Emission) -> bool {
    matches!((row.start_date.copied(), row.end_date.copied()), (Some(start), Some(end)) if end - start > chrono::TimeDelta::days(1))
}

/// All days of a token, in order of time: as stored, and outside of the stored stretch made from its schedule.
fn days(facts: &impl Facts, token: &str) -> Result<Vec<Emission>, Refusal> {
    let mut stored: Vec<Emission> = facts.records(Resource::Emission, token, Window::default())?;
    stored.retain(|day| !is_week(day));
    if facts.standing(Endpoint::DailyEmission, Some(token))? != Standing::Own {
        // What the source did not tell is not made up: its schedule may be a part of the whole.
        return Ok(stored);
    }
    let events: Vec<UnlockEvent> = facts.records(Resource::Unlock, token, Window::default())?;
    if events.iter().any(|event| event.linear_unlocks.is_absent()) {
        if stored.is_empty() {
            return Err(Refusal::unknown(format!(
                "the schedule of token \"{}\" is known here without linear unlocks, so that no day can be made from it",
                shown(token)
            )));
        }
        return Ok(stored);
    }
    let made = emission::daily(&events);
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

fn daily_emission(facts: &impl Facts, ask: &Ask, now: Timestamp) -> Result<Vec<Emission>, Refusal> {
    let ask = &Ask { end: ask.end.or(Some(now.date_naive())), ..ask.clone() };
    let mut days = days(facts, &ask.id)?;
    days.retain(|day| ask.includes(day.start_date.copied()));
    for day in &mut days {
        let Maybe::Value(items) = &mut day.allocations else { continue };
        let before = items.len();
        items.retain(|item| match item {
            NamedOr::Name(_) => ask.standards.is_empty(),
            NamedOr::Item(item) => ask.wants(item.standard_allocation_name.as_str()),
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

/// Whole weeks: the one that holds the start to the one that holds the end. A mirror has them as the source told them, or makes them
/// from the days that it told.
fn weekly_emission(facts: &impl Facts, ask: &Ask, terms: Terms<'_>) -> Result<Told, Refusal> {
    let start = ask.start.map(emission::sunday_of);
    let last = emission::sunday_of(ask.end.unwrap_or(terms.now.date_naive()));
    let end = last.checked_add_days(chrono::Days::new(6)).unwrap_or(last);
    let window = Ask { start, end: Some(end), ..ask.clone() };
    let mut weeks: Vec<Emission> = facts.records(Resource::Emission, &ask.id, Window::default())?;
    weeks.retain(is_week);
    let told_at = match facts.standing(Endpoint::WeeklyEmission, Some(&ask.id))? {
        Standing::ReadAt(at) => Some(Some(at)),
        Standing::Own => (!weeks.is_empty()).then_some(None),
        Standing::NeverRead => None,
    };
    if let Some(read_at) = told_at {
        weeks.retain(|week| window.includes(week.start_date.copied()));
        let weeks: Option<Vec<_>> = weeks.into_iter().map(|week| emission::told_week(week, ask.version)).collect();
        let weeks = weeks.ok_or_else(|| {
            Refusal::unknown("the weeks are known here as version 1 tells them, without amounts of allocations: ask version 1")
        })?;
        return whole(weeks, ask, read_at);
    }
    let read_at = held(facts, Endpoint::DailyEmission, Some(&ask.id), terms).map_err(|refusal| match terms.reach {
        Some(reach) if reach.asks(Endpoint::WeeklyEmission) => reach.missing(Endpoint::WeeklyEmission, Some(&ask.id)),
        _ => refusal,
    })?;
    let mut days = days(facts, &ask.id)?;
    days.retain(|day| window.includes(day.start_date.copied()));
    whole(emission::weekly(&days, ask.version), ask, read_at)
}

// -- allocations, burns, buybacks --

fn allocations(facts: &impl Facts, ask: &Ask, token: TokenItem) -> Result<AllocationsData, Refusal> {
    // A token that is listed without a table answers with what the list knows, and no rows.
    let mut data = facts.header(Resource::Allocation, &ask.id)?.unwrap_or_else(|| AllocationsData {
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
    data.allocations = facts.records(Resource::Allocation, &ask.id, Window::default())?.into();
    if data.listed_method.get().is_none() {
        data.listed_method = token.listed_method;
    }
    Ok(data)
}

/// The total of a column: zero for no rows, unknown where no row knows.
fn total<T>(rows: &[T], pick: fn(&T) -> &Maybe<f64>) -> Maybe<f64> {
    let none = if rows.is_empty() { Maybe::Value(0.0) } else { Maybe::Null };
    rows.iter().fold(none, |sum, row| add(&sum, pick(row)))
}

fn burns(facts: &impl Facts, ask: &Ask, token: TokenItem) -> Result<BurnData, Refusal> {
    let mut burns: Vec<crate::wire::Burn> = facts.records(Resource::Burn, &ask.id, ask.window())?;
    burns.sort_by_key(|burn| std::cmp::Reverse(burn.burn_date.copied()));
    Ok(BurnData {
        token_id: token.id,
        token_name: token.name,
        token_symbol: token.symbol,
        total_burn_amount: total(&burns, |burn| &burn.amount),
        total_burn_value: total(&burns, |burn| &burn.value),
        burns: burns.into(),
        ..facts.header(Resource::Burn, &ask.id)?.unwrap_or_default()
    })
}

fn buybacks(facts: &impl Facts, ask: &Ask, token: TokenItem) -> Result<BuybackData, Refusal> {
    let mut buybacks: Vec<Buyback> = facts.records(Resource::Buyback, &ask.id, ask.window())?;
    buybacks.sort_by_key(|buyback| std::cmp::Reverse(buyback.buyback_date.copied()));
    let value = total(&buybacks, |buyback| &buyback.value);
    Ok(BuybackData {
        token_id: token.id,
        token_name: token.name,
        token_symbol: token.symbol,
        total_buyback_amount: total(&buybacks, |buyback| &buyback.token_amount),
        total_buyback_value: value,
        buybacks: buybacks.into(),
        ..facts.header(Resource::Buyback, &ask.id)?.unwrap_or_default()
    })
}

// -- fundraising --

fn investors(facts: &impl Facts, ask: &Ask) -> Result<Vec<InvestorItem>, Refusal> {
    let mut investors: Vec<InvestorItem> = facts.investors()?;
    investors.retain(|investor| ask.includes(investor.latest_funding_date.copied()));
    // Newest first; stable, so investors of one day stay in the order of their ids.
    investors.sort_by_key(|investor| std::cmp::Reverse(investor.latest_funding_date.copied()));
    Ok(investors)
}

fn raised_enough(ask: &Ask, raised: Option<f64>) -> bool {
    ask.min_raised.is_none_or(|least| raised.is_some_and(|raised| raised >= least.get()))
        && ask.max_raised.is_none_or(|most| raised.is_some_and(|raised| raised <= most.get()))
}

fn investor(facts: &impl Facts, ask: &Ask) -> Result<InvestorDetail, Refusal> {
    let Some(item) = facts.header::<InvestorItem>(Resource::Funding, &ask.id)? else {
        return Err(Refusal::unknown(format!("investor \"{}\" is not known", shown(&ask.id))));
    };
    let mut rounds: Vec<FundingRound> = facts.records(Resource::Funding, &ask.id, ask.window())?;
    rounds.retain(|round| {
        ask.lead.is_none_or(|lead| round.is_lead_investor.copied().unwrap_or(false) == lead)
            && raised_enough(ask, round.total_amount_raised.copied())
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

/// A token's rounds, put together from what its investors' pages say of them.
fn token_funding(facts: &impl Facts, ask: &Ask, token: TokenItem) -> Result<TokenFunding, Refusal> {
    let mut rounds: Vec<TokenFundingRound> = Vec::new();
    for told in facts.rounds_about(&ask.id)? {
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
    let private: Vec<crate::wire::Allocation> = facts.records(Resource::Allocation, &ask.id, Window::default())?;
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
