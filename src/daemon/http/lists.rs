//! The lists as JSON: changes, alerts, deliveries. Each refuses parameters that it does not know.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::query::{ListParameters, list_query, span, words};
use super::{HttpDeps, HttpError};
use crate::ui::view::AlertView;
use model::{
    Alert, AlertFilter, AlertState, ChangeFilter, ChangeKind, DeliveryId, DeliveryState, OutboxFilter, ReceiverName, Resource,
    RuleId, TokenId,
};
use store::StoreError;

pub(super) async fn changes(State(deps): State<HttpDeps>, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    query.only(&["token", "kind", "resource", "since"])?;
    let now = deps.clock.now();
    let filter = ChangeFilter {
        token: query.token.as_deref().map(TokenId::from),
        kind: words("kind", query.kind.as_deref(), ChangeKind::parse)?.into_iter().next(),
        resource: words("resource", query.resource.as_deref(), Resource::parse)?.into_iter().next(),
        since: span("since", query.since.as_deref())?.and_then(|span| now.checked_sub_signed(span)),
        until: None,
        limit: query.limit(),
    };
    Ok(Json(deps.store.changes(filter).await?).into_response())
}

pub(super) async fn alerts(State(deps): State<HttpDeps>, parameters: ListParameters) -> Result<Json<Vec<AlertView>>, HttpError> {
    let query = list_query(parameters)?;
    query.only(&["state", "rule", "token"])?;
    let filter = AlertFilter {
        states: words("state", query.state.as_deref(), AlertState::parse)?,
        rule: query.rule.as_deref().map(RuleId::from),
        token: query.token.as_deref().map(TokenId::from),
        limit: query.limit(),
    };
    let alerts = deps.store.alerts(filter).await?;
    Ok(Json(alert_views(&deps, &alerts).await?))
}

pub(super) async fn alert_views(deps: &HttpDeps, alerts: &[Alert]) -> Result<Vec<AlertView>, StoreError> {
    let standings = deps.store.receiver_statuses(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    Ok(AlertView::all(alerts, &standings))
}

pub(super) async fn outbox(State(deps): State<HttpDeps>, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    query.only(&["receiver", "state"])?;
    let filter = OutboxFilter {
        receiver: query.receiver.as_deref().map(ReceiverName::from),
        states: words("state", query.state.as_deref(), DeliveryState::parse)?,
        limit: query.limit(),
    };
    Ok(Json(deps.store.outbox(filter).await?).into_response())
}

/// One delivery with everything that it stands for: also what its message only counts.
pub(super) async fn delivery(State(deps): State<HttpDeps>, Path(id): Path<i64>) -> Result<Response, HttpError> {
    let detail = deps.store.outbox_one(DeliveryId(id)).await?;
    Ok(detail.map_or_else(
        || (StatusCode::NOT_FOUND, "there is no such delivery\n").into_response(),
        |detail| Json(detail.json()).into_response(),
    ))
}
