//! Requests of web pages with another origin (CORS), which `[http] cors_origins` allows for the API, feeds, and live events.
//!
//! A browser never sends the session cookie with such a request, because it is `SameSite=Strict` and no response allows credentials. A page
//! authenticates like a program, with the token or an access key.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use tower::{Layer as _, Service as _};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::access::rate_limit::QUOTA_HEADERS;
use super::error::is_for_programs;
use super::idempotency::{IDEMPOTENCY_KEY, REPLAYED};
use super::list_page::{HAS_MORE, TOTAL};
use super::live_events::LAST_EVENT_ID;

/// The time for which a browser may use the response to a preflight request.
const MAX_AGE: Duration = Duration::from_secs(600);

/// The origins of web pages that may use the API. Clones share the state.
#[derive(Clone, Debug)]
pub(super) struct AllowedOrigins(Option<Arc<CorsPolicy>>);

#[derive(Debug)]
struct CorsPolicy {
    origins: Vec<HeaderValue>,
    layer: CorsLayer,
}

impl AllowedOrigins {
    /// Returns the policy for these origins. Without origins, no response has a header of CORS.
    pub fn of(origins: &[String]) -> Self {
        let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
        if origins.is_empty() {
            return Self(None);
        }
        let layer = CorsLayer::new()
            .allow_origin(AllowOrigin::list(origins.iter().cloned()))
            .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE])
            .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE, header::IF_NONE_MATCH, IDEMPOTENCY_KEY, LAST_EVENT_ID])
            .expose_headers(exposed_headers())
            .max_age(MAX_AGE);
        Self(Some(Arc::new(CorsPolicy { origins, layer })))
    }
}

/// The response headers of the API that a page may read, in addition to those that browsers always allow.
fn exposed_headers() -> Vec<HeaderName> {
    let general =
        [header::ETAG, header::LINK, header::ALLOW, header::RETRY_AFTER, header::WWW_AUTHENTICATE, header::CONTENT_DISPOSITION];
    general.into_iter().chain([TOTAL, HAS_MORE, REPLAYED]).chain(QUOTA_HEADERS).collect()
}

/// Allows a request of an allowed origin, and responds to its preflight request. All other requests continue unchanged.
pub(super) async fn allow_origins(
    State(allowed): State<AllowedOrigins>,
    request: Request,
    next: Next,
) -> Result<Response, Infallible> {
    let Some(policy) = allowed.0.filter(|_| is_for_programs(request.uri().path())) else { return Ok(next.run(request).await) };
    let origin = request.headers().get(header::ORIGIN);
    let is_allowed = origin.is_some_and(|origin| policy.origins.contains(origin));
    let is_preflight = is_allowed && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if is_allowed && (is_preflight || request.method() != Method::OPTIONS) {
        return policy.layer.layer(next).call(request).await;
    }
    let mut response = next.run(request).await;
    // A cache must not give this response to a page of an allowed origin.
    response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    Ok(response)
}
