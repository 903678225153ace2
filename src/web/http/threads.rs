//! The threads of the web server: one for its tasks, and a few for reads of the database.
//!
//! The runtime of the daemon has few threads. A page that takes long to render would occupy one of them.

use std::io;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use model::BoxFuture;

/// The maximum number of threads for reads of the database and other blocking work.
const MAX_BLOCKING_THREADS: usize = 8;

/// Runs a server on a runtime of its own until it ends.
///
/// # Errors
///
/// Fails if the threads cannot be started, or if the server fails.
pub(super) fn run_on_own_threads(
    listener: TcpListener,
    serve: impl FnOnce(TcpListener) -> BoxFuture<'static, io::Result<()>> + Send + 'static,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        // Each runtime registers its own sockets.
        let listener = listener.into_std()?;
        let (ended, end) = oneshot::channel();
        let run = move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.max_blocking_threads(MAX_BLOCKING_THREADS).enable_all().build()?;
            let served = runtime.block_on(async { serve(TcpListener::from_std(listener)?).await });
            runtime.shutdown_background();
            served
        };
        std::thread::Builder::new().name("web".to_owned()).spawn(move || _ = ended.send(run()))?;
        end.await.unwrap_or_else(|_| Err(io::Error::other("the thread of the web server ended unexpectedly")))
    })
}
