//! A page of a list as a JSON response: the rows, the total number of rows, and the links to the pages next to it.
//!
//! The body is a bare array because scripts rely on it, and headers contain the rest. With `paged=true` the body is an object with
//! `total`, `next`, `previous`, and `items`.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::parameters::{AFTER, BEFORE, Parameter};
use super::query::ListQuery;
use model::{ListPosition, Listed};

/// The header that indicates whether another page follows.
pub(super) const HAS_MORE: HeaderName = HeaderName::from_static("cliffwatch-has-more");
/// The header with the number of matching rows on all pages.
pub(super) const TOTAL: HeaderName = HeaderName::from_static("cliffwatch-total");

pub(super) struct ListPage<T> {
    pub rows: Vec<T>,
    /// The number of matching rows on all pages.
    pub total: u64,
    /// The cursor of the next page. `None` on the last page.
    pub next: Option<String>,
    /// The cursor of the rows before this page, which may not exist yet. `None` if the list has no such cursors.
    pub previous: Option<String>,
}

impl<T> ListPage<T> {
    /// Builds the page of a list in the order of the commits from a query with a limit of `limit` + 1 rows, which the size limit of a list
    /// may have cut.
    pub fn of_numbered(listed: Listed<T>, limit: u32, position: ListPosition, number: impl Fn(&T) -> i64) -> Self {
        let mut page = if position.is_from_before() {
            let Listed { mut rows, total, .. } = listed;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            // The row beyond the limit is the one farthest from the position.
            rows.drain(..rows.len().saturating_sub(limit));
            let next = rows.last().map(|row| number(row).to_string());
            Self { rows, total, next, previous: None }
        } else {
            Self::of(listed, limit, |row| number(row).to_string())
        };
        page.previous = page.rows.first().map(number).or(position.before).map(|number| number.to_string());
        page
    }

    /// Builds the page from a query with a limit of `limit` + 1 rows, which the size limit of a list may have cut. `cursor` returns the
    /// cursor after a row.
    pub fn of(listed: Listed<T>, limit: u32, cursor: impl Fn(&T) -> String) -> Self {
        let Listed { mut rows, total, is_cut } = listed;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = is_cut || rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(cursor);
        Self { rows, total, next, previous: None }
    }
}

impl<T: Serialize> ListPage<T> {
    pub fn response(self, query: &ListQuery, uri: &Uri) -> Response {
        let next = self.next.as_deref().map(|cursor| url_of_page(uri, AFTER, cursor));
        let previous = self.previous.as_deref().map(|cursor| url_of_page(uri, BEFORE, cursor));
        let mut headers = HeaderMap::new();
        headers.insert(HAS_MORE, HeaderValue::from_static(if next.is_some() { "true" } else { "false" }));
        headers.insert(TOTAL, HeaderValue::from(self.total));
        for (url, relation) in [(&next, "next"), (&previous, "prev")] {
            let link = url.as_ref().map(|url| format!("<{url}>; rel=\"{relation}\""));
            headers.extend(link.and_then(|link| HeaderValue::try_from(link).ok()).map(|link| (header::LINK, link)));
        }
        match query.is_paged() {
            true => (headers, Json(json!({ "total": self.total, "next": next, "previous": previous, "items": self.rows })))
                .into_response(),
            false => (headers, Json(self.rows)).into_response(),
        }
    }
}

/// Returns the URL of another page of the same list.
fn url_of_page(uri: &Uri, parameter: Parameter, cursor: &str) -> String {
    let given = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let filters = given.filter(|(name, _)| name != AFTER.name && name != BEFORE.name);
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let query = query.extend_pairs(filters).append_pair(parameter.name, cursor).finish();
    format!("{}?{query}", uri.path())
}

#[cfg(test)]
mod tests;
