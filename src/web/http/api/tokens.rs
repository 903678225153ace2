//! `/api/v1/tokens`: the list of tokens, and one token with all its records.

use axum::Json;
use axum::extract::{Extension, Path};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::operations::TOKEN_LIST;
use super::supply::AheadView;
use crate::http::access::Visitor;
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::http::group::SelectedGroups;
use crate::http::list_page::ListPage;
use crate::http::parameters::{SEARCH, SORT};
use crate::http::request_limits::ReadDeps;
use daemon::token_names::find_token;
use daemon::view::PositionView;
use model::{
    Endpoint, Record, Resource, SUPPLY_WINDOWS, SeenTokens, SupplyAhead, Timestamp, Token, TokenFilter, TokenId, TokenSnapshot,
    TokenSort, TokenSummary, TokenSupply, Watch, supply_windows,
};
use store::{Store, StoreError};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenView {
    id: String,
    name: String,
    symbol: String,
    /// USD, from the token list of the source.
    market_cap: Option<f64>,
    /// The groups of `[watch.groups]` that contain the token.
    groups: Vec<String>,
    /// Whether the config watches the token.
    watched: bool,
    /// Whether the last complete token list contains the token.
    listed: bool,
    /// The nominal date of the next cliff unlock whose nominal date is ahead.
    next_unlock_date: Option<Timestamp>,
    /// USD.
    next_unlock_value: Option<f64>,
    /// The cliff unlocks with a nominal date in the next 90 days.
    ahead_count: u64,
    /// USD. Unlocks without a known value do not count.
    ahead_value: f64,
    /// Further unlocks that may occur in these days, because their date is inexact. They are not part of `ahead_count`.
    possible_count: u64,
    possible_value: f64,
    /// The value of the cliff and linear unlocks in each of the next 12 weeks, USD. Unlocks without a known value do not count.
    weeks: Vec<f64>,
    ahead: AheadView,
    /// Tokens that unlock linearly per day now.
    linear_per_day: Option<f64>,
    /// The position, compared with the next cliff unlock. Only for readers who may see positions.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<PositionView>,
}

impl TokenView {
    /// `watch` has no positions if the reader must not see them.
    fn of(summary: TokenSummary, watch: &Watch, now: Timestamp) -> Self {
        let TokenSummary { token, listed, next, supply, weeks, .. } = summary;
        let next = next.as_ref().and_then(|next| next.record.unlock());
        let SupplyAhead { cliff, inexact, .. } = supply.windows.last().copied().unwrap_or_default();
        let (watched, token) = (watch.covers(&token.id), watch.placed(token));
        let price = supply.price.map(|price| price.usd);
        Self {
            id: token.id.to_string(),
            name: token.name().to_owned(),
            symbol: token.symbol().to_owned(),
            market_cap: token.item.market_cap.copied(),
            groups: token.groups.to_vec(),
            watched,
            listed,
            next_unlock_date: next.and_then(|event| event.unlock_date.copied()),
            next_unlock_value: next.and_then(model::wire::UnlockEvent::cliff_value),
            ahead_count: cliff.count,
            ahead_value: cliff.value,
            possible_count: inexact.count,
            possible_value: inexact.value,
            weeks: weeks.iter().map(|week| week.total().value).collect(),
            ahead: AheadView::of(&supply, token.market_cap(), now),
            linear_per_day: supply.linear_per_day(),
            position: PositionView::of(&token, price, next.and_then(model::wire::UnlockEvent::amount)),
        }
    }
}

