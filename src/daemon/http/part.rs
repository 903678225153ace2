//! A part of a list as an answer: the rows, how many there are in all, and where the next part is. Pure.
//!
//! A list was always a bare array, and scripts read it as that: so it stays one, and headers say the rest. Whoever asks with
//! `paged=true` gets an object with `total`, `next` and `items`.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::query::ListQuery;
use model::Listed;

/// Whether there is more than what an answer holds.
const HAS_MORE: HeaderName = HeaderName::from_static("cliffwatch-has-more");
/// How many rows pass the filter.
const TOTAL: HeaderName = HeaderName::from_static("cliffwatch-total");

/// Some rows of a list.
pub(super) struct ListPart<T> {
    pub rows: Vec<T>,
    /// Of how many.
    pub total: u64,
    /// The place after the last of them; none where there is no more.
    pub next: Option<String>,
}

impl<T> ListPart<T> {
    /// Of a list that was asked for one row more than `limit`. `place` names the place of a row.
    pub fn of(listed: Listed<T>, limit: u32, place: impl Fn(&T) -> String) -> Self {
        let Listed { mut rows, total } = listed;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(place);
        Self { rows, total, next }
    }

    /// Of a list that is at hand as a whole, from the row with this number on.
    pub fn from_whole(rows: Vec<T>, from: usize, limit: u32) -> Self {
        let total = rows.len();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let end = from.saturating_add(limit).min(total);
        let rows: Vec<T> = rows.into_iter().skip(from).take(limit).collect();
        Self { rows, total: total as u64, next: (end < total).then(|| end.to_string()) }
    }
}

impl<T: Serialize> ListPart<T> {
    /// The answer to a request of this address.
    pub fn answer(self, query: &ListQuery, uri: &Uri) -> Response {
        let next = self.next.as_deref().map(|place| address_after(uri, place));
        let mut headers = HeaderMap::new();
        headers.insert(HAS_MORE, HeaderValue::from_static(if next.is_some() { "true" } else { "false" }));
        headers.insert(TOTAL, HeaderValue::from(self.total));
        if let Some(link) = next.as_ref().and_then(|next| HeaderValue::try_from(format!("<{next}>; rel=\"next\"")).ok()) {
            headers.insert(header::LINK, link);
        }
        match query.paged {
            true => (headers, Json(json!({ "total": self.total, "next": next, "items": self.rows }))).into_response(),
            false => (headers, Json(self.rows)).into_response(),
        }
    }
}

/// The same address, at another place of its list.
pub(super) fn address_after(uri: &Uri, place: &str) -> String {
    let given = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let kept = given.filter(|(name, _)| name != "after");
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).append_pair("after", place).finish();
    format!("{}?{query}", uri.path())
}

#[cfg(test)]
mod tests;
