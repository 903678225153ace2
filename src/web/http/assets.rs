//! The style sheet, script, and icon of the pages. They need no authorization, because the login page loads them.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::ui::asset;

/// `GET /assets/{name}`. The name contains a hash of the content, so clients may cache it forever.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let Some(asset) = asset::find(&name) else { return (StatusCode::NOT_FOUND, "not found\n").into_response() };
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    ([(header::CONTENT_TYPE, HeaderValue::from_static(asset.content_type)), (header::CACHE_CONTROL, forever)], asset.text)
        .into_response()
}
