//! The list of changes: asks the store, renders.

use axum::extract::{Extension, Query, State};
use axum::response::Html;
use serde::Deserialize;

use super::HttpDeps;
use super::access::Visitor;
use super::page::{PageError, PageResult};
use super::range::ListTime;
use crate::ui::changes;
use crate::ui::page::{PAGE_ROWS, PageFrame, Section};
use crate::ui::range::RangeWords;
use model::{ChangeFilter, ChangeKind, TokenId, closest};

/// `?token=arb&kind=resized&since=7d&offset=50`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChangesQuery {
    token: String,
    kind: String,
    since: String,
    from: String,
    to: String,
    offset: Option<u32>,
}

/// `GET /changes`. A token may be named by its slug, its ticker or its name.
pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<ChangesQuery>,
) -> PageResult {
    let now = deps.clock.now();
    let kind = match query.kind.as_str() {
        "" => None,
        word => Some(ChangeKind::parse(word).ok_or_else(|| unknown_kind(word))?),
    };
    let token = match query.token.trim() {
        "" => None,
        text => Some(deps.store.find_token(text).await?.first().map_or_else(|| TokenId::from(text), |token| token.id.clone())),
    };
    let words = RangeWords::of(&query.since, &query.from, &query.to);
    let ListTime { since, until } = ListTime::read(&words, now)?;
    let offset = query.offset.unwrap_or(0);
    let filter = ChangeFilter { token, kind, since, until, offset, limit: PAGE_ROWS, ..ChangeFilter::default() };
    let rows = deps.store.changes(filter.clone()).await?;
    let total = deps.store.count_changes(filter.clone()).await?;
    Ok(Html(changes::page(&rows, &filter, &words, total, &PageFrame::of(Section::Changes, now).seen_by(&visitor))))
}

fn unknown_kind(word: &str) -> PageError {
    let near =
        closest(word, ChangeKind::ALL.map(ChangeKind::as_str)).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
    PageError::Bad(format!("There is no kind of change {word:?}.{near}"))
}
