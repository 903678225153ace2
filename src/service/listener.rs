//! Serving with bounds, for the data service and for the daemon's own pages: so many connections at once, none that is silent for ever,
//! none that sends its request a byte at a time, and an end when it is time to stop. axum's own serving has none of these, so that
//! clients which open connections and send half a request would gather until no file descriptor is left, and hold the process.

mod places;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::Tls;
use axum::{Router, extract::Request};
use hyper_util::rt::{TokioIo, TokioTimer};
use model::BoxFuture;
use places::Places;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;
use tokio_util::{either::Either, sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

/// Connections of the data service at once, from this machine and from elsewhere each.
const MAX_CONNECTIONS: usize = 4096;
/// Connections that may wait in the system's queue.
const BACKLOG: u32 = 4096;
/// File descriptors beside those of connections: databases, logs, our own requests.
const OTHER_FILES: u64 = 256;
/// Largest head of a request, bytes.
const MAX_HEAD: usize = 32 * 1024;

/// What the connections of one listener may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// Connections at once, from this machine and from elsewhere each; one more, and the one that has been idle for longest leaves.
    pub connections: usize,
    /// Longest time from the end of one request to the whole head of the next.
    pub head: Duration,
    /// Longest time in which neither a byte comes nor one goes: covers idle connections, half-sent requests, readers who stopped
    /// reading.
    pub max_silence: Duration,
    /// Time that open requests get to finish once the listener is asked to stop.
    pub stop_grace: Duration,
}

impl Default for ConnectionLimits {
    /// Those of the data service.
    fn default() -> Self {
        Self {
            connections: MAX_CONNECTIONS,
            head: Duration::from_secs(60),
            max_silence: Duration::from_secs(75),
            stop_grace: Duration::from_secs(5),
        }
    }
}

/// Who is at the other end of a connection: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Listens on an address, with a queue for a crowd. Fails where the address cannot be had.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    allow_connections();
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Asks the system for as many file descriptors as there may be connections: its usual 1,024 are a soft limit that a program may raise.
fn allow_connections() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(MAX_CONNECTIONS * 2).unwrap_or(u64::MAX).saturating_add(OTHER_FILES);
    let possible = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < possible) {
        limit.current = Some(possible);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "cannot allow more open files; fewer connections are served at once");
        }
    }
}

/// Serves `router` on `listener` within the limits of the data service, until `stop` resolves; then open requests may finish for a few
/// seconds.
pub fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    serve_within(ConnectionLimits::default(), listener, router, Box::pin(stop))
}

/// As [`serve`], by https alone where there is TLS.
pub fn serve_tls(
    listener: TcpListener,
    router: Router,
    tls: Option<Tls>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    serve_by(ConnectionLimits::default(), listener, router, tls, Box::pin(stop))
}

/// As [`serve`], for few: at most so many connections at once, that are idle for half a minute at most, and so long for open requests
/// once it is time to stop.
pub fn serve_few(
    listener: TcpListener,
    router: Router,
    connections: usize,
    stop_grace: Duration,
    stop: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    let (head, max_silence) = (Duration::from_secs(15), Duration::from_secs(30));
    let limits = ConnectionLimits { connections, head, max_silence, stop_grace };
    serve_within(limits, listener, router, Box::pin(stop))
}

/// Serves `router` on `listener` until `stop` resolves, then lets open requests finish for at most [`ConnectionLimits::stop_grace`]:
/// a connection that never finishes its request cannot hold the process.
pub(crate) fn serve_within(
    limits: ConnectionLimits,
    listener: TcpListener,
    router: Router,
    stop: BoxFuture<'static, ()>,
) -> BoxFuture<'static, io::Result<()>> {
    serve_by(limits, listener, router, None, stop)
}

fn serve_by(
    limits: ConnectionLimits,
    listener: TcpListener,
    router: Router,
    tls: Option<Tls>,
    mut stop: BoxFuture<'static, ()>,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let mut listener = CappedListener { listener, max_silence: limits.max_silence };
        let places = Arc::new(Places::new(limits.connections));
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(MAX_HEAD);
        let (stopping, ending, connections) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        loop {
            let (connection, peer) = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let place = tokio::select! {
                place = places.take(peer.ip()) => place,
                () = &mut stop => break,
            };
            let (router, busy) = (router.clone(), place.clone());
            let answering = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                busy.is_busy();
                request.extensions_mut().insert(Peer(peer));
                // A router is always ready.
                router.clone().call(request.map(axum::body::Body::new) as Request)
            });
            let (http, tls, stopping, ending) = (http.clone(), tls.clone(), stopping.clone(), ending.clone());
            connections.spawn(async move {
                let greeted = tokio::select! {
                    greeted = greet(connection, tls, limits.head) => greeted,
                    () = place.left.cancelled() => return,
                    () = stopping.cancelled() => return,
                };
                let connection = match greeted {
                    Ok(stream) => http.serve_connection(TokioIo::new(stream), answering),
                    Err(error) => {
                        tracing::debug!(%error, %peer, "a connection was not encrypted");
                        return;
                    }
                };
                let mut connection = std::pin::pin!(connection);
                let ended = tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = place.left.cancelled() => {
                        tracing::debug!(%peer, "an idle connection made room for another");
                        return;
                    }
                    () = stopping.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        tokio::select! {
                            ended = connection => ended,
                            () = ending.cancelled() => Ok(()),
                        }
                    }
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, %peer, "a connection ended early");
                }
            });
        }
        drop(listener);
        connections.close();
        stopping.cancel();
        let _ = tokio::time::timeout(limits.stop_grace, connections.wait()).await;
        ending.cancel();
        Ok(())
    })
}

/// The connection as requests come over it: as it is, or encrypted once both sides have greeted each other.
async fn greet(
    connection: CappedConnection,
    tls: Option<Tls>,
    within: Duration,
) -> io::Result<Either<CappedConnection, TlsStream<CappedConnection>>> {
    match tls {
        None => Ok(Either::Left(connection)),
        Some(Tls(acceptor)) => Ok(Either::Right(tokio::time::timeout(within, acceptor.accept(connection)).await??)),
    }
}

/// A listener whose connections end when they are silent.
#[derive(Debug)]
struct CappedListener {
    listener: TcpListener,
    max_silence: Duration,
}

impl CappedListener {
    async fn accept(&mut self) -> (CappedConnection, SocketAddr) {
        // axum's own accept waits out errors such as too many open files.
        let (stream, address) = axum::serve::Listener::accept(&mut self.listener).await;
        // Answers are written whole; waiting to fill a packet would only delay their ends.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::trace!(%error, "cannot switch off the delay of small packets");
        }
        let now = Instant::now();
        let alarm = Box::pin(sleep_until(now + self.max_silence));
        (CappedConnection { stream, alarm, heard_at: now, max_silence: self.max_silence }, address)
    }
}

/// A connection that ends when it is silent for too long.
#[derive(Debug)]
struct CappedConnection {
    stream: TcpStream,
    /// Set anew only when it rings, so that bytes cost no timer.
    alarm: Pin<Box<Sleep>>,
    heard_at: Instant,
    max_silence: Duration,
}

impl CappedConnection {
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

impl AsyncRead for CappedConnection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.noticed(context, progress)
    }
}

impl AsyncWrite for CappedConnection {
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
