//! `GET /api/v1/events`: what happened, in the order of the commits.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::time::Instant;

use super::operations::EVENTS;
use crate::http::HttpDeps;
use crate::http::error::WebError;
use crate::http::event_watch::read_events;
use crate::http::parameters::{EVENT_AFTER, EVENT_LIMIT, EVENT_TYPE, WAIT};
use crate::http::query::ListQuery;
use model::{EventLogFilter, EventLogPage, EventType};

/// The maximum of `wait`.
pub(in crate::http) const MAX_WAIT: Duration = Duration::from_secs(30);

/// The default of `limit`.
const DEFAULT_EVENTS: u32 = 100;

/// Parses the filter of a request for events.
pub(in crate::http) fn filter(query: &ListQuery) -> Result<EventLogFilter, WebError> {
    Ok(EventLogFilter {
        after: query.integer(EVENT_AFTER)?.map(i64::from),
        kinds: query.items(EVENT_TYPE, EventType::parse)?,
        limit: query.integer(EVENT_LIMIT)?.unwrap_or(DEFAULT_EVENTS),
    })
}

/// Parses `wait`. Zero without it.
fn wait_of(query: &ListQuery) -> Result<Duration, WebError> {
    let Some(wait) = query.duration(WAIT)? else { return Ok(Duration::ZERO) };
    let wait = wait.to_std().unwrap_or_default();
    if wait > MAX_WAIT {
        let max = MAX_WAIT.as_secs();
        return Err(WebError::invalid_parameter(format!("wait: {}s is not valid: expected at most {max}s", wait.as_secs())));
    }
    Ok(wait)
}

/// Responds at once if there are events after the cursor, else when the first one is committed or the time of `wait` is over.
pub(super) async fn list(State(deps): State<HttpDeps>, uri: Uri) -> Result<Response, WebError> {
    let query = EVENTS.query(&uri)?;
    let (mut filter, until) = (filter(&query)?, Instant::now() + wait_of(&query)?);
    let mut page = read(&deps, &filter).await?;
    let mut waiter = None;
    // A page without events that ends before the newest one was cut: the client continues after `next`.
    while page.events.is_empty() && page.next >= page.range.last && Instant::now() < until {
        let waiter = match &mut waiter {
            Some(waiter) => waiter,
            none => none.insert(deps.event_watch.connect().ok_or_else(|| WebError::busy("too many clients wait for events"))?),
        };
        match tokio::time::timeout_at(until, waiter.wait_for_event_after(page.next)).await {
            Ok(true) => {
                filter.after = Some(page.next);
                page = read(&deps, &filter).await?;
            }
            Ok(false) | Err(_) => break,
        }
    }
    let EventLogPage { range, events, next } = page;
    Ok(Json(json!({ "events": events, "next": next, "first": range.first, "last": range.last })).into_response())
}

/// Reads a page like a light request. Waiting does not keep the slot of the read.
async fn read(deps: &HttpDeps, filter: &EventLogFilter) -> Result<EventLogPage, WebError> {
    let _light = deps.limits.light_slot().await;
    read_events(&deps.app.store, filter.clone()).await
}
