//! The error of all handlers. The API returns it as a problem (RFC 9457), all other routes as a page.

use std::error::Error;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;

use super::MAX_REQUEST_BYTES;
use super::access::User;
use super::api::alertmanager;
use super::api::operations::{DOCUMENT, LIVE_EVENTS, OPERATIONS, Operation, ROOT};
use super::error_code::ErrorCode;
use super::feeds;
use crate::ui::page::ErrorPage;
use daemon::token_names::FindTokenError;
use model::{AccessRole, Actor, ActorSource, TokenNameError, closest};
use store::{ErrorKind, StoreError};

/// A page, or the reason why it cannot be shown.
pub(super) type PageResult<T = Html<String>> = Result<T, WebError>;

/// The content type of problems.
pub(super) const PROBLEM: &str = "application/problem+json";

/// The largest text of a failed response that becomes a problem.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The `Retry-After` of a busy server, in seconds.
const RETRY_AFTER_SECS: u32 = 5;

/// The failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WebError {
    code: ErrorCode,
    /// Starts in lower case and has no final period.
    message: String,
    /// Values that the client may have meant, most likely first.
    suggestions: Vec<String>,
    /// The text to search the tokens for. `None` hides the search box.
    search: Option<String>,
    /// Whether the response is a line of text instead of a page, for clients that do not accept JSON.
    is_line: bool,
    /// The role that the request needs. `None` unless the code is [`ErrorCode::InsufficientRole`].
    required_role: Option<AccessRole>,
}

impl WebError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), suggestions: Vec::new(), search: None, is_line: false, required_role: None }
    }

    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParameter, message)
    }

    pub fn invalid_body(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidBody, message)
    }

    /// The error for a name that is not in `known`, with the closest name as a suggestion.
    pub fn unknown_name<'a>(code: ErrorCode, message: String, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(name, known) {
            Some(near) => Self::new(code, format!("{message}; did you mean {near:?}?")).with_suggestions([near]),
            None => Self::new(code, message),
        }
    }

    /// The role of the user is not sufficient.
    pub fn insufficient_role(user: &User, required: AccessRole) -> Self {
        let User { actor: Actor { name, via }, role } = user;
        let who = if *via == ActorSource::Proxy { "user" } else { "access key" };
        let message = format!("the {who} {name:?} has the role `{role}`; this request needs the role `{required}`");
        Self { required_role: Some(required), ..Self::new(ErrorCode::InsufficientRole, message) }
    }

    /// The server has too much to do. Clients try again after [`RETRY_AFTER_SECS`].
    pub fn busy(cause: impl std::fmt::Display) -> Self {
        Self::new(ErrorCode::Busy, format!("{cause}; try again in {RETRY_AFTER_SECS} s"))
    }

    #[must_use]
    pub fn with_suggestions<T: ToString>(self, suggestions: impl IntoIterator<Item = T>) -> Self {
        Self { suggestions: suggestions.into_iter().map(|suggestion| suggestion.to_string()).collect(), ..self }
    }

    /// Offers a search of the tokens.
    #[must_use]
    pub fn with_search(self, text: impl Into<String>) -> Self {
        Self { search: Some(text.into()), ..self }
    }

    /// Responds with a line of text instead of a page.
    #[must_use]
    pub fn into_line(self) -> Self {
        Self { is_line: true, ..self }
    }

    /// Logs the cause, which the client must not see.
    fn internal(doing: &'static str, message: &'static str, cause: &(dyn Error + 'static)) -> Self {
        tracing::error!(error = cause, "{doing}");
        Self::new(ErrorCode::InternalError, message)
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
        Html(ErrorPage { title: self.code.title().to_owned(), text, search: self.search }.render())
    }

    /// Returns the body of an error of the API: a problem, or a JSON text for clients of Alertmanager.
    fn api_body(&self, status: StatusCode, path: &str) -> Response {
        if path.starts_with(alertmanager::ROOT) { Json(&self.message).into_response() } else { self.problem(status) }
    }

    /// Returns the body of a problem. `error` is the former name of `detail`.
    fn problem(&self, status: StatusCode) -> Response {
        let Self { code, message, suggestions, required_role, .. } = self;
        let mut problem = json!({
            "type": format!("urn:cliffwatch:problem:{code}"),
            "title": code.title(),
            "status": status.as_u16(),
            "code": code,
            "detail": message,
            "suggestions": suggestions,
            "error": message,
        });
        if let Some(role) = required_role {
            problem["requiredRole"] = role.as_str().into();
        }
        ([(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM))], problem.to_string()).into_response()
    }
}

/// The fallback of all routes: a page for a browser, a line of text for other clients.
pub(super) async fn no_route(uri: Uri, headers: HeaderMap) -> Response {
    if is_api_path(uri.path()) {
        return unknown_path(uri.path()).into_response();
    }
    if !accept(&headers).contains("text/html") {
        return WebError::new(ErrorCode::NotFound, "not found").into_line().into_response();
    }
    WebError::new(ErrorCode::NotFound, "no page exists at this address").with_search("").into_response()
}

