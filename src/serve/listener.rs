//! A listener with bounds: so many connections at once, and none that is silent for ever. axum's own has neither, so that clients
//! which open connections and send half a request would gather until no file descriptor is left.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, Sleep, sleep_until},
};

/// Connections at once; more wait in the system's queue.
const MAX_CONNECTIONS: usize = 1024;
/// Longest time in which neither a byte comes nor one goes: covers idle connections, half-sent requests, readers who stopped reading.
const MAX_SILENCE: Duration = Duration::from_secs(75);

/// See the module.
#[derive(Debug)]
pub struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
    max_silence: Duration,
}

impl Bounded {
    /// Bounds a listener.
    #[must_use]
    pub fn new(listener: TcpListener) -> Self {
        Self::with(listener, MAX_CONNECTIONS, MAX_SILENCE)
    }

    pub(super) fn with(listener: TcpListener, connections: usize, max_silence: Duration) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(connections)), max_silence }
    }
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // The semaphore is never closed; were it to be, connections would only be uncounted.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        // axum's own accept waits out errors such as too many open files.
        let (stream, address) = axum::serve::Listener::accept(&mut self.listener).await;
        // Answers are written whole; waiting to fill a packet would only delay their ends.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::trace!(%error, "cannot switch off the delay of small packets");
        }
        let now = Instant::now();
        let alarm = Box::pin(sleep_until(now + self.max_silence));
        (Connection { stream, alarm, heard_at: now, max_silence: self.max_silence, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when it is silent for too long.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// Set anew only when it rings, so that bytes cost no timer.
    alarm: Pin<Box<Sleep>>,
    heard_at: Instant,
    max_silence: Duration,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    fn noticed<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.heard_at = Instant::now();
            return progress;
        }
        while self.alarm.as_mut().poll(context).is_ready() {
            let until = self.heard_at + self.max_silence;
            if until <= Instant::now() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the connection was silent for too long")));
            }
            self.alarm.as_mut().reset(until);
        }
        Poll::Pending
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.noticed(context, progress)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noticed(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.noticed(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
