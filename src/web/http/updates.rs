//! Server-sent events at `/events?pages=true`, which notify open pages of new data. An event contains no data: the page loads itself again,
//! so that each page is rendered in one way. Programs use `live_events`.
//!
//! While clients are connected, one task checks the database every two seconds for all of them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use http_body::{Body as HttpBody, Frame};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::HttpDeps;
use super::error::WebError;
use super::error_code::ErrorCode;
use model::Pulse;
use store::Store;

/// The maximum number of connected pages. Further pages work without updates.
const MAX_CLIENTS: usize = 48;
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The interval of comments that keep an idle connection open.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(12);

const UPDATE: &[u8] = b"event: news\ndata: {}\n\n";
pub(super) const KEEP_ALIVE: &[u8] = b": here\n\n";
/// The first event: sets the reconnect delay of the browser, in milliseconds.
pub(super) const RETRY: &[u8] = b"retry: 5000\n\n";

/// The connected pages. Clones share the state.
#[derive(Clone, Debug)]
pub struct Updates(Arc<UpdateHub>);

#[derive(Debug)]
struct UpdateHub {
    pulse: watch::Sender<Pulse>,
    slots: Arc<Semaphore>,
    connected: Notify,
    stop: CancellationToken,
}

impl Updates {
    /// Spawns the task that checks the database until `stop`.
    pub fn start(store: Store, stop: CancellationToken) -> Self {
        let hub = Arc::new(UpdateHub {
            pulse: watch::Sender::new(Pulse::default()),
            slots: Arc::new(Semaphore::new(MAX_CLIENTS)),
            connected: Notify::new(),
            stop,
        });
        tokio::spawn(check(hub.clone(), store));
        Self(hub)
    }

    /// Returns the event stream of a new client. `None` if all slots are in use.
    fn connect(&self) -> Option<UpdateStream> {
        let slot = self.0.slots.clone().try_acquire_owned().ok()?;
        let (sender, receiver) = mpsc::channel(4);
        let (pulse, stop) = (self.0.pulse.subscribe(), self.0.stop.clone());
        tokio::spawn(send_events(pulse, sender, stop));
        self.0.connected.notify_one();
        Some(UpdateStream { receiver, _slot: slot })
    }
}

/// Checks the database while clients are connected.
async fn check(hub: Arc<UpdateHub>, store: Store) {
    let checking = async {
        loop {
            if hub.pulse.receiver_count() == 0 {
                hub.connected.notified().await;
            }
            match store.pulse().await {
                Ok(pulse) => {
                    hub.pulse.send_if_modified(|last| std::mem::replace(last, pulse) != pulse);
                }
                Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "cannot check for new data"),
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    };
    tokio::select! {
        () = checking => {}
        () = hub.stop.cancelled() => {}
    }
}

/// Sends events to one client until it disconnects or the server stops.
async fn send_events(mut pulse: watch::Receiver<Pulse>, sender: mpsc::Sender<&'static [u8]>, stop: CancellationToken) {
    let mut next = RETRY;
    while sender.send(next).await.is_ok() {
        next = tokio::select! {
            changed = pulse.changed() => match changed {
                Ok(()) => UPDATE,
                Err(_) => return,
            },
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => KEEP_ALIVE,
            () = sender.closed() => return,
            () = stop.cancelled() => return,
        };
    }
}

/// The body of a streaming response.
struct UpdateStream {
    receiver: mpsc::Receiver<&'static [u8]>,
    _slot: OwnedSemaphorePermit,
}

impl HttpBody for UpdateStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.receiver.poll_recv(context).map(|event| event.map(|text| Ok(Frame::data(Bytes::from_static(text)))))
    }
}

/// Returns the stream of a page.
pub(super) fn page_events(deps: &HttpDeps) -> Response {
    let Some(stream) = deps.updates.connect() else {
        let error = WebError::new(ErrorCode::Busy, "too many open pages; this page does not update itself").into_line();
        return ([(header::RETRY_AFTER, "60")], error).into_response();
    };
    let kind = HeaderValue::from_static("text/event-stream");
    ([(header::CONTENT_TYPE, kind)], Body::new(stream)).into_response()
}

#[cfg(test)]
mod tests;
