//! A layer that injects faults into the data service, which tests use as their source.
//!
//! A test sets faults by its [`Faults`] handle, which also logs all requests without their keys. A request with a fault costs no credit,
//! unless the fault alters a real response.

mod body;
mod respond;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use chrono::NaiveDate;

/// The maximum number of logged requests. Further requests are only counted.
const MAX_LOG: usize = 100_000;

#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A status with the error body of the service.
    Status {
        code: u16,
        /// The value of the header `Retry-After`: seconds or a date.
        retry_after: Option<String>,
    },
    /// The real response after a delay.
    Slow(Duration),
    /// The real response in pieces of `bytes`, each after a pause.
    Drip {
        bytes: usize,
        every: Duration,
    },
    /// The real response, whose connection breaks after this number of bytes.
    Cut(usize),
    /// Headers without a body, on a connection that stays open.
    Hang,
    /// Status 200 with bytes that are not JSON.
    Garbage,
    /// Status 200 with a web page, as from captive portals and broken proxies.
    Html,
    EmptyBody,
    /// The real response with an empty `data` and, for lists with pages, a total of zero.
    Emptied,
    /// Status 200 with `status: false`.
    StatusFalse,
    /// The payload without its envelope.
    Bare,
    /// Status 500 for this page.
    PageFails(u64),
    /// An empty list for this page, with unchanged totals.
    PageMissing(u64),
    /// A `total` that grows with every request from the second page on, as if the list changed between the requests.
    TotalMoves,
    /// Status 304 without a body.
    NotModified,
    /// Status 302 to this URL.
    Redirect(String),
    /// A gzip body that decompresses to this number of spaces.
    GzipBomb(u64),
    /// The real response with the items of `data` in reverse order.
    Reversed,
    /// The real response with every item of `data` twice.
    Doubled,
    /// Status 200 with exactly this body.
    Body(String),
    /// The real response for only these days, like an API plan with a visibility window.
    Clipped {
        first: NaiveDate,
        last: NaiveDate,
    },
    /// The real response with every text `from` replaced by `to`.
    Replaced {
        from: String,
        to: String,
    },
}

impl Fault {
    /// A status fault without `Retry-After`.
    pub fn status(code: u16) -> Self {
        Fault::Status { code, retry_after: None }
    }

    /// Status 429 with `Retry-After` in seconds.
    pub fn too_many(secs: u64) -> Self {
        Fault::Status { code: 429, retry_after: Some(secs.to_string()) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// The path and query of the request.
    pub uri: String,
    /// Whether the request had `x-api-key`. The key itself is not logged.
    pub has_key: bool,
    /// The names of the headers, in lowercase.
    pub headers: Vec<String>,
    pub faulted: bool,
}

#[derive(Debug)]
struct FaultRule {
    prefix: String,
    fault: Fault,
    /// The number of requests to which the rule still applies. `None` for all requests until [`Faults::clear`].
    left: Option<u32>,
}

#[derive(Debug, Default)]
struct FaultState {
    rules: Vec<FaultRule>,
    log: Vec<LoggedRequest>,
    count: u64,
    altered: i64,
}

/// A handle to the faults of a wrapped router. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<FaultState>>);

impl Faults {
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies `fault` to all requests whose path begins with `prefix`. If several faults match, the latest applies.
    pub fn set(&self, prefix: &str, fault: Fault) {
        self.state().rules.push(FaultRule { prefix: prefix.to_owned(), fault, left: None });
    }

    /// Applies `fault` to the next `times` requests whose path begins with `prefix`.
    pub fn times(&self, prefix: &str, times: u32, fault: Fault) {
        self.state().rules.push(FaultRule { prefix: prefix.to_owned(), fault, left: Some(times) });
    }

    pub fn clear(&self) {
        self.state().rules.clear();
    }

    /// Takes the requests logged since the last call.
    pub fn take_log(&self) -> Vec<LoggedRequest> {
        std::mem::take(&mut self.state().log)
    }

    /// Returns the log and keeps it.
    pub fn log(&self) -> Vec<LoggedRequest> {
        self.state().log.clone()
    }

    /// Returns the number of all requests.
    pub fn request_count(&self) -> u64 {
        self.state().count
    }

    /// Logs a request and returns its fault.
    fn next_fault(&self, request: &Request) -> Option<Fault> {
        let mut state = self.state();
        let (path, page) = (request.uri().path(), page_of(request));
        // Requests for other pages do not count for a fault of one page.
        let fits = |rule: &FaultRule| {
            path.starts_with(&rule.prefix)
                && rule.left != Some(0)
                && match rule.fault {
                    Fault::PageFails(bad) | Fault::PageMissing(bad) => page == bad,
                    _ => true,
                }
        };
        let fault = state.rules.iter_mut().rev().find(|rule| fits(rule)).map(|rule| {
            rule.left = rule.left.map(|left| left - 1);
            rule.fault.clone()
        });
        state.count += 1;
        if state.log.len() < MAX_LOG {
            let seen = LoggedRequest {
                uri: request.uri().to_string(),
                has_key: request.headers().contains_key("x-api-key"),
                headers: request.headers().keys().map(ToString::to_string).collect(),
                faulted: fault.is_some(),
            };
            state.log.push(seen);
        }
        fault
    }

    fn next_total(&self) -> i64 {
        let mut state = self.state();
        state.altered += 1;
        state.altered
    }

    /// Applies the faults to all requests for `router`.
    pub fn wrap(&self, router: Router) -> Router {
        let faults = self.clone();
        router.layer(middleware::from_fn(move |request: Request, next: Next| {
            let faults = faults.clone();
            async move {
                match faults.next_fault(&request) {
                    None => next.run(request).await,
                    Some(fault) => faults.respond(fault, request, next).await,
                }
            }
        }))
    }
}

fn page_of(request: &Request) -> u64 {
    url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "page")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(1)
}
