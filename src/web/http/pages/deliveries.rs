//! The list of deliveries, the page of one delivery, retry, and drop.

use axum::extract::{Extension, Path, Query, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;

use super::alerts::DoneQuery;
use super::{ActionResult, RequestVisitor, frame, login_url, render_page, state_choices};
use crate::http::access::{ActDeps, forms::FormFields, login::redirect};
use crate::http::api::operations::DELIVERIES;
use crate::http::parameters::{AFTER, RECEIVER};
use crate::http::query::ListQuery;
use crate::http::{HttpDeps, api::lists};
use crate::ui::page::{Choice, Section};
use crate::ui::range::RangeView;
use daemon::view::OutboxView;
use model::{DeliveryId, DeliveryState, OutboxFilter, OutboxRow, ReceiverName, Timestamp, digest};

/// The number of deliveries on a page.
const ROWS: u32 = 50;
#[derive(Serialize)]
struct DeliveriesPage {
    now: Timestamp,
    query: ListQuery,
    range: RangeView,
    states: Vec<Choice>,
    receivers: Vec<String>,
    outbox: Vec<OutboxView>,
    rows: Vec<OutboxRow>,
    total: u64,
    dead: u64,
    first: Option<String>,
    next: Option<String>,
}

pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Query(DoneQuery { done }): Query<DoneQuery>,
    uri: Uri,
) -> ActionResult {
    let now = deps.app.clock.now();
    let query = ListQuery::from_page(&[DELIVERIES.parameters, &[AFTER]].concat(), &uri);
    let listed = lists::delivery_page(&deps, &query, ROWS).await?;
    let counts = deps.app.store.receiver_counts().await?;
    let is_included = |name: &ReceiverName| query.text(RECEIVER).is_none_or(|receiver| name.as_str() == receiver);
    let count = |state| counts.iter().filter(|of| is_included(&of.receiver)).map(|of| of.of(state)).sum::<u64>();
    let live = deps.app.live.load_full();
    let receivers: Vec<String> = live.config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let overview = deps.app.store.notification_overview(now, now - digest::SUPPRESSED_WINDOW).await?;
    let page = DeliveriesPage {
        now,
        states: state_choices(&query, "/deliveries", DeliveryState::ALL.map(|state| (state.as_str(), count(state)))),
        range: query.range().view(|range| query.clone().with_range(range).first_page("/deliveries")),
        outbox: OutboxView::all(&receivers, &counts, &overview, now),
        receivers,
        dead: count(DeliveryState::Dead),
        rows: listed.rows,
        total: listed.total,
        first: query.text(AFTER).map(|_| query.first_page("/deliveries")),
        next: listed.next.map(|after| query.clone().with(AFTER, &after).href("/deliveries")),
        query,
    };
    Ok(render_page("deliveries.html", &frame(Section::Deliveries, &visitor, now, &done), &page))
}

#[derive(Serialize)]
struct DeliveryPage<'a> {
    now: Timestamp,
    row: &'a OutboxRow,
    attempts: &'a [model::Attempt],
    counted: &'a [model::OutboxAlert],
    login: String,
}

pub(super) async fn show(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Path(id): Path<String>,
    Query(DoneQuery { done }): Query<DoneQuery>,
) -> ActionResult {
    let now = deps.app.clock.now();
    let id = parse_id(&id).ok_or_else(lists::unknown_delivery)?;
    let detail = deps.app.store.outbox_one(id).await?.ok_or_else(lists::unknown_delivery)?;
    let login = login_url(&format!("/deliveries/{}", detail.row.id));
    let page = DeliveryPage { now, row: &detail.row, attempts: &detail.attempts, counted: &detail.counted, login };
    Ok(render_page("delivery.html", &frame(Section::Deliveries, &visitor, now, &done), &page))
}

/// `POST /deliveries/{id}/retry`.
pub(super) async fn retry(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let ids: Vec<DeliveryId> = parse_id(&id).into_iter().collect();
    let done = deps.app.store.retry_at(ids, deps.app.clock.now()).await?;
    (deps.app.wake)();
    tracing::info!(delivery = id, done, "delivery retry requested");
    Ok(redirect_back(&id, &fields, if done > 0 { "retried" } else { "not-retried" }))
}

/// `POST /deliveries/{id}/drop`.
pub(super) async fn drop_one(
    ActDeps(deps): ActDeps,
    Path(id): Path<String>,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let ids: Vec<DeliveryId> = parse_id(&id).into_iter().collect();
    let done = deps.app.store.drop_at(ids, deps.app.clock.now()).await?;
    tracing::info!(delivery = id, done, "delivery dropped");
    Ok(redirect_back(&id, &fields, if done > 0 { "dropped" } else { "not-dropped" }))
}

/// `POST /deliveries/retry-dead`: retries all dead letters, or only the ones of one receiver.
pub(super) async fn retry_dead(ActDeps(deps): ActDeps, Extension(fields): Extension<FormFields>) -> ActionResult {
    let receiver = Some(fields.text("receiver")).filter(|name| !name.is_empty());
    let filter = OutboxFilter {
        receiver: receiver.map(ReceiverName::from),
        states: vec![DeliveryState::Dead],
        limit: model::rows::MAX_DELIVERIES_PER_ACTION,
        ..OutboxFilter::default()
    };
    let ids = deps.app.store.delivery_ids(filter).await?;
    let done = deps.app.store.retry_at(ids, deps.app.clock.now()).await?;
    (deps.app.wake)();
    tracing::info!(done, "retry of dead letters requested");
    Ok(redirect("/deliveries?done=retried-all"))
}

fn parse_id(id: &str) -> Option<DeliveryId> {
    id.parse().ok().map(DeliveryId)
}

/// Redirects to the page of the form.
fn redirect_back(id: &str, fields: &FormFields, done: &str) -> Response {
    match fields.text("from") {
        "list" => redirect(&format!("/deliveries?state=dead&done={done}")),
        _ => redirect(&format!("/deliveries/{}?done={done}", crate::ui::template::segment(id))),
    }
}
