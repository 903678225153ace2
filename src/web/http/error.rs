//! The error of all handlers. The API shows it as JSON, all other routes as a page.

use std::error::Error;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;

use super::feeds;
use crate::ui::page::ErrorPage;
use store::{ErrorKind, StoreError};

/// A page, or the reason why it cannot be shown.
pub(super) type PageResult<T = Html<String>> = Result<T, WebError>;

/// The largest text of a failed response that becomes JSON.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The `Retry-After` of a busy server, in seconds.
const RETRY_AFTER_SECS: u32 = 5;

/// The failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WebError {
    status: StatusCode,
    /// The heading of the page.
    title: &'static str,
    /// Starts in lower case and has no final period.
    message: String,
    /// The text to search the tokens for. `None` hides the search box.
    search: Option<String>,
}

impl WebError {
    pub fn new(status: StatusCode, title: &'static str, message: impl Into<String>) -> Self {
        Self { status, title, message: message.into(), search: None }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Invalid request", message)
    }

    pub fn not_found(title: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, title, message)
    }

    /// The server has too much to do. Clients try again after [`RETRY_AFTER_SECS`].
    pub fn busy(cause: impl std::fmt::Display) -> Self {
        let message = format!("{cause}; try again in {RETRY_AFTER_SECS} s");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Server busy", message)
    }

    /// Offers a search of the tokens.
    #[must_use]
    pub fn with_search(self, text: impl Into<String>) -> Self {
        Self { search: Some(text.into()), ..self }
    }

    /// Logs the cause, which the client must not see.
    fn internal(doing: &'static str, message: &'static str, cause: &(dyn Error + 'static)) -> Self {
        tracing::error!(error = cause, "{doing}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", message)
    }

    #[cfg(test)]
    pub fn message(&self) -> &str {
        &self.message
    }

    fn page(self) -> Html<String> {
        let mut text = self.message;
        if let Some(first) = text.get(..1).map(str::to_uppercase) {
            text.replace_range(..1, &first);
        }
        if !text.ends_with(['.', '?']) {
            text.push('.');
        }
        Html(ErrorPage { title: self.title.to_owned(), text, search: self.search }.render())
    }
}

/// The fallback of all routes: a page for a browser, a line of text for other clients.
pub(super) async fn no_route(headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/html") {
        return (StatusCode::NOT_FOUND, "not found\n").into_response();
    }
    WebError::not_found("Not found", "no page exists at this address").with_search("").into_response()
}

impl From<StoreError> for WebError {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            // A request that arrived as the daemon ends, or before it restarts, may be repeated.
            ErrorKind::Closed => Self::busy("the daemon is stopping"),
            _ => Self::internal("cannot read the database", "the database cannot be read; see the log", &error),
        }
    }
}

impl From<minijinja::Error> for WebError {
    fn from(error: minijinja::Error) -> Self {
        Self::internal("cannot render a template", "the response cannot be rendered; see the log", &error)
    }
}

impl IntoResponse for WebError {
    /// A line of text. [`format_errors`] replaces it.
    fn into_response(self) -> Response {
        let mut response = (self.status, format!("{}\n", self.message)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Formats each failed response as its route requires, including failures of extractors and of other layers.
pub(super) async fn format_errors(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_json = path.starts_with("/api/") || path.ends_with(feeds::CALENDAR) || path.ends_with(feeds::ATOM);
    let response = next.run(request).await;
    let is_failure = response.status().is_client_error() || response.status().is_server_error();
    match response.extensions().get::<WebError>().cloned() {
        Some(error) if !is_json => with_body(response, error.page()),
        Some(error) => {
            let body = Json(json!({ "error": error.message }));
            with_body(response, body)
        }
        None if is_json && is_failure => with_json(response).await,
        None => response,
    }
}

/// Replaces the text of a failed response by JSON with the same text.
async fn with_json(response: Response) -> Response {
    if response.headers().get(header::CONTENT_TYPE) == Some(&HeaderValue::from_static("application/json")) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_TEXT_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let message = match text.trim_end() {
        "" => parts.status.canonical_reason().unwrap_or("failed").to_lowercase(),
        text => text.to_owned(),
    };
    with_body(Response::from_parts(parts, Body::empty()), Json(json!({ "error": message })))
}

/// Keeps the status and the headers of a response, such as `Retry-After`.
fn with_body(response: Response, body: impl IntoResponse) -> Response {
    let (mut parts, _) = response.into_parts();
    let (new_parts, body) = body.into_response().into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(new_parts.headers);
    Response::from_parts(parts, body)
}
