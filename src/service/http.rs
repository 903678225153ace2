//! The HTTP routes, and the handling of a request.
//!
//! Steps that a cached response does not need are boxed futures. Otherwise each request would allocate and copy the memory of all steps.

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
use crate::response::{MetadataShape, ResponseParts, matches_tag, set_headers};
use crate::response_cache::{CacheKey, CachedResponse};
use crate::route::{ApiRoute, LEGACY_ROUTES, ROUTES};
use crate::{RESPONSE_TIMEOUT, Service, openapi};
use model::{Timestamp, http_date::format_http_date};

/// The header that contains the key.
pub const KEY_HEADER: &str = "x-api-key";
/// The size limit of a request body. No request needs one.
const MAX_REQUEST_BYTES: u64 = 16 * 1024;

struct DataRequest<'a> {
    route: &'static ApiRoute,
    shape: MetadataShape,
    id: Result<PathParam<String>, PathRejection>,
    head: &'a Head,
    begun: Instant,
    now: Timestamp,
}

struct BuiltResponse {
    response: Response,
    bytes: u64,
    admitted: Option<AdmittedKey>,
    is_charged: bool,
}

impl Service {
    /// Returns the routes of the base URL.
    pub fn router(&self) -> Router {
        self.layered(self.routes(ROUTES, MetadataShape::Full))
    }

