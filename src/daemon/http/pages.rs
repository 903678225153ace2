//! The status page and its JSON, readiness, the metrics, and the reload by hand.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::{HttpDeps, HttpError, lists::alert_views};
use crate::ui::view::{StatusParts, StatusView, UnlockView, change_line};
use crate::ui::{self, ChangeLine, StatusPage};
use model::{AlertFilter, AlertState, ChangeFilter, OutboxFilter, UpcomingFilter, digest};
use store::StoreError;

/// Unlocks, alerts, changes and deliveries on the status page.
const PAGE_ROWS: u32 = 15;

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

async fn status_view(deps: &HttpDeps) -> Result<StatusView, StoreError> {
    let now = deps.clock.now();
    let counts = deps.store.counts().await?;
    let endpoints = deps.store.poll_stats().await?;
    let credit = deps.store.credit().await?;
    let incidents = deps.store.source_alerts().await?;
    let notifications = deps.store.notification_overview(now, now - digest::DAY).await?;
    let live = deps.live.load();
    Ok(StatusView::of(StatusParts {
        now,
        counts: &counts,
        endpoints: &endpoints,
        credit: &credit,
        incidents: &incidents,
        receivers: live.config.receivers.iter().map(|receiver| receiver.name.clone()).collect(),
        notifications: &notifications,
        digests: &live.policy.digests,
        subscribers: &live.subscribers,
        database: live.config.store.path.clone(),
        rules: deps.readiness.rules(),
        daemon: Some(deps.readiness.view()),
    }))
}

pub(super) async fn status_page(State(deps): State<HttpDeps>) -> Result<Html<String>, HttpError> {
    let now = deps.clock.now();
    let firing = AlertFilter { states: vec![AlertState::Firing], limit: PAGE_ROWS, ..AlertFilter::default() };
    let changes = deps.store.changes(ChangeFilter { limit: PAGE_ROWS, ..ChangeFilter::default() }).await?;
    let upcoming = deps.store.upcoming(UpcomingFilter { tokens: None, from: now, until: None, limit: PAGE_ROWS }).await?;
    let alerts = deps.store.alerts(firing).await?;
    let page = StatusPage {
        status: status_view(&deps).await?,
        upcoming: upcoming.iter().filter_map(|row| UnlockView::of(row, now)).collect(),
        alerts: alert_views(&deps, &alerts).await?,
        changes: changes
            .iter()
            .map(|row| ChangeLine { at: row.at.format("%Y-%m-%d %H:%M").to_string(), text: change_line(row) })
            .collect(),
        deliveries: deps.store.outbox(OutboxFilter { limit: PAGE_ROWS, ..OutboxFilter::default() }).await?,
    };
    Ok(Html(ui::render(&page)))
}

pub(super) async fn status(State(deps): State<HttpDeps>) -> Result<Json<StatusView>, HttpError> {
    Ok(Json(status_view(&deps).await?))
}
