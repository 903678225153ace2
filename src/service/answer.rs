//! From a question and a view of the data to the payload: one function per resource, each shaping its records as the version asks.
//!
//! What is held is the widest form of every record. Totals are made for the window that was asked for; which fields a version shows
//! is the table in [`shows`], applied to everything that goes out.

mod content;
mod emissions;
mod funding;
mod supply;
mod tokens;
pub mod totals;
mod unlocks;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::mirror::MirrorScope;
use crate::query::DataQuery;
use crate::refusal::{Refusal, redact};
use crate::route::DataSubject;
use crate::version::{covers_ai_since, shows};
use content::DATA;
pub use content::{AnswerBody, AnswerContent, ListRows};
use emissions::{daily_emission, weekly_emission};
use funding::{investor, investors, token_funding};
use model::wire::{Described, TokenItem, UnlockEvent};
use model::{Endpoint, Resource, Timestamp};
use store::facts::{Coverage, DateRange, SupplyFacts};
use supply::{allocations, burns, buybacks};
use tokens::{token_list, upcoming};
use unlocks::unlock_events;

/// What an answer is made under.
#[derive(Clone, Copy, Debug)]
pub struct AnswerContext<'a> {
    /// The present time.
    pub now: Timestamp,
    /// Whether older versions answer for tokens that were listed by a model too.
    pub all_tokens: bool,
    /// For a mirror: what its daemon asks the source for.
    pub scope: Option<&'a MirrorScope>,
}

/// Answers a question.
/// Fails with a refusal where the token or investor is unknown, where a mirror was not told yet, or where the data cannot be
/// read.
pub fn answer(facts: &impl SupplyFacts, query: &DataQuery, context: AnswerContext<'_>) -> Result<AnswerContent, Refusal> {
    match query.subject {
        DataSubject::TokenList => {
            let read_at = held(facts, Endpoint::TokenList, None, context)?;
            whole(token_list(facts, query)?, query, read_at)
        }
        DataSubject::Upcoming => {
            let read_at = held(facts, Endpoint::Upcoming, None, context)?;
            list(upcoming(facts, query, context.now)?, query, read_at)
        }
        DataSubject::UnlockEvents => {
            let token = covered(facts, query, context)?;
            let read_at = held(facts, Endpoint::UnlockEvents, Some(&query.id), context)?;
            within(query, false, read_at, context)?;
            let mut events: Vec<UnlockEvent> = facts.records(Resource::Unlock, &query.id, DateRange::default())?;
            events.sort_by_key(|event| event.unlock_date.copied());
            if query.version < 2 && !facts.tells_rate_changes(&query.id, &events)? {
                return Err(Refusal::unknown(format!(
                    "the schedule of token \"{}\" is known here as a later version tells it, without changes of rate: ask version 2 or newer",
                    redact(&query.id)
                )));
            }
            for event in &mut events {
                if event.listed_method.get().is_none() {
                    event.listed_method = token.listed_method.clone();
                }
            }
            // Shaped before it is cut to the window: whether a linear item is a change of rate is told by the one before it.
            let events = unlock_events(events, query)?.into_iter().filter(|event| query.includes(event.unlock_date.copied()));
            list(events.collect(), query, read_at)
        }
        DataSubject::DailyEmission => {
            covered(facts, query, context)?;
            let read_at = held(facts, Endpoint::DailyEmission, Some(&query.id), context)?;
            within(query, false, read_at, context)?;
            list(daily_emission(facts, query, context.now)?, query, read_at)
        }
        DataSubject::WeeklyEmission => {
            covered(facts, query, context)?;
            weekly_emission(facts, query, context)
        }
        DataSubject::Allocations => {
            let token = covered(facts, query, context)?;
            let read_at = held(facts, Endpoint::Allocations, Some(&query.id), context)?;
            whole(allocations(facts, query, token)?, query, read_at)
        }
        DataSubject::Burn => {
            let token = known(facts, query, context)?;
            let read_at = held_unless(facts, Endpoint::Burn, query, token.has_burn.copied(), context)?;
            within(query, true, read_at, context)?;
            whole(burns(facts, query, token)?, query, read_at)
        }
        DataSubject::Buyback => {
            let token = known(facts, query, context)?;
            let read_at = held_unless(facts, Endpoint::Buyback, query, token.has_buyback.copied(), context)?;
            within(query, true, read_at, context)?;
            whole(buybacks(facts, query, token)?, query, read_at)
        }
        DataSubject::Investors => {
            let read_at = held(facts, Endpoint::Investors, None, context)?;
            list(investors(facts, query)?, query, read_at)
        }
        DataSubject::Investor | DataSubject::TokenFunding if context.scope.is_some() => {
            Err(Refusal::unknown("a mirror has no funding rounds: its daemon reads those of the tokens that it watches, not all"))
        }
        DataSubject::Investor => {
            held(facts, Endpoint::Investors, None, context)?;
            whole(investor(facts, query)?, query, None)
        }
        DataSubject::TokenFunding => {
            let token = known(facts, query, context)?;
            held(facts, Endpoint::Investors, None, context)?;
            whole(token_funding(facts, query, token)?, query, None)
        }
    }
}

