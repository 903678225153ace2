//! The path of a request, from its head to an answer.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::{
    Router,
    body::{Body, Bytes, HttpBody as _},
    extract::{Extension, Path as PathParam, Request, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts as Head},
    response::{IntoResponse, Response},
    routing::get,
};
use tower_http::{catch_panic::CatchPanicLayer, compression::CompressionLayer, set_header::SetResponseHeaderLayer};

use crate::gzip::accepts_gzip;
use crate::key_gate::{AdmittedKey, hash_of};
use crate::listener::Peer;
use crate::metrics::ServedRequest;
use crate::query::DataQuery;
use crate::refusal::Refusal;
use crate::response::{MetadataShape, ResponseParts, holds, mark};
use crate::response_cache::{CacheKey, CachedAnswer};
use crate::route::{ApiRoute, LEGACY_ROUTES, ROUTES};
use crate::{ANSWER_TIMEOUT, Service, openapi};
use model::{Timestamp, http_date::format_http_date};

/// Header that carries the key.
pub const KEY_HEADER: &str = "x-api-key";
/// Largest body of a request: there is no use for any.
const MAX_REQUEST_BYTES: u64 = 16 * 1024;

/// A request for data, with what is known of it before its key is looked at.
struct DataRequest<'a> {
    route: &'static ApiRoute,
    shape: MetadataShape,
    id: Result<PathParam<String>, PathRejection>,
    head: &'a Head,
    begun: Instant,
    now: Timestamp,
}

/// An answer on its way out.
struct BuiltResponse {
    response: Response,
    bytes: u64,
    admitted: Option<AdmittedKey>,
    is_charged: bool,
}

impl Service {
    /// Everything of the base address.
    pub fn router(&self) -> Router {
        self.layered(self.routes(ROUTES, MetadataShape::Full))
    }

    /// Everything of the older base address: all of the base address, and weekly emission, whose `metadata` is `queryDate` alone.
    pub fn legacy_router(&self) -> Router {
        self.layered(self.routes(ROUTES, MetadataShape::Full).merge(self.routes(LEGACY_ROUTES, MetadataShape::DateOnly)))
    }

    /// Both, on one address and behind `faults`, for tests.
    #[cfg(any(test, feature = "faults"))]
    pub fn faulty_router(&self, faults: &crate::faults::Faults) -> Router {
        let routes = self.routes(ROUTES, MetadataShape::Full).merge(self.routes(LEGACY_ROUTES, MetadataShape::DateOnly));
        // Data is packed where it is answered; what a fault answers in its place is packed here.
        faults.outside(self.layered(faults.inside(routes).layer(CompressionLayer::new())))
    }

