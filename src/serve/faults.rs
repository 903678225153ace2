//! A service that misbehaves on demand: the fake upstream of tests is the real service behind this layer.
//!
//! A [`Faults`] is a handle that the test keeps and the router shares. It says which answers go wrong, how, and how often, and keeps a
//! log of what was asked, without keys. A request that meets a fault costs no credit, unless the fault alters a real answer.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, ReadBuf},
    time::{Sleep, sleep},
};
use tokio_util::io::ReaderStream;

/// Requests kept in the log; later ones are only counted.
const MAX_LOG: usize = 100_000;
/// Largest answer that a fault can alter, bytes.
const MAX_ALTERED: usize = 256 << 20;

/// Time for the bytes before a cut to leave.
const FLUSH: Duration = Duration::from_millis(20);

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
        /// Bytes.
        bytes: usize,
        /// Pause.
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
    /// 200 with an empty body.
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
    #[must_use]
    pub fn status(code: u16) -> Self {
        Fault::Status { code, retry_after: None }
    }

    /// 429 that asks to come back after `secs` seconds.
    #[must_use]
    pub fn too_many(secs: u64) -> Self {
        Fault::Status { code: 429, retry_after: Some(secs.to_string()) }
    }
}

/// A request as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Path and query.
    pub uri: String,
    /// Whether it carried `x-api-key`. The key itself is not kept.
    pub has_key: bool,
    /// Names of its headers, in lower case.
    pub headers: Vec<String>,
    /// Whether a fault met it.
    pub faulted: bool,
}

#[derive(Debug)]
struct Order {
    prefix: String,
    fault: Fault,
    /// How many requests it still meets; none for all until it is cleared.
    left: Option<u32>,
}

#[derive(Debug, Default)]
struct State {
    orders: Vec<Order>,
    log: Vec<Seen>,
    count: u64,
    altered: i64,
}

/// The handle. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<State>>);

/// Spaces that the inner layer is to answer, to be packed by the compression between the layers.
#[derive(Clone, Copy)]
struct Bomb(u64);

impl Faults {
    /// No faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, requests whose path begins with `prefix` (all, where it is empty) meet `fault`, until it is cleared. Of several
    /// that fit, the one that was set last counts.
    pub fn set(&self, prefix: &str, fault: Fault) {
        self.state().orders.push(Order { prefix: prefix.to_owned(), fault, left: None });
    }

    /// The next `times` requests whose path begins with `prefix` meet `fault`.
    pub fn times(&self, prefix: &str, times: u32, fault: Fault) {
        self.state().orders.push(Order { prefix: prefix.to_owned(), fault, left: Some(times) });
    }

    /// Everything is well again.
    pub fn clear(&self) {
        self.state().orders.clear();
    }

