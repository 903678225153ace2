//! Deliveries: what waits, what was given up, what was accepted; sending again and dropping.

use axum::extract::{Extension, Path, Query, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::alerts::DoneQuery;
use super::{Asked, DeskResult, frame, login_to, shown};
use crate::http::access::{forms::FormFields, login::see};
use crate::http::page::PageError;
use crate::http::part::ListPart;
use crate::http::query::ListQuery;
use crate::http::{HttpDeps, lists};
use crate::ui::page::{Choice, Section, href};
use crate::ui::range::{RangeView, RangeWords};
use crate::ui::view::OutboxView;
use model::{DeliveryId, DeliveryState, OutboxFilter, OutboxRow, ReceiverName, Timestamp, digest};

/// Deliveries on a page of the list.
const ROWS: u32 = 50;
/// Dead letters that are sent again at once.
const MAX_AT_ONCE: u32 = 100_000;

/// The filters, as a form sends them.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct DeliveriesQuery {
    state: String,
    receiver: String,
    since: String,
    from: String,
    to: String,
    after: String,
    done: String,
}

impl DeliveriesQuery {
    fn href(&self, path: &str, state: &str, after: &str) -> String {
        self.href_of(path, state, &self.range(), after)
    }

    fn href_of(&self, path: &str, state: &str, range: &RangeWords, after: &str) -> String {
        let [since, from, to] = range.parameters();
        href(path, &[("state", state), ("receiver", &self.receiver), since, from, to, ("after", after)])
    }

    fn range(&self) -> RangeWords {
        RangeWords::of(&self.since, &self.from, &self.to)
    }
}

#[derive(Serialize)]
struct DeliveriesPage {
    now: Timestamp,
    query: DeliveriesQuery,
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
    Extension(visitor): Asked,
    Query(query): Query<DeliveriesQuery>,
) -> DeskResult {
    let now = deps.clock.now();
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let range = query.range();
    let asked = ListQuery {
        state: given(&query.state),
        receiver: given(&query.receiver),
        since: given(&range.since),
        from: given(&range.from),
        to: given(&range.to),
        after: given(&query.after),
        limit: Some(ROWS),
        ..ListQuery::default()
    };
    let listed = deps.store.outbox_listed(lists::outbox_filter(&asked, now)?).await?;
    let part = ListPart::of(listed, ROWS, |row| row.id.to_string());
    let counts = deps.store.receiver_counts().await?;
    let is_meant = |name: &ReceiverName| query.receiver.is_empty() || name.as_str() == query.receiver;
    let count = |state| counts.iter().filter(|of| is_meant(&of.receiver)).map(|of| of.of(state)).sum::<u64>();
    let choice = |state: DeliveryState| {
        let word = state.as_str();
        let name = format!("{}{}", word.get(..1).unwrap_or_default().to_uppercase(), word.get(1..).unwrap_or_default());
        Choice { count: Some(count(state)), ..Choice::new(name, query.href("/deliveries", word, ""), query.state == word) }
    };
    let all = Choice::new("All", query.href("/deliveries", "", ""), query.state.is_empty());
    let live = deps.live.load_full();
    let receivers: Vec<String> = live.config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let overview = deps.store.notification_overview(now, now - digest::DAY).await?;
    let page = DeliveriesPage {
        now,
        states: std::iter::once(all).chain(DeliveryState::ALL.into_iter().map(choice)).collect(),
        range: range.view(|range| query.href_of("/deliveries", &query.state, range, "")),
        outbox: OutboxView::all(&receivers, &counts, &overview, now),
        receivers,
        dead: count(DeliveryState::Dead),
        rows: part.rows,
        total: part.total,
        first: (!query.after.is_empty()).then(|| query.href("/deliveries", &query.state, "")),
        next: part.next.map(|after| query.href("/deliveries", &query.state, &after)),
        query: query.clone(),
    };
    Ok(shown("deliveries.html", &frame(Section::Deliveries, &visitor, now, &query.done), &page))
}

#[derive(Serialize)]
struct DeliveryPage<'a> {
    now: Timestamp,
    row: &'a OutboxRow,
    attempts: &'a [model::Attempt],
    counted: &'a [model::OutboxAlert],
    login: String,
}

pub(super) async fn one(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Path(id): Path<String>,
    Query(DoneQuery { done }): Query<DoneQuery>,
) -> DeskResult {
    let now = deps.clock.now();
    let detail = match number(&id) {
        Some(id) => deps.store.outbox_one(id).await?,
        None => None,
    };
    let Some(detail) = detail else {
        return Err(PageError::NotFound {
            title: "No such delivery".to_owned(),
            text: "There is no delivery with this number, or it was forgotten since ([store] retention in the config)."
                .to_owned(),
            search: None,
        });
    };
    let login = login_to(&format!("/deliveries/{}", detail.row.id));
    let page = DeliveryPage { now, row: &detail.row, attempts: &detail.attempts, counted: &detail.counted, login };
    Ok(shown("delivery.html", &frame(Section::Deliveries, &visitor, now, &done), &page))
}

/// `POST /deliveries/{id}/retry`.
pub(super) async fn retry(
    State(deps): State<HttpDeps>,
    Path(id): Path<String>,
    Extension(fields): Extension<FormFields>,
) -> DeskResult {
    let ids: Vec<DeliveryId> = number(&id).into_iter().collect();
    let done = deps.store.retry_at(ids, deps.clock.now()).await?;
    (deps.wake)();
    tracing::info!(delivery = id, done, "a delivery was made due by hand");
    Ok(back(&id, &fields, if done > 0 { "retried" } else { "not-retried" }))
}

/// `POST /deliveries/{id}/drop`.
pub(super) async fn drop_one(
    State(deps): State<HttpDeps>,
    Path(id): Path<String>,
    Extension(fields): Extension<FormFields>,
) -> DeskResult {
    let ids: Vec<DeliveryId> = number(&id).into_iter().collect();
    let done = deps.store.drop_at(ids, deps.clock.now()).await?;
    tracing::info!(delivery = id, done, "a delivery was dropped by hand");
    Ok(back(&id, &fields, if done > 0 { "dropped" } else { "not-dropped" }))
}

/// `POST /deliveries/retry-dead`: all dead letters, or those to one receiver.
pub(super) async fn retry_dead(State(deps): State<HttpDeps>, Extension(fields): Extension<FormFields>) -> DeskResult {
    let receiver = Some(fields.text("receiver")).filter(|name| !name.is_empty());
    let filter = OutboxFilter {
        receiver: receiver.map(ReceiverName::from),
        states: vec![DeliveryState::Dead],
        limit: MAX_AT_ONCE,
        ..OutboxFilter::default()
    };
    let ids = deps.store.outbox(filter).await?.into_iter().map(|row| row.id).collect();
    let done = deps.store.retry_at(ids, deps.clock.now()).await?;
    (deps.wake)();
    tracing::info!(done, "dead letters were made due by hand");
    Ok(see("/deliveries?done=retried-all"))
}

fn number(id: &str) -> Option<DeliveryId> {
    id.parse().ok().map(DeliveryId)
}

/// To the page that the form was on.
fn back(id: &str, fields: &FormFields, done: &str) -> Response {
    match fields.text("from") {
        "list" => see(&format!("/deliveries?state=dead&done={done}")),
        _ => see(&format!("/deliveries/{}?done={done}", crate::ui::template::segment(id))),
    }
}
