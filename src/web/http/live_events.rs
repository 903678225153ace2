//! Server-sent events at `/events`: the events of the log as they are committed.
//!
//! A client that reconnects sends the number of the last event that it got as `Last-Event-ID`, so it gets each event once. The pages use
//! the same path with `pages=true`, see `updates`.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use http_body::{Body as HttpBody, Frame};
use tokio::sync::mpsc;

use super::HttpDeps;
use super::api::operations::LIVE_EVENTS;
use super::error::WebError;
use super::error_code::ErrorCode;
use super::event_watch::{EventWaiter, read_events};
use super::parameters::{EVENT_AFTER, EVENT_TYPE, PAGES};
use super::updates::{self, KEEP_ALIVE, KEEP_ALIVE_INTERVAL, RETRY};
use model::{EventLogFilter, EventLogPage, EventType, text::harmless_json};

/// The number of events that are read at once.
const BATCH: u32 = 100;

/// The number of messages that wait for a slow client.
const QUEUE: usize = 4;

pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `GET /events`.
pub(super) async fn stream(State(deps): State<HttpDeps>, headers: HeaderMap, uri: Uri) -> Result<Response, WebError> {
    let query = LIVE_EVENTS.query(&uri)?;
    if query.boolean(PAGES) == Some(true) {
        return Ok(updates::page_events(&deps));
    }
    let resumed = headers.get(LAST_EVENT_ID).map(last_event_id).transpose()?;
    let after = resumed.or(query.integer(EVENT_AFTER)?.map(i64::from));
    let filter = EventLogFilter { after, kinds: query.items(EVENT_TYPE, EventType::parse)?, limit: BATCH };
    let waiter = deps.event_watch.connect().ok_or_else(|| WebError::busy("too many clients wait for events"))?;
    let first = match after {
        Some(_) => read(&deps, &filter).await?,
        None => {
            // Starts with what happens from now on.
            let page = read(&deps, &EventLogFilter { limit: 1, ..filter.clone() }).await?;
            EventLogPage { events: Vec::new(), next: page.range.last, ..page }
        }
    };
    let (sender, receiver) = mpsc::channel(QUEUE);
    tokio::spawn(send_events(deps, waiter, filter, first, sender));
    let kind = HeaderValue::from_static("text/event-stream");
    Ok(([(header::CONTENT_TYPE, kind)], Body::new(EventStream(receiver))).into_response())
}

fn last_event_id(value: &HeaderValue) -> Result<i64, WebError> {
    let number = value.to_str().ok().and_then(|text| text.parse().ok()).filter(|number| *number >= 0);
    number.ok_or_else(|| {
        WebError::new(ErrorCode::InvalidRequest, format!("Last-Event-ID: {value:?} is not valid: expected the `id` of an event"))
    })
}

/// Reads a page like a light request.
async fn read(deps: &HttpDeps, filter: &EventLogFilter) -> Result<EventLogPage, WebError> {
    let _light = deps.limits.light_slot().await;
    read_events(&deps.app.store, filter.clone()).await
}

/// Sends events to one client until it disconnects or the server stops. If a read fails, the stream ends: the client connects again, and
/// gets the error or the rest.
async fn send_events(
    deps: HttpDeps,
    mut waiter: EventWaiter,
    mut filter: EventLogFilter,
    mut page: EventLogPage,
    sender: mpsc::Sender<Bytes>,
) {
    if sender.send(Bytes::from_static(RETRY)).await.is_err() {
        return;
    }
    loop {
        if let Some(text) = page_text(&page)
            && sender.send(text).await.is_err()
        {
            return;
        }
        if page.next >= page.range.last && !wait_for_event(&mut waiter, page.next, &sender).await {
            return;
        }
        filter.after = Some(page.next);
        page = match read(&deps, &filter).await {
            Ok(page) => page,
            Err(_) => return,
        };
    }
}

/// Waits for an event after `cursor`, and keeps the connection open. Returns `false` if the client disconnects or the server stops.
async fn wait_for_event(waiter: &mut EventWaiter, cursor: i64, sender: &mpsc::Sender<Bytes>) -> bool {
    loop {
        tokio::select! {
            is_newer = waiter.wait_for_event_after(cursor) => return is_newer,
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => {}
            () = sender.closed() => return false,
        }
        if sender.send(Bytes::from_static(KEEP_ALIVE)).await.is_err() {
            return false;
        }
    }
}

/// Returns the messages of a page. `None` if it has nothing new.
fn page_text(page: &EventLogPage) -> Option<Bytes> {
    let mut text = String::new();
    for event in &page.events {
        // JSON on one line. Streams are not sanitized as a whole, so each body is.
        let Ok(body) = serde_json::to_string(event) else { continue };
        text.push_str(&format!("id: {}\nevent: {}\ndata: {}\n\n", event.seq, event.kind, harmless_json(&body)));
    }
    if page.events.last().is_none_or(|event| event.seq < page.next) {
        // A message without data only sets the cursor, past events of other types.
        text.push_str(&format!("id: {}\n\n", page.next));
    }
    (!text.is_empty()).then(|| text.into())
}

/// The body of a stream.
struct EventStream(mpsc::Receiver<Bytes>);

impl HttpBody for EventStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|text| text.map(|text| Ok(Frame::data(text))))
    }
}
