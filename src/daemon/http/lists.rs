//! The lists as JSON: changes, alerts, deliveries. Each refuses parameters that it does not know.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::query::{ListParameters, list_query, span, words};
use super::{HttpDeps, HttpError};
use crate::ui::view::AlertView;
use model::{
    Alert, AlertFilter, AlertState, ChangeFilter, ChangeKind, DeliveryId, DeliveryState, OutboxFilter, ReceiverName, Resource,
    RuleId, TokenId,
};
use store::StoreError;

/// Whether there is more than what an answer holds.
const HAS_MORE: HeaderName = HeaderName::from_static("cliffwatch-has-more");

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
        offset: 0,
        limit: query.limit() + 1,
    };
    Ok(first(deps.store.changes(filter).await?, query.limit()))
}

pub(super) async fn alerts(State(deps): State<HttpDeps>, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    query.only(&["state", "rule", "token"])?;
    let filter = AlertFilter {
        states: words("state", query.state.as_deref(), AlertState::parse)?,
        rule: query.rule.as_deref().map(RuleId::from),
        token: query.token.as_deref().map(TokenId::from),
        limit: query.limit() + 1,
    };
    let alerts = deps.store.alerts(filter).await?;
    Ok(first(alert_views(&deps, &alerts).await?, query.limit()))
}

/// The first rows of a list that was asked for one more; a header says that there are others.
pub(super) fn first<T: Serialize>(mut rows: Vec<T>, limit: u32) -> Response {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    ([(HAS_MORE, HeaderValue::from_static(if has_more { "true" } else { "false" }))], Json(rows)).into_response()
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
        limit: query.limit() + 1,
    };
    Ok(first(deps.store.outbox(filter).await?, query.limit()))
}

/// One delivery with everything that it stands for: also what its message only counts.
pub(super) async fn delivery(State(deps): State<HttpDeps>, Path(id): Path<i64>) -> Result<Response, HttpError> {
    let detail = deps.store.outbox_one(DeliveryId(id)).await?;
    Ok(detail.map_or_else(
        || (StatusCode::NOT_FOUND, "there is no such delivery\n").into_response(),
        |detail| Json(detail.json()).into_response(),
    ))
}
