//! The list of the actions of users.

use axum::extract::Extension;
use axum::http::Uri;
use axum::response::Html;

use super::{RequestVisitor, frame};
use crate::http::api::{lists, operations::AUDIT};
use crate::http::error::PageResult;
use crate::http::parameters::{AFTER, AUDIT_TYPE, AUTHOR};
use crate::http::query::ListQuery;
use crate::http::request_limits::ReadDeps;
use crate::ui::audit::{AuditLine, AuditPage, words};
use crate::ui::page::{PAGE_ROWS, Section, render};
use model::EventType;

/// The path of the page.
const PATH: &str = "/audit";

/// `GET /audit`.
pub(super) async fn list(ReadDeps(deps): ReadDeps, Extension(visitor): RequestVisitor, uri: Uri) -> PageResult {
    let now = deps.app.clock.now();
    let query = ListQuery::from_page(&[AUDIT.parameters, &[AFTER]].concat(), &uri);
    let listed = lists::audit_page(&deps, &query, PAGE_ROWS).await?;
    let page = AuditPage {
        now,
        lines: listed.rows.iter().map(AuditLine::of).collect(),
        total: listed.total,
        authors: deps.app.store.audit_actors().await?.into_iter().filter(|name| !name.is_empty()).collect(),
        author: query.value_or_empty(AUTHOR).to_owned(),
        types: EventType::OF_USERS.map(|kind| (kind.as_str(), words(kind).0)).to_vec(),
        kind: query.value_or_empty(AUDIT_TYPE).to_owned(),
        range: query.range().view(|range| query.clone().with_range(range).first_page(PATH)),
        first: query.text(AFTER).map(|_| query.first_page(PATH)),
        next: listed.next.map(|after| query.clone().with(AFTER, &after).href(PATH)),
    };
    Ok(Html(render("audit.html", &frame(Section::Audit, &visitor, now, ""), &page)))
}
