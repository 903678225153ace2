//! The threads of the web server: one for its tasks, and a few for reads of the database.
//!
//! The runtime of the daemon has few threads. A page that takes long to render would occupy one of them. For the same reason, these
//! threads have a lower priority: alerts do not wait for a processor that renders pages.

use std::io;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use model::BoxFuture;

/// The maximum number of threads for reads of the database and other blocking work.
const MAX_BLOCKING_THREADS: usize = 8;

/// The niceness of the threads, from 0 to 19. The daemon's is 0 by default.
const NICENESS: i32 = 10;

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
            builder.max_blocking_threads(MAX_BLOCKING_THREADS).on_thread_start(lower_priority).enable_all();
            let runtime = builder.build()?;
            lower_priority();
            let served = runtime.block_on(async { serve(TcpListener::from_std(listener)?).await });
            runtime.shutdown_background();
            served
        };
        std::thread::Builder::new().name("web".to_owned()).spawn(move || _ = ended.send(run()))?;
        end.await.unwrap_or_else(|_| Err(io::Error::other("the thread of the web server ended unexpectedly")))
    })
}

/// Lowers the priority of this thread. On Linux, niceness belongs to a thread. If it cannot be set, pages have the same priority.
fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(error = &error as &dyn std::error::Error, "cannot lower the priority of a thread for pages");
    }
}