fn whole<T: Described + Serialize>(mut data: T, query: &DataQuery, read_at: Option<Timestamp>) -> Result<AnswerContent, Refusal> {
    data.keep(&|object, field| shows(query.subject, query.version, object, field));
    let mut tail = DATA.as_bytes().to_vec();
    serde_json::to_writer(&mut tail, &data).map_err(|_| Refusal::internal("an answer cannot be written as JSON"))?;
    tail.push(b'}');
    let tag = format!("{:032x}", xxh3_128(&tail));
    Ok(AnswerContent::Whole(AnswerBody { tail: tail.into(), paging: None, read_at, tag }))
}

/// A list with pages where the version has pages.
fn list<T: Described + Serialize>(
    items: Vec<T>,
    query: &DataQuery,
    read_at: Option<Timestamp>,
) -> Result<AnswerContent, Refusal> {
    if query.page.is_none() {
        return whole(items, query, read_at);
    }
    let items = items.into_iter().map(|mut item| {
        item.keep(&|object, field| shows(query.subject, query.version, object, field));
        item
    });
    let rows = ListRows::of(items, read_at).map_err(|_| Refusal::internal("an answer cannot be written as JSON"))?;
    Ok(AnswerContent::Rows(rows))
}

/// When the source told what an endpoint tells. Not being told yet is no empty answer.
fn held(
    facts: &impl SupplyFacts,
    endpoint: Endpoint,
    token: Option<&str>,
    context: AnswerContext<'_>,
) -> Result<Option<Timestamp>, Refusal> {
    match facts.coverage(endpoint, token)? {
        Coverage::Own => Ok(None),
        Coverage::ReadAt(at) => Ok(Some(at)),
        Coverage::NeverRead => Err(match context.scope {
            Some(scope) => scope.missing(endpoint, token),
            None => Refusal::unknown(match token {
                Some(token) => format!(
                    "{endpoint} of token \"{}\" is not known here: the daemon that this data came from never read it, or its folder does not cover it",
                    redact(token)
                ),
                None => format!("{endpoint} is not known here: the daemon that this data came from never read it"),
            }),
        }),
    }
}

/// Whether a mirror holds the window that is asked for.
fn within(query: &DataQuery, is_sum: bool, read_at: Option<Timestamp>, context: AnswerContext<'_>) -> Result<(), Refusal> {
    match (context.scope, read_at) {
        (Some(scope), Some(read_at)) => scope.holds(query, is_sum, read_at),
        _ => Ok(()),
    }
}

/// As [`held`], where the token list may have said that the token has none: then nobody asks, and the list's word holds.
fn held_unless(
    facts: &impl SupplyFacts,
    endpoint: Endpoint,
    query: &DataQuery,
    has: Option<bool>,
    context: AnswerContext<'_>,
) -> Result<Option<Timestamp>, Refusal> {
    let own = held(facts, endpoint, Some(&query.id), context);
    if own.is_err() && has == Some(false) { held(facts, Endpoint::TokenList, None, context) } else { own }
}

fn known(facts: &impl SupplyFacts, query: &DataQuery, context: AnswerContext<'_>) -> Result<TokenItem, Refusal> {
    if let Some(token) = facts.token(&query.id)? {
        return Ok(token);
    }
    // Without the list nobody knows which tokens there are.
    held(facts, Endpoint::TokenList, None, context)?;
    Err(Refusal::unknown(format!("token \"{}\" is not known", redact(&query.id))))
}

/// Older versions were made before tokens were listed by a model. Whether they answer for such tokens is an option of the service.
fn covered(facts: &impl SupplyFacts, query: &DataQuery, context: AnswerContext<'_>) -> Result<TokenItem, Refusal> {
    let token = known(facts, query, context)?;
    let since = covers_ai_since(query.subject);
    if !context.all_tokens && query.version < since && token.listed_method.as_str() == Some("AI") {
        return Err(Refusal::unknown(format!(
            "token \"{}\" is listed by the method AI, which version {} does not cover: ask version {since} or newer",
            redact(&query.id),
            query.version
        )));
    }
    Ok(token)
}
