//! A service that misbehaves on demand: the fake upstream of tests is the real service behind this layer.
//!
//! A [`Faults`] is a handle that the test keeps and the router shares. It says which answers go wrong, how, and how often, and keeps a
//! log of what was asked, without keys. A request that meets a fault costs no credit, unless the fault alters a real answer.

mod answer;
mod body;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use chrono::NaiveDate;
use tokio_util::io::ReaderStream;

use body::Spaces;

/// Requests kept in the log; later ones are only counted.
const MAX_LOG: usize = 100_000;

/// What goes wrong with an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// This status with the service's error body; `retry_after` as the header's value.
    Status {
        /// Such as 401, 404, 429, 500, 503.
        code: u16,
        /// Seconds, or a date.
        retry_after: Option<String>,
    },
    /// The right answer, late.
    Slow(Duration),
    /// The right answer, this many bytes at a time with a pause before each.
    Drip {
        bytes: usize,
        every: Duration,
    },
    /// The right answer, whose connection ends after this many bytes although more were promised.
    Cut(usize),
    /// No answer: the headers come, the body never does.
    Hang,
    /// 200 with bytes that are not JSON.
    Garbage,
    /// 200 with a web page, as captive portals and broken proxies have it.
    Html,
    EmptyBody,
    /// The right envelope with an empty `data` and, on lists with pages, a total of zero.
    Emptied,
    /// 200 with `status: false`.
    StatusFalse,
    /// The payload without its envelope.
    Bare,
    /// Requests for this page answer 500.
    PageFails(u64),
    /// Requests for this page answer an empty list under unchanged totals.
    PageMissing(u64),
    /// From the second page on, `total` grows with every request: the list changes under the walk.
    TotalMoves,
    /// 304 without a body.
    NotModified,
    /// 302 to this address.
    Redirect(String),
    /// A gzip body that unpacks to this many bytes of spaces.
    GzipBomb(u64),
    /// The items of `data` in reverse order.
    Reversed,
    /// Every item of `data` twice.
    Doubled,
    /// 200 with exactly this body.
    Body(String),
    /// The right answer to a request for no other days than these: a plan that sees no farther.
    Clipped {
        first: NaiveDate,
        last: NaiveDate,
    },
    /// `data` with the text `from` replaced by `to`, wherever it stands.
    Replaced {
        /// JSON text as it stands in the answer.
        from: String,
        /// What stands there instead.
        to: String,
    },
}

impl Fault {
    /// A status without `Retry-After`.
    pub fn status(code: u16) -> Self {
        Fault::Status { code, retry_after: None }
    }

    /// 429 that asks to come back after `secs` seconds.
    pub fn too_many(secs: u64) -> Self {
        Fault::Status { code: 429, retry_after: Some(secs.to_string()) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Path and query.
    pub uri: String,
    /// Whether it carried `x-api-key`. The key itself is not kept.
    pub has_key: bool,
    /// Names of its headers, in lower case.
    pub headers: Vec<String>,
    pub faulted: bool,
}

#[derive(Debug)]
struct FaultRule {
    prefix: String,
    fault: Fault,
    /// How many requests it still meets; none for all until it is cleared.
    left: Option<u32>,
}

#[derive(Debug, Default)]
struct FaultState {
    rules: Vec<FaultRule>,
    log: Vec<LoggedRequest>,
    count: u64,
    altered: i64,
}

/// The handle. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<FaultState>>);

/// Spaces that the inner layer is to answer, to be packed by the compression between the layers.
#[derive(Clone, Copy)]
struct GzipBomb(u64);

impl Faults {
    /// No faults.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, requests whose path begins with `prefix` (all, where it is empty) meet `fault`, until it is cleared. Of several
    /// that fit, the one that was set last counts.
    pub fn set(&self, prefix: &str, fault: Fault) {
        self.state().rules.push(FaultRule { prefix: prefix.to_owned(), fault, left: None });
    }

    /// The next `times` requests whose path begins with `prefix` meet `fault`.
    pub fn times(&self, prefix: &str, times: u32, fault: Fault) {
        self.state().rules.push(FaultRule { prefix: prefix.to_owned(), fault, left: Some(times) });
    }

    /// Everything is well again.
    pub fn clear(&self) {
        self.state().rules.clear();
    }

    /// What was asked since the log was last taken.
    pub fn take_log(&self) -> Vec<LoggedRequest> {
        std::mem::take(&mut self.state().log)
    }

    /// What was asked, without taking it.
    pub fn log(&self) -> Vec<LoggedRequest> {
        self.state().log.clone()
    }

    /// Requests since the beginning.
    pub fn request_count(&self) -> u64 {
        self.state().count
    }

    /// Notes a request and says what goes wrong with it.
    fn meet(&self, request: &Request) -> Option<Fault> {
        let mut state = self.state();
        let (path, page) = (request.uri().path(), page_of(request));
        // A fault of one page leaves the others alone, and is not used up by them.
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

    /// The layer in front of everything.
    pub(super) fn outside(&self, router: Router) -> Router {
        let faults = self.clone();
        router.layer(middleware::from_fn(move |request: Request, next: Next| {
            let faults = faults.clone();
            async move {
                match faults.meet(&request) {
                    None => next.run(request).await,
                    Some(fault) => faults.answer(fault, request, next).await,
                }
            }
        }))
    }

    /// The layer behind compression.
    pub(super) fn inside(&self, router: Router) -> Router {
        router.layer(middleware::from_fn(|request: Request, next: Next| async move {
            match request.extensions().get::<GzipBomb>() {
                Some(GzipBomb(bytes)) => {
                    let spaces = Body::from_stream(ReaderStream::new(Spaces(*bytes)));
                    ([(header::CONTENT_TYPE, "application/json")], spaces).into_response()
                }
                None => next.run(request).await,
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
