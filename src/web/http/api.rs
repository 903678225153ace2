//! The JSON API, `/api/v1/…`, and the API of Alertmanager, `/api/v2/…`. Former paths below `/api/` redirect.

mod actions;
pub(super) mod alertmanager;
pub(super) mod event_log;
pub(super) mod lists;
mod openapi;
pub(super) mod operations;
mod people;
mod replays;
pub(super) mod silences;
mod supply;
pub(super) mod tokens;
pub(super) mod upcoming;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};

use super::error::{WebError, unknown_path};
use super::idempotency::check_key;
use super::{HttpDeps, etag, status};
use operations::{OPERATIONS, Operation, ROOT};

/// Returns the routes. Each response carries an `ETag`.
pub(super) fn routes(deps: &HttpDeps) -> Router<HttpDeps> {
    Router::new()
        .route("/api/v1/status", get(status::status))
        .route("/api/v1/upcoming", get(upcoming::list))
        .route("/api/v1/supply", get(supply::show))
        .route("/api/v1/tokens", get(tokens::list))
        .route("/api/v1/tokens/{id}", get(tokens::show))
        .route("/api/v1/tokens/{id}/accept", post(actions::accept))
        .route("/api/v1/changes", get(lists::changes))
        .route("/api/v1/alerts", get(lists::alerts))
        .route("/api/v1/alerts/{id}", get(lists::alert))
        .route("/api/v1/polls", get(lists::polls))
        .route("/api/v1/rules", get(lists::rules))
        .route("/api/v1/audit", get(lists::audit))
        .route("/api/v1/outbox", get(lists::outbox))
        .route("/api/v1/outbox/{id}", get(lists::delivery))
        .route("/api/v1/outbox/{id}/retry", post(actions::retry))
        .route("/api/v1/outbox/{id}/drop", post(actions::drop_delivery))
        .route("/api/v1/silences", get(silences::list).post(silences::create))
        .route("/api/v1/silences/preview", get(silences::preview))
        .route("/api/v1/silences/{id}", get(silences::show).put(silences::update).delete(silences::expire))
        .route("/api/v1/replays", post(replays::create))
        .route("/api/v1/alerts/{id}/notes", post(people::add_note))
        .route("/api/v1/alerts/{id}/assign", post(people::assign))
        .route("/api/v1/acks", get(silences::acks).post(silences::acknowledge))
        .route("/api/v1/acks/{id}", delete(silences::unacknowledge))
        .route("/api/openapi.json", get(openapi::document))
        .merge(alertmanager::routes())
        .route("/api/{*path}", any(former_path))
        .layer(middleware::from_fn_with_state(deps.clone(), check_key))
        .layer(middleware::from_fn(check_query))
        .layer(middleware::from_fn(etag::with_etag))
}

/// Returns the routes of requests that may wait, which the limits of other requests must not include.
pub(super) fn waiting_routes() -> Router<HttpDeps> {
    Router::new()
        .route("/api/v1/events", get(event_log::list))
        .layer(middleware::from_fn(check_query))
        .layer(middleware::from_fn(etag::with_etag))
}

/// Rejects query parameters that the operation does not have, also if its handler reads none.
async fn check_query(request: Request, next: Next) -> Result<Response, WebError> {
    if let Some(operation) = Operation::of(request.method(), request.uri().path()) {
        operation.query(request.uri())?;
    }
    Ok(next.run(request).await)
}

/// Redirects a former path, which has no version. Keeps its query. The client repeats the request with the same method and body.
async fn former_path(uri: Uri) -> Result<Response, WebError> {
    let path = uri.path().strip_prefix("/api/").unwrap_or_default();
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let is_former = |operation: &&Operation| operation.path.strip_prefix(ROOT).is_some_and(|known| first(known) == first(path));
    if !OPERATIONS.iter().any(|operation| is_former(&operation)) {
        return Err(unknown_path(uri.path()));
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Ok((StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, format!("{ROOT}{path}{query}"))]).into_response())
}
