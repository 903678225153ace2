//! The status as JSON, readiness, the metrics, and the reload by hand.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{HttpDeps, HttpError};
use crate::ui::view::{StatusParts, StatusView};
use model::digest;
use store::StoreError;

pub(super) async fn ready(State(deps): State<HttpDeps>) -> Response {
    match deps.readiness.not_ready() {
        None => match deps.readiness.source() {
            None => "ready\n".into_response(),
            Some(state) => format!("ready; source: {}\n", state.as_str()).into_response(),
        },
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")).into_response(),
    }
}

pub(super) async fn reload(State(deps): State<HttpDeps>) -> Response {
    match (deps.reload)().await {
        Ok(text) => format!("{text}\n").into_response(),
        Err(problems) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{problems}\n")).into_response(),
    }
}

pub(super) async fn metrics(State(deps): State<HttpDeps>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let (kind, page) = service::exposition::negotiated(accept, deps.metrics.encode());
    ([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], page)
}

pub(super) async fn status_view(deps: &HttpDeps) -> Result<StatusView, StoreError> {
    let now = deps.clock.now();
    let (counts, endpoints, credit, incidents, notifications) = tokio::try_join!(
        deps.store.counts(),
        deps.store.poll_stats(),
        deps.store.credit(),
        deps.store.source_alerts(),
        deps.store.notification_overview(now, now - digest::DAY),
    )?;
    let live = deps.live.load();
    Ok(StatusView::of(StatusParts {
        now,
        counts: &counts,
        endpoints: &endpoints,
        credit: &credit,
        reads: None,
        incidents: &incidents,
        receivers: live.config.receivers.iter().map(|receiver| receiver.name.clone()).collect(),
        notifications: &notifications,
        digests: &live.policy.digests,
        subscribers: &live.subscribers,
        database: deps.store.path().to_owned(),
        rules: deps.readiness.rules(),
        daemon: Some(deps.readiness.view()),
    }))
}

pub(super) async fn status(State(deps): State<HttpDeps>) -> Result<Json<StatusView>, HttpError> {
    Ok(Json(status_view(&deps).await?))
}
