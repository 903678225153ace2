//! The last gate of every page: what its maker forgot to make harmless steers no terminal, hides nothing and turns no text around.

use std::borrow::Cow;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use model::text::{harmless_json, plain_lines};

/// Makes the text of an answer harmless by what it is: JSON by escapes that mean the same, pages for people without what hides. What
/// is no text, and what never ends (events as they happen), goes out as it is.
pub(super) async fn harmless(response: Response) -> Response {
    let Some(gate) = gate_of(response.headers()) else { return response };
    let (mut head, body) = response.into_parts();
    // It was made whole in memory, within the bounds of its maker.
    let bytes = match to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes,
        Err(error) => return (head.status, format!("the answer broke off: {error}\n")).into_response(),
    };
    let changed = match std::str::from_utf8(&bytes).map(gate) {
        Ok(Cow::Owned(text)) => Some(text),
        Ok(Cow::Borrowed(_)) | Err(_) => None,
    };
    if changed.is_some() {
        head.headers.remove(header::CONTENT_LENGTH);
    }
    Response::from_parts(head, changed.map_or_else(|| Body::from(bytes), Body::from))
}

fn gate_of(headers: &HeaderMap) -> Option<fn(&str) -> Cow<'_, str>> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(harmless_json),
        "text/html" | "text/plain" | "text/calendar" | "application/atom+xml" => Some(plain_lines),
        _ => None,
    }
}
