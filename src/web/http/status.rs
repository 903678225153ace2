//! Status, readiness, metrics, and the reload request.

use std::borrow::Borrow;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::HttpDeps;
use super::access::ActDeps;
use super::error::WebError;
use super::error_code::ErrorCode;
use super::idempotency::{RequestKey, remember};
use daemon::view::{StatusParts, StatusView};
use model::{EndpointStat, EventType, LoggedAction, StoreCounts, digest};
use store::StoreError;

pub(super) async fn ready(State(deps): State<HttpDeps>) -> Response {
    match deps.app.readiness.not_ready() {
        None => match deps.app.readiness.source() {
            None => "ready\n".into_response(),
            Some(state) => format!("ready; source: {}\n", state.as_str()).into_response(),
        },
        Some(reason) => WebError::new(ErrorCode::NotReady, format!("not ready: {reason}")).into_line().into_response(),
    }
}

/// Load balancers probe this path without a token, so it only reveals that the daemon runs, and whether it waits for its database.
pub(super) async fn healthy(State(deps): State<HttpDeps>) -> &'static str {
    if deps.app.readiness.is_store_usable() { "healthy\n" } else { WAITING }
}

/// The health of a daemon that runs but cannot use its database.
pub(super) const WAITING: &str = "healthy; waiting for the database\n";

pub(super) async fn reload(ActDeps(deps): ActDeps, Extension(key): Extension<RequestKey>) -> Result<Response, WebError> {
    let requested = deps.app.store.log_action(EventType::ReloadRequested, LoggedAction::new("", None), deps.app.clock.now());
    if let Err(error) = requested.await {
        // A config that repairs the database must be readable without it.
        tracing::warn!(error = model::text::error_chain(&error), "cannot record who requested the reload");
    }
    match (deps.app.reload)().await {
        Ok(text) => {
            let text = format!("{text}\n");
            remember(&deps, key, StatusCode::OK, text.clone()).await?;
            Ok(text.into_response())
        }
        Err(problems) => Err(WebError::new(ErrorCode::InvalidConfig, problems).into_line()),
    }
}

pub(super) async fn metrics(State(deps): State<HttpDeps>, headers: HeaderMap) -> impl IntoResponse {
    // After a pause of the process, the lease may be over before any task has run to notice it.
    deps.app.metrics.set_active(deps.app.store.is_active());
    deps.app.metrics.set_database_up(deps.app.readiness.is_store_usable());
    deps.app.metrics.set_ready(deps.app.readiness.not_ready().is_none());
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let (kind, page) = service::exposition::negotiated(accept, deps.app.metrics.encode());
    ([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], page)
}

/// Numbers of rows in the database, which take long to count.
#[derive(Debug)]
pub struct DatabaseTotals {
    counts: StoreCounts,
    endpoints: Vec<EndpointStat>,
}

impl DatabaseTotals {
    pub(super) async fn load(deps: &HttpDeps) -> Result<Self, StoreError> {
        let (counts, endpoints) = tokio::try_join!(deps.app.store.counts(), deps.app.store.poll_stats())?;
        Ok(Self { counts, endpoints })
    }
}

/// Returns the status with `totals`.
pub(super) async fn status_view<T: Borrow<DatabaseTotals>>(
    deps: &HttpDeps,
    totals: impl Future<Output = Result<T, StoreError>>,
) -> Result<StatusView, StoreError> {
    let now = deps.app.clock.now();
    let (totals, credit, mut incidents, notifications) = tokio::try_join!(
        totals,
        deps.app.store.credit(),
        deps.app.store.source_alerts(),
        deps.app.store.notification_overview(now, now - digest::SUPPRESSED_WINDOW),
    )?;
    incidents.extend(deps.app.readiness.store_incident());
    let live = deps.app.live.load();
    let DatabaseTotals { counts, endpoints } = totals.borrow();
    Ok(StatusView::of(StatusParts {
        now,
        counts,
        endpoints,
        credit: &credit,
        reads: None,
        incidents: &incidents,
        receivers: live.config.receivers.iter().map(|receiver| receiver.name.clone()).collect(),
        notifications: &notifications,
        digests: &live.policy.digests,
        subscribers: &live.subscribers,
        database: deps.app.store.path().to_owned(),
        rules: deps.app.readiness.rules(),
        daemon: Some(deps.app.readiness.view()),
    }))
}

pub(super) async fn status(State(deps): State<HttpDeps>) -> Result<Json<StatusView>, WebError> {
    Ok(Json(status_view(&deps, DatabaseTotals::load(&deps)).await?))
}
