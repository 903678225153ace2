//! The HTTP server of the daemon: pages, JSON API, health, metrics, feeds, and reload.
//!
//! `authorization` checks each request first. On loopback the `Host` header must name this server; on other addresses the request needs
//! the token or a session. Requests that change state need one of them on every address. The handlers then query the store: `pages`
//! returns HTML, `api` returns JSON, `feeds` returns calendars and Atom. Secret links of `feeds` and `unsubscribe` need no login, because
//! the link itself is the proof. `live_events` streams the event log, and `updates` notifies open pages of new data.

mod access;
mod alert_detail;
mod api;
mod assets;
mod authorization;
mod cors;
mod cursor;
mod error;
mod error_code;
mod etag;
mod event_watch;
mod feeds;
mod group;
mod idempotency;
mod json_body;
mod list_page;
mod live_events;
mod names;
mod page_cache;
mod pages;
mod parameters;
mod query;
mod request_limits;
mod rule_view;
mod sanitize;
mod status;
mod threads;
mod time_range;
mod unsubscribe;
mod updates;
mod waiting;

use std::{io, sync::Arc, time::Duration};

use axum::http::{HeaderValue, StatusCode, header};
use axum::routing::{get, post};
use axum::{Router, middleware};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::{
    catch_panic::CatchPanicLayer, compression::CompressionLayer, limit::RequestBodyLimitLayer,
    set_header::SetResponseHeaderLayer, timeout::TimeoutLayer,
};

use access::{AccessState, proxy::TrustedProxies};
pub use access::{key_hash as access_key_hash, random_secret as fresh_token};
use api::event_log::MAX_WAIT;
pub use api::tokens::token_details;
use cors::AllowedOrigins;
use daemon::app::AppHandle;
use daemon::playground::Playground;
use event_watch::EventWatch;
use idempotency::check_key;
use model::BoxFuture;
use pages::{digests::DigestCache, overview::OverviewCache};
use request_limits::{REQUEST_TIMEOUT, RequestLimits, keep_slot, limit_requests, limit_time, limit_trial};
use updates::Updates;
pub use waiting::serve as serve_waiting;

/// The maximum number of open connections. Further clients wait in the listen queue.
const MAX_CONNECTIONS: usize = 128;
/// The time that open requests get to finish on shutdown. Without it, a client that never completes its request would block the exit.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// The time limit of any request: a request for events waits, and then reads.
const LONGEST_REQUEST: Duration = MAX_WAIT.saturating_add(REQUEST_TIMEOUT);
/// The `Content-Security-Policy` of pages: only files, events, and forms of this server, and no inline scripts or styles.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// The size limit of a request body. The largest is a URL-encoded rule for the playground.
const MAX_REQUEST_BYTES: usize = 128 * 1024;

/// The shared state of the handlers.
#[derive(Clone)]
pub(crate) struct HttpDeps {
    pub app: AppHandle,
    pub access: Arc<AccessState>,
    /// The reverse proxies that may name users. `None` if there are none.
    pub proxies: Option<Arc<TrustedProxies>>,
    /// Allows one trial at a time.
    pub playground: Playground,
    pub updates: Updates,
    pub event_watch: EventWatch,
    pub overview: OverviewCache,
    pub digests: DigestCache,
    pub limits: RequestLimits,
}

/// Serves requests until `stop`, then finishes the open ones within `STOP_DEADLINE`. Requests run on threads of their own and read the
/// database on connections of their own, so that they cannot delay the daemon.
///
/// # Errors
///
/// Fails if the listener fails permanently.
pub fn serve(app: AppHandle, listener: TcpListener, stop: CancellationToken) -> BoxFuture<'static, io::Result<()>> {
    let app = AppHandle { store: app.store.for_pages(), ..app };
    threads::run_on_own_threads(listener, move |listener| {
        let deps = HttpDeps {
            updates: Updates::start(app.store.clone(), stop.clone()),
            event_watch: EventWatch::start(app.store.clone(), stop.clone()),
            overview: OverviewCache::default(),
            digests: DigestCache::default(),
            access: Arc::default(),
            proxies: TrustedProxies::of(&app.live.load().config.http).map(Arc::new),
            playground: Playground::default(),
            limits: RequestLimits::default(),
            app,
        };
        Box::pin(service::serve_few(listener, router(deps), MAX_CONNECTIONS, STOP_DEADLINE, stop.cancelled_owned()))
    })
}

fn router(deps: HttpDeps) -> Router {
    let cors = AllowedOrigins::of(&deps.app.live.load().config.http.cors_origins);
    let routes = Router::new()
        .route("/events", get(live_events::stream))
        .route("/-/ready", get(status::ready))
        .route("/-/reload", post(status::reload).layer(middleware::from_fn_with_state(deps.clone(), check_key)))
        .route("/metrics", get(status::metrics))
        .route(&format!("/{}", feeds::CALENDAR), get(feeds::calendar))
        .route(&format!("/{}", feeds::ATOM), get(feeds::atom))
        .merge(api::routes(&deps))
        .merge(pages::routes(&deps))
        .route("/login", get(access::login::form).post(access::login::log_in))
        .route("/logout", post(access::login::log_out))
        .layer(middleware::from_fn_with_state(deps.clone(), limit_requests))
        .layer(middleware::from_fn(limit_time));
    let feed_links = Router::new()
        .route(&format!("/{}/{{tag}}/{}", feeds::PATH, feeds::CALENDAR), get(feeds::calendar))
        .route(&format!("/{}/{{tag}}/{}", feeds::PATH, feeds::ATOM), get(feeds::atom))
        .layer(middleware::from_fn_with_state(deps.clone(), limit_requests))
        .layer(middleware::from_fn_with_state(deps.clone(), feeds::check_link))
        .layer(middleware::from_fn(limit_time));
    routes
        .merge(pages::slow_routes(&deps).layer(middleware::from_fn(limit_trial)))
        .merge(api::waiting_routes())
        .layer(middleware::from_fn_with_state(deps.clone(), authorization::authorize))
        .route("/-/healthy", get(status::healthy))
        .route("/assets/{name}", get(assets::asset))
        .route(&format!("/{}/{{tag}}", unsubscribe::PATH), get(unsubscribe::form).post(unsubscribe::unsubscribe))
        .merge(feed_links)
        .fallback(error::no_route)
        .layer(RequestBodyLimitLayer::new(MAX_REQUEST_BYTES))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, LONGEST_REQUEST))
        .layer(CatchPanicLayer::new())
        .layer(middleware::from_fn(error::format_errors))
        .layer(middleware::map_response(sanitize::sanitize))
        .layer(CompressionLayer::new())
        .layer(middleware::map_response(keep_slot))
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .layer(SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .layer(SetResponseHeaderLayer::if_not_present(header::REFERRER_POLICY, HeaderValue::from_static("same-origin")))
        .layer(SetResponseHeaderLayer::if_not_present(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)))
        .layer(middleware::from_fn_with_state(cors, cors::allow_origins))
        .layer(CatchPanicLayer::new())
        .with_state(deps)
}

#[cfg(test)]
mod tests;