fn accept(headers: &HeaderMap) -> &str {
    headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default()
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

impl From<FindTokenError> for WebError {
    fn from(error: FindTokenError) -> Self {
        match error {
            FindTokenError::Name(error) => {
                let (code, text) = match &error {
                    TokenNameError::Unknown { text, .. } => (ErrorCode::UnknownToken, text),
                    TokenNameError::Ambiguous { text, .. } => (ErrorCode::AmbiguousToken, text),
                };
                let search: String = text.chars().take(MAX_SEARCH_CHARS).collect();
                Self::new(code, error.to_string()).with_suggestions(error.suggestions()).with_search(search)
            }
            FindTokenError::Store(error) => error.into(),
        }
    }
}

/// The length of the text in the search box of an error page.
const MAX_SEARCH_CHARS: usize = 200;

impl From<minijinja::Error> for WebError {
    fn from(error: minijinja::Error) -> Self {
        Self::internal("cannot render a template", "the response cannot be rendered; see the log", &error)
    }
}

impl IntoResponse for WebError {
    /// A line of text. [`format_errors`] replaces it.
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), format!("{}\n", self.message)).into_response();
        if self.code.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Formats each failed response as its route requires, including failures of extractors, of other layers, and of the framework.
///
/// The API, live events, and the feeds always return a problem, or, for clients of Alertmanager, a JSON text. Other routes return one to
/// clients that accept JSON, and instead of a line of text to all programs except probes.
pub(super) async fn format_errors(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let is_api = is_for_programs(&path);
    let accepts = accept(request.headers());
    let is_problem = is_api || accepts.contains("json");
    // Probes and programs other than browsers.
    let is_program = !accepts.contains("text/html") && !path.starts_with("/-/");
    let method = request.method().clone();
    let response = next.run(request).await;
    let is_failure = response.status().is_client_error() || response.status().is_server_error();
    let is_page = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    match response.extensions().get::<WebError>().cloned() {
        Some(error) if is_problem || (error.is_line && is_program) => {
            let status = response.status();
            with_body(response, error.api_body(status, &path))
        }
        Some(error) if error.is_line => response,
        Some(error) if path.starts_with("/-/") => with_body(response, error.into_line()),
        Some(error) => with_body(response, error.page()),
        None if (is_problem || is_program) && is_failure && !is_page => {
            let error = of_framework(&response, &method, &path);
            let status = response.status();
            let (parts, body) = response.into_parts();
            // Reads the body to its end, so that the connection can be used again.
            to_bytes(body, MAX_TEXT_BYTES).await.ok();
            let mut response = with_body(Response::from_parts(parts, Body::empty()), error.api_body(status, &path));
            if status == StatusCode::SERVICE_UNAVAILABLE && !response.headers().contains_key(header::RETRY_AFTER) {
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECS));
            }
            response
        }
        // A path for operators and probes.
        None if is_failure && !is_page && path.starts_with("/-/") => {
            let error = of_framework(&response, &method, &path);
            with_body(response, error.into_line())
        }
        None => response,
    }
}

/// Returns the error for a path below `/api` that does not exist.
pub(super) fn unknown_path(path: &str) -> WebError {
    let message = format!("the API has no path {path:?}");
    let name = |path: &'static str| path.strip_prefix(ROOT);
    let known = OPERATIONS.iter().filter_map(|operation| name(operation.path));
    let wanted = path.strip_prefix(ROOT).or_else(|| path.strip_prefix("/api/")).unwrap_or(path);
    match closest(wanted, known) {
        Some(near) => {
            let near = format!("{ROOT}{near}");
            WebError::new(ErrorCode::NotFound, format!("{message}; did you mean {near}?")).with_suggestions([near])
        }
        None => WebError::new(ErrorCode::NotFound, format!("{message}; {DOCUMENT} lists all paths")),
    }
}

/// Returns whether a path belongs to the API, to the feeds, or to the live events.
pub(super) fn is_for_programs(path: &str) -> bool {
    is_api_path(path) || path.ends_with(feeds::CALENDAR) || path.ends_with(feeds::ATOM) || path == LIVE_EVENTS.path
}

fn is_api_path(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Describes a failure that the framework has made, in words of the API.
fn of_framework(response: &Response, method: &Method, path: &str) -> WebError {
    let code = ErrorCode::of_status(response.status());
    let message = match code {
        ErrorCode::MethodNotAllowed => {
            let supported = Operation::methods_of(path);
            let supported = if supported.is_empty() { String::new() } else { format!("; it supports {}", supported.join(", ")) };
            format!("{path} does not support {method}{supported}")
        }
        ErrorCode::BodyTooLarge => format!("the request body is larger than {} KiB", MAX_REQUEST_BYTES / 1024),
        ErrorCode::UnsupportedMediaType => "the body must be JSON: send `Content-Type: application/json`".to_owned(),
        ErrorCode::Busy => format!("the response took too long; try again in {RETRY_AFTER_SECS} s"),
        ErrorCode::InternalError => "the request failed; see the log of the daemon".to_owned(),
        ErrorCode::NotFound => return unknown_path(path),
        _ => "the request is not valid: percent-encoded text in the path must be UTF-8".to_owned(),
    };
    WebError::new(code, message)
}

/// Keeps the status and the headers of a response, such as `Retry-After`.
fn with_body(response: Response, body: impl IntoResponse) -> Response {
    let (mut parts, _) = response.into_parts();
    let (new_parts, body) = body.into_response().into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(new_parts.headers);
    Response::from_parts(parts, body)
}
