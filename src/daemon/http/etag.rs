//! Tags of answers: whoever has an answer already is told that it still holds, and nothing is sent again.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use xxhash_rust::xxh3::xxh3_128;

/// Largest answer that gets a tag, bytes; the longest list is smaller.
const MAX_TAGGED: usize = 64 * 1024 * 1024;

/// Puts a tag on a good answer to a `GET`, or answers that the one at hand still holds. Nothing that streams may pass here.
pub(super) async fn tagged(request: Request, next: Next) -> Response {
    let is_read = *request.method() == Method::GET;
    let known = request.headers().get_all(header::IF_NONE_MATCH).iter().cloned().collect::<Vec<_>>();
    let response = next.run(request).await;
    if !is_read || response.status() != StatusCode::OK || response.headers().contains_key(header::ETAG) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, MAX_TAGGED).await else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the answer is too long\n").into_response();
    };
    let tag = format!("W/\"{:032x}\"", xxh3_128(&body));
    if let Ok(tag) = HeaderValue::try_from(tag.as_str()) {
        parts.headers.insert(header::ETAG, tag);
    }
    if holds(&known, &tag) {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::CONTENT_TYPE);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(body))
}

/// Whether one of the tags that a client has is this one.
fn holds(known: &[HeaderValue], tag: &str) -> bool {
    let known = known.iter().filter_map(|value| value.to_str().ok()).flat_map(|tags| tags.split(','));
    known.map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag.trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_among_others_and_however_weak() {
        let known = |text: &str| vec![HeaderValue::from_str(text).expect("a value")];
        for good in ["W/\"a\"", "\"a\"", "\"x\", W/\"a\"", "*"] {
            assert!(holds(&known(good), "W/\"a\""), "{good}");
        }
        for bad in ["", "\"b\"", "a"] {
            assert!(!holds(&known(bad), "W/\"a\""), "{bad}");
        }
    }
}
