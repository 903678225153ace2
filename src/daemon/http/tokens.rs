//! All tokens, and one of them: asks the store, renders.

use axum::extract::{Extension, Path, Query, State};
use axum::response::Html;
use chrono::TimeDelta;
use serde::Deserialize;

use super::access::Visitor;
use super::page::{PageError, PageResult};
use super::{HttpDeps, lists::alert_views};
use crate::ui::overview::AHEAD_DAYS;
use crate::ui::page::{PAGE_ROWS, PageFrame, Section};
use crate::ui::{token, tokens};
use model::{
    AlertFilter, ChangeFilter, ChangeRow, Resource, SumWindow, Timestamp, TokenFilter, TokenId, TokenSnapshot, TokenSort,
    VersionRow, format,
};

/// Longest text that is searched for.
const MAX_TEXT: usize = 200;
/// What a token's page shows records of.
const RESOURCES: [Resource; 3] = [Resource::Unlock, Resource::Burn, Resource::Buyback];

/// `?q=arb&sort=next&offset=50`. What is no such word counts as the default.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokensQuery {
    q: String,
    sort: String,
    offset: Option<u32>,
}

/// `GET /tokens`.
pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<TokensQuery>,
) -> PageResult {
    let now = deps.clock.now();
    let filter = TokenFilter {
        text: query.q.trim().chars().take(MAX_TEXT).collect(),
        sort: TokenSort::parse(&query.sort).unwrap_or_default(),
        window: SumWindow::of(now, TimeDelta::days(AHEAD_DAYS)),
        offset: query.offset.unwrap_or(0),
        limit: PAGE_ROWS,
    };
    let list = deps.store.token_list(filter.clone()).await?;
    Ok(Html(tokens::page(&list, &filter, &PageFrame::of(Section::Tokens, now).seen_by(&visitor))))
}

/// `GET /tokens/{id}`: by its slug.
pub(super) async fn one(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> PageResult {
    let now = deps.clock.now();
    let id = TokenId::from(id);
    let is_known = deps.store.find_token(id.as_str()).await?.iter().any(|token| token.id == id);
    let snapshot = if is_known { deps.store.tokens(vec![id.clone()], RESOURCES.to_vec()).await?.pop() } else { None };
    let Some(snapshot) = snapshot else {
        return Err(PageError::NotFound {
            title: "No such token".to_owned(),
            text: format!("No token has the slug {}. Perhaps it is known by another:", format::name(id.as_str())),
            search: Some(id.as_str().chars().take(MAX_TEXT).collect()),
        });
    };
    token_page(&deps, snapshot, PageFrame::of(Section::Tokens, now).seen_by(&visitor), now).await
}

async fn token_page(deps: &HttpDeps, snapshot: TokenSnapshot, frame: PageFrame, now: Timestamp) -> PageResult {
    let id = snapshot.token.id.clone();
    let filter = ChangeFilter { token: Some(id.clone()), limit: token::CHANGE_ROWS, ..ChangeFilter::default() };
    let changes = deps.store.changes(filter.clone()).await?;
    let changes_total = deps.store.count_changes(filter).await?;
    let alerts = AlertFilter { token: Some(id.clone()), limit: token::ALERT_ROWS, ..AlertFilter::default() };
    let alerts = deps.store.alerts(alerts).await?;
    let alerts = alert_views(deps, &alerts).await?;
    let versions = versions(deps, &id, &changes).await?;
    let live = deps.live.load_full();
    let placed = live.watch.placed(snapshot.token.clone());
    let parts = token::TokenParts {
        now,
        snapshot: &snapshot,
        changes: &changes,
        changes_total,
        versions: &versions,
        alerts,
        is_watched: live.watch.covers(&id),
        groups: placed.groups.iter().cloned().collect(),
    };
    Ok(Html(token::page(parts, frame)))
}

/// What is kept of its records, where its schedule was corrected: else nobody reads them.
async fn versions(deps: &HttpDeps, id: &TokenId, changes: &[ChangeRow]) -> Result<Vec<VersionRow>, PageError> {
    if changes.iter().all(|row| row.resource != Resource::Unlock) {
        return Ok(Vec::new());
    }
    Ok(deps.store.versions(id.clone()).await?)
}
