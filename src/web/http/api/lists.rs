//! The API lists of changes, alerts, deliveries, polls, and rules.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};

use super::operations::{ALERTS, AUDIT, CHANGES, DELIVERIES, RULE_LIST};
use crate::http::HttpDeps;
use crate::http::alert_detail::AlertDetail;
use crate::http::cursor;
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::group::SelectedGroups;
use crate::http::list_page::ListPage;
use crate::http::names;
use crate::http::parameters::{
    ACKNOWLEDGED, ALERT_SORT, ASSIGNEE, AUDIT_TYPE, AUTHOR, BEFORE, DELIVERY_STATE, KIND, RESOURCE, RULE, SEVERITY, STATE,
};
use crate::http::query::ListQuery;
use crate::http::request_limits::ReadDeps;
use crate::http::rule_view::rule_views;
use chart::past_polls;
use daemon::current_texts::show_current_texts;
use daemon::view::{AlertView, PastPollsView};
use model::{
    Alert, AlertCursor, AlertFilter, AlertId, AlertState, AuditFilter, AuditRow, ChangeFilter, ChangeKind, ChangeRow, DeliveryId,
    DeliveryState, EventType, Listed, NumberedAlert, OutboxFilter, OutboxRow, Resource,
};
use store::StoreError;

pub(super) async fn changes(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Response, WebError> {
    let query = CHANGES.query(&uri)?;
    let (range, position) = (query.time_range(deps.app.clock.now())?, query.position()?);
    let token = names::token(&deps, &query).await?;
    let groups = SelectedGroups::of(&query, &deps.app.live.load_full())?;
    let filter = ChangeFilter {
        tokens: groups.narrow(&deps, token.into_iter().collect()).await?,
        kinds: query.items(KIND, ChangeKind::parse)?,
        resources: query.items(RESOURCE, Resource::parse)?,
        since: range.since,
        until: range.until,
        limit: query.limit() + 1,
        position,
        offset: 0,
    };
    let listed = deps.app.store.changes_listed(filter).await?;
    Ok(ListPage::of_numbered(listed, query.limit(), position, |row: &ChangeRow| row.id).response(&query, &uri))
}

/// Parses the filter of a list of alerts, with a limit of `limit` + 1 rows.
async fn alert_filter(deps: &HttpDeps, query: &ListQuery, limit: u32) -> Result<AlertFilter, WebError> {
    let range = query.time_range(deps.app.clock.now())?;
    Ok(AlertFilter {
        states: query.items(STATE, AlertState::parse)?,
        rule: names::rule_of_alerts(deps, query).await?,
        token: names::token(deps, query).await?,
        group: SelectedGroups::of(query, &deps.app.live.load_full())?.members(deps).await?,
        severity: query.text(SEVERITY).map(str::to_owned),
        acknowledged: query.boolean(ACKNOWLEDGED),
        assignee: query.text(ASSIGNEE).map(str::to_owned),
        receiver: names::receiver(deps, query).await?,
        since: range.since,
        until: range.until,
        after: None,
        limit: limit + 1,
        ids: Vec::new(),
    })
}

/// Loads a page of alerts with the status of each receiver, most recently updated first.
pub(in crate::http) async fn alert_page(deps: &HttpDeps, query: &ListQuery, limit: u32) -> Result<ListPage<AlertView>, WebError> {
    let after = query.cursor(AlertCursor::parse)?;
    let filter = AlertFilter { after, ..alert_filter(deps, query, limit).await? };
    let page = ListPage::of(deps.app.store.alerts_listed(filter).await?, limit, |alert| AlertCursor::of(alert).to_string());
    let views = alert_views(deps, &page.rows).await?;
    Ok(ListPage { rows: views, total: page.total, next: page.next, previous: None })
}

pub(super) async fn alerts(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Response, WebError> {
    let query = ALERTS.query(&uri)?;
    if query.get(ALERT_SORT) == Some("updated") {
        if query.get(BEFORE).is_some() {
            return Err(WebError::invalid_parameter("`before` excludes `sort=updated`: leave one of them out"));
        }
        return Ok(alert_page(&deps, &query, query.limit()).await?.response(&query, &uri));
    }
    let (limit, position) = (query.limit(), query.position()?);
    let filter = alert_filter(&deps, &query, limit).await?;
    let listed = deps.app.store.alerts_by_number(filter, position).await?;
    let page = ListPage::of_numbered(listed, limit, position, |row: &NumberedAlert| row.number);
    let alerts: Vec<Alert> = page.rows.into_iter().map(|row| row.alert).collect();
    let rows = alert_views(&deps, &alerts).await?;
    Ok(ListPage { rows, total: page.total, next: page.next, previous: page.previous }.response(&query, &uri))
}

/// Returns the views of alerts, with the texts that are true now.
pub(in crate::http) async fn alert_views(deps: &HttpDeps, alerts: &[Alert]) -> Result<Vec<AlertView>, StoreError> {
    let (mut alerts, live, now) = (alerts.to_vec(), deps.app.live.load_full(), deps.app.clock.now());
    show_current_texts(&mut alerts.iter_mut().collect::<Vec<_>>(), &deps.app.store, &live.watch, &live.active, now).await?;
    let receiver_states = deps.app.store.receiver_statuses(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    let tickers = deps.app.store.tickers(alerts.iter().filter_map(|alert| alert.token.clone()).collect()).await?;
    let assignments = deps.app.store.assignments(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    Ok(AlertView::all(&alerts, &receiver_states, &tickers, &assignments, now))
}

pub(super) async fn alert(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Response, WebError> {
    let detail = AlertDetail::load(&deps, AlertId::from(id)).await?;
    let unknown = "no alert has this id, or it was deleted after `[store] retention`";
    Ok(Json(detail.ok_or_else(|| WebError::new(ErrorCode::UnknownAlert, unknown))?.json()).into_response())
}

/// Loads a page of deliveries.
pub(in crate::http) async fn delivery_page(
    deps: &HttpDeps,
    query: &ListQuery,
    limit: u32,
) -> Result<ListPage<OutboxRow>, WebError> {
    let (range, position) = (query.time_range(deps.app.clock.now())?, query.position()?);
    let filter = OutboxFilter {
        receiver: names::receiver(deps, query).await?,
        states: query.items(DELIVERY_STATE, DeliveryState::parse)?,
        since: range.since,
        until: range.until,
        position,
        limit: limit + 1,
    };
    Ok(ListPage::of_numbered(deps.app.store.outbox_listed(filter).await?, limit, position, |row| row.id.0))
}

/// Loads a page of the audit log.
pub(in crate::http) async fn audit_page(deps: &HttpDeps, query: &ListQuery, limit: u32) -> Result<ListPage<AuditRow>, WebError> {
    let (range, position) = (query.time_range(deps.app.clock.now())?, query.position()?);
    let filter = AuditFilter {
        actor: query.text(AUTHOR).map(str::to_owned),
        kinds: query.items(AUDIT_TYPE, EventType::parse)?,
        since: range.since,
        until: range.until,
        position,
        limit: limit + 1,
    };
    Ok(ListPage::of_numbered(deps.app.store.audit(filter).await?, limit, position, |row| row.no))
}

/// `GET /api/v1/audit`.
pub(super) async fn audit(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Response, WebError> {
    let query = AUDIT.query(&uri)?;
    Ok(audit_page(&deps, &query, query.limit()).await?.response(&query, &uri))
}

pub(super) async fn outbox(ReadDeps(deps): ReadDeps, uri: Uri) -> Result<Response, WebError> {
    let query = DELIVERIES.query(&uri)?;
    Ok(delivery_page(&deps, &query, query.limit()).await?.response(&query, &uri))
}

pub(super) async fn delivery(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Response, WebError> {
    let detail = deps.app.store.outbox_one(delivery_id(&id)?).await?;
    Ok(Json(detail.ok_or_else(unknown_delivery)?.json()).into_response())
}

/// Parses the id of a delivery in a path.
pub(super) fn delivery_id(text: &str) -> Result<DeliveryId, WebError> {
    let invalid = || WebError::invalid_parameter(format!("id: {text:?} is not valid: expected a whole number"));
    text.parse().map(DeliveryId).map_err(|_| invalid())
}

/// Returns the latest polls of each endpoint, newest first.
pub(super) async fn polls(State(deps): State<HttpDeps>) -> Result<Response, WebError> {
    let polls = deps.app.store.past_polls(past_polls::MARKS).await?;
    let views: Vec<PastPollsView> = polls.into_iter().map(PastPollsView::of).collect();
    Ok(Json(views).into_response())
}

/// `GET /api/v1/rules`: a page of the active rules by id, or only the rules whose name or id is the parameter `rule`.
pub(super) async fn rules(State(deps): State<HttpDeps>, uri: Uri) -> Result<Response, WebError> {
    let query = RULE_LIST.query(&uri)?;
    let mut views = rule_views(&deps).await?;
    if let Some(rule) = query.text(RULE) {
        views.retain(|view| view.name == rule || view.id == rule);
        if views.is_empty() {
            return Err(names::unknown_rule(&deps.app.live.load(), rule));
        }
    }
    // By id, so that a reload between two pages shifts nothing.
    views.sort_by(|a, b| a.id.cmp(&b.id));
    let total = views.len() as u64;
    if let Some(after) = query.cursor(cursor::parse::<String>)? {
        views.retain(|view| view.id > after);
    }
    let listed = Listed { rows: views, total, is_cut: false };
    Ok(ListPage::of(listed, query.limit(), |view| cursor::text(&view.id)).response(&query, &uri))
}

pub(in crate::http) fn unknown_delivery() -> WebError {
    WebError::new(ErrorCode::UnknownDelivery, "no delivery has this id, or it was deleted after `[store] retention`")
}
