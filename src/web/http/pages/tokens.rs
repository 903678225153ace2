//! The list of tokens, and the page of one token.

use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{Html, IntoResponse as _};

use super::ActionResult;
use crate::http::access::Visitor;
use crate::http::api::operations::TOKEN_LIST;
use crate::http::error::{PageResult, WebError};
use crate::http::error_code::ErrorCode;
use crate::http::group::SelectedGroups;
use crate::http::parameters::{OFFSET, SEARCH, SORT};
use crate::http::query::ListQuery;
use crate::http::{HttpDeps, api::lists::alert_views};
use crate::ui::page::{PAGE_ROWS, PageFrame, Section};
use crate::ui::template::segment;
use crate::ui::{token, tokens};
use chart::curve::CurveBy;
use daemon::token_names::find_token;
use model::corrections::Corrections;
use model::{
    AlertFilter, ChangeFilter, ChangeRow, Listed, Resource, SeenTokens, Timestamp, TokenFilter, TokenId, TokenSnapshot,
    TokenSort, TokenSupply, VersionRow, phrase,
};

/// The length limit of a search text. Longer texts are truncated.
const MAX_TEXT: usize = 200;
/// The resources on the page of a token.
const RESOURCES: [Resource; 3] = [Resource::Unlock, Resource::Burn, Resource::Buyback];

/// `GET /tokens`. Invalid sort orders mean the default.
pub(super) async fn list(State(deps): State<HttpDeps>, Extension(visitor): Extension<Visitor>, uri: Uri) -> PageResult {
    let now = deps.app.clock.now();
    let query = ListQuery::from_page(&[TOKEN_LIST.parameters, &[OFFSET]].concat(), &uri);
    let live = deps.app.live.load_full();
    let groups = SelectedGroups::of(&query, &live)?;
    let filter = TokenFilter {
        tokens: groups.narrow(&deps, Vec::new()).await?,
        text: query.value_or_empty(SEARCH).chars().take(MAX_TEXT).collect(),
        sort: TokenSort::parse(query.value_or_empty(SORT)).unwrap_or_default(),
        at: now,
        offset: query.integer(OFFSET)?.unwrap_or(0),
        seen: SeenTokens::default(),
        limit: PAGE_ROWS,
    };
    let mut list = deps.app.store.token_list(filter.clone()).await?;
    let watch = visitor.watch(&live.watch);
    list.rows.iter_mut().for_each(|row| watch.place(&mut row.token));
    let stale_price = live.config.source.stale_price.delta();
    let picker = groups.picker(Section::Tokens, &query, &live);
    let frame = PageFrame::of(Section::Tokens, now).for_visitor(&visitor).with_groups(picker);
    Ok(Html(tokens::page(&list, &filter, stale_price, &frame)))
}

/// `GET /tokens/{id}`. The id is the slug; a ticker redirects to it.
pub(super) async fn show(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    Path(text): Path<String>,
    uri: Uri,
) -> ActionResult {
    let now = deps.app.clock.now();
    let id = find_token(&deps.app.store, &text).await?;
    if id.as_str() != text {
        // Temporary, because another token can get the same ticker.
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("/tokens/{}{query}", segment(id.as_str()));
        return Ok((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, path)]).into_response());
    }
    let snapshot = deps.app.store.tokens(vec![id.clone()], RESOURCES.to_vec()).await?.pop();
    let unknown = || WebError::new(ErrorCode::UnknownToken, format!("no token has the slug {}", phrase::name(id.as_str())));
    let mut snapshot = snapshot.ok_or_else(unknown)?;
    visitor.watch(&deps.app.live.load().watch).place(&mut snapshot.token);
    let frame = PageFrame::of(Section::Tokens, now).for_visitor(&visitor);
    let page = token_page(&deps, snapshot, areas(&uri), frame, now).await?;
    Ok(page.into_response())
}

/// Returns the areas of the chart: `by=recipient` or, for all other addresses, allocations.
fn areas(uri: &Uri) -> CurveBy {
    let query = uri.query().unwrap_or_default().as_bytes();
    let is_by_recipient = url::form_urlencoded::parse(query).any(|(name, value)| name == "by" && value == token::BY_RECIPIENT);
    if is_by_recipient { CurveBy::Recipient } else { CurveBy::Allocation }
}

async fn token_page(deps: &HttpDeps, snapshot: TokenSnapshot, by: CurveBy, frame: PageFrame, now: Timestamp) -> PageResult {
    let id = snapshot.token.id.clone();
    let filter = ChangeFilter { tokens: Some(vec![id.clone()]), limit: token::CHANGE_ROWS, ..ChangeFilter::default() };
    let Listed { rows: changes, total: changes_total, .. } = deps.app.store.changes_listed(filter).await?;
    let corrections = corrections(deps, &id, changes_total, now).await?;
    let alerts = AlertFilter { token: Some(id.clone()), limit: token::ALERT_ROWS, ..AlertFilter::default() };
    let alerts = deps.app.store.alerts(alerts).await?;
    let alerts = alert_views(deps, &alerts).await?;
    let versions = versions(deps, &id, &changes).await?;
    let windows = token::supply::windows(now);
    let unread = TokenSupply::unread(windows.len());
    let supply = deps.app.store.token_supply(id.clone(), now, windows).await?.unwrap_or(unread);
    let live = deps.app.live.load_full();
    let with_groups = live.watch.placed(snapshot.token.clone());
    let parts = token::TokenParts {
        now,
        snapshot: &snapshot,
        supply: &supply,
        stale_price: live.config.source.stale_price.delta(),
        changes: &changes,
        changes_total,
        corrections,
        versions: &versions,
        alerts,
        is_watched: live.watch.covers(&id),
        groups: with_groups.groups.iter().cloned().collect(),
        by,
    };
    Ok(Html(token::page(parts, frame)))
}

/// Returns the corrections of the last year. `changes` is the number of all changes of the token.
async fn corrections(deps: &HttpDeps, id: &TokenId, changes: u64, now: Timestamp) -> Result<Corrections, WebError> {
    if changes == 0 {
        return Ok(Corrections::default());
    }
    let since = now.checked_sub_signed(token::CORRECTION_PERIOD).unwrap_or(Timestamp::MIN_UTC);
    let by_token = deps.app.store.corrections(vec![id.clone()], since).await?;
    Ok(Corrections::within(by_token.into_values().flatten(), token::CORRECTION_PERIOD, now))
}

/// Returns the stored versions of the records. Empty without a change of the schedule, because the page then does not show them.
async fn versions(deps: &HttpDeps, id: &TokenId, changes: &[ChangeRow]) -> Result<Vec<VersionRow>, WebError> {
    if changes.iter().all(|row| row.resource != Resource::Unlock) {
        return Ok(Vec::new());
    }
    Ok(deps.app.store.versions(id.clone()).await?)
}