    /// What was asked since the log was last taken.
    #[must_use]
    pub fn take_log(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().log)
    }

    /// What was asked, without taking it.
    #[must_use]
    pub fn log(&self) -> Vec<Seen> {
        self.state().log.clone()
    }

    /// Requests since the beginning.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.state().count
    }

    /// Notes a request and says what goes wrong with it.
    fn meet(&self, request: &Request) -> Option<Fault> {
        let mut state = self.state();
        let (path, page) = (request.uri().path(), page_of(request));
        // A fault of one page leaves the others alone, and is not used up by them.
        let fits = |order: &Order| {
            path.starts_with(&order.prefix)
                && order.left != Some(0)
                && match order.fault {
                    Fault::PageFails(bad) | Fault::PageMissing(bad) => page == bad,
                    _ => true,
                }
        };
        let fault = state.orders.iter_mut().rev().find(|order| fits(order)).map(|order| {
            order.left = order.left.map(|left| left - 1);
            order.fault.clone()
        });
        state.count += 1;
        if state.log.len() < MAX_LOG {
            let seen = Seen {
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
            match request.extensions().get::<Bomb>() {
                Some(Bomb(bytes)) => {
                    let spaces = Body::from_stream(ReaderStream::new(Spaces(*bytes)));
                    ([(header::CONTENT_TYPE, "application/json")], spaces).into_response()
                }
                None => next.run(request).await,
            }
        }))
    }

    async fn answer(&self, fault: Fault, mut request: Request, next: Next) -> Response {
        let page = page_of(&request);
        if let Fault::GzipBomb(bytes) = fault {
            request.extensions_mut().insert(Bomb(bytes));
            request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            return next.run(request).await;
        }
        if !matches!(fault, Fault::Slow(_)) {
            // Altered answers are altered as text.
            request.headers_mut().remove(header::ACCEPT_ENCODING);
        }
        match fault {
            Fault::Status { code, retry_after } => {
                let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let refusal = super::Refusal { status, message: "a fault that a test asked for".into(), retry_after: None };
                let mut response = refusal.into_response();
                if let Some(wait) = retry_after.and_then(|wait| HeaderValue::from_str(&wait).ok()) {
                    response.headers_mut().insert(header::RETRY_AFTER, wait);
                }
                response
            }
            Fault::Slow(delay) => {
                sleep(delay).await;
                next.run(request).await
            }
            Fault::Drip { bytes, every } => {
                let (status, whole) = taken(next.run(request).await).await;
                streamed(
                    status,
                    &whole,
                    Paced { left: whole.clone(), step: bytes.max(1), every, pause: None, after: After::Nothing },
                )
            }
            Fault::Cut(bytes) => {
                let (status, whole) = taken(next.run(request).await).await;
                let left = whole.slice(..bytes.min(whole.len()));
                let step = left.len().max(1);
                streamed(status, &whole, Paced { left, step, every: Duration::ZERO, pause: None, after: After::Break })
            }
            Fault::Hang => {
                let (status, whole) = taken(next.run(request).await).await;
                streamed(
                    status,
                    &whole,
                    Paced { left: Bytes::new(), step: 1, every: Duration::ZERO, pause: None, after: After::Hang },
                )
            }
            Fault::Garbage => plain("application/json", &b"\x00\xff{\"metadata\":{\"queryDate\": 20"[..]),
            Fault::Html => plain(
                "text/html",
                &b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>"[..],
            ),
            Fault::EmptyBody => plain("application/json", Bytes::new()),
            Fault::Body(body) => plain("application/json", body),
            Fault::StatusFalse => plain(
                "application/json",
                &br#"{"metadata":{},"status":false,"errorMessage":"something went wrong","data":[]}"#[..],
            ),
            Fault::NotModified => StatusCode::NOT_MODIFIED.into_response(),
            Fault::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
            Fault::PageFails(_) => super::Refusal::internal("a fault that a test asked for").into_response(),
            Fault::Emptied => {
                altered(next.run(request).await, |envelope| {
                    emptied(envelope.get_mut("data"));
                    if let Some(metadata) = envelope.get_mut("metadata").and_then(Value::as_object_mut) {
                        for name in ["total", "totalPages"] {
                            if let Some(number) = metadata.get_mut(name) {
                                *number = Value::from(0);
                            }
                        }
                    }
                })
                .await
            }
            Fault::PageMissing(_) => altered(next.run(request).await, |envelope| emptied(envelope.get_mut("data"))).await,
            Fault::TotalMoves => {
                let moved = if page > 1 { self.next_total() } else { 0 };
                altered(next.run(request).await, |envelope| {
                    if let Some(total) = envelope.pointer_mut("/metadata/total") {
                        *total = Value::from(total.as_i64().unwrap_or(0) + moved);
                    }
                })
                .await
            }
            Fault::Bare => {
                altered(next.run(request).await, |envelope| {
                    let data = envelope.get_mut("data").map(Value::take).unwrap_or_default();
                    *envelope = data;
                })
                .await
            }
            Fault::Reversed => {
                altered(next.run(request).await, |envelope| {
                    if let Some(items) = envelope.get_mut("data").and_then(Value::as_array_mut) {
                        items.reverse();
                    }
                })
                .await
            }
            Fault::Doubled => {
                altered(next.run(request).await, |envelope| {
                    if let Some(items) = envelope.get_mut("data").and_then(Value::as_array_mut) {
                        *items = items.iter().flat_map(|item| [item.clone(), item.clone()]).collect();
                    }
                })
                .await
            }
            Fault::Replaced { from, to } => {
                let (status, whole) = taken(next.run(request).await).await;
                let text = String::from_utf8_lossy(&whole).replace(&from, &to);
                let mut response = plain("application/json", text);
                *response.status_mut() = status;
                response
            }
            Fault::GzipBomb(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

fn page_of(request: &Request) -> u64 {
    url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "page")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(1)
}

fn plain(content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Takes everything out of `data` that is a record.
fn emptied(data: Option<&mut Value>) {
    match data {
        Some(Value::Array(items)) => items.clear(),
        Some(Value::Object(fields)) => {
            for field in fields.values_mut() {
                if let Value::Array(items) = field {
                    items.clear();
                }
            }
        }
        _ => {}
    }
}

async fn taken(response: Response) -> (StatusCode, Bytes) {
    let status = response.status();
    (status, to_bytes(response.into_body(), MAX_ALTERED).await.unwrap_or_default())
}

async fn altered(response: Response, alter: impl FnOnce(&mut Value)) -> Response {
    let (status, whole) = taken(response).await;
    let Ok(mut envelope) = serde_json::from_slice::<Value>(&whole) else {
        return super::Refusal::internal("the answer to be altered is not JSON").into_response();
    };
    alter(&mut envelope);
    (status, [(header::CONTENT_TYPE, "application/json")], envelope.to_string()).into_response()
}

/// Promises the length of the whole answer, whatever then comes.
fn streamed(status: StatusCode, whole: &Bytes, paced: Paced) -> Response {
    let mut response = plain("application/json", Body::from_stream(ReaderStream::new(paced)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    response
}

/// What comes after the bytes.
enum After {
    Nothing,
    Break,
    Hang,
}

/// Bytes at a pace.
struct Paced {
    left: Bytes,
    step: usize,
    every: Duration,
    pause: Option<Pin<Box<Sleep>>>,
    after: After,
}

impl AsyncRead for Paced {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left.is_empty() {
            return match self.after {
                After::Nothing => Poll::Ready(Ok(())),
                After::Break => {
                    // What was written so far leaves only while the body is waited for.
                    let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(FLUSH)));
                    ready!(pause.as_mut().poll(context));
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, "cut by a fault")))
                }
                // Nobody wakes this up; the client's time limit, or the end of the connection, does.
                After::Hang => Poll::Pending,
            };
        }
        if !self.every.is_zero() {
            let every = self.every;
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(every)));
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let size = self.step.min(self.left.len()).min(buffer.remaining());
        let part = self.left.split_to(size);
        buffer.put_slice(&part);
        Poll::Ready(Ok(()))
    }
}

/// So many spaces.
struct Spaces(u64);

impl AsyncRead for Spaces {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let size = usize::try_from(self.0).unwrap_or(usize::MAX).min(buffer.remaining());
        buffer.initialize_unfilled_to(size).fill(b' ');
        buffer.advance(size);
        self.0 -= u64::try_from(size).unwrap_or(self.0);
        Poll::Ready(Ok(()))
    }
}
