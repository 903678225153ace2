//! The daemon's own HTTP: status page, health, metrics, `/api/…`, reload.
//!
//! A request passes the `gate` first: on loopback its `Host` must name us, off loopback it must carry the token, and what changes
//! something needs the token always. Then a handler asks the store and renders: `pages` and `lists` read, `feeds` are
//! what other programs subscribe to; those of `silences` alone write, and `unsubscribe`, whose links carry their own proof and pass no
//! gate, as the secret links of `feeds` do.

mod feeds;
mod gate;
mod lists;
mod pages;
mod query;
mod silences;
mod unsubscribe;
mod upcoming;

use std::{net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router, middleware};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::{
    catch_panic::CatchPanicLayer, compression::CompressionLayer, limit::RequestBodyLimitLayer,
    set_header::SetResponseHeaderLayer, timeout::TimeoutLayer,
};
use url::Url;

use crate::{live::Live, metrics::Metrics, readiness::Readiness};
use model::{Clock, config::Secret};
use store::{Store, StoreError};

/// For one whole request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections at once; more wait in the listen queue.
const MAX_CONNECTIONS: usize = 128;
/// How long open requests may take after the word to stop: a half-sent header would otherwise hold the door for ever.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// Largest request body: that of a silence.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// Reloads config and rules: what is at work now in a line, or every problem as text.
pub type ReloadNow = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync>;

/// What the handlers need.
#[derive(Clone)]
pub struct HttpDeps {
    pub store: Store,
    /// What `/metrics` shows.
    pub metrics: Arc<Metrics>,
    /// What the daemon says of itself.
    pub readiness: Readiness,
    pub clock: Clock,
    pub bearer: Secret,
    /// Where we listen, as bound.
    pub address: SocketAddr,
    /// Config and rules at work.
    pub live: Arc<Live>,
    /// `[http] external_url`.
    pub external_url: Option<Url>,
    /// What `POST /-/reload` does.
    pub reload: ReloadNow,
}

pub fn router(deps: HttpDeps) -> Router {
    Router::new()
        .route("/", get(pages::status_page))
        .route("/-/ready", get(pages::ready))
        .route("/-/reload", post(pages::reload))
        .route("/metrics", get(pages::metrics))
        .route("/api/status", get(pages::status))
        .route("/api/upcoming", get(upcoming::list))
        .route(&format!("/{}", feeds::CALENDAR), get(feeds::calendar))
        .route(&format!("/{}", feeds::ATOM), get(feeds::atom))
        .route("/api/changes", get(lists::changes))
        .route("/api/alerts", get(lists::alerts))
        .route("/api/outbox", get(lists::outbox))
        .route("/api/outbox/{id}", get(lists::delivery))
        .route("/api/silences", get(silences::list).post(silences::add))
        .route("/api/silences/{id}", delete(silences::expire))
        .route("/api/acks", get(silences::acks).post(silences::acknowledge))
        .layer(middleware::from_fn_with_state(deps.clone(), gate::guard))
        // Asked by load balancers and probes that hold no secret; it tells nothing but that we are.
        .route("/-/healthy", get(async || "healthy\n"))
        .route(&format!("/{}/{{tag}}", unsubscribe::PATH), get(unsubscribe::ask).post(unsubscribe::stop))
        .route(&format!("/{}/{{tag}}/{}", feeds::PATH, feeds::CALENDAR), get(feeds::calendar_by_link))
        .route(&format!("/{}/{{tag}}/{}", feeds::PATH, feeds::ATOM), get(feeds::atom_by_link))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here\n"))
        .layer(CompressionLayer::new())
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .layer(SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .layer(SetResponseHeaderLayer::overriding(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
            ),
        ))
        .layer(RequestBodyLimitLayer::new(MAX_REQUEST_BYTES))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, REQUEST_TIMEOUT))
        .layer(CatchPanicLayer::new())
        .with_state(deps)
}

/// Answers requests until `stop`, then finishes those under way, at most `STOP_DEADLINE` long.
/// Ends with an error where the listener fails for good.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> std::io::Result<()> {
    service::serve_few(listener, router, MAX_CONNECTIONS, STOP_DEADLINE, stop.cancelled_owned()).await
}

/// An answer that could not be made.
enum HttpError {
    Store(StoreError),
    Bad(String),
    /// Something of that name is not known.
    NotFound(String),
    Template(minijinja::Error),
}

impl From<StoreError> for HttpError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<minijinja::Error> for HttpError {
    fn from(error: minijinja::Error) -> Self {
        Self::Template(error)
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        match self {
            HttpError::Bad(problem) => (StatusCode::BAD_REQUEST, Json(serde_json::json!({ "error": problem }))).into_response(),
            HttpError::NotFound(problem) => {
                (StatusCode::NOT_FOUND, Json(serde_json::json!({ "error": problem }))).into_response()
            }
            HttpError::Template(error) => {
                tracing::error!(%error, "a template of ours is broken");
                let problem = "it cannot be shown; the log says why";
                (StatusCode::INTERNAL_SERVER_ERROR, Json(serde_json::json!({ "error": problem }))).into_response()
            }
            HttpError::Store(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a page could not be made");
                let problem = "the database cannot be read; the log says why";
                (StatusCode::INTERNAL_SERVER_ERROR, Json(serde_json::json!({ "error": problem }))).into_response()
            }
        }
    }
}

#[cfg(test)]
mod tests;
