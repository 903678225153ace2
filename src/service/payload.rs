//! Builds the payload of a response from a query and the data, with one function per resource.
//!
//! The stored records have all fields. The table [`shows`] decides which fields a version has, and applies to every payload. Totals
//! cover the requested window.

mod emissions;
mod funding;
mod json;
mod supply;
mod tokens;
pub mod totals;
mod unlocks;

use serde::Serialize;

use crate::mirror::MirrorScope;
use crate::query::DataQuery;
use crate::refusal::{Refusal, redact};
use crate::route::DataSubject;
use crate::version::{covers_ai_since, shows};
use emissions::{daily_emission, weekly_emission};
use funding::{investor, investors, token_funding};
pub use json::{ResponseBody, ResponseData};
use model::wire::{Described, TokenItem, UnlockEvent};
use model::{Endpoint, Resource, Timestamp};
use store::facts::{Coverage, DateRange, SupplyFacts};
use supply::{allocations, burns, buybacks};
use tokens::{token_list, upcoming};
use unlocks::unlock_events;

#[derive(Clone, Copy, Debug)]
pub struct ResponseContext<'a> {
    pub now: Timestamp,
    /// Whether old versions also serve tokens with the listed method `AI`.
    pub all_tokens: bool,
    /// The scope of a mirror. `None` for a service with its own data.
    pub scope: Option<&'a MirrorScope>,
}

/// A query, with the data and the options that its response depends on.
struct Lookup<'a, F> {
    facts: &'a F,
    query: &'a DataQuery,
    context: ResponseContext<'a>,
}

/// Builds the payload for a query.
///
/// # Errors
///
/// Fails if the token or investor is unknown, if the data was not polled yet, or if it cannot be read.
pub fn build(facts: &impl SupplyFacts, query: &DataQuery, context: ResponseContext<'_>) -> Result<ResponseData, Refusal> {
    let lookup = Lookup { facts, query, context };
    match query.subject {
        DataSubject::TokenList => {
            let read_at = lookup.polled(Endpoint::TokenList)?;
            lookup.list(token_list(facts, query)?, read_at)
        }
        DataSubject::Upcoming => {
            let read_at = lookup.polled(Endpoint::Upcoming)?;
            lookup.list(upcoming(facts, query, context.now)?, read_at)
        }
        DataSubject::UnlockEvents => {
            let token = lookup.covered_token()?;
            let read_at = lookup.polled_of_token(Endpoint::UnlockEvents)?;
            lookup.check_window(read_at, false)?;
            let mut events: Vec<UnlockEvent> = facts.records(Resource::Unlock, &query.id, DateRange::default())?;
            events.sort_by_key(|event| event.unlock_date.copied());
            if query.version < 2 && !facts.shows_rate_changes(&query.id, &events)? {
                return Err(Refusal::not_found(format!(
                    "the schedule of token \"{}\" is stored without changes of rate, which version 1 needs: request version 2 or newer",
                    redact(&query.id)
                )));
            }
            for event in &mut events {
                if event.listed_method.get().is_none() {
                    event.listed_method = token.listed_method.clone();
                }
            }
            // The window is applied last, because a change of rate is only recognized by the linear item before it.
            let mut events = unlock_events(events, query)?;
            events.retain(|event| query.includes(event.unlock_date.copied()));
            lookup.list(events, read_at)
        }
        DataSubject::DailyEmission => {
            lookup.covered_token()?;
            let read_at = lookup.polled_of_token(Endpoint::DailyEmission)?;
            lookup.check_window(read_at, false)?;
            lookup.list(daily_emission(facts, query, context.now)?, read_at)
        }
        DataSubject::WeeklyEmission => {
            lookup.covered_token()?;
            weekly_emission(&lookup)
        }
        DataSubject::Allocations => {
            let token = lookup.covered_token()?;
            let read_at = lookup.polled_of_token(Endpoint::Allocations)?;
            lookup.object(allocations(facts, query, token)?, read_at)
        }
        DataSubject::Burn => {
            let token = lookup.token()?;
            let read_at = lookup.polled_unless_none(Endpoint::Burn, token.has_burn.copied())?;
            lookup.check_window(read_at, true)?;
            lookup.object(burns(facts, query, token)?, read_at)
        }
        DataSubject::Buyback => {
            let token = lookup.token()?;
            let read_at = lookup.polled_unless_none(Endpoint::Buyback, token.has_buyback.copied())?;
            lookup.check_window(read_at, true)?;
            lookup.object(buybacks(facts, query, token)?, read_at)
        }
        DataSubject::Investors => {
            let read_at = lookup.polled(Endpoint::Investors)?;
            lookup.list(investors(facts, query)?, read_at)
        }
        DataSubject::Investor | DataSubject::TokenFunding if context.scope.is_some() => {
            Err(Refusal::not_found("a mirror does not serve funding rounds: its daemon polls only the rounds of watched tokens"))
        }
        DataSubject::Investor => {
            lookup.polled(Endpoint::Investors)?;
            lookup.object(investor(facts, query)?, None)
        }
        DataSubject::TokenFunding => {
            let token = lookup.token()?;
            lookup.polled(Endpoint::Investors)?;
            lookup.object(token_funding(facts, query, token)?, None)
        }
    }
}

