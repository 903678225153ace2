//! The list of changes.

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Html;

use crate::http::HttpDeps;
use crate::http::access::Visitor;
use crate::http::api::operations::CHANGES;
use crate::http::error::{PageResult, WebError};
use crate::http::group::SelectedGroups;
use crate::http::names;
use crate::http::parameters::{KIND, OFFSET};
use crate::http::query::ListQuery;
use crate::http::time_range::PeriodFilter;
use crate::ui::changes;
use crate::ui::page::{PAGE_ROWS, PageFrame, Section};
use model::{ChangeFilter, ChangeKind, Listed, meant};

/// `GET /changes`. Accepts the slug, ticker, or name of a token.
pub(super) async fn list(State(deps): State<HttpDeps>, Extension(visitor): Extension<Visitor>, uri: Uri) -> PageResult {
    let now = deps.app.clock.now();
    let query = ListQuery::from_page(&[CHANGES.parameters, &[OFFSET]].concat(), &uri);
    let kind = query.text(KIND).map(|word| ChangeKind::parse(word).ok_or_else(|| unknown_kind(word))).transpose()?;
    let token = names::token(&deps, &query).await?;
    let live = deps.app.live.load_full();
    let groups = SelectedGroups::of(&query, &live)?;
    let PeriodFilter { since, until } = query.time_range(now)?;
    let offset = query.integer(OFFSET)?.unwrap_or(0);
    let filter = ChangeFilter {
        tokens: groups.narrow(&deps, token.iter().cloned().collect()).await?,
        kinds: kind.into_iter().collect(),
        since,
        until,
        offset,
        limit: PAGE_ROWS,
        ..ChangeFilter::default()
    };
    let Listed { rows, total, .. } = deps.app.store.changes_listed(filter.clone()).await?;
    let picker = groups.picker(Section::Changes, &query, &live);
    let frame = PageFrame::of(Section::Changes, now).for_visitor(&visitor).with_groups(picker);
    Ok(Html(changes::page(&rows, &filter, token.as_ref(), &query.range(), total, &frame)))
}

fn unknown_kind(word: &str) -> WebError {
    let near = meant(word, &ChangeKind::WORDS).map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
    WebError::invalid_parameter(format!("{word:?} is not a kind of change{near}"))
}