    /// Returns the routes of the legacy base URL: all of the base URL, and weekly emission, whose `metadata` has only `queryDate`.
    pub fn legacy_router(&self) -> Router {
        self.layered(self.routes(ROUTES, MetadataShape::Full).merge(self.routes(LEGACY_ROUTES, MetadataShape::DateOnly)))
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

    /// Adds the other paths, the fallbacks, and the layers for all responses.
    fn layered(&self, router: Router) -> Router {
        let (service, unknown_path, wrong_method) = (self.clone(), self.clone(), self.clone());
        let other_paths = Router::new()
            .route("/openapi.json", get(|headers: HeaderMap| async move { openapi_response(&headers) }))
            .route("/-/healthy", get(|| async { "healthy\n" }))
            .route(
                "/metrics",
                get(move |peer: Option<Extension<Peer>>, headers: HeaderMap| {
                    service.clone().metrics(peer.map(|Extension(Peer(peer))| peer.ip()), headers)
                }),
            )
            .layer(CompressionLayer::new());
        router
            .merge(other_paths)
            .fallback(move |uri: Uri, headers: HeaderMap| async move {
                let refusal = Refusal::not_found(match is_legacy(uri.path()) {
                    true => "weekly emission is only served on the legacy base URL, which `serve --legacy-listen` enables",
                    false => "unknown path; /openapi.json lists all paths",
                });
                unknown_path.refuse(refusal, MetadataShape::Full, &uri, &headers).await
            })
            .method_not_allowed_fallback(move |uri: Uri, headers: HeaderMap| async move {
                let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed: use GET");
                let shape = if is_legacy(uri.path()) { MetadataShape::DateOnly } else { MetadataShape::Full };
                ([(header::ALLOW, "GET,HEAD")], wrong_method.refuse(refusal, shape, &uri, &headers).await)
            })
            .layer(SetResponseHeaderLayer::overriding(header::DATE, {
                let clock = self.0.options.clock.clone();
                move |_: &Response| HeaderValue::from_str(&format_http_date(clock.now())?).ok()
            }))
            .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
                Refusal::internal("the service failed to process this request").into_response()
            }))
    }

    /// Serves metrics to clients on the same machine, and to others with a valid key if keys are required.
    async fn metrics(self, peer: Option<IpAddr>, headers: HeaderMap) -> Response {
        if !peer.is_none_or(|peer| peer.is_loopback())
            && let Err(refusal) = self.admit(key_of(&headers), self.0.options.clock.now()).await
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
            let message = format!("the request body exceeds {MAX_REQUEST_BYTES} bytes; no request needs a body");
            return Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message).into_response();
        }
        let request = DataRequest { route, shape, id, head: &head, begun, now: self.0.options.clock.now() };
        let built = match tokio::time::timeout(RESPONSE_TIMEOUT, self.handle(request)).await {
            Ok(built) => built,
            Err(_) => rejected(Refusal::busy(), None),
        };
        self.0.metrics.record(&ServedRequest {
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

    async fn handle(&self, request: DataRequest<'_>) -> BuiltResponse {
        let (shape, now) = (request.shape, request.now);
        let admitted = match self.admit(key_of(&request.head.headers), now).await {
            Ok(admitted) => admitted,
            Err(refusal) => return rejected(refusal, None),
        };
        match self.handle_admitted(request, &admitted).await {
            Ok(mut built) => {
                let control = if admitted.hash.is_some() { "private, no-cache" } else { "no-cache" };
                built.response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
                built.admitted = Some(admitted);
                built
            }
            Err(refusal) => {
                let refusal = Box::pin(self.with_usage(refusal, &admitted, shape, now)).await;
                rejected(refusal, Some(admitted))
            }
        }
    }

    /// Rejects a request that no route handles. A path of the API requires a valid key, like every request, and the rejection has its
    /// credits. Other paths, such as `/favicon.ico`, do not.
    async fn refuse(self, refusal: Refusal, shape: MetadataShape, uri: &Uri, headers: &HeaderMap) -> Refusal {
        if !is_versioned(uri.path()) {
            return refusal;
        }
        let now = self.0.options.clock.now();
        match self.admit(key_of(headers), now).await {
            Ok(admitted) => match self.0.key_gate.check_rate(&admitted, now) {
                Ok(()) => self.with_usage(refusal, &admitted, shape, now).await,
                Err(limited) => self.with_usage(limited, &admitted, shape, now).await,
            },
            Err(invalid) => invalid,
        }
    }

    /// Adds the credits of a valid key to a rejection, as in every response.
    async fn with_usage(&self, refusal: Refusal, admitted: &AdmittedKey, shape: MetadataShape, now: Timestamp) -> Refusal {
        let (Some(hash), MetadataShape::Full) = (admitted.hash, shape) else { return refusal };
        let service = self.clone();
        let usage = blocking(move || Ok(service.0.key_gate.usage(&hash, now)?)).await;
        Refusal { usage: usage.ok().flatten(), ..refusal }
    }

    async fn admit(&self, key: Option<&HeaderValue>, now: Timestamp) -> Result<AdmittedKey, Refusal> {
        let hash = key.map(|key| hash_of(key.as_bytes()));
        if let Some(known) = self.0.key_gate.admit_cached(hash.as_ref()) {
            return known;
        }
        let service = self.clone();
        Box::pin(blocking(move || service.0.key_gate.admit(hash.as_ref(), now))).await
    }

    async fn handle_admitted(&self, request: DataRequest<'_>, admitted: &AdmittedKey) -> Result<BuiltResponse, Refusal> {
        let DataRequest { route, shape, id, head, begun, now } = request;
        self.0.key_gate.check_rate(admitted, now)?;
        let id = match id {
            _ if !route.path.ends_with("{id}") => None,
            Ok(PathParam(id)) => Some(id),
            Err(_) => return Err(Refusal::bad_request("the id in the path is not UTF-8")),
        };
        let query = DataQuery::read(route, id.as_deref(), head.uri.query().unwrap_or_default())?;
        let wants_packed = accepts_gzip(&head.headers);
        let cache_key = CacheKey { generation: self.generation().await?, day: now.date_naive(), query };
        let cached = match self.0.response_cache.find(cache_key, wants_packed) {
            Ok(cached) => cached,
            Err(cache_key) => {
                let service = self.clone();
                let make = move |query: &DataQuery| service.build_payload(query, now);
                Box::pin(self.0.response_cache.get(cache_key, wants_packed, make)).await?
            }
        };
        let CachedResponse { body, packed } = cached;
        let tag = format!("W/\"{}\"", body.tag);
        if matches_tag(&head.headers, &body.tag) {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            set_headers(&mut response, &tag, &body, now);
            return Ok(BuiltResponse { response, bytes: 0, admitted: None, is_charged: false });
        }
        if begun.elapsed() >= RESPONSE_TIMEOUT {
            // The client already got 503 and must not be charged.
            return Err(Refusal::busy());
        }
        let usage = self.0.key_gate.charge(admitted, now).await?;
        let beginning = shape.beginning(&body, usage, now);
        let bytes = u64::try_from(beginning.len() + body.tail.len()).unwrap_or(u64::MAX);
        let parts = match &packed {
            Some(packed) => packed.body(&beginning),
            None => [beginning.into(), body.tail.clone(), Bytes::new()],
        };
        let mut response = Response::new(Body::new(ResponseParts::of(parts)));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if packed.is_some() {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        set_headers(&mut response, &tag, &body, now);
        Ok(BuiltResponse { response, bytes, admitted: None, is_charged: usage.is_some() })
    }
}

/// Runs blocking code on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(run: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    match tokio::task::spawn_blocking(run).await {
        Ok(result) => result,
        Err(_) => Err(Refusal::internal("the service failed to process this request")),
    }
}

fn rejected(refusal: Refusal, admitted: Option<AdmittedKey>) -> BuiltResponse {
    let response = refusal.into_response();
    let bytes = response.body().size_hint().lower();
    BuiltResponse { response, bytes, admitted, is_charged: false }
}

/// Returns whether a path is one of the legacy base URL.
fn is_legacy(path: &str) -> bool {
    LEGACY_ROUTES.iter().any(|route| route.path == path)
}

/// Returns whether a path begins with a version, such as `/v5/`.
fn is_versioned(path: &str) -> bool {
    let version = path.strip_prefix("/v").and_then(|rest| rest.split('/').next());
    version.is_some_and(|version| !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()))
}

fn key_of(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(KEY_HEADER)
}

/// Serves the OpenAPI description with its `ETag`.
fn openapi_response(headers: &HeaderMap) -> Response {
    let (text, tag) = openapi::document();
    let quoted = format!("\"{tag}\"");
    let mut response = if matches_tag(headers, tag) {
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