impl<F: SupplyFacts> Lookup<'_, F> {
    fn object<T: Described + Serialize>(&self, mut data: T, read_at: Option<Timestamp>) -> Result<ResponseData, Refusal> {
        self.keep_shown(&mut data);
        ResponseData::object(&data, read_at).map_err(|_| Refusal::internal("cannot write the response as JSON"))
    }

    fn list<T: Described + Serialize>(&self, mut items: Vec<T>, read_at: Option<Timestamp>) -> Result<ResponseData, Refusal> {
        self.keep_shown(&mut items);
        ResponseData::list(items, read_at).map_err(|_| Refusal::internal("cannot write the response as JSON"))
    }

    /// Removes the fields that the version does not have.
    fn keep_shown(&self, data: &mut impl Described) {
        data.keep(&|object, field| shows(self.query.subject, self.query.version, object, field));
    }

    fn polled(&self, endpoint: Endpoint) -> Result<Option<Timestamp>, Refusal> {
        self.polled_at(endpoint, None)
    }

    fn polled_of_token(&self, endpoint: Endpoint) -> Result<Option<Timestamp>, Refusal> {
        self.polled_at(endpoint, Some(&self.query.id))
    }

    /// Returns when the endpoint was polled, or `None` for own data. Fails if it was never polled, so that missing data does not look
    /// like an empty list.
    fn polled_at(&self, endpoint: Endpoint, token: Option<&str>) -> Result<Option<Timestamp>, Refusal> {
        match self.facts.coverage(endpoint, token)? {
            Coverage::Own => Ok(None),
            Coverage::ReadAt(at) => Ok(Some(at)),
            Coverage::NeverRead => Err(match (self.context.scope, token) {
                (Some(scope), _) => scope.missing(endpoint, token),
                (None, Some(token)) => Refusal::not_found(format!(
                    "no data of {endpoint} for token \"{}\": the imported daemon never polled it, or the imported folder does not cover it",
                    redact(token)
                )),
                (None, None) => Refusal::not_found(format!("no data of {endpoint}: the imported daemon never polled it")),
            }),
        }
    }

    /// Like [`polled_of_token`](Self::polled_of_token), but also accepts an endpoint that was never polled if `has_records` is
    /// `Some(false)`: the token list reports that the token has no such records, so the daemon does not poll them. Returns the time of
    /// the token list then.
    fn polled_unless_none(&self, endpoint: Endpoint, has_records: Option<bool>) -> Result<Option<Timestamp>, Refusal> {
        let own = self.polled_of_token(endpoint);
        if own.is_err() && has_records == Some(false) { self.polled(Endpoint::TokenList) } else { own }
    }

    /// Checks that a mirror has data for the requested window.
    fn check_window(&self, read_at: Option<Timestamp>, is_sum: bool) -> Result<(), Refusal> {
        match (self.context.scope, read_at) {
            (Some(scope), Some(read_at)) => scope.check_window(self.query, is_sum, read_at),
            _ => Ok(()),
        }
    }

    fn token(&self) -> Result<TokenItem, Refusal> {
        let id = &self.query.id;
        if let Some(token) = self.facts.token(id)? {
            return Ok(token);
        }
        // Without a token list, the token may exist.
        self.polled(Endpoint::TokenList)?;
        Err(Refusal::not_found(format!("unknown token \"{}\"", redact(id))))
    }

    /// Returns the token if the version covers it. Old versions cover tokens with the listed method `AI` only if the option is set.
    fn covered_token(&self) -> Result<TokenItem, Refusal> {
        let token = self.token()?;
        let (version, since) = (self.query.version, covers_ai_since(self.query.subject));
        if !self.context.all_tokens && version < since && token.listed_method.as_str() == Some("AI") {
            return Err(Refusal::not_found(format!(
                "token \"{}\" has the listed method AI, which version {version} does not cover: request version {since} or newer",
                redact(&self.query.id)
            )));
        }
        Ok(token)
    }
}
