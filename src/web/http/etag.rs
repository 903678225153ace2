//! The `ETag` of API responses. Clients with the current version get status 304 without a body.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use xxhash_rust::xxh3::xxh3_128;

/// The size limit of a body. The longest list is smaller.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Adds an `ETag` to each successful response of a read, and returns status 304 if the client has it. Reads the whole body, so it must not
/// wrap streams.
pub(super) async fn with_etag(mut request: Request, next: Next) -> Response {
    if *request.method() == Method::HEAD {
        // The tag needs the body, which the router removes from the response to the client.
        *request.method_mut() = Method::GET;
    }
    let is_read = *request.method() == Method::GET;
    let sent = request.headers().get_all(header::IF_NONE_MATCH).iter().cloned().collect::<Vec<_>>();
    let response = next.run(request).await;
    if !is_read || response.status() != StatusCode::OK || response.headers().contains_key(header::ETAG) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the response is too large\n").into_response();
    };
    let tag = format!("W/\"{:032x}\"", xxh3_128(&body));
    if let Ok(tag) = HeaderValue::try_from(tag.as_str()) {
        parts.headers.insert(header::ETAG, tag);
    }
    if matches_etag(&sent, &tag) {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::CONTENT_TYPE);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(body))
}

/// Returns `true` if `If-None-Match` headers contain a tag. Weak and strong tags are equal.
pub(super) fn matches_etag(sent: &[HeaderValue], tag: &str) -> bool {
    let tags = sent.iter().filter_map(|value| value.to_str().ok()).flat_map(|tags| tags.split(','));
    tags.map(str::trim).any(|sent| sent == "*" || sent.trim_start_matches("W/") == tag.trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_weak_and_strong_tags_in_a_list() {
        let sent = |text: &str| vec![HeaderValue::from_str(text).expect("a value")];
        for good in ["W/\"a\"", "\"a\"", "\"x\", W/\"a\"", "*"] {
            assert!(matches_etag(&sent(good), "W/\"a\""), "{good}");
        }
        for bad in ["", "\"b\"", "a"] {
            assert!(!matches_etag(&sent(bad), "W/\"a\""), "{bad}");
        }
    }
}
