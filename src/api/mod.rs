//! The client of the token supply API: what may be asked, what may come back.
//!
//! [`Client::fetch`] asks one thing to its end (all pages) and answers [`Outcome::Fresh`], [`Outcome::Unchanged`] or
//! [`Outcome::Failed`]. It never answers half: whoever gets `Fresh` or `Unchanged` holds a complete, valid answer, and only such
//! an answer may prove that something is gone.

mod client;
mod envelope;
mod exchange;
mod gate;
mod pace;
mod parse;
mod route;
mod server;
mod shown;
#[cfg(test)]
mod tests;
mod trouble;
mod tuning;
mod walk;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use client::Client;
pub use gate::BreakerState;
pub use server::{ClientError, install_crypto_provider};
#[doc(hidden)]
pub use tuning::Tuning;

use crate::{
    supply::{ContentHash, Endpoint, FeedId, Timestamp, TokenId},
    wire,
};

/// One thing to ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// All tokens.
    TokenList,
    /// Next event of each token between two dates.
    Upcoming {
        /// First day.
        start: chrono::NaiveDate,
        /// Last day, inclusive.
        end: chrono::NaiveDate,
    },
    /// One token's records of an endpoint, between two dates where the endpoint takes dates.
    Token {
        /// A per-token endpoint.
        endpoint: Endpoint,
        /// Which token.
        token: TokenId,
        /// First day.
        start: chrono::NaiveDate,
        /// Last day, inclusive.
        end: chrono::NaiveDate,
    },
    /// The investor list.
    Investors,
    /// One investor with its rounds.
    Investor {
        /// Slug.
        id: String,
    },
}

impl Request {
    /// Whose metrics and schedule it counts towards.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        match self {
            Request::TokenList => Endpoint::TokenList,
            Request::Upcoming { .. } => Endpoint::Upcoming,
            Request::Token { endpoint, .. } => *endpoint,
            Request::Investors | Request::Investor { .. } => Endpoint::Investors,
        }
    }

    /// About which token, if one.
    #[must_use]
    pub fn token(&self) -> Option<&TokenId> {
        if let Request::Token { token, .. } = self { Some(token) } else { None }
    }

    /// The feed that the answer belongs to.
    #[must_use]
    pub fn feed(&self) -> FeedId {
        FeedId { endpoint: self.endpoint(), token: self.token().cloned() }
    }
}

/// What came of a request, with what it cost.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What was asked.
    pub request: Request,
    /// What came back.
    pub outcome: Outcome,
    /// Credits that it cost: successful requests, pages included, also those of a walk that failed later.
    pub credits: u32,
    /// Requests that were sent.
    pub requests: u32,
    /// Quota as the last answer reported it.
    pub credit: Option<wire::Credit>,
    /// Decoded bytes of all answers.
    pub bytes: u64,
    /// How long it all took.
    pub took: Duration,
    /// Last HTTP status.
    pub status: Option<u16>,
    /// Version that answered.
    pub version: Option<u8>,
}

/// Three answers that never look alike.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one to a fetch, and a fetch costs a round trip")]
pub enum Outcome {
    /// Complete and valid; the bytes differ from the last ones.
    Fresh(Answer),
    /// Complete and valid; the bytes of `data` are those of the last answer.
    Unchanged,
    /// Not an answer.
    Failed(Failure),
}

/// A complete, valid answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The payload of all pages together.
    pub payload: Payload,
    /// Hash over the raw spans of `data`, page by page, and what the server counts.
    pub hash: ContentHash,
    /// What was odd in it, the first hundred.
    pub oddities: Vec<wire::Oddity>,
    /// How many oddities in all.
    pub oddities_total: usize,
    /// Records, or lists of them, that could not be used and were left out. While there are any, nothing that is missing is
    /// proven gone.
    pub dropped: usize,
}

/// What an answer holds. Records without a usable key have been dropped and noted as oddities.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Token list.
    Tokens(Vec<wire::TokenItem>),
    /// Next events.
    Upcoming(Vec<wire::UpcomingItem>),
    /// A token's schedule.
    UnlockEvents(Vec<wire::UnlockEvent>),
    /// Burns.
    Burns(wire::BurnData),
    /// Buybacks.
    Buybacks(wire::BuybackData),
    /// Allocation table.
    Allocations(wire::AllocationsData),
    /// Daily or weekly emission.
    Emissions(Vec<wire::Emission>),
    /// Investor list.
    Investors(Vec<wire::InvestorItem>),
    /// One investor.
    Investor(wire::InvestorDetail),
}

/// Reads the body of an answer that has one page, as [`Client::fetch`] does once it has come: what the benches measure.
///
/// # Errors
/// Where it is no answer to `request`; the text says why.
#[doc(hidden)]
pub fn read_body(request: &Request, version: u8, body: Vec<u8>, known: Option<ContentHash>) -> Result<Outcome, String> {
    let route = route::Route::of(request)?;
    let ask = route.ask(request, version);
    let page = exchange::read(body, None, ask.is_list, known).map_err(|error| format!("{error:?}"))?;
    let mut walk = walk::Walk::new(ask.is_list, ask.is_paged.then_some(u32::MAX), u64::MAX, known);
    match walk.take(page) {
        walk::Step::Same => Ok(Outcome::Unchanged),
        walk::Step::Whole => parse::answer(request, route, &walk.into_pages()).map(Outcome::Fresh),
        step => Err(format!("{step:?}")),
    }
}

/// What kind of trouble: the label `outcome` of the metrics and `kind` of source alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection, a broken one, a cut body.
    Unreachable,
    /// A time limit ran out.
    Timeout,
    /// 5xx.
    ServerError,
    /// 401 or 403.
    Unauthorized,
    /// 429 while credits are left.
    RateLimited,
    /// 429, or no request at all, because the credits are spent.
    QuotaExhausted,
    /// 404.
    NotFound,
    /// Any other status, or a redirect.
    UnexpectedStatus,
    /// 200 that is not the envelope: HTML, cut JSON, `status: false`, a bare payload.
    BadAnswer,
    /// More bytes than `max_body`.
    TooLarge,
    /// Pages that do not fit together: a number missing, `total` not reached, a list that kept changing under the walk.
    Incomplete,
    /// Complete, but empty where there were records: decided by the cycle, which knows what there was.
    Emptied,
    /// Not asked: the breaker is open after repeated failures.
    Suspended,
}

impl FailureKind {
    /// The word in metrics, tables and alerts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Unreachable => "unreachable",
            FailureKind::Timeout => "timeout",
            FailureKind::ServerError => "server_error",
            FailureKind::Unauthorized => "unauthorized",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::QuotaExhausted => "quota_exhausted",
            FailureKind::NotFound => "not_found",
            FailureKind::UnexpectedStatus => "unexpected_status",
            FailureKind::BadAnswer => "bad_answer",
            FailureKind::TooLarge => "too_large",
            FailureKind::Incomplete => "incomplete",
            FailureKind::Emptied => "emptied",
            FailureKind::Suspended => "suspended",
        }
    }

    /// Whether it says something of the source as a whole rather than of the one thing asked.
    #[must_use]
    pub fn is_source_wide(self) -> bool {
        matches!(
            self,
            FailureKind::Unreachable
                | FailureKind::Timeout
                | FailureKind::ServerError
                | FailureKind::Unauthorized
                | FailureKind::RateLimited
                | FailureKind::QuotaExhausted
                | FailureKind::Suspended
        )
    }
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// What was attempted and what came of it, for people: names the path, never the key, at most 500 characters.
    pub message: String,
    /// When the server asked to come back.
    pub retry_at: Option<Timestamp>,
}
