//! The path of a request, from its head to an answer.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use axum::{
    Router,
    body::{Body, Bytes, HttpBody},
    extract::{Extension, Path as PathParam, Request, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts as Head},
    response::{IntoResponse, Response},
    routing::get,
};
use http_body::{Frame, SizeHint};
use tower_http::{catch_panic::CatchPanicLayer, compression::CompressionLayer};

use super::{
    ANSWER_TIMEOUT, Refusal, Service,
    answer::Answer,
    ask::{Ask, LEGACY_ROUTES, ROUTES, Route},
    faults,
    gate::{Pass, hash_of},
    kept::{Question, Ready},
    listener::Peer,
    meter::Served,
    openapi,
    pack::accepts_gzip,
    whole_seconds,
};
use crate::{
    metrics,
    store::catalog::Usage,
    supply::Timestamp,
    wire::{Credit, Metadata},
};

/// Header that carries the key.
pub const KEY_HEADER: &str = "x-api-key";
/// Largest body of a request: there is no use for any.
const MAX_REQUEST_BYTES: u64 = 16 * 1024;
/// Tags of one `If-None-Match` that are looked at.
const MAX_TAGS: usize = 32;

/// What is around a payload.
#[derive(Clone, Copy, Debug)]
enum Envelope {
    /// `metadata` with all that is known.
    Full,
    /// `metadata` with `queryDate` alone.
    DateOnly,
}

/// An answer on its way out.
struct Sent {
    response: Response,
    bytes: u64,
    pass: Option<Pass>,
    is_charged: bool,
}

impl Service {
    /// Everything of the base address.
    pub fn router(&self) -> Router {
        self.layered(self.routes(ROUTES, Envelope::Full))
    }

    /// Everything of the older base address: all of the base address, and weekly emission, whose `metadata` is `queryDate` alone.
    pub fn legacy_router(&self) -> Router {
        self.layered(self.routes(ROUTES, Envelope::Full).merge(self.routes(LEGACY_ROUTES, Envelope::DateOnly)))
    }

    /// Both, on one address and behind `faults`, for tests.
    #[doc(hidden)]
    pub fn faulty_router(&self, faults: &faults::Faults) -> Router {
        let routes = self.routes(ROUTES, Envelope::Full).merge(self.routes(LEGACY_ROUTES, Envelope::DateOnly));
        // Data is packed where it is answered; what a fault answers in its place is packed here.
        faults.outside(self.layered(faults.inside(routes).layer(CompressionLayer::new())))
    }

    fn routes(&self, routes: &'static [Route], envelope: Envelope) -> Router {
        routes.iter().fold(Router::new(), |router, route| {
            let service = self.clone();
            router.route(
                route.path,
                get(move |id: Result<PathParam<String>, PathRejection>, peer: Option<Extension<Peer>>, request: Request| {
                    service.clone().respond(route, envelope, id, peer.map(|Extension(Peer(peer))| peer), request)
                }),
            )
        })
    }

