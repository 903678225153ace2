//! Requests with the header `Idempotency-Key`: a POST request has its effect once, however often a client sends it.
//!
//! The key is stored in the transaction of the effect, with the response. A request without effect, such as an invalid one, stores nothing.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::digest::{Context, SHA256};
use serde_json::Value;

use super::access::Caller;
use super::error::WebError;
use super::error_code::ErrorCode;
use super::{HttpDeps, MAX_REQUEST_BYTES};
use model::{ActionOutcome, KeyedOutcome, KeyedRequest, KnownRequest, StoredResponse, UserAction};

/// The header of the key.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header of a response that was stored.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The maximum length of a key in bytes.
const MAX_KEY: usize = 255;

/// The size of a body from which its list of alerts is cut before it is stored, to this number.
const MAX_STORED_BYTES: usize = 16 * 1024;
const MAX_STORED_ALERTS: usize = 20;

/// The key of a request, as an extension of it. `None` if it has none.
#[derive(Clone, Debug)]
pub(super) struct RequestKey(pub(super) Option<KeyedRequest>);

/// Responds to a repeated request, and attaches the [`RequestKey`] to others.
pub(super) async fn check_key(State(deps): State<HttpDeps>, request: Request, next: Next) -> Result<Response, WebError> {
    if *request.method() != Method::POST {
        let mut request = request;
        request.extensions_mut().insert(RequestKey(None));
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_REQUEST_BYTES).await.map_err(|_| {
        let message = format!("the request body is larger than {} KiB", MAX_REQUEST_BYTES / 1024);
        WebError::new(ErrorCode::BodyTooLarge, message)
    })?;
    let key = match (key_of(&parts.headers)?, parts.extensions.get::<Caller>()) {
        (Some(key), Some(caller)) => {
            let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
            let client = caller.hash.iter().map(|byte| format!("{byte:02x}")).collect();
            Some(KeyedRequest { client, key, hash: hash(&parts.method, target, &body) })
        }
        _ => None,
    };
    if let Some(request) = &key {
        match deps.app.store.known_request(request.clone(), deps.app.clock.now()).await? {
            KnownRequest::New => {}
            KnownRequest::Repeated(response) => return Ok(replayed(response)),
            KnownRequest::Different => return Err(reused()),
        }
    }
    parts.extensions.insert(RequestKey(key));
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

/// Returns the key in the headers: a text, which may be quoted as the draft of the header specifies.
fn key_of(headers: &HeaderMap) -> Result<Option<String>, WebError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().map(str::trim);
    let text = text.map(|text| text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text));
    match text {
        Some(text) if values.next().is_none() && (1..=MAX_KEY).contains(&text.len()) => Ok(Some(text.to_owned())),
        _ => {
            let message =
                format!("Idempotency-Key is not valid: expected one text of 1 to {MAX_KEY} ASCII characters, such as a UUID");
            Err(WebError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

fn hash(method: &Method, target: &str, body: &Bytes) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    for part in [method.as_str().as_bytes(), target.as_bytes(), body] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context.finish().as_ref().to_vec()
}

/// The error of a request whose key another request had.
pub(super) fn reused() -> WebError {
    WebError::new(ErrorCode::KeyReused, "another request had this Idempotency-Key; use a new key for each request")
}

/// Returns a response that was stored.
pub(super) fn replayed(response: StoredResponse) -> Response {
    let mut response = response_of(response);
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

fn response_of(StoredResponse { status, body }: StoredResponse) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    if body.is_empty() {
        return status.into_response();
    }
    let kind = if body.starts_with('{') { "application/json" } else { "text/plain; charset=utf-8" };
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// The response to an action that is done.
#[derive(Debug)]
pub(super) enum Acted {
    /// A response to send: of this action, or of the same request before.
    Response(Response),
    /// The action was not possible.
    Failed(ActionOutcome),
}

/// Performs an action, once for each key. `respond` returns the status and the body of the response to an action that is done.
pub(super) async fn perform(
    deps: &HttpDeps,
    key: RequestKey,
    action: UserAction,
    respond: impl FnOnce(&ActionOutcome) -> (StatusCode, Value) + Send + 'static,
) -> Result<Acted, WebError> {
    let now = deps.app.clock.now();
    let stored = |outcome: &ActionOutcome| {
        let (status, body) = respond(outcome);
        StoredResponse { status: status.as_u16(), body: if body.is_null() { String::new() } else { body.to_string() } }
    };
    let Some(key) = key.0 else {
        let outcome = deps.app.store.perform(action, now).await?;
        return Ok(if outcome.is_done() { Acted::Response(response_of(stored(&outcome))) } else { Acted::Failed(outcome) });
    };
    // The response is built in the transaction, and sent after it.
    let sent = std::sync::Arc::new(std::sync::OnceLock::new());
    let kept = sent.clone();
    let outcome = deps.app.store.perform_once(action, key, now, move |outcome| {
        let response = stored(outcome);
        let short = shortened(&response);
        kept.get_or_init(|| response);
        short
    });
    Ok(match outcome.await? {
        KeyedOutcome::Different => return Err(reused()),
        KeyedOutcome::Repeated(response) => Acted::Response(replayed(response)),
        KeyedOutcome::Outcome(outcome) => match sent.get() {
            Some(response) if outcome.is_done() => Acted::Response(response_of(response.clone())),
            _ => Acted::Failed(outcome),
        },
    })
}

/// Returns the response to store: a long list of alerts that a silence hides is cut.
fn shortened(response: &StoredResponse) -> StoredResponse {
    let cut = || {
        let mut body: Value = serde_json::from_str(&response.body).ok()?;
        body.pointer_mut("/hides/alerts")?.as_array_mut()?.truncate(MAX_STORED_ALERTS);
        Some(body.to_string())
    };
    let body = if response.body.len() > MAX_STORED_BYTES { cut() } else { None };
    StoredResponse { status: response.status, body: body.unwrap_or_else(|| response.body.clone()) }
}

/// Stores the response to a request whose effect is not a write to the database.
pub(super) async fn remember(deps: &HttpDeps, key: RequestKey, status: StatusCode, body: String) -> Result<(), WebError> {
    let Some(key) = key.0 else { return Ok(()) };
    let response = StoredResponse { status: status.as_u16(), body };
    Ok(deps.app.store.remember_request(key, response, deps.app.clock.now()).await?)
}
