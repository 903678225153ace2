//! Sheet, script and icon of the pages. They pass no gate: they are the same for everybody, and the page on which one signs in needs
//! them.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::ui::asset;

/// `GET /assets/{name}`. The name changes with the bytes, so that whoever has it may keep it.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let Some(asset) = asset::find(&name) else { return (StatusCode::NOT_FOUND, "there is nothing here\n").into_response() };
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    ([(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)), (header::CACHE_CONTROL, forever)], asset.text).into_response()
}
