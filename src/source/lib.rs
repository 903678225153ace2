//! The client of the token supply API.
//!
//! [`Client::fetch`] passes a request through these modules:
//!
//! ```text
//! route ─► breaker ─► fetch (versions) ─► page_walk (rate_limiter ─► credit_gate ─► page_request ─► envelope) ─► hash ─► parse
//! ```
//!
//! `base_server` has the HTTP clients, `failed_request` the meaning of errors, `segments` combines two responses about one schedule, and
//! `redact` sanitizes text from outside.
//!
//! A fetch reads all pages and returns [`PollOutcome::Fresh`], [`PollOutcome::Unchanged`], or [`PollOutcome::Failed`]. `Fresh` and
//! `Unchanged` always mean a complete, valid response, because only such a response can prove a removal.
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! # use cliffwatch_source as source;
//! use model::{clock::Clock, config::SourceSettings, poll::{FailureKind, PollOutcome, PollRequest}};
//!
//! let mut settings = SourceSettings::default();
//! // No server listens on this port: the outcome is a failure, not an empty list.
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
mod body_buffers;
mod breaker;
mod client;
mod combined_unlocks;
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
#[cfg(test)]
mod tests;
mod tuning;
mod versions;

pub use base_server::{ClientError, install_crypto_provider};
pub use breaker::BreakerState;
pub use client::Client;
pub use credit_gate::{CreditGate, GateDecision, OpenGate, key_fingerprint};
#[doc(hidden)]
pub use route::newest_path;
pub use tuning::Tuning;

use model::{
    poll::{PollOutcome, PollRequest},
    supply::ContentHash,
};

/// Parses the body of a response with one page like [`Client::fetch`], for benchmarks.
///
/// # Errors
///
/// Fails if the body is not a valid response to `request`.
#[doc(hidden)]
pub fn read_body(request: &PollRequest, version: u8, body: Vec<u8>, known: Option<ContentHash>) -> Result<PollOutcome, String> {
    let route = route::EndpointRoute::of(request)?;
    let target = route.target(request, version);
    let page = page_request::read(body, None, target.is_list, known).map_err(|error| format!("{error:?}"))?;
    let mut walk = page_walk::PageWalk::new(target.is_list, target.is_paged.then_some(u32::MAX), u64::MAX, known);
    match walk.take(page) {
        page_walk::WalkStep::Unchanged => Ok(PollOutcome::Unchanged),
        page_walk::WalkStep::Complete => parse::response(request, route, &walk.into_pages()).map(PollOutcome::Fresh),
        step => Err(format!("{step:?}")),
    }
}
