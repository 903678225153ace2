//! The client of the token supply API: what may be asked, what may come back.
//!
//! The cast: [`Client`] with its two servers (`base_server`), `route` with the path of every endpoint in every version, `breaker`
//! and `rate_limiter` that say when the source may be asked, `credit_gate` that asks for the credit of each request, `page_request`
//! for one page and `page_walk` for all of them, `envelope` and `parse` that read what came, `segments` that joins two answers about
//! one schedule, `failed_request` with what a failure means, `redact` for every text that comes from outside.
//!
//! ```text
//! request ─► route ─► breaker ─► versions ─► walk over pages (rate limiter ─► credit ─► request ─► envelope) ─► hash ─► records
//! ```
//!
//! The promise: [`Client::fetch`] asks one thing to its end (all pages) and answers [`PollOutcome::Fresh`],
//! [`PollOutcome::Unchanged`] or [`PollOutcome::Failed`]. It never answers half: whoever gets `Fresh` or `Unchanged` holds a
//! complete, valid answer, and only such an answer may prove that something is gone.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! # use cliffwatch_source as source;
//! use model::{clock::Clock, config::{Config, DEFAULTS}, poll::{FailureKind, PollOutcome, PollRequest}};
//!
//! let mut settings = toml::from_str::<Config>(DEFAULTS)?.source;
//! // Nobody listens there: the answer is a failure, not an empty list.
//! settings.base_url = "http://127.0.0.1:9".into();
//! let client = source::Client::new(&settings, Clock::system())?;
//! let fetched = client.fetch(&PollRequest::TokenList, None, None).await;
//! assert!(matches!(fetched.outcome, PollOutcome::Failed(failure) if failure.kind == FailureKind::Unreachable));
//! # Ok(())
//! # })
//! # .map_err(|error: Box<dyn std::error::Error>| error)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod base_server;
mod breaker;
mod client;
mod credit_gate;
mod envelope;
mod failed_request;
mod fetch;
mod page_request;
mod page_walk;
mod parse;
mod rate_limiter;
mod redact;
mod route;
mod segments;
#[cfg(test)]
mod tests;
mod tuning;

pub use base_server::{ClientError, install_crypto_provider};
pub use breaker::BreakerState;
pub use client::Client;
pub use credit_gate::{CreditGate, GateAnswer, OpenGate};
#[doc(hidden)]
pub use route::newest_path;
pub use tuning::Tuning;

use model::{
    poll::{PollOutcome, PollRequest},
    supply::ContentHash,
};

/// Reads the body of an answer that has one page, as [`Client::fetch`] does once it has come: what the benches measure.
///
/// # Errors
/// Where it is no answer to `request`; the text says why.
#[doc(hidden)]
pub fn read_body(request: &PollRequest, version: u8, body: Vec<u8>, known: Option<ContentHash>) -> Result<PollOutcome, String> {
    let route = route::EndpointRoute::of(request)?;
    let target = route.target(request, version);
    let page = page_request::read(body, None, target.is_list, known).map_err(|error| format!("{error:?}"))?;
    let mut walk = page_walk::PageWalk::new(target.is_list, target.is_paged.then_some(u32::MAX), u64::MAX, known);
    match walk.take(page) {
        page_walk::WalkStep::Same => Ok(PollOutcome::Unchanged),
        page_walk::WalkStep::Whole => parse::answer(request, route, &walk.into_pages()).map(PollOutcome::Fresh),
        step => Err(format!("{step:?}")),
    }
}
