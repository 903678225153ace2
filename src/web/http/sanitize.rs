//! Removes control and bidi characters from every response, in case a handler did not.

use std::borrow::Cow;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::error::PROBLEM;
use model::text::{harmless_json, plain_lines};

/// Neutralizes hostile characters: JSON gets equivalent escapes, other text loses them. Streams and binary responses are not changed.
pub(super) async fn sanitize(response: Response) -> Response {
    let Some(sanitize) = sanitizer(response.headers()) else { return response };
    let (mut parts, body) = response.into_parts();
    // The handler built the whole body in memory, so its size is already limited.
    let bytes = match to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(error) => return (parts.status, format!("cannot read the response: {error}\n")).into_response(),
    };
    let changed = match std::str::from_utf8(&bytes).map(sanitize) {
        Ok(Cow::Owned(text)) => Some(text),
        Ok(Cow::Borrowed(_)) | Err(_) => None,
    };
    if changed.is_some() {
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    Response::from_parts(parts, changed.map_or_else(|| Body::from(bytes), Body::from))
}

fn sanitizer(headers: &HeaderMap) -> Option<fn(&str) -> Cow<'_, str>> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" | PROBLEM => Some(harmless_json),
        "text/html" | "text/plain" | "text/calendar" | "application/atom+xml" => Some(plain_lines),
        _ => None,
    }
}