    fn routes(&self, routes: &'static [ApiRoute], shape: MetadataShape) -> Router {
        routes.iter().fold(Router::new(), |router, route| {
            let service = self.clone();
            router.route(
                route.path,
                get(move |id: Result<PathParam<String>, PathRejection>, peer: Option<Extension<Peer>>, request: Request| {
                    service.clone().respond(route, shape, id, peer.map(|Extension(Peer(peer))| peer), request)
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
                    usage: None,
                };
                ([(header::ALLOW, "GET,HEAD")], refusal)
            })
            .layer(SetResponseHeaderLayer::overriding(header::DATE, {
                let clock = self.0.options.clock.clone();
                move |_: &Response| HeaderValue::from_str(&format_http_date(clock.now())?).ok()
            }))
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
        let (kind, page) = crate::exposition::negotiated(accept, self.0.metrics.text());
        ([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], page).into_response()
    }

    async fn respond(
        self,
        route: &'static ApiRoute,
        shape: MetadataShape,
        id: Result<PathParam<String>, PathRejection>,
        peer: Option<SocketAddr>,
        request: Request,
    ) -> Response {
        let begun = Instant::now();
        let (head, body) = request.into_parts();
        if body.size_hint().lower() > MAX_REQUEST_BYTES {
            let message = format!("a request has at most {MAX_REQUEST_BYTES} bytes of body, and needs none");
            return Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, message, retry_after: None, usage: None }.into_response();
        }
        let request = DataRequest { route, shape, id, head: &head, begun, now: self.0.options.clock.now() };
        let built = match tokio::time::timeout(ANSWER_TIMEOUT, self.answer(request)).await {
            Ok(built) => built,
            Err(_) => refused(Refusal::busy(), None),
        };
        self.0.metrics.note(&ServedRequest {
            method: head.method.as_str(),
            path: head.uri.path(),
            route: route.path,
            status: built.response.status().as_u16(),
            bytes: if head.method == Method::HEAD { 0 } else { built.bytes },
            took: begun.elapsed(),
            peer,
            key: built.admitted.as_ref().and_then(|admitted| admitted.name.as_deref()),
            is_charged: built.is_charged,
        });
        built.response
    }

    /// The path of a request: its key, then its answer.
    async fn answer(&self, request: DataRequest<'_>) -> BuiltResponse {
        let (shape, now) = (request.shape, request.now);
        let admitted = match self.enter(key_of(&request.head.headers), now).await {
            Ok(admitted) => admitted,
            Err(refusal) => return refused(refusal, None),
        };
        match self.answer_admitted(request, &admitted).await {
            Ok(mut built) => {
                let control = if admitted.hash.is_some() { "private, no-cache" } else { "no-cache" };
                built.response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
                built.admitted = Some(admitted);
                built
            }
            Err(refusal) => {
                let refusal = self.with_usage(refusal, &admitted, shape, now).await;
                refused(refusal, Some(admitted))
            }
        }
    }

    /// What is refused to a good key tells how its credits stand, as every answer does.
    async fn with_usage(&self, refusal: Refusal, admitted: &AdmittedKey, shape: MetadataShape, now: Timestamp) -> Refusal {
        let (Some(hash), MetadataShape::Full) = (admitted.hash, shape) else { return refusal };
        let service = self.clone();
        let usage = blocking(move || Ok(service.0.key_gate.usage(&hash, now)?)).await;
        Refusal { usage: usage.ok().flatten(), ..refusal }
    }

    /// Lets a key in.
    async fn enter(&self, key: Option<&HeaderValue>, now: Timestamp) -> Result<AdmittedKey, Refusal> {
        let hash = key.map(|key| hash_of(key.as_bytes()));
        if let Some(known) = self.0.key_gate.wave(hash.as_ref()) {
            return known;
        }
        let service = self.clone();
        blocking(move || service.0.key_gate.admit(hash.as_ref(), now)).await
    }

    async fn answer_admitted(&self, request: DataRequest<'_>, admitted: &AdmittedKey) -> Result<BuiltResponse, Refusal> {
        let DataRequest { route, shape, id, head, begun, now } = request;
        self.0.key_gate.pace(admitted, now)?;
        let id = match id {
            _ if !route.path.ends_with("{id}") => None,
            Ok(PathParam(id)) => Some(id),
            Err(_) => return Err(Refusal::bad("the id in the path is not UTF-8")),
        };
        let query = DataQuery::read(route, id.as_deref(), head.uri.query().unwrap_or_default())?;
        let wants_packed = accepts_gzip(&head.headers);
        let cache_key = CacheKey { generation: self.generation().await?, day: now.date_naive(), query };
        let cached = match self.0.response_cache.find(cache_key, wants_packed) {
            Ok(cached) => cached,
            Err(cache_key) => {
                let service = self.clone();
                self.0.response_cache.get(cache_key, wants_packed, move |query| service.make(query, now)).await?
            }
        };
        let CachedAnswer { answer, packed } = cached;
        let tag = format!("W/\"{}\"", answer.tag);
        if holds(&head.headers, &answer.tag) {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            mark(&mut response, &tag, &answer, now);
            return Ok(BuiltResponse { response, bytes: 0, admitted: None, is_charged: false });
        }
        if begun.elapsed() >= ANSWER_TIMEOUT {
            // Whoever asked was told so already, and must not pay for it.
            return Err(Refusal::busy());
        }
        let usage = self.0.key_gate.charge(admitted, now).await?;
        let opening = shape.opening(&answer, usage, now);
        let bytes = u64::try_from(opening.len() + answer.tail.len()).unwrap_or(u64::MAX);
        let parts = match &packed {
            Some(packed) => packed.body(&opening),
            None => [opening.into(), answer.tail.clone(), Bytes::new()],
        };
        let mut response = Response::new(Body::new(ResponseParts::of(parts)));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if packed.is_some() {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        mark(&mut response, &tag, &answer, now);
        Ok(BuiltResponse { response, bytes, admitted: None, is_charged: usage.is_some() })
    }
}

/// Runs what waits for a disk where nothing else waits with it.
pub(crate) async fn blocking<T: Send + 'static>(run: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(run).await {
        Ok(result) => result,
        Err(_) => Err(Refusal::internal("the service failed on this request")),
    }
}

fn refused(refusal: Refusal, admitted: Option<AdmittedKey>) -> BuiltResponse {
    let response = refusal.into_response();
    let bytes = response.body().size_hint().lower();
    BuiltResponse { response, bytes, admitted, is_charged: false }
}

fn key_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(KEY_HEADER)
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