/// `GET /api/v1/tokens`.
pub(super) async fn list(
    ReadDeps(deps): ReadDeps,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, WebError> {
    let query = TOKEN_LIST.query(&uri)?;
    let now = deps.app.clock.now();
    let live = deps.app.live.load_full();
    let mut seen = query.cursor(|text| SeenTokens::from_bytes(&URL_SAFE_NO_PAD.decode(text).ok()?))?.unwrap_or_default();
    let filter = TokenFilter {
        text: query.value_or_empty(SEARCH).trim().to_owned(),
        tokens: SelectedGroups::of(&query, &live)?.narrow(&deps, Vec::new()).await?,
        sort: TokenSort::parse(query.value_or_empty(SORT)).unwrap_or_default(),
        at: now,
        offset: 0,
        seen: seen.clone(),
        limit: query.limit(),
    };
    let list = deps.app.store.token_list(filter).await?;
    list.rows.iter().for_each(|row| seen.insert(row.number));
    let next = (list.has_more && !list.rows.is_empty()).then(|| URL_SAFE_NO_PAD.encode(seen.to_bytes()));
    let watch = visitor.watch(&live.watch);
    let rows = list.rows.into_iter().map(|summary| TokenView::of(summary, &watch, now)).collect();
    Ok(ListPage { rows, total: list.total, next, previous: None }.response(&query, &uri))
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FeedView {
    endpoint: Endpoint,
    /// The time of the last complete, valid response.
    read_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    /// The time since which a response is held because most records are missing.
    held_since: Option<Timestamp>,
}

/// `GET /api/v1/tokens/{id}`: one token with all its records in the format of the source. The id is the slug or the ticker.
pub(super) async fn show(
    ReadDeps(deps): ReadDeps,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, WebError> {
    let id = find_token(&deps.app.store, &id).await?;
    let watch = visitor.watch(&deps.app.live.load().watch);
    match token_details(&deps.app.store, &watch, id, &Resource::ALL, deps.app.clock.now()).await? {
        Some(details) => Ok(Json(details).into_response()),
        None => Err(WebError::new(ErrorCode::UnknownToken, "no token has this slug or ticker")),
    }
}

/// Returns the JSON of a token with its records of some types. `None` if the database does not have the token. `watch` has no positions
/// if the reader must not see them.
///
/// # Errors
///
/// Fails if the database cannot be read.
pub async fn token_details(
    store: &Store,
    watch: &Watch,
    id: TokenId,
    resources: &[Resource],
    now: Timestamp,
) -> Result<Option<Value>, StoreError> {
    let Some(snapshot) = store.tokens(vec![id.clone()], resources.to_vec()).await?.pop() else { return Ok(None) };
    let supply = store.token_supply(id.clone(), now, supply_windows(now)).await?;
    let supply = supply.unwrap_or_else(|| TokenSupply::unread(SUPPLY_WINDOWS.len()));
    let token = watch.placed(snapshot.token.clone());
    let mut json = token_json(&token, watch.covers(&id), &snapshot, resources);
    json["ahead"] = serde_json::to_value(AheadView::of(&supply, token.market_cap(), now)).unwrap_or_default();
    json["linearPerDay"] = supply.linear_per_day().into();
    if let Some(position) = PositionView::of(&token, supply.price.map(|price| price.usd), None) {
        json["position"] = serde_json::to_value(position).unwrap_or_default();
    }
    Ok(Some(json))
}

fn token_json(token: &Token, watched: bool, snapshot: &TokenSnapshot, resources: &[Resource]) -> Value {
    let feeds: Vec<FeedView> = snapshot
        .feeds
        .iter()
        .map(|(endpoint, feed)| FeedView {
            endpoint: *endpoint,
            read_at: feed.read_at,
            tried_at: feed.tried_at,
            failing_since: feed.failing_since,
            held_since: feed.hold.map(|hold| hold.since),
        })
        .collect();
    let mut records = Map::new();
    for resource in resources {
        let values = snapshot.records_of(*resource).map(|tracked| record_json(&tracked.record)).collect();
        records.insert(resource.as_str().to_owned(), Value::Array(values));
    }
    json!({
        "id": token.id.as_str(),
        "name": token.name(),
        "symbol": token.symbol(),
        "groups": &*token.groups,
        "watched": watched,
        "item": token.item,
        "feeds": feeds,
        "records": records,
    })
}

fn record_json(record: &Record) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}