    /// What every answer passes.
    fn layered(&self, router: Router) -> Router {
        let service = self.clone();
        let told = Router::new()
            .route("/openapi.json", get(|headers: HeaderMap| async move { document(&headers) }))
            .route("/-/healthy", get(|| async { "healthy\n" }))
            .route(
                "/metrics",
                get(move |peer: Option<Extension<Peer>>, headers: HeaderMap| {
                    service.clone().metrics(peer.map(|Extension(Peer(peer))| peer.ip()), headers)
                }),
            )
            .layer(CompressionLayer::new());
        router
            .merge(told)
            .fallback(|uri: Uri| async move {
                Refusal::unknown(match LEGACY_ROUTES.iter().any(|route| route.path == uri.path()) {
                    true => "weekly emission is on the older base address, which `serve --legacy-listen` opens",
                    false => "there is no such path; /openapi.json has them all",
                })
            })
            .method_not_allowed_fallback(|| async {
                let refusal = Refusal {
                    status: StatusCode::METHOD_NOT_ALLOWED,
                    message: "only GET is answered here".into(),
                    retry_after: None,
                };
                ([(header::ALLOW, "GET,HEAD")], refusal)
            })
            .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
                Refusal::internal("the service failed on this request").into_response()
            }))
    }

    /// Counts are for whoever runs the service: on its own machine, or with a key where keys are asked for.
    async fn metrics(self, peer: Option<IpAddr>, headers: HeaderMap) -> Response {
        if !peer.is_none_or(|peer| peer.is_loopback())
            && let Err(refusal) = self.enter(key_of(&headers), self.0.options.clock.now()).await
        {
            return refusal.into_response();
        }
        let accept = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
        let (kind, page) = metrics::negotiated(accept, self.0.meter.text());
        ([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], page).into_response()
    }

    async fn respond(
        self,
        route: &'static Route,
        envelope: Envelope,
        id: Result<PathParam<String>, PathRejection>,
        peer: Option<SocketAddr>,
        request: Request,
    ) -> Response {
        let begun = Instant::now();
        let (request, body) = request.into_parts();
        if body.size_hint().lower() > MAX_REQUEST_BYTES {
            let message = format!("a request has at most {MAX_REQUEST_BYTES} bytes of body, and needs none");
            return Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, message, retry_after: None }.into_response();
        }
        let answering = self.answer(route, envelope, id, &request, begun);
        let sent = match tokio::time::timeout(ANSWER_TIMEOUT, answering).await {
            Ok(sent) => sent,
            Err(_) => refused(Refusal::busy(), None),
        };
        self.0.meter.note(&Served {
            method: request.method.as_str(),
            path: request.uri.path(),
            route: route.path,
            status: sent.response.status().as_u16(),
            bytes: if request.method == Method::HEAD { 0 } else { sent.bytes },
            took: begun.elapsed(),
            peer,
            key: sent.pass.as_ref().and_then(|pass| pass.name.as_deref()),
            is_charged: sent.is_charged,
        });
        sent.response
    }

    /// The path of a request.
    async fn answer(
        &self,
        route: &'static Route,
        envelope: Envelope,
        id: Result<PathParam<String>, PathRejection>,
        request: &Head,
        begun: Instant,
    ) -> Sent {
        let now = self.0.options.clock.now();
        let pass = match self.enter(key_of(&request.headers), now).await {
            Ok(pass) => pass,
            Err(refusal) => return refused(refusal, None),
        };
        match self.told(route, envelope, id, request, &pass, now, begun).await {
            Ok(mut sent) => {
                let control = if pass.hash.is_some() { "private, no-cache" } else { "no-cache" };
                sent.response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
                sent.pass = Some(pass);
                sent
            }
            Err(refusal) => refused(refusal, Some(pass)),
        }
    }

    /// Lets a key in.
    async fn enter(&self, key: Option<&HeaderValue>, now: Timestamp) -> Result<Pass, Refusal> {
        let hash = key.map(|key| hash_of(key.as_bytes()));
        if let Some(known) = self.0.gate.wave(hash.as_ref()) {
            return known;
        }
        let service = self.clone();
        blocking(move || service.0.gate.admit(hash.as_ref(), now)).await
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of one request")]
    async fn told(
        &self,
        route: &'static Route,
        envelope: Envelope,
        id: Result<PathParam<String>, PathRejection>,
        request: &Head,
        pass: &Pass,
        now: Timestamp,
        begun: Instant,
    ) -> Result<Sent, Refusal> {
        self.0.gate.pace(pass, now)?;
        let id = match id {
            _ if !route.path.ends_with("{id}") => None,
            Ok(PathParam(id)) => Some(id),
            Err(_) => return Err(Refusal::bad("the id in the path is not UTF-8")),
        };
        let ask = Ask::read(route, id.as_deref(), request.uri.query().unwrap_or_default())?;
        let wants_packed = accepts_gzip(&request.headers);
        let question = Question { generation: self.generation().await?, day: now.date_naive(), ask };
        let ready = match self.0.answers.find(question, wants_packed) {
            Ok(ready) => ready,
            Err(question) => {
                let service = self.clone();
                self.0.answers.get(question, wants_packed, move |ask| service.make(ask, now)).await?
            }
        };
        let Ready { answer, packed } = ready;
        let tag = format!("W/\"{}\"", answer.tag);
        if holds(&request.headers, &answer.tag) {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            mark(&mut response, &tag, &answer, now);
            return Ok(Sent { response, bytes: 0, pass: None, is_charged: false });
        }
        if begun.elapsed() >= ANSWER_TIMEOUT {
            // Whoever asked was told so already, and must not pay for it.
            return Err(Refusal::busy());
        }
        let usage = self.0.gate.charge(pass, now).await?;
        let head = envelope.head(&answer, usage, now);
        let bytes = u64::try_from(head.len() + answer.tail.len()).unwrap_or(u64::MAX);
        let parts = match &packed {
            Some(packed) => packed.body(&head),
            None => [head.into(), answer.tail.clone(), Bytes::new()],
        };
        let mut response = Response::new(Body::new(Parts::of(parts)));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if packed.is_some() {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        mark(&mut response, &tag, &answer, now);
        Ok(Sent { response, bytes, pass: None, is_charged: usage.is_some() })
    }
}

/// Runs what waits for a disk where nothing else waits with it.
pub(super) async fn blocking<T: Send + 'static>(run: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(run).await {
        Ok(result) => result,
        Err(_) => Err(Refusal::internal("the service failed on this request")),
    }
}

