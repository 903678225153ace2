//! News for pages that are open: `/events`, as server-sent events. They say that something is new and never what: the page asks for a
//! fresh copy of itself, so that there is one way in which a page is made.
//!
//! Somebody looks into the database every two seconds while anybody listens, once for all who do. Nothing is looked at for nobody.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body::{Body as HttpBody, Frame};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::HttpDeps;
use model::Pulse;
use store::Store;

/// Pages that hear of news at once. One more is told to come back: it is right without.
const MAX_LISTENERS: usize = 48;
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Between two signs of life, well within what a silent connection is allowed.
const SIGN_EVERY: Duration = Duration::from_secs(12);

const NEWS: &[u8] = b"event: news\ndata: {}\n\n";
const SIGN: &[u8] = b": here\n\n";
/// The first thing said: how long to wait before one comes again, milliseconds.
const WELCOME: &[u8] = b"retry: 5000\n\n";

/// Who listens, and what there is to hear. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct News(Arc<NewsHub>);

#[derive(Debug)]
struct NewsHub {
    pulse: watch::Sender<Pulse>,
    places: Arc<Semaphore>,
    joined: Notify,
    ending: CancellationToken,
}

impl News {
    /// Begins to look into `store` for whoever listens, until `ending`. Needs the runtime.
    pub fn start(store: Store, ending: CancellationToken) -> Self {
        let hub = Arc::new(NewsHub {
            pulse: watch::Sender::new(Pulse::default()),
            places: Arc::new(Semaphore::new(MAX_LISTENERS)),
            joined: Notify::new(),
            ending,
        });
        tokio::spawn(look(hub.clone(), store));
        Self(hub)
    }

    /// What a listener hears; none where there are too many.
    fn listen(&self) -> Option<NewsListener> {
        let place = self.0.places.clone().try_acquire_owned().ok()?;
        let (say, heard) = mpsc::channel(4);
        let (pulse, ending) = (self.0.pulse.subscribe(), self.0.ending.clone());
        tokio::spawn(tell(pulse, say, ending));
        self.0.joined.notify_one();
        Some(NewsListener { heard, _place: place })
    }
}

/// Looks while somebody listens.
async fn look(hub: Arc<NewsHub>, store: Store) {
    let looking = async {
        loop {
            if hub.pulse.receiver_count() == 0 {
                hub.joined.notified().await;
            }
            match store.pulse().await {
                Ok(pulse) => {
                    hub.pulse.send_if_modified(|last| std::mem::replace(last, pulse) != pulse);
                }
                Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "cannot see whether anything is new"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = looking => {}
        () = hub.ending.cancelled() => {}
    }
}

/// Says to one listener what there is, until it leaves or we end.
async fn tell(mut pulse: watch::Receiver<Pulse>, say: mpsc::Sender<&'static [u8]>, ending: CancellationToken) {
    let mut next = WELCOME;
    while say.send(next).await.is_ok() {
        next = tokio::select! {
            changed = pulse.changed() => match changed {
                Ok(()) => NEWS,
                Err(_) => return,
            },
            () = tokio::time::sleep(SIGN_EVERY) => SIGN,
            () = say.closed() => return,
            () = ending.cancelled() => return,
        };
    }
}

/// The body of an answer that goes on.
struct NewsListener {
    heard: mpsc::Receiver<&'static [u8]>,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for NewsListener {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.heard.poll_recv(context).map(|heard| heard.map(|text| Ok(Frame::data(Bytes::from_static(text)))))
    }
}

/// `GET /events`.
pub(super) async fn events(State(deps): State<HttpDeps>) -> Response {
    let Some(listening) = deps.news.listen() else {
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "60")], "too many pages listen\n").into_response();
    };
    let kind = HeaderValue::from_static("text/event-stream");
    ([(header::CONTENT_TYPE, kind)], Body::new(listening)).into_response()
}

#[cfg(test)]
mod tests;
