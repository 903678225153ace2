//! The daemon's own HTTP: pages, health, metrics, `/api/…`, reload.
//!
//! A request passes the `gate` first: on loopback its `Host` must name us, off loopback it must carry the token, and what changes
//! something needs the token, or a login with it, always. Then a handler asks the store and renders: `overview` and its neighbours as
//! pages (`page` says what those share), `pages` and `lists` as JSON and text, `feeds` are what other programs subscribe to; those of
//! `silences` and `desk` alone write, and `unsubscribe`, whose links carry their own proof and pass no gate, as the secret links of
//! `feeds` do. `assets` are what pages load, `news` tells open pages that something is new.

mod access;
mod assets;
mod changes;
mod desk;
mod etag;
mod feeds;
mod gate;
mod lists;
mod news;
mod openapi;
mod overview;
mod page;
mod pages;
mod part;
mod query;
mod range;
mod rule_list;
mod silences;
mod story;
mod token_list;
mod tokens;
mod unsubscribe;
mod upcoming;
mod way_out;

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

use crate::playground::{self, Playground};
use crate::{live::Live, metrics::Metrics, readiness::Readiness};
pub use access::{AccessState, unguessable as fresh_token};
use model::{Clock, config::Secret};
pub use news::News;
pub use overview::OverviewCache;
use store::{Store, StoreError};

/// For one whole request, but for those that try a rule.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections at once; more wait in the listen queue.
const MAX_CONNECTIONS: usize = 128;
/// How long open requests may take after the word to stop: a half-sent header would otherwise hold the door for ever.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// What a page may load and do: its own sheet, script and icon, news of ours, forms that come back here. Nothing inline, nobody else.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// Largest request body: that of a rule to be tried, as a form packs it.
const MAX_REQUEST_BYTES: usize = 128 * 1024;

/// Reloads config and rules: what is at work now in a line, or every problem as text.
pub type ReloadNow = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync>;

/// Wakes the outbox.
pub type WakeOutbox = Arc<dyn Fn() + Send + Sync>;

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
    /// Has the outbox look at what is due.
    pub wake: WakeOutbox,
    /// Who is logged in, and who guessed wrong.
    pub access: Arc<AccessState>,
    /// Lets one rule be tried at once.
    pub playground: Playground,
    /// Who hears that something is new.
    pub news: News,
    /// What the overview showed last.
    pub overview: OverviewCache,
}

pub fn router(deps: HttpDeps) -> Router {
    let within = |time| TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, time);
    let quick = Router::new()
        .route("/", get(overview::overview))
        .route("/tokens", get(tokens::list))
        .route("/tokens/{id}", get(tokens::one))
        .route("/changes", get(changes::list))
        .route("/events", get(news::events))
        .route("/-/ready", get(pages::ready))
        .route("/-/reload", post(pages::reload))
        .route("/metrics", get(pages::metrics))
        .route(&format!("/{}", feeds::CALENDAR), get(feeds::calendar))
        .route(&format!("/{}", feeds::ATOM), get(feeds::atom))
        .merge(api())
        .merge(desk::routes())
        .route("/login", get(access::login::ask).post(access::login::log_in))
        .route("/logout", post(access::login::log_out))
        .layer(within(REQUEST_TIMEOUT));
    quick
        .merge(desk::slow_routes())
        .layer(middleware::from_fn_with_state(deps.clone(), gate::guard))
        // Asked by load balancers and probes that hold no secret; it tells nothing but that we are.
        .route("/-/healthy", get(async || "healthy\n"))
        .route("/assets/{name}", get(assets::asset))
        .route(&format!("/{}/{{tag}}", unsubscribe::PATH), get(unsubscribe::ask).post(unsubscribe::stop))
        .route(&format!("/{}/{{tag}}/{}", feeds::PATH, feeds::CALENDAR), get(feeds::calendar_by_link))
        .route(&format!("/{}/{{tag}}/{}", feeds::PATH, feeds::ATOM), get(feeds::atom_by_link))
        .fallback(page::nothing)
        .layer(middleware::map_response(way_out::harmless))
        .layer(CompressionLayer::new())
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .layer(SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .layer(SetResponseHeaderLayer::if_not_present(header::REFERRER_POLICY, HeaderValue::from_static("same-origin")))
        .layer(SetResponseHeaderLayer::if_not_present(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)))
        .layer(RequestBodyLimitLayer::new(MAX_REQUEST_BYTES))
        .layer(within(playground::REQUEST_TIMEOUT))
        .layer(CatchPanicLayer::new())
        .with_state(deps)
}

/// What programs read and write. Each answer has a tag.
fn api() -> Router<HttpDeps> {
    Router::new()
        .route("/api/status", get(pages::status))
        .route("/api/upcoming", get(upcoming::list))
        .route("/api/tokens", get(token_list::list))
        .route("/api/tokens/{id}", get(token_list::one))
        .route("/api/changes", get(lists::changes))
        .route("/api/alerts", get(lists::alerts))
        .route("/api/alerts/{id}", get(lists::alert))
        .route("/api/polls", get(lists::polls))
        .route("/api/rules", get(lists::rules))
        .route("/api/outbox", get(lists::outbox))
        .route("/api/outbox/{id}", get(lists::delivery))
        .route("/api/silences", get(silences::list).post(silences::add))
        .route("/api/silences/preview", get(silences::preview))
        .route("/api/silences/{id}", delete(silences::expire))
        .route("/api/acks", get(silences::acks).post(silences::acknowledge))
        .route("/api/openapi.json", get(openapi::document))
        .layer(middleware::from_fn(etag::tagged))
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