fn refused(refusal: Refusal, pass: Option<Pass>) -> Sent {
    let response = refusal.into_response();
    let bytes = response.body().size_hint().lower();
    Sent { response, bytes, pass, is_charged: false }
}

fn key_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(KEY_HEADER)
}

/// The headers that both an answer and its 304 have.
fn mark(response: &mut Response, tag: &str, answer: &Answer, now: Timestamp) {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(read_at) = answer.read_at {
        headers.insert(header::AGE, HeaderValue::from((now - read_at).num_seconds().max(0)));
    }
}

/// Whether the request names the tag of an answer that it has. Tags are compared weakly, as RFC 9110 has it for `If-None-Match`.
fn holds(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .take(MAX_TAGS)
        .map(str::trim)
        .any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given).trim_matches('"') == tag)
}

/// The description of the service, with its own tag.
fn document(headers: &HeaderMap) -> Response {
    let (text, tag) = openapi::document();
    let quoted = format!("\"{tag}\"");
    let mut response = if holds(headers, tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], Bytes::from_static(text.as_bytes())).into_response()
    };
    if let Ok(tag) = HeaderValue::from_str(&quoted) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

impl Envelope {
    /// The body up to the payload.
    fn head(self, answer: &Answer, usage: Option<Usage>, now: Timestamp) -> Vec<u8> {
        // Where somebody else told it, the time is when they were asked.
        let told_at = answer.read_at.unwrap_or(now);
        let mut metadata = Metadata { query_date: whole_seconds(told_at).into(), ..Default::default() };
        if matches!(self, Envelope::Full) {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX).into();
            if let Some(usage) = usage {
                metadata.credit = Credit {
                    used: number(usage.used),
                    limit: number(usage.limit),
                    reset_at: usage.reset_at.into(),
                    ..Default::default()
                }
                .into();
            }
            if let Some(paging) = answer.paging {
                metadata.page = number(paging.page);
                metadata.page_size = number(paging.page_size);
                metadata.total_pages = number(paging.total_pages);
                metadata.total = number(paging.total);
            }
        }
        let mut head = b"{\"metadata\":".to_vec();
        if serde_json::to_writer(&mut head, &metadata).is_err() {
            head = b"{\"metadata\":{}".to_vec();
        }
        head
    }
}

/// A body of parts that are shared, not copied.
struct Parts {
    parts: [Bytes; 3],
    next: usize,
}

impl Parts {
    fn of(parts: [Bytes; 3]) -> Self {
        Self { parts, next: 0 }
    }

    fn left(&self) -> &[Bytes] {
        self.parts.get(self.next..).unwrap_or_default()
    }
}

impl HttpBody for Parts {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.left().iter().position(|part| !part.is_empty()).map(|skipped| self.next + skipped);
        let part = next.and_then(|next| self.parts.get_mut(next)).map(std::mem::take);
        self.next = next.map_or(usize::MAX, |next| next + 1);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left().iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left().iter().map(|part| u64::try_from(part.len()).unwrap_or(u64::MAX)).sum())
    }
}
