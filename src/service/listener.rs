//! An HTTP server with limits, for the data service and the web interface: a maximum number of connections, timeouts for idle connections
//! and slow requests, and a bounded shutdown. axum's own server has none of these, so clients with incomplete requests could use up all
//! file descriptors and prevent the shutdown.

mod slots;

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
use slots::ConnectionSlots;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;
use tokio_util::{either::Either, sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

/// The maximum number of connections from this machine, and the same number from other machines.
const MAX_CONNECTIONS: usize = 4096;
/// The length of the system's queue of new connections.
const BACKLOG: u32 = 4096;
/// The number of other file descriptors: databases, logs, outgoing requests.
const RESERVED_FILES: u64 = 256;
const MAX_HEAD: usize = 32 * 1024;

/// The limits of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// The maximum number of connections from this machine, and the same number from other machines. A further one replaces the
    /// longest idle connection.
    pub connections: usize,
    /// The timeout from the end of a request to the complete head of the next.
    pub head: Duration,
    /// The timeout of a connection on which no bytes are sent or received.
    pub idle_timeout: Duration,
    /// The time for open requests to finish during shutdown.
    pub stop_grace: Duration,
}

impl Default for ConnectionLimits {
    /// Returns the limits of the data service.
    fn default() -> Self {
        Self {
            connections: MAX_CONNECTIONS,
            head: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(75),
            stop_grace: Duration::from_secs(5),
        }
    }
}

/// The address of the client, as an extension of each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Listens on an address, with a queue that is long enough for a burst of connections.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    allow_connections();
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Raises the soft limit of file descriptors, usually 1,024, to the maximum number of connections.
fn allow_connections() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(MAX_CONNECTIONS * 2).unwrap_or(u64::MAX).saturating_add(RESERVED_FILES);
    let possible = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if limit.current.is_some_and(|current| current < possible) {
        limit.current = Some(possible);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "cannot raise the limit of open files, so fewer connections are possible");
        }
    }
}

/// Serves `router` with the limits of the data service until `stop` resolves. Open requests then have a few seconds to finish.
pub fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    serve_tls(listener, router, None, stop)
}

/// Like [`serve`], but accepts only HTTPS if `tls` is set.
pub fn serve_tls(
    listener: TcpListener,
    router: Router,
    tls: Option<Tls>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    serve_within(ConnectionLimits::default(), listener, router, tls, Box::pin(stop))
}

/// Like [`serve`], but for few clients, with shorter timeouts.
pub fn serve_few(
    listener: TcpListener,
    router: Router,
    connections: usize,
    stop_grace: Duration,
    stop: impl Future<Output = ()> + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    let (head, idle_timeout) = (Duration::from_secs(15), Duration::from_secs(45));
    let limits = ConnectionLimits { connections, head, idle_timeout, stop_grace };
    serve_within(limits, listener, router, None, Box::pin(stop))
}

pub(crate) fn serve_within(
    limits: ConnectionLimits,
    listener: TcpListener,
    router: Router,
    tls: Option<Tls>,
    mut stop: BoxFuture<'static, ()>,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let mut listener = TimedListener { listener, idle_timeout: limits.idle_timeout };
        let slots = Arc::new(ConnectionSlots::new(limits.connections));
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(MAX_HEAD);
        let (stopping, ending, connections) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        loop {
            let (connection, peer) = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let slot = tokio::select! {
                slot = slots.take(peer.ip()) => slot,
                () = &mut stop => break,
            };
            let (router, busy) = (router.clone(), slot.clone());
            let handler = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                busy.mark_busy();
                request.extensions_mut().insert(Peer(peer));
                // `Router` is always ready, so `poll_ready` is not needed.
                router.clone().call(request.map(axum::body::Body::new) as Request)
            });
            let (http, tls, stopping, ending) = (http.clone(), tls.clone(), stopping.clone(), ending.clone());
            connections.spawn(async move {
                let handshake_result = tokio::select! {
                    handshake_result = handshake(connection, tls, limits.head) => handshake_result,
                    () = slot.eviction.cancelled() => return,
                    () = stopping.cancelled() => return,
                };
                let connection = match handshake_result {
                    Ok(stream) => http.serve_connection(TokioIo::new(stream), handler),
                    Err(error) => {
                        tracing::debug!(%error, %peer, "TLS handshake failed");
                        return;
                    }
                };
                let mut connection = std::pin::pin!(connection);
                let ended = tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = slot.eviction.cancelled() => {
                        tracing::debug!(%peer, "idle connection closed for a new one");
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
                    tracing::debug!(%error, %peer, "connection failed");
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

/// Performs the TLS handshake, if `tls` is set.
async fn handshake(
    connection: TimedConnection,
    tls: Option<Tls>,
    within: Duration,
) -> io::Result<Either<TimedConnection, TlsStream<TimedConnection>>> {
    match tls {
        None => Ok(Either::Left(connection)),
        Some(Tls(acceptor)) => Ok(Either::Right(tokio::time::timeout(within, acceptor.accept(connection)).await??)),
    }
}

/// A listener whose connections have an idle timeout.
#[derive(Debug)]
struct TimedListener {
    listener: TcpListener,
    idle_timeout: Duration,
}

impl TimedListener {
    async fn accept(&mut self) -> (TimedConnection, SocketAddr) {
        // axum's `accept` handles errors such as too many open files.
        let (stream, address) = axum::serve::Listener::accept(&mut self.listener).await;
        // Responses are written as a whole, so Nagle's algorithm would only delay their ends.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::trace!(%error, "cannot disable Nagle's algorithm");
        }
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now + self.idle_timeout));
        (TimedConnection { stream, timer, active_at: now, idle_timeout: self.idle_timeout }, address)
    }
}

/// A connection with an idle timeout.
#[derive(Debug)]
struct TimedConnection {
    stream: TcpStream,
    /// Reset only when it fires, so that reading and writing bytes does not touch the timer.
    timer: Pin<Box<Sleep>>,
    active_at: Instant,
    idle_timeout: Duration,
}

impl TimedConnection {
    fn track_activity<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.active_at = Instant::now();
            return progress;
        }
        while self.timer.as_mut().poll(context).is_ready() {
            let until = self.active_at + self.idle_timeout;
            if until <= Instant::now() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the connection was idle for too long")));
            }
            self.timer.as_mut().reset(until);
        }
        Poll::Pending
    }
}

impl AsyncRead for TimedConnection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.track_activity(context, progress)
    }
}

impl AsyncWrite for TimedConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.track_activity(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.track_activity(context, progress)
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
