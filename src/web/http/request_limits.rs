//! The limits of what requests cost: one heavy request and a few light ones run at a time, few large responses are in memory, and each
//! request has a time limit.
//!
//! Heavy requests are feeds, digests, previews, long lists of the API, and the alerts of the API of Alertmanager, which has no pages.
//! They wait in a queue, in the order of their arrival, and a full queue rejects them. Light requests never wait for heavy ones.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{Uri, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::Sleep;

use super::api::alertmanager::ALERTS as ALERTMANAGER_ALERTS;
use super::api::operations::ROOT;
use super::error::WebError;
use super::parameters::{LIMIT, RULES};
use super::{HttpDeps, feeds};
use daemon::playground;

/// The time limit of a request, except for trials in the playground.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of heavy requests that read or wait. Further ones are rejected.
pub(super) const MAX_HEAVY_REQUESTS: usize = 32;
/// The number of light requests that are handled at once. Two of them read at a time, and each keeps what it has read.
const MAX_LIGHT_REQUESTS: usize = 8;
/// The number of heavy responses in memory: one that is built, and others that are being sent.
pub(super) const MAX_HEAVY_RESPONSES: usize = 4;
/// The time in which a client must read a heavy response.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// The size of a part of a heavy response that is passed to the connection at once.
const PART_BYTES: usize = 64 * 1024;
/// The number of rows of an API list up to which it is light.
const MAX_LIGHT_ROWS: u32 = 200;

/// The limits of requests that run at once. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RequestLimits(Arc<RequestSlots>);

#[derive(Debug)]
struct RequestSlots {
    heavy_requests: Semaphore,
    responses: Arc<Semaphore>,
    reads: Semaphore,
    light_requests: Semaphore,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self(Arc::new(RequestSlots {
            heavy_requests: Semaphore::new(MAX_HEAVY_REQUESTS),
            responses: Arc::new(Semaphore::new(MAX_HEAVY_RESPONSES)),
            reads: Semaphore::new(1),
            light_requests: Semaphore::new(MAX_LIGHT_REQUESTS),
        }))
    }
}

impl RequestLimits {
    /// Waits for a slot of a light request. `None` if the server stops.
    pub(super) async fn light_slot(&self) -> Option<SemaphorePermit<'_>> {
        self.0.light_requests.acquire().await.ok()
    }
}

/// Marks a heavy request, as an extension.
#[derive(Clone, Copy, Debug)]
struct HeavyRequest;

/// The state of a request that can be heavy. A heavy one reads the database on a connection of its own.
pub(super) struct ReadDeps(pub HttpDeps);

impl FromRequestParts<HttpDeps> for ReadDeps {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, deps: &HttpDeps) -> Result<Self, Infallible> {
        let mut deps = deps.clone();
        if parts.extensions.get::<HeavyRequest>().is_some() {
            deps.app.store = deps.app.store.for_heavy_pages();
        }
        Ok(Self(deps))
    }
}

/// Returns `true` if a request may take long or return much.
fn is_heavy(uri: &Uri) -> bool {
    let (path, is_feed) = (uri.path(), |name: &str| uri.path().ends_with(name));
    if is_feed(feeds::CALENDAR) || is_feed(feeds::ATOM) || path.ends_with("/preview") || path.starts_with("/digests") {
        return true;
    }
    if path.starts_with(ALERTMANAGER_ALERTS) {
        return true;
    }
    let Some(list) = path.strip_prefix(ROOT) else { return false };
    let query = || url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let is_long = |(name, value): (_, std::borrow::Cow<'_, str>)| {
        name == LIMIT.name && value.parse::<u32>().is_ok_and(|limit| limit > MAX_LIGHT_ROWS)
    };
    // The database cannot evaluate rules, so many rows are read.
    let has_rules = || list == "upcoming" && query().any(|(name, _)| name == RULES.name);
    list.starts_with("tokens/") || query().any(is_long) || has_rules()
}

