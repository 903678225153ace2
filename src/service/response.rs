//! Metadata, headers, and body of a response.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use http_body::{Frame, SizeHint};

use crate::{payload::ResponseBody, service::whole_seconds};
use model::Timestamp;
use model::wire::{Credit, Maybe, Metadata};
use store::catalog::KeyUsage;

/// The metadata of a response.
#[derive(Clone, Copy, Debug)]
pub enum MetadataShape {
    Full,
    /// Only `queryDate`.
    DateOnly,
}

impl MetadataShape {
    /// Returns the beginning of the body, up to the payload.
    pub fn beginning(self, body: &ResponseBody, usage: Option<KeyUsage>, now: Timestamp) -> Vec<u8> {
        // The query date of polled data is the time of the poll.
        let query_date = body.read_at.unwrap_or(now);
        let mut metadata = Metadata { query_date: whole_seconds(query_date).into(), ..Default::default() };
        if matches!(self, MetadataShape::Full) {
            if let Some(usage) = usage {
                metadata.credit = credit_of(usage).into();
            }
            if let Some(paging) = body.paging {
                metadata.page = number(paging.page);
                metadata.page_size = number(paging.page_size);
                metadata.total_pages = number(paging.total_pages);
                metadata.total = number(paging.total);
            }
        }
        let mut head = b"{\"metadata\":".to_vec();
        if serde_json::to_writer(&mut head, &metadata).is_err() {
            head = b"{\"metadata\":{}".to_vec();
        }
        head
    }
}

fn number(number: u64) -> Maybe<i64> {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

pub fn credit_of(usage: KeyUsage) -> Credit {
    Credit { used: number(usage.used), limit: number(usage.limit), reset_at: usage.reset_at.into(), ..Default::default() }
}

/// Sets the headers that a response and its 304 have in common.
pub fn set_headers(response: &mut Response, tag: &str, body: &ResponseBody, now: Timestamp) {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(read_at) = body.read_at {
        headers.insert(header::AGE, HeaderValue::from((now - read_at).num_seconds().max(0)));
    }
}

/// The maximum number of tags in `If-None-Match` to parse.
const MAX_TAGS: usize = 32;

/// Returns whether `If-None-Match` contains the tag. RFC 9110 requires a weak comparison.
pub fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .take(MAX_TAGS)
        .map(str::trim)
        .any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given).trim_matches('"') == tag)
}

/// A body of shared parts, which are not copied.
pub struct ResponseParts {
    parts: [Bytes; 3],
    next: usize,
}

impl ResponseParts {
    pub fn of(parts: [Bytes; 3]) -> Self {
        Self { parts, next: 0 }
    }

    fn left(&self) -> &[Bytes] {
        self.parts.get(self.next..).unwrap_or_default()
    }
}

impl HttpBody for ResponseParts {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.left().iter().position(|part| !part.is_empty()).map(|skipped| self.next + skipped);
        let part = next.and_then(|next| self.parts.get_mut(next)).map(std::mem::take);
        self.next = next.map_or(usize::MAX, |next| next + 1);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left().iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left().iter().map(|part| u64::try_from(part.len()).unwrap_or(u64::MAX)).sum())
    }
}
