//! A page of a list as a JSON response: the rows, the total number of rows, and the link to the next page.
//!
//! The body is a bare array because scripts rely on it, and headers contain the rest. With `paged=true` the body is an object with
//! `total`, `next`, and `items`.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::query::ListQuery;
use model::Listed;

/// The header that indicates whether another page follows.
const HAS_MORE: HeaderName = HeaderName::from_static("cliffwatch-has-more");
/// The header with the number of matching rows on all pages.
const TOTAL: HeaderName = HeaderName::from_static("cliffwatch-total");

pub(super) struct ListPage<T> {
    pub rows: Vec<T>,
    /// The number of matching rows on all pages.
    pub total: u64,
    /// The cursor of the next page. `None` on the last page.
    pub next: Option<String>,
}

impl<T> ListPage<T> {
    /// Builds the page from a query with a limit of `limit` + 1 rows, which the size limit of a list may have cut. `cursor` returns the
    /// cursor after a row.
    pub fn of(listed: Listed<T>, limit: u32, cursor: impl Fn(&T) -> String) -> Self {
        let Listed { mut rows, total, is_cut } = listed;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = is_cut || rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(cursor);
        Self { rows, total, next }
    }

    /// Builds the page from all rows, starting at the zero-based index `offset`.
    pub fn from_all(rows: Vec<T>, offset: usize, limit: u32) -> Self {
        let total = rows.len();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let end = offset.saturating_add(limit).min(total);
        let rows: Vec<T> = rows.into_iter().skip(offset).take(limit).collect();
        Self { rows, total: total as u64, next: (end < total).then(|| end.to_string()) }
    }
}

impl<T: Serialize> ListPage<T> {
    pub fn response(self, query: &ListQuery, uri: &Uri) -> Response {
        let next = self.next.as_deref().map(|cursor| url_of_page(uri, cursor));
        let mut headers = HeaderMap::new();
        headers.insert(HAS_MORE, HeaderValue::from_static(if next.is_some() { "true" } else { "false" }));
        headers.insert(TOTAL, HeaderValue::from(self.total));
        if let Some(link) = next.as_ref().and_then(|next| HeaderValue::try_from(format!("<{next}>; rel=\"next\"")).ok()) {
            headers.insert(header::LINK, link);
        }
        match query.is_paged() {
            true => (headers, Json(json!({ "total": self.total, "next": next, "items": self.rows }))).into_response(),
            false => (headers, Json(self.rows)).into_response(),
        }
    }
}

/// Returns the URL of another page of the same list.
fn url_of_page(uri: &Uri, cursor: &str) -> String {
    let given = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let filters = given.filter(|(name, _)| name != "after");
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(filters).append_pair("after", cursor).finish();
    format!("{}?{query}", uri.path())
}

#[cfg(test)]
mod tests;