/// Returns `true` if a request reads nothing from the database, so that probes get a response under any load. Live events take a slot for
/// each read themselves.
fn is_probe(path: &str) -> bool {
    path.starts_with("/-/") || path == "/metrics" || path == "/events"
}

/// Runs one heavy request and a few light ones at a time. The response of a heavy request keeps a slot until it is sent.
pub(super) async fn limit_requests(State(deps): State<HttpDeps>, mut request: Request, next: Next) -> Response {
    let slots = &deps.limits.0;
    if is_probe(request.uri().path()) {
        return next.run(request).await;
    }
    if !is_heavy(request.uri()) {
        let _light = deps.limits.light_slot().await;
        return next.run(request).await;
    }
    let Ok(_request) = slots.heavy_requests.try_acquire() else {
        return WebError::busy("too many other feeds and long lists are being read").into_response();
    };
    // The semaphores are never closed.
    let (Ok(response_slot), Ok(_read)) = (slots.responses.clone().acquire_owned().await, slots.reads.acquire().await) else {
        return WebError::busy("the server is stopping").into_response();
    };
    request.extensions_mut().insert(HeavyRequest);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(ResponseSlot(Arc::new(response_slot)));
    response
}

/// The slot of a heavy response, as an extension of it.
#[derive(Clone)]
struct ResponseSlot(#[expect(dead_code, reason = "only its drop matters")] Arc<OwnedSemaphorePermit>);

/// Keeps the slot of a heavy response until the response is sent. Must be outside of all layers that replace the body, because they read
/// it before.
pub(super) async fn keep_slot(mut response: Response) -> Response {
    match response.extensions_mut().remove::<ResponseSlot>() {
        Some(slot) => response.map(|body| Body::new(HeavyBody::new(body, slot))),
        None => response,
    }
}

/// Ends a trial after its time limit.
pub(super) async fn limit_trial(request: Request, next: Next) -> Response {
    limit_time_to(playground::REQUEST_TIMEOUT, next.run(request)).await
}

/// Ends a request after its time limit, which also ends its reads of the database.
pub(super) async fn limit_time(request: Request, next: Next) -> Response {
    limit_time_to(REQUEST_TIMEOUT, next.run(request)).await
}

async fn limit_time_to(limit: Duration, response: impl Future<Output = Response>) -> Response {
    tokio::time::timeout(limit, response)
        .await
        .unwrap_or_else(|_| WebError::busy(format!("the response took longer than {} s", limit.as_secs())).into_response())
}

/// A response body that keeps a slot until it is sent, or until the client was too slow.
struct HeavyBody {
    body: Body,
    /// The rest of the current part. Passed on in small parts, because the connection would otherwise copy a large one, and the slot
    /// would be free before the client has read it.
    rest: Bytes,
    until: Pin<Box<Sleep>>,
    _slot: ResponseSlot,
}

impl HeavyBody {
    fn new(body: Body, slot: ResponseSlot) -> Self {
        Self { body, rest: Bytes::new(), until: Box::pin(tokio::time::sleep(SEND_TIMEOUT)), _slot: slot }
    }

    fn next_part(&mut self) -> Option<Frame<Bytes>> {
        let part = self.rest.split_to(self.rest.len().min(PART_BYTES));
        (!part.is_empty()).then(|| Frame::data(part))
    }
}

impl HttpBody for HeavyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.until.as_mut().poll(context).is_ready() {
            let slow = format!("the client did not read the response within {} s", SEND_TIMEOUT.as_secs());
            return Poll::Ready(Some(Err(axum::Error::new(slow))));
        }
        if let Some(part) = self.next_part() {
            return Poll::Ready(Some(Ok(part)));
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    self.next_part().map(Ok)
                }
                Err(trailers) => Some(Ok(trailers)),
            }),
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        match body.exact() {
            Some(exact) => SizeHint::with_exact(exact + rest),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
