//! The JSON API, `/api/…`.

pub(super) mod lists;
mod openapi;
pub(super) mod operations;
pub(super) mod silences;
mod supply;
mod tokens;
pub(super) mod upcoming;

use axum::Router;
use axum::middleware;
use axum::routing::{delete, get};

use super::{HttpDeps, etag, status};

/// Returns the routes. Each response carries an `ETag`.
pub(super) fn routes() -> Router<HttpDeps> {
    Router::new()
        .route("/api/status", get(status::status))
        .route("/api/upcoming", get(upcoming::list))
        .route("/api/supply", get(supply::show))
        .route("/api/tokens", get(tokens::list))
        .route("/api/tokens/{id}", get(tokens::show))
        .route("/api/changes", get(lists::changes))
        .route("/api/alerts", get(lists::alerts))
        .route("/api/alerts/{id}", get(lists::alert))
        .route("/api/polls", get(lists::polls))
        .route("/api/rules", get(lists::rules))
        .route("/api/outbox", get(lists::outbox))
        .route("/api/outbox/{id}", get(lists::delivery))
        .route("/api/silences", get(silences::list).post(silences::create))
        .route("/api/silences/preview", get(silences::preview))
        .route("/api/silences/{id}", delete(silences::expire))
        .route("/api/acks", get(silences::acks).post(silences::acknowledge))
        .route("/api/openapi.json", get(openapi::document))
        .layer(middleware::from_fn(etag::with_etag))
}
