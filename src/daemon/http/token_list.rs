//! Tokens as JSON: the list, searched and sorted as on its page, and one with all that is known of it.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::lists::not_found;
use super::part::ListPart;
use super::query::{ListParameters, list_query};
use super::{HttpDeps, HttpError};
use crate::ui::overview::AHEAD_DAYS;
use model::{
    Endpoint, Listed, Record, Resource, SumWindow, Timestamp, Token, TokenFilter, TokenId, TokenSnapshot, TokenSort, TokenSummary,
};

/// Longest text that is searched for.
const MAX_TEXT: usize = 200;

/// A token in the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenView {
    id: String,
    name: String,
    symbol: String,
    /// USD, as the token list has it.
    market_cap: Option<f64>,
    /// Groups of `[watch.groups]` that hold it.
    groups: Vec<String>,
    /// Whether the config watches it.
    watched: bool,
    /// Whether the last complete token list names it.
    listed: bool,
    /// The date of its next unlock, as the source has it.
    next_unlock_date: Option<Timestamp>,
    /// What that is worth, USD.
    next_unlock_value: Option<f64>,
    /// Unlocks of the coming 90 days, and what those are worth whose value is known, USD: of a month or a week where the day that the
    /// source names lies there.
    ahead_count: u64,
    ahead_value: f64,
    /// Those that may come too, since their month or week reaches into these days; in no sum with the others.
    possible_count: u64,
    possible_value: f64,
    /// What unlocks in each of the coming 12 weeks, USD, as far as that is known.
    weeks: Vec<f64>,
}

impl TokenView {
    fn of(deps: &HttpDeps, summary: TokenSummary) -> Self {
        let live = deps.live.load();
        let TokenSummary { token, listed, next, ahead, weeks } = summary;
        let next = next.as_ref().and_then(|next| next.record.unlock());
        let (watched, token) = (live.watch.covers(&token.id), live.watch.placed(token));
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
            ahead_count: ahead.counted.count,
            ahead_value: ahead.counted.value,
            possible_count: ahead.possible.count,
            possible_value: ahead.possible.value,
            weeks: weeks.iter().map(|week| week.value).collect(),
        }
    }
}

/// `GET /api/tokens`.
pub(super) async fn list(State(deps): State<HttpDeps>, uri: Uri, parameters: ListParameters) -> Result<Response, HttpError> {
    let query = list_query(parameters)?;
    query.only(&["q", "sort"])?;
    let now = deps.clock.now();
    let sort = query.sort.as_deref().unwrap_or_default();
    let from: u32 = query.after(|text| text.parse().ok())?.unwrap_or(0);
    let filter = TokenFilter {
        text: query.q.as_deref().unwrap_or_default().trim().chars().take(MAX_TEXT).collect(),
        sort: match sort {
            "" => TokenSort::default(),
            word => TokenSort::parse(word)
                .ok_or_else(|| HttpError::Bad(format!("{word:?} is no sort: there are value, share, next, market_cap, name")))?,
        },
        window: SumWindow::of(now, TimeDelta::days(AHEAD_DAYS)),
        offset: from,
        limit: query.limit(),
    };
    let list = deps.store.token_list(filter).await?;
    let end = u64::from(from).saturating_add(list.rows.len() as u64);
    let next = (end < list.total && !list.rows.is_empty()).then(|| end.to_string());
    let listed = Listed { total: list.total, rows: list.rows };
    let rows = listed.rows.into_iter().map(|summary| TokenView::of(&deps, summary)).collect();
    Ok(ListPart { rows, total: listed.total, next }.answer(&query, &uri))
}

/// What was learned of a token by one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FeedView {
    endpoint: Endpoint,
    /// Last complete, valid answer.
    read_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    /// Since when an answer is held because most records vanished at once.
    held_since: Option<Timestamp>,
}

/// `GET /api/tokens/{id}`: by its slug, with every record that is known, in the shape of the source.
pub(super) async fn one(State(deps): State<HttpDeps>, Path(id): Path<String>) -> Result<Response, HttpError> {
    let id = TokenId::from(id);
    let is_known = deps.store.find_token(id.as_str()).await?.iter().any(|token| token.id == id);
    let snapshot = if is_known { deps.store.tokens(vec![id.clone()], Resource::ALL.to_vec()).await?.pop() } else { None };
    let Some(snapshot) = snapshot else { return Ok(not_found("no token has this slug")) };
    let live = deps.live.load();
    let watched = live.watch.covers(&id);
    let token = live.watch.placed(snapshot.token.clone());
    Ok(Json(token_json(&token, watched, &snapshot)).into_response())
}

fn token_json(token: &Token, watched: bool, snapshot: &TokenSnapshot) -> Value {
    let feeds: Vec<FeedView> = snapshot
        .feeds
        .iter()
        .map(|(endpoint, feed)| FeedView {
            endpoint: *endpoint,
            read_at: feed.read_at,
            tried_at: feed.tried_at,
            failing_since: feed.failing_since,
            held_since: feed.held_since,
        })
        .collect();
    let mut records = Map::new();
    for resource in Resource::ALL {
        let own = snapshot.records_of(resource).map(|tracked| record_json(&tracked.record)).collect();
        records.insert(resource.as_str().to_owned(), Value::Array(own));
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
