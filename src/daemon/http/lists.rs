//! What there is as JSON: changes, alerts, deliveries, rules. Each list refuses parameters that it does not know.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::part::ListPart;
use super::query::{ListParameters, ListQuery, list_query, words};
use super::{HttpDeps, HttpError};
use crate::ui::chart::past_polls;
use crate::ui::view::{AlertView, PastPollsView};
use model::{
    Alert, AlertFilter, AlertId, AlertPlace, AlertState, ChangeFilter, ChangeKind, ChangeRow, DeliveryId, DeliveryState, Listed,
    OutboxFilter, ReceiverName, Resource, RuleId, Timestamp, TokenId,
};
use store::StoreError;

pub(super) async fn changes(State(deps): State<HttpDeps>, uri: Uri, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    query.only(&["token", "kind", "resource", "since", "from", "to"])?;
    let range = query.range(deps.clock.now())?;
    let filter = ChangeFilter {
        token: query.token.as_deref().map(TokenId::from),
        kind: words("kind", query.kind.as_deref(), ChangeKind::parse)?.into_iter().next(),
        resource: words("resource", query.resource.as_deref(), Resource::parse)?.into_iter().next(),
        since: range.since,
        until: range.until,
        limit: query.limit() + 1,
        after: query.after(|text| text.parse().ok())?,
        offset: 0,
    };
    let total = deps.store.count_changes(filter.clone()).await?;
    let listed = Listed { rows: deps.store.changes(filter).await?, total };
    Ok(ListPart::of(listed, query.limit(), |row: &ChangeRow| row.id.to_string()).answer(&query, &uri))
}

/// The filters of alerts, as `/api/alerts` and the page of alerts take them.
pub(super) const ALERT_FILTERS: &[&str] =
    &["state", "rule", "token", "severity", "acknowledged", "receiver", "since", "from", "to"];

/// What a list of alerts is asked for; one row more than its limit.
pub(super) fn alert_filter(query: &ListQuery, now: Timestamp) -> Result<AlertFilter, HttpError> {
    query.only(ALERT_FILTERS)?;
    let range = query.range(now)?;
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Ok(AlertFilter {
        states: words("state", query.state.as_deref(), AlertState::parse)?,
        rule: given(&query.rule).map(RuleId::from),
        token: given(&query.token).map(TokenId::from),
        severity: given(&query.severity),
        acknowledged: query.acknowledged,
        receiver: given(&query.receiver).map(ReceiverName::from),
        since: range.since,
        until: range.until,
        after: query.after(AlertPlace::parse)?,
        limit: query.limit() + 1,
        ids: Vec::new(),
    })
}

/// A part of the list of alerts, with where each stands with its receivers.
pub(super) async fn alert_part(deps: &HttpDeps, query: &ListQuery) -> Result<ListPart<AlertView>, HttpError> {
    let listed = deps.store.alerts_listed(alert_filter(query, deps.clock.now())?).await?;
    let part = ListPart::of(listed, query.limit(), |alert| AlertPlace::of(alert).to_string());
    let views = alert_views(deps, &part.rows).await?;
    Ok(ListPart { rows: views, total: part.total, next: part.next })
}

pub(super) async fn alerts(State(deps): State<HttpDeps>, uri: Uri, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    Ok(alert_part(&deps, &query).await?.answer(&query, &uri))
}

pub(super) async fn alert_views(deps: &HttpDeps, alerts: &[Alert]) -> Result<Vec<AlertView>, StoreError> {
    let standings = deps.store.receiver_statuses(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    let tickers = deps.store.tickers(alerts.iter().filter_map(|alert| alert.token.clone()).collect()).await?;
    Ok(AlertView::all(alerts, &standings, &tickers))
}

/// One alert with its story: what was told of it to whom, and why.
pub(super) async fn alert(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Response, HttpError> {
    let story = super::story::Story::read(&deps, AlertId::from(id)).await?;
    Ok(story.map_or_else(
        || not_found("there is no alert with this id, or it was forgotten"),
        |story| Json(story.json()).into_response(),
    ))
}

/// What a list of deliveries is asked for; one row more than its limit.
pub(super) fn outbox_filter(query: &ListQuery, now: Timestamp) -> Result<OutboxFilter, HttpError> {
    query.only(&["receiver", "state", "since", "from", "to"])?;
    let range = query.range(now)?;
    Ok(OutboxFilter {
        receiver: query.receiver.as_deref().filter(|name| !name.is_empty()).map(ReceiverName::from),
        states: words("state", query.state.as_deref(), DeliveryState::parse)?,
        since: range.since,
        until: range.until,
        after: query.after(|text| text.parse().ok().map(DeliveryId))?,
        limit: query.limit() + 1,
    })
}

pub(super) async fn outbox(State(deps): State<HttpDeps>, uri: Uri, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    let listed: Listed<_> = deps.store.outbox_listed(outbox_filter(&query, deps.clock.now())?).await?;
    Ok(ListPart::of(listed, query.limit(), |row| row.id.to_string()).answer(&query, &uri))
}

/// One delivery with everything that it stands for: also what its message only counts.
pub(super) async fn delivery(State(deps): State<HttpDeps>, Path(id): Path<i64>) -> Result<Response, HttpError> {
    let detail = deps.store.outbox_one(DeliveryId(id)).await?;
    Ok(detail.map_or_else(
        || (StatusCode::NOT_FOUND, "there is no such delivery\n").into_response(),
        |detail| Json(detail.json()).into_response(),
    ))
}

/// What each endpoint answered in its last cycles, the latest first.
pub(super) async fn polls(State(deps): State<HttpDeps>) -> Result<Response, HttpError> {
    let polls = deps.store.past_polls(past_polls::MARKS).await?;
    let views: Vec<PastPollsView> = polls.into_iter().map(PastPollsView::of).collect();
    Ok(Json(views).into_response())
}

/// The rules at work, in the order of their files.
pub(super) async fn rules(State(deps): State<HttpDeps>, uri: Uri, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    query.only(&["rule"])?;
    let mut views = super::rule_list::views(&deps).await?;
    views.retain(|view| query.rule.as_ref().is_none_or(|rule| view.name == *rule || view.id == *rule));
    let from = query.after(|text| text.parse().ok())?.unwrap_or(0);
    Ok(ListPart::from_whole(views, from, query.limit()).answer(&query, &uri))
}

/// The answer where there is nothing of that name.
pub(super) fn not_found(problem: &str) -> Response {
    (StatusCode::NOT_FOUND, Json(json!({ "error": problem }))).into_response()
}
